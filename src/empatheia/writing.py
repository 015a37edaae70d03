"""Files and folders that are there whole or not at all, whenever a run is killed and however full the disk is.

Also keeps a second process from writing where one is writing, and the lines of several processes apart.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Protocol

from safetensors import SafetensorError

from empatheia.errors import CheckpointError, DataError, EmpatheiaError
from empatheia.reading import parse_json, read_record

MADE = ".empatheia-made.json"
"""Lies in every folder that :func:`save_folder` made and names what it put there."""
_LITTER = frozenset((".DS_Store", "Thumbs.db", "desktop.ini"))
_OURS = frozenset(("recipe.yaml", "README.md"))
_OUR_KINDS = frozenset((".json", ".safetensors", ".txt", ".model", ".npy", ".npz", ".jinja"))
_MOST_WAITED = 30.0
_BLOCK = 1 << 16


WRITE_PROBLEMS = (OSError, RuntimeError, SafetensorError)
"""What a full disk may raise: torch and safetensors wrap it into errors of their own."""


def cannot_write(place: Path, problem: Exception) -> CheckpointError:
    """The one-line error for a place that cannot be written."""
    reason = getattr(problem, "strerror", None) or " ".join(str(problem).split())[:200]
    return CheckpointError(f"cannot write {place}: {reason}. Free some space or choose another --out.")


@contextlib.contextmanager
def whole_file(path: Path, durable: bool = False) -> Iterator[Path]:
    """A place to write a file that stands under its name once it is whole; nothing is left of one that is not.

    The place is this call's own: of several that write the same file at once, the last to end stays.

    Args:
        path: Of the file; its folder is there.
        durable: What was written is on the disk before the file gets its name.

    Raises:
        OSError: The disk is full or the place cannot be written.
    """
    part = path.with_name(f"{path.name}.{os.getpid()}-{time.monotonic_ns():x}.part")
    try:
        yield part
        if durable:
            handle = os.open(part, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        part.replace(path)
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    """Writes a text file by :func:`whole_file`; half surrogates become question marks.

    Raises:
        OSError: The disk is full or the place cannot be written.
    """
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8", errors="replace")


def check_place(path: Path) -> None:
    """Whether a file can be written there.

    Raises:
        DataError: The folder does not exist, or the path is a folder.
    """
    if path.is_dir():
        raise DataError(f"{path} is a folder; name a file, e.g. {path / 'report.html'}.")
    if not path.absolute().parent.is_dir():
        raise DataError(f"the folder {path.absolute().parent} does not exist; create it first.")


def write_atomically(path: Path, text: str) -> None:
    """Writes a text file so that it is there whole or not at all.

    Raises:
        CheckpointError: The disk is full or the place cannot be written; nothing half-written stays.
    """
    part = path.with_name(path.name + ".part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as problem:
        part.unlink(missing_ok=True)
        raise cannot_write(path, problem) from None


def copy_atomically(source: Path, target: Path) -> None:
    """Copies a file so that it is there whole or not at all.

    Raises:
        CheckpointError: The disk is full or the place cannot be written; nothing half-written stays.
    """
    part = target.with_name(target.name + ".part")
    try:
        shutil.copyfile(source, part)
        part.replace(target)
    except OSError as problem:
        part.unlink(missing_ok=True)
        raise cannot_write(target, problem) from None


def save_folder(target: Path, save: Callable[[Path], object]) -> None:
    """Fills a new folder by ``save(folder)`` and moves it into place when it is whole.

    A folder that is there is replaced only if this function made it and nothing was added to it since.

    Raises:
        CheckpointError: Something that is not ours is in the place, or the disk is full; nothing half-written stays.
    """
    target = target.resolve() if target.name in ("", "..") else target  # ``.`` has no name
    part = target.with_name(target.name + ".part")
    check_replaceable(target)
    check_replaceable(part)
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir(parents=True)
        _mark(part, is_whole=False)
        save(part)
        _mark(part)
        check_replaceable(target)  # filling it may have taken hours
        shutil.rmtree(target, ignore_errors=True)
        part.replace(target)
    except (OSError, RuntimeError) as problem:  # torch wraps a full disk
        shutil.rmtree(part, ignore_errors=True)
        raise cannot_write(target, problem) from None
    except Exception as problem:
        shutil.rmtree(part, ignore_errors=True)
        if "(os error " in str(problem):  # so do tokenizers, in a bare Exception, and safetensors
            raise cannot_write(target, problem) from None
        raise


def check_replaceable(target: Path) -> None:
    """Whether a folder may be written in a place: nothing is there, or an empty folder, or one that we made.

    Raises:
        CheckpointError: Something else is there; it is left as it is.
    """
    if not (target.exists() or target.is_symlink()):
        return
    remedy = "It is left as it is; name another folder, or move it away."
    if target.is_symlink() or not target.is_dir():
        raise CheckpointError(f"{target} exists and was not made here. {remedy}")
    there = {path.name for path in target.iterdir()} - _LITTER
    ours = _made_in(target)
    if not there or (ours is None and _is_of_run(target)):
        return
    if ours is None:
        raise CheckpointError(f"{target} exists and was not made by empatheia. {remedy}")
    if added := sorted(there - ours):
        raise CheckpointError(f"{target} also holds what was not made by empatheia: {', '.join(added[:3])}. {remedy}")


def is_run(folder: Path) -> bool:
    """Whether a folder is a run folder."""
    return (folder / "recipe.yaml").is_file() and (folder / "environment.json").is_file()


def _mark(folder: Path, is_whole: bool = True) -> None:
    """Notes in a folder that we made it, and what is in it; nothing yet while it is filled."""
    made = sorted(path.name for path in folder.iterdir()) if is_whole else None
    write_atomically(folder / MADE, json.dumps({"format": 1, "made": made}, indent=1))


def _made_in(folder: Path) -> set[str] | None:
    """Names of what we put into a folder; None if we did not make it.

    A model folder of an earlier version has no mark and is known by its manifest.
    """
    if (mark := _object(folder / MADE)) is not None:
        made = mark.get("made")
        return {path.name for path in folder.iterdir()} if made is None else {MADE, *map(str, made)}
    manifest = _object(folder / "empatheia.json") or {}
    if "format" not in manifest or not {"system", "name", "kind"} & manifest.keys():
        return None
    return {path.name for path in folder.iterdir() if path.name in _OURS or path.suffix in _OUR_KINDS}


def _is_of_run(folder: Path) -> bool:
    """Whether a folder is one that a run keeps: ``checkpoint``, ``tokenizer``, the weights of a stage."""
    if folder.parent.name == "stages":
        return is_run(folder.parent.parent)
    return folder.name.removesuffix(".part") in ("checkpoint", "tokenizer") and is_run(folder.parent)


def _object(path: Path) -> dict[str, Any] | None:
    """A JSON object of a file, or None."""
    try:
        record = read_record(path)
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) else None


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
