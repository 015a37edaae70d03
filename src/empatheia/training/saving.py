"""Files that are there whole or not at all, whenever a run is killed and however full the disk is."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from safetensors import SafetensorError

from empatheia.errors import CheckpointError

WRITE_PROBLEMS = (OSError, RuntimeError, SafetensorError)  # torch and safetensors wrap a full disk into their own


def cannot_write(place: Path, problem: Exception) -> CheckpointError:
    """The one-line error for a place that cannot be written."""
    reason = getattr(problem, "strerror", None) or " ".join(str(problem).split())[:200]
    return CheckpointError(f"cannot write {place}: {reason}. Free some space or choose another --out.")


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


def save_folder(target: Path, save: Callable[[Path], object]) -> None:
    """Fills a new folder by ``save(folder)`` and moves it into place when it is whole.

    Raises:
        CheckpointError: The disk is full; nothing half-written stays.
    """
    part = target.with_name(target.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir(parents=True)
        save(part)
        shutil.rmtree(target, ignore_errors=True)
        part.replace(target)
    except WRITE_PROBLEMS as problem:
        shutil.rmtree(part, ignore_errors=True)
        raise cannot_write(target, problem) from None
    except Exception as problem:
        shutil.rmtree(part, ignore_errors=True)
        if "(os error " in str(problem):  # tokenizers raises a bare Exception
            raise cannot_write(target, problem) from None
        raise
