"""Paired tests against exact enumeration and scipy; Holm against statsmodels."""

import itertools

import numpy as np
import pytest

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.bleu import BLEU
from empatheia.metrics.classification import Accuracy
from empatheia.metrics.distinct import CorpusDistinct
from empatheia.metrics.perplexity import TokenPerplexity
from empatheia.metrics.significance import holm, paired_bootstrap, paired_permutation


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


def test_bootstrap_uses_the_pairing():
    rng = np.random.default_rng(1)
    difficulty = rng.random(300) * 5
    a, b = perplexity(difficulty), perplexity(difficulty + 0.05)
    result = paired_bootstrap(a, b, 500, seed=2)
    assert result.interval[0] < result.difference < result.interval[1] < 0
    assert result.p_value == pytest.approx(1 / 501)
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
