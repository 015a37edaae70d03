"""Rows of a file or of stdin, one at a time: CSV, TSV, JSON lines, plain text.

A row that cannot be read becomes a :class:`Row` with an ``error`` and its number; the rows after it go on.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, TypeVar

from empatheia.checkpoints.inputs import up_to
from empatheia.dialogue import ROLES, Dialogue, Turn
from empatheia.errors import ConfigError, DataError, EmpatheiaError
from empatheia.reading import UnreadableError, csv_reader, parse_json
from empatheia.registry import nearest

Item = TypeVar("Item")
Answer = TypeVar("Answer")
SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".txt")
TEXT_COLUMNS = (
    "text",
    "utterance",
    "sentence",
    "message",
    "prompt",
    "content",
    "post",
    "comment",
    "body",
    "tweet",
)
_MAX_ID_CHARACTERS = 1000
_PROBE_BYTES = 1 << 16
_MAX_LINES_PER_ROW = 200  # beyond it a quotation mark was opened and never closed
_MAX_COLUMNS = 5_000
_FOREIGN_STARTS = {b"PK\x03\x04": "a ZIP or spreadsheet file", b"\x1f\x8b": "a gzip file", b"%PDF": "a PDF"}


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the input.

    Attributes:
        number: 1-based; in CSV the header does not count, elsewhere it is the line number.
        item: What to analyse, or None when the row is bad.
        error: Why it is bad, or None.
        id: The row's own ``id`` (JSON lines, CSV), or None.
        fields: All its cells by lower-case column name (CSV, if asked for), or None.
        cells: The rows of a CSV file it is made of, each a mapping of all columns; empty elsewhere.
    """

    number: int
    item: str | Dialogue | None
    error: str | None = None
    id: object = None
    fields: Mapping[str, str] | None = None
    cells: tuple[Mapping[str, str], ...] = ()


def looks_like_file(argument: str) -> bool:
    """Whether a command-line argument names a row file, present or not: a known suffix and no line break."""
    return "\n" not in argument and len(argument) < 4096 and Path(argument).suffix.lower() in SUFFIXES


def file_given(arguments: Sequence[str]) -> Path | None:
    """The row file that command-line arguments name, or None if they are texts or ``-``.

    Raises:
        DataError: A file or folder that is there is none of the kinds that can be read, or is one of several.
    """
    if list(arguments) == ["-"]:
        return None
    kinds = ", ".join(SUFFIXES)
    for argument in arguments:
        is_named = looks_like_file(argument)
        is_path = is_named and (" " not in argument or Path(argument).is_file())
        if len(arguments) > 1 and (is_path or argument == "-"):
            raise DataError(f"{argument!r} is one of {len(arguments)} arguments; give one file, or '-', or only texts.")
        if is_named and len(arguments) == 1:
            return Path(argument)
        if _is_there(argument):
            raise DataError(
                f"{argument} is a file or folder of another kind; accepted: one file with a suffix of {kinds}."
            )
    return None


def refuse_files(texts: Sequence[str], command: str) -> None:
    """Whether texts are texts, for a command that reads no file: the name of one would be taken for what was said.

    Raises:
        DataError: One is the name of a file.
    """
    for text in texts:
        is_named = looks_like_file(text) and (" " not in text or Path(text).is_file())
        if is_named or _is_there(text):
            raise DataError(
                f"{text!r} is a file, and `empatheia {command}` takes texts. Give them in quotes, or one a line:"
                f" empatheia {command} - < FILE"
            )


def check_output(place: Path, others: Sequence[Path | None]) -> None:
    """Whether an output would take the place of the input, or of another output.

    Raises:
        ConfigError: It would.
    """
    if any(other is not None and place.resolve() == other.resolve() for other in others):
        raise ConfigError(f"{place} is named twice, so it would be overwritten; give each output a file of its own.")


def columns_given(first: Row, out: Path | None) -> list[str]:
    """The caller's columns that a result keeps: from CSV to CSV all, else none; ``first`` is any row of the input."""
    return [*first.cells[0]] if first.cells and out is not None and out.suffix.lower() == ".csv" else []


def aimed(rows: Iterable[Row], target: int, listeners: bool = False) -> Iterator[Row]:
    """Rows whose conversations end with the turn that is asked about; where there is none the row is bad.

    Args:
        rows: Of the input.
        target: Number of the turn, counted from 1.
        listeners: Whether it may be a listener's.
    """
    for row in rows:
        if row.error is not None or row.item is None:
            yield row
            continue
        try:
            yield replace(row, item=up_to(row.item, target, listeners=listeners, first=1))
        except DataError as problem:
            yield replace(row, item=None, error=str(problem))


def _is_there(argument: str) -> bool:
    """Whether a text is the path of something that exists; a word such as the name of a folder here is a text."""
    if "\n" in argument or len(argument) >= 4096 or not ({"/", "\\", "."} & set(argument)):
        return False
    try:
        return Path(argument).is_file() or ("/" in argument and Path(argument).is_dir())
    except (OSError, ValueError):
        return False


def read_rows(
    path: Path,
    column: str | None = None,
    *,
    with_fields: bool = False,
    read_item: Callable[[object, str | None], str | Dialogue] | None = None,
) -> Iterator[Row]:
    """Rows of a file, by its suffix.

    Args:
        path: ``.csv``, ``.tsv``, ``.jsonl``, ``.ndjson`` or ``.txt``.
        column: CSV column or JSON field that holds the text; None = the first usual name that is there.
        with_fields: Keep every cell of a CSV row.
        read_item: What reads a JSON value; None = :func:`item_of`.

    Raises:
        DataError: The file is missing, is not text, or has no usable column.
    """
    if not path.exists():
        raise DataError(f"no such file: {path}. Give a text in quotes, '-' for stdin, or an existing file.")
    if path.is_dir():
        raise DataError(f"{path} is a folder; give one file with a suffix of {', '.join(SUFFIXES)}.")
    with path.open("rb") as stream:
        _refuse_foreign(stream.read(4), path)
        stream.seek(0)
        suffix = path.suffix.lower()
        if suffix in (".csv", ".tsv"):
            yield from _csv_rows(stream, path, column, with_fields)
        elif suffix in (".jsonl", ".ndjson"):
            yield from json_rows(read_lines(stream), column, read_item or item_of)
        else:
            yield from read_lines(stream)


def read_lines(stream: BinaryIO) -> Iterator[Row]:
    """One text a line."""
    for number, raw in enumerate(stream, 1):
        try:
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            yield Row(number, None, _undecodable(error))
            continue
        yield Row(number, text)


def json_rows(
    lines: Iterator[Row], column: str | None, read_item: Callable[[object, str | None], str | Dialogue]
) -> Iterator[Row]:
    """Rows of JSON lines; see :func:`read_rows` for the arguments."""
    for line in lines:
        if line.error is not None or not str(line.item).strip():
            if line.error is not None:
                yield line
            continue
        try:
            record = parse_json(str(line.item))
            identity = _identity(record)
            yield Row(line.number, read_item(record, column), None, identity)
        except UnreadableError as error:
            yield Row(line.number, None, f"not valid JSON: {error}. Write one object or string per line.")
        except DataError as error:
            yield Row(line.number, None, str(error))


def _identity(record: object) -> object:
    """A row's own id, which is written with its result.

    Raises:
        DataError: It is a list or an object that is too long for an id.
    """
    identity = record.get("id") if isinstance(record, dict) else None
    if isinstance(identity, list | dict) and len(repr(identity)) > _MAX_ID_CHARACTERS:
        raise DataError(f"field 'id' holds a long JSON {type(identity).__name__}; accepted: a string or a number.")
    return identity


def item_of(record: object, column: str | None = None) -> str | Dialogue:
    """What a JSON value asks to analyse.

    Args:
        record: A string; an object with a text field; or an object with ``turns``: strings (speaker first,
            alternating) or objects with ``role`` and ``text``.
        column: Name of the text field; None = the first usual name that is there.

    Raises:
        DataError: Nothing of this kind is in it.
    """
    if isinstance(record, str):
        return record
    if not isinstance(record, dict):
        raise DataError(f"found a JSON {type(record).__name__}; accepted: a string, or an object with text or turns.")
    if column is None and "turns" in record:
        turns = record["turns"]
        if not isinstance(turns, list) or not turns:
            raise DataError("field 'turns' must be a list with at least one turn.")
        return Dialogue(str(record.get("id", "")), tuple(_turn_of(turn, i) for i, turn in enumerate(turns)))
    name = _choose_column(list(record), column)
    if not isinstance(record[name], str):
        raise DataError(f"field {name!r} holds a JSON {type(record[name]).__name__}; accepted: a string.")
    return record[name]


def _turn_of(turn: object, index: int) -> Turn:
    if isinstance(turn, str):
        return Turn(ROLES[index % 2], turn)
    if isinstance(turn, dict) and isinstance(turn.get("text"), str):
        return Turn(turn.get("role", ROLES[index % 2]), turn["text"])
    raise DataError(f"turn {index} is {turn!r:.60}; accepted: a string, or an object with role and text.")


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of a CSV file.

    Attributes:
        header: Their names as they stand.
        text: Place of the one with the text.
        with_fields: Whether rows keep all their cells by lower-case name.
        own: Their names, those of the same name numbered.
    """

    header: Sequence[str]
    text: int
    with_fields: bool
    own: Sequence[str]

    @property
    def blank(self) -> Mapping[str, str]:
        """A row without a text in any column."""
        return dict.fromkeys(self.own, "")

    def row(self, number: int, cells: Sequence[str]) -> Row:
        """The row of these cells; bad if it has no text that can be read."""
        given = ({**self.blank, **dict(zip(self.own, cells, strict=False))},)
        if len(cells) <= self.text:
            reason = f"has {len(cells)} of {len(self.header)} columns, so none for {self.header[self.text]!r}."
            return Row(number, None, reason, cells=given)
        try:
            cells[self.text].encode("utf-8")
        except UnicodeEncodeError as error:
            return Row(number, None, _undecodable(error), cells=given)
        identity = next((cell for name, cell in zip(self.header, cells, strict=False) if name == "id"), None)
        fields = dict(zip(map(str.lower, self.header), cells, strict=False)) if self.with_fields else None
        return Row(number, cells[self.text], None, identity, fields, given)


def _csv_rows(stream: BinaryIO, path: Path, column: str | None, with_fields: bool) -> Iterator[Row]:
    lines = _csv_lines(stream)
    header, delimiter = _header(next(lines, "").removeprefix("\ufeff"), path)
    text = header.index(_choose_column(header, column, where=f"{path} "))
    columns = _Columns(header, text, with_fields, _own_names(header))
    for number, (cells, reason) in enumerate(_csv_cells(lines, delimiter), 1):
        if reason is None:
            yield columns.row(number, cells)
        else:
            yield Row(number, None, reason, cells=(columns.blank,))


def _csv_lines(stream: BinaryIO) -> Iterator[str]:
    """Lines with their ends; bytes that are not UTF-8 are kept as halves of characters."""
    if _has_old_line_ends(stream):
        return io.TextIOWrapper(stream, "utf-8", "surrogateescape", newline="\r")
    return (raw.decode("utf-8", "surrogateescape") for raw in stream)


def _header(line: str, path: Path) -> tuple[list[str], str]:
    """Names of the columns, and what stands between cells.

    Raises:
        DataError: The line names no columns, or too many.
    """
    if not line.strip():
        raise DataError(f"{path} is empty; its first line must name the columns.")
    delimiter = max("\t" if path.suffix.lower() == ".tsv" else ",;\t", key=line.count)
    try:
        header = [name.strip() for name in next(csv_reader([line], delimiter=delimiter))]
    except csv.Error as error:
        raise DataError(f"{path}: its first line must name the columns, and is not readable as CSV: {error}.") from None
    if len(header) > _MAX_COLUMNS:
        raise DataError(
            f"{path}: its first line names {len(header):,} columns; at most {_MAX_COLUMNS:,} are read."
            " Keep the column of texts and those you need."
        )
    return header, delimiter


def _csv_cells(lines: Iterator[str], delimiter: str) -> Iterator[tuple[list[str], str | None]]:
    """Cells of each row below the header, or why there are none; a blank line between rows is not a row."""
    reader = csv_reader(lines, delimiter=delimiter)
    while True:
        first_line = reader.line_num + 2  # the header is line 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield [], f"not readable as CSV: {error} (line {reader.line_num + 1})."
            continue
        last_line = reader.line_num + 1
        if last_line - first_line > _MAX_LINES_PER_ROW:
            lost = f"lines {first_line} to {last_line} were read as one row"
            yield [], f"a quotation mark is opened and not closed: {lost}. Close or double it."
        elif cells:
            yield cells, None


def _own_names(header: Sequence[str]) -> list[str]:
    """The columns, those of the same name numbered: ``note``, ``note (2)``."""
    names: dict[str, None] = {}
    counts: dict[str, int] = {}
    for name in header:
        own = name
        while own in names:
            counts[name] = counts.get(name, 1) + 1
            own = f"{name} ({counts[name]})"
        names[own] = None
    return list(names)


def _has_old_line_ends(stream: BinaryIO) -> bool:
    """Whether lines end in CR alone, as some spreadsheets on a Mac write them."""
    start = stream.read(_PROBE_BYTES)
    stream.seek(0)
    return b"\r" in start and b"\n" not in start


def _choose_column(names: list[str], column: str | None, where: str = "") -> str:
    found = ", ".join(map(repr, names[:20])) or "none"
    if column is not None:
        if column in names:
            return column
        raise DataError(f"{where}has no column {column!r}.{nearest(column, names)} Found: {found}.")
    lowered = {name.lower(): name for name in reversed(names)}
    for candidate in TEXT_COLUMNS:
        if candidate in lowered:
            return lowered[candidate]
    raise DataError(f"{where}has no text column. Found: {found}. Name the one to read with --column.")


def answer_each(
    ask: Callable[[list[Item], Callable[[int], None]], Iterable[Answer]],
    items: list[Item],
    advance: Callable[[int], None],
) -> list[Answer | str]:
    """Answers to all items at once, or what is wrong, as text, with those that cannot be answered.

    Where the call fails the items are asked half by half, so that one that cannot be answered fails alone.

    Args:
        ask: Takes items and a call that moves the progress bar; gives an answer an item.
        items: That are asked about.
        advance: Moves the bar by a number of items.

    Raises:
        Exception: The call fails for each of several items, or for a reason that is none of theirs.
    """
    n_told = 0

    def moved(n: int) -> None:
        nonlocal n_told
        n = min(n, len(items) - n_told)  # those asked again are not told again
        n_told += n
        advance(n)

    def answered(part: list[Item]) -> list[Answer | str]:
        try:
            return list(ask(part, moved))
        except (OSError, EmpatheiaError) as error:
            if not isinstance(error, DataError):
                raise
            problem: Exception = error
        except Exception as error:
            problem = error
        faults.append(problem)
        if len(part) < 2:
            own = isinstance(problem, DataError)
            return [str(problem) if own else f"cannot be analysed ({type(problem).__name__}: {problem!s:.200})."]
        half = len(part) // 2
        return answered(part[:half]) + answered(part[half:])

    faults: list[Exception] = []
    answers = answered(items)
    if len(items) > 1 and all(isinstance(answer, str) for answer in answers):
        raise faults[0]
    moved(len(items) - n_told)
    return answers


def _refuse_foreign(start: bytes, path: Path) -> None:
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise DataError(f"{path} is UTF-16; save it as UTF-8 and run again.")
    for magic, what in _FOREIGN_STARTS.items():
        if start.startswith(magic):
            raise DataError(f"{path} is {what}; save it as CSV, JSON lines or plain text in UTF-8.")


def _undecodable(error: UnicodeError) -> str:
    return f"has bytes that are not UTF-8 (at position {getattr(error, 'start', 0)}); save the file as UTF-8."


def count_lines(path: Path) -> int | None:
    """Lines of a file, for the progress bar; None when it cannot be read (the reader will say why)."""
    try:
        with path.open("rb") as stream:
            n_lines = sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 20), b""))
            return n_lines or None
    except OSError:
        return None
