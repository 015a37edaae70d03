"""ConceptNet 5 assertions in their official form (Speer et al. 2017): tab-separated, optionally gzipped.

A line is ``/a/[...]``, ``/r/Relation``, ``/c/en/start``, ``/c/en/end`` and a JSON object with ``weight``. Get the file
(conceptnet-assertions-5.7.0.csv.gz, 475 MB, CC BY-SA 4.0) from the download page of conceptnet.io.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from empatheia.errors import DataError, MissingResourceError
from empatheia.reading import UnreadableError, lines_of, parse_json

GET = "the download page of conceptnet.io (conceptnet-assertions-5.7.0.csv.gz)"


class Assertion(NamedTuple):
    """``head relation tail``; words as ConceptNet writes them, ``_`` for blanks."""

    relation: str
    head: str
    tail: str
    weight: float


def read_assertions(path: str | Path, *, checks_tail: bool = True) -> Iterator[Assertion]:
    """English assertions in file order.

    Args:
        path: ``.csv`` or ``.csv.gz``.
        checks_tail: The tail must be English, too (KEMP's code tests the head twice).

    Raises:
        MissingResourceError: The file is not there.
        DataError: A line is not an assertion; named with its number.
    """
    path = Path(path).expanduser()
    if not path.is_file():
        raise MissingResourceError(f"no ConceptNet assertions at {str(path)!r}; get them from {GET}.")
    try:
        for number, line in lines_of(path):
            if "\t/c/en/" not in line:  # most lines are of other languages
                continue
            found = _parse(path, number, line, checks_tail)
            if found is not None:
                yield found
    except (OSError, UnreadableError) as problem:
        raise DataError(f"{path}: cannot be read ({problem}); get it again from {GET}.") from None


def _parse(path: Path, number: int, line: str, checks_tail: bool) -> Assertion | None:
    fields = line.rstrip("\n").split("\t")
    if len(fields) != 5 or not fields[1].startswith("/r/"):
        raise DataError(
            f"{path}:{number}: {len(fields)} tab-separated fields, relation {fields[1] if len(fields) > 1 else ''!r};"
            " accepted: ConceptNet 5's five fields /a/..., /r/..., /c/..., /c/..., {JSON}."
        )
    start, end = fields[2].split("/"), fields[3].split("/")
    if len(start) < 4 or len(end) < 4 or start[2] != "en" or (checks_tail and end[2] != "en"):
        return None
    try:
        weight = float(parse_json(fields[4])["weight"])
    except (ValueError, KeyError, TypeError):
        raise DataError(f"{path}:{number}: the fifth field has no weight: {fields[4][:60]!r}.") from None
    return Assertion(fields[1].split("/")[2], start[3], end[3], weight)  # "/r/dbpedia/genre" is "dbpedia"
