"""The one way through many rows: chunks in constant memory, an answer or a fault for each, a result that is resumed.

Used by ``analyze`` with and without parts, by its shards, and by the background analyses of a server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from empatheia.errors import DataError, EmpatheiaError
from empatheia.files.result_file import ResultFile
from empatheia.files.rows import Row, Say
from empatheia.records.dialogue import Dialogue

ROWS_PER_CHUNK = 256
"""Rows that are read, and then written, together: what a kill loses at most; equal texts among them are read once."""
LISTED = 10
"""Numbers of bad rows that are told at the end; each was told when it came."""

Advance = Callable[[int], None]
"""Moves a progress bar by a number of items."""


class Result(Protocol):
    """What is said of a conversation."""

    def to_dict(self) -> dict[str, Any]:
        """As it is written."""
        ...


Item = TypeVar("Item")
Answer = TypeVar("Answer")
Found = TypeVar("Found", bound=Result)
Sink = Callable[[Row, "Found | str", dict[str, Any]], None]
"""Is given each row, its result or what is wrong with it, and the record of both."""


# -- one chunk -----------------------------------------------------------------------------------------------


def usable(chunk: Sequence[Row], read: Callable[[str | Dialogue], Dialogue]) -> tuple[list[Dialogue], dict[int, str]]:
    """The conversations of a chunk, in order, and by their places what is wrong with the other rows.

    Args:
        chunk: Rows.
        read: Makes a conversation of a row's item, or raises DataError.
    """
    good: list[Dialogue] = []
    faults: dict[int, str] = {}
    for place, row in enumerate(chunk):
        try:
            if row.error is not None or row.item is None:
                raise DataError(row.error or "is empty.")
            good.append(read(row.item))
        except DataError as error:
            faults[place] = str(error)
    return good, faults


def joined(
    chunk: Sequence[Row], faults: Mapping[int, str], answers: Iterable[Answer | str]
) -> Iterator[tuple[Row, Answer | str]]:
    """Each row of a chunk with its answer or fault, from what :func:`usable` gave and the answers to its first part."""
    rest = iter(answers)
    for place, row in enumerate(chunk):
        yield row, faults[place] if place in faults else next(rest)


def record_of(row: Row, result: Result | str, has_cells: bool = False) -> dict[str, Any]:
    """A row's result as it is written.

    Args:
        row: Of the input; its ``id`` counts before that of the result.
        result: What was found, or what is wrong.
        has_cells: Keep the caller's own columns under ``cells``.
    """
    content = {"error": result} if isinstance(result, str) else result.to_dict()
    if content.get("id") == "":
        del content["id"]
    identity = {} if row.id is None else {"id": row.id}
    cells = {"cells": [dict(cells) for cells in row.cells]} if has_cells else {}
    return {"row": row.number, **identity, **content, **identity, **cells}


def answer_each(
    ask: Callable[[list[Item], Advance], Iterable[Answer]], items: list[Item], advance: Advance
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

    faults: list[Exception] = []
    answers = _answered(ask, items, moved, faults)
    if len(items) > 1 and all(isinstance(answer, str) for answer in answers):
        raise faults[0]
    moved(len(items) - n_told)
    return answers


def _answered(
    ask: Callable[[list[Item], Advance], Iterable[Answer]], part: list[Item], moved: Advance, faults: list[Exception]
) -> list[Answer | str]:
    """No function within another, which would hold itself and every chunk until garbage is collected."""
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
    return _answered(ask, part[:half], moved, faults) + _answered(ask, part[half:], moved, faults)


# -- all of them ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Work(Generic[Found]):
    """What is done with rows.

    Attributes:
        read: Makes a conversation of a row's item, or raises DataError.
        ask: Takes conversations and a call that moves the progress bar; gives a result for each.
        n_rows: Most rows of a chunk.
        n_turns: A chunk with so many turns takes no further row; None = any number.
    """

    read: Callable[[str | Dialogue], Dialogue]
    ask: Callable[[list[Dialogue], Advance], Iterable[Found]]
    n_rows: int = ROWS_PER_CHUNK
    n_turns: int | None = None

    def answers(self, chunk: Sequence[Row], advance: Advance = lambda n: None) -> Iterator[tuple[Row, Found | str]]:
        """Each row of a chunk with its result, or with what is wrong with it."""
        good, faults = usable(chunk, self.read)
        advance(len(faults))
        return joined(chunk, faults, answer_each(self.ask, good, advance))

    def chunks(self, rows: Iterable[Row]) -> Iterator[list[Row]]:
        """The rows in lists that are worked at together."""
        chunk: list[Row] = []
        n_turns = 0
        for row in rows:
            chunk.append(row)
            n_turns += len(row.item.turns) if isinstance(row.item, Dialogue) else 1
            if len(chunk) == self.n_rows or (self.n_turns is not None and n_turns >= self.n_turns):
                yield chunk
                chunk, n_turns = [], 0
        if chunk:
            yield chunk


@dataclass
class Tally:
    """How many rows were used, and which were not: counted as they come, told at the end.

    Attributes:
        say: Tells a line.
        n_good: Used, those of an earlier run among them.
        n_bad: Not used, likewise.
        bad: Numbers of the first bad rows of this run, one more than are listed.
    """

    say: Say
    n_good: int = 0
    n_bad: int = 0
    bad: list[int] = field(default_factory=list)

    def add(self, number: int, fault: str | None) -> None:
        """Counts a row; says at once what is wrong with it."""
        if fault is None:
            self.n_good += 1
            return
        self.n_bad += 1
        if len(self.bad) <= LISTED:
            self.bad.append(number)
        self.say(f"row {number}: {fault}")

    def tell(self, places: Sequence[str]) -> None:
        """Says the numbers and where the results are; nothing if all is well and nothing was written.

        Raises:
            DataError: Not one row could be used.
        """
        if self.n_bad or places:
            listed = ", ".join(map(str, self.bad[:LISTED])) + (" ..." if len(self.bad) > LISTED else "")
            numbers = f"{self.n_good + self.n_bad:,} rows, {self.n_bad:,} bad{f' ({listed})' if self.bad else ''}"
            self.say("; ".join([numbers, *places]))
        if self.n_bad and not self.n_good:
            raise DataError("no row could be used; see the messages above.")


def run(
    work: Work[Found],
    rows: Iterator[Row],
    sinks: Sequence[Sink[Found]],
    *,
    bar: Callable[[int], AbstractContextManager[Advance]],
    say: Say,
    file: ResultFile | None = None,
    check: Callable[[ResultFile], None] = lambda file: None,
    again: Callable[[dict[str, Any]], None] = lambda record: None,
) -> Tally:
    """Works through all rows, chunk by chunk, in constant memory.

    Args:
        work: What is done with them.
        rows: The input from its beginning.
        sinks: Are given each row in order.
        bar: Opens a progress bar that stands at a number of rows.
        say: Tells a line.
        file: Results are written to it, too; one that is resumed goes on after its last row.
        check: Looks at the file when it is open and its finished rows are known; raises what speaks against it.
        again: Is given the record of each row that an earlier run finished.

    Raises:
        DataError: The file is of another input or other models, or is held by another process.
    """
    tally = Tally(say)
    with ExitStack() as stack:
        n_before = 0
        if file is not None:
            stack.enter_context(file)
            check(file)
            if n_before := file.n_done:
                say(f"continuing after row {n_before:,} of {file.partial}")
                for record in file.finished(rows, work.read):
                    tally.n_good += "error" not in record
                    tally.n_bad += "error" in record
                    again(record)
        move = _by_rows(stack.enter_context(bar(n_before)), n_before)
        for chunk in work.chunks(rows):
            for row, result in work.answers(chunk, move(chunk)):
                tally.add(row.number, result if isinstance(result, str) else None)
                record = record_of(row, result, has_cells=file is not None and file.has_cells)
                if file is not None:
                    file.write(record)
                for sink in sinks:
                    sink(row, result, record)
            if file is not None:
                file.flush()
    return tally


def _by_rows(advance: Advance, last: int) -> Callable[[list[Row]], Advance]:
    """For each chunk, a call that takes numbers of conversations and moves the bar by the input rows they stand for.

    Args:
        advance: Moves the bar.
        last: Number of the row it stands at.
    """

    def of_chunk(chunk: list[Row]) -> Advance:
        n_done = 0

        def done(n: int) -> None:
            nonlocal last, n_done
            n_done = min(len(chunk), n_done + n)
            if n_done and chunk[n_done - 1].number > last:
                advance(chunk[n_done - 1].number - last)
                last = chunk[n_done - 1].number

        return done

    return of_chunk
