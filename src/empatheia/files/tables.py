"""CSV as people have it: any usual delimiter, ``sep=``, no header, open quotation marks, cells too many, windows-1252.

Nothing is lost: a quotation mark that nobody closes stands for itself, and cells that no column is for belong to the
text. Both are counted.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from empatheia.errors import DataError
from empatheia.files.talks import Notes
from empatheia.reading import csv_reader
from empatheia.registry import nearest

TEXT_COLUMNS = (
    *("text", "utterance", "sentence", "message", "prompt", "content", "post", "comment", "body", "tweet"),
    *("review", "feedback", "comments", "response", "verbatim"),
)
DELIMITERS = ",;\t|"
MAX_COLUMNS = 5_000
_MAX_LINES_PER_ROW = 1_000  # beyond it a quotation mark was opened and never closed
_PROBE_BYTES = 1 << 16
_PROBE_LINES = 40
_HEADER_LINES = 10
_QUOTED = re.compile(r'"[^"]*(?:""[^"]*)*"')
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_NUMBER_OR_DATE = re.compile(r"[-+]?[\d.,:/\s-]*\d[\d.,:/\s-]*%?")
_ENDED = re.compile(r"[.!?\u2026\u3002][\"'\u2019\u201d)]*$")
_DATA_WORDS = 4
"""A cell of so many words is a text, not the name of a column."""
_SEVERAL = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
STRAY = "rows with stray quotation marks, read as they stand"
EXTRA = "rows with more cells than columns, the cells too many read as part of the text"
FOREIGN = "lines read as windows-1252"


def decoded(raw: bytes, notes: Notes) -> str:
    """A line in UTF-8, or in windows-1252 if nothing in it is UTF-8 beyond ASCII; that is counted.

    Raises:
        UnicodeDecodeError: It is neither.
    """
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        if _SEVERAL.search(raw):
            raise
        text = raw.decode("cp1252")
    notes.mended[FOREIGN] += 1
    return text


class Table:
    """The rows of a CSV file, one at a time.

    Args:
        stream: At its start.
        path: For messages; ``.tsv`` has tabs.
        column: Which column holds the text; None = it is guessed.
        notes: What was mended is counted here.

    Attributes:
        header: Names of the columns; those of a file without a header line are ``column 1``, ``column 2`` ...
        text: Place of the column with the text.
        delimiter: Between cells.

    Raises:
        DataError: The file is empty, has too many columns, or none that holds texts.
    """

    def __init__(self, stream: BinaryIO, path: Path, column: str | None, notes: Notes) -> None:
        self._notes, lines = notes, _lines(stream, notes)
        first = next(lines, "").removeprefix("\ufeff")
        said = re.fullmatch(r'"?sep=(.)"?', first.strip("\r\n"), re.IGNORECASE)
        first, lines = _whole_line(next(lines, "") if said else first, lines)
        if not first.strip():
            raise DataError(f"{path} is empty; its first line must name the columns.")
        own = "\t" if path.suffix.lower() == ".tsv" else DELIMITERS
        self.delimiter = said[1] if said else max(own, key=_QUOTED.sub("", first).count)
        self.header = self._named(first, path)
        self._probe, self._is_texts = _probed(lines), False
        self._lines = chain(self._probe, lines)
        below = [cells for cells, _ in self._records(iter(self._probe), Notes())]
        if _is_data(self.header, column, below):
            self._without_header(first, bool(said))
            self._is_texts = len(self.header) == 1
            column = self._wordiest(column)
        if len(self.header) == 1 and column is None and _guess(self.header) is None:
            notes.said.append(f"read as texts: the only column, {self.header[0]!r}")
            column = self.header[0]
        self.text = self.header.index(choose_column(self.header, column, where=f"{path} "))

    def __iter__(self) -> Iterator[tuple[list[str], str | None]]:
        """Cells of each row, or why there are none; a blank line between rows is not a row."""
        for cells, reason in self._records(self._lines, self._notes):
            if not cells and reason is None:
                continue
            n_extra = len(cells) - len(self.header)
            if n_extra > 0 and any(cell.strip() for cell in cells[len(self.header) :]):
                end = self.text + n_extra + 1
                cells[self.text : end] = [self.delimiter.join(cells[self.text : end])]
                self._notes.mended[EXTRA] += not self._is_texts
            yield cells[: len(self.header)], reason

    def _named(self, line: str, path: Path) -> list[str]:
        try:
            header = [name.strip() for name in next(csv_reader([line], delimiter=self.delimiter))]
        except csv.Error as error:
            raise DataError(
                f"{path}: its first line must name the columns, and is not readable as CSV: {error}."
            ) from None
        if len(header) > MAX_COLUMNS:
            raise DataError(
                f"{path}: its first line names {len(header):,} columns; at most {MAX_COLUMNS:,} are read."
                " Keep the column of texts and those you need."
            )
        return header

    def _without_header(self, first: str, is_said: bool) -> None:
        """The first line is a row, and columns are called by numbers; lines of different numbers of cells are texts."""
        self._lines = chain([first], self._lines)
        self._probe = [line for line in (first, *self._probe) if line.strip()]
        sizes = {_QUOTED.sub("", line).count(self.delimiter) for line in self._probe}
        n_columns = len(self.header) if len(sizes) == 1 or is_said else 1
        self.header = [f"column {number}" for number in range(1, n_columns + 1)]

    def _wordiest(self, column: str | None) -> str:
        """The column of most words in the first rows, unless one is named."""
        if column is not None and not self._is_texts:
            return column
        if self._is_texts:
            self._notes.said.append("no header line: each line is read as a text")
            return self.header[0]
        n_words = [0] * len(self.header)
        for cells, _ in self._records(iter(self._probe), Notes()):
            for place, cell in enumerate(cells[: len(self.header)]):
                n_words[place] += len(cell.split())
        found = self.header[n_words.index(max(n_words))]
        self._notes.said.append(
            f"no header line: the columns are called {self.header[0]} to {self.header[-1]}, and"
            f" {found} is read; name another one with --column"
        )
        return found

    def _records(self, lines: Iterator[str], notes: Notes) -> Iterator[tuple[list[str], str | None]]:
        number, again = 1, list[str]()  # the header is line 1
        while (line := again.pop() if again else next(lines, None)) is not None:
            number, taken, n_marks = number + 1, [line], line.count('"')
            cells, reason = self._parsed(taken, number)
            while cells is None and n_marks % 2 and len(taken) < _MAX_LINES_PER_ROW:
                more = again.pop() if again else next(lines, None)
                if more is None:
                    break
                taken.append(more)
                n_marks += more.count('"')
                if n_marks % 2 == 0:  # else the mark that was opened cannot have been closed
                    cells, reason = self._parsed(taken, number)
            if cells is None:
                cells = self._as_it_stands(line)
                again += reversed(taken[1:])
                taken = taken[:1]
                notes.mended[STRAY] += 1
            number += len(taken) - 1
            yield cells, reason

    def _parsed(self, lines: list[str], number: int) -> tuple[list[str] | None, str | None]:
        """The row that lines are, None if they are none as they stand; or why it cannot be read."""
        try:
            return next(csv_reader(lines, delimiter=self.delimiter, strict=True), []), None
        except csv.Error as error:
            return (
                ([], f"not readable as CSV: {error} (line {number}).") if "larger than" in str(error) else (None, None)
            )

    def _as_it_stands(self, line: str) -> list[str]:
        """Cells of one line; a quotation mark that opens none that ends before a delimiter stands for itself."""
        line, cells, at = line.rstrip("\r\n"), list[str](), 0
        while True:
            quoted = _QUOTED.match(line, at)
            is_cell = quoted is not None and line[quoted.end() : quoted.end() + 1] in ("", self.delimiter)
            end = quoted.end() if quoted is not None and is_cell else line.find(self.delimiter, at)
            end = len(line) if end < 0 else end
            cells.append(line[at + 1 : end - 1].replace('""', '"') if is_cell else line[at:end])
            if end >= len(line):
                return cells
            at = end + 1


def _lines(stream: BinaryIO, notes: Notes) -> Iterator[str]:
    """Lines with their ends; bytes of no known encoding are kept as halves of characters."""
    start = stream.read(_PROBE_BYTES)
    stream.seek(0)
    if b"\r" in start and b"\n" not in start:  # as some spreadsheets on a Mac write them
        yield from io.TextIOWrapper(stream, "utf-8", "surrogateescape", newline="\r")
        return
    for raw in stream:
        try:
            yield decoded(raw, notes)
        except UnicodeDecodeError:
            yield raw.decode("utf-8", "surrogateescape")


def _whole_line(first: str, lines: Iterator[str]) -> tuple[str, Iterator[str]]:
    """The header with the lines that a cell of it goes over, and the lines after it."""
    more: list[str] = []
    while (first.count('"') + sum(line.count('"') for line in more)) % 2 and len(more) < _HEADER_LINES:
        if (line := next(lines, None)) is None:
            break
        more.append(line)
    whole = "".join([first, *more])
    return (first, chain(more, lines)) if whole.count('"') % 2 else (whole, lines)


def _probed(lines: Iterator[str]) -> list[str]:
    """The first lines."""
    probe: list[str] = []
    n = 0
    while len(probe) < _PROBE_LINES and n < _PROBE_BYTES and (line := next(lines, None)) is not None:
        probe.append(line)
        n += len(line)
    return probe


def _is_data(header: Sequence[str], column: str | None, below: Sequence[Sequence[str]]) -> bool:
    """Whether the first line is a row: no column is called as expected, and a cell is a text or a number.

    The only cell of a line is a text also if it ends as a sentence does.

    It is none where a column has numbers or dates below a cell that is neither, as questions of a form have.
    """
    if column in header or _guess(header) is not None:
        return False
    for name, *cells in zip(header, *(row for row in below if len(row) == len(header)), strict=True):
        if cells and not _is_number(name) and all(map(_is_number, cells)):
            return False
    is_said = len(header) == 1 and _ENDED.search(header[0]) is not None
    return is_said or any(len(cell.split()) >= _DATA_WORDS or _is_number(cell) for cell in header)


def _is_number(cell: str) -> bool:
    return _NUMBER_OR_DATE.fullmatch(cell.strip()[:80]) is not None


def _guess(names: Sequence[str]) -> str | None:
    """The column that holds texts by its name: a usual one, else one whose last word is (``review_text``)."""
    lowered = {name.lower(): name for name in reversed(names)}
    for candidate in TEXT_COLUMNS:
        if candidate in lowered:
            return lowered[candidate]
    short = [name for name in reversed(names) if len(name.split()) < _DATA_WORDS]
    last = {words[-1].lower(): name for name in short if (words := _WORD.findall(name[:200]))}
    return next((last[candidate] for candidate in TEXT_COLUMNS if candidate in last), None)


def choose_column(names: Sequence[str], column: str | None, where: str = "") -> str:
    """The column or field that holds the text.

    Args:
        names: Of all.
        column: The one asked for; None = by its name.
        where: What has them, for messages, with a blank at its end.

    Raises:
        DataError: There is none.

    >>> choose_column(["id", "review_text"], None)
    'review_text'
    """
    found = ", ".join(map(repr, names[:20])) or "none"
    if column is not None:
        if column in names:
            return column
        raise DataError(f"{where}has no column {column!r}.{nearest(column, list(names))} Found: {found}.")
    if (guessed := _guess(names)) is not None:
        return guessed
    raise DataError(f"{where}has no text column. Found: {found}. Name the one to read with --column.")
