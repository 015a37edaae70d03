"""Where a run begins or looks things up: model folders that a recipe names, and weights of an earlier run."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from empatheia.errors import CheckpointError, MissingResourceError
from empatheia.resources import resolve_model
from empatheia_research.pretrained import load_weights
from empatheia_research.recipes.recipe import Recipe


def started_from(recipe: Recipe) -> Path:
    """The model folder of a recipe's ``start``: a model folder itself, or the ``checkpoint`` of a run folder.

    Raises:
        MissingResourceError: There is none; says what would make it.
    """
    return model_named(recipe, str(recipe.start), "start")


def model_named(recipe: Recipe, place: str, key: str) -> Path:
    """The model folder that a recipe names; ``{size}`` and ``{seed}`` in it are the run's.

    Args:
        recipe: Who names it.
        place: A model folder or its name, or a run folder, whose ``checkpoint`` is meant.
        key: Where it is named.

    Raises:
        MissingResourceError: There is none; says what would make it.
    """
    place = place.replace("{size}", recipe.size).replace("{seed}", str(recipe.seed))
    try:
        folder = resolve_model(place)
    except MissingResourceError as problem:
        use = "starts from" if key == "start" else f"({key}) needs"
        raise MissingResourceError(
            f"recipe {recipe.name!r} {use} {place!r}: {problem} Train that run first, or name another with"
            f" --set {key}=FOLDER."
        ) from None
    return folder / "checkpoint" if (folder / "checkpoint").is_dir() else folder


def load_start(model: nn.Module, folder: Path) -> None:
    """Takes the weights of an earlier run; all of them must fit.

    Raises:
        CheckpointError: The folder holds no weights, or those of other sizes, parts or pieces.
    """
    path = folder / "model.safetensors"
    if not path.is_file():
        raise CheckpointError(f"{folder} has no model.safetensors; give the folder of a finished run.")
    given, own = load_weights(path), model.state_dict()
    odd = sorted(name for name in given.keys() ^ own.keys() if name in given or name not in _tied(model))
    odd += [
        f"{name} {tuple(given[name].shape)}, not {tuple(own[name].shape)}"
        for name in sorted(given.keys() & own.keys())
        if given[name].shape != own[name].shape
    ]
    if odd:
        raise CheckpointError(
            f"{path} does not fit the recipe's model: {len(odd)} differences, first {odd[0]}; a recipe that starts from"
            " another run has that run's system, sizes and parts."
        )
    model.load_state_dict(given, strict=False)


def _tied(model: nn.Module) -> set[str]:
    """Names of weights that are another's."""
    return set(getattr(model, "_tied_weights_keys", None) or ())
