"""Shares of labels and distances between them against scipy and by hand; confusion counts."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.classification import Confusion, confusion
from empatheia.metrics.distributions import DistributionDistance, LabelShares, distance

counts = st.lists(st.integers(0, 9), min_size=4, max_size=4).filter(any)


@settings(max_examples=40)
@given(counts, counts)
def test_distances_against_scipy(p, q):
    stats, spatial = pytest.importorskip("scipy.stats"), pytest.importorskip("scipy.spatial.distance")
    assert distance(p, q, "js") == pytest.approx(spatial.jensenshannon(p, q, base=2) ** 2, abs=1e-9)
    assert distance(p, q, "kl") == pytest.approx(stats.entropy(p, q, base=2), abs=1e-9)
    first, second = np.array(p) / sum(p), np.array(q) / sum(q)
    assert distance(p, q, "tv") == pytest.approx(0.5 * np.abs(first - second).sum())
    assert 0 <= distance(p, q, "js") <= 1 + 1e-12 and distance(p, p, "js") == 0


def test_distances_by_hand():
    assert distance([1, 1], [1, 0], "kl") == math.inf
    assert distance([1, 0], [1, 1], "kl") == pytest.approx(1)
    assert distance([1, 0], [0, 1], "js") == pytest.approx(1)
    assert math.isnan(distance([0, 0], [1, 1], "js"))
    rows = distance(np.array([[1, 1], [1, 0]]), np.array([[1, 1], [0, 1]]), "tv")
    assert rows.tolist() == [0, 1]


def test_distance_of_replies():
    metric = DistributionDistance(["sad", "happy", "neutral"], "kl")
    metric.update(["neutral", "sad", "sad", "sad"], ["happy", "sad", "sad", "sad"])
    score = metric.compute(n_resamples=50)
    assert score.value == math.inf and score.unit == "bits"
    assert score.parts["tv"] == pytest.approx(0.25)
    assert (score.parts["n_only_predicted"], score.parts["n_only_gold"]) == (1, 1)
    smoothed = DistributionDistance(["sad", "happy", "neutral"], "kl", add=1)
    smoothed.update(["neutral", "sad", "sad", "sad"], ["happy", "sad", "sad", "sad"])
    p, q = np.array([4, 1, 2]) / 7, np.array([4, 2, 1]) / 7
    assert smoothed.compute().value == pytest.approx((p * np.log2(p / q)).sum())


def test_shares_by_hand():
    metric = LabelShares(["a", "b", "c"])
    metric.update(["a", "a", "a", "b"])
    score = metric.compute()
    assert score.value == pytest.approx(1 / (0.75**2 + 0.25**2))
    assert score.parts["share:a"] == 0.75 and score.parts["n_occurring"] == 2
    assert score.parts["entropy_bits"] == pytest.approx(-(0.75 * math.log2(0.75) + 0.25 * math.log2(0.25)))


def test_shares_may_count_raters():
    """MEED2's figure 5: a reply that three raters called good counts three times."""
    metric = LabelShares(["questioning", "agreeing"])
    metric.update(["questioning", "agreeing", "agreeing"], weights=[3, 1, 0])
    assert metric.compute().parts["share:questioning"] == 0.75
    nothing = LabelShares(["a", "b"])
    nothing.update(["a"], [0])
    assert nothing.compute().parts["note"] == "all weights are 0"


def test_confusion_counts():
    labels = ["sad", "angry", "afraid"]
    predicted, gold = ["sad", "angry", "sad", "sad", "afraid"], ["sad", "sad", "angry", "angry", "afraid"]
    metric = Confusion(labels)
    metric.update(predicted, gold)
    score = metric.compute()
    assert score.value == 40
    assert score.parts["matrix"] == confusion(predicted, gold, labels).tolist()
    assert score.parts["most_confused"] == [["angry", "sad", 2], ["sad", "angry", 1]]


def test_bad_input():
    with pytest.raises(ConfigError, match="unknown measure 'l2'"):
        distance([1], [1], "l2")
    with pytest.raises(ConfigError, match="measure is 'js', add -1"):
        DistributionDistance(add=-1)
    with pytest.raises(ConfigError, match="two or more different labels"):
        LabelShares(["a", "a"])
    with pytest.raises(DataError, match="label 'x' is not one of the 2 known"):
        LabelShares(["a", "b"]).update(["x"])
    with pytest.raises(DataError, match="smallest weight is -1"):
        LabelShares(["a", "b"]).update(["a"], [-1])
    with pytest.raises(ConfigError, match="two or more different labels"):
        Confusion(["a"])
