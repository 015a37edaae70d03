"""Where causes stand, and nothing else: rules of position for RECCON's causal turns. What every model has to beat.

In RECCON a feeling is mostly caused by what was said just now, so a rule that reads no word is close to the published
models (Poria et al. 2021, subtask 2). It is measured on the same pairs with the same scores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from empatheia_research.recipes.data import EntailData
from empatheia_research.training.tasks.base import Measurement
from empatheia_research.training.tasks.entail import FoldItems, cell_scores
from empatheia_research.understanding.causes.entailment_items import EntailmentItem

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


class PositionTask(Measurement):
    """Measures :data:`RULES` on RECCON's pairs."""

    systems = ("cause_position",)
    data: EntailData

    def build(self) -> None:
        """There is no model."""
        self.source = FoldItems(self.data)

    def data_record(self) -> dict[str, Any]:
        """Targets and published pairs of each split and fold that was read."""
        return {"reccon": self.source.counts()}

    def evaluate(self, split: str, outputs: Path | None) -> dict[str, Any]:
        """F1 over the published pairs of every test fold, by rule; ``outputs`` is left alone."""
        return {
            f"fold{fold} pairs, rule {name}": cell_scores(rule_cells(self.source.items(split, fold), rule), 0.5)
            for fold in self.data.test_folds
            for name, rule in RULES.items()
        }
