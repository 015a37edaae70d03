"""How far a download is; of rows see :mod:`empatheia.listener.progress`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


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
