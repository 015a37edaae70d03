"""Keeps a second process from writing where one is writing, and lines of several processes apart."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Protocol

from empatheia.errors import DataError, EmpatheiaError
from empatheia.reading import parse_json

_MOST_WAITED = 30.0
_BLOCK = 1 << 16


class OpenFile(Protocol):
    """An open file of the system."""

    def fileno(self) -> int:
        """Its number."""
        ...


def hold_file(stream: OpenFile, path: str | Path) -> None:
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


def append_line(path: str | Path, line: str) -> None:
    """Adds a line of JSON to a file that several processes may add to at once.

    What a kill has left of a line is taken away first, by whoever comes next.

    Args:
        path: Made if it is not there.
        line: A JSON object, without a line end.

    Raises:
        DataError: Others hold the file for half a minute, or it ends in something that is no line of JSON.
        OSError: It cannot be written.
    """
    path, begun = Path(path), time.monotonic()
    refusal = DataError(f"other processes keep {path} held. Wait for them, or name another file.")
    with path.open("a+b") as stream:
        while True:
            try:
                _hold(stream.fileno(), refusal)
                break
            except DataError:
                if time.monotonic() - begun > _MOST_WAITED:
                    raise
                time.sleep(0.005)
        stream.seek(0, os.SEEK_END)
        tail = _tail(stream)
        is_whole = not tail or is_whole_line(tail, path)
        if not is_whole:
            stream.truncate(stream.tell() - len(tail))
        stream.write((b"\n" if tail and is_whole else b"") + line.encode("utf-8", "replace") + b"\n")


def _tail(stream: IO[bytes]) -> bytes:
    """What stands behind the last line end; the place in the stream is its end again."""
    end = place = stream.tell()
    tail = b""
    while place and b"\n" not in tail:
        place = max(0, place - _BLOCK)
        stream.seek(place)
        tail = stream.read(min(_BLOCK, end - place - len(tail))) + tail
    stream.seek(end)
    return tail.rpartition(b"\n")[2]


def is_whole_line(tail: bytes, path: str | Path) -> bool:
    """Whether the end of a file of JSON lines, which has no line end, is a line; if not, a kill has cut it.

    Raises:
        DataError: It is neither: the file is of another kind.
    """
    with contextlib.suppress(ValueError):
        parse_json(tail)
        return True
    if tail.startswith(b'{"'):
        return False
    raise DataError(f"{path} does not end in a line of JSON; name another file.")


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
