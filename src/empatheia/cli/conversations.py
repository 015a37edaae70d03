"""Conversations of a file or of stdin, one at a time: JSON lines, CSV tables of turns, chat transcripts, plain texts.

What cannot be read becomes a :class:`Row` with an ``error`` and its number; what follows goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

from empatheia.cli.rows import Row, item_of, json_rows, read_lines, read_rows
from empatheia.dialogue import ROLES, Dialogue, Turn
from empatheia.errors import DataError
from empatheia.listener.transcripts import PROBE_LINES, dialogue_roles, is_transcript, read_transcripts

CONVERSATION_COLUMNS = ("dialogue_id", "conversation_id", "conv_id", "dialog_id", "thread_id", "session_id", "chat_id")
"""Columns of a CSV file whose rows are turns; rows of one conversation follow each other."""
ROLE_COLUMNS = ("role", "speaker", "speaker_idx", "author", "sender", "name")
_CHAT_ROLES = {"user": "speaker", "assistant": "listener"}

Say = Callable[[str], None]


def read_conversations(
    path: Path, column: str | None = None, speaker: str | None = None, say: Say | None = None
) -> Iterator[Row]:
    """Conversations of a file, by its suffix; a text alone is a conversation of one speaker turn.

    Args:
        path: As for :func:`empatheia.cli.rows.read_rows`; ``.txt`` may be a chat transcript.
        column: CSV column or JSON field that holds the text.
        speaker: Name of the person who is the ``speaker``; makes ``.txt`` a transcript.
        say: Told how a transcript was read, or None.

    Raises:
        DataError: The file is missing, is not text, or has no usable column.
    """
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv"):
        yield from _grouped(read_rows(path, column, with_fields=True), speaker)
    elif suffix in (".jsonl", ".ndjson"):
        yield from read_rows(path, column, read_item=lambda record, name: conversation_of(record, name, speaker))
    else:
        yield from _lines(read_rows(path), speaker, say)


def read_stream(
    stream: BinaryIO, column: str | None = None, speaker: str | None = None, say: Say | None = None
) -> Iterator[Row]:
    """JSON lines if the first is an object, else texts or a transcript by line; see :func:`read_conversations`."""
    rows = read_lines(stream)
    first = list(islice(rows, 1))
    everything = chain(first, rows)
    if _is_object(first):
        return json_rows(everything, column, lambda record, name: conversation_of(record, name, speaker))
    return _lines(everything, speaker, say)


def read_texts(stream: BinaryIO, column: str | None = None) -> Iterator[Row]:
    """JSON lines if the first is an object, else one text a line."""
    rows = read_lines(stream)
    first = list(islice(rows, 1))
    everything = chain(first, rows)
    return json_rows(everything, column, conversation_of) if _is_object(first) else everything


def _is_object(first: list[Row]) -> bool:
    return bool(first) and first[0].error is None and str(first[0].item).lstrip().startswith("{")


def conversation_of(record: object, column: str | None = None, speaker: str | None = None) -> str | Dialogue:
    """What a JSON value asks to analyse: as :func:`empatheia.cli.rows.item_of`, with more ways to name who speaks.

    ``turns`` (or ``messages`` with ``content``) may name ``user`` and ``assistant``; ``system`` messages are left out.
    Other names need ``speaker``.

    Args:
        record: A JSON value.
        column: Name of the text field.
        speaker: Whose turns are the speaker's.

    Raises:
        DataError: Nothing of this kind is in it, or a role is unknown.
    """
    if not isinstance(record, dict) or column is not None:
        return item_of(record, column)
    turns = record.get("turns", record.get("messages"))
    if not isinstance(turns, list) or not turns:
        return item_of(record, column)
    plain = [_plain_turn(turn) for turn in turns]
    plain = [turn for turn in plain if not (isinstance(turn, dict) and turn.get("role") == "system")]
    names = [str(turn["role"]) for turn in plain if isinstance(turn, dict) and turn.get("role") is not None]
    roles = _roles(names, speaker)
    named = [
        {**turn, "role": roles[str(turn["role"])]} if isinstance(turn, dict) and turn.get("role") is not None else turn
        for turn in plain
    ]
    return item_of({**record, "turns": named})


def _plain_turn(turn: object) -> object:
    """``content`` as ``text``; a role that is there and empty counts as none."""
    if not isinstance(turn, dict):
        return turn
    plain = {"text": turn.get("text", turn.get("content"))}
    return plain if turn.get("role") is None else {**plain, "role": turn["role"]}


def _roles(names: list[str], speaker: str | None) -> dict[str, str]:
    if speaker is not None:
        return dict(dialogue_roles(names, speaker)) if names else {}
    if all(name in ROLES for name in names):
        return {name: name for name in names}
    if all(name in _CHAT_ROLES for name in names):
        return {name: _CHAT_ROLES[name] for name in names}
    odd = [name for name in names if name not in ROLES and name not in _CHAT_ROLES]
    what = f"unknown role {odd[0]!r}" if odd else f"roles of two kinds, {', '.join(map(repr, dict.fromkeys(names)))}"
    raise DataError(
        f"{what}; accepted: speaker and listener, or user and assistant, or other names together with --speaker NAME."
    )


def _lines(rows: Iterator[Row], speaker: str | None, say: Say | None) -> Iterator[Row]:
    """Texts, or conversations if the first lines look like a chat or a speaker is named."""
    first = list(islice(rows, PROBE_LINES))
    texts = [str(row.item) for row in first if row.error is None]
    everything = chain(first, rows)
    if speaker is None and not is_transcript(texts):
        yield from everything
        return
    bad: list[Row] = []
    n_notices, is_told = 0, say is None
    for found in read_transcripts(_texts(everything, bad), speaker):
        if found.roles and not is_told and say is not None:
            say("read as a chat transcript: " + ", ".join(f"{name} = {role}" for name, role in found.roles.items()))
            is_told = True
        n_notices += found.n_notices
        if bad:
            yield Row(found.line, None, f"line {bad[0].number} {bad[0].error}")
            bad.clear()
        else:
            yield Row(found.line, found.dialogue, found.error)
    if n_notices and say is not None:
        say(f"{n_notices:,} line{'s' if n_notices > 1 else ''} without a name left out")


def _texts(rows: Iterable[Row], bad: list[Row]) -> Iterator[str]:
    for row in rows:
        if row.error is None:
            yield str(row.item)
        else:
            bad.append(row)
            yield ""


def _grouped(rows: Iterator[Row], speaker: str | None) -> Iterator[Row]:
    """Rows with the same conversation id as one conversation; without such a column each row stays as it is."""
    first = _up_to_columns(rows)
    everything = chain(first, rows)
    names = (first[-1].fields or {}) if first else {}
    key = next((name for name in CONVERSATION_COLUMNS if name in names), None)
    if key is None:
        yield from (Row(row.number, row.item, row.error, row.id, cells=row.cells) for row in everything)
        return
    role = next((name for name in ROLE_COLUMNS if name in names), None)
    seen: set[str] = set()
    for identity, group in _neighbours(everything, key):
        yield _conversation(group, identity, role, speaker, seen)


def _up_to_columns(rows: Iterator[Row]) -> list[Row]:
    """The first rows, up to one whose columns are known."""
    first: list[Row] = []
    for row in rows:
        first.append(row)
        if row.fields is not None or len(first) == PROBE_LINES:
            break
    return first


def _neighbours(rows: Iterable[Row], key: str) -> Iterator[tuple[str, list[Row]]]:
    """Rows in a line with the same value of a column, and the value; one without goes with those before it."""
    group: list[Row] = []
    current: str | None = None
    for row in rows:
        own = row.fields[key] if row.fields is not None and key in row.fields else current
        if group and own != current:
            yield str(current), group
            group = []
        current = own
        group.append(row)
    if group:
        yield str(current), group


def _conversation(rows: list[Row], identity: str, role: str | None, speaker: str | None, seen: set[str]) -> Row:
    number, cells = rows[0].number, tuple(own for row in rows for own in row.cells)
    if identity in seen:
        reason = f"conversation {identity!r} continues after another one; sort the rows by conversation."
        return Row(number, None, reason, identity, cells=cells)
    seen.add(identity)
    for row in rows:
        if row.error is not None or row.fields is None:
            reason = f"row {row.number} of conversation {identity!r}: {row.error}"
            return Row(number, None, reason, identity, cells=cells)
    names = [str((row.fields or {}).get(role, "")) if role else ROLES[i % 2] for i, row in enumerate(rows)]
    try:
        roles = dialogue_roles(names, speaker)
    except DataError as error:
        return Row(number, None, str(error), identity, cells=cells)
    return Row(
        number,
        Dialogue(identity, tuple(Turn(roles[n], str(r.item)) for n, r in zip(names, rows, strict=True))),
        None,
        identity,
        cells=cells,
    )
