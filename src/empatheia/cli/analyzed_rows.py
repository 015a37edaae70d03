"""Rows of a file with what was found in each, and as they are written, the same however the file is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from empatheia.cli.rows import answer_each
from empatheia.errors import DataError
from empatheia.files.rows import Row

if TYPE_CHECKING:
    from empatheia.dialogue import Dialogue, Understanding
    from empatheia.listener import Listener

ROWS_PER_CHUNK = 256
"""Rows that are read, and then written, together: what a kill loses at most; equal texts among them are read once."""


def analyzed(
    listener: Listener, chunk: list[Row], batch_size: int, advance: Callable[[int], None] = lambda n: None
) -> Iterator[tuple[Row, Understanding | str]]:
    """Each row of a chunk with its understanding, or with what is wrong with it."""
    from empatheia.listener import as_dialogue

    faults: dict[int, str] = {}
    good: list[Dialogue] = []
    for row in chunk:
        try:
            if row.error is not None or row.item is None:
                raise DataError(row.error or "is empty.")
            good.append(as_dialogue(row.item))
        except DataError as error:
            faults[row.number] = str(error)
    advance(len(faults))
    results = iter(
        answer_each(lambda items, moved: listener.analyze(items, batch_size=batch_size, progress=moved), good, advance)
    )
    for row in chunk:
        yield row, faults[row.number] if row.number in faults else next(results)


def plain_record(row: Row, result: Understanding | str, given: Sequence[str] = ()) -> dict[str, object]:
    """A row's result as it is written; ``given`` are the caller's columns that are kept."""
    identity = {} if row.id is None else {"id": row.id}
    identity |= {"cells": [dict(cells) for cells in row.cells]} if given else {}
    content = {"error": result} if isinstance(result, str) else result.to_dict()
    return {"row": row.number, **identity, **content}
