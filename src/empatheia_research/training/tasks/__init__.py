"""A task turns a recipe into a model, its data and its measurements; the runner knows nothing else of either."""

from __future__ import annotations

from pathlib import Path

from empatheia.registry import Registry
from empatheia_research.recipes.recipe import Recipe
from empatheia_research.training.tasks.base import Task

TASKS = Registry(
    "tasks",
    {
        "respond": "empatheia_research.training.tasks.respond:RespondTask",
        "entail": "empatheia_research.training.tasks.entail:EntailTask",
        "classify": "empatheia_research.training.tasks.classify:ClassifyTask",
        "position": "empatheia_research.training.tasks.position:PositionTask",
        "extract": "empatheia_research.training.tasks.extract:ExtractTask",
        "estimate": "empatheia_research.training.tasks.estimate:EstimateTask",
        "mechanisms": "empatheia_research.training.tasks.mechanisms:MechanismsTask",
        "anticipate": "empatheia_research.training.tasks.anticipate:AnticipateTask",
        "retrieve": "empatheia_research.training.tasks.retrieve:RetrieveTask",
        "prompt": "empatheia_research.training.tasks.prompt:PromptTask",
        "focus": "empatheia_research.training.tasks.focus:FocusTask",
        "perceive": "empatheia_research.training.tasks.perceive:PerceiveTask",
        "perceive_states": "empatheia_research.training.tasks.perceive_states:PerceiveStatesTask",
        "listen": "empatheia_research.training.tasks.listen:ListenTask",
        "rank": "empatheia_research.training.tasks.rank:RankTask",
        "whole": "empatheia_research.training.tasks.whole:WholeTask",
    },
)
"""What a recipe's `task` names; each has its own `data` block (:data:`empatheia_research.recipes.DATA_CONFIGS`)."""


def make_task(recipe: Recipe, folder: Path) -> Task:
    """The task a recipe names, with the model built and its data read."""
    return TASKS.get(recipe.task)(recipe, folder)
