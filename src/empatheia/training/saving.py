"""How what was learnt is put into a folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from safetensors import SafetensorError

from empatheia.config import Recipe

WRITE_PROBLEMS = (OSError, RuntimeError, SafetensorError)  # torch and safetensors wrap a full disk into their own


class Savable(Protocol):
    """What writes itself into a folder, as transformers' models do."""

    def save_pretrained(self, folder: Path, /) -> object:
        """Writes weights and configuration."""
        ...


def save_understander(
    folder: Path, recipe: Recipe, model: Savable, save_reader: Callable[[Path], object], **facts: object
) -> None:
    """Model, tokenizer, the resolved recipe, and ``empatheia.json``: what the model is and how it was made.

    Args:
        folder: Exists and is empty.
        recipe: Of the run.
        model: Learnt.
        save_reader: Writes the tokenizer into a folder.
        **facts: Beside those of the recipe: ``part``, ``licence``, labels ...
    """
    model.save_pretrained(folder)
    save_reader(folder)
    described = {name: getattr(recipe, name) for name in ("system", "name", "size", "seed", "note", "encoder")}
    meta = {"format": 1, **described, **facts}
    (folder / "empatheia.json").write_text(json.dumps(meta, indent=2), encoding="utf-8")
    (folder / "recipe.yaml").write_text(recipe.dump(), encoding="utf-8")
