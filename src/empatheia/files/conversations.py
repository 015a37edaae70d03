"""Conversations of a file or of stdin, one at a time: JSON, CSV tables of turns, chat transcripts, plain texts.

What cannot be read becomes a :class:`~empatheia.files.rows.Row` with an ``error`` and its number; what follows goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

from empatheia.errors import DataError
from empatheia.files.forms import TEXT_FORMS, Form, text_form
from empatheia.files.json_forms import CONVERSATION_COLUMNS
from empatheia.files.rows import Row, Say, item_reader, json_rows, read_lines, read_rows, told
from empatheia.files.talks import LEFT_OUT, ROLE_OF, Notes, dialogue_roles, mended
from empatheia.files.transcripts import MAX_TURNS, PROBE_LINES, Transcript, begins_with_unknown_date
from empatheia.records.dialogue import ROLES, Dialogue, Role, Turn

ROLE_COLUMNS = ("role", "speaker", "speaker_idx", "author", "sender", "name")


def read_conversations(
    path: Path, column: str | None = None, speaker: str | None = None, say: Say | None = None
) -> Iterator[Row]:
    """Conversations of a file, by its suffix and its form; a text alone is a conversation of one speaker turn.

    Args:
        path: As for :func:`empatheia.files.rows.read_rows`; ``.txt`` may be a chat transcript.
        column: CSV column or JSON field that holds the text.
        speaker: Name of the person who is the ``speaker``; makes ``.txt`` a transcript.
        say: Told how a transcript was read and what was left out, or None.

    Raises:
        DataError: The file is missing, is not text, or has no usable column.
    """
    notes = Notes()
    rows = read_rows(path, column, speaker, with_fields=True, notes=notes)
    found = _lines(rows, speaker, notes) if path.suffix.lower() == ".txt" else _grouped(rows, speaker, notes)
    return told(found, notes, say)


def read_stream(
    stream: BinaryIO, column: str | None = None, speaker: str | None = None, say: Say | None = None
) -> Iterator[Row]:
    """JSON lines if the first is an object or a list, else texts or a transcript; see :func:`read_conversations`."""
    notes = Notes()
    rows, is_json = _probed(stream, notes)
    if is_json:
        read = json_rows(rows, column, notes, item_reader(speaker), True)
        return told(_grouped(read, speaker, notes), notes, say)
    return told(_lines(rows, speaker, notes), notes, say)


def read_texts(
    stream: BinaryIO, column: str | None = None, speaker: str | None = None, say: Say | None = None
) -> Iterator[Row]:
    """JSON lines if the first is an object or a list, else one text a line."""
    notes = Notes()
    rows, is_json = _probed(stream, notes)
    if is_json:
        return told(json_rows(rows, column, notes, item_reader(speaker)), notes, say)
    return told((_mended(row) for row in rows), notes, say)


def _probed(stream: BinaryIO, notes: Notes) -> tuple[Iterator[Row], bool]:
    rows = read_lines(stream, notes)
    first = list(islice(rows, 1))
    is_json = bool(first) and first[0].error is None and str(first[0].item).lstrip().startswith(("{", '["', "[{"))
    return chain(first, rows), is_json


def _mended(row: Row) -> Row:
    return row if row.item is None else replace(row, item=mended(str(row.item)))


def _lines(rows: Iterator[Row], speaker: str | None, notes: Notes) -> Iterator[Row]:
    """Texts, or conversations if the first lines look like a chat or a speaker is named."""
    first = list(islice(rows, PROBE_LINES))
    texts = [str(row.item) for row in first if row.error is None]
    everything = chain(first, rows)
    form = text_form(texts) or (TEXT_FORMS[-1] if speaker is not None else None)
    if form is None:
        dated = [text for text in texts if begins_with_unknown_date(text)]
        if len(dated) > 1 and 2 * len(dated) >= len(texts):
            notes.said.append(f"dates of an unknown form: {dated[0][:40]!r}; each line is read as a text")
        yield from map(_mended, everything)
        return
    yield from _chats(form, everything, speaker, notes)


def _chats(form: Form, rows: Iterable[Row], speaker: str | None, notes: Notes) -> Iterator[Row]:
    """The conversations of a chat, one of which may have lines that cannot be read."""
    bad: list[Row] = []
    roles: dict[str, Role] = {}
    for found in _transcripts(form, _texts(rows, bad), speaker):
        if not roles and found.roles:
            roles = dict(found.roles)
            notes.tell_people(roles, f"read as {form.what}")
        notes.left.update(found.left)
        if bad:
            yield Row(found.line, None, f"line {bad[0].number} {bad[0].error}")
            bad.clear()
        else:
            yield Row(found.line, found.dialogue, found.error)


def _transcripts(form: Form, lines: Iterator[str], speaker: str | None) -> Iterator[Transcript]:
    return (Transcript.of(talk, speaker) for talk in form.read(lines))


def _texts(rows: Iterable[Row], bad: list[Row]) -> Iterator[str]:
    for row in rows:
        if row.error is None:
            yield str(row.item)
        else:
            bad.append(row)
            yield ""


# -- tables of turns -----------------------------------------------------------------------------------------


def _grouped(rows: Iterator[Row], speaker: str | None, notes: Notes) -> Iterator[Row]:
    """Rows with the same conversation id as one conversation.

    Without such a column each row stays as it is, unless its column of people has roles (``user``, ``assistant``) or
    the speaker in it: then all rows are one conversation.
    """
    first = list(islice(rows, PROBE_LINES))
    everything = chain(first, rows)
    texts = [row for row in first if row.fields is not None and not isinstance(row.item, Dialogue)]
    names = (texts[0].fields or {}) if texts else {}
    key, role = _first_of(CONVERSATION_COLUMNS, names), _first_of(ROLE_COLUMNS, names)
    if key is None and (role is None or not _is_conversation(texts, role, speaker)):
        yield from (replace(row, fields=None) for row in everything)
        return
    seen: set[str] = set()
    for identity, group in _neighbours(everything, key):
        yield _conversation(group, identity, role, speaker, seen, notes)


def _first_of(columns: tuple[str, ...], names: Mapping[str, object]) -> str | None:
    return next((name for name in columns if name in names), None)


def _is_conversation(rows: list[Row], role: str, speaker: str | None) -> bool:
    found = {str((row.fields or {}).get(role, "")).strip().lower() for row in rows}
    if speaker is not None and speaker.strip().lower() in found:
        return True
    return len(found & ROLE_OF.keys()) > 1 and found <= ROLE_OF.keys() | LEFT_OUT


def _neighbours(rows: Iterable[Row], key: str | None) -> Iterator[tuple[str, list[Row]]]:
    """Rows in a line with the same value of a column, and the value; one without goes with those before it."""
    group: list[Row] = []
    current: str | None = None
    for row in rows:
        own = str(row.fields[key]) if key is not None and row.fields is not None and key in row.fields else current
        if group and (own != current or len(group) == MAX_TURNS):
            yield current or "", group
            group = []
        current = own
        group.append(row)
    if group:
        yield current or "", group


def _conversation(
    rows: list[Row],
    identity: str,
    role: str | None,
    speaker: str | None,
    seen: set[str],
    notes: Notes,
) -> Row:
    """One conversation; rows that nobody said (``system``) are counted, and their cells stand behind the others."""
    who = [str((row.fields or {}).get(role, "")).strip() if role else None for row in rows]
    said, left_out = _parted(rows, who)
    notes.left.update(f"{name} messages" for _, name in left_out)
    cells = tuple(cell for row, _ in (*said, *left_out) for cell in row.cells)
    bad = Row(rows[0].number, None, None, identity or None, cells=cells)
    if identity and identity in seen:
        reason = f"conversation {identity!r} continues after another one; sort the rows by conversation."
        return replace(bad, error=reason)
    seen.add(identity)
    try:
        _check_turns([row for row, _ in said], identity)
        roles = dialogue_roles([name for _, name in said], speaker)
    except DataError as error:
        return replace(bad, error=str(error))
    notes.tell_people(roles)
    return replace(bad, item=Dialogue(identity, tuple(Turn(roles[name], str(row.item)) for row, name in said)))


def _parted(rows: list[Row], who: list[str | None]) -> tuple[list[tuple[Row, str]], list[tuple[Row, str]]]:
    """Rows that somebody said, each with a name or, by turns, a role; and those that nobody did."""
    said: list[tuple[Row, str]] = []
    left_out: list[tuple[Row, str]] = []
    for place, (row, name) in enumerate(zip(rows, who, strict=True)):
        is_out = name is not None and name.lower() in LEFT_OUT
        (left_out if is_out else said).append((row, name or ROLES[place % 2]))
    return said, left_out


def _check_turns(rows: list[Row], identity: str) -> None:
    """Whether rows are turns.

    Raises:
        DataError: One could not be read, or is a conversation itself.
    """
    for row in rows:
        if row.error is not None or row.fields is None or isinstance(row.item, Dialogue):
            of = f" of conversation {identity!r}" if identity else ""
            raise DataError(f"row {row.number}{of}: {row.error or 'is a conversation itself'}")
