"""The :class:`Listener`: what every listener is, and how one is loaded; :func:`analyze` and :func:`respond`.

>>> listener = Listener.load()  # doctest: +SKIP
>>> listener.analyze("I lost my grandmother last week.").newest.emotion.label  # doctest: +SKIP
'sad'
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar, Unpack, overload

from empatheia.care.checking import Care
from empatheia.errors import ConfigError
from empatheia.listener.frames import ANSWERED, Frame
from empatheia.listener.given import given
from empatheia.listener.progress import Told, told
from empatheia.listener.protocol import AnyListener, Input
from empatheia.listener.steps.steering import NAMES, SteeredFields, Steering
from empatheia.records.analysis import Analysis
from empatheia.records.reply import Reply
from empatheia.registry import Registry
from empatheia.resources.catalogue import DEFAULT, LISTENER, find_model
from empatheia.resources.manifest import read_manifest
from empatheia.text.inputs import as_dialogue, up_to
from empatheia.text.words import tokenize_words
from empatheia.voices.decoding import Decoding
from empatheia.voices.voice import VOICES, Voice

RESPONDER = "responder"
LISTENERS = Registry(
    "listeners",
    {
        "five_steps": "empatheia.listener.steps.focused:FocusedListener",
        "affect_reader": "empatheia.listener.perceiving:PerceivingListener",
    },
)
"""System of a folder to who answers with it; all that are not named: ``responder``."""
PLACES = Registry("places", {})
"""What else can be loaded than a model's name or folder: kind to what finds the folder."""


class Listener(AnyListener):
    """Understands what is felt and why, and answers.

    Attributes:
        kind: Of the voice it is for a listener of five steps, a name in :data:`~empatheia.voices.voice.VOICES`.
        reasons: Whether it can perceive for the listener of five steps whose voice it is.
    """

    kind: ClassVar[str] = "listener"

    @classmethod
    def load(cls, name_or_path: str | Path = DEFAULT, device: str = "cpu", **options: Any) -> Listener:
        """Loads a model.

        Args:
            name_or_path: A folder, a name from ``empatheia models list``, or the YAML file of a listener of five steps.
                Without it: the default listener, which :func:`respond` asks, too.
            device: A torch device, e.g. ``cpu`` or ``cuda``, for models that torch computes.
            **options: Of the listener that its kind in :data:`LISTENERS` names.

        Raises:
            ConfigError: The YAML file has an unknown key or a bad value.
            MissingResourceError: No such model on this machine.
            CheckpointError: The folder is incomplete, truncated, foreign, or its parts do not fit.
        """
        if name_or_path == DEFAULT:
            return LISTENERS.get("five_steps")(device=device, **options)
        if Path(name_or_path).suffix in (".yaml", ".yml"):
            return LISTENERS.get("five_steps").load(name_or_path, device, **options)
        folder = find_model(name_or_path)
        system = read_manifest(folder).system
        return LISTENERS.get(system if system in LISTENERS else RESPONDER).load(folder, device, **options)

    @property
    def reasons(self) -> bool:
        """See the class."""
        return False

    def count(self, text: str) -> int:
        """Tokens of a text: pieces where the model has a tokeniser of ours, else words."""
        return len(tokenize_words(text))

    def as_voice(self, shown: Sequence[str] | None = None) -> Voice:
        """The listener as a writer of candidates.

        Args:
            shown: What of the steps before a language model is shown; None = what it was tuned with, else everything
                but the side.
        """
        return VOICES.get(self.kind)(self, shown)


@overload
def analyze(
    item: Input,
    model: str | Path | None = ...,
    *,
    target: int | None = ...,
    batch_size: int = ...,
    progress: Told | bool = ...,
) -> Analysis: ...


@overload
def analyze(
    item: Sequence[Input],
    model: str | Path | None = ...,
    *,
    target: int | None = ...,
    batch_size: int = ...,
    progress: Told | bool = ...,
) -> list[Analysis]: ...


@overload
def analyze(
    item: object,
    model: str | Path | None = ...,
    *,
    column: str | None = ...,
    target: int | None = ...,
    batch_size: int = ...,
    progress: Told | bool = ...,
) -> Any: ...


def analyze(
    item: object,
    model: str | Path | None = None,
    *,
    column: str | None = None,
    target: int | None = None,
    batch_size: int = 1,
    progress: Told | bool = None,
) -> Any:
    """What :meth:`Listener.analyze` gives; the model is loaded once and kept.

    Args:
        item: A text, a conversation, chat messages, a list of these, a Series of texts, or a frame with ``column``.
        model: Name or folder; None = what the default listener perceives with.
        column: Of a frame: where the texts are.
        target: Index (from 0) of the speaker turn to understand, in place of the last; later turns are not read.
        batch_size: As for :meth:`Listener.analyze`.
        progress: True = a bar on stderr; or what is called with the number of inputs just finished.

    Returns:
        One analysis; a list of them; or the same frame, its index kept, with the columns ``emotion``,
        ``probability``, ``side``, ``causes``, ``uncertain`` and ``error``: see :meth:`Frame.answered
        <empatheia.listener.frames.Frame.answered>`.

    Raises:
        InputTypeError: ``item`` is something else; a ``TypeError``, too.
        DataError: An input is empty or ends with a listener turn, ``target`` is no speaker turn, the frame has no such
            column, or no text in it.
    """
    read = given(item, column)
    listener = _shared(str(model or LISTENER))
    if isinstance(read, Frame):
        return read.answered(
            as_dialogue if target is None else lambda text: up_to(text, target),
            lambda asked: _all_analyzed(listener, asked, batch_size, progress),
        )
    if target is not None:
        read = [up_to(one, target) for one in read] if isinstance(read, list) else up_to(read, target)
    if isinstance(read, list):
        return _all_analyzed(listener, read, batch_size, progress)
    return listener.analyze(read)


def _all_analyzed(listener: Listener, items: Sequence[Input], batch_size: int, progress: Told | bool) -> list[Analysis]:
    with told(progress, len(items)) as advance:
        return listener.analyze(items, batch_size=batch_size, progress=advance)


@overload
def respond(
    item: Input,
    model: str | Path | None = ...,
    *,
    system: str | None = ...,
    care: Care | bool = ...,
    decoding: Decoding | None = ...,
    steering: Steering | None = ...,
    explain: bool = ...,
    **settings: Unpack[SteeredFields],
) -> Reply: ...


@overload
def respond(
    item: Sequence[Input],
    model: str | Path | None = ...,
    *,
    system: str | None = ...,
    care: Care | bool = ...,
    decoding: Decoding | None = ...,
    steering: Steering | None = ...,
    explain: bool = ...,
    **settings: Unpack[SteeredFields],
) -> list[Reply]: ...


@overload
def respond(
    item: object,
    model: str | Path | None = ...,
    *,
    system: str | None = ...,
    column: str | None = ...,
    care: Care | bool = ...,
    decoding: Decoding | None = ...,
    steering: Steering | None = ...,
    explain: bool = ...,
    **settings: Unpack[SteeredFields],
) -> Any: ...


def respond(
    item: object,
    model: str | Path | None = None,
    *,
    system: str | None = None,
    column: str | None = None,
    care: Care | bool = True,
    decoding: Decoding | None = None,
    steering: Steering | None = None,
    explain: bool = False,
    **settings: Unpack[SteeredFields],
) -> Any:
    """What :meth:`Listener.respond` gives; the model is loaded once and kept.

    Args:
        item: As for :func:`analyze`.
        model: Name or folder, e.g. ``gao2021-small`` for the small bundled responder alone; None = :func:`five_steps`.
        system: Answer by the best checkpoint of this system in ``runs``, e.g. ``moel``, in place of a model.
        column: Of a frame: where the texts are.
        care: The check in front of the answer: True = as shipped, a :class:`~empatheia.care.Care` of your own, or
            False = none, which the reply's ``care`` says.
        decoding: How the reply is chosen.
        steering: What the caller decides; a model is then the voice of a listener of five steps, as in ``--focus``.
        explain: Give every reply its candidates; likewise.
        **settings: Fields of ``decoding`` and ``steering`` in their place.

    Returns:
        One reply; a list of them; or the same frame, its index kept, with the column ``reply`` and those of
        :func:`analyze`.

    Raises:
        InputTypeError: ``item`` is something else; a ``TypeError``, too.
        ConfigError: Both ``model`` and ``system`` are given, or there is no such system.
        DecodingError: A setting is unknown, out of range, or not for this model.
        MissingResourceError: The system has no checkpoint here; says which command makes one.
    """
    read = given(item, column)
    if system is not None:
        if model is not None:
            raise ConfigError(f"model={model!r} and system={system!r} are both given; give one of them.")
        model = PLACES.get("system")(system, Path("runs"))
    is_steered = bool(steering or explain or set(settings) & set(NAMES))
    listener: Any = five_steps() if model is None else _in_steps(str(model)) if is_steered else _shared(str(model))
    steered = {name: value for name, value in (("steering", steering), ("explain", explain)) if value}
    ask = partial(listener.respond, care=care, decoding=decoding, **steered, **settings)
    return read.answered(as_dialogue, ask, ANSWERED) if isinstance(read, Frame) else ask(read)


@lru_cache(maxsize=1)
def five_steps() -> Listener:
    """The default listener: five steps, the reply a reflection of what was perceived.

    Steps for which a model is installed are answered by it; see :mod:`empatheia.listener.steps.focused`.
    """
    return LISTENERS.get("five_steps")()


@lru_cache(maxsize=2)
def _shared(model: str) -> Listener:
    return five_steps() if model == DEFAULT else Listener.load(model)


@lru_cache(maxsize=2)
def _in_steps(model: str) -> Listener:
    """A model as the voice of a listener of five steps; one of those as itself."""
    listener, five_steps_of = _shared(model), LISTENERS.get("five_steps")
    own = getattr(listener, "in_steps", listener)
    return own if isinstance(own, five_steps_of) else in_steps(listener)


def in_steps(listener: Listener) -> Listener:
    """A listener as the voice of a listener of five steps, for which it perceives, too, where it can."""
    reasoner = listener if listener.reasons else None
    return LISTENERS.get("five_steps")({"name": listener.name}, voices=[listener], reasoner=reasoner)
