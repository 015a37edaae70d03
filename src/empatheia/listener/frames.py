"""Frames and Series of polars and pandas: their texts out, and the same frame with columns of what was found back."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeVar

from empatheia.errors import DataError, InputTypeError
from empatheia.files.result_table import beside, found_cells
from empatheia.records.analysis import Analysis
from empatheia.records.dialogue import Dialogue
from empatheia.records.reply import Reply
from empatheia.registry import nearest

FOUND = ("emotion", "probability", "side", "causes", "uncertain", "error")
"""Columns of what is understood, as in ``analyze --out NAME.csv``; ``causes`` joined by ``|``."""
ANSWERED = ("reply", *FOUND)
Found = TypeVar("Found", Analysis, Reply)


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame of polars or pandas and what stands in its column of texts.

    Attributes:
        frame: As it was handed in; of a Series the frame of that alone.
        cells: What stands in the column, row by row.
    """

    frame: Any
    cells: Sequence[object]

    def answered(
        self,
        read: Callable[[object], Dialogue],
        ask: Callable[[list[Dialogue]], Sequence[Found]],
        columns: Sequence[str] = FOUND,
    ) -> Any:
        """The same frame, its index kept, with further columns; equal texts are asked about once.

        Rows without a text that can be read have nothing but ``error`` there; how many they are is told by a warning.

        Args:
            read: A text as a conversation, or raises DataError.
            ask: Different conversations to what is found in each.
            columns: Of :data:`ANSWERED`; called ``empatheia_NAME`` where the frame has one of that name.

        Raises:
            DataError: Not one row can be read.
        """
        faults: dict[int, str] = {}
        asked: dict[str, Dialogue] = {}
        for place, cell in enumerate(self.cells):
            try:
                if not isinstance(cell, str):
                    raise DataError("missing." if is_missing(cell) else f"{kind(cell)}; accepted: a text.")
                if cell not in asked:
                    asked[cell] = read(cell)
            except DataError as error:
                faults[place] = str(error)
        if faults:
            self._tell(faults)
        found = dict(zip(asked, map(row_of, ask(list(asked.values()))), strict=True)) if asked else {}
        nothing: Mapping[str, object] = {}
        rows = [
            {"error": faults[place]} if place in faults else found.get(str(cell), nothing)
            for place, cell in enumerate(self.cells)
        ]
        return self._with({name: [row.get(name) for row in rows] for name in columns})

    def _tell(self, faults: Mapping[int, str]) -> None:
        first, why = next(iter(faults.items()))
        told = f"{len(faults):,} of {len(self.cells):,} rows have no text to read"
        if len(faults) == len(self.cells):
            raise DataError(f"{told}; row {first + 1}: {why}")
        warnings.warn(f"{told} and are marked in the column error; row {first + 1}: {why}", UserWarning, stacklevel=4)

    def _with(self, columns: Mapping[str, list[Any]]) -> Any:
        names = beside([str(name) for name in self.frame.columns], columns)
        if not _is_polars(self.frame):
            return self.frame.assign(**{names[name]: values for name, values in columns.items()})
        import polars as pl

        types = {"probability": pl.Float64}
        return self.frame.with_columns(
            pl.Series(names[name], values, types.get(name, pl.String)) for name, values in columns.items()
        )


def frame_of(item: Any, column: str | None) -> Frame | None:
    """A frame or Series with its texts; None if it is neither.

    Raises:
        InputTypeError: A frame's column is not named, or it is a frame of another library.
        DataError: It has no such column, or several.
    """
    if _is_polars(item) and hasattr(item, "collect"):
        item = item.collect()
    if hasattr(item, "to_frame") and not hasattr(item, "columns"):  # a Series
        if column is not None:
            raise InputTypeError(f"column={column!r} goes with a frame; a Series is read as it is.")
        item = item.to_frame()
        return Frame(item, list(item[item.columns[0]]))
    if not hasattr(item, "columns") or not hasattr(item, "__getitem__"):
        return None
    if not (_is_polars(item) or hasattr(item, "assign")):
        raise InputTypeError(f"cannot read {kind(item)}; accepted: a frame of polars or pandas.")
    names = list(item.columns)
    listed = ", ".join(map(str, names))
    if column is None:
        raise InputTypeError(f"a frame needs column=, the name of its column of texts; it has {listed}.")
    if (n := names.count(column)) != 1:
        hint = nearest(str(column), list(map(str, names)))
        raise DataError(f"the frame has {n or 'no'} column{'s' if n > 1 else ''} {column!r}.{hint} It has: {listed}.")
    return Frame(item, list(item[column]))


def row_of(found: Analysis | Reply) -> dict[str, object]:
    """What was found as cells of :data:`ANSWERED`."""
    if isinstance(found, Reply):
        return {"reply": found.text, **found_cells(found.analysis.to_dict())}
    return found_cells(found.to_dict())


def is_missing(cell: object) -> bool:
    """Whether a cell is empty in the way of polars or pandas: None, NaN, NaT, NA."""
    is_none = cell is None or type(cell).__name__ in ("NAType", "NaTType")
    return is_none or (isinstance(cell, Real) and cell != cell)  # an array has no one answer to the latter


def kind(item: Any) -> str:
    """What something is, for messages."""
    if item is None:
        return "None"
    name = type(item).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _is_polars(item: Any) -> bool:
    return type(item).__module__.partition(".")[0] == "polars"
