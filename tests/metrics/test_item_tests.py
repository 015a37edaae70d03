"""Tests on per-item values against scipy and statsmodels; effect sizes by hand and by counting pairs."""

import numpy as np
import pytest

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.item_tests import cliff_delta, cohen_d, cohen_dz, mcnemar, t_test

RNG = np.random.default_rng(11)
A = RNG.normal(0.55, 0.2, 60)
B = A * 0.6 + RNG.normal(0.15, 0.15, 60)


@pytest.mark.parametrize("kind", ["pooled", "welch", "paired"])
def test_t_tests_against_scipy(kind):
    stats = pytest.importorskip("scipy.stats")
    result = t_test(A, B, kind)
    theirs = stats.ttest_rel(A, B) if kind == "paired" else stats.ttest_ind(A, B, equal_var=kind == "pooled")
    assert (result.statistic, result.p_value) == pytest.approx((theirs.statistic, theirs.pvalue))
    assert result.degrees == pytest.approx(theirs.df)
    assert (result.name, result.n) == (f"t-{kind}", (60, 60))
    assert result.difference == pytest.approx(A.mean() - B.mean())


def test_t_test_against_statsmodels():
    weightstats = pytest.importorskip("statsmodels.stats.weightstats")
    for kind, usevar in (("pooled", "pooled"), ("welch", "unequal")):
        statistic, p_value, degrees = weightstats.ttest_ind(A, B[:40], usevar=usevar)
        result = t_test(A, B[:40], kind)
        assert (result.statistic, result.p_value, result.degrees) == pytest.approx((statistic, p_value, degrees))


@pytest.mark.parametrize("n", [6, 40, 3000])
def test_mcnemar_against_statsmodels(n):
    tables = pytest.importorskip("statsmodels.stats.contingency_tables")
    rng = np.random.default_rng(n)
    first, second = rng.random(n) < 0.7, rng.random(n) < 0.6
    table = [[np.sum(first & second), np.sum(first & ~second)], [np.sum(~first & second), np.sum(~first & ~second)]]
    for exact in (True, False):
        ours, theirs = mcnemar(first, second, exact), tables.mcnemar(table, exact=exact, correction=True)
        assert (ours.statistic, ours.p_value) == pytest.approx((theirs.statistic, theirs.pvalue))
        assert ours.difference == pytest.approx(first.mean() - second.mean())


def test_mcnemar_without_disagreement():
    assert mcnemar([1, 0], [1, 0]).p_value == 1
    assert mcnemar([1, 0], [1, 0], exact=False).p_value == 1


def test_effect_sizes_by_hand():
    """Means 3 and 2, sample variances 2 and 2: d = 1 / sqrt(2); differences 1, 1, 4: dz = 2 / sqrt(3)."""
    pytest.importorskip("scipy")
    assert cohen_d([2.0, 4.0], [1.0, 3.0]) == pytest.approx(1 / np.sqrt(2))
    assert cohen_dz([2.0, 3.0, 7.0], [1.0, 2.0, 3.0]) == pytest.approx(2 / np.sqrt(3))
    assert cohen_dz(A, B) == pytest.approx(t_test(A, B).statistic / np.sqrt(60))
    assert cohen_d(A, B) == pytest.approx(t_test(A, B, "pooled").statistic * np.sqrt(2 / 60))


def test_cliff_delta_counts_pairs():
    first, second = RNG.integers(0, 5, 30), RNG.integers(0, 4, 20)
    pairs = np.sign(first[:, None] - second[None, :])
    assert cliff_delta(first, second) == pytest.approx(pairs.mean())
    assert cliff_delta([2], [1]) == 1 and cliff_delta([1], [1]) == 0 and cliff_delta(first, first) == 0


def test_bad_input():
    pytest.importorskip("scipy")
    with pytest.raises(ConfigError, match="unknown kind of t-test 'one-sided'"):
        t_test(A, B, "one-sided")
    with pytest.raises(DataError, match="2 a, 3 b"):
        t_test([1, 2], [1, 2, 3])
    with pytest.raises(DataError, match="value 1 of a is nan"):
        t_test([1, np.nan], [1, 2])
    with pytest.raises(DataError, match="do not vary"):
        t_test([1, 2, 3], [0, 1, 2])
    with pytest.raises(DataError, match="a has shape"):
        cohen_d([1], [1, 2])
    with pytest.raises(DataError, match="do not vary"):
        cohen_d([1, 1], [1, 1])
    with pytest.raises(DataError, match="not all 0 or 1"):
        mcnemar([0.5, 1], [1, 1])
