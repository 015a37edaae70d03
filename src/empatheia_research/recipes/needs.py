"""Which runs of other recipes a recipe reads: weights it starts from, models that label or encode for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from empatheia_research.recipes.recipe import Recipe, load_recipe
from empatheia_research.shipped import recipes_root

RUNS = Path("runs")
"""Where recipes name the runs they read: in the folder one works in."""
_RUN = re.compile(r"runs/(?P<recipe>[\w./-]+)/(?P<size>smoke|row|cpu|full)-seed(?P<seed>\d+)(?:/checkpoint)?")


@dataclass(frozen=True, slots=True)
class NeededRun:
    """A run that another recipe starts from or whose model it reads.

    Attributes:
        recipe: Its name, e.g. ``imagine/moel``.
        size: ``smoke``, ``row``, ``cpu`` or ``full``.
        seed: Its seed.
    """

    recipe: str
    size: str
    seed: int

    @property
    def folder(self) -> Path:
        """Its run folder, as the recipe names it."""
        return RUNS / self.recipe / f"{self.size}-seed{self.seed}"

    @property
    def file(self) -> Path:
        """The recipe's file."""
        return recipes_root() / f"{self.recipe}.yaml"

    def load(self) -> Recipe:
        """The recipe, at that size and seed."""
        return load_recipe(self.file, size=self.size, seed=self.seed)

    @property
    def is_here(self) -> bool:
        """Whether the run is finished."""
        return (self.folder / "checkpoint").is_dir()


def runs_needed(recipe: Recipe) -> tuple[NeededRun, ...]:
    """The runs a recipe reads (``start``, labellers, encoders), in the order it names them; finished or not."""
    found: dict[NeededRun, None] = {}
    for text in _texts(recipe.model_dump(mode="json", exclude={"note"})):
        place = text.replace("{size}", recipe.size).replace("{seed}", str(recipe.seed))
        if match := _RUN.fullmatch(place):
            found[NeededRun(match["recipe"], match["size"], int(match["seed"]))] = None
    return tuple(found)


def runs_to_make_first(recipes: Iterable[Recipe]) -> list[NeededRun]:
    """The runs of our recipes that others read and that are not here yet, each behind those it needs itself."""
    first: dict[NeededRun, None] = {}

    def visit(recipe: Recipe, above: tuple[NeededRun, ...]) -> None:
        for needed in runs_needed(recipe):
            if needed.file.is_file() and not (needed.is_here or needed in first or needed in above):
                visit(needed.load(), (*above, needed))
                first[needed] = None

    for recipe in recipes:
        visit(recipe, ())
    return list(first)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
