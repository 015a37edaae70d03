"""What a prompt shows of our analysis: emotion and cause words by a listener, the reply's intent by its predictor.

Everything is read from the context alone, as it is when somebody talks to the model: no label of the corpus enters.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from empatheia.analysis.component import COMPONENTS
from empatheia.analysis.perceptions import open_perception
from empatheia.errors import CheckpointError, ConfigError, MissingResourceError
from empatheia.records.dialogue import Dialogue, Example
from empatheia.resources import installed_model
from empatheia.resources.catalogue import LISTENER, SMALL, find_model
from empatheia.resources.manifest import read_manifest
from empatheia.text.inputs import ReadyInput
from empatheia.text.prompts import Hints, cause_texts
from empatheia_research.checkpoints.open import open_model


class Conditioner:
    """Finds the hints of conversations.

    Args:
        shown: Of ``emotion``, ``side``, ``causes``, ``intent``; the models of the others are not loaded.
        analyst: Folder or name of a perception, or of a listener with an emotion head, which knows no ``side``; None =
            what perceives by default.
        reaction: Folder or name of the model of part ``reaction``.
        labeller: Folder or name of the model of part ``intent`` that it reads.

    Raises:
        MissingResourceError: A model is not on this machine; says which command makes it.
        CheckpointError: The analyst has no emotion head.
    """

    def __init__(
        self,
        shown: Sequence[str],
        analyst: str | Path | None = None,
        reaction: str | Path = "reaction",
        labeller: str | Path = "intent",
    ) -> None:
        self.shown = tuple(shown)
        self._reads = _analyst(analyst or LISTENER) if {"emotion", "side", "causes"} & set(shown) else None
        self._reaction: Any = load_reaction(reaction, labeller) if "intent" in shown else None

    @property
    def names(self) -> dict[str, str]:
        """What is shown to the name of the model that finds it."""
        by = {**dict.fromkeys(("emotion", "side", "causes"), self._reads), "intent": self._reaction}
        return {part: by[part].name for part in self.shown}

    def hints(self, examples: Sequence[Example]) -> list[Hints]:
        """What is found in each context, in order; replies and labels are not read."""
        found = [Hints()] * len(examples) if self._reads is None else self._reads.read(examples)
        intents = [""] * len(examples)
        if self._reaction is not None:
            records = self._reaction.annotate([Dialogue(str(i), e.context) for i, e in enumerate(examples)])
            intents = [rows[-1].label if rows else "" for rows in records]
        return [
            Hints(
                emotion=one.emotion if "emotion" in self.shown else "",
                causes=one.causes if "causes" in self.shown else (),
                intent=intent,
                side=one.side if "side" in self.shown else "",
            )
            for one, intent in zip(found, intents, strict=True)
        ]


def _analyst(place: str | Path) -> _Analyst | _Perception:
    """Who reads emotion and cause words: a perception, or a responder with an emotion head."""
    try:
        folder = find_model(place)
        is_perception = read_manifest(folder).system == "affect_reader"
    except (CheckpointError, ConfigError):
        return _Analyst(place)  # which says what is wrong
    return _Perception(folder) if is_perception else _Analyst(place)


class _Perception:
    """A perception, asked for emotion, side and cause words; alone, without the second look."""

    def __init__(self, folder: Path) -> None:
        self.affect, self.name = open_perception(folder), read_manifest(folder).name

    def read(self, examples: Sequence[Example]) -> list[Hints]:
        """What is found in each context."""
        return [
            Hints(one.emotion, cause_texts(one.causes, e.context), side=one.side)
            for e, one in zip(examples, self.affect.read([e.context for e in examples]), strict=True)
        ]


class _Analyst:
    """A responder with an emotion head, asked for emotion and cause words."""

    def __init__(self, place: str | Path) -> None:
        try:
            self.reader = open_model(place).reader
        except (CheckpointError, ConfigError) as problem:
            raise CheckpointError(
                f"{place} is not a listener ({' '.join(str(problem).split())[:120]}); give a model "
                f"folder of a responder with an emotion head, or {SMALL}."
            ) from None
        self.name = self.reader.manifest.name
        if not self.reader.analyzes:
            raise CheckpointError(f"{self.name} ({place}) has no emotion head; give another analyst, e.g. {SMALL}.")

    def read(self, examples: Sequence[Example]) -> list[Hints]:
        """The emotion and the cause words of each context."""
        inputs = self.reader.encode([ReadyInput(e.context, e, 0, 0, ()) for e in examples])
        return [
            Hints(max(one.emotions, key=one.emotions.__getitem__), cause_texts(one.causes, found.dialogue.turns))
            for found in self.reader.understand(inputs, max(1, len(inputs)))
            for one in [found.newest]
        ]


def load_reaction(place: str | Path = "reaction", labeller: str | Path = "intent") -> Any:
    """The component that says which emotion or intent the next reply should have.

    Raises:
        MissingResourceError: It is not on this machine; says which command makes it.
    """
    for name in (place, labeller):
        if not Path(name).is_dir() and installed_model(str(name)) is None:
            raise MissingResourceError(
                f"the intent of a reply needs the model {str(name)!r}, which is not installed. Make it with:"
                " empatheia models train intent,reaction; or show only emotion,causes."
            )
    return COMPONENTS.get("reaction").load(place, labeller=labeller)
