"""How far a long command is: a bar on a terminal, else a line now and then, both with rate and time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from empatheia.curation.run import Progress as ShardProgress

SECONDS_BETWEEN = 30.0
"""Seconds between two lines where no bar can be drawn."""
_RATE_SECONDS = 600.0  # over which a bar's rate is measured; a chunk of rows may take a minute


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


@contextmanager
def download_bar(total: int | None = None) -> Iterator[Callable[[int, int | None], None]]:
    """Gives ``advance(bytes so far, total)``, which draws on stderr if that is a terminal.

    Args:
        total: Bytes of the file, where they are known before the server says.
    """
    if not sys.stderr.isatty():
        yield lambda done, size: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TransferSpeedColumn

    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total)
        yield lambda done, size: progress.update(task, completed=done, total=size or total)


def told_shards() -> Callable[[ShardProgress], None]:
    """Tells on stderr how far work in shards is: each stage's first and last line, and one now and then."""
    from empatheia.cli.output import say

    told = 0.0

    def tell(progress: ShardProgress) -> None:
        nonlocal told
        now = time.monotonic()
        is_end = progress.done == progress.total
        if not is_end and now - told < SECONDS_BETWEEN:
            return
        told = now
        left = "" if is_end or progress.seconds_left is None else f", {_duration(progress.seconds_left)} left"
        say(f"{progress.stage}: {progress.done:,} of {progress.total:,} shards{left}")

    return tell


def _lines(total: int | None, done: int) -> Callable[[int], None]:
    from empatheia.cli.output import say

    start = told = time.monotonic()
    n_done = done

    def advance(n: int) -> None:
        nonlocal n_done, told
        n_done += n
        now = time.monotonic()
        if now - told < SECONDS_BETWEEN:
            return
        told = now
        rate = (n_done - done) / (now - start)
        of_all = "" if total is None else f" of {total:,}"
        left = "" if total is None or not rate else f", {_duration((total - n_done) / rate)} left"
        say(f"{n_done:,}{of_all} rows, {_rate(rate)}{left}")

    return advance


def _rate(rate: float) -> str:
    return f"{rate:,.0f} rows/s" if rate >= 10 else f"{rate:.2g} rows/s"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{max(0.0, seconds):.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"
