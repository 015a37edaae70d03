"""Affect lexicons by path: Warriner, VADER, NRC-VAD and EmpDG's NRCDict.

Warriner et al. (2013), Hutto and Gilbert (2014), Mohammad (2018), Li et al. (2020).

The kind of a file is told from its content. The NRC lexicons may not be passed on: get them from their
publisher and give their path.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from empatheia.errors import DataError
from empatheia.reading import CsvRows, UnreadableError, parse_json, read_text
from empatheia.resources import find_corpus_file
from empatheia_research.shipped import shipped_path

FOLDER = "lexicons"
KNOWN = {"warriner": "Ratings_Warriner_et_al.csv", "vader": "vader_lexicon.txt"}
GET = {
    "warriner": "the supplement of Warriner et al. (2013), then put Ratings_Warriner_et_al.csv there",
    "vader": "github.com/cjhutto/vaderSentiment, then put vader_lexicon.txt there",
}
_WARRINER = ("Word", "V.Mean.Sum", "A.Mean.Sum", "D.Mean.Sum")
_ACCEPTED = (
    "accepted: Warriner's CSV (columns Word, V.Mean.Sum, A.Mean.Sum, D.Mean.Sum), VADER's tab-separated"
    " token, mean, deviation, ratings, NRC-VAD's word<TAB>V<TAB>A<TAB>D, EmpDG's NRCDict.json"
)


@dataclass(frozen=True, slots=True)
class Affect:
    """Valence, arousal and dominance, each in [0, 1]; None where the lexicon lacks the dimension."""

    valence: float
    arousal: float | None = None
    dominance: float | None = None


@dataclass(frozen=True, slots=True)
class Lexicon:
    """A lexicon.

    Attributes:
        kind: ``warriner``, ``vader``, ``nrc_vad`` or ``nrc_dict``.
        words: All words, lower-cased.
        affect: Word to affect, empty for ``nrc_dict``. Warriner's 1-9 and VADER's -4..4 are mapped onto [0,
            1].
    """

    kind: str
    words: frozenset[str]
    affect: dict[str, Affect]


def load_words(path: str | Path | None) -> set[str]:
    """The words of a lexicon: a path, or ``warriner`` / ``vader`` from the data folder.

    Raises:
        MissingResourceError: The file is not there.
        DataError: It is none of the known formats.
    """
    return set(load(path).words)


def load(path: str | Path | None) -> Lexicon:
    """Reads a lexicon of any known kind (see :func:`load_words` for what ``path`` may be).

    Raises:
        MissingResourceError: The file is not there.
        DataError: It is none of the known formats, or a row is damaged.
    """
    if path is None:
        raise DataError("no lexicon given; name a file, or one of: " + ", ".join(KNOWN))
    given = shipped_path(Path(path).expanduser())
    if str(path) in KNOWN:
        given = find_corpus_file(FOLDER, KNOWN[str(path)], get=GET[str(path)])
    elif not given.is_file():
        given = find_corpus_file(str(given.parent), given.name, root=".", get="its publisher")
    text = read_text(given)
    return _reader(given, text)(given, text)


def _reader(path: Path, text: str) -> Callable[[Path, str], Lexicon]:
    """The reader for a file, told from its first line.

    Raises:
        DataError: It is none of the known formats.
    """
    first = text.lstrip()[:4000].split("\n", 1)[0].rstrip("\r")
    if first.startswith("["):
        return _nrc_dict
    if all(name in first.replace('"', "").split(",") for name in _WARRINER):
        return _warriner
    fields = first.split("\t")
    if len(fields) == 4 and fields[3].startswith("["):
        return _vader
    if len(fields) == 4:
        return _nrc_vad
    raise DataError(f"{path}:1: not a known lexicon: {first[:80]!r}; {_ACCEPTED}.")


def _number(path: Path, line: int, field: str, low: float, high: float) -> float:
    try:
        value = float(field)
    except ValueError as error:
        raise DataError(f"{path}:{line}: {field!r} is not a number.") from error
    if not low <= value <= high or math.isnan(value):
        raise DataError(f"{path}:{line}: {value} lies outside {low:g} to {high:g}.")
    return (value - low) / (high - low)


def _finish(path: Path, kind: str, affect: dict[str, Affect]) -> Lexicon:
    if not affect:
        raise DataError(f"{path}: no words in this {kind} lexicon. Fetch it again, or name another file.")
    return Lexicon(kind, frozenset(affect), affect)


def _warriner(path: Path, text: str) -> Lexicon:
    affect: dict[str, Affect] = {}
    for number, row in enumerate(CsvRows(text, path), start=2):
        if any(row.get(name) in (None, "") for name in _WARRINER):
            raise DataError(f"{path}:{number}: a field of {', '.join(_WARRINER)} is empty.")
        values = [_number(path, number, row[name], 1, 9) for name in _WARRINER[1:]]
        affect.setdefault(row["Word"].lower(), Affect(*values))
    return _finish(path, "warriner", affect)


def _rows(path: Path, text: str) -> list[tuple[int, list[str]]]:
    rows = [(n, line.split("\t")) for n, line in enumerate(text.splitlines(), start=1) if line.strip()]
    for number, fields in rows:
        if len(fields) != 4:
            raise DataError(f"{path}:{number}: {len(fields)} tab-separated fields, expected 4.")
    return rows


def _vader(path: Path, text: str) -> Lexicon:
    affect: dict[str, Affect] = {}
    for number, fields in _rows(path, text):
        affect.setdefault(fields[0].strip().lower(), Affect(_number(path, number, fields[1], -4, 4)))
    return _finish(path, "vader", affect)


def _nrc_vad(path: Path, text: str) -> Lexicon:
    rows = _rows(path, text)
    if rows and rows[0][1][1].strip().lower() in ("valence", "v"):
        rows = rows[1:]
    affect: dict[str, Affect] = {}
    for number, fields in rows:
        values = [_number(path, number, field, 0, 1) for field in fields[1:]]
        affect.setdefault(fields[0].strip().lower(), Affect(*values))
    return _finish(path, "nrc_vad", affect)


def _nrc_dict(path: Path, text: str) -> Lexicon:
    """EmpDG's file: a two-element list, the words and a map from word to a small integer."""
    try:
        content = parse_json(text)
    except UnreadableError as error:
        raise DataError(f"{path}:{error.lineno}: not JSON ({error.msg}).") from error
    words = content[0] if len(content) == 2 else None
    if not isinstance(words, list) or not isinstance(content[1], dict) or not all(isinstance(w, str) for w in words):
        raise DataError(f"{path}: NRCDict.json is a list of two: [words], {{word: number}}; {_ACCEPTED}.")
    known = frozenset(word.lower() for word in (*words, *content[1]))
    if not known:
        raise DataError(f"{path}: no words in this nrc_dict lexicon.")
    return Lexicon("nrc_dict", known, {})
