"""What every corpus loader returns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from empatheia.errors import DataError
from empatheia.reading import Problem
from empatheia.records.dialogue import CauseAnnotation, Dialogue

SPLITS = ("train", "valid", "test")
_SPLIT_NAMES = {
    "train": "train",
    "valid": "valid",
    "validation": "valid",
    "dev": "valid",
    "val": "valid",
    "test": "test",
}


@dataclass(frozen=True, slots=True)
class LoadedCorpus(Sequence[Dialogue]):
    """One split of a corpus; as a sequence, its dialogues.

    Attributes:
        name: Corpus name, e.g. ``empathetic_dialogues``.
        split: ``train``, ``valid``, ``test`` or ``all``.
        path: The file it was read from.
        dialogues: In file order.
        annotations: Causes by the source, in file order (empty where the source has none).
        problems: Every row that was left out, with file, line and reason.
        notes: What a reader should know: known gaps, repaired spellings, differences from published counts.
        candidates: (dialogue id, turn index) to the reply candidates listed for that turn.
        turn_labels: Dialogue id to one label a turn (emotion, strategy or act), "" where a turn has none.
        latent: (dialogue id, target index) of targets with a cause outside the conversation (RECCON's ``b``).
    """

    name: str
    split: str
    path: Path
    dialogues: tuple[Dialogue, ...]
    annotations: tuple[CauseAnnotation, ...] = ()
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    candidates: Mapping[tuple[str, int], tuple[str, ...]] = field(default_factory=dict)
    turn_labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    latent: frozenset[tuple[str, int]] = frozenset()

    def __len__(self) -> int:
        return len(self.dialogues)

    def __getitem__(self, index: int) -> Dialogue:
        return self.dialogues[index]

    def __iter__(self) -> Iterator[Dialogue]:
        return iter(self.dialogues)

    def by_id(self) -> dict[str, Dialogue]:
        """Dialogues by their ids."""
        return {dialogue.id: dialogue for dialogue in self.dialogues}

    def annotations_of(self) -> dict[str, tuple[CauseAnnotation, ...]]:
        """Annotations by dialogue id."""
        grouped: dict[str, list[CauseAnnotation]] = {}
        for note in self.annotations:
            grouped.setdefault(note.dialogue_id, []).append(note)
        return {key: tuple(values) for key, values in grouped.items()}


def sample_root() -> Path:
    """The bundled self-written samples, laid out like a data folder; give it as ``root`` to a loader."""
    return Path(__file__).parent / "samples"


def is_sample(path: Path) -> bool:
    """Whether a file is one of the bundled samples, whose counts are not the published ones."""
    return path.resolve().is_relative_to(sample_root().resolve())


def canonical_split(split: str, accepted: Sequence[str] = SPLITS) -> str:
    """``train``, ``valid`` or ``test`` for any usual name of a split.

    Raises:
        DataError: The corpus has no such split.
    """
    name = _SPLIT_NAMES.get(split.strip().lower(), split)
    if name not in accepted:
        raise DataError(f"unknown split {split!r}; accepted: {', '.join(accepted)}.")
    return name
