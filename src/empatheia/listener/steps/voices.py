"""Who writes candidates and who scores them: what every voice can do, and what a model in this process can.

All speak in batches of conversations. A voice in this process can be focused (Kim et al. 2021) and can score any reply;
a served model and a retrieval system can only speak.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from empatheia.decoding.distractors import Contrast
from empatheia.decoding.focus import FocusProcessor
from empatheia.decoding.given_replies import focused_score
from empatheia.decoding.strategies import Decoding
from empatheia.decoding.worlds import Worlds
from empatheia.dialogue import Dialogue
from empatheia.errors import DecodingError
from empatheia.listener.steps.settings import DecodingSettings, FocusSettings
from empatheia.responders.reflection.perceived import Perceived
from empatheia.taxonomy import IGNORED
from empatheia.text.batching import TokenBatchSampler
from empatheia.text.collation import pad_rows
from empatheia.text.prompts import Hints

PIECES_PER_BATCH = 4096
ROWS_PER_BATCH = 32


@dataclass(frozen=True, slots=True)
class Asked:
    """A conversation as a voice reads it.

    Attributes:
        dialogue: Ends with the speaker.
        contrast: Its last turn and others to be told from it; None = no focus.
        hints: What a language model may be told.
        label: Emotion or intent of the reply, for systems that take one; "" = none.
        perceived: What the steps before found, in the terms of ``dialogue``; for the reflection.
    """

    dialogue: Dialogue
    contrast: Contrast | None = None
    hints: Hints = field(default_factory=Hints)
    label: str = ""
    perceived: Perceived | None = None

    def in_worlds(self) -> list[Asked]:
        """The conversation in every world; hints never name the words that were exchanged there."""
        if self.contrast is None:
            return [self]
        out: list[Asked] = [self]
        for j, dialogue in enumerate(self.contrast.dialogues(self.dialogue)[1:]):
            words = self.contrast.replaced[j] if self.contrast.replaced else ()
            hints = replace(self.hints, causes=tuple(words)) if self.hints.causes else self.hints
            out.append(replace(self, dialogue=dialogue, hints=hints))
        return out


Written = tuple[str, Mapping[str, Any]]
"""A reply and the settings that had a say in it, ``strategy`` among them."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A reply in the ears of a voice.

    Attributes:
        likelihood: Mean log-probability of its pieces and its end, nats.
        pieces: Each as the voice reads it, the end mark as an empty text.
        belief: In the true world before each piece and after the last, in [0, 1], whatever the speaker's own prior: a
            listener who never hears (``uniform``, ``L1``) could not rank replies. Empty without distractors.
    """

    likelihood: float
    pieces: tuple[str, ...]
    belief: tuple[float, ...]


class Voice(ABC):
    """Who writes candidates.

    Attributes:
        name: For records.
        place: As the settings name it.
        can_focus: It can be focused, and can score replies.
        reads_intent: The wanted intent has a say in what it writes.
        takes_up_targets: It writes about the target words without being focused.
    """

    name: str
    place: str = ""
    can_focus = False
    reads_intent = False
    takes_up_targets = False

    def ways(self, ways: Sequence[DecodingSettings]) -> list[DecodingSettings]:
        """The ways it can write in."""
        return list(ways)

    @abstractmethod
    def speak(self, asked: Sequence[Asked], way: DecodingSettings, focus: FocusSettings | None) -> list[list[Written]]:
        """Replies to each conversation, best first, with the settings of each; the same alone or among others.

        Args:
            asked: With ``focus`` each has a contrast, all of as many worlds.
            way: How to write, and how many.
            focus: None = plain.

        Raises:
            DecodingError: It cannot write so.
            EndpointError: It is far away and gave no answer.
        """

    def likelihoods(self, asked: Sequence[Asked], replies: Sequence[str]) -> list[float]:
        """Mean log-probability of a piece of each reply, nats.

        Raises:
            DecodingError: It cannot score.
        """
        raise DecodingError(f"{self.name!r} gives no probabilities.")

    def score(self, asked: Sequence[Asked], replies: Sequence[str], focus: FocusSettings) -> list[Heard]:
        """What it hears in given replies, one for each conversation.

        Raises:
            DecodingError: It cannot score.
        """
        raise DecodingError(f"{self.name!r} gives no probabilities.")


class LocalVoice(Voice):
    """A model in this process: our responder, or a language model of transformers."""

    can_focus = True
    model: Any
    ends: list[int] | None = None  # end marks where they are not those of the model's own settings

    @abstractmethod
    def length(self, asked: Asked) -> int:
        """Pieces of a context."""

    @abstractmethod
    def tensors(self, asked: Sequence[Asked]) -> dict[str, Tensor]:
        """Model inputs, one row each."""

    @abstractmethod
    def write(
        self, asked: Sequence[Asked], inputs: dict[str, Tensor], decoding: Decoding, n: int, processors: Sequence[Any]
    ) -> list[str]:
        """``n`` replies for each row, one after the other."""

    @abstractmethod
    def labels(self, asked: Sequence[Asked], replies: Sequence[str]) -> list[list[int]]:
        """Pieces of replies with their end mark."""

    @abstractmethod
    def piece(self, id: int) -> str:
        """The text of a piece."""

    def worlds(self, asked: Sequence[Asked]) -> Worlds:
        """Model inputs of all worlds; one each where there is no contrast."""
        rows = [one.in_worlds() for one in asked]
        return Worlds(self.tensors([one for row in rows for one in row]), len(rows[0]))

    @torch.inference_mode()
    def speak(self, asked: Sequence[Asked], way: DecodingSettings, focus: FocusSettings | None) -> list[list[Written]]:
        """See :class:`Voice`."""
        out: list[list[Written]] = [[] for _ in asked]
        is_focused = focus is not None and focus.alpha > 0 and focus.beta > 0
        beams = way.n if way.strategy == "beam" else 1
        for number in range(way.n if way.strategy == "sample" else 1):
            decoding = way.decoding(number)
            for batch in self._batches(asked):
                part = [asked[i] for i in batch]
                if is_focused and focus is not None:
                    worlds = self.worlds(part)
                    speaker = (focus.alpha, focus.beta, focus.prior)
                    with FocusProcessor(self.model, worlds, *speaker, eos_token_id=self.ends) as processor:
                        texts = self.write(part, worlds.true(), decoding, beams, [processor])
                else:
                    texts = self.write(part, self.tensors(part), decoding, beams, [])
                for place, i in enumerate(batch):
                    out[i] += [(text, decoding.to_dict()) for text in texts[place * beams : (place + 1) * beams]]
        return out

    def likelihoods(self, asked: Sequence[Asked], replies: Sequence[str]) -> list[float]:
        """Mean log-probability of a piece of each reply and its end, nats, one for each conversation."""
        plain = [replace(one, contrast=None) for one in asked]
        return [heard.likelihood for heard in self.score(plain, replies, FocusSettings.model_validate({}))]

    @torch.inference_mode()
    def score(self, asked: Sequence[Asked], replies: Sequence[str], focus: FocusSettings) -> list[Heard]:
        """See :class:`Voice`; conversations with and without distractors may be mixed."""
        found: dict[int, Heard] = {}
        for has_worlds in (True, False):
            chosen = [i for i, one in enumerate(asked) if (one.contrast is not None) is has_worlds]
            for batch in self._batches([asked[i] for i in chosen]):
                indices = [chosen[place] for place in batch]
                heard = self._heard([asked[i] for i in indices], [replies[i] for i in indices], focus)
                found.update(zip(indices, heard, strict=True))
        return [found[i] for i in range(len(asked))]

    def _heard(self, asked: Sequence[Asked], replies: Sequence[str], focus: FocusSettings) -> list[Heard]:
        rows = self.labels(asked, replies)
        labels = pad_rows(rows, IGNORED).to(self.model.device)
        worlds = self.worlds(asked)
        if worlds.n_worlds == 1:  # nothing to be told from: the same context twice scores the reply alike
            twice = {name: tensor.repeat_interleave(2, 0) for name, tensor in worlds.inputs.items()}
            worlds = Worlds(twice, 2)
        scores = focused_score(self.model, worlds, labels, 0.0, focus.beta, "L0")
        sums, counts = scores.log_s0.double().sum(-1).tolist(), scores.n_pieces.tolist()
        beliefs = scores.log_belief[..., 0].exp().tolist()
        return [
            Heard(
                total / n,
                tuple(self.piece(id) for id in row),
                () if one.contrast is None else tuple(belief[: n + 1]),
            )
            for total, n, row, belief, one in zip(sums, counts, rows, beliefs, asked, strict=True)
        ]

    def _batches(self, asked: Sequence[Asked]) -> Iterator[list[int]]:
        """Indices of conversations of like length."""
        if not asked:
            return
        lengths = [self.length(one) for one in asked]
        for batch in TokenBatchSampler(lengths, PIECES_PER_BATCH, shuffle=False).batches():
            for start in range(0, len(batch), ROWS_PER_BATCH):
                yield list(batch[start : start + ROWS_PER_BATCH])
