"""How far downloads and work in shards are; of rows see :mod:`empatheia.listener.progress`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from empatheia.cli.output import say
from empatheia.listener.progress import SECONDS_BETWEEN, duration

if TYPE_CHECKING:
    from empatheia_people.curation.run import Progress as ShardProgress


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
    told = 0.0

    def tell(progress: ShardProgress) -> None:
        nonlocal told
        now = time.monotonic()
        is_end = progress.done == progress.total
        if not is_end and now - told < SECONDS_BETWEEN:
            return
        told = now
        left = "" if is_end or progress.seconds_left is None else f", {duration(progress.seconds_left)} left"
        say(f"{progress.stage}: {progress.done:,} of {progress.total:,} shards{left}")

    return tell
