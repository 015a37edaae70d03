"""Tests and effect sizes on per-item values: the t-tests that papers used, McNemar's test, Cohen's d, Cliff's delta.

Which test a paper used is part of its result, so each result carries its name. Gao et al. 2021 (released code): the
*unpaired* t-test with pooled variance on per-reply BERTScore and sentence BLEU, although both systems answer the same
items; the paired test is the one that fits such data. For scores of whole corpora see ``significance``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from empatheia.errors import ConfigError, DataError, MissingDependencyError
from empatheia.metrics.base import check_same_length

Values = Sequence[float] | Sequence[bool] | np.ndarray


@dataclass(frozen=True, slots=True)
class ItemTest:
    """Result of a test on per-item values.

    Attributes:
        name: ``t-pooled``, ``t-welch``, ``t-paired``, ``mcnemar-exact`` or ``mcnemar-chi2``.
        difference: Mean of a minus mean of b, in their unit (a fraction for McNemar's test).
        statistic: t, chi-square, or the smaller of the two counts (exact McNemar).
        p_value: Two-sided.
        degrees: Degrees of freedom; None for the exact test.
        n: Items of a and of b.
    """

    name: str
    difference: float
    statistic: float
    p_value: float
    degrees: float | None
    n: tuple[int, int]

    def to_dict(self) -> dict[str, object]:
        """JSON-ready data."""
        return asdict(self)


def t_test(a: Values, b: Values, kind: Literal["pooled", "welch", "paired"] = "paired") -> ItemTest:
    """Student's t-test of two samples of per-item values, two-sided (needs scipy).

    Args:
        a: Values of one system. Shape: (n_a,).
        b: Values of the other; for ``paired`` of the same items in the same order. Shape: (n_b,).
        kind: ``pooled`` (unpaired, one variance; the released code of Gao et al. 2021), ``welch`` (unpaired, two
            variances) or ``paired``.

    Raises:
        ConfigError: Unknown kind.
        DataError: Fewer than two values, a value that is not finite, different numbers for ``paired``, or no variation
            at all, so that t is undefined.
        MissingDependencyError: scipy is not installed.

    Example:
        >>> result = t_test([0.2, 0.4, 0.6, 0.9], [0.1, 0.4, 0.5, 0.7])
        >>> round(result.statistic, 3), round(result.p_value, 4)
        (2.449, 0.0917)
    """
    if kind not in ("pooled", "welch", "paired"):
        raise ConfigError(f"unknown kind of t-test {kind!r}; accepted: pooled, welch, paired.")
    first, second = _samples("t-test", a, b, paired=kind == "paired")
    try:
        from scipy import stats
    except ImportError as error:
        raise MissingDependencyError("a t-test needs scipy; install it with: pip install scipy") from error
    spread = (first - second).std() if kind == "paired" else first.std() + second.std()
    if spread == 0:
        raise DataError("t-test: the values do not vary, so t is undefined; use paired_permutation.")
    result: Any = (
        stats.ttest_rel(first, second)
        if kind == "paired"
        else stats.ttest_ind(first, second, equal_var=kind == "pooled")
    )
    difference = float(first.mean() - second.mean())
    numbers = float(result.statistic), float(result.pvalue), float(result.df)
    return ItemTest(f"t-{kind}", difference, *numbers, (len(first), len(second)))


def mcnemar(a: Values, b: Values, exact: bool = True) -> ItemTest:
    """McNemar's test (1947): do two systems' accuracies differ on the same items? Two-sided.

    Only items on which exactly one of the two is right count: n_a and n_b of them.

    Args:
        a: Whether one system was right, for each item. Shape: (n_items,).
        b: The same of the other.
        exact: Binomial test of the smaller count out of n_a + n_b with probability 1/2; False = chi-square
            (|n_a - n_b| - 1)**2 / (n_a + n_b), with Edwards' correction.

    Returns:
        p is 1 when the systems never disagree.

    Raises:
        DataError: The numbers differ, there are no items, or a value is neither 0 nor 1.

    Example:
        >>> mcnemar([1, 1, 1, 1, 1, 0], [0, 0, 0, 0, 0, 0]).p_value
        0.0625
    """
    first, second = _samples("mcnemar", a, b, paired=True, least=1)
    if not np.isin([first, second], (0, 1)).all():
        raise DataError("mcnemar: values are not all 0 or 1; give whether each answer was right.")
    only_first, only_second = int((first > second).sum()), int((first < second).sum())
    n, fewer = only_first + only_second, min(only_first, only_second)
    difference, counts = float(first.mean() - second.mean()), (len(first), len(second))
    if exact:
        p_value = min(1.0, float(2 * _binomial_tail(fewer, n)))
        return ItemTest("mcnemar-exact", difference, float(fewer), p_value, None, counts)
    statistic = (abs(only_first - only_second) - 1) ** 2 / n if n else 0.0
    return ItemTest("mcnemar-chi2", difference, statistic, math.erfc(math.sqrt(statistic / 2)), 1.0, counts)


def _binomial_tail(k: int, n: int) -> float:
    """P(X <= k) of n fair coins."""
    ways, term = 0, 1
    for i in range(k + 1):
        ways += term
        term = term * (n - i) // (i + 1)
    return ways / 2**n


def cohen_d(a: Values, b: Values) -> float:
    """Cohen's d (1988, p. 66): difference of the means over the pooled standard deviation; no bounds.

    About 0.2 is small, 0.5 medium, 0.8 large. The pairing of items is not used; see :func:`cohen_dz`.

    Raises:
        DataError: Fewer than two values on a side, a value that is not finite, or no variation.

    Example:
        >>> round(cohen_d([2.0, 4.0], [1.0, 3.0]), 4)
        0.7071
    """
    first, second = _samples("cohen_d", a, b, paired=False)
    freedom = len(first) + len(second) - 2
    pooled = math.sqrt(((len(first) - 1) * first.var(ddof=1) + (len(second) - 1) * second.var(ddof=1)) / freedom)
    return _ratio("cohen_d", float(first.mean() - second.mean()), pooled)


def cohen_dz(a: Values, b: Values) -> float:
    """Cohen's d of pairs (1988, p. 48): mean of the differences over their standard deviation; no bounds.

    It is t / sqrt(n) of the paired t-test, and larger than :func:`cohen_d` where both systems find the same items hard.

    Raises:
        DataError: The numbers differ, fewer than two items, a value that is not finite, or no variation.
    """
    first, second = _samples("cohen_dz", a, b, paired=True)
    differences = first - second
    return _ratio("cohen_dz", float(differences.mean()), float(differences.std(ddof=1)))


def cliff_delta(a: Values, b: Values) -> float:
    """Cliff's delta (1993): P(value of a > value of b) - P(<) over all pairs of items; -1 to 1.

    Only the order of values matters. Below 0.147 is usually called negligible, 0.33 small, 0.474 medium.

    Raises:
        DataError: A side has no value, or a value is not finite.

    Example:
        >>> cliff_delta([3, 4], [1, 3])
        0.75
    """
    first, second = _samples("cliff_delta", a, b, paired=False, least=1)
    ordered = np.sort(second)
    below, upto = np.searchsorted(ordered, first, "left"), np.searchsorted(ordered, first, "right")
    return float((below.sum() - (len(second) - upto).sum()) / (len(first) * len(second)))


def _samples(what: str, a: Values, b: Values, paired: bool, least: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Both samples as float arrays, checked."""
    if paired:
        check_same_length(what, a=a, b=b)
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    for name, sample in (("a", first), ("b", second)):
        if sample.ndim != 1 or len(sample) < least:
            raise DataError(f"{what}: {name} has shape {sample.shape}; accepted: at least {least} values in a row.")
        wrong = np.flatnonzero(~np.isfinite(sample))
        if len(wrong):
            raise DataError(f"{what}: value {wrong[0]} of {name} is {sample[wrong[0]]}; leave undefined items out.")
    return first, second


def _ratio(what: str, difference: float, spread: float) -> float:
    if spread == 0:
        raise DataError(f"{what}: the values do not vary, so the effect has no size in standard deviations.")
    return difference / spread
