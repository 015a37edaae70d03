"""Labels of turns as files: which of the 41 emotions and intents each turn of a corpus expresses, and by which model.

MEED2 (Xie and Pu 2021) labels every utterance with a classifier and learns from these labels; so no file of
them is gold. Two forms are read: the labels released with EmpatheticIntents (Welivita and Pu 2020; a table ``conv_id,
utterance_idx, label``, index 0 = the situation), and this package's own JSON lines (``.jsonl`` or ``.jsonl.gz``), whose
first line names the model: ``{"model": "...", "labels": 41}``, then ``{"id": "hit:0_conv:1", "turns": ["sad",
"questioning", null]}``. Neither holds any text.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from empatheia.errors import DataError, MissingResourceError
from empatheia.reading import UnreadableError, numbered_lines, parse_json
from empatheia.records.dialogue import Dialogue
from empatheia.resources import find_corpus_file
from empatheia.taxonomy import LABELS_41, canonical_emotion
from empatheia_research.corpora.loading import is_sample

FOLDER = "empathetic_intents"
_INDEX = re.compile("[0-9]{1,3}")  # a row is made up to the largest index
FILE = "annotated_labels.tsv"
RELEASED = "empathetic_intents/released"
SAMPLE = "sample/hand"
GET = (
    "git clone https://github.com/anuradha1992/EmpatheticIntents and join datasets/empatheticdialogues_annotated/*.csv"
    " into a table conv_id, utterance_idx, label"
)


@dataclass(frozen=True, slots=True)
class LabelledTurns:
    """What one model said of a corpus.

    Attributes:
        model: Name of the model that labelled the turns.
        turns: Dialogue id to one label a turn; None where a turn has none.
        path: The file.
    """

    model: str
    turns: Mapping[str, tuple[str | None, ...]]
    path: Path

    def of(self, dialogue: Dialogue) -> tuple[str | None, ...] | None:
        """The labels of a dialogue, one a turn; None if the file does not have it.

        Raises:
            DataError: The file has another number of turns for it.
        """
        labels = self.turns.get(dialogue.id)
        if labels is not None and len(labels) != len(dialogue.turns):
            raise DataError(
                f"{self.path}: dialogue {dialogue.id!r} has {len(labels)} labels, but {len(dialogue.turns)} turns; the"
                " labels are of another version of the corpus."
            )
        return labels


def load_released(root: str | Path | None = None) -> LabelledTurns:
    """The labels released for EmpatheticDialogues, ``<root>/empathetic_intents/annotated_labels.tsv[.gz]``.

    Made by a RoBERTa classifier that is right on 65.9 % of its test texts. Labels of situations are left out.

    Raises:
        MissingResourceError: The file is not there.
        DataError: It is not such a table.
    """
    path = find_corpus_file(FOLDER, FILE, root, GET)
    known = {name: name for name in LABELS_41}
    found: dict[str, dict[int, str]] = {}
    for number, line in numbered_lines(path):
        fields = line.split("\t")
        if number == 1 and fields[:1] == ["conv_id"]:
            continue
        if len(fields) != 3 or not _INDEX.fullmatch(fields[1]):
            raise DataError(
                f"{path}:{number}: {line[:60]!r} is not conv_id, utterance_idx (0 to 999), label, tab-separated."
            )
        id, index, label = fields[0], int(fields[1]), fields[2].strip()
        name = known.get(label) or _canonical(label, path, number)
        if index and found.setdefault(id, {}).setdefault(index, name) != name:
            raise DataError(f"{path}:{number}: utterance {index} of {id!r} has two labels; keep one.")
    turns = {id: tuple(labels.get(i) for i in range(1, max(labels) + 1)) for id, labels in found.items()}
    return LabelledTurns(SAMPLE if is_sample(path) else RELEASED, turns, path)


def read_turn_labels(path: str | Path) -> LabelledTurns:
    """Reads what :func:`write_turn_labels` wrote.

    Raises:
        MissingResourceError: No such file.
        DataError: The first line names no model, or a line is not a record; names file and line.
    """
    path = Path(path)
    if not path.is_file():
        raise MissingResourceError(
            f"no turn labels at {str(path)!r}; make them with write_turn_labels and an intent classifier, or use"
            " data.labels=released."
        )
    model = ""
    turns: dict[str, tuple[str | None, ...]] = {}
    for number, line in numbered_lines(path):
        try:
            row = parse_json(line)
            if number == 1:
                model = str(row["model"]).strip()
                if not model:
                    raise ValueError("the model's name is empty")
                continue
            names = tuple(None if name is None else _canonical(name, path, number) for name in row["turns"])
            if row["id"] in turns:
                raise ValueError(f"dialogue {row['id']!r} again")
            turns[row["id"]] = names
        except (UnreadableError, KeyError, TypeError, ValueError, AttributeError) as problem:
            wanted = '{"model": ...}' if number == 1 else '{"id": ..., "turns": [label, ...]}'
            raise DataError(f"{path}:{number}: not of the form {wanted} ({problem}).") from None
    if not model:
        raise DataError(f"{path}: empty; the first line names the model that made the labels.")
    return LabelledTurns(model, turns, path)


def write_turn_labels(path: str | Path, model: str, rows: Iterable[tuple[str, Sequence[str | None]]]) -> int:
    """Writes labels, whole or not at all.

    Args:
        path: ``.jsonl`` or ``.jsonl.gz``.
        model: Name of what made the labels.
        rows: Dialogue id and one label (or None) a turn.

    Returns:
        How many dialogues.

    Raises:
        DataError: No model name, or a label is unknown.
    """
    path = Path(path)
    if not model.strip():
        raise DataError(f"{path}: turn labels need the name of the model that made them.")
    part = path.with_name(path.name + ".part")
    try:
        n = _write_rows(part, model, rows, compress=path.suffix == ".gz")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return n


def _write_rows(part: Path, model: str, rows: Iterable[tuple[str, Sequence[str | None]]], compress: bool) -> int:
    n = 0
    with part.open("wb") as raw:
        file = gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) if compress else raw
        file.write((json.dumps({"model": model, "labels": len(LABELS_41)}) + "\n").encode())
        for id, labels in rows:
            names = [None if label is None else canonical_emotion(label) for label in labels]
            file.write((json.dumps({"id": id, "turns": names}, separators=(",", ":")) + "\n").encode())
            n += 1
        if file is not raw:
            file.close()
    return n


def _canonical(label: str, path: Path, number: int) -> str:
    try:
        return canonical_emotion(label)
    except DataError as problem:
        raise DataError(f"{path}:{number}: {problem}") from None
