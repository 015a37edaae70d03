"""Distinct-n by hand, against a loop, and its jackknife against fresh samples."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.base import bootstrap_weights
from empatheia.metrics.distinct import CorpusDistinct, ResponseDistinct

replies = st.lists(st.lists(st.sampled_from(["a", "b", "ab", "ba"]), max_size=7), min_size=1, max_size=8)


def score(metric, responses):
    metric.update(responses)
    return metric.compute()


def test_the_worked_example():
    responses = [["a", "b", "a"], ["a"]]
    assert score(CorpusDistinct(1, "fraction"), responses).value == 2 / 4
    assert score(CorpusDistinct(2, "fraction"), responses).value == 2 / 2
    assert score(CorpusDistinct(1), responses).value == 50


def test_bigrams_do_not_cross_replies():
    # "a b a" and "a b": D-1 2/5, D-2 2/3
    assert score(CorpusDistinct(1, "fraction"), ["a b a", "a b"]).value == pytest.approx(2 / 5)
    assert score(CorpusDistinct(2, "fraction"), ["a b a", "a b"]).value == pytest.approx(2 / 3)


def test_words_joined_without_a_space_collide():
    assert score(CorpusDistinct(2, "fraction", concat=True), ["a bc", "ab c"]).value == 1 / 2
    assert score(CorpusDistinct(2, "fraction"), ["a bc", "ab c"]).value == 1


@given(replies, st.integers(1, 3), st.booleans())
def test_against_a_loop(responses, order, concat):
    grams = [tuple(r[i : i + order]) for r in responses for i in range(len(r) - order + 1)]
    if concat:
        grams = ["".join(gram) for gram in grams]
    result = score(CorpusDistinct(order, "fraction", concat=concat), responses)
    if not grams:
        assert math.isnan(result.value)
        assert result.parts["note"].startswith(f"no reply has {order} tokens")
    else:
        assert result.value == pytest.approx(len(set(grams)) / len(grams))
        assert 0 < result.value <= 1
        assert result.parts["types"] == len(set(grams))


@given(replies)
def test_response_mean_against_a_loop(responses):
    ratios = [len(set(r)) / len(r) for r in responses if r]
    skip = score(ResponseDistinct(1, "fraction"), responses)
    zero = score(ResponseDistinct(1, "fraction", short="zero"), responses)
    assert skip.value == pytest.approx(np.mean(ratios) if ratios else math.nan, nan_ok=True)
    assert zero.value == pytest.approx(sum(ratios) / len(responses))
    assert skip.parts["n_short"] == sum(not r for r in responses)


@given(replies)
def test_jackknife_is_the_leave_one_out_formula(responses):
    metric = CorpusDistinct(1, "fraction")
    metric.update(responses)
    n = len(responses)
    rest = [[r for j, r in enumerate(responses) if j != i] for i in range(n)]
    if n < 2 or any(not sum(map(len, r)) for r in rest):
        assert metric.interval() is None
        return
    left_out = np.array([score(CorpusDistinct(1, "fraction"), r).value for r in rest])
    error = math.sqrt((n - 1) / n * ((left_out - left_out.mean()) ** 2).sum())
    value = metric.compute().value
    low, high = metric.interval(confidence=0.95)
    assert low == pytest.approx(max(0.0, value - 1.959964 * error), abs=1e-6)
    assert high == pytest.approx(min(1.0, value + 1.959964 * error), abs=1e-6)


def draw(rng, n):
    """Replies of 3 to 11 words with Zipf frequencies."""
    return [[str(w) for w in rng.zipf(1.5, rng.integers(3, 12))] for _ in range(n)]


def test_jackknife_error_matches_the_spread_over_fresh_samples_and_the_bootstrap_is_biased():
    rng = np.random.default_rng(11)
    values, errors = [], []
    for _ in range(60):
        metric = CorpusDistinct(1)
        metric.update(draw(rng, 150))
        low, high = metric.interval()
        values.append(metric.compute().value)
        errors.append((high - low) / 2 / 1.959964)
    assert 0.85 < np.mean(errors) / np.std(values, ddof=1) < 1.4
    (weights,) = bootstrap_weights(150, 200, seed=0)
    assert metric.value_at(weights).max() < metric.compute().value  # why drawing with replacement will not do


def test_parts_and_signature():
    metric = CorpusDistinct(1, lowercase=True)
    metric.update(["A b", "a B", "c"])
    result = metric.compute(n_resamples=100)
    assert result.parts == {"types": 3, "ngrams": 5, "mean_length": 5 / 3, "distinct_replies": 2}
    assert "case:lc" in result.signature and "ci:jackknife-0.95" in result.signature


def test_bad_input():
    with pytest.raises(ConfigError, match="order of Distinct is 0"):
        CorpusDistinct(0)
    with pytest.raises(ConfigError, match="unknown unit 'ratio'"):
        CorpusDistinct(1, "ratio")
    with pytest.raises(ConfigError, match="unknown treatment of short replies 'drop'"):
        ResponseDistinct(short="drop")
    with pytest.raises(DataError, match="got one string"):
        CorpusDistinct().update("a b")
    with pytest.raises(ConfigError, match="confidence is 2"):
        CorpusDistinct().interval(confidence=2)
    with pytest.raises(NotImplementedError, match="value_at"):
        CorpusDistinct().value_of(np.zeros(1))


@given(replies)
def test_means_over_replies_of_the_released_scripts(responses):
    """EmpDG's and KEMP's loop: two words joined without a space; a reply without a pair counts 0."""
    ones = [len(set(r)) / (len(r) + 1e-16) for r in responses]
    pairs = [[a + b for a, b in pairwise(r)] for r in responses]
    twos = [len(set(p)) / (len(p) + 1e-16) for p in pairs]
    first = score(ResponseDistinct(1, short="zero"), responses)
    second = score(ResponseDistinct(2, short="zero", concat=True), responses)
    assert (first.name, second.name) == ("dist_response_1_zero", "dist_response_concat_2_zero")
    assert first.value == pytest.approx(100 * np.mean(ones))
    assert second.value == pytest.approx(100 * np.mean(twos))


def test_different_replies_are_counted_as_texts():
    metric = CorpusDistinct(1)
    metric.update(["a b", " a b ", "a  b", "A b"])
    assert metric.compute().parts["distinct_replies"] == 3
    other = CorpusDistinct(1)
    other.update([["a", "b"], ["c"]])
    assert (metric + other).compute().parts["distinct_replies"] == 4
