"""Is the difference between two systems more than chance? Paired tests on the same items; Holm correction.

All tests recompute the *corpus* score of each resample from per-item statistics, so they work for BLEU,
perplexity and Distinct as for accuracy. Permutation: Noreen 1989; bootstrap: Koehn 2004; several comparisons:
Holm 1979. Over several training runs a system: hierarchical bootstrap over runs and items (Sellam et al. 2022, the
"MultiBERTs" procedure), permutation of items or of runs. Tests and effect sizes on per-item values are in
``item_tests``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from math import comb
from typing import Literal, NotRequired, TypedDict

import numpy as np

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.base import CHUNK_CELLS, Metric, bootstrap_weights, quantiles


class ComparisonRecord(TypedDict):
    """A :class:`Comparison` as JSON keeps it; see there. Records of earlier versions lack what is not required."""

    metric: str
    difference: float
    p_value: float
    interval: tuple[float, float] | None
    n: int
    n_resamples: int
    method: str
    n_runs: NotRequired[tuple[int, int]]
    p_adjusted: NotRequired[float | None]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Result of a paired test of system a against system b.

    Attributes:
        metric: Name of the score.
        difference: a - b, in the score's unit.
        p_value: Two-sided. For the bootstrap twice the share of resamples in which the observed winner does not win
            (Koehn's share itself is one-sided, for a winner named before looking).
        interval: Interval of the difference (bootstrap only).
        n: Items.
        n_resamples: Permutations or bootstrap replicates.
        method: ``permutation`` (of items), ``permutation-runs``, ``bootstrap`` (of items) or
            ``bootstrap-runs-items``.
        n_runs: Runs of each system, a's and b's.
        p_adjusted: Holm's, when the test is one of a family (see :func:`adjusted`).
    """

    metric: str
    difference: float
    p_value: float
    interval: tuple[float, float] | None
    n: int
    n_resamples: int
    method: str
    n_runs: tuple[int, int] = (1, 1)
    p_adjusted: float | None = None

    def to_dict(self) -> ComparisonRecord:
        """JSON-ready data."""
        return ComparisonRecord(**asdict(self))


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
        as_extreme += int(np.count_nonzero(_at_least(first - second, difference)))
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
    p_value = _two_sided(differences, difference)
    interval = quantiles(differences, confidence)
    return Comparison(a.name, difference, p_value, interval, a.n_items, n_resamples, "bootstrap")


def permutation_over_runs(
    a: Sequence[Metric],
    b: Sequence[Metric],
    unit: Literal["items", "runs"] = "items",
    n_resamples: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """Permutation test of two systems with several training runs each; the score of a system is the mean of its runs.

    - ``items``: for each item one coin decides whether the systems swap their outputs, in all runs at once. It asks
      whether *these* runs differ on other items.
    - ``runs``: whole runs change their system. It asks whether *other seeds* would differ too. All divisions are tried
      when there are at most ``n_resamples``; with r runs each the smallest p is 2 / C(2r, r): .1 for 3, .008 for 5.

    Args:
        a: Accumulators of one system, one a run, all updated with the same items in the same order.
        b: Those of the other. For ``items`` as many as in ``a``.
        unit: What is exchanged.
        n_resamples: Permutations.
        seed: Of the draws.

    Raises:
        ConfigError: A system has no run, the numbers of runs differ for ``items``, or the unit is unknown.
        DataError: The runs did not see the same items, or a score is undefined.

    Example:
        >>> from empatheia.metrics.classification import Accuracy
        >>> def runs(*answers):
        ...     metrics = [Accuracy() for _ in answers]
        ...     for metric, answer in zip(metrics, answers):
        ...         metric.update([answer] * 4, [1] * 4)
        ...     return metrics
        >>> permutation_over_runs(runs(1, 1, 1), runs(0, 0, 0), unit="runs").p_value
        0.1
    """
    if unit not in ("items", "runs"):
        raise ConfigError(f"unknown unit {unit!r}; accepted: items, runs.")
    scores = _run_scores(a, b, n_resamples)
    difference = float(scores[: len(a)].mean() - scores[len(a) :].mean())
    if unit == "runs":
        differences, n_tried, is_complete = _relabelled(scores, len(a), n_resamples, seed)
        as_extreme = int(np.count_nonzero(_at_least(differences, difference)))
        p_value = as_extreme / n_tried if is_complete else (1 + as_extreme) / (1 + n_tried)
        return Comparison(
            a[0].name, difference, p_value, None, a[0].n_items, n_tried, "permutation-runs", (len(a), len(b))
        )
    if len(a) != len(b):
        raise ConfigError(
            f"got {len(a)} and {len(b)} runs; exchanging items needs as many of both, or use unit='runs'."
        )
    both = [first + second for first, second in zip(a, b, strict=True)]
    as_extreme = 0
    for swapped in _coins(a[0].n_items, n_resamples, seed):
        one, other = np.concatenate([1 - swapped, swapped], axis=1), np.concatenate([swapped, 1 - swapped], axis=1)
        differences = np.mean([pair.value_at(one) - pair.value_at(other) for pair in both], axis=0)
        as_extreme += int(np.count_nonzero(_at_least(differences, difference)))
    p_value = (1 + as_extreme) / (1 + n_resamples)
    return Comparison(a[0].name, difference, p_value, None, a[0].n_items, n_resamples, "permutation", (len(a), len(b)))


def bootstrap_over_runs(
    a: Sequence[Metric], b: Sequence[Metric], n_resamples: int = 1000, seed: int = 0, confidence: float = 0.95
) -> Comparison:
    """Hierarchical bootstrap: each replicate draws runs of both systems, and one set of items for all of them.

    The interval covers both kinds of chance: other seeds and other test items. With few runs it is too short, by about
    sqrt((r - 1) / r) in its part from seeds. With one run each it is :func:`paired_bootstrap`.

    Args:
        a: Accumulators of one system, one a run, all updated with the same items in the same order.
        b: Those of the other; the number may differ.
        n_resamples: Replicates.
        seed: Of the draws.
        confidence: Coverage of the interval of the difference.

    Raises:
        ConfigError: A system has no run, or the score cannot be bootstrapped.
        DataError: The runs did not see the same items, or a score is undefined.

    Example:
        >>> from empatheia.metrics.classification import Accuracy
        >>> good, poor = Accuracy(), Accuracy()
        >>> good.update([1, 1, 1, 1], [1, 1, 1, 1])
        >>> poor.update([0, 0, 0, 0], [1, 1, 1, 1])
        >>> bootstrap_over_runs([good, good], [poor, good]).interval
        (0.0, 100.0)
    """
    scores = _run_scores(a, b, n_resamples)
    if not a[0].can_bootstrap:
        raise ConfigError(f"{a[0].name} is biased under resampling with replacement; use permutation_over_runs.")
    difference = float(scores[: len(a)].mean() - scores[len(a) :].mean())
    rng = np.random.default_rng([seed, 1])
    differences = []
    for weights in bootstrap_weights(a[0].n_items, n_resamples, seed):
        means = []
        for runs in (a, b):
            values = np.stack([run.value_at(weights) for run in runs])  # (n_runs, n_rows)
            drawn = rng.multinomial(len(runs), np.full(len(runs), 1 / len(runs)), size=len(weights)).T
            means.append((values * drawn).sum(axis=0) / len(runs))
        differences.append(means[0] - means[1])
    drawn_differences = np.concatenate(differences)
    p_value = _two_sided(drawn_differences, difference)
    interval = quantiles(drawn_differences, confidence)
    n_runs = (len(a), len(b))
    return Comparison(
        a[0].name, difference, p_value, interval, a[0].n_items, n_resamples, "bootstrap-runs-items", n_runs
    )


def compare_with_all(
    ours: Metric | Sequence[Metric],
    others: Mapping[str, Metric | Sequence[Metric]],
    n_resamples: int = 10_000,
    seed: int = 0,
) -> dict[str, Comparison]:
    """Paired permutation test (of items) of one system against each other one, with Holm's correction.

    With several runs it asks whether *these* runs differ on other items. It says nothing of other seeds: where seeds
    matter, it calls equal systems different far too often; see :func:`permutation_over_runs` with ``unit="runs"``.

    Args:
        ours: One accumulator, or one for each run.
        others: The same of each other system, by its name.
        n_resamples: Permutations in each test.
        seed: Of the coins.

    Returns:
        One comparison for each other system, in the given order, with ``p_adjusted``.

    Raises:
        ConfigError: The numbers of runs differ.
        DataError: Not the same items, or a score is undefined.
    """
    mine = [ours] if isinstance(ours, Metric) else list(ours)
    found = {}
    for name, other in others.items():
        theirs = [other] if isinstance(other, Metric) else list(other)
        found[name] = permutation_over_runs(mine, theirs, "items", n_resamples, seed)
    return adjusted(found)


def adjusted(comparisons: Mapping[str, Comparison]) -> dict[str, Comparison]:
    """The same comparisons as one family, each with Holm's adjusted p-value."""
    p_values = holm({name: comparison.p_value for name, comparison in comparisons.items()})
    return {name: replace(comparison, p_adjusted=p_values[name]) for name, comparison in comparisons.items()}


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
    place = a.first_other_reference(b)
    if place is not None:
        raise DataError(
            f"not a paired comparison: {first.name} saw the same references in another order, first at item {place};"
            " give both systems the items in one order."
        )
    difference = first.value - second.value
    if np.isnan(difference):
        raise DataError(f"{a.name} is {first.value} for the first and {second.value} for the second system.")
    return difference


def _two_sided(differences: np.ndarray, observed: float) -> float:
    """Twice the share of bootstrap differences without the observed sign, at most 1; undefined ones count as such."""
    not_winning = int(np.count_nonzero(~(differences * np.sign(observed) > 0)))
    return min(1.0, 2 * (1 + not_winning) / (1 + len(differences)))


def _coins(n_items: int, n_resamples: int, seed: int) -> Iterator[np.ndarray]:
    """Zeros and ones in chunks of shape (n_rows, n_items)."""
    rng = np.random.default_rng(seed)
    step = max(1, CHUNK_CELLS // (4 * n_items))
    for start in range(0, n_resamples, step):
        yield rng.integers(0, 2, size=(min(step, n_resamples - start), n_items)).astype(np.float64)


def _run_scores(a: Sequence[Metric], b: Sequence[Metric], n_resamples: int) -> np.ndarray:
    """Scores of a's runs, then of b's, after a check that all saw the same items. Shape: (n_runs,)."""
    if isinstance(a, Metric) or isinstance(b, Metric) or not a or not b:
        raise ConfigError("each system needs a list with one metric or more, one for each run.")
    for run in [*a[1:], *b]:
        _observed(a[0], run, n_resamples)
    return np.array([run.compute().value for run in [*a, *b]])


def _relabelled(scores: np.ndarray, n_first: int, n_resamples: int, seed: int) -> tuple[np.ndarray, int, bool]:
    """Differences of means under divisions of the runs, how many, and whether these are all divisions."""
    n = len(scores)
    is_complete = comb(n, n_first) <= n_resamples
    if is_complete:
        chosen = np.zeros((comb(n, n_first), n), dtype=bool)
        for row, members in zip(chosen, combinations(range(n), n_first), strict=True):
            row[list(members)] = True
    else:
        ranks = np.random.default_rng(seed).random((n_resamples, n)).argsort(axis=1)
        chosen = ranks < n_first
    differences = (chosen @ scores) / n_first - (~chosen @ scores) / (n - n_first)
    return differences, len(chosen), is_complete


def _at_least(differences: np.ndarray, observed: float) -> np.ndarray:
    """Whether |difference| reaches the observed one; an undefined one does, which can only raise p."""
    return ~(np.abs(differences) < abs(observed) * (1 - 1e-9) - 1e-12)
