"""Curves of a training in TensorBoard or Weights & Biases, beside the run's own ``curves.jsonl``."""

from __future__ import annotations

import importlib
import importlib.util
import os
from pathlib import Path
from typing import Any

from empatheia.errors import ConfigError, MissingDependencyError
from empatheia.registry import nearest

TRACKERS = {"none": (), "tensorboard": ("tensorboard", "tensorboardX"), "wandb": ("wandb",)}
"""Name to the packages of which one is needed."""


def check_tracker(track: str) -> None:
    """Whether curves can be shown there; asked before any work.

    Args:
        track: A name of :data:`TRACKERS`.

    Raises:
        ConfigError: There is no such tracker.
        MissingDependencyError: Its package is not installed.
    """
    if track not in TRACKERS:
        raise ConfigError(
            f"unknown tracker {track!r}.{nearest(track, list(TRACKERS))} Accepted: {', '.join(TRACKERS)}."
        )
    packages = TRACKERS[track]
    if packages and not any(importlib.util.find_spec(name) for name in packages):
        raise MissingDependencyError(
            f"--track {track} needs the package {packages[0]}, which is not installed. Install it with: pip install"
            f" {packages[0]}; every value is in curves.jsonl of the run folder without it."
        )


def tracker(track: str, run: Path, stage: str) -> list[Any]:
    """The callbacks of a stage's training that write its curves; none for ``none``.

    TensorBoard reads ``<run folder>/tensorboard``, a line for each stage. Weights & Biases gets a run for each stage,
    named after the run folder, in the project WANDB_PROJECT (``empatheia``).

    Args:
        track: A name of :data:`TRACKERS`.
        run: Run folder, ``.../<recipe>/<size>-seed<seed>``.
        stage: Name of the stage.
    """
    check_tracker(track)
    if track == "none":
        return []
    if track == "tensorboard":
        from torch.utils.tensorboard import SummaryWriter
        from transformers.integrations import TensorBoardCallback

        return [TensorBoardCallback(SummaryWriter(str(run / "tensorboard" / stage)))]
    from transformers.integrations import WandbCallback

    wandb: Any = importlib.import_module("wandb")  # nobody has to have it
    if wandb.run is not None:
        wandb.finish()
    name = "/".join((*run.absolute().parts[-3:], stage))
    wandb.init(project=os.environ.get("WANDB_PROJECT", "empatheia"), name=name, dir=str(run))
    return [WandbCallback()]
