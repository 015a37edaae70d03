"""Keeps a second process from writing where one is writing."""

from __future__ import annotations

from typing import IO, Any

from empatheia.errors import DataError, EmpatheiaError


def hold(stream: IO[Any], refusal: EmpatheiaError) -> None:
    """Holds an open file against other writers while it is open, where the system can; a kill lets go of it.

    Args:
        stream: What is held.
        refusal: Raised if another one holds the file.
    """
    try:
        import fcntl
    except ImportError:  # not on this system
        return
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise refusal from None
    except OSError:  # a file system without locks
        return


def hold_file(stream: IO[Any], path: object) -> None:
    """:func:`hold`, for a file that rows are added to.

    Raises:
        DataError: Another process writes to it.
    """
    hold(stream, DataError(f"another process is writing to {path}. Wait for it, or name another file."))
