"""Files that are there whole or not at all, whenever a run is killed and however full the disk is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from empatheia.config import Recipe
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


def save_understander(
    folder: Path, recipe: Recipe, model: Any, save_reader: Callable[[Path], object], **facts: Any
) -> None:
    """Model, tokenizer, the resolved recipe, and ``empatheia.json``: what the model is and how it was made.

    Args:
        folder: Exists and is empty.
        recipe: Of the run.
        model: Has ``save_pretrained``.
        save_reader: Writes the tokenizer into a folder.
        **facts: Beside those of the recipe: ``part``, ``licence``, labels ...
    """
    model.save_pretrained(folder)
    save_reader(folder)
    described = {name: getattr(recipe, name) for name in ("system", "name", "size", "seed", "note", "encoder")}
    meta = {"format": 1, **described, **facts}
    (folder / "empatheia.json").write_text(json.dumps(meta, indent=2), encoding="utf-8")
    (folder / "recipe.yaml").write_text(recipe.dump(), encoding="utf-8")


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
