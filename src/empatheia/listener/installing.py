"""Models of the parts, made by their recipes or taken from a folder or the hub, put where the analysis finds them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from empatheia.errors import CheckpointError, ConfigError, MissingResourceError
from empatheia.listener.checkpoint import MANIFEST, read_json
from empatheia.listener.parts import PART_MODELS, PartModel, load_part, part_model
from empatheia.resources import models_root, resolve_model
from empatheia.training.saving import save_folder

SMOKE = "trained for a minute on a few self-written sentences (size smoke)"


def models_named(names: list[str]) -> list[PartModel]:
    """The models that names stand for: a part stands for all its models, ``all`` for everything a recipe makes.

    Raises:
        ConfigError: A name is unknown, or no recipe makes it.
    """
    found: dict[str, PartModel] = {}
    for name in names:
        if name == "all":
            found |= {model.name: model for model in PART_MODELS if model.recipe}
            continue
        model = part_model(name)
        if not model.recipe:
            raise ConfigError(f"no recipe makes {name!r}; it is made by: {model.command}")
        chosen = [own for own in PART_MODELS if own.part == name and own.recipe] or [model]
        found |= {own.name: own for own in chosen}
    return list(found.values())


def recipe_file(recipe: str) -> Path:
    """Where a recipe is: beside the package, or in the checkout it runs from.

    Args:
        recipe: E.g. ``reccon/entailment``.

    Raises:
        MissingResourceError: In neither.
    """
    package = Path(__file__).parents[1]
    places = (package / "recipes", package.parents[1] / "recipes")
    for place in places:
        if (found := place / f"{recipe}.yaml").is_file():
            return found
    raise MissingResourceError(
        f"no recipe {recipe!r} in this installation. Install the package anew: pip install --upgrade empatheia"
    )


def install_run(run: Path, name: str) -> Path:
    """Installs a finished run's checkpoint under a model name.

    Args:
        run: Run folder, as ``empatheia train`` leaves it.
        name: Of :data:`PART_MODELS`.

    Returns:
        The model's folder.

    Raises:
        CheckpointError: The run has no checkpoint or record, or the disk is full.
    """
    checkpoint, record_file = run / "checkpoint", run / "metrics.json"
    if not checkpoint.is_dir() or not record_file.is_file():
        raise CheckpointError(f"{run} is no finished run; call the training again to go on.")
    record = read_json(record_file)
    recipe, size = str(record.get("recipe", name)), str(record.get("size", ""))

    def fill(folder: Path) -> None:
        shutil.copytree(checkpoint, folder, dirs_exist_ok=True)
        manifest: dict[str, Any] = {"format": 1}
        if (folder / MANIFEST).is_file():
            manifest |= read_json(folder / MANIFEST)
        manifest["name"] = f"{recipe} ({size}, seed {record.get('seed')})"
        if size == "smoke":
            manifest["degraded"] = SMOKE
        _write(folder / MANIFEST, manifest)
        card = {"metrics": record.get("metrics", {}), "recipe": recipe, "size": size, "seed": record.get("seed")}
        _write(folder / "card.json", card)

    target = models_root() / name
    save_folder(target, fill)
    return target


def install_folder(source: str | Path, name: str) -> Path:
    """Installs a model folder, or a model of the hub, under a model name, once it has loaded as that part.

    Args:
        source: Folder, installed name or hub id.
        name: Of :data:`PART_MODELS`.

    Raises:
        MissingResourceError: It is not here and cannot be fetched.
        EmpatheiaError: It is no model for that part.
    """
    model = part_model(name)
    folder = resolve_model(source)
    load_part(model.part, {name: folder}, lambda part: None)
    target = models_root() / name
    if target.resolve() != folder.resolve():
        save_folder(target, lambda place: shutil.copytree(folder, place, dirs_exist_ok=True))
    return target


def _write(path: Path, record: dict[str, Any]) -> None:
    path.write_text(json.dumps(record, indent=2, ensure_ascii=False), encoding="utf-8")
