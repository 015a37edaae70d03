"""Krippendorff's alpha: agreement beyond chance of any number of raters, with gaps, on four kinds of scales.

Source: Krippendorff, Content Analysis (2004), chapter 11: alpha = 1 - observed / expected disagreement, from the matrix
of coincidences of values within units.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from empatheia.errors import ConfigError

Level = Literal["nominal", "ordinal", "interval", "ratio"]
LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval", "ratio")


def krippendorff_alpha(units: Sequence[Sequence[float | None]], level: Level = "nominal") -> float:
    """Alpha: 1 = all agree, 0 = as by chance, below 0 = less than that.

    Args:
        units: The values that each unit was given, in any order. Missing ones (None, NaN) are left out, and then
            units with fewer than two.
        level: How far apart two values are. For ``ordinal`` their order counts, for ``interval`` their difference, for
            ``ratio`` their difference as a share of their sum; for ``nominal`` all different ones are as far apart.

    Returns:
        NaN where it is undefined: no unit has two values, or all values are the same.

    Raises:
        ConfigError: An unknown level.

    Example:
        >>> round(krippendorff_alpha([[1, 1], [2, 2], [3, 3], [3, 4]], "interval"), 4)
        0.8889
    """
    if level not in LEVELS:
        raise ConfigError(f"unknown level {level!r}; accepted: {', '.join(LEVELS)}.")
    given = [np.asarray(unit, dtype=np.float64) for unit in units]
    paired = [present for unit in given if len(present := unit[~np.isnan(unit)]) >= 2]
    if not paired:
        return math.nan
    values, places = np.unique(np.concatenate(paired), return_inverse=True)
    if len(values) < 2:
        return math.nan
    counts = np.zeros((len(paired), len(values)))
    np.add.at(counts, (np.repeat(np.arange(len(paired)), [len(unit) for unit in paired]), places.ravel()), 1)
    weights = 1 / (counts.sum(axis=1) - 1)
    coincidences = (counts * weights[:, None]).T @ counts - np.diag((counts * weights[:, None]).sum(axis=0))
    totals = coincidences.sum(axis=0)
    distances = _distances(values, totals, level)
    expected = (np.outer(totals, totals) * distances).sum() / (totals.sum() - 1)
    return float(1 - (coincidences * distances).sum() / expected)


def _distances(values: np.ndarray, totals: np.ndarray, level: Level) -> np.ndarray:
    """Squared distances of all pairs of values. Shape: (n_values, n_values)."""
    one, other = values[:, None], values[None, :]
    if level == "nominal":
        return (one != other).astype(np.float64)
    if level == "interval":
        return (one - other) ** 2
    if level == "ratio":
        sums = one + other
        return np.divide(one - other, sums, out=np.zeros_like(sums), where=sums != 0) ** 2
    ranks = np.cumsum(totals) - totals / 2
    return (ranks[:, None] - ranks[None, :]) ** 2
