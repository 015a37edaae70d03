"""The runner: recipes in, run folders out; packs a list into a time budget and resumes where it was stopped.

A run folder holds ``recipe.yaml`` (resolved), ``environment.json``, ``curves.jsonl``, ``state.json`` (finished
stages), ``tokenizer/``, ``checkpoint/`` (the final model), ``metrics.json`` and ``outputs.jsonl``. Every file is
written under a temporary name and renamed, so a kill at any moment leaves the last complete state.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
import yaml
from transformers.trainer_utils import set_seed

from empatheia.errors import ConfigError, EmpatheiaError
from empatheia.reading import read_record
from empatheia.settings import merge, read_yaml
from empatheia.writing import cannot_write, hold_folder, save_folder, write_atomically
from empatheia_research.recipes.recipe import Recipe, StageConfig, validate_recipe
from empatheia_research.training.initial_weights import started_from
from empatheia_research.training.progress_line import without_foreign_bars
from empatheia_research.training.stages import StageResult, run_stage

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunStatus:
    """What became of one recipe.

    Attributes:
        recipe: Its name.
        folder: Run folder.
        state: ``finished``, ``already finished``, ``paused``, ``not started``, ``failed`` or, in a queue, ``skipped``.
        metrics: The run's record; empty unless it finished.
        error: Why it failed or was skipped, one line.
    """

    recipe: str
    folder: Path
    state: str
    metrics: dict[str, Any]
    error: str = ""

    @property
    def is_finished(self) -> bool:
        """Whether there is a finished run, made now or before."""
        return self.state.endswith("finished")


@dataclass(frozen=True)
class _Run:
    """A recipe's run in this process; see :func:`run`.

    Attributes:
        recipe: Fully resolved.
        folder: Run folder.
        is_main: Whether it is the first process, the one that writes.
        deadline: ``time.monotonic()`` value.
        save_seconds: Longest stretch of work a kill may lose.
        show_progress: Progress on stderr.
        device: Of :func:`empatheia_research.devices.choose_device`.
        track: Of :mod:`empatheia_research.training.tracking`.
    """

    recipe: Recipe
    folder: Path
    is_main: bool
    deadline: float | None
    save_seconds: float
    show_progress: bool
    device: str
    track: str


def environment() -> dict[str, object]:
    """What the run ran on: versions, processor, commit (of the package's own checkout, if it is one).

    ``processes`` matters to the numbers: a recipe's batch size is one process's share.
    """
    packages = {}
    for name in ("empatheia", "torch", "transformers", "tokenizers", "accelerate", "numpy"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = "not installed"
    device = torch.cuda.get_device_name(0) if torch.cuda.is_available() else f"{os.cpu_count()} CPU cores"
    return {
        "python": platform.python_version(),
        "packages": packages,
        "device": device,
        "processor": platform.machine(),
        "threads": torch.get_num_threads(),
        "processes": int(os.environ.get("WORLD_SIZE", "1")),
        "commit": _commit(),
    }


def _commit() -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
        dirty = subprocess.run(
            ["git", "-C", str(Path(__file__).parent), "status", "--porcelain", "--untracked-files=no"],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    if done.returncode:
        return "unknown"
    return done.stdout.strip() + ("+changes" if dirty.stdout.strip() else "")


def run_folder(out: Path, recipe: Recipe) -> Path:
    """``out/<recipe name>/<size>-seed<seed>``."""
    return out / recipe.name / f"{recipe.size}-seed{recipe.seed}"


def _join_processes() -> None:
    """Meets the other processes, if torchrun started several."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        from accelerate import PartialState

        PartialState(cpu=not torch.cuda.is_available(), timeout=timedelta(days=1))  # one may evaluate for hours


def _wait() -> None:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.barrier()


def _agreed(flag: bool) -> bool:
    """What the first process says: the clocks of processes differ."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return flag
    flags = [flag]
    torch.distributed.broadcast_object_list(flags, 0)
    return flags[0]


def _claim(folder: Path, recipe: Recipe, is_main: bool) -> None:
    """Makes the folder this recipe's, or checks that it is."""
    resolved = folder / "recipe.yaml"
    if not resolved.is_file():
        if not is_main:
            return
        if found := sorted(path.name for path in folder.iterdir() if path.name != "recipe.yaml.part"):
            raise ConfigError(
                f"{folder} exists and is not a run folder: it holds {found[0]!r} and no recipe.yaml. It is left as it"
                " is; move it away, or choose another --out."
            )
        write_atomically(resolved, recipe.dump())
    elif _what_runs(read_yaml(resolved)) != _what_runs(yaml.safe_load(recipe.dump())):
        raise ConfigError(
            f"{folder} holds a run of another version of this recipe; delete it, or choose another --out."
        )


def _what_runs(tree: dict[str, Any]) -> dict[str, object]:
    """A recipe without its note and the printed row it is compared with, which may be written after the run.

    What ``--set`` gave is told by the fields it set. Fields that a later version added have their defaults.
    """
    with contextlib.suppress(ConfigError):
        tree = yaml.safe_load(validate_recipe(tree, "recipe").dump())
    return {key: value for key, value in tree.items() if key not in ("published", "note", "overrides")}


def _finish(recipe: Recipe, folder: Path, task: Any, state: dict[str, Any], evaluate: bool) -> RunStatus:
    """Writes the model folder, measures it and writes the record."""
    model = task.model
    if recipe.stages:
        model.load_state_dict(task.read_weights(folder / "stages" / recipe.stages[-1].name))
    save_folder(folder / "checkpoint", task.save)
    metrics: dict[str, object] = {}
    begun = time.monotonic()
    if evaluate:
        part = folder / "outputs.jsonl.part"
        metrics = task.evaluate("test", part)
        if part.is_file():
            part.replace(folder / "outputs.jsonl")
    record = {
        "recipe": recipe.name,
        "size": recipe.size,
        "seed": recipe.seed,
        "note": _told(recipe, recipe.overrides),
        "overrides": list(recipe.overrides),
        "training_seconds": round(sum(stage["seconds"]["total"] for stage in state["stages"].values()), 1),
        "measuring_seconds": round(time.monotonic() - begun, 3),
        "stages": state["stages"],
        "parameters": sum(p.numel() for p in model.parameters()),
        "environment": read_record(folder / "environment.json"),
        "data": merge(state.get("data", {}), task.data_record()),
        "metrics": metrics,
    }
    if recipe.start is not None:
        record["start"] = _start_record(recipe)
    write_atomically(folder / "metrics.json", json.dumps(record, indent=2, ensure_ascii=False))
    return RunStatus(recipe.name, folder, "finished", record)


def _finished(recipe: Recipe, folder: Path, is_main: bool) -> dict[str, object] | None:
    """The record of a finished run, with the recipe's note, which may be written after the run; None before."""
    file = folder / "metrics.json"
    if not file.is_file():
        return None
    record = read_record(file)
    note = _told(recipe, record.get("overrides", ()))
    if is_main and record["note"] != note:
        record["note"] = note
        write_atomically(file, json.dumps(record, indent=2, ensure_ascii=False))
    return record


def _told(recipe: Recipe, overrides: Sequence[str]) -> str:
    """The recipe's note, and what differs from its file, for who reads the numbers."""
    changes = f"Changed by --set: {'; '.join(overrides)}." if overrides else ""
    return " ".join(filter(None, (recipe.note, changes)))


def _start_record(recipe: Recipe) -> dict[str, object]:
    """The run a recipe started from, as far as its record lies beside the weights: name, size, seed, training time."""
    file = started_from(recipe).parent / "metrics.json"
    earlier = read_record(file) if file.is_file() else {}
    known = {key: earlier[key] for key in ("recipe", "size", "seed", "training_seconds") if key in earlier}
    commit = earlier.get("environment", {}).get("commit")
    return {"from": recipe.start} | known | ({"commit": commit} if commit else {})


def run(
    recipe: Recipe,
    out: Path,
    *,
    deadline: float | None = None,
    save_seconds: float = 60.0,
    show_progress: bool = True,
    evaluate: bool = True,
    device: str = "auto",
    track: str = "none",
) -> RunStatus:
    """Trains one recipe to its end or to the deadline; call again to go on.

    Args:
        recipe: Fully resolved.
        out: Parent of all run folders.
        deadline: ``time.monotonic()`` value.
        save_seconds: Longest stretch of work a kill may lose.
        show_progress: Progress on stderr.
        evaluate: Measure on the test split at the end; a finished run that was not measured is measured then.
        device: ``auto``, ``cpu``, ``cuda`` or ``mps``; which card: :func:`empatheia_research.devices.choose_device`.
        track: ``none``, ``tensorboard`` or ``wandb``, see :mod:`empatheia_research.training.tracking`.

    Raises:
        ConfigError: The folder holds another recipe of the same name, size and seed, or another process runs it now.
    """
    _join_processes()
    folder = run_folder(out, recipe)
    is_main = int(os.environ.get("RANK", "0")) == 0
    refusal = ConfigError(f"another process is at work in {folder}. Wait for it, or choose another --out.")
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise cannot_write(folder, problem) from None
    with without_foreign_bars(), hold_folder(folder, refusal) if is_main else contextlib.nullcontext():
        try:
            _claim(folder, recipe, is_main)
            return _run(_Run(recipe, folder, is_main, deadline, save_seconds, show_progress, device, track), evaluate)
        except ConfigError:
            if is_new and is_main and not (folder / "checkpoints").exists():
                shutil.rmtree(folder, ignore_errors=True)  # or it would refuse the mended recipe
            raise


def _run(this: _Run, evaluate: bool) -> RunStatus:
    """:func:`run` in a folder that is this recipe's and this process's."""
    recipe, folder = this.recipe, this.folder
    record = _finished(recipe, folder, this.is_main)
    if record is not None and (record["metrics"] or not evaluate):  # one that was not measured yet is measured now
        return RunStatus(recipe.name, folder, "already finished", record)
    state_path = folder / "state.json"
    state = read_record(state_path) if state_path.is_file() else {"stages": {}}
    if this.is_main and record is None:
        write_atomically(folder / "environment.json", json.dumps(environment(), indent=2))
    task = _task_in_turn(recipe, folder, this.is_main)
    if this.is_main:
        _tidy(folder, list(state["stages"]))
    for stage in recipe.stages:
        if stage.name not in state["stages"] and not _train_stage(this, task, stage, state):
            return RunStatus(recipe.name, folder, "paused", {})
    if not this.is_main:
        return RunStatus(recipe.name, folder, "finished", {})
    return _finish(recipe, folder, task, state, evaluate)


def _task_in_turn(recipe: Recipe, folder: Path, is_main: bool) -> Any:
    """The recipe's task; the first process makes the tokeniser, the others read it."""
    from empatheia_research.training.tasks import make_task

    set_seed(recipe.seed)
    if not is_main:
        _wait()
    task = make_task(recipe, folder)
    if is_main:
        _wait()
    return task


def _train_stage(this: _Run, task: Any, stage: StageConfig, state: dict[str, Any]) -> bool:
    """Trains a stage from the weights of the one before and keeps what it made; False if the deadline stopped it."""
    recipe, folder = this.recipe, this.folder
    previous = [s.name for s in recipe.stages if s.name in state["stages"]]
    if previous:
        task.model.load_state_dict(task.read_weights(folder / "stages" / previous[-1]))
    if _agreed(this.deadline is not None and time.monotonic() >= this.deadline):
        return False
    logger.info("%s: stage %s", recipe.name, stage.name)
    result = run_stage(
        task.model,
        stage,
        task.stage_data(stage),
        folder=folder / "checkpoints" / stage.name,
        curves=folder / "curves.jsonl",
        seed=recipe.seed,
        deadline=this.deadline,
        save_seconds=this.save_seconds,
        show_progress=this.show_progress and this.is_main,
        device=this.device,
        track=this.track if this.is_main else "none",
    )
    if result.finished:
        _keep_stage(this, task, stage, result, state)
    return result.finished


def _keep_stage(this: _Run, task: Any, stage: StageConfig, result: StageResult, state: dict[str, Any]) -> None:
    """Notes a finished stage in the state; the first process writes that and the weights."""
    state["stages"][stage.name] = {
        "steps": result.steps,
        "valid": result.metrics,
        "seconds": {k: round(v, 2) for k, v in result.seconds.items()},
    }
    state["data"] = merge(state.get("data", {}), task.data_record())
    if this.is_main:
        save_folder(this.folder / "stages" / stage.name, task.model.save_pretrained)
        write_atomically(this.folder / "state.json", json.dumps(state, indent=2))
        _tidy(this.folder, list(state["stages"]))
    _wait()  # for the files the next stage starts from


def _tidy(folder: Path, finished: Sequence[str]) -> None:
    """Removes what finished stages need no more, what a kill in between left included: all but the newest weights."""
    for name in finished:
        shutil.rmtree(folder / "checkpoints" / name, ignore_errors=True)
    for name in finished[:-1]:
        shutil.rmtree(folder / "stages" / name, ignore_errors=True)


def run_all(
    recipes: Iterable[Recipe],
    out: Path,
    *,
    budget_minutes: float | None = None,
    goes_on: bool | None = None,
    **options: Any,
) -> list[RunStatus]:
    """Runs recipes one after the other until all are finished or the budget is spent.

    One of several that fails does not stop the others (in one process; several would wait for each other).

    Args:
        recipes: What to run.
        out: Parent of the run folders.
        budget_minutes: Stop after so many minutes; a paused run goes on the next time.
        goes_on: Whether one that fails is a status and no error; None = if there are several.
        **options: Of :func:`run`.

    Returns:
        One status a recipe, in order.

    Raises:
        EmpatheiaError: As :func:`run`, where a failure is an error.
    """
    _join_processes()
    recipes = list(recipes)
    goes_on = (len(recipes) > 1 if goes_on is None else goes_on) and int(os.environ.get("WORLD_SIZE", "1")) == 1
    deadline = None if budget_minutes is None else time.monotonic() + 60.0 * budget_minutes
    statuses = []
    for recipe in recipes:
        if _agreed(deadline is not None and time.monotonic() >= deadline):
            statuses.append(RunStatus(recipe.name, run_folder(out, recipe), "not started", {}))
            continue
        try:
            statuses.append(run(recipe, out, deadline=deadline, **options))
        except Exception as problem:
            if not goes_on:
                raise
            if not isinstance(problem, EmpatheiaError):
                logger.exception("recipe %s failed", recipe.name)
            reason = " ".join(str(problem).split()) or type(problem).__name__
            statuses.append(RunStatus(recipe.name, run_folder(out, recipe), "failed", {}, reason))
    return statuses
