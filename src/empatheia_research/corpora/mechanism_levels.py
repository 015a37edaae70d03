"""Levels of the communication mechanisms in the replies of a corpus as files: ids and numbers only, no text.

EmpatheticDialogues has no such labels; IMAGINE (Chen et al. 2022) learns from those of a classifier trained on EPITOME
(Sharma et al. 2020). So no file of them is gold. JSON lines (``.jsonl`` or ``.jsonl.gz``): the first names the model,
``{"model": "epitome/shared cpu seed 12"}``; each other is one reply, ``{"id": "hit:0_conv:1", "turn": 1, "levels":
[2, 0, 1]}``, levels 0 none, 1 weak, 2 strong, in the order of :data:`empatheia.taxonomy.MECHANISMS`.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from empatheia.errors import DataError, MissingResourceError
from empatheia.reading import UnreadableError, numbered_lines, parse_json
from empatheia.taxonomy import MECHANISMS
from empatheia_research.corpora.loading import sample_root
from empatheia_research.shipped import shipped_path

FORM = '{"id": ..., "turn": ..., "levels": [..., ..., ...]}'
SAMPLE = "sample"
"""Stands for the self-written levels of the sample's replies."""


@dataclass(frozen=True, slots=True)
class MechanismLevels:
    """What one model said of a corpus's replies.

    Attributes:
        model: Its name.
        levels: (dialogue id, turn) to a level for each mechanism.
        path: The file.
    """

    model: str
    levels: Mapping[tuple[str, int], tuple[int, ...]]
    path: Path

    def shown(self, dialogue_id: str, turn: int) -> tuple[int, ...] | None:
        """1 where a mechanism is shown, weakly or strongly, else 0 (Chen et al. 2022, 3.2); None if not in the file."""
        levels = self.levels.get((dialogue_id, turn))
        return None if levels is None else tuple(int(level > 0) for level in levels)


def read_levels(path: str | Path) -> MechanismLevels:
    """Reads what :func:`write_levels` wrote; ``sample`` is the package's own file.

    Raises:
        MissingResourceError: No such file.
        DataError: The first line names no model, or a line is no record; names file and line.
    """
    path = sample_root() / "mechanisms" / "levels.jsonl" if str(path) == SAMPLE else shipped_path(path)
    if not path.is_file():
        raise MissingResourceError(
            f"no mechanism levels at {str(path)!r}; make them with"
            " `empatheia annotate MODEL --what mechanisms --out FILE`, MODEL from recipes/epitome/shared.yaml."
        )
    model = ""
    levels: dict[tuple[str, int], tuple[int, ...]] = {}
    for number, line in numbered_lines(path):
        try:
            row = parse_json(line)
            if number == 1:
                model = str(row["model"])
                continue
            found = tuple(row["levels"])
            if len(found) != len(MECHANISMS) or not set(found) <= {0, 1, 2}:
                raise ValueError(f"levels are {row['levels']!r}")
            levels[row["id"], row["turn"]] = found
        except (UnreadableError, KeyError, TypeError, ValueError) as problem:
            wanted = '{"model": ...}' if number == 1 else FORM
            raise DataError(f"{path}:{number}: not of the form {wanted} ({problem}).") from None
    return MechanismLevels(model, levels, path)


def write_levels(path: str | Path, model: str, rows: Iterable[tuple[str, int, Sequence[int]]]) -> int:
    """Writes levels, whole or not at all.

    Args:
        path: ``.jsonl`` or ``.jsonl.gz``.
        model: Name of what made them.
        rows: Dialogue id, turn of the reply, levels.

    Returns:
        How many replies.
    """
    path = Path(path)
    part = path.with_name(path.name + ".part")
    n = 0
    try:
        with part.open("wb") as raw:
            file = gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) if path.suffix == ".gz" else raw
            file.write((json.dumps({"model": model}) + "\n").encode())
            for id, turn, levels in rows:
                row = {"id": id, "turn": turn, "levels": list(levels)}
                file.write((json.dumps(row, separators=(",", ":")) + "\n").encode())
                n += 1
            if file is not raw:
                file.close()
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return n
