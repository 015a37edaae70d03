"""Cause scores: entailment, micro P/R/F1 over turns and words, EmoCause recall."""

import math

import pytest

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.causes import CauseF1, CauseRecall, EntailmentF1


def score(metric, *columns):
    metric.update(*columns)
    return metric.compute()


def test_entailment_by_hand():
    predicted, gold = [1, 1, 0, 0, 0], [1, 0, 0, 0, 1]
    assert score(EntailmentF1("positive"), predicted, gold).value == pytest.approx(1 / 2)
    assert score(EntailmentF1("negative"), predicted, gold).value == pytest.approx(2 / 3)
    assert score(EntailmentF1("macro"), predicted, gold).value == pytest.approx((1 / 2 + 2 / 3) / 2)


def test_counts_are_pooled_over_dialogues():
    result = score(CauseF1("turn"), [[1, 1, 0], [0]], [[1, 0, 0], [1]])
    assert (
        result.parts["true_positive"],
        result.parts["false_positive"],
        result.parts["false_negative"],
    ) == (1, 1, 1)
    assert result.value == result.parts["precision"] == result.parts["recall"] == 0.5
    assert (result.n, result.parts["n_units"]) == (2, 4)


def test_unlabelled_units_are_not_scored():
    assert score(CauseF1("word"), [[1, 1]], [[1, -100]]).value == 1
    assert score(CauseF1("word"), [[1, -100]], [[1, 1]]).parts["false_negative"] == 1


def test_nothing_causal_and_nothing_marked_is_undefined():
    result = score(CauseF1("turn"), [[0, 0]], [[0, 0]])
    assert math.isnan(result.value) and result.parts["note"] == "no turn is causal and none was marked"
    silent = score(CauseF1("turn"), [[0]], [[1]])
    assert silent.value == 0 and math.isnan(silent.parts["precision"])


def test_emocause_matching_is_lenient_on_affixes_and_strict_on_request():
    ranked, gold = [["dogs.", "Car"]], [["dogs", "car"]]
    assert score(CauseRecall(5), ranked, gold).value == 50  # case-sensitive
    assert score(CauseRecall(5, strict=True), ranked, gold).value == 50  # "dogs." is another word
    assert score(CauseRecall(5), [["dog"]], [["dogs"]]).value == 0  # one direction only
    assert score(CauseRecall(5), [["career"]], [["car"]]).value == 100  # a known false hit of the definition


def test_emocause_ceiling_and_multiplicity():
    result = score(CauseRecall(1), [["a", "b"], ["c"]], [["a", "b"], ["c"]])
    assert result.value == result.parts["ceiling"] == 75
    assert score(CauseRecall(3), [["a"]], [["a", "a"]]).value == 50


def test_nothing_to_find_counts_as_nothing_found():
    result = score(CauseRecall(1), [["a"], ["b"]], [["a"], []])
    assert result.value == result.parts["ceiling"] == 50


def test_bad_input():
    with pytest.raises(DataError, match="dialogue 0 has 1 predicted and 2 gold flags; each turn"):
        CauseF1("turn").update([[1]], [[1, 0]])
    with pytest.raises(DataError, match="dialogue 0 has a flag that is not 0, 1 or -100"):
        CauseF1("word").update([[2]], [[1]])
    with pytest.raises(DataError, match="a list of flags for each dialogue"):
        CauseF1("turn").update([1, 0], [1, 0])
    with pytest.raises(DataError, match="accepted: lists of words"):
        CauseRecall(1).update(["a"], [["a"]])
    with pytest.raises(ConfigError, match="strict is 'word'; accepted: False, True, 'index'"):
        CauseRecall(1, strict="word")
    with pytest.raises(ConfigError, match="unknown level 'sentence'"):
        CauseF1("sentence")
    with pytest.raises(ConfigError, match="unknown class 'neutral'"):
        EntailmentF1("neutral")
    with pytest.raises(ConfigError, match="top_k is 0"):
        CauseRecall(0)
