"""Coverage of target words by hand (kim2021, section 4.4: hits and hits over targets), by form and by meaning."""

import numpy as np
import pytest

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.coverage import Coverage, NearCoverage

REPLIES = ["I am sorry your dogs died .", "Oh no !", "Did you study ?", "yes"]
TARGETS = [["dog", "died", "car"], ["exam"], ["studied", "Study"], []]


@pytest.mark.parametrize("forms, shares, hits", [("word", [1 / 3, 0, 1 / 2], 2), ("stem", [2 / 3, 0, 1], 4)])
def test_coverage_by_hand(forms, shares, hits):
    metric = Coverage(forms)
    metric.update(REPLIES, TARGETS)
    score = metric.compute()
    assert score.value == pytest.approx(100 * np.mean(shares))
    assert score.parts == {
        "mean_hits": pytest.approx(hits / 3),
        "mean_targets": 2,
        "pooled": pytest.approx(100 * hits / 6),
        "n_without_targets": 1,
    }


def test_forms_of_ones_own():
    lemmas = {"died": "die", "dogs": "dog"}
    metric = Coverage("my-lemma", lambda word: lemmas.get(word, word))
    metric.update(["his dogs died"], [["die", "dog", "cat"]])
    assert metric.compute().value == pytest.approx(200 / 3)
    assert "forms:my-lemma" in metric.compute().signature


def test_only_items_without_targets():
    metric = Coverage()
    metric.update(["a"], [[]])
    assert np.isnan(metric.compute().value)
    assert metric.compute().parts["note"] == "no item has a target word"


def test_near_words():
    table = {"dog": (1, 0), "puppy": (4, 3), "cat": (3, 4), "exam": (-1, 0)}  # cosines to dog: .8, .6, -1

    def vectors(words):
        return np.array([table.get(word, (0, 0)) for word in words], dtype=float)

    for threshold, share in ((0.6, 100), (0.7, 50)):
        metric = NearCoverage(vectors, "mine", threshold)
        metric.update(["My puppy", "a cat"], [["dog"], ["dog"]])
        assert metric.compute().value == share
    unknown = NearCoverage(vectors, "mine")
    unknown.update(["the zebra and the okapi", "the zebra", ""], [["zebra"], ["okapi"], ["dog"]])
    assert unknown.compute().value == pytest.approx(100 / 3)  # unknown words are near to themselves only
    forms = NearCoverage(vectors, "mine")
    forms.update(["they were losing it"], [["lost"]])
    assert forms.compute().value == 100  # another form of the word, as in coverage


def test_bad_input():
    with pytest.raises(ConfigError, match="forms is 'lemma' without"):
        Coverage("lemma")
    with pytest.raises(ConfigError, match="forms is 'stem' with"):
        Coverage("stem", str)
    with pytest.raises(ConfigError, match="threshold is 0"):
        NearCoverage(lambda words: np.zeros((len(words), 2)), "mine", 0)
    with pytest.raises(DataError, match="targets of item 0 are 'dog'"):
        Coverage().update(["a"], ["dog"])
    with pytest.raises(DataError, match="1 responses, 2 targets"):
        Coverage().update(["a"], [["b"], ["c"]])
