"""Cause annotations as files: JSON lines (``.jsonl`` or ``.jsonl.gz``), ids and offsets only, no corpus text.

``{"id": "hit:0_conv:1", "target": 2, "turns": [0, 2], "spans": [[2, 5, 31]], "p": [0.71, 0.02, 0.93],
"by": "cause_entailment/joint-..."}``; ``target`` and ``turns`` are 0-based turn indices, a span is
``[turn, start, end]`` in characters of that turn's text.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path

from empatheia.errors import DataError, MissingResourceError
from empatheia.reading import UnreadableError, lines_of, parse_json
from empatheia.records.dialogue import CauseAnnotation, Span
from empatheia_research.shipped import shipped_path


def write_annotations(path: str | Path, notes: Iterable[CauseAnnotation]) -> int:
    """Writes annotations, whole or not at all; returns how many."""
    path = Path(path)
    part = path.with_name(path.name + ".part")
    n = 0
    # a fixed time stamp keeps equal content equal to the byte
    with part.open("wb") as raw:
        file = gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) if path.suffix == ".gz" else raw
        for note in notes:
            row = {
                "id": note.dialogue_id,
                "target": note.target,
                "turns": list(note.turns),
                "spans": [[span.turn, span.start, span.end] for span in note.spans],
                "p": [round(p, 4) for p in note.probabilities],
                "by": note.annotator,
            }
            file.write((json.dumps(row, separators=(",", ":")) + "\n").encode())
            n += 1
        if file is not raw:
            file.close()
    part.replace(path)
    return n


def read_annotations(path: str | Path) -> list[CauseAnnotation]:
    """Reads what :func:`write_annotations` wrote.

    Raises:
        MissingResourceError: No such file.
        DataError: A line is not such a record; names file and line.
    """
    path = shipped_path(path)
    if not path.is_file():
        raise MissingResourceError(
            f"no cause annotations at {str(path)!r};"
            " make them with `empatheia annotate MODEL --out FILE` or give another path."
        )
    notes = []
    for number, line in lines_of(path):
        try:
            row = parse_json(line)
            notes.append(
                CauseAnnotation(
                    row["id"],
                    row["target"],
                    tuple(row["turns"]),
                    tuple(Span(*span) for span in row.get("spans", ())),
                    row.get("by", ""),
                    tuple(row.get("p", ())),
                )
            )
        except (UnreadableError, KeyError, TypeError, AttributeError) as problem:
            raise DataError(f"{path}:{number}: not a cause annotation ({problem}).") from None
    return notes
