"""A queue of runs: recipes in the order in which they are to be trained, each with the hours it is thought to take."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, field_validator

from empatheia.errors import ConfigError
from empatheia.registry import nearest
from empatheia.settings import Strict, explain_invalid, read_yaml
from empatheia_research.recipes.recipe import QUEUE, SIZES, Recipe, find_recipe, load_recipe
from empatheia_research.shipped import recipes_root


class QueueEntry(Strict):
    """One run."""

    recipe: str = Field(description="A recipe's file, or the name of one that comes with empatheia.")
    size: str = Field("cpu", description="smoke, row, cpu or full.")
    seed: int | None = Field(None, ge=0, description="None = the recipe's.")
    hours: float = Field(gt=0, description="Thought to take, on one core.")
    older: tuple[str, ...] = Field(
        (), description="Commits whose record is of an older recipe, as short as one likes: it does not count as done."
    )

    @field_validator("size")
    @classmethod
    def _known_size(cls, size: str) -> str:
        if size not in SIZES:
            raise ValueError(f"unknown size{nearest(size, list(SIZES))} Accepted: {', '.join(SIZES)}")
        return size

    def is_older(self, record: Mapping[str, Any]) -> bool:
        """Whether a record of this run was made by an earlier recipe, so that it does not count."""
        commit = str((record.get("environment") or {}).get("commit") or "")
        return any(commit.startswith(older) for older in self.older)

    def load(self) -> Recipe:
        """The recipe at this size and seed.

        Raises:
            ConfigError: There is no such recipe, or it is not valid.
        """
        return load_recipe(find_recipe(self.recipe), size=self.size, seed=self.seed)


class Queue(Strict):
    """Runs, first come first."""

    runs: tuple[QueueEntry, ...] = Field(min_length=1)


def read_queue(path: str | Path) -> Queue:
    """A queue's file.

    Args:
        path: YAML: ``runs: [{recipe: gao2021/soft, size: cpu, hours: 2.5}, ...]``; ``recipes/queue.yaml`` is also found
            where there is no folder ``recipes``.

    Raises:
        ConfigError: No such file, no queue, or a run in it is no recipe; names the place and the nearest name.
    """
    file = Path(path)
    if not file.is_file() and file.parts[:1] == ("recipes",):
        file = recipes_root().joinpath(*file.parts[1:])
    if not file.is_file():
        raise ConfigError(f"no queue at {str(path)[:300]!r}; accepted: a YAML file such as recipes/queue.yaml.")
    tree = read_yaml(file)
    try:
        queue = Queue.model_validate(tree)
    except ValidationError as problem:
        raise ConfigError(f"{path}: {explain_invalid(problem, tree, Queue)}") from None
    for number, entry in enumerate(queue.runs, 1):
        try:
            entry.load()
        except ConfigError as problem:
            raise ConfigError(f"{path}, run {number}: {problem}") from None
    return queue


@cache
def _entries_with_older() -> tuple[QueueEntry, ...]:
    """Runs of our own queue that have a record which does not count."""
    file = recipes_root() / QUEUE
    tree = read_yaml(file) if file.is_file() else {"runs": []}
    return tuple(entry for run in tree["runs"] if (entry := QueueEntry.model_validate(run)).older)


def queued_anew(record: Mapping[str, Any]) -> bool:
    """Whether our own queue makes a run anew because its record is of an earlier recipe."""
    return any(
        entry.recipe == record["recipe"]
        and entry.size == record["size"]
        and entry.seed in (None, record["seed"])
        and entry.is_older(record)
        for entry in _entries_with_older()
    )
