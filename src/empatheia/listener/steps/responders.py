"""Listeners as voices: our responders, language models of transformers, served models, ready replies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from transformers import LogitsProcessor, LogitsProcessorList

from empatheia.checkpoints.prompt_contexts import PromptContexts
from empatheia.checkpoints.reader import EncodedInput
from empatheia.decoding.strategies import Decoding
from empatheia.dialogue import Example
from empatheia.giving_way import give_way
from empatheia.listener.language_models import DEFAULTS, LanguageListener
from empatheia.listener.listener import Listener
from empatheia.listener.protocol import AnyListener
from empatheia.listener.steps.settings import REFLECTION, DecodingSettings, FocusSettings
from empatheia.listener.steps.voices import Asked, LocalVoice, Voice, Written
from empatheia.responders.reflection import Perceived, reflect
from empatheia.taxonomy import LABELS_41
from empatheia.text.inputs import prepare
from empatheia.text.prompt_pieces import PromptItem, PromptReader
from empatheia.text.prompts import Hints

STANDARD_SHOWN = ("emotion", "causes", "intent", "inferences")
REFLECTIONS = 3
"""Candidates the reflection gives."""


class OwnVoice(LocalVoice):
    """A responder of this package.

    Args:
        listener: Loaded.
    """

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.model = listener.network
        self.name = listener.name
        self.takes_label = self.reads_intent = bool(getattr(listener.network, "takes_label", False))

    def length(self, asked: Asked) -> int:
        """See :class:`LocalVoice`."""
        return len(self._encoded([asked])[0].pieces.input_ids)

    def tensors(self, asked: Sequence[Asked]) -> dict[str, Tensor]:
        """See :class:`LocalVoice`; a wanted label goes to systems that take one."""
        inputs = self.listener.reader.tensors(self._encoded(asked))
        if self.takes_label and any(one.label for one in asked):
            ids = [LABELS_41.index(one.label) if one.label else -1 for one in asked]
            wanted = torch.tensor(ids, device=self.model.device)
            own = inputs.get("reply_label_ids", torch.full_like(wanted, -1))
            inputs["reply_label_ids"] = torch.where(wanted < 0, own, wanted)
        return inputs

    def write(
        self,
        asked: Sequence[Asked],
        inputs: dict[str, Tensor],
        decoding: Decoding,
        n: int,
        processors: Sequence[LogitsProcessor],
    ) -> list[str]:
        """See :class:`LocalVoice`."""
        extra = {"num_return_sequences": n} if n > 1 else {}
        rows = self.listener._generate(self._encoded(asked), inputs, decoding, processors, **extra)
        return [self.listener.tokenizer.decode(row) for row in rows.tolist()]

    def labels(self, asked: Sequence[Asked], replies: Sequence[str]) -> list[list[int]]:
        """See :class:`LocalVoice`."""
        return self.listener.reader.contexts.reply_pieces(replies)

    def piece(self, id: int) -> str:
        """See :class:`LocalVoice`."""
        tokenizer = self.listener.tokenizer
        return "[UNK]" if id == tokenizer.unk_id else tokenizer.decode([id], raw=True)

    def _encoded(self, asked: Sequence[Asked]) -> list[EncodedInput]:
        return self.listener.reader.encode([prepare(one.dialogue) for one in asked])


class LanguageVoice(LocalVoice):
    """A causal or encoder-decoder language model of transformers.

    Args:
        listener: Over a model in this process.
        shown: What of the steps before it is told.
    """

    def __init__(self, listener: LanguageListener, shown: Sequence[str] = ()) -> None:
        self.listener = listener
        self.lm: Any = listener.network
        self.model = self.lm.network
        answers: Any = listener.answers
        self.reader: PromptReader = answers.reader
        self.contexts = PromptContexts(self.lm, self.reader)
        self.ends = self.reader.ends
        self.name = listener.name
        self.shown = tuple(shown)
        self.reads_intent = "intent" in self.shown

    def ways(self, ways: Sequence[DecodingSettings]) -> list[DecodingSettings]:
        """Without repetitions, where nothing else is said."""
        return [way if way.no_repeat_ngram_size is not None else way.model_copy(update=DEFAULTS) for way in ways]

    def length(self, asked: Asked) -> int:
        """See :class:`LocalVoice`."""
        return len(self._item(asked))

    def tensors(self, asked: Sequence[Asked]) -> dict[str, Tensor]:
        """See :class:`LocalVoice`."""
        return self.contexts.tensors([self._item(one) for one in asked])

    def write(
        self,
        asked: Sequence[Asked],
        inputs: dict[str, Tensor],
        decoding: Decoding,
        n: int,
        processors: Sequence[LogitsProcessor],
    ) -> list[str]:
        """See :class:`LocalVoice`."""
        settings = decoding.generate_settings(["\n".join(t.text for t in one.dialogue.turns) for one in asked])
        if processors:
            settings["logits_processor"] = LogitsProcessorList([*processors, *settings.get("logits_processor", ())])
        if n > 1:
            settings["num_return_sequences"] = n
        rows = self.lm.continue_batch(self.reader, inputs, **settings)
        return [self.listener.answers.text(row) for row in rows]

    def labels(self, asked: Sequence[Asked], replies: Sequence[str]) -> list[list[int]]:
        """See :class:`LocalVoice`."""
        return [list(self._item(one, reply).reply or ()) for one, reply in zip(asked, replies, strict=True)]

    def likelihoods(self, asked: Sequence[Asked], replies: Sequence[str]) -> list[float]:
        """See :class:`LocalVoice`."""
        costs = self.lm.nats(self.reader, [self._item(one, reply) for one, reply in zip(asked, replies, strict=True)])
        return [-nll / n for nll, n in costs]

    def piece(self, id: int) -> str:
        """See :class:`LocalVoice`."""
        return self.reader.decode([id])

    def _item(self, asked: Asked, reply: str | None = None) -> PromptItem:
        return self.reader.encode(Example(asked.dialogue.turns, reply), shown_hints(asked.hints, self.shown))


class OtherVoice(Voice):
    """A served language model, or a system of ready replies: any listener that only answers.

    Args:
        listener: Who answers.
        shown: What of the steps before a language model is told.
    """

    def __init__(self, listener: AnyListener, shown: Sequence[str] = ()) -> None:
        self.listener = listener
        self.name = listener.name
        self.shown = tuple(shown)
        self.reads_intent = isinstance(listener, LanguageListener) and "intent" in self.shown

    def ways(self, ways: Sequence[DecodingSettings]) -> list[DecodingSettings]:
        """A served model keeps no beams; ready replies know one way."""
        if isinstance(self.listener, LanguageListener):
            return [way for way in ways if way.strategy != "beam"]
        return list(ways[:1])

    def speak(self, asked: Sequence[Asked], way: DecodingSettings, focus: FocusSettings | None) -> list[list[Written]]:
        """See :class:`Voice`; never focused."""
        out: list[list[Written]] = [[] for _ in asked]
        n = way.n if way.strategy == "sample" and isinstance(self.listener, LanguageListener) else 1
        for number in range(n):
            for own, written in zip(out, self._written(asked, way.decoding(number)), strict=True):
                own.append(written)
        return out

    def _written(self, asked: Sequence[Asked], decoding: Decoding) -> list[Written]:
        if isinstance(self.listener, LanguageListener):
            pairs = [
                (Example(one.dialogue.turns, None, one.dialogue.id), shown_hints(one.hints, self.shown))
                for one in asked
            ]
            if self.listener.network is None:  # what is not sent
                decoding = replace(decoding, no_repeat_ngram_size=None, repetition_penalty=1.0)
            told = {name: value for name, value in decoding.to_dict().items() if name != "top_k"}  # not sent
            return [(text, told) for text in self.listener.replies_to(pairs, decoding)]
        replies = self.listener.respond([one.dialogue for one in asked], decoding=decoding, care=False)
        return [(reply.text, {"strategy": "own", **reply.decoding}) for reply in replies]


class ReflectionVoice(Voice):
    """Says back what was perceived; see :mod:`empatheia.responders.reflection`."""

    name = place = REFLECTION
    takes_up_targets = True

    def ways(self, ways: Sequence[DecodingSettings]) -> list[DecodingSettings]:
        """It writes in one way, whichever is asked for."""
        return list(ways[:1])

    def speak(self, asked: Sequence[Asked], way: DecodingSettings, focus: FocusSettings | None) -> list[list[Written]]:
        """See :class:`Voice`; best first, :data:`REFLECTIONS` of each conversation."""
        out: list[list[Written]] = []
        for one in asked:
            give_way()
            said = reflect(one.dialogue.turns, one.perceived or Perceived({}, {}, ()), REFLECTIONS, seed=way.seed)
            out.append(
                [
                    (own.text, {"strategy": REFLECTION, "forms": list(own.parts), "sureness": own.sureness})
                    for own in said
                ]
            )
        return out


def shown_hints(hints: Hints, shown: Sequence[str]) -> Hints:
    """The hints of which a model is told."""
    return Hints(
        emotion=hints.emotion if "emotion" in shown else "",
        causes=hints.causes if "causes" in shown else (),
        intent=hints.intent if "intent" in shown else "",
        inferences=hints.inferences if "inferences" in shown else (),
        side=hints.side if "side" in shown else "",
    )


def voice_of(listener: AnyListener, shown: Sequence[str] | None = None) -> Voice:
    """A listener as a writer of candidates.

    Args:
        listener: Loaded.
        shown: What of the steps before a language model is shown. None = what it was tuned with, else everything but
            the side.
    """
    if shown is None:
        shown = (isinstance(listener, LanguageListener) and listener.shown) or STANDARD_SHOWN
    if isinstance(listener, LanguageListener):
        voice: Voice = LanguageVoice(listener, shown) if listener.network is not None else OtherVoice(listener, shown)
    elif isinstance(listener, Listener):
        voice = OwnVoice(listener)
    else:
        voice = OtherVoice(listener)
    voice.place = voice.name
    return voice
