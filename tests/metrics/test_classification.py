"""Accuracy, P/R/F1 and calibration against hand calculation and a loop."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.classification import F1, Accuracy, BatchMeanAccuracy, CalibrationError, confusion

labelled = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30)


def score(metric, *columns):
    metric.update(*columns)
    return metric.compute()


def reference_prf(predicted, gold):
    """Per class present in either list: precision, recall, F1 with 0 for 0/0, and the gold count."""
    out = {}
    for label in sorted(set(predicted) | set(gold)):
        tp = sum(p == g == label for p, g in zip(predicted, gold, strict=True))
        said, true = predicted.count(label), gold.count(label)
        precision, recall = tp / said if said else 0.0, tp / true if true else 0.0
        f1 = 2 * precision * recall / (precision + recall) if tp else 0.0
        out[label] = (precision, recall, f1, true)
    return out


@given(labelled)
def test_macro_and_weighted_against_a_loop(pairs):
    predicted, gold = map(list, zip(*pairs, strict=True))
    table = reference_prf(predicted, gold)
    for at, report in enumerate(("precision", "recall", "f1")):
        macro = np.mean([row[at] for row in table.values()])
        weighted = sum(row[at] * row[3] for row in table.values()) / len(gold)
        assert score(F1(4, "macro", report=report), predicted, gold).value == pytest.approx(100 * macro)
        assert score(F1(4, "weighted", report=report), predicted, gold).value == pytest.approx(100 * weighted)


@given(labelled)
def test_weighted_recall_is_accuracy(pairs):
    predicted, gold = map(list, zip(*pairs, strict=True))
    recall = score(F1(4, "weighted", report="recall"), predicted, gold).value
    assert recall == pytest.approx(score(Accuracy(), predicted, gold).value)


@given(labelled)
def test_confusion_counts(pairs):
    predicted, gold = map(list, zip(*pairs, strict=True))
    table = confusion(predicted, gold, range(4))
    assert table.sum() == len(pairs)
    for g in range(4):
        for p in range(4):
            assert table[g, p] == pairs.count((p, g))


def test_one_class_of_strings():
    metric = F1(["joy", "fear"], "class", of="fear", unit="fraction")
    result = score(metric, ["fear", "joy", "fear"], ["fear", "fear", "joy"])
    assert result.value == 0.5
    assert result.name == "f1_class_fear"
    assert result.parts["gold:fear"] == 2
    empty = score(F1(["joy", "fear"], "class", of="fear"), ["joy"], ["joy"])
    assert math.isnan(empty.value) and "class 'fear'" in empty.parts["note"]


def test_classes_never_predicted_are_counted():
    assert score(F1(3), [0, 0, 0], [0, 1, 2]).parts["n_never_predicted"] == 2


def test_top_k_takes_rankings_or_scores():
    gold = np.array([2, 0])
    scores = np.array([[0.1, 0.5, 0.4], [0.2, 0.3, 0.5]])
    assert score(Accuracy(2), scores, gold).value == 50
    assert score(Accuracy(2), np.argsort(-scores, axis=1), gold).value == 50
    assert score(Accuracy(2), [["sad", "joy"], ["joy", "sad"]], ["joy", "fear"]).value == 50
    assert score(Accuracy(1), scores, np.array([1, 0])).value == 50
    assert score(Accuracy(3), scores, gold).value == 100
    assert Accuracy(3).name == "accuracy_top3"


def test_batch_mean_gives_a_short_batch_full_weight():
    metric = BatchMeanAccuracy()
    metric.update([1, 1, 1, 1], [1, 1, 1, 1])
    metric.update([1], [0])
    metric.update([], [])
    result = metric.compute()
    assert (result.value, result.n, result.parts["n_items"]) == (50, 2, 5)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40), st.integers(1, 20))
def test_calibration_error_against_a_loop(pairs, n_bins):
    bins = {}
    for confidence, right in pairs:
        at = min(max(math.ceil(confidence * n_bins) - 1, 0), n_bins - 1)
        bins.setdefault(at, []).append((confidence, right))
    expected = sum(abs(sum(c for c, _ in b) - sum(r for _, r in b)) for b in bins.values()) / len(pairs)
    value = score(CalibrationError(n_bins), *zip(*pairs, strict=True)).value
    assert value == pytest.approx(expected)
    assert 0 <= value <= 1


def test_calibration_takes_all_probabilities_and_gold_indices():
    probabilities = np.array([[0.7, 0.3], [0.2, 0.8]])
    both = score(CalibrationError(), probabilities, [0, 0])
    assert both.value == score(CalibrationError(), [0.7, 0.8], [True, False]).value


def test_numpy_labels_and_python_labels_have_one_fingerprint():
    plain, array = score(Accuracy(), [1], [1]), score(Accuracy(), np.array([1]), np.array([1]))
    assert plain.signature == array.signature


def test_bad_input():
    with pytest.raises(DataError, match="got 1 predicted, 2 gold"):
        Accuracy().update([1], [1, 2])
    with pytest.raises(DataError, match="item 0 is 'sad'"):
        Accuracy(2).update(["sad"], ["sad"])
    with pytest.raises(DataError, match="label 'rage' is not one of the 2 known: sad, joy"):
        F1(["sad", "joy"]).update(["rage"], ["sad"])
    with pytest.raises(DataError, match=r"confidence of item 1 is 1\.5"):
        CalibrationError().update([0.5, 1.5], [True, True])
    with pytest.raises(ConfigError, match="top_k is 0"):
        Accuracy(0)
    with pytest.raises(ConfigError, match="two or more different labels"):
        F1(["a", "a"])
    with pytest.raises(ConfigError, match="average is 'class' of 'c'"):
        F1(["a", "b"], "class", of="c")
    with pytest.raises(ConfigError, match="unknown report 'auc'"):
        F1(2, report="auc")
    with pytest.raises(ConfigError, match="n_bins is 0"):
        CalibrationError(0)
