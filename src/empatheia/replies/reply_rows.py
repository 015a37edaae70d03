"""Replies as rows: JSON lines and CSV, one reply a row, or one item with the replies of several systems.

Several systems: a ``system`` field with one row for each, an object ``replies`` (JSON), or columns ``reply:NAME``.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from empatheia.errors import DataError
from empatheia.reading import Problem, csv_reader, parse_json, report
from empatheia.replies.replies import ReplyFile, SystemReply, file_of, numbered

COLUMNS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "reply": ("reply", "hyp", "hypothesis", "prediction", "pred", "response", "generated", "output"),
        "reference": ("reference", "ref", "gold", "target", "gold_reply"),
        "context": ("context", "contexts", "history", "turns", "dialogue"),
        "emotion": ("emotion", "gold_emotion"),
        "predicted": ("predicted", "predicted_emotion", "predicted_emotions", "pred_emotion"),
        "system": ("system", "model"),
        "replies": ("replies",),
    }
)
"""Field to the names it may have in ``jsonl`` and ``csv``; ``replies`` is an object, system to reply."""

_REPLY_COLUMN = re.compile(r"reply:(.+)", re.IGNORECASE)


def read_jsonl(path: Path, text: str) -> ReplyFile:
    """JSON lines, one object each; raises DataError with the line of the first fault."""
    problems: list[Problem] = []

    def rows() -> Iterator[tuple[int, dict[str, Any]]]:
        for number, line in numbered(text):
            if not line.strip():
                continue
            try:
                row = parse_json(line.lstrip("\ufeff"))
            except ValueError as error:
                problems.append(Problem(str(path), number, f"not valid JSON: {error}. Write one object a line."))
                continue
            if isinstance(row, dict):
                yield number, row
            else:
                kind = type(row).__name__
                problems.append(Problem(str(path), number, f"a JSON {kind}; accepted: an object with a reply."))

    return _read_rows(path, "jsonl", rows(), problems)


def read_csv(path: Path, text: str) -> ReplyFile:
    """A table with a header line; raises DataError with the line of the first fault."""
    problems: list[Problem] = []
    text = text.lstrip("\ufeff")
    header_line = text.partition("\n")[0]
    delimiter = max(",;\t", key=header_line.count)
    header = [name.strip() for name in next(csv_reader([header_line.rstrip("\r")], delimiter=delimiter), [])]
    if len(set(header)) < len(header):
        raise DataError(f"{path}:1: a column name occurs twice: {', '.join(header)}.")

    last = text.rstrip().count("\n") + 1

    def rows() -> Iterator[tuple[int, dict[str, Any]]]:
        reader = csv_reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        end = reader.line_num
        try:
            next(reader)
            end = reader.line_num
            for cells in reader:
                start, end = end + 1, reader.line_num
                if len(cells) == len(header):
                    yield start, dict(zip(header, cells, strict=True))
                elif not cells and len(header) == 1 and last > start:
                    problems.append(Problem(str(path), start, 'a blank line; write "" for a blank reply.'))
                elif cells:
                    problems.append(Problem(str(path), start, f"{len(cells)} cells, the header has {len(header)}."))
        except csv.Error as error:
            problems.append(
                Problem(str(path), end + 1, f"not readable as CSV: {error}. A quotation mark may not be closed.")
            )

    return _read_rows(path, "csv", rows(), problems)


def _read_rows(
    path: Path, format: str, rows: Iterable[tuple[int, dict[str, Any]]], problems: list[Problem]
) -> ReplyFile:
    replies: dict[str, list[SystemReply]] = {}
    for number, row in rows:
        try:
            for reply in _row_replies(row, number):
                replies.setdefault(reply.system, []).append(reply)
        except DataError as error:
            problems.append(Problem(str(path), number, str(error)))
    problems.sort(key=lambda problem: problem.line)
    if not replies and not problems:
        raise DataError(f"{path} holds no row; each needs a reply and, for BLEU, a reference.")
    report(problems, strict=True)
    has_reference = {reply.reference is not None for each in replies.values() for reply in each}
    if len(has_reference) > 1:
        line = next(r.line for each in replies.values() for r in each if r.reference is None)
        raise DataError(f"{path}:{line}: no reference, while other rows have one. Give every row one, or none.")
    return file_of(path, format, replies, {})


def _row_replies(row: Mapping[str, Any], line: int) -> Iterator[SystemReply]:
    """The replies of one row; raises DataError without path and line."""
    given = {key.strip().lower(): value for key, value in row.items() if isinstance(key, str)}
    fields = {name: _field(given, name) for name in COLUMNS}
    by_system = _by_system(row, given, fields)
    reference = None if fields["reference"] is None else _string(fields["reference"], "reference")
    predicted = _predicted(fields["predicted"])
    emotion = _string(fields["emotion"], "emotion").lower() or None
    for system, reply in by_system.items():
        if reply is None:
            raise DataError(f"the reply of {system!r} is null; write an empty text for a blank reply.")
        text, context = _string(reply, "reply"), context_of(fields["context"])
        yield SystemReply(str(system), text, reference, context, emotion, predicted, line)


def _field(given: Mapping[str, Any], name: str) -> Any:
    """The one column that is a field, by any of its names; None if there is none."""
    present = [alias for alias in COLUMNS[name] if given.get(alias) is not None]
    if len(present) > 1:
        raise DataError(f"{' and '.join(map(repr, present))} can both be the {name}; keep or rename one of them.")
    return given[present[0]] if present else None


def _by_system(row: Mapping[str, Any], given: Mapping[str, Any], fields: Mapping[str, Any]) -> Mapping[Any, Any]:
    """System to its reply, unchecked: of an object, of a column each, or the one reply of the row."""
    by_system = fields["replies"]
    if isinstance(by_system, str) and by_system:
        raise DataError("'replies' is a text; accepted: an object of system and reply.")
    named = {key[6:]: value for key, value in row.items() if isinstance(key, str) and _REPLY_COLUMN.fullmatch(key)}
    by_system = by_system or named or None
    if by_system is None:
        if not any(alias in given for alias in COLUMNS["reply"]):
            found = ", ".join(map(repr, list(row)[:12])) or "nothing"
            raise DataError(f"no reply: found {found}; accepted: one of {', '.join(COLUMNS['reply'])}, or replies.")
        return {_string(fields["system"], "system") or "reply": fields["reply"]}
    if fields["reply"] is not None:
        raise DataError("a reply and the replies of several systems are in one row; keep or rename one of them.")
    if not isinstance(by_system, Mapping):
        raise DataError("'replies' is not an object of system and reply.")
    return by_system


def _predicted(value: Any) -> tuple[str, ...]:
    """Predicted emotions from a list, or a text with commas between them."""
    if isinstance(value, str):
        value = value.split(",")
    if value is not None and not isinstance(value, list):
        raise DataError(f"the predicted emotions {value!r:.40} are neither a text nor a list.")
    return tuple(name.lower() for one in value or () if (name := _string(one, "predicted")))


def _string(value: Any, name: str) -> str:
    """A text, or tokens joined by blanks; None is the empty text."""
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(token, str) for token in value):
        return " ".join(value).strip()
    if not isinstance(value, str):
        raise DataError(f"the {name} {value!r:.40} is a JSON {type(value).__name__}; accepted: a text.")
    return value.strip()


def context_of(value: object) -> tuple[str, ...]:
    """Turns from a list of texts or of objects with a text, a JSON list, or a text with tabs between turns."""
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        value = _parsed_turns(value)
    if not isinstance(value, list):
        raise DataError(f"the context {value!r:.40} is neither a text nor a list of turns.")
    turns = [turn.get("text") if isinstance(turn, dict) else turn for turn in value]
    texts = tuple(turn.strip() for turn in turns if isinstance(turn, str))
    if len(texts) < len(turns):
        raise DataError(f"the context {value!r:.40} holds a turn that is neither a text nor an object with a text.")
    return texts


def _parsed_turns(text: str) -> list[Any]:
    """A JSON list, or turns with tabs between them."""
    if text.lstrip().startswith("["):
        try:
            value = parse_json(text)
        except ValueError:
            value = None
        if isinstance(value, list) and all(isinstance(turn, str | dict) for turn in value):
            return value
    return text.split("\t")
