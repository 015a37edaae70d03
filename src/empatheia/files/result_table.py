"""Analyses as rows of a table, and the one writer of CSV: what leaves the house opens in a spreadsheet as text."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from empatheia.taxonomy import POSITIVE_EMOTIONS

CSV_COLUMNS = ("row", "id", "text", "emotion", "probability", "side", "causes", "uncertain", "error")
_FORMULA_STARTS = ("=", "+", "-", "@", "\u2212", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # the last four full-width
_UNSEEN = re.compile("[\\s\u200b-\u200f\u2060\ufeff]*")
"""What a spreadsheet may skip in front of a formula."""
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
_PIECE = 1 << 16  # characters of CSV that are handed on together


def found_cells(record: Mapping[str, Any]) -> dict[str, Any]:
    """What was found, by name: the strongest emotion, its probability, the side, causes joined by ``|``, doubts.

    Args:
        record: Of ``Analysis.to_dict``.
    """
    emotion = record["emotion"]
    named = {} if emotion is None else {"emotion": emotion, "probability": record["emotions"][emotion]}
    return {
        **named,
        "side": side_of(emotion, record.get("sides")),
        "causes": " | ".join(cause["text"] for cause in record["causes"]),
        "uncertain": "; ".join(record["uncertain"]),
    }


def side_of(emotion: str | None, sides: Mapping[str, float] | None) -> str | None:
    """Pleasant, unpleasant or mixed: as the model says, else as the emotion is; None where neither is named."""
    if sides:
        return max(sides, key=lambda name: sides[name])
    return None if emotion is None else "pleasant" if emotion in POSITIVE_EMOTIONS else "unpleasant"


def flat(record: dict[str, Any]) -> dict[str, Any]:
    """A result row as cells of :data:`CSV_COLUMNS`, the probability to four places; ``text`` is the last turn's."""
    cells: dict[str, Any] = {"row": record["row"], "id": record.get("id", ""), "error": record.get("error", "")}
    if "emotions" in record:
        cells |= {"text": record["turns"][-1]["text"], **found_cells(record)}
        if "probability" in cells:
            cells["probability"] = f"{cells['probability']:.4f}"
    return cells


def beside(given: Iterable[str], own: Iterable[str]) -> dict[str, str]:
    """Our columns to what they are called beside the caller's: ``empatheia_NAME`` where both have one.

    >>> beside(["text", "emotion"], ["emotion", "side"])
    {'emotion': 'empatheia_emotion', 'side': 'side'}
    """
    taken, names = set(given), {}
    for name in own:
        shown = name
        while shown in taken:
            shown = f"empatheia_{shown}"
        names[name] = shown
    return names


def beside_file(
    given: Sequence[str], own: Sequence[str], cells: Callable[[dict[str, Any]], list[dict[str, Any]]]
) -> tuple[list[str], Callable[[dict[str, Any]], list[dict[str, Any]]]]:
    """As :func:`beside_given` for the columns of a whole file, which has the texts and their ids already."""
    return beside_given(given, [name for name in own if not given or name not in ("id", "text")], cells)


def beside_given(
    given: Sequence[str], own: Sequence[str], cells: Callable[[dict[str, Any]], list[dict[str, Any]]]
) -> tuple[list[str], Callable[[dict[str, Any]], list[dict[str, Any]]]]:
    """A table in which the caller's columns stand unchanged, in front of ours; see :func:`beside`.

    Args:
        given: The caller's columns; a record has its cells of them under ``cells``, one mapping a row.
        own: Our columns.
        cells: A record as rows of these.

    Returns:
        All columns, and a record as rows of them; each of the caller's rows is there, in order.
    """
    if not given:
        return list(own), cells
    names = beside(given, own)

    def rows(record: dict[str, Any]) -> list[dict[str, Any]]:
        theirs, ours = list(record.get("cells", ())), cells(record)
        ours += [{key: ours[-1].get(key, "") for key in ("row", "error")} for _ in theirs[len(ours) :]]
        theirs += theirs[-1:] * (len(ours) - len(theirs))
        shown = [{names[key]: value for key, value in row.items() if key in names} for row in ours]
        return [{**row, **mine} for row, mine in zip(theirs, shown, strict=True)] if theirs else shown

    return [*given, *names.values()], rows


def csv_pieces(
    columns: Sequence[str], rows: Iterable[Mapping[str, object]], keeps_formulas: bool = False
) -> Iterator[str]:
    """A table as CSV, piece by piece: cells and column names are :func:`as_text`.

    Args:
        columns: Names, in order.
        rows: Cells by name; one that a row lacks is empty, one of no column is left
            out; yes and no are ``true`` and ``false``.
        keeps_formulas: Leave what a spreadsheet would compute.
    """

    def shown(cell: object) -> object:
        if isinstance(cell, bool):
            return str(cell).lower()
        return cell if keeps_formulas else as_text(cell)

    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow([shown(name) for name in columns])
    for row in rows:
        writer.writerow([shown(row.get(name)) for name in columns])
        if stream.tell() > _PIECE:
            yield stream.getvalue()
            stream.seek(0)
            stream.truncate()
    yield stream.getvalue()


def as_text(cell: object) -> object:
    """A cell that a spreadsheet shows and does not compute.

    An apostrophe goes before ``=``, ``+``, ``-``, ``@``, a tab and a line break, but for numbers.

    >>> as_text("=HYPERLINK(A1)"), as_text("@me"), as_text("-0.5"), as_text("fine"), as_text(-3)
    ("'=HYPERLINK(A1)", "'@me", '-0.5', 'fine', -3)
    """
    if not isinstance(cell, str) or _NUMBER.fullmatch(cell):
        return cell
    is_risky = cell.startswith(("\t", "\r", "\n")) or _UNSEEN.sub("", cell, count=1).startswith(_FORMULA_STARTS)
    return f"'{cell}" if is_risky else cell
