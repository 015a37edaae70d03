"""Ratings as metrics: shares and means whose bootstrap draws whole dialogues, or whole workers.

A row is a cluster (all ratings of one dialogue) with its sums, so what the house does with metrics, intervals and
paired tests, holds for people's ratings too: those of one dialogue are drawn or swapped together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from empatheia.metrics.base import Metric


class RatedShare(Metric):
    """Share of ratings with one answer, in percent.

    Args:
        of: The answer.
        answers: All that can be given.
        cluster: What a row is, for the signature.
    """

    unit = "percent"
    higher_is_better = None

    def __init__(self, of: str, answers: Sequence[str], cluster: str = "dialogue") -> None:
        super().__init__()
        self.of, self.answers, self.cluster = of, tuple(answers), cluster
        self.name = f"rated_{of}"
        self.columns = (*self.answers, "n_ratings")

    def update(self, counts: Sequence[Sequence[float]]) -> None:
        """Adds clusters.

        Args:
            counts: How often each answer was given. Shape: (n_clusters, n_answers).
        """
        rows = np.asarray(counts, dtype=np.float64).reshape(-1, len(self.answers))
        self._append(np.column_stack([rows, rows.sum(axis=1)]))

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """Percent of the ratings."""
        total = sums[..., -1]
        chosen = sums[..., self.answers.index(self.of)]
        return 100 * np.divide(chosen, total, out=np.full(np.shape(total), math.nan), where=total > 0)

    def settings(self) -> Mapping[str, object]:
        """What a row is."""
        return {"cluster": self.cluster, "of": self.of}


class MeanRating(Metric):
    """Mean of ratings on a scale.

    Args:
        criterion: Name of the question.
        cluster: What a row is, for the signature.
    """

    unit = "points"
    columns = ("sum", "n_ratings")

    def __init__(self, criterion: str, cluster: str = "dialogue") -> None:
        super().__init__()
        self.criterion, self.cluster = criterion, cluster
        self.name = f"mean_{criterion}"

    def update(self, ratings: Sequence[Sequence[float]]) -> None:
        """Adds clusters, each with its ratings."""
        self._append([[float(sum(values)), float(len(values))] for values in ratings])

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """Mean over ratings, not over clusters."""
        total = sums[..., 1]
        return np.divide(sums[..., 0], total, out=np.full(np.shape(total), math.nan), where=total > 0)

    def settings(self) -> Mapping[str, object]:
        """What a row is."""
        return {"cluster": self.cluster, "criterion": self.criterion}
