"""The parts of an analysis and the models behind them: which recipe makes each, where it is found, how it loads."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

from empatheia.analysis.component import COMPONENTS, Component, Kind, Record
from empatheia.errors import CheckpointError, ConfigError, MissingResourceError
from empatheia.reading import Json, read_record
from empatheia.records.analysis import PARTS
from empatheia.records.dialogue import Dialogue, Turn
from empatheia.registry import nearest
from empatheia.resources import installed_model
from empatheia.resources.quiet import quiet_loading


@dataclass(frozen=True, kw_only=True)
class PartModel:
    """A model that answers a part, or helps to.

    Attributes:
        name: Of its folder where models are installed; also what ``empatheia models train`` takes.
        part: One of :data:`empatheia.records.analysis.PARTS`.
        recipe: That makes it, below ``recipes``; empty for an index of inferences, which is built from ATOMIC.
        option: The option of the part's ``load`` that takes the folder; empty for the part's own model.
        corpus: Folders that making it needs in EMPATHEIA_DATA.
    """

    name: str
    part: str
    recipe: str = ""
    option: str = ""
    corpus: str = ""

    @property
    def remedy(self) -> str:
        """The command that makes it."""
        return f"empatheia models train {self.name}"


PART_MODELS: tuple[PartModel, ...] = (
    PartModel(name="emotion", part="emotion", recipe="rashkin2018/emotion_context", corpus="empatheticdialogues"),
    PartModel(name="intent", part="intent", recipe="meed2/emotion_intent", corpus="empathetic_intents"),
    PartModel(name="causes", part="causes", recipe="reccon/entailment", corpus="reccon"),
    PartModel(name="cause_spans", part="causes", recipe="reccon/span_from_annotator", option="spans", corpus="reccon"),
    PartModel(name="words", part="words", recipe="kim2021/estimator", corpus="empatheticdialogues"),
    PartModel(name="mechanisms", part="mechanisms", recipe="epitome/shared_from_intents", corpus="epitome"),
    PartModel(name="inferences", part="inferences", corpus="atomic"),
    PartModel(
        name="reaction",
        part="reaction",
        recipe="meed2/response_labels",
        corpus="empatheticdialogues and empathetic_intents",
    ),
)
"""In the order of the parts; the first model of a part is its own, the others are handed to it if they are here."""

BY_LISTENER = ("emotion", "causes", "words")
"""Parts the default listener answers where no model of their own is here."""

HELP_FROM: Mapping[str, Mapping[str, str]] = {
    "causes": {"emotion": "emotion"},
    "words": {"emotion": "emotion"},
    "reaction": {"labeller": "intent"},
}
"""Part to the options of its ``load`` that take another part's component: RECCON's models and the word scores read
what a turn expresses, the reply's predictor reads the labels of the turns before."""


def models_of(part: str) -> list[PartModel]:
    """The models of a part, its own first."""
    return [model for model in PART_MODELS if model.part == part]


def part_model(name: str) -> PartModel:
    """A model by its name.

    Raises:
        ConfigError: There is none of this name.
    """
    for model in PART_MODELS:
        if model.name == name:
            return model
    known = [model.name for model in PART_MODELS]
    raise ConfigError(f"no model {name!r} of an analysis.{nearest(name, known)} Known: {', '.join(known)}.")


def parse_parts(text: str | Sequence[str]) -> tuple[str, ...]:
    """Parts named in a text such as ``emotion,causes``, or in a list, in the order of the five steps; ``all`` = all.

    Raises:
        ConfigError: A name is no part, or there is none.

    >>> parse_parts("words, emotion")
    ('emotion', 'words')
    """
    names = [name.strip().lower() for name in (text.split(",") if isinstance(text, str) else text)]
    wanted = {name for name in names if name}
    if "all" in wanted:
        return PARTS
    for name in sorted(wanted - set(PARTS)):
        raise ConfigError(f"unknown part {name!r}.{nearest(name, list(PARTS))} Accepted: {', '.join(PARTS)}, all.")
    if not wanted:
        raise ConfigError(f"no part is named. Accepted: {', '.join(PARTS)}, all.")
    return tuple(part for part in PARTS if part in wanted)


def load_part(
    part: str,
    given: Mapping[str, str | Path],
    helpers: Callable[[str], Component[Record] | None],
    device: str = "cpu",
    stand_ins: bool = True,
) -> Component[Record]:
    """The component of a part: from a given folder, or from where models are installed.

    Args:
        part: Which.
        given: Model name to a folder or a name; see :data:`PART_MODELS`.
        helpers: Part to its component, or None if there is none; asked only for parts in :data:`HELP_FROM`.
        device: A torch device.
        stand_ins: Whether an installed stand-in may answer.

    Raises:
        MissingResourceError: There is no model for the part on this machine; says how to get one.
        EmpatheiaError: The model is there and cannot be used.
    """
    own = models_of(part)[0]
    places = places_of(part, given, stand_ins)
    side: dict[str, str | Path] = {
        model.option: places[model.name] for model in models_of(part)[1:] if model.name in places
    }
    folder = places.get(own.name)
    if folder is None and side:  # a span model alone can answer
        folder = side.pop(next(iter(side)))
    if folder is None:
        raise MissingResourceError(how_to_get(own))
    reader = _record(folder).get("component") or part
    if reader not in COMPONENTS:
        raise MissingResourceError(
            f"nothing here reads {folder}, a model for {part!r}: no component is called {reader!r}."
            " Install the package that brings it, e.g. pip install 'empatheia[research]'."
        )
    load = COMPONENTS.get(str(reader)).load
    accepted = inspect.signature(load).parameters
    options: dict[str, Any] = {name: value for name, value in side.items() if name in accepted}
    for option, other in HELP_FROM.get(part, {}).items():
        if option in accepted and (helper := helpers(other)) is not None:
            options[option] = helper
    if "device" in accepted:
        options["device"] = device
    with quiet_loading():
        component = load(folder, **options)
    if getattr(component, "part", None) != part:
        raise CheckpointError(
            f"{folder} gives a component for {getattr(component, 'part', None)!r}, not for {part!r}."
            f" Get one with: {own.remedy}"
        )
    return component


def places_of(part: str, given: Mapping[str, str | Path], stand_ins: bool = True) -> dict[str, str | Path]:
    """The folders a part is loaded from: those given, else the installed ones; a given own model stands alone.

    Args:
        part: Which.
        given: Model name to a folder or a name.
        stand_ins: Whether installed stand-ins count; one that is given always does.

    Returns:
        Model name to its folder or name, of the models that are there.
    """
    own = models_of(part)[0].name
    found: dict[str, str | Path] = {}
    for model in models_of(part):
        is_alone = own in given and model.name != own
        installed = None if is_alone else installed_model(model.name)
        if installed is not None and not stand_ins and stand_in_reason(installed):
            installed = None
        if place := given.get(model.name) or installed:
            found[model.name] = place
    return found


def how_to_get(model: PartModel, other: str = "") -> str:
    """What is told where a model is not on this machine.

    Args:
        model: Which.
        other: What else helps; empty = the option of ``empatheia analyze``.
    """
    needs = f", which needs {model.corpus} in EMPATHEIA_DATA" if model.corpus else ""
    other = other or f"name a folder with --model-for {model.name}=FOLDER (in Python: models=)"
    return f"no model for {model.part!r} is installed or bundled. Get it with: {model.remedy}{needs}; or {other}."


def stand_in_reason(place: str | Path) -> str:
    """Why a model, by its folder or name, is a stand-in (``degraded`` in its ``empatheia.json``), or an empty text."""
    reason = _record(place).get("degraded", "")
    return reason if isinstance(reason, str) else ""


def _record(place: str | Path) -> Mapping[str, Json]:
    """A model's ``empatheia.json``, by its folder or name; empty where it has none that can be read."""
    folder = Path(place) if Path(place).is_dir() else installed_model(str(place))
    if folder is None:
        return {}
    try:
        record = read_record(folder / "empatheia.json")
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


class Remembered(Generic[Kind]):
    """A component that reads each conversation once, however many others ask it.

    Args:
        component: Who answers; of a part whose records do not name the conversation.
    """

    def __init__(self, component: Component[Kind]) -> None:
        self.component = component
        self.part = component.part
        self.name = component.name
        self._known: dict[tuple[Turn, ...], tuple[Kind, ...]] = {}

    def forget(self) -> None:
        """Drops what was remembered."""
        self._known = {}  # a new one: another thread may be reading the old one

    def annotate(
        self, dialogues: Sequence[Dialogue], *, batch_size: int = 32, progress: Callable[[int], None] | None = None
    ) -> list[tuple[Kind, ...]]:
        """As the component's own; conversations with the same turns are read once."""
        known = self._known
        new = {d.turns: d for d in dialogues if d.turns not in known}
        if progress is not None and len(dialogues) > len(new):
            progress(len(dialogues) - len(new))
        if new:
            found = self.component.annotate(list(new.values()), batch_size=batch_size, progress=progress)
            known.update(zip(new, found, strict=True))
        return [known[d.turns] for d in dialogues]
