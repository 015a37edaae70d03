"""The runner: recipes in, run folders out; packs a list into a time budget and resumes where it was stopped.

A run folder holds ``recipe.yaml`` (resolved), ``environment.json``, ``curves.jsonl``, ``state.json`` (finished
stages), ``tokenizer/``, ``checkpoint/`` (the final model), ``metrics.json`` and ``outputs.jsonl``. Every file is
written under a temporary name and renamed, so a kill at any moment leaves the last complete state.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from transformers.trainer_utils import set_seed

from empatheia.config import DataConfig, Recipe, merge, validate_recipe
from empatheia.errors import CheckpointError, ConfigError
from empatheia.training.stages import run_stage

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunStatus:
    """What became of one recipe: ``state`` is ``finished``, ``already finished``, ``paused`` or ``not started``."""

    recipe: str
    folder: Path
    state: str
    metrics: dict[str, Any]


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
        raise CheckpointError(f"cannot write {path}: {problem.strerror}. Free some space or choose another --out.") from None


def save_folder(target: Path, save: Any) -> None:
    """Fills a new folder by ``save(folder)`` and moves it into place when it is whole.

    Raises:
        CheckpointError: The disk is full; nothing half-written stays.
    """
    part = target.with_name(target.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        save(part)
    except (OSError, RuntimeError) as problem:  # safetensors wraps a full disk into its own error
        shutil.rmtree(part, ignore_errors=True)
        raise CheckpointError(f"cannot save {target}: {problem}. Free some space or choose another --out.") from None
    shutil.rmtree(target, ignore_errors=True)
    part.replace(target)


def environment() -> dict[str, Any]:
    """What the run ran on: versions, processor, commit (of the package's own checkout, if it is one)."""
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
        "commit": _commit(),
    }


def _commit() -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10
        )
        dirty = subprocess.run(
            ["git", "-C", str(Path(__file__).parent), "status", "--porcelain", "--untracked-files=no"],
            capture_output=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    if done.returncode:
        return "unknown"
    return done.stdout.strip() + ("+changes" if dirty.stdout.strip() else "")


def run_folder(out: Path, recipe: Recipe) -> Path:
    """``out/<recipe name>/<size>-seed<seed>``."""
    return out / recipe.name / f"{recipe.size}-seed{recipe.seed}"


def stage_data_config(recipe: Recipe, over: dict[str, Any]) -> DataConfig:
    """The recipe's data block with a stage's overrides.

    Raises:
        ConfigError: An unknown key among them.
    """
    tree = recipe.model_dump(mode="json")
    tree["data"] = merge(tree["data"], over)
    return validate_recipe(tree, f"recipe {recipe.name!r}, stage data").data


def run(
    recipe: Recipe,
    out: Path,
    *,
    deadline: float | None = None,
    save_seconds: float = 60.0,
    show_progress: bool = True,
    evaluate: bool = True,
) -> RunStatus:
    """Trains one recipe to its end or to the deadline; call again to go on.

    Args:
        recipe: Fully resolved.
        out: Parent of all run folders.
        deadline: ``time.monotonic()`` value.
        save_seconds: Longest stretch of work a kill may lose.
        show_progress: Progress bars on stderr.
        evaluate: Measure on the test split at the end.

    Raises:
        ConfigError: The folder holds another recipe of the same name, size and seed.
    """
    from empatheia.training.tasks import make_task

    folder = run_folder(out, recipe)
    is_main = int(os.environ.get("RANK", "0")) == 0
    folder.mkdir(parents=True, exist_ok=True)
    resolved = folder / "recipe.yaml"
    if resolved.is_file():
        if resolved.read_text(encoding="utf-8") != recipe.dump():
            raise ConfigError(
                f"{folder} holds a run of another version of this recipe; delete it, or choose another --out."
            )
    elif is_main:
        write_atomically(resolved, recipe.dump())
    if (folder / "metrics.json").is_file():
        return RunStatus(recipe.name, folder, "already finished", json.loads((folder / "metrics.json").read_text()))
    state_path = folder / "state.json"
    state = json.loads(state_path.read_text()) if state_path.is_file() else {"stages": {}, "seconds": 0.0}
    if is_main:
        write_atomically(folder / "environment.json", json.dumps(environment(), indent=2))

    set_seed(recipe.seed)
    begun = time.monotonic()
    task = make_task(recipe, folder)
    model = task.model
    for stage in recipe.stages:
        saved = folder / "stages" / stage.name
        if stage.name in state["stages"]:
            continue
        previous = [s.name for s in recipe.stages if s.name in state["stages"]]
        if previous:
            model.load_state_dict(task.read_weights(folder / "stages" / previous[-1]))
        if deadline is not None and time.monotonic() >= deadline:
            return RunStatus(recipe.name, folder, "paused", {})
        logger.info("%s: stage %s", recipe.name, stage.name)
        result = run_stage(
            model,
            stage,
            task.stage_data(stage),
            folder=folder / "checkpoints" / stage.name,
            curves=folder / "curves.jsonl",
            seed=recipe.seed,
            deadline=deadline,
            save_seconds=save_seconds,
            show_progress=show_progress and is_main,
        )
        state["seconds"] += time.monotonic() - begun
        begun = time.monotonic()
        if not result.finished:
            if is_main:
                write_atomically(state_path, json.dumps(state, indent=2))
            return RunStatus(recipe.name, folder, "paused", {})
        state["stages"][stage.name] = {
            "steps": result.steps,
            "valid": result.metrics,
            "seconds": {k: round(v, 2) for k, v in result.seconds.items()},
        }
        if is_main:
            save_folder(saved, model.save_pretrained)
            write_atomically(state_path, json.dumps(state, indent=2))
            if previous:
                shutil.rmtree(folder / "stages" / previous[-1], ignore_errors=True)
    if not is_main:
        return RunStatus(recipe.name, folder, "finished", {})
    model.load_state_dict(task.read_weights(folder / "stages" / recipe.stages[-1].name))
    save_folder(folder / "checkpoint", task.save)
    metrics: dict[str, Any] = {}
    if evaluate:
        metrics = task.evaluate("test", folder / "outputs.jsonl")
    record = {
        "recipe": recipe.name,
        "size": recipe.size,
        "seed": recipe.seed,
        "note": recipe.note,
        "training_seconds": round(state["seconds"], 1),
        "stages": state["stages"],
        "parameters": sum(p.numel() for p in model.parameters()),
        "environment": json.loads((folder / "environment.json").read_text()),
        "data": task.data_record(),
        "metrics": metrics,
    }
    write_atomically(folder / "metrics.json", json.dumps(record, indent=2, ensure_ascii=False))
    return RunStatus(recipe.name, folder, "finished", record)


def run_all(
    recipes: Iterable[Recipe], out: Path, *, budget_minutes: float | None = None, **options: Any
) -> list[RunStatus]:
    """Runs recipes one after the other until all are finished or the budget is spent."""
    deadline = None if budget_minutes is None else time.monotonic() + 60.0 * budget_minutes
    statuses = []
    for recipe in recipes:
        if deadline is not None and time.monotonic() >= deadline:
            statuses.append(RunStatus(recipe.name, run_folder(out, recipe), "not started", {}))
            continue
        statuses.append(run(recipe, out, deadline=deadline, **options))
    return statuses
