"""How far a long analysis is: a bar on a terminal, else a line now and then, both with rate and time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SECONDS_BETWEEN = 30.0
"""Seconds between two lines where no bar can be drawn."""
_RATE_SECONDS = 600.0  # over which a bar's rate is measured; a chunk of rows may take a minute

Told = Callable[[int], None] | None
"""Called with the number of inputs just finished."""


@contextmanager
def told(progress: Told | bool, total: int) -> Iterator[Told]:
    """What a caller wants to be told of ``total`` inputs: True = a bar, False or None = nothing, or it is called."""
    if progress is True:
        with progress_bar(total, 0) as advance:
            yield advance
    else:
        yield progress or None


@contextmanager
def progress_bar(total: int | None, done: int) -> Iterator[Callable[[int], None]]:
    """Gives ``advance(n)``, which tells on stderr that ``n`` more rows are finished.

    Args:
        total: Rows of the input, or None.
        done: Rows an earlier run finished; they do not count for the rate.
    """
    if not sys.stderr.isatty():
        yield _lines(total, done)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text("" if task.speed is None else _rate(task.speed), style="progress.data.speed")

    columns = (TextColumn("analyzing"), BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, speed_estimate_period=_RATE_SECONDS) as progress:
        task = progress.add_task("analyzing", total=total, completed=done)
        yield lambda n: progress.advance(task, n)


def _lines(total: int | None, done: int) -> Callable[[int], None]:
    start = last = time.monotonic()
    n_done = done

    def advance(n: int) -> None:
        nonlocal n_done, last
        n_done += n
        now = time.monotonic()
        if now - last < SECONDS_BETWEEN:
            return
        last = now
        rate = (n_done - done) / (now - start)
        of_all = "" if total is None else f" of {total:,}"
        left = "" if total is None or not rate else f", {duration((total - n_done) / rate)} left"
        sys.stderr.write(f"{n_done:,}{of_all} rows, {_rate(rate)}{left}\n")
        sys.stderr.flush()

    return advance


def _rate(rate: float) -> str:
    return f"{rate:,.0f} rows/s" if rate >= 10 else f"{rate:.2g} rows/s"


def duration(seconds: float) -> str:
    """Seconds in words: ``40 s``, ``12 min``, ``2 h 05 min``."""
    if seconds < 60:
        return f"{max(0.0, seconds):.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"
