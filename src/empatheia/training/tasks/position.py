"""Where causes stand, and nothing else: rules of position for RECCON's causal turns. What every model has to beat.

In RECCON a feeling is mostly caused by what was said just now, so a rule that reads no word is close to the published
models (Poria et al. 2021, subtask 2). It is measured on the same pairs with the same scores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from empatheia.config import EntailData, Recipe, StageConfig
from empatheia.corpora import sample
from empatheia.corpora.reccon import load as load_reccon
from empatheia.errors import ConfigError
from empatheia.training.stages import StageData
from empatheia.training.tasks.entail import cell_scores
from empatheia.understanding.causes.entailment_items import EntailmentItem, items_of_fold

Rule = Callable[[EntailmentItem, int], bool]
RULES: Mapping[str, Rule] = {
    "this turn": lambda item, turn: turn == item.target,
    "this turn and the one before": lambda item, turn: item.target - turn <= 1,
    "this turn and the speaker's one before": lambda item, turn: turn in (item.target, _own_before(item)),
    "every turn": lambda item, turn: True,
}
"""Whether a turn is said to be causal, by the target and who speaks."""
BEST_RULE = "this turn and the one before"
"""The one that stands beside our models."""


def _own_before(item: EntailmentItem) -> int:
    """The turn in which the target's speaker spoke before; -1 if there is none."""
    own = [i for i in range(item.target) if item.speakers[i] == item.speakers[item.target]]
    return own[-1] if own else -1


def rule_cells(items: Sequence[EntailmentItem], rule: Rule) -> list[tuple[float, int]]:
    """(1.0 or 0.0, gold label) of every published pair, as :func:`.entailment_scores.question_cells` has them.

    Args:
        items: With labels.
        rule: Of :data:`RULES`.
    """
    return [(float(rule(item, turn)), label) for item in items for turn, label, _ in item.questions()]


class PositionTask:
    """Measures :data:`RULES` on RECCON's pairs; nothing learns.

    Args:
        recipe: Without stages.
        folder: The run's.
    """

    system = "cause_position"

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        if recipe.system != self.system:
            raise ConfigError(
                f"recipe {recipe.name!r}: task {recipe.task} measures {self.system}, not {recipe.system!r}."
            )
        self.recipe = recipe
        self.data: EntailData = recipe.data
        self.model: Any = torch.nn.Module()
        self._counts: dict[str, dict[str, int]] = {}

    def stage_data(self, stage: StageConfig) -> StageData:
        """Nothing is learnt.

        Raises:
            ConfigError: Always.
        """
        raise ConfigError(f"recipe {self.recipe.name!r}: task {self.recipe.task} trains nothing; drop stages.")

    def read_weights(self, folder: Path) -> dict[str, Tensor]:
        """There are none."""
        return {}

    def save(self, folder: Path) -> None:
        """The recipe alone."""
        (folder / "recipe.yaml").write_text(self.recipe.dump(), encoding="utf-8")

    def data_record(self) -> dict[str, Any]:
        """Targets and published pairs of each split and fold that was read."""
        return {"reccon": self._counts}

    def evaluate(self, split: str, outputs: Path | None) -> dict[str, Any]:
        """F1 over the published pairs of every test fold, by rule; ``outputs`` is left alone."""
        root = sample.root() if self.data.corpus == "sample" else None
        corpus = load_reccon(split, root=root)
        scores: dict[str, Any] = {}
        for fold in self.data.test_folds:
            items = items_of_fold(corpus, fold, limit=getattr(self.data, f"{split}_limit"))
            n_pairs = sum(1 for item in items for _ in item.questions())
            self._counts[f"{split}, fold {fold}"] = {"items": len(items), "pairs": n_pairs}
            for name, rule in RULES.items():
                scores[f"fold{fold} pairs, rule {name}"] = cell_scores(rule_cells(items, rule), 0.5)
        return scores
