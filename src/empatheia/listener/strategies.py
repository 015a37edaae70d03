"""Decoding settings of a reply and what they mean for transformers' ``generate()``.

Sampling draws its noise from one generator for each context (seeded by the seed and the context's text), so a
reply is the same alone or in any batch: ``argmax(logits + Gumbel noise)`` is a draw from ``softmax(logits)``
(Gumbel 1954; Maddison et al. 2014).
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor
from transformers import LogitsProcessor, LogitsProcessorList, TemperatureLogitsWarper, TopKLogitsWarper

from empatheia.errors import DataError, DecodingError
from empatheia.registry import nearest
from empatheia.taxonomy import canonical_emotion

Strategy = Literal["greedy", "beam", "sample"]
MAX_NEW_TOKENS_LIMIT = 1024


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """How a reply is chosen.

    Args:
        strategy: ``greedy`` (the most probable piece at each step), ``beam`` or ``sample``.
        num_beams: Width of the beam; only ``beam`` reads it.
        top_k: Only the k most probable pieces are drawn from, 0 = all; only ``sample`` reads it.
        temperature: Above 0; below 1 is more cautious; only ``sample`` reads it.
        max_new_tokens: Longest reply, in pieces.
        seed: Of the noise; only ``sample`` reads it.
        label: One of the 41 emotions and intents the reply is to express, in place of the predicted one; None = the
            predicted. Only systems that take a label of the reply accept it (MEED2).

    Raises:
        DecodingError: A value is out of its range.
    """

    strategy: Strategy = "greedy"
    num_beams: int = 4
    top_k: int = 20
    temperature: float = 0.9
    max_new_tokens: int = 60
    seed: int = 0
    label: str | None = None

    def __post_init__(self) -> None:
        names = list(get_args(Strategy))
        if self.strategy not in names:
            hint = nearest(str(self.strategy), names)
            raise DecodingError(f"unknown strategy {self.strategy!r}.{hint} Accepted: {', '.join(names)}.")
        for name, lowest, highest in (
            ("num_beams", 1, 64),
            ("top_k", 0, 10**6),
            ("max_new_tokens", 1, MAX_NEW_TOKENS_LIMIT),
            ("seed", 0, 2**63 - 1),
        ):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
                raise DecodingError(f"{name} is {value!r}; accepted: a whole number from {lowest} to {highest}.")
        if self.label is not None:
            try:
                object.__setattr__(self, "label", canonical_emotion(str(self.label)))
            except DataError as problem:
                raise DecodingError(f"label: {problem}") from None
        if not isinstance(self.temperature, int | float) or not 0 < self.temperature <= 100:
            raise DecodingError(
                f"temperature is {self.temperature!r}; accepted: above 0 up to 100; no randomness: greedy."
            )

    def to_dict(self) -> dict[str, Any]:
        """The settings that had a say in the reply."""
        read = {"greedy": (), "beam": ("num_beams",), "sample": ("top_k", "temperature", "seed")}[self.strategy]
        settings = asdict(self)
        chosen = () if self.label is None else ("label",)
        return {name: settings[name] for name in ("strategy", *read, "max_new_tokens", *chosen)}

    def generate_settings(self, contexts: Sequence[str]) -> dict[str, Any]:
        """Keyword arguments for ``generate()``.

        Args:
            contexts: The text of each row's context; seeds the row's noise.
        """
        settings: dict[str, Any] = {
            "do_sample": False,
            "num_beams": self.num_beams if self.strategy == "beam" else 1,
            "max_new_tokens": self.max_new_tokens,
        }
        if self.strategy == "sample":
            processors: list[LogitsProcessor] = [TemperatureLogitsWarper(float(self.temperature))]
            if self.top_k:
                processors.append(TopKLogitsWarper(self.top_k))
            processors.append(RowNoise([self.seed ^ zlib.crc32(text.encode("utf-8", "replace")) for text in contexts]))
            settings["logits_processor"] = LogitsProcessorList(processors)
        return settings


class RowNoise(LogitsProcessor):
    """Adds Gumbel noise, each row from a generator of its own, so that the arg max is a sample.

    Args:
        seeds: One for each row of the batch.
    """

    def __init__(self, seeds: Sequence[int]) -> None:
        self.generators = [torch.Generator().manual_seed(seed) for seed in seeds]

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Perturbs the scores of one step.

        Args:
            input_ids: Unused. Shape: ``(batch, pieces so far)``.
            scores: Logits. Shape: ``(batch, vocabulary)``.

        Returns:
            Tensor of the shape of ``scores``.
        """
        exponential = torch.stack(
            [torch.empty(scores.shape[-1]).exponential_(generator=own) for own in self.generators]
        )  # (batch, vocabulary); -log of an exponential draw is a Gumbel draw
        return scores - exponential.log().to(scores.device, scores.dtype)
