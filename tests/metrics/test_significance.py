"""Paired tests against exact enumeration and scipy; Holm against statsmodels."""

import itertools

import numpy as np
import pytest

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.bleu import BLEU
from empatheia.metrics.classification import Accuracy
from empatheia.metrics.distinct import CorpusDistinct
from empatheia.metrics.perplexity import TokenPerplexity
from empatheia.metrics.significance import (
    adjusted,
    bootstrap_over_runs,
    compare_with_all,
    holm,
    paired_bootstrap,
    paired_permutation,
    permutation_over_runs,
)


def accuracy(correct):
    metric = Accuracy()
    metric.update(np.asarray(correct, dtype=int), np.ones(len(correct), dtype=int))
    return metric


def perplexity(nll):
    metric = TokenPerplexity()
    metric.update(nll, np.arange(1, len(nll) + 1))
    return metric


def exact_p(a, b):
    """Share of all 2**n swaps whose |difference| is at least the observed one."""
    both, n = a + b, a.n_items
    swaps = np.array(list(itertools.product([0.0, 1.0], repeat=n)))
    first = both.value_at(np.concatenate([1 - swaps, swaps], axis=1))
    second = both.value_at(np.concatenate([swaps, 1 - swaps], axis=1))
    return np.mean(np.abs(first - second) >= abs(a.compute().value - b.compute().value) - 1e-9)


@pytest.mark.parametrize("kind", ["accuracy", "perplexity", "distinct", "bleu"])
def test_permutation_agrees_with_all_swaps(kind):
    rng = np.random.default_rng(5)
    if kind == "accuracy":
        a, b = accuracy(rng.random(8) < 0.9), accuracy(rng.random(8) < 0.3)
    elif kind == "perplexity":
        a, b = perplexity(rng.random(8) * 5), perplexity(rng.random(8) * 9)
    else:
        a, b = (CorpusDistinct(), CorpusDistinct()) if kind == "distinct" else (BLEU(1), BLEU(1))
        texts = [[list(rng.choice(list("abcdefgh"[:k]), 5)) for _ in range(8)] for k in (8, 3)]
        for metric, text in zip((a, b), texts, strict=True):
            metric.update(*([text] if kind == "distinct" else [text, texts[0][::-1]]))
    result = paired_permutation(a, b, n_resamples=4000, seed=1)
    assert result.p_value == pytest.approx(exact_p(a, b), abs=0.03)
    assert result.method == "permutation" and result.n == 8


def test_permutation_against_scipy_on_a_mean():
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(8)
    a, b = rng.random(60) < 0.62, rng.random(60) < 0.45
    theirs = stats.permutation_test(
        (a.astype(float), b.astype(float)),
        lambda x, y, axis: np.mean(x, axis=axis) - np.mean(y, axis=axis),
        permutation_type="samples",
        n_resamples=20_000,
        rng=np.random.default_rng(0),
    ).pvalue
    assert paired_permutation(accuracy(a), accuracy(b), 20_000).p_value == pytest.approx(theirs, abs=0.015)


def test_equal_systems_are_not_different():
    same = accuracy([1, 0, 1, 1])
    result = paired_permutation(same, accuracy([1, 0, 1, 1]), 200)
    assert (result.difference, result.p_value) == (0, 1)
    assert paired_bootstrap(same, accuracy([1, 0, 1, 1]), 200).p_value == 1


def test_false_alarms_stay_at_the_level():
    rng = np.random.default_rng(0)
    p_values = [
        paired_permutation(accuracy(rng.random(40) < 0.5), accuracy(rng.random(40) < 0.5), 199, seed=i).p_value
        for i in range(120)
    ]
    assert np.mean(np.array(p_values) <= 0.05) <= 0.1


def test_bootstrap_does_not_call_equal_systems_different_twice_as_often():
    """The winner is named after looking, so the one-sided share alone would be below .2 in two cases of five."""
    rng = np.random.default_rng(2)
    p_values = [
        paired_bootstrap(accuracy(rng.random(80) < 0.5), accuracy(rng.random(80) < 0.5), 199, seed=i).p_value
        for i in range(200)
    ]
    assert np.mean(np.array(p_values) <= 0.2) <= 0.27


def test_bootstrap_uses_the_pairing():
    rng = np.random.default_rng(1)
    difficulty = rng.random(300) * 5
    a, b = perplexity(difficulty), perplexity(difficulty + 0.05)
    result = paired_bootstrap(a, b, 500, seed=2)
    assert result.interval[0] < result.difference < result.interval[1] < 0
    assert result.p_value == pytest.approx(2 / 501)
    assert paired_bootstrap(a, b, 500, seed=2) == result
    assert result.to_dict()["metric"] == "ppl_token"


def test_holm_against_statsmodels():
    multi = pytest.importorskip("statsmodels.stats.multitest")
    raw = {f"s{i}": p for i, p in enumerate([0.001, 0.04, 0.03, 0.2, 0.9, 0.03])}
    expected = multi.multipletests(list(raw.values()), method="holm")[1]
    assert list(holm(raw).values()) == pytest.approx(list(expected))
    assert list(holm(raw)) == list(raw)
    assert holm({}) == {}


def test_bad_input():
    with pytest.raises(DataError, match="not a paired comparison: accuracy, n = 2"):
        paired_permutation(accuracy([1, 0]), accuracy([1, 0, 1]))
    other = Accuracy()
    other.update([1, 1], [1, 0])
    with pytest.raises(DataError, match="score both systems on the same items"):
        paired_bootstrap(accuracy([1, 0]), other)
    short = BLEU(4)
    short.update(["a"], ["a"])
    with pytest.raises(DataError, match="bleu_corpus_4 is nan"):
        paired_permutation(short, short)
    distinct = CorpusDistinct()
    distinct.update(["a"])
    with pytest.raises(ConfigError, match="use paired_permutation"):
        paired_bootstrap(distinct, distinct)
    with pytest.raises(ConfigError, match="n_resamples is 0"):
        paired_permutation(accuracy([1]), accuracy([1]), 0)
    with pytest.raises(DataError, match=r"p-value of 'x' is 1\.2"):
        holm({"x": 1.2})


def runs(rate, n_runs, n_items=40, seed=0):
    rng = np.random.default_rng(seed)
    return [accuracy(rng.random(n_items) < rate) for _ in range(n_runs)]


def test_one_run_each_is_the_plain_test():
    (a,), (b,) = runs(0.8, 1), runs(0.5, 1, seed=1)
    plain, over = paired_permutation(a, b, 300, seed=4), permutation_over_runs([a], [b], "items", 300, seed=4)
    assert plain == over
    plain, over = paired_bootstrap(a, b, 300, seed=4), bootstrap_over_runs([a], [b], 300, seed=4)
    assert (over.difference, over.p_value, over.interval) == (plain.difference, plain.p_value, plain.interval)
    assert over.method == "bootstrap-runs-items"


def test_items_are_exchanged_in_all_runs_at_once():
    """Against all 2**7 exchanges."""
    first, second = runs(0.9, 2, 7), runs(0.4, 2, 7, seed=1)
    correct = np.array([[m.statistics()[:, 0] for m in system] for system in (first, second)])  # (2, runs, items)
    gaps = (correct[0] - correct[1]).mean(axis=0)  # of each item, over runs
    signs = np.array(list(itertools.product([1, -1], repeat=7)))
    exact = np.mean(np.abs(signs @ gaps) >= abs(gaps.sum()) - 1e-9)
    result = permutation_over_runs(first, second, "items", 4000, seed=2)
    assert result.difference == pytest.approx(100 * gaps.mean())
    assert result.p_value == pytest.approx(exact, abs=0.03)
    assert result.n_runs == (2, 2)


def test_runs_are_divided_in_all_ways():
    stats = pytest.importorskip("scipy.stats")
    first, second = runs(0.7, 4), runs(0.6, 3, seed=1)
    scores = [[run.compute().value for run in system] for system in (first, second)]
    theirs = stats.permutation_test(
        scores, lambda x, y, axis: np.mean(x, axis=axis) - np.mean(y, axis=axis), n_resamples=np.inf
    )
    result = permutation_over_runs(first, second, "runs")
    assert result.n_resamples == 35 and result.method == "permutation-runs"
    exact = np.mean(np.abs(theirs.null_distribution) >= abs(result.difference) - 1e-9)
    assert result.p_value == pytest.approx(exact)
    some = permutation_over_runs(runs(0.9, 8), runs(0.3, 8, seed=1), "runs", n_resamples=500, seed=3)
    assert some.n_resamples == 500 and some.p_value < 0.01


def test_bootstrap_over_runs_is_wider_where_seeds_matter():
    """Two systems whose runs lie far apart: items alone would call any difference of these runs certain."""
    rng = np.random.default_rng(3)
    difficulty = rng.random(200) * 2
    first = [perplexity(difficulty + shift) for shift in (0.1, 0.9, 2.0)]
    second = [perplexity(difficulty + shift) for shift in (0.2, 1.2, 2.2)]
    over = bootstrap_over_runs(first, second, 800, seed=1)
    items_only = paired_bootstrap(first[0], second[0], 800, seed=1)
    assert over.interval[0] < 0 < over.interval[1] and over.p_value > 0.05
    assert items_only.p_value < 0.01
    same = bootstrap_over_runs(first, first, 200, seed=1)
    assert same.difference == 0 and same.p_value == 1
    assert bootstrap_over_runs(first, second, 200, seed=5) == bootstrap_over_runs(first, second, 200, seed=5)


def test_a_family_of_comparisons():
    ours = runs(0.9, 1)[0]
    others = {"near": runs(0.8, 1, seed=1)[0], "far": runs(0.2, 1, seed=2)}
    family = compare_with_all(ours, others, 400)
    assert list(family) == ["near", "far"]
    raw = {name: comparison.p_value for name, comparison in family.items()}
    assert {name: c.p_adjusted for name, c in family.items()} == holm(raw)
    assert family["far"].p_adjusted == pytest.approx(2 / 401)
    assert adjusted({}) == {}


def test_bad_runs():
    one = runs(0.5, 1)
    with pytest.raises(ConfigError, match="got 1 and 2 runs"):
        permutation_over_runs(one, runs(0.5, 2))
    with pytest.raises(ConfigError, match="a list with one metric or more"):
        bootstrap_over_runs([], one)
    with pytest.raises(ConfigError, match="unknown unit 'seeds'"):
        permutation_over_runs(one, one, "seeds")
    with pytest.raises(DataError, match="not a paired comparison"):
        bootstrap_over_runs(one, runs(0.5, 2, n_items=30))
    distinct = CorpusDistinct()
    distinct.update(["a"])
    with pytest.raises(ConfigError, match="use permutation_over_runs"):
        bootstrap_over_runs([distinct], [distinct])


def test_pairs_in_another_order_are_refused():
    """The fingerprint of a test set does not depend on the order; a paired test does."""
    replies, gold = ["a b", "c d", "e f"], ["a x", "c x", "e x"]
    ours, turned = BLEU(1), BLEU(1)
    ours.update(replies, gold)
    turned.update(replies[::-1], gold[:1] + gold[:0:-1])
    assert ours.signature() == turned.signature()
    for test in (paired_permutation, paired_bootstrap):
        with pytest.raises(DataError, match="same references in another order, first at item 1"):
            test(ours, turned, n_resamples=9)
    with pytest.raises(DataError, match="another order"):
        permutation_over_runs([ours, ours], [ours, turned], n_resamples=9)
