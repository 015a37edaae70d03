"""Files that are there whole or not at all, whenever a run is killed and however full the disk is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from empatheia.errors import CheckpointError
from empatheia.reading import read_record

WRITE_PROBLEMS = (OSError, RuntimeError, SafetensorError)  # torch and safetensors wrap a full disk into their own
MADE = ".empatheia-made.json"
"""Lies in every folder that :func:`save_folder` made and names what it put there."""
_LITTER = frozenset((".DS_Store", "Thumbs.db", "desktop.ini"))
_OURS = frozenset(("recipe.yaml", "README.md"))
_OUR_KINDS = frozenset((".json", ".safetensors", ".txt", ".model", ".npy", ".npz", ".jinja"))


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
    except WRITE_PROBLEMS as problem:
        shutil.rmtree(part, ignore_errors=True)
        raise cannot_write(target, problem) from None
    except Exception as problem:
        shutil.rmtree(part, ignore_errors=True)
        if "(os error " in str(problem):  # tokenizers raises a bare Exception
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
