"""Analyses as rows of a table: what ``analyze --out`` and a server's downloads hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

CSV_COLUMNS = ("row", "id", "text", "emotion", "probability", "causes", "uncertain", "error")
_FORMULA_STARTS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # the latter full-width
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")


def flat(record: dict[str, Any]) -> dict[str, Any]:
    """A result row as CSV cells: the strongest emotion, the last turn, causes joined by ``|``."""
    cells: dict[str, Any] = {
        "row": record["row"],
        "id": record.get("id", ""),
        "error": record.get("error", ""),
    }
    if "emotions" in record:
        cells["text"] = record["turns"][-1]["text"]
        if record["emotion"] is not None:
            cells["emotion"] = record["emotion"]
            cells["probability"] = f"{record['emotions'][record['emotion']]:.4f}"
        cells["causes"] = " | ".join(cause["text"] for cause in record["causes"])
        cells["uncertain"] = "; ".join(record["uncertain"])
    return cells


def beside_given(
    given: Sequence[str], own: Sequence[str], cells: Callable[[dict[str, Any]], list[dict[str, Any]]]
) -> tuple[list[str], Callable[[dict[str, Any]], list[dict[str, Any]]]]:
    """A table in which the caller's columns stand unchanged, in front of ours.

    Where both have a column, ours is called ``empatheia_NAME``; ``id`` and ``text`` are the caller's.

    Args:
        given: The caller's columns; a record has its cells of them under ``cells``, one mapping a row.
        own: Our columns.
        cells: A record as rows of these.

    Returns:
        All columns, and a record as rows of them; each of the caller's rows is there, in order.
    """
    names = {name: f"empatheia_{name}" if name in given else name for name in own}
    for name in {"id", "text"}.intersection(given):
        del names[name]

    def rows(record: dict[str, Any]) -> list[dict[str, Any]]:
        theirs, ours = list(record.get("cells", ())), cells(record)
        ours += [{key: ours[-1].get(key, "") for key in ("row", "error")} for _ in theirs[len(ours) :]]
        theirs += theirs[-1:] * (len(ours) - len(theirs))
        shown = [{names[key]: value for key, value in row.items() if key in names} for row in ours]
        return [{**row, **mine} for row, mine in zip(theirs, shown, strict=True)] if theirs else shown

    return [*given, *names.values()], rows


def as_text(cell: object) -> object:
    """A cell that a spreadsheet shows and does not compute: an apostrophe goes before ``=``, ``+``, ``-`` and ``@``.

    >>> as_text("=HYPERLINK(A1)"), as_text("@me"), as_text("-0.5"), as_text("fine"), as_text(-3)
    ("'=HYPERLINK(A1)", "'@me", '-0.5', 'fine', -3)
    """
    if not isinstance(cell, str) or not cell.lstrip().startswith(_FORMULA_STARTS) or _NUMBER.fullmatch(cell):
        return cell
    return f"'{cell}"
