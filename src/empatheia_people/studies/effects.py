"""How large a difference between two systems is: of ratings Cliff's delta and Cohen's d, with intervals.

Whole dialogues are drawn again and again, since ratings of one dialogue are alike. The sizes themselves are those of
:mod:`empatheia.metrics.item_tests`, here of many samples at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from empatheia.metrics.base import bootstrap_weights, quantiles

Interval = tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Effect:
    """The difference of two systems' ratings.

    Attributes:
        difference: A's mean minus B's, in points or in percent.
        difference_interval: 95 %.
        delta: Cliff's: P(a rating of A is above one of B) - P(it is below), -1 to 1; only the order of answers counts.
        delta_interval: 95 %.
        d: Cohen's: difference of the means over the pooled deviation; NaN where nothing varies.
        d_interval: 95 %.
    """

    difference: float
    difference_interval: Interval
    delta: float
    delta_interval: Interval
    d: float
    d_interval: Interval


def effect_of(
    scores: Sequence[float],
    a: np.ndarray,
    b: np.ndarray,
    counted: Sequence[float] | None = None,
    n_resamples: int = 1000,
) -> Effect:
    """The effect between two systems that were rated on the same dialogues.

    Args:
        scores: Number of each answer. Shape: (n_answers,).
        a: How often each answer was given to the one. Shape: (n_dialogues, n_answers).
        b: To the other.
        counted: What each answer counts in the difference, 100 and 0 for a share; None = its number.
        n_resamples: Of the bootstrap over dialogues.
    """
    points, parts = (np.asarray(each, dtype=np.float64) for each in (scores, scores if counted is None else counted))
    found = _sizes(points, parts, a.sum(axis=0), b.sum(axis=0))
    drawn = np.concatenate(
        [np.column_stack(_sizes(points, parts, w @ a, w @ b)) for w in bootstrap_weights(len(a), n_resamples, 0)]
    )
    difference, delta, d = map(float, found)
    intervals = [quantiles(column, 0.95) for column in drawn.T]
    return Effect(difference, intervals[0], delta, intervals[1], d, intervals[2] if math.isfinite(d) else None)


def _sizes(
    points: np.ndarray, parts: np.ndarray, a: np.ndarray, b: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Difference of means, Cliff's delta and Cohen's d of counts. Shapes: (..., n_answers) to (...)."""
    n, m = a.sum(axis=-1), b.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        one, other = a / n[..., None], b / m[..., None]
        above = np.sign(points[:, None] - points[None, :])
        delta = np.einsum("...i,ij,...j->...", one, above, other)
        means = one @ points - other @ points
        squares = n * _variance(points, one) + m * _variance(points, other)
        spread = np.sqrt(np.maximum(squares, 0) / (n + m - 2))
        return one @ parts - other @ parts, delta, np.where(spread > 1e-9, means / spread, np.nan)


def _variance(points: np.ndarray, shares: np.ndarray) -> np.ndarray:
    return shares @ points**2 - (shares @ points) ** 2
