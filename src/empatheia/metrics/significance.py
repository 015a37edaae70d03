"""Is the difference between two systems more than chance? Paired tests on the same items; Holm correction.

Both tests recompute the *corpus* score of each resample from per-item statistics, so they work for BLEU,
perplexity and Distinct as for accuracy. Permutation: Noreen 1989; bootstrap: Koehn 2004; several comparisons:
Holm 1979.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.base import CHUNK_CELLS, Metric, bootstrap_weights, quantiles


@dataclass(frozen=True, slots=True)
class Comparison:
    """Result of a paired test of system a against system b.

    Attributes:
        metric: Name of the score.
        difference: a - b, in the score's unit.
        p_value: Two-sided for the permutation test; one-sided for the bootstrap: the share of resamples in
            which the observed winner does not win.
        interval: Interval of the difference (bootstrap only).
        n: Items.
        n_resamples: Permutations or bootstrap replicates.
        method: ``permutation`` or ``bootstrap``.
    """

    metric: str
    difference: float
    p_value: float
    interval: tuple[float, float] | None
    n: int
    n_resamples: int
    method: str

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready data."""
        return asdict(self)


def paired_permutation(a: Metric, b: Metric, n_resamples: int = 10_000, seed: int = 0) -> Comparison:
    """Paired permutation test: for each item a coin decides whether the two systems swap their outputs.

    p = (1 + number of permutations whose |difference| is at least the observed one) / (1 + permutations).

    Args:
        a: Accumulator of one system, updated with the items in some order.
        b: Accumulator of the other, updated with the *same* items in the same order.
        n_resamples: Permutations; the smallest possible p is 1 / (n_resamples + 1).
        seed: Of the coins.

    Raises:
        DataError: The two did not see the same items, or the score is undefined for one of them.

    Example:
        >>> from empatheia.metrics.classification import Accuracy
        >>> good, poor = Accuracy(), Accuracy()
        >>> good.update([1] * 20, [1] * 20)
        >>> poor.update([0] * 20, [1] * 20)
        >>> paired_permutation(good, poor, n_resamples=999).p_value
        0.001
    """
    difference = _observed(a, b, n_resamples)
    both = a + b  # items 0..n-1 are a's, n..2n-1 are b's
    as_extreme = 0
    for swapped in _coins(a.n_items, n_resamples, seed):
        first = both.value_at(np.concatenate([1 - swapped, swapped], axis=1))
        second = both.value_at(np.concatenate([swapped, 1 - swapped], axis=1))
        # an undefined permutation counts as extreme, which can only raise p
        less_extreme = np.abs(first - second) < abs(difference) * (1 - 1e-9) - 1e-12
        as_extreme += int(np.count_nonzero(~less_extreme))
    p_value = (1 + as_extreme) / (1 + n_resamples)
    return Comparison(a.name, difference, p_value, None, a.n_items, n_resamples, "permutation")


def paired_bootstrap(
    a: Metric, b: Metric, n_resamples: int = 1000, seed: int = 0, confidence: float = 0.95
) -> Comparison:
    """Paired bootstrap: both systems are scored on the same resampled items.

    Args:
        a: Accumulator of one system.
        b: Accumulator of the other, updated with the same items in the same order.
        n_resamples: Replicates.
        seed: Of the draws.
        confidence: Coverage of the interval of the difference.

    Raises:
        DataError: The two did not see the same items, or the score is undefined for one of them.
        ConfigError: The score cannot be bootstrapped (Distinct over a corpus); use the permutation test.

    Example:
        >>> from empatheia.metrics.classification import Accuracy
        >>> good, poor = Accuracy(), Accuracy()
        >>> good.update([1, 1, 1, 1], [1, 1, 1, 1])
        >>> poor.update([0, 0, 0, 0], [1, 1, 1, 1])
        >>> paired_bootstrap(good, poor).interval
        (100.0, 100.0)
    """
    if not a.can_bootstrap:
        raise ConfigError(f"{a.name} is biased under resampling with replacement; use paired_permutation.")
    difference = _observed(a, b, n_resamples)
    weights = bootstrap_weights(a.n_items, n_resamples, seed)
    differences = np.concatenate([a.value_at(w) - b.value_at(w) for w in weights])
    not_winning = np.count_nonzero(~(differences * np.sign(difference) > 0))
    p_value = (1 + not_winning) / (1 + n_resamples)
    interval = quantiles(differences, confidence)
    return Comparison(a.name, difference, p_value, interval, a.n_items, n_resamples, "bootstrap")


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Adjusted p-values of several comparisons (step-down, controls the family-wise error rate).

    Args:
        p_values: Raw p-value of each comparison, by name.

    Raises:
        DataError: A value is not between 0 and 1.

    Example:
        >>> holm({"MoEL": 0.01, "MIME": 0.04, "EmpDG": 0.03})
        {'MoEL': 0.03, 'MIME': 0.06, 'EmpDG': 0.06}
    """
    adjusted: dict[str, float] = {}
    highest = 0.0
    for rank, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        if not 0 <= p <= 1:
            raise DataError(f"p-value of {name!r} is {p}; accepted: 0 to 1.")
        highest = max(highest, min(1.0, (len(p_values) - rank) * p))
        adjusted[name] = highest
    return {name: adjusted[name] for name in p_values}


def _observed(a: Metric, b: Metric, n_resamples: int) -> float:
    """Checks that the items are paired, and returns score(a) - score(b)."""
    if n_resamples < 1:
        raise ConfigError(f"n_resamples is {n_resamples}; accepted: 1 or more.")
    first, second = a.compute(), b.compute()
    if first.n != second.n or first.signature != second.signature or first.name != second.name:
        raise DataError(
            f"not a paired comparison: {first.name}, n = {first.n}, {first.signature} against"
            f" {second.name}, n = {second.n}, {second.signature}; score both systems on the same items."
        )
    difference = first.value - second.value
    if np.isnan(difference):
        raise DataError(f"{a.name} is {first.value} for the first and {second.value} for the second system.")
    return difference


def _coins(n_items: int, n_resamples: int, seed: int) -> Iterator[np.ndarray]:
    """Zeros and ones in chunks of shape (n_rows, n_items)."""
    rng = np.random.default_rng(seed)
    step = max(1, CHUNK_CELLS // (4 * n_items))
    for start in range(0, n_resamples, step):
        yield rng.integers(0, 2, size=(min(step, n_resamples - start), n_items)).astype(np.float64)
