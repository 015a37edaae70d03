"""Language models as listeners: zero-shot, or shown what our analysis finds. One in this process is of research.

>>> listener = LanguageListener.of_endpoint("NAME", "http://localhost:8000/v1", shown="emotion")  # doctest: +SKIP
>>> listener.respond("I lost my grandmother last week.").text  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, Unpack

from empatheia.care.checking import Care
from empatheia.care.guard import guarded_stream
from empatheia.errors import DecodingError
from empatheia.listener.batch_listener import BatchListener, decoding_of
from empatheia.listener.listener import Listener
from empatheia.listener.protocol import AnyListener, Input, Inputs
from empatheia.listener.streaming import ReplyStream, Write
from empatheia.records.analysis import Analysis
from empatheia.records.dialogue import Dialogue
from empatheia.records.reply import Reply
from empatheia.registry import Registry
from empatheia.resources.catalogue import LISTENER
from empatheia.resources.chat_endpoint import API_KEY, ChatEndpoint, Prices, Usage
from empatheia.resources.manifest import FORMAT, Manifest
from empatheia.text.inputs import ReadyInput, prepare
from empatheia.text.prompts import Hints, Wording, cause_texts, messages_of, parse_shown
from empatheia.text.uncertainty import doubts
from empatheia.voices.decoding import Decoding, DecodingFields
from empatheia.voices.endpoint import STANDARD_SHOWN, EndpointAnswers, EndpointVoice, Prompt, check_served
from empatheia.voices.language_endpoint import EndpointReplies
from empatheia.voices.voice import Voice

SYSTEM = "language_model"
NOTHING_ANALYSED = "nothing was analysed: the language model answered by itself, and all emotions are equal here"
REACTIONS = Registry("reactions", {})
"""What finds the intent that a reply should have."""


class Answers(Protocol):
    """What answers: a served model, or one in this process."""

    wording: Wording

    @property
    def usage(self) -> Usage | None:
        """Tokens and cost so far of a served model."""
        ...

    @property
    def host(self) -> str:
        """Where conversations are sent; "" = nowhere."""
        ...

    def replies(self, prompts: Sequence[Prompt], decoding: Decoding) -> Iterator[tuple[str, dict[str, Any]]]:
        """Each reply and what else is known of it, in order."""
        ...

    def texts(self, prompt: Prompt, decoding: Decoding, facts: dict[str, Any]) -> Write:
        """One reply in pieces; what else is known of it comes into ``facts``."""
        ...


@dataclass(frozen=True, slots=True)
class _Question:
    """What a reply takes: the prompt, and what was perceived."""

    prompt: Prompt
    analysis: Analysis


class _Prompts:
    """The part of a reader that :meth:`Listener.respond` needs: inputs as they are, in batches."""

    analyzes = False

    def __init__(self, batch_size: int | None) -> None:
        self.batch_size = batch_size

    def encode(self, inputs: Sequence[ReadyInput]) -> list[ReadyInput]:
        return list(inputs)

    def batches(self, inputs: Sequence[ReadyInput], batch_size: int, cost: int = 0) -> Iterator[list[int]]:
        size = self.batch_size or len(inputs)
        for start in range(0, len(inputs), size):
            yield list(range(start, min(len(inputs), start + size)))


class LanguageListener(BatchListener):
    """A language model that answers; what is felt, and why, is found by our analysis.

    Usually made by :meth:`of_endpoint`, :meth:`of_model`, or ``Listener.load`` for a folder that
    ``empatheia train`` wrote.

    Args:
        answers: Who answers.
        manifest: Name, system, licence.
        shown: What of the analysis the model is shown: ``emotion``, ``side``, ``causes``, ``intent``; nothing =
            zero-shot.
        analyst: Listener (or its folder or name) that finds emotion and causes; None = what perceives by default.
        reaction: Folder or name of the model that finds the intent of the reply.
        labeller: Folder or name of the turn labels that model reads.

    Raises:
        ConfigError: ``shown`` names something else.
    """

    batch_size: int | None = None  # of replies; None = all that there are

    def __init__(
        self,
        answers: Answers,
        manifest: Manifest,
        *,
        shown: str | Sequence[str] = (),
        analyst: AnyListener | str | Path | None = None,
        reaction: str | Path = "reaction",
        labeller: str | Path = "intent",
    ) -> None:
        self.answers: Any = answers
        self.manifest = manifest
        self.shown = parse_shown(shown)
        self._analyst = analyst
        self._intent_models = (reaction, labeller)
        self.reader: Any = _Prompts(self.batch_size)

    @classmethod
    def of_endpoint(
        cls,
        llm: str,
        base_url: str | None = None,
        *,
        shown: str | Sequence[str] = (),
        prices: Prices | None = None,
        wording: Mapping[str, str] | None = None,
        request: Mapping[str, Any] | None = None,
        workers: int = 4,
        journal: str | Path | None = None,
        key_variable: str = API_KEY,
        timeout: float = 60.0,
        retries: int = 5,
        **analysis: Any,
    ) -> LanguageListener:
        """A model behind any OpenAI-compatible endpoint; the key comes from the environment.

        Args:
            llm: Name under which it is served.
            base_url: Address up to ``/v1``; None = EMPATHEIA_BASE_URL.
            shown: See the class.
            prices: Of a million tokens, for :attr:`usage` and each reply's cost.
            wording: Texts of :class:`~empatheia.text.prompts.Wording` to replace.
            request: More fields of every request.
            workers: Requests under way at once, when a list is answered.
            journal: File of answers; what is in it is not asked again.
            key_variable: Name of the variable that holds the key.
            timeout: Seconds without a byte before a request is given up.
            retries: Retries after a failure, with growing pauses.
            **analysis: ``analyst``, ``reaction``, ``labeller`` of the class.

        Raises:
            ConfigError: There is no usable address, or an option is wrong.
        """
        endpoint = ChatEndpoint(llm, base_url, key_variable=key_variable, timeout=timeout, retries=retries)
        answers = EndpointReplies(
            endpoint, Wording.of(wording), prices=prices, request=request, workers=workers, journal=journal
        )
        manifest = Manifest(format=FORMAT, system=SYSTEM, name=llm, weights="", licence=f"that of {llm}")
        return cls(EndpointAnswers(answers), manifest, shown=shown, **analysis)

    @property
    def usage(self) -> Usage | None:
        """Tokens and cost so far of a model behind an endpoint; None for one in this process."""
        return self.answers.usage

    @property
    def usage_by_conversation(self) -> dict[str, Usage]:
        """The same by the conversations' ids; empty for a model in this process."""
        is_served = isinstance(self.answers, EndpointAnswers)
        return self.answers.endpoint_replies.ledger.conversations if is_served else {}

    @property
    def host(self) -> str:
        """Where conversations are sent; empty for a model in this process."""
        return self.answers.host

    @property
    def has_own_analyst(self) -> bool:
        """Whether another than the default listener finds emotion and causes."""
        return self._analyst is not None

    @cached_property
    def analyst(self) -> AnyListener:
        """Who finds emotion and causes; loaded when first needed."""
        analyst = self._analyst or LISTENER
        return Listener.load(analyst) if isinstance(analyst, str | Path) else analyst

    @cached_property
    def _reaction(self) -> Any:
        return REACTIONS.get("model")(*self._intent_models)

    def analyze(self, item: Input | Inputs, batch_size: int = 1, progress: Callable[[int], None] | None = None) -> Any:
        """As :meth:`Listener.analyze`, by the analyst."""
        return self.analyst.analyze(item, batch_size, progress)

    def prompt(self, item: Input) -> str:
        """What the model would be told, as text; nothing is asked.

        Raises:
            DataError: The input is empty or ends with a listener turn.
        """
        (one,) = self._questions([prepare(item)])
        messages = messages_of(one.prompt.example.context, one.prompt.hints, self.answers.wording)
        return "\n\n".join(f"[{message['role']}]\n{message['content']}" for message in messages)

    @guarded_stream
    def stream(
        self,
        item: Input,
        *,
        decoding: Decoding | None = None,
        care: Care | bool = True,
        **settings: Unpack[DecodingFields],
    ) -> ReplyStream:
        """As :meth:`Listener.stream`; a served model gives its reply as one piece.

        Raises:
            DataError: The input is empty or ends with a listener turn.
            DecodingError: A setting is unknown or out of range.
            EndpointError: While it is read: the endpoint gave no answer.
        """
        decoding = self._checked(decoding_of(decoding, settings))
        (one,) = self._questions([prepare(item)])
        facts: dict[str, Any] = {}
        write = self.answers.texts(one.prompt, decoding, facts)
        return ReplyStream(one.analysis, write, lambda text: self._reply(text, facts, one, decoding))

    def as_voice(self, shown: Sequence[str] | None = None) -> Voice:
        """See :class:`~empatheia.listener.Listener`; shown what it was tuned with, else everything but the side."""
        return EndpointVoice(self.answers, self.name, self.shown or STANDARD_SHOWN if shown is None else shown)

    def _respond_batch(self, inputs: Sequence[Any], decoding: Decoding) -> list[Reply]:
        decoding = self._checked(decoding)
        questions = self._questions(inputs)
        answers = self.answers.replies([one.prompt for one in questions], decoding)
        return [self._reply(text, facts, one, decoding) for (text, facts), one in zip(answers, questions, strict=True)]

    def _questions(self, inputs: Sequence[ReadyInput]) -> list[_Question]:
        """The conversations analysed as far as the model is shown something of it."""
        if {"emotion", "side", "causes"} & set(self.shown):
            found = self.analyst.analyze([Dialogue(ready.example.dialogue_id, ready.turns) for ready in inputs])
        else:
            found = [_unanalysed(ready, self.name) for ready in inputs]
        intents = [""] * len(inputs)
        if "intent" in self.shown:
            records = self._reaction.annotate([Dialogue(str(i), r.example.context) for i, r in enumerate(inputs)])
            intents = [rows[-1].label if rows else "" for rows in records]
        return [
            _Question(Prompt(ready.example, self._hints(analysis, intent)), analysis)
            for ready, analysis, intent in zip(inputs, found, intents, strict=True)
        ]

    def _hints(self, analysis: Analysis, intent: str) -> Hints:
        newest = analysis.newest
        return Hints(
            emotion=newest.emotion.label if "emotion" in self.shown and newest.emotion is not None else "",
            causes=cause_texts(newest.causes, analysis.dialogue.turns) if "causes" in self.shown else (),
            intent=intent,
            side=newest.side.label if "side" in self.shown and newest.side is not None else "",
        )

    def _reply(self, text: str, facts: Mapping[str, Any], one: _Question, decoding: Decoding) -> Reply:
        used = {**self._used(decoding), "prompt": self.answers.wording.fingerprint}
        used |= {"shown": one.prompt.hints.to_dict()} if self.shown else {}
        return Reply(text, one.analysis, self.name, {**used, **facts})

    def _used(self, decoding: Decoding) -> dict[str, Any]:
        """The settings that had a say: ``top_k`` is no field of endpoints; ``request={"top_k": ...}`` where it is."""
        return {name: value for name, value in decoding.to_dict().items() if name != "top_k"}

    def _checked(self, decoding: Decoding) -> Decoding:
        """The settings as the model can follow them.

        Raises:
            DecodingError: It cannot.
        """
        check_served(decoding)
        check_label(decoding, self.name)
        return decoding


def check_label(decoding: Decoding, name: str) -> None:
    """Whether a language model can write so.

    Raises:
        DecodingError: A label is wanted of the reply.
    """
    if decoding.label is not None:
        raise DecodingError(
            f"the model {name!r} ({SYSTEM}) takes no label of the reply; leave label out, or show the predicted one"
            " with shown=intent."
        )


def _unanalysed(ready: ReadyInput, name: str) -> Analysis:
    text = " ".join(turn.text for turn in ready.example.context)
    unsure = tuple(dict.fromkeys((*ready.doubts, *doubts(text, None), NOTHING_ANALYSED)))
    return Analysis(Dialogue(ready.example.dialogue_id, ready.turns), by={"listener": name}, unsure=unsure)
