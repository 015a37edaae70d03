"""The :class:`FocusedListener`: five steps, each replaceable, configured by one YAML file or a few lines of Python.

>>> listener = FocusedListener.load("listener.yaml")  # doctest: +SKIP
>>> reply = listener.respond("I lost my dog in the park.", explain=True, alpha=4)  # doctest: +SKIP
>>> reply.candidates[0].terms["coverage"]  # doctest: +SKIP
1.0
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import reduce
from operator import add
from pathlib import Path
from threading import Event, RLock
from typing import Any, Unpack, overload

from empatheia.analysis.component import Component, Record
from empatheia.care.checking import Care
from empatheia.care.guard import guarded, guarded_stream
from empatheia.errors import ConfigError, DecodingError, MissingResourceError
from empatheia.listener.batch_listener import chunks, each_once
from empatheia.listener.listener import LISTENERS, Listener
from empatheia.listener.protocol import Input, Inputs
from empatheia.listener.reasoner import Reasoner
from empatheia.listener.steps.conversing import SteeredConversation
from empatheia.listener.steps.express import REPLIES_OF, Expression
from empatheia.listener.steps.settings import (
    AUTO,
    REFLECTION,
    ListenerSettings,
    ResponderSettings,
    check_settings,
    read_settings,
)
from empatheia.listener.steps.steering import NAMES, SteeredFields, Steering
from empatheia.listener.steps.understand import PERCEPTION, Steps, located
from empatheia.listener.streaming import ReplyStream
from empatheia.records.analysis import Analysis
from empatheia.records.dialogue import Dialogue
from empatheia.records.reply import Reply
from empatheia.registry import nearest
from empatheia.resources.catalogue import LISTENER, find_model
from empatheia.resources.chat_endpoint import Usage
from empatheia.resources.manifest import FORMAT, Manifest, read_manifest
from empatheia.text.inputs import ReadyInput, prepare
from empatheia.voices.decoding import Decoding, DecodingSettings
from empatheia.voices.voice import Kit, Voice, voice_called

SYSTEM = "five_steps"
FILE = "listener.yaml"
AT_ONCE = 64
_DECODING = tuple(name for name in Decoding.__dataclass_fields__ if name != "label")
_GENERATED = tuple(name for name in _DECODING if name != "seed")
_PLACES = ("model", "folder", "reasoner", "scorer", "intent_model", "mechanism_model")


class FocusedListener(Listener):
    """Perceives, explains, projects, reacts, expresses; every step has a model of its own, or is left out and says so.

    Args:
        settings: See :mod:`empatheia.listener.steps.settings`; a mapping is checked like a file; None = the defaults.
        components: Part to a component, in place of a model: ``emotion``, ``words``, ``causes``, ``inferences``,
            ``reaction``, ``intent``, ``mechanisms``.
        voices: Who writes, in place of ``express.responders``: listeners or :class:`Voice` objects.
        reasoner: A loaded listener in place of the one the settings name.
        distractors: Kind to distractors (``empatheia_research.decoding.distractors``), instead of the settings'.
        folder: Where relative places of the settings begin; None = the working folder.
        device: A torch device.

    Raises:
        ConfigError: A setting is unknown or out of range.
    """

    def __init__(
        self,
        settings: ListenerSettings | Mapping[str, object] | None = None,
        *,
        components: Mapping[str, Component[Record]] | None = None,
        voices: Sequence[Listener | Voice] | None = None,
        reasoner: Reasoner | None = None,
        distractors: Mapping[str, Any] | None = None,
        folder: str | Path | None = None,
        device: str = "cpu",
    ) -> None:
        if not isinstance(settings, ListenerSettings):
            settings = check_settings(dict(settings or {}))
        self.settings = settings if folder is None else _placed(settings, Path(folder))
        self.manifest = Manifest(format=FORMAT, system=SYSTEM, name=self.settings.name, weights="")
        self.device = device
        self._loaded: dict[str, Listener] = {}
        self._own_reasoner = reasoner
        self._own_voices = voices
        self._expression: Expression | None = None
        self._loading = RLock()
        self.steps = Steps(self.settings, self._reasoner, components, device)
        self.kit = Kit(self.steps.component, dict(distractors or {}))

    @classmethod
    def load(
        cls, name_or_path: str | Path = FILE, device: str = "cpu", *, overrides: Sequence[str] = (), **options: Any
    ) -> FocusedListener:
        """From a YAML file, or a folder that holds ``listener.yaml``; models are loaded when first needed.

        Args:
            name_or_path: Places in the file that begin with ``./`` or ``../`` are beside it.
            device: A torch device.
            overrides: Texts such as ``express.focus.alpha=6``, laid over the file's settings.
            **options: Of the class.

        Raises:
            ConfigError: No such file, an unknown key, or a bad value.
        """
        path = Path(name_or_path).expanduser()
        path = path / FILE if path.is_dir() else path
        return cls(read_settings(path, overrides), folder=path.absolute().parent, device=device, **options)

    def __repr__(self) -> str:
        voices = [one.name for one in self._expression.voices] if self._expression else self._responders
        return f"FocusedListener({self.name!r}, answers by {', '.join(voices)})"

    @property
    def _responders(self) -> list[str]:
        """Who writes, before they are loaded."""
        if self._own_voices is not None:
            return [voice.name for voice in self._own_voices]
        return [str(one.model or one.llm or one.folder) for one in self.settings.express.responders]

    @property
    def name(self) -> str:
        """As the settings say."""
        return self.settings.name

    @property
    def voices(self) -> list[Voice]:
        """Who writes, loaded."""
        return self.expression.voices

    @property
    def expression(self) -> Expression:
        """The fifth step, loaded once, whichever thread asks first."""
        with self._loading:
            if self._expression is None:
                own = self._own_voices
                voices = (
                    [self._opened(one) for one in self.settings.express.responders]
                    if own is None
                    else [voice.as_voice() if isinstance(voice, Listener) else voice for voice in own]
                )
                self._expression = Expression(self.settings.express, self.settings.memory, voices, self.steps, self.kit)
            return self._expression

    @property
    def host(self) -> str:
        """Where conversations are sent; empty if nowhere."""
        served = [voice.host for voice in self.voices]
        served += [getattr(one, "host", "") for one in self.steps.given]
        return ", ".join(dict.fromkeys(filter(None, served)))

    @property
    def usage(self) -> Usage | None:
        """Tokens and cost of all that was answered behind endpoints, by steps and responders; None where nothing is."""
        asked = [*self.voices, *self.steps.given]
        found = [used for one in asked if (used := getattr(one, "usage", None)) is not None]
        return reduce(add, found) if found else None

    @overload
    def analyze(self, item: Input, batch_size: int = ..., progress: Callable[[int], None] | None = ...) -> Analysis: ...

    @overload
    def analyze(
        self, item: Inputs, batch_size: int = ..., progress: Callable[[int], None] | None = ...
    ) -> list[Analysis]: ...

    def analyze(
        self, item: Input | Inputs, batch_size: int = 1, progress: Callable[[int], None] | None = None
    ) -> Analysis | list[Analysis]:
        """As :meth:`Listener.analyze`: the emotion with what earlier turns left behind, and the target words as causes.

        Where the targets are words of what the reasoner marks, the causes are all that it marks, in all turns.
        """
        if isinstance(item, str | Dialogue):
            return self._felt([prepare(item)], 1)[0]
        out: list[Analysis] = []
        for chunk in chunks(item):
            for part in _windows(chunk):
                out += each_once(part, lambda new: self._felt(new, batch_size, progress), progress)
        return out

    def _felt(
        self, inputs: Sequence[ReadyInput], batch_size: int, progress: Callable[[int], None] | None = None
    ) -> list[Analysis]:
        read = self.steps.understand(inputs, Steering(), batch_size)
        found = [located(one, ready, self.name) for one, ready in zip(read, inputs, strict=True)]
        if progress is not None:
            progress(len(inputs))
        return found

    @overload
    def respond(
        self,
        item: Input,
        *,
        decoding: Decoding | None = ...,
        steering: Steering | None = ...,
        explain: bool = ...,
        care: Care | bool = ...,
        **settings: Unpack[SteeredFields],
    ) -> Reply: ...

    @overload
    def respond(
        self,
        item: Inputs,
        *,
        decoding: Decoding | None = ...,
        steering: Steering | None = ...,
        explain: bool = ...,
        care: Care | bool = ...,
        **settings: Unpack[SteeredFields],
    ) -> list[Reply]: ...

    @guarded
    def respond(
        self,
        item: Input | Inputs,
        *,
        decoding: Decoding | None = None,
        steering: Steering | None = None,
        explain: bool = False,
        **settings: Unpack[SteeredFields],
    ) -> Reply | list[Reply]:
        """Answers; a conversation gets the same reply alone or in a list.

        Args:
            item: As for :meth:`Listener.analyze`.
            decoding: One way of writing in place of those in the settings.
            steering: What the caller decides.
            explain: Give every reply its candidates.
            **settings: Fields of :class:`Steering` or of :class:`Decoding`: with ``strategy`` they are one way of
                writing, without it they change those in the settings. And ``care`` as for :meth:`Listener.respond`.

        Returns:
            One reply, or a list in the order of the inputs.

        Raises:
            DataError: An input cannot be used, or a word of ``focus`` does not stand in it.
            DecodingError: A setting is unknown or out of range, or no distractor is possible for named words.
        """
        ways, steering = self._asked(decoding, steering, settings)
        if isinstance(item, str | Dialogue):
            return self._replies([prepare(item)], ways, steering, explain)[0]
        out: list[Reply] = []
        for chunk in chunks(item):
            for part in _windows(chunk):
                out += self._replies(part, ways, steering, explain)
        return out

    @guarded_stream
    def stream(
        self,
        item: Input,
        *,
        decoding: Decoding | None = None,
        steering: Steering | None = None,
        explain: bool = False,
        care: Care | bool = True,
        **settings: Unpack[SteeredFields],
    ) -> ReplyStream:
        """As :meth:`respond`; candidates are compared at their end, so the reply comes as one piece."""
        ways, steering = self._asked(decoding, steering, settings)
        inputs = [prepare(item)]
        found = self.steps.understand(inputs, steering)
        made: list[Reply] = []

        def write(stop: Event) -> Iterator[str]:
            made.extend(self._expressed(inputs, found, ways, steering, explain))
            yield made[-1].text

        return ReplyStream(located(found[0], inputs[0], self.name), write, lambda _: made[-1])

    def converse(
        self,
        dialogue: Dialogue | None = None,
        *,
        decoding: Decoding | None = None,
        steering: Steering | None = None,
        care: Care | bool = True,
        **settings: Unpack[SteeredFields],
    ) -> SteeredConversation:
        """Begins a conversation that remembers its turns and can be steered; see :meth:`respond`."""
        _, steering = self._asked(decoding, steering, settings)
        fields: Any = {n: v for n, v in self.used(settings).items() if n not in NAMES and n != "label"}
        return SteeredConversation(self, decoding, dialogue, steering, care, **fields)

    # -- parts -------------------------------------------------------------------------------------------------

    def used(self, settings: Mapping[str, Any], tell: Callable[[str], None] = lambda told: None) -> dict[str, Any]:
        """Settings without those of generation, where every reply is a reflection, which is not generated.

        Args:
            settings: Fields of :class:`Decoding` and :class:`Steering`.
            tell: Told, in words, what is left out.
        """
        if set(self._responders) != {REFLECTION}:
            return dict(settings)
        unused = [name for name in settings if name in _GENERATED]
        if unused:
            tell(
                f"{', '.join(unused)}: not used, because the default reply is a reflection and not generated; name a"
                " model that generates, e.g. gao2021-small."
            )
        return {name: value for name, value in settings.items() if name not in unused}

    def _asked(
        self, decoding: Decoding | None, steering: Steering | None, settings: Mapping[str, Any]
    ) -> tuple[Sequence[DecodingSettings], Steering]:
        """Ways of writing and what the caller decides."""
        settings = {("intent" if name == "label" else name): value for name, value in settings.items()}
        known = [*_DECODING, *NAMES]
        for name in settings:
            if name not in known:
                raise DecodingError(f"unknown setting {name!r}.{nearest(name, known)} Accepted: {', '.join(known)}.")
        own = {name: value for name, value in settings.items() if name in _DECODING}
        if own and decoding is not None:
            raise DecodingError(f"give decoding= or {', '.join(own)}, not both.")
        decided = {name: value for name, value in settings.items() if name in NAMES}
        if own:
            checked = Decoding(**own)
            decoding = checked if "strategy" in own else None
        self.used(own or _changed(decoding), lambda told: warnings.warn(told, UserWarning, stacklevel=4))
        return self._ways(decoding, own), _steered(steering, decoding, decided)

    def _ways(self, decoding: Decoding | None, own: dict[str, Any]) -> Sequence[DecodingSettings]:
        """One way if the caller names it; else those of the settings, with what the caller changes of them."""
        if decoding is not None:
            return [DecodingSettings(**{name: getattr(decoding, name) for name in _DECODING})]
        ways = self.settings.express.decoding
        return [DecodingSettings(**(way.model_dump() | own)) for way in ways] if own else ways

    def _replies(
        self, inputs: Sequence[ReadyInput], ways: Sequence[DecodingSettings], steering: Steering, explain: bool
    ) -> list[Reply]:
        return self._expressed(inputs, self.steps.understand(inputs, steering), ways, steering, explain)

    def _expressed(
        self,
        inputs: Sequence[ReadyInput],
        found: Sequence[Analysis],
        ways: Sequence[DecodingSettings],
        steering: Steering,
        explain: bool,
    ) -> list[Reply]:
        focus = steering.focused(self.settings.express.focus)
        told = self.expression.express(found, ways, focus)
        return [
            Reply(
                said.candidates[0].text,
                _with_missing(located(one, ready, self.name), said.missing),
                self.name,
                {"responder": said.candidates[0].responder, **said.candidates[0].decoding},
                said.candidates if explain else (),
                said.weights if explain else {},
            )
            for ready, one, said in zip(inputs, found, told, strict=True)
        ]

    def _reasoner(self) -> Reasoner:
        place = LISTENER if self.settings.reasoner == AUTO else self.settings.reasoner
        if self._own_reasoner is None and self.settings.perception == "joined":
            return self._joined(place)
        return self._own_reasoner or self._listener(place)

    def _joined(self, place: str) -> Reasoner:
        """The perception with a second look.

        Raises:
            ConfigError: The place is no perception, or a model of the second look is not here.
        """
        folder = find_model(place)
        if (system := read_manifest(folder).system) != PERCEPTION:
            raise ConfigError(
                f"perception: joined looks a second time beside a perception; reasoner {place!r} is of {system}. Leave"
                " one of the two out."
            )
        try:
            return LISTENERS.get(PERCEPTION).load(folder, self.device, joined=True)
        except MissingResourceError as problem:  # asked for by name: nobody else perceives in its place
            raise ConfigError(str(problem)) from problem

    def _listener(self, place: str) -> Listener:
        """Loaded once, whoever asks for it."""
        with self._loading:
            if place not in self._loaded:
                self._loaded[place] = Listener.load(place, self.device)
            return self._loaded[place]

    def _opened(self, one: ResponderSettings) -> Voice:
        if one.llm is not None:
            from empatheia.listener.language_models import LanguageListener

            listener: Listener = LanguageListener.of_endpoint(
                one.llm, one.endpoint, key_variable=one.key_env, timeout=one.timeout, retries=one.retries
            )
        elif one.folder is not None:
            listener = LISTENERS.get("language_model").of_model(one.folder, device=self.device)
        elif (own := voice_called(one.model)) is not None:
            return own
        else:
            listener = self._listener(str(one.model))
        if isinstance(listener, FocusedListener):
            raise ConfigError("express.responders: a listener of five steps cannot be a responder of another one.")
        voice = listener.as_voice(one.shown)
        voice.place = one.llm or one.folder or str(one.model)
        return voice


def _changed(decoding: Decoding | None) -> dict[str, Any]:
    """Settings of a way of writing that are not as where nothing is said."""
    return {} if decoding is None else {n: v for n, v in asdict(decoding).items() if v != getattr(Decoding(), n)}


def _steered(steering: Steering | None, decoding: Decoding | None, decided: dict[str, Any]) -> Steering:
    """What the caller decides; the label of ``decoding`` is the intent where no other is named."""
    label = None if decoding is None else decoding.label
    if label is not None and (steering is None or steering.intent is None):
        decided = {"intent": label, **decided}
    steering = steering or Steering()
    return steering.but(**decided) if decided else steering


def _with_missing(analysis: Analysis, missing: Mapping[str, str]) -> Analysis:
    """What the writing could not do, too; a responder without an answer, or an intent without effect, is a doubt."""
    failed = [f"{what} are missing: {why}" for what, why in missing.items() if what.startswith(REPLIES_OF)]
    failed += [f"the wanted intent {why}" for what, why in missing.items() if what == "intent"]
    return replace(analysis, missing=missing, unsure=(*analysis.unsure, *failed))


def _windows(inputs: Sequence[ReadyInput]) -> Iterator[Sequence[ReadyInput]]:
    for start in range(0, len(inputs), AT_ONCE):
        yield inputs[start : start + AT_ONCE]


def _placed(settings: ListenerSettings, folder: Path) -> ListenerSettings:
    """Relative places (``./`` or ``../``) begin in a folder."""

    def placed(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: placed(own, name) for name, own in value.items()}
        if isinstance(value, list):
            return [placed(own) for own in value]
        is_relative = isinstance(value, str) and (value in (".", "..") or value.startswith(("./", "../")))
        return str(folder / value) if is_relative and key in _PLACES else value

    return ListenerSettings.model_validate(placed(settings.model_dump(mode="json")))
