"""Voices over a model in this process: they can be focused, and score given replies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from empatheia.records.analysis import Analysis
from empatheia.text.batching import TokenBatchSampler
from empatheia.voices.decoding import Decoding, DecodingSettings, FocusSettings
from empatheia.voices.endpoint import causes_of
from empatheia.voices.voice import Contrast, Draft, Kit, Likelihood, Request, Traits, Voice
from empatheia_research.decoding.distractors import Contrast as MadeContrast
from empatheia_research.decoding.focus import FocusProcessor
from empatheia_research.decoding.given_replies import focused_score
from empatheia_research.decoding.worlds import Worlds
from empatheia_research.text.collation import IGNORED, pad_rows
from empatheia_research.voices.contrast import Contrasts

PIECES_PER_BATCH = 4096
ROWS_PER_BATCH = 32


class LocalVoice(Voice, ABC):
    """A model in this process: our responder, or a language model of transformers."""

    traits = Traits(focusable=True)
    model: Any
    ends: list[int] | None = None  # end marks where they are not those of the model's own settings
    _contrasts: Contrasts | None = None

    def contrasts(
        self, analyses: Sequence[Analysis], focus: FocusSettings, kit: Kit
    ) -> tuple[list[Contrast | None], list[str]]:
        """See :class:`~empatheia.voices.voice.Scorer`; models are loaded when first needed."""
        if self._contrasts is None or self._contrasts.kit is not kit:
            self._contrasts = Contrasts(kit)
        found, reasons = self._contrasts.make(analyses, focus)
        return list(found), reasons

    @abstractmethod
    def length(self, request: Request) -> int:
        """Pieces of a context."""

    @abstractmethod
    def tensors(self, requests: Sequence[Request]) -> dict[str, Tensor]:
        """Model inputs, one row each."""

    @abstractmethod
    def write(
        self,
        requests: Sequence[Request],
        inputs: dict[str, Tensor],
        decoding: Decoding,
        n: int,
        processors: Sequence[Any],
    ) -> list[str]:
        """``n`` replies for each row, one after the other."""

    @abstractmethod
    def labels(self, requests: Sequence[Request], replies: Sequence[str]) -> list[list[int]]:
        """Pieces of replies with their end mark."""

    @abstractmethod
    def piece(self, id: int) -> str:
        """The text of a piece."""

    def worlds(self, requests: Sequence[Request]) -> Worlds:
        """Model inputs of all worlds; one each where there is no contrast."""
        rows = [in_worlds(one) for one in requests]
        return Worlds(self.tensors([one for row in rows for one in row]), len(rows[0]))

    @torch.inference_mode()
    def propose(
        self, requests: Sequence[Request], way: DecodingSettings, focus: FocusSettings | None
    ) -> list[list[Draft]]:
        """See :class:`Voice`."""
        out: list[list[Draft]] = [[] for _ in requests]
        is_focused = focus is not None and focus.alpha > 0 and focus.beta > 0
        beams = way.n if way.strategy == "beam" else 1
        for number in range(way.n if way.strategy == "sample" else 1):
            decoding = way.decoding(number)
            for batch in self._batches(requests):
                part = [requests[i] for i in batch]
                if is_focused and focus is not None:
                    worlds = self.worlds(part)
                    speaker = (focus.alpha, focus.beta, focus.prior)
                    with FocusProcessor(self.model, worlds, *speaker, eos_token_id=self.ends) as processor:
                        texts = self.write(part, worlds.true(), decoding, beams, [processor])
                else:
                    texts = self.write(part, self.tensors(part), decoding, beams, [])
                for place, i in enumerate(batch):
                    out[i] += [Draft(text, decoding.to_dict()) for text in texts[place * beams : (place + 1) * beams]]
        return out

    def likelihoods(self, requests: Sequence[Request], replies: Sequence[str]) -> list[float]:
        """Mean log-probability of a piece of each reply and its end, nats, one for each conversation."""
        plain = [replace(one, contrast=None) for one in requests]
        return [scored.mean for scored in self.score(plain, replies, FocusSettings.model_validate({}))]

    @torch.inference_mode()
    def score(self, requests: Sequence[Request], replies: Sequence[str], focus: FocusSettings) -> list[Likelihood]:
        """See :class:`Voice`; conversations with and without distractors may be mixed."""
        found: dict[int, Likelihood] = {}
        for has_worlds in (True, False):
            chosen = [i for i, one in enumerate(requests) if (one.contrast is not None) is has_worlds]
            for batch in self._batches([requests[i] for i in chosen]):
                indices = [chosen[place] for place in batch]
                scored = self._scored([requests[i] for i in indices], [replies[i] for i in indices], focus)
                found.update(zip(indices, scored, strict=True))
        return [found[i] for i in range(len(requests))]

    def _scored(self, requests: Sequence[Request], replies: Sequence[str], focus: FocusSettings) -> list[Likelihood]:
        rows = self.labels(requests, replies)
        labels = pad_rows(rows, IGNORED).to(self.model.device)
        worlds = self.worlds(requests)
        if worlds.n_worlds == 1:  # nothing to be told from: the same context twice scores the reply alike
            twice = {name: tensor.repeat_interleave(2, 0) for name, tensor in worlds.inputs.items()}
            worlds = Worlds(twice, 2)
        scores = focused_score(self.model, worlds, labels, 0.0, focus.beta, "L0")
        sums, counts = scores.log_s0.double().sum(-1).tolist(), scores.n_pieces.tolist()
        beliefs = scores.log_belief[..., 0].exp().tolist()
        return [
            Likelihood(
                total / n,
                tuple(self.piece(id) for id in row),
                () if one.contrast is None else tuple(belief[: n + 1]),
            )
            for total, n, row, belief, one in zip(sums, counts, rows, beliefs, requests, strict=True)
        ]

    def _batches(self, requests: Sequence[Request]) -> Iterator[list[int]]:
        """Indices of conversations of like length."""
        if not requests:
            return
        lengths = [self.length(one) for one in requests]
        for batch in TokenBatchSampler(lengths, PIECES_PER_BATCH, shuffle=False).batches():
            for start in range(0, len(batch), ROWS_PER_BATCH):
                yield list(batch[start : start + ROWS_PER_BATCH])


def in_worlds(request: Request) -> list[Request]:
    """The conversation in every world; causes never name the words that were exchanged there."""
    contrast = request.contrast
    if contrast is None:
        return [request]
    assert isinstance(contrast, MadeContrast)  # of LocalVoice.contrasts
    out: list[Request] = [request]
    for j, dialogue in enumerate(contrast.dialogues(request.dialogue)[1:]):
        words = contrast.replaced[j] if contrast.replaced else ()
        has_causes = request.analysis is not None and bool(causes_of(request.analysis))
        out.append(replace(request, dialogue=dialogue, causes=tuple(words) if has_causes else ()))
    return out
