"""Rows of a file or of stdin, one at a time: CSV, TSV, JSON, JSON lines, plain text.

A row that cannot be read becomes a :class:`Row` with an ``error`` and its number; the rows after it go on. What was
left out or mended is counted in :class:`~empatheia.files.talks.Notes`, and told when the last row is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from empatheia.errors import DataError
from empatheia.files.forms import json_form
from empatheia.files.json_forms import turn_talk, turns_in
from empatheia.files.tables import Table, choose_column, decoded
from empatheia.files.talks import Notes, Talk, mended
from empatheia.reading import UnreadableError, parse_json, read_text
from empatheia.records.dialogue import Dialogue

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".txt")
_MAX_ID_CHARACTERS = 1000
_FOREIGN_STARTS = {b"PK\x03\x04": "a ZIP or spreadsheet file", b"\x1f\x8b": "a gzip file", b"%PDF": "a PDF"}

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the input.

    Attributes:
        number: 1-based; in CSV the header does not count, in JSON it is the place in the list, else the line number.
        item: What to analyse, or None when the row is bad.
        error: Why it is bad, or None.
        id: The row's own ``id`` (JSON, CSV), or None.
        fields: What else it has, by lower-case column name (CSV and JSON objects, if asked for), or None.
        cells: The rows of a CSV file it is made of, each a mapping of all columns; empty elsewhere.
    """

    number: int
    item: str | Dialogue | None
    error: str | None = None
    id: object = None
    fields: Mapping[str, object] | None = None
    cells: tuple[Mapping[str, str], ...] = ()


ReadItem = Callable[[object, str | None, Notes], str | Dialogue]


def read_rows(
    path: Path,
    column: str | None = None,
    speaker: str | None = None,
    *,
    with_fields: bool = False,
    notes: Notes | None = None,
    read_item: ReadItem | None = None,
) -> Iterator[Row]:
    """Rows of a file, by its suffix; a conversation is a row.

    Args:
        path: One with a suffix of :data:`SUFFIXES`.
        column: CSV column or JSON field that holds the text; None = the first usual name that is there.
        speaker: Who is the speaker of conversations; None = as the file says, else who speaks first.
        with_fields: Keep what else a row has.
        notes: What is left out and mended is counted here.
        read_item: What reads a JSON value; None = :func:`item_of`.

    Raises:
        DataError: The file is missing, is not text, or has no usable column.
    """
    if not path.exists():
        raise DataError(f"no such file: {path}. Give a text in quotes, '-' for stdin, or an existing file.")
    if path.is_dir():
        raise DataError(f"{path} is a folder; give one file with a suffix of {', '.join(SUFFIXES)}.")
    notes = Notes() if notes is None else notes
    read_item = item_reader(speaker) if read_item is None else read_item
    with path.open("rb") as stream:
        _refuse_foreign(stream.read(4), path)
        stream.seek(0)
        suffix = path.suffix.lower()
        if suffix in (".csv", ".tsv"):
            yield from _table_rows(Table(stream, path, column, notes), with_fields)
        elif suffix in (".jsonl", ".ndjson"):
            yield from json_rows(read_lines(stream, notes), column, notes, read_item, with_fields)
        elif suffix == ".json":
            yield from _document_rows(path, stream, column, speaker, notes, read_item, with_fields)
        else:
            for row in read_lines(stream, notes):
                yield row if row.item is None else Row(row.number, mended(str(row.item)))


def told(rows: Iterable[Row], notes: Notes, say: Say | None) -> Iterator[Row]:
    """The rows; what there is to say of the file is said with the first row, what was left out after the last."""
    tell = say or (lambda _: None)
    n_told = 0
    for row in rows:
        yield row
        for line in notes.said[n_told:]:
            tell(line)
        n_told = len(notes.said)
    for line in notes.lines()[n_told:]:
        tell(line)


def read_lines(stream: BinaryIO, notes: Notes) -> Iterator[Row]:
    """One text a line, as it stands there."""
    for number, raw in enumerate(stream, 1):
        try:
            text = decoded(raw, notes)
        except UnicodeDecodeError as error:
            yield Row(number, None, _undecodable(error))
            continue
        yield Row(number, (text.removeprefix("\ufeff") if number == 1 else text).rstrip("\r\n"))


def json_rows(
    lines: Iterator[Row], column: str | None, notes: Notes, read_item: ReadItem, with_fields: bool = False
) -> Iterator[Row]:
    """Rows of JSON lines; see :func:`read_rows` for the arguments."""
    for line in lines:
        if line.error is not None or not str(line.item).strip():
            if line.error is not None:
                yield line
            continue
        try:
            value = parse_json(str(line.item))
        except UnreadableError as error:
            yield Row(line.number, None, f"not valid JSON: {error}. Write one object or string per line.")
            continue
        yield _json_row(line.number, value, column, notes, read_item, with_fields)


def _json_row(
    number: int, value: object, column: str | None, notes: Notes, read_item: ReadItem, with_fields: bool
) -> Row:
    fields = {str(name).lower(): cell for name, cell in value.items()} if isinstance(value, dict) else None
    try:
        identity = _identity(value)
        return Row(number, read_item(value, column, notes), None, identity, fields if with_fields else None)
    except DataError as error:
        return Row(number, None, str(error))


def _document_rows(
    path: Path,
    stream: BinaryIO,
    column: str | None,
    speaker: str | None,
    notes: Notes,
    read_item: ReadItem,
    with_fields: bool,
) -> Iterator[Row]:
    """Rows of one JSON value: those of an export, or of a list; JSON lines with the wrong suffix are read as such.

    Raises:
        DataError: The file is no JSON.
    """
    try:
        value = parse_json(read_text(path))
    except UnreadableError as error:
        if error.msg != "Extra data":
            raise DataError(f"{path} is not JSON ({str(error).removeprefix(f'{path}:')}). Export it again.") from None
        yield from json_rows(read_lines(stream, notes), column, notes, read_item, with_fields)
        return
    if (form := json_form(value)) is not None and column is None:
        notes.said.append(f"read as {form.what}")
        for number, talk in enumerate(form.read(value), 1):
            yield _talk_row(number, talk, speaker, notes)
        return
    for number, one in enumerate(value if isinstance(value, list) else [value], 1):
        yield _json_row(number, one, column, notes, read_item, with_fields)


def _talk_row(number: int, talk: Talk, speaker: str | None, notes: Notes) -> Row:
    notes.left.update(talk.left)
    try:
        dialogue = talk.dialogue(speaker)
    except DataError as error:
        return Row(number, None, str(error), talk.id or None)
    notes.tell_people(talk.roles(speaker))
    return Row(number, dialogue, None, talk.id or None)


def _identity(record: object) -> object:
    """A row's own id, which is written with its result.

    Raises:
        DataError: It is a list or an object that is too long for an id.
    """
    identity = record.get("id") if isinstance(record, dict) else None
    if isinstance(identity, list | dict) and len(repr(identity)) > _MAX_ID_CHARACTERS:
        raise DataError(f"field 'id' holds a long JSON {type(identity).__name__}; accepted: a string or a number.")
    return identity


def item_of(
    record: object, column: str | None = None, speaker: str | None = None, notes: Notes | None = None
) -> str | Dialogue:
    """What a JSON value asks to analyse: a text, or a conversation.

    Args:
        record: A string; an object with a text field; a list of turns, or an object with one under a usual name
            (``turns``, ``messages``, ``conversations`` ...). A turn is a text (the speaker's first, alternating) or an
            object that says who speaks and what; see :mod:`empatheia.files.json_forms`.
        column: Name of the text field; None = the first usual name that is there.
        speaker: Who is the speaker; None = by the names of roles, the record's field ``speaker``, or who speaks first.
        notes: What is left out is counted here.

    Raises:
        DataError: Nothing of this kind is in it, or it is not clear who is the speaker.
    """
    if isinstance(record, str):
        return mended(record)
    turns = turns_in(record) if column is None else None
    if turns and (isinstance(record, dict) or isinstance(turns[0], str | dict)):
        talk = turn_talk(record)
        dialogue = talk.dialogue(speaker)
        if notes is not None:
            notes.left.update(talk.left)
            notes.tell_people(talk.roles(speaker))
        return dialogue
    if not isinstance(record, dict):
        raise DataError(f"found a JSON {type(record).__name__}; accepted: a string, or an object with text or turns.")
    if column is None and "turns" in record:
        raise DataError("field 'turns' must be a list with at least one turn.")
    name = choose_column(list(record), column)
    if not isinstance(record[name], str):
        raise DataError(f"field {name!r} holds a JSON {type(record[name]).__name__}; accepted: a string.")
    return mended(record[name])


def item_reader(speaker: str | None) -> ReadItem:
    """:func:`item_of` with the speaker decided."""
    return lambda value, column, notes: item_of(value, column, speaker, notes)


def _table_rows(table: Table, with_fields: bool) -> Iterator[Row]:
    own = _own_names(table.header)
    blank = dict.fromkeys(own, "")
    for number, (cells, reason) in enumerate(table, 1):
        given = ({**blank, **dict(zip(own, cells, strict=False))},)
        if reason is None and len(cells) <= table.text:
            n = len(table.header)
            reason = f"has {len(cells)} of {n} columns, so none for {table.header[table.text]!r}."
        if reason is None:
            try:
                cells[table.text].encode("utf-8")
            except UnicodeEncodeError as error:
                reason = _undecodable(error)
        if reason is not None:
            yield Row(number, None, reason, cells=given)
            continue
        identity = next((cell for name, cell in zip(table.header, cells, strict=False) if name == "id"), None)
        fields = dict(zip(map(str.lower, table.header), cells, strict=False)) if with_fields else None
        yield Row(number, mended(cells[table.text]), None, identity, fields, given)


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


def _refuse_foreign(start: bytes, path: Path) -> None:
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise DataError(f"{path} is UTF-16; save it as UTF-8 and run again.")
    for magic, what in _FOREIGN_STARTS.items():
        if start.startswith(magic):
            raise DataError(f"{path} is {what}; save it as CSV, JSON lines or plain text in UTF-8.")


def _undecodable(error: UnicodeError) -> str:
    return f"has bytes that are not UTF-8 (at position {getattr(error, 'start', 0)}); save the file as UTF-8."
