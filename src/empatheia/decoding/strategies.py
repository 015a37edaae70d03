"""Decoding settings of a reply and what they mean for transformers' ``generate()``.

Sampling draws its noise from one generator for each context (seeded by the seed and the context's text), so a
reply is the same alone or in any batch: ``argmax(logits + Gumbel noise)`` is a draw from ``softmax(logits)``
(Gumbel 1954; Maddison et al. 2014).
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypedDict, get_args

import torch
from torch import Tensor
from transformers import (
    LogitsProcessor,
    LogitsProcessorList,
    NoRepeatNGramLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from empatheia.errors import DataError, DecodingError
from empatheia.reading import Json
from empatheia.registry import nearest
from empatheia.taxonomy import canonical_emotion

Strategy = Literal["greedy", "beam", "sample"]
MAX_NEW_TOKENS_LIMIT = 1024
NO_REPEAT = 4
"""What ``no_repeat_ngram_size`` is for a language model where nothing was said: small ones go round in circles."""


_WHOLE = {
    "num_beams": (1, 64),
    "top_k": (0, 10**6),
    "max_new_tokens": (1, MAX_NEW_TOKENS_LIMIT),
    "seed": (0, 2**63 - 1),
    "no_repeat_ngram_size": (0, 64),
}
"""Settings that are whole numbers, and the least and most of each."""


def _check_whole(name: str, value: object, lowest: int, highest: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
        raise DecodingError(f"{name} is {value!r}; accepted: a whole number from {lowest} to {highest}.")


def _check_share(name: str, value: object, highest: int) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= highest:
        raise DecodingError(f"{name} is {value!r}; accepted: above 0 up to {highest}; 1 leaves it out.")


class DecodingFields(TypedDict, total=False):
    """Fields of :class:`Decoding` as keywords, in its place."""

    strategy: Strategy
    num_beams: int
    top_k: int
    temperature: float
    max_new_tokens: int
    seed: int
    top_p: float
    no_repeat_ngram_size: int | None
    repetition_penalty: float
    label: str | None


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """How a reply is chosen.

    Args:
        strategy: ``greedy`` (the most probable piece at each step), ``beam`` or ``sample``.
        num_beams: Width of the beam; only ``beam`` reads it.
        top_k: Only the k most probable pieces are drawn from, 0 = all; only ``sample`` reads it.
        top_p: Only the most probable pieces that have this share of the probability together are drawn from, above 0 up
            to 1 = all; only ``sample`` reads it.
        temperature: Above 0; below 1 is more cautious; only ``sample`` reads it.
        max_new_tokens: Longest reply, in pieces.
        no_repeat_ngram_size: No run of so many pieces stands twice in a reply; 0 = no limit, None = :data:`NO_REPEAT`
            for language models in this process and no limit for others. What was said before does not count.
        repetition_penalty: Above 1, pieces that the reply already has become less probable; 1 = no penalty.
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
    top_p: float = 1.0
    no_repeat_ngram_size: int | None = None
    repetition_penalty: float = 1.0
    label: str | None = None

    def __post_init__(self) -> None:
        names = list(get_args(Strategy))
        if self.strategy not in names:
            hint = nearest(str(self.strategy), names)
            raise DecodingError(f"unknown strategy {self.strategy!r}.{hint} Accepted: {', '.join(names)}.")
        for name, (lowest, highest) in _WHOLE.items():
            value = getattr(self, name)
            if not (name == "no_repeat_ngram_size" and value is None):
                _check_whole(name, value, lowest, highest)
        if self.label is not None:
            try:
                object.__setattr__(self, "label", canonical_emotion(str(self.label)))
            except DataError as problem:
                raise DecodingError(f"label: {problem}") from None
        if not isinstance(self.temperature, int | float) or not 0 < self.temperature <= 100:
            raise DecodingError(
                f"temperature is {self.temperature!r}; accepted: above 0 up to 100; no randomness: greedy."
            )
        _check_share("top_p", self.top_p, 1)
        _check_share("repetition_penalty", self.repetition_penalty, 10)

    def to_dict(self) -> dict[str, Json]:
        """The settings that had a say in the reply."""
        read = {"greedy": (), "beam": ("num_beams",), "sample": ("top_k", "temperature", "seed")}[self.strategy]
        settings = asdict(self)
        neutral = {"top_p": 1.0, "no_repeat_ngram_size": 0, "repetition_penalty": 1.0}
        chosen = [name for name in (*neutral, "label") if settings[name] not in (None, neutral.get(name))]
        if self.strategy != "sample" and "top_p" in chosen:
            chosen.remove("top_p")
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
        processors: list[LogitsProcessor] = []
        if self.repetition_penalty != 1:
            processors.append(OfReply(RepetitionPenaltyLogitsProcessor(float(self.repetition_penalty))))
        if self.no_repeat_ngram_size:
            processors.append(OfReply(NoRepeatNGramLogitsProcessor(self.no_repeat_ngram_size)))
        if self.strategy == "sample":
            processors.append(TemperatureLogitsWarper(float(self.temperature)))
            if self.top_k:
                processors.append(TopKLogitsWarper(self.top_k))
            if self.top_p < 1:
                processors.append(TopPLogitsWarper(float(self.top_p)))
            processors.append(RowNoise([self.seed ^ zlib.crc32(text.encode("utf-8", "replace")) for text in contexts]))
        if processors:
            settings["logits_processor"] = LogitsProcessorList(processors)
        return settings


class OfReply(LogitsProcessor):
    """Shows another processor the reply alone: not the prompt that ``generate()`` begins with.

    Args:
        inner: What is shown the reply; for one ``generate()``.
    """

    def __init__(self, inner: LogitsProcessor) -> None:
        self.inner = inner
        self.n_prompt: int | None = None

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Scores of one step.

        Args:
            input_ids: Prompt, or start mark, and what was written. Shape: ``(rows, pieces so far)``.
            scores: Shape: ``(rows, vocabulary)``.

        Returns:
            Tensor of the shape of ``scores``.
        """
        if self.n_prompt is None:
            self.n_prompt = input_ids.shape[1]
        reply: Any = input_ids[:, self.n_prompt :]
        return scores if reply.shape[1] == 0 else self.inner(reply, scores)


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
