"""How long a training would take, by the records of shorter ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from empatheia.errors import EmpatheiaError
from empatheia.metrics.records import read_records
from empatheia_research.recipes.recipe import Recipe, StageConfig, load_recipe
from empatheia_research.shipped import shipped_path


def recorded_hours(recipe: Recipe, file: str | Path, results: Path | None = None) -> float | None:
    """Hours that a training takes at least on one processor core, by what a kept record of it or of its like took.

    The seconds of each stage of the record, times the passes over the data that the recipe makes in place of the
    record's. Layers that are wider or more than the record's are not counted, so a larger size takes longer.

    Args:
        recipe: At the size asked about.
        file: Its file or name, to see what it has at the record's size.
        results: Folder of records; None = those that come with the installation.

    Returns:
        None where no record tells: of this recipe, or of another of the same system, encoder, corpus and stages.
    """
    folder = shipped_path("results") if results is None else results
    sizes, family = [recipe.size, "full", "cpu", "row"], recipe.name.partition("/")[0]

    def nearness(record: Mapping[str, Any]) -> tuple[bool, bool, int]:
        name = record["recipe"]
        return name != recipe.name, name.partition("/")[0] != family, sizes.index(record["size"])

    records = read_records(folder) if folder.is_dir() else []
    for record in sorted((record for record in records if record["size"] in sizes), key=nearness):
        is_own = record["recipe"] == recipe.name
        try:
            recorded = load_recipe(file if is_own else record["recipe"], size=record["size"])
        except EmpatheiaError:
            continue
        if _kind(recorded) == _kind(recipe) and (seconds := _seconds(recipe, recorded, record)) is not None:
            return seconds / 3600
    return None


def _kind(recipe: Recipe) -> tuple[object, ...]:
    """What two recipes must have in common for the pace of one to say anything of the other."""
    limit = getattr(recipe.data, "train_limit", None)
    return recipe.system, recipe.encoder, recipe.model.get("base"), recipe.data.corpus, limit


def passes(recipe: Recipe) -> str:
    """Passes over the data of each stage, e.g. ``25 + 80 passes``."""
    told = [f"{stage.max_steps:,} updates" if stage.max_steps else f"{stage.epochs:g}" for stage in recipe.stages]
    if not told:
        return "no training"
    return " + ".join(told) + ("" if "updates" in told[-1] else " pass" if told == ["1"] else " passes")


def _seconds(recipe: Recipe, recorded: Recipe, record: Mapping[str, Any]) -> float | None:
    """Seconds of a recipe's stages at the pace of a record; None where a stage has no like in it."""
    taken, known = record.get("stages") or {}, {stage.name: stage for stage in recorded.stages}
    seconds = 0.0
    for stage in recipe.stages:
        if stage.name not in taken or stage.name not in known or not (share := _share(stage, known[stage.name])):
            return None
        seconds += float(taken[stage.name]["seconds"]["total"]) * share
    return seconds


def _share(stage: StageConfig, recorded: StageConfig) -> float | None:
    """How many times as long a stage is; None where one counts updates and the other passes."""
    if stage.max_steps is not None and recorded.max_steps is not None:
        return stage.max_steps / recorded.max_steps
    if stage.max_steps is None and recorded.max_steps is None:
        return stage.epochs / recorded.epochs
    return None
