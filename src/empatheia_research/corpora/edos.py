"""EDOS training labels (Welivita, Xie and Pu 2021): film dialogues whose last turn has one of 41 labels.

Four quoted CSV files in ``<root>/edos/``: crowd labels, dialogues similar to those, confident self-labels,
and dialogues similar to these. The text is tokenised (``You 're late .``) and kept so; a leading ``-`` on a
line, the subtitle sign of a new speaker, is dropped. Nobody knows who speaks: roles take turns. Licence: CC
BY 4.0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from empatheia.errors import DataError
from empatheia.reading import CsvRows, Problem, read_text, report
from empatheia.records.dialogue import ROLES, Dialogue, Turn
from empatheia.resources import find_corpus_file
from empatheia.taxonomy import canonical_emotion
from empatheia_research.corpora.facts import CorpusFacts, Licence
from empatheia_research.corpora.loading import LoadedCorpus

NAME = "edos"
FOLDER = "edos"
FACTS = CorpusFacts(
    splits=("all",),
    file="edos/1_mturk_groundtruth_labels_9K.csv",
    licence=Licence("CC BY 4.0", True, "Attribution only.", "github.com/anuradha1992/EDOS"),
)
GET = "git clone https://github.com/anuradha1992/EDOS and put its four training CSV files there"


@dataclass(frozen=True, slots=True)
class _Part:
    file: str
    id: str
    text: str
    label: str
    rows: int


PARTS = {
    "crowd": _Part("1_mturk_groundtruth_labels_9K.csv", "Index", "Dialog", "Agreed emotion (2/3 vote)", 10_245),
    "similar": _Part("2_similar_dialogs_3K.csv", "os_dialog_id", "os_dialog", "emotion", 3_196),
    "self_labeled": _Part("3_self_labeled_dialogs_4K.csv", "os_dialog_id", "os_dialog", "emotion", 4_100),
    "similar_self_labeled": _Part(
        "4_similar_self_labeled_dialogs_2K.csv", "os_dialog_id", "os_dialog", "emotion", 2_118
    ),
}
_DASH = re.compile(r"^(?:-\s*)+")


def load(split: str = "all", root: str | Path | None = None, strict: bool = False) -> LoadedCorpus:
    """The four parts, or one.

    Args:
        split: ``all`` or a name of ``PARTS``; EDOS has no train, valid and test here.
        root: Folder of corpora; None = EMPATHEIA_DATA, then the download cache.
        strict: Raise at the first row that cannot be used.

    Returns:
        Dialogues with the last turn's label as ``emotion`` (one of 41); None where the crowd did not agree.

    Raises:
        MissingResourceError: A file is not there.
        DataError: No such part, or ``strict`` and a row is bad.
    """
    if split != "all" and split not in PARTS:
        raise DataError(f"EDOS has no part {split!r}; accepted: all, {', '.join(PARTS)}.")
    dialogues: list[Dialogue] = []
    problems: list[Problem] = []
    notes: list[str] = []
    paths = []
    for name in PARTS if split == "all" else (split,):
        path = find_corpus_file(FOLDER, PARTS[name].file, root, GET)
        paths.append(path)
        n_unsure = _read(path, name, dialogues, problems)
        if n_unsure:
            notes.append(f"{name}: {n_unsure:,} dialogues without an agreed label.")
    report(problems, strict)
    return LoadedCorpus(NAME, split, paths[0], tuple(dialogues), problems=tuple(problems), notes=tuple(notes))


def _read(path: Path, name: str, dialogues: list[Dialogue], problems: list[Problem]) -> int:
    """Adds a part's dialogues; returns how many have no agreed label."""
    part = PARTS[name]
    rows = CsvRows(read_text(path), path)
    missing = {part.id, part.text, part.label} - set(rows.fieldnames or ())
    if missing:
        raise DataError(f"{path}:1: no column {', '.join(sorted(missing))}; found {rows.fieldnames}. Get it: {GET}")
    n_unsure = 0
    seen: set[str] = set()
    for row in rows:
        lines = [_DASH.sub("", line.strip()).strip() for line in (row[part.text] or "").splitlines()]
        turns = tuple(Turn(ROLES[i % 2], line) for i, line in enumerate(filter(None, lines)))
        id = f"{name}/{row[part.id]}"
        if not turns or id in seen:
            reason = f"id {id!r} was used before" if turns else f"{id}: no text"
            problems.append(Problem(str(path), rows.line_num, f"{reason}; left out"))
            continue
        seen.add(id)
        try:
            emotion = canonical_emotion(row[part.label] or "")
        except DataError:  # "-" for no majority, and one free-text answer
            emotion = None
            n_unsure += 1
        dialogues.append(Dialogue(id, turns, emotion, source=f"{NAME}/{name}"))
    return n_unsure
