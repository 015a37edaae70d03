"""A task turns a recipe into a model, its data and its measurements; the runner knows nothing else of either."""

from __future__ import annotations

from pathlib import Path

from empatheia.config import Recipe
from empatheia.registry import Registry
from empatheia.training.tasks.base import Task

TASKS = Registry(
    "tasks",
    {
        "respond": "empatheia.training.tasks.respond:RespondTask",
        "entail": "empatheia.training.tasks.entail:EntailTask",
        "classify": "empatheia.training.tasks.classify:ClassifyTask",
        "position": "empatheia.training.tasks.position:PositionTask",
        "extract": "empatheia.training.tasks.extract:ExtractTask",
        "estimate": "empatheia.training.tasks.estimate:EstimateTask",
        "mechanisms": "empatheia.training.tasks.mechanisms:MechanismsTask",
        "anticipate": "empatheia.training.tasks.anticipate:AnticipateTask",
        "retrieve": "empatheia.training.tasks.retrieve:RetrieveTask",
        "prompt": "empatheia.training.tasks.prompt:PromptTask",
        "focus": "empatheia.training.tasks.focus:FocusTask",
        "perceive": "empatheia.training.tasks.perceive:PerceiveTask",
        "perceive_states": "empatheia.training.tasks.perceive_states:PerceiveStatesTask",
        "listen": "empatheia.training.tasks.listen:ListenTask",
        "rank": "empatheia.training.tasks.rank:RankTask",
        "whole": "empatheia.training.tasks.whole:WholeTask",
    },
)
"""What a recipe's `task` names; each has its own `data` block (:data:`empatheia.config.DATA_CONFIGS`)."""


def make_task(recipe: Recipe, folder: Path) -> Task:
    """The task a recipe names, with the model built and its data read."""
    return TASKS.get(recipe.task)(recipe, folder)
