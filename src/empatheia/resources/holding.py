"""Keeps a second process from writing where one is writing."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from empatheia.errors import DataError, EmpatheiaError


def hold_file(stream: IO[Any], path: str | Path) -> None:
    """Holds an open file against other writers while it is open, where the system can; a kill lets go of it.

    Who holds a file gives it its final name, or removes it, before closing it: then nobody else held it in between.

    Args:
        stream: What is held, opened by ``path``.
        path: Of the file.

    Raises:
        DataError: Another process writes to it, or has put another file in its place since it was opened.
    """
    refusal = DataError(f"another process is writing to {path}. Wait for it, or name another file.")
    _hold(stream.fileno(), refusal)
    with contextlib.suppress(OSError):
        if os.path.samestat(os.fstat(stream.fileno()), Path(path).stat()):
            return
    raise refusal


@contextlib.contextmanager
def hold_folder(folder: Path, refusal: EmpatheiaError) -> Iterator[None]:
    """Holds a folder itself, which nobody replaces, against others that do the same; see :func:`hold_file`.

    Args:
        folder: That is there; it need not be writable.
        refusal: Raised if another one holds it.
    """
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # a system that does not open folders, or one we may not read
        yield
        return
    try:
        _hold(handle, refusal)
        yield
    finally:
        os.close(handle)


def _hold(handle: int, refusal: EmpatheiaError) -> None:
    try:
        import fcntl
    except ImportError:  # not on this system
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise refusal from None
    except OSError:  # a file system without locks
        return
