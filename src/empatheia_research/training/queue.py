"""Works through a queue of runs: what is recorded is done, what was stopped goes on, and nothing is done twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from empatheia.metrics.records import read_records
from empatheia_research.recipes.needs import RUNS, runs_to_make_first
from empatheia_research.recipes.queue import Queue, QueueEntry
from empatheia_research.recipes.recipe import Recipe
from empatheia_research.training.prerequisites import Missing, missing_for
from empatheia_research.training.records import keep_record
from empatheia_research.training.runner import RunStatus, run_all, run_folder

State = Literal["done", "begun", "waiting"]


@dataclass(frozen=True, slots=True)
class QueuedRun:
    """A run of a queue and how far it is.

    Attributes:
        entry: As the queue has it.
        recipe: At its size and seed.
        state: ``done``: its record is kept; ``begun``: its run folder is there; ``waiting``.
        seconds: Of training, once it is done.
        missing: What it needs and this machine lacks, what the runs it reads need included; empty once it is done.
    """

    entry: QueueEntry
    recipe: Recipe
    state: State
    seconds: float | None = None
    missing: tuple[Missing, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Plain JSON-ready data."""
        return {
            "recipe": self.recipe.name,
            "size": self.recipe.size,
            "seed": self.recipe.seed,
            "state": self.state,
            "hours": self.entry.hours,
            "seconds": self.seconds,
            "missing": [{"what": one.what, "command": one.command} for one in self.missing],
        }


def standing(queue: Queue, results: Path, out: Path = RUNS, *, looks: bool = True) -> list[QueuedRun]:
    """How far each run is, in the queue's order.

    Args:
        queue: Of runs.
        results: Folder of kept records; it need not exist. A record of an ``older`` commit does not count.
        out: Parent of the run folders.
        looks: Look for what runs need and this machine lacks.

    Raises:
        DataError: There are records, and none of them is whole.
    """
    kept = {(r["recipe"], r["size"], r["seed"]): r for r in (read_records(results) if results.is_dir() else [])}
    found = []
    for entry in queue.runs:
        recipe = entry.load()
        record = kept.get((recipe.name, recipe.size, recipe.seed))
        if record is not None and not entry.is_older(record):
            found.append(QueuedRun(entry, recipe, "done", record.get("training_seconds")))
        else:
            has_folder = (run_folder(out, recipe) / "recipe.yaml").is_file()
            state: State = "begun" if has_folder else "waiting"
            found.append(QueuedRun(entry, recipe, state, missing=missing_for(recipe) if looks else ()))
    return found


def by_missing(runs: Iterable[QueuedRun]) -> dict[Missing, list[QueuedRun]]:
    """What is lacking, and the runs that wait for it, in the queue's order."""
    found: dict[Missing, list[QueuedRun]] = {}
    for run in runs:
        for missing in run.missing:
            found.setdefault(missing, []).append(run)
    return found


def hours_left(runs: Sequence[QueuedRun]) -> float:
    """Hours that what is not done will take, at the rate of what is: thought hours times measured over thought.

    A run that has begun counts whole, so this is rather too much.
    """
    done = [run for run in runs if run.state == "done" and run.seconds]
    thought = sum(run.entry.hours for run in done)
    rate = sum(run.seconds or 0.0 for run in done) / 3600 / thought if thought else 1.0
    return rate * sum(run.entry.hours for run in runs if run.state != "done")


def work(
    queue: Queue,
    results: Path,
    out: Path = RUNS,
    *,
    budget_minutes: float | None = None,
    keep: Callable[[Path, Path], object] = keep_record,
    tell: Callable[[RunStatus], None] = lambda status: None,
    **options: Any,
) -> list[RunStatus]:
    """Trains what is not done, in order, each run behind those it reads; keeps the record of each that is finished.

    Whatever stops it, the same call goes on: a run that was begun is resumed from its last checkpoint, one that is
    finished and not yet recorded is recorded. One that fails does not stop the others. One whose prerequisites are not
    here is skipped before anything of it is tried, runs that it reads included.

    Args:
        queue: Of runs.
        results: Folder for the records.
        out: Parent of the run folders.
        budget_minutes: For the whole call; None = until all is done.
        keep: Called with the folder of a finished run and ``results``.
        tell: Called with each status as it comes.
        **options: Of :func:`empatheia_research.training.runner.run`.

    Returns:
        The statuses of all runs whose time came: those that were tried, and those ``skipped``, with what they lack.
    """
    deadline = None if budget_minutes is None else time.monotonic() + 60 * budget_minutes
    statuses: list[RunStatus] = []
    for queued in standing(queue, results, out, looks=False):
        if queued.state == "done":
            continue
        if missing := missing_for(queued.recipe):  # asked again: an earlier run may have taken hours
            statuses.append(_skipped(queued.recipe, out, missing))
            tell(statuses[-1])
            continue
        first = [needed.load() for needed in runs_to_make_first([queued.recipe])]
        for recipe, place in (*((needed, RUNS) for needed in first), (queued.recipe, out)):
            left = None if deadline is None else (deadline - time.monotonic()) / 60
            if left is not None and left <= 0:
                return statuses
            (status,) = run_all([recipe], place, budget_minutes=left, goes_on=True, **options)
            if status.is_finished:
                keep(status.folder, results)
            statuses.append(status)
            tell(status)
            if not status.is_finished:
                break
    return statuses


def _skipped(recipe: Recipe, out: Path, missing: Sequence[Missing]) -> RunStatus:
    told = "; ".join(map(str, missing))
    return RunStatus(recipe.name, run_folder(out, recipe), "skipped", {}, f"needs {told}")
