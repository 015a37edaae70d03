"""The responders' label sources: what stands beside contexts and replies, each named by a field of ``data``.

``causes`` (and ``spans``: RECCON's), ``mechanisms`` and ``emotion_teacher``; the speaker's next turn is in
:mod:`.feedback`. Labels are targets: nothing that answers reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import torch
from torch import Tensor

from empatheia.errors import ConfigError
from empatheia.reading import parse_json
from empatheia.records.dialogue import CauseAnnotation, Dialogue, Span
from empatheia.text.words import tokenize_words
from empatheia_research.corpora import lexicons, recec
from empatheia_research.corpora.annotations import read_annotations
from empatheia_research.corpora.mechanism_levels import read_levels
from empatheia_research.recipes.data import DataConfig
from empatheia_research.shipped import shipped_path
from empatheia_research.text.collation import EncodedExample
from empatheia_research.training.sources import folder_of

Causes = Mapping[str, CauseAnnotation] | Mapping[tuple[str, int], CauseAnnotation]
"""By dialogue, for the released ones, or by (dialogue, target turn)."""


def causes_of(data: DataConfig, split: str, dialogues: Sequence[Dialogue]) -> Causes | None:
    """Cause labels of a split's conversations; None where ``data.causes`` names none.

    Raises:
        ConfigError: They need a file that is not named, or there are none of that split.
    """
    if data.causes == "none":
        return None
    if data.causes == "lexicon":
        return LexiconCauses(lexicons.load_words(data.causes_path), dialogues)
    notes = _annotated(data) if data.causes == "annotator" else _recec(data, split)
    if data.causes_scope == "prefix":
        return {(note.dialogue_id, note.target): note for note in notes}
    latest_last = sorted(reversed([*notes]), key=lambda note: note.target)
    return {note.dialogue_id: note for note in latest_last}


def _annotated(data: DataConfig) -> Iterable[CauseAnnotation]:
    if not data.causes_path:
        raise ConfigError("data.causes=annotator needs data.causes_path.")
    return read_annotations(data.causes_path)


def _recec(data: DataConfig, split: str) -> Iterable[CauseAnnotation]:
    root = folder_of(data.causes)
    if split == "train" and root is None:
        raise ConfigError("RecEC's train labels are not available; use data.causes=annotator.")
    return recec.load(split, root=root).annotations


class LexiconCauses(dict[tuple[str, int], CauseAnnotation]):
    """Cause spans = words of a lexicon (Gao's ablation vs eLex), for every prefix of every dialogue."""

    def __init__(self, words: set[str], dialogues: Iterable[Dialogue]) -> None:
        super().__init__()
        for dialogue in dialogues:
            spans: list[Span] = []
            for i, turn in enumerate(dialogue.turns):
                spans += [Span(i, w.start, w.end) for w in tokenize_words(turn.text) if w.text in words]
                covered = tuple(sorted({span.turn for span in spans}))
                self[dialogue.id, i] = CauseAnnotation(dialogue.id, i, covered, tuple(spans), "lexicon")


def add_levels(items: Iterable[EncodedExample], path: str) -> None:
    """Labels of the mechanisms of each reply, where the file at ``path`` has them."""
    levels = read_levels(path)
    for item in items:
        shown = levels.shown(item.dialogue_id, item.turn_index)
        item.extra |= {} if shown is None else {"mechanism_labels": shown}


class TeacherCollator:
    """Adds a teacher's emotion distribution to each item of a batch; zeros where there is none.

    The file (safetensors) holds ``probabilities`` (n, 32) and its metadata the keys ``dialogue_id#turn_index``.
    """

    def __init__(self, inner: Callable[[list[EncodedExample]], dict[str, Tensor]], path: str) -> None:
        from safetensors import safe_open

        self.inner = inner
        with safe_open(shipped_path(path), "pt") as file:
            self.table = file.get_tensor("probabilities").float()
            keys = parse_json(file.metadata()["keys"])
        self.rows = {key: i for i, key in enumerate(keys)}

    def __call__(self, items: list[EncodedExample]) -> dict[str, Tensor]:
        """A batch; ``emotion_teacher`` ``(batch, 32)``, rows that sum to 1 or are 0."""
        batch = self.inner(items)
        teacher = torch.zeros(len(items), self.table.shape[1])
        for i, item in enumerate(items):
            row = self.rows.get(f"{item.dialogue_id}#{item.turn_index}")
            if row is not None:
                teacher[i] = self.table[row]
        batch["emotion_teacher"] = teacher
        return batch
