"""What the decoding settings of a reply mean for transformers' ``generate()``.

Sampling draws its noise from one generator for each context (seeded by the seed and the context's text), so a
reply is the same alone or in any batch: ``argmax(logits + Gumbel noise)`` is a draw from ``softmax(logits)``
(Gumbel 1954; Maddison et al. 2014).
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

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

from empatheia.voices.decoding import Decoding


def generate_settings(decoding: Decoding, contexts: Sequence[str]) -> dict[str, Any]:
    """Keyword arguments for ``generate()``.

    Args:
        decoding: How replies are chosen.
        contexts: The text of each row's context; seeds the row's noise.
    """
    settings: dict[str, Any] = {
        "do_sample": False,
        "num_beams": decoding.num_beams if decoding.strategy == "beam" else 1,
        "max_new_tokens": decoding.max_new_tokens,
    }
    processors: list[LogitsProcessor] = []
    if decoding.repetition_penalty != 1:
        processors.append(OfReply(RepetitionPenaltyLogitsProcessor(float(decoding.repetition_penalty))))
    if decoding.no_repeat_ngram_size:
        processors.append(OfReply(NoRepeatNGramLogitsProcessor(decoding.no_repeat_ngram_size)))
    if decoding.strategy == "sample":
        processors.append(TemperatureLogitsWarper(float(decoding.temperature)))
        if decoding.top_k:
            processors.append(TopKLogitsWarper(decoding.top_k))
        if decoding.top_p < 1:
            processors.append(TopPLogitsWarper(float(decoding.top_p)))
        processors.append(RowNoise([decoding.seed ^ zlib.crc32(text.encode("utf-8", "replace")) for text in contexts]))
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
