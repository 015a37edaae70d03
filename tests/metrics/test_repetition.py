"""Repetition, copies, vocabulary and length by hand; jackknife against leaving out for real."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.distinct import ResponseDistinct
from empatheia.metrics.length import ReplyLength
from empatheia.metrics.repetition import ContextCopies, DuplicateReplies, ReplyRepetition, Vocabulary
from empatheia.metrics.significance import paired_permutation

replies = st.lists(st.lists(st.sampled_from("abc"), max_size=3), min_size=2, max_size=7)


def test_repetition_inside_a_reply_by_hand():
    """4-grams of 'a b a b a b': abab, baba, abab; one of three repeats. 'a b' has none and is left out."""
    metric = ReplyRepetition(4)
    metric.update(["a b a b a b", "a b c d", "a b"])
    score = metric.compute()
    assert score.value == pytest.approx(100 * (1 / 3 + 0) / 2)
    assert score.parts == {"n_replies": 2, "n_short": 1, "n_repeating": 1}
    assert score.higher_is_better is False


@settings(max_examples=30)
@given(replies, st.integers(1, 3))
def test_repetition_is_the_rest_of_distinct_a_reply(texts, order):
    repetition, distinct = ReplyRepetition(order), ResponseDistinct(order)
    repetition.update(texts)
    distinct.update(texts)
    assert repetition.compute().value == pytest.approx(100 - distinct.compute().value, nan_ok=True)


def test_duplicates_by_hand():
    metric = DuplicateReplies()
    metric.update(["i am sorry .", "oh", "i am sorry .", "why ?", "i  am sorry ."])
    score = metric.compute()
    assert score.value == pytest.approx(60)
    assert score.parts == {
        "distinct_replies": 3,
        "most_frequent": "i am sorry .",
        "most_frequent_share": pytest.approx(60),
    }


@settings(max_examples=30)
@given(replies)
@pytest.mark.parametrize("kind", [DuplicateReplies, Vocabulary])
def test_jackknife_leaves_out_each_reply(kind, texts):
    metric = kind()
    metric.update(texts)
    expected = []
    for i in range(len(texts)):
        rest = kind()
        rest.update(texts[:i] + texts[i + 1 :])
        expected.append(rest.compute().value)
    assert metric.leave_one_out() == pytest.approx(np.array(expected))
    low, high = metric.interval()
    assert low <= metric.compute().value <= high


def test_sets_of_replies_can_be_permuted_between_systems():
    """With 12 different replies against 12 equal ones only the observed division and its mirror are as extreme."""
    dull, lively = DuplicateReplies(), DuplicateReplies()
    dull.update(["oh no"] * 12)
    lively.update([f"oh {i}" for i in range(12)])
    result = paired_permutation(dull, lively, 500, seed=1)
    assert result.difference == 100 and result.p_value < 0.02


def test_vocabulary_by_hand():
    metric = Vocabulary(lowercase=True)
    metric.update(["Oh no", "oh yes yes", ""])
    score = metric.compute()
    assert score.value == 3
    assert score.parts == {"running_words": 5, "once": 1, "words_per_reply": pytest.approx(5 / 3)}
    empty = Vocabulary()
    empty.update(["", ""])
    assert empty.compute().value == 0 and empty.interval() == (0, 0)


def test_copies_of_the_context():
    contexts = [["My dog died", "Oh no"], ["I won"], [], ["yes"]]
    equal, within = ContextCopies(min_words=2), ContextCopies("within", min_words=2)
    for metric in (equal, within):
        metric.update(["oh no", "what ? i won", "anything", "yes"], contexts)
    assert equal.compute().value == 25
    assert within.compute().value == 50
    strict = ContextCopies(lowercase=False)
    strict.update(["oh no"], [["Oh no"]])
    assert strict.compute().value == 0


def test_length_by_hand():
    metric = ReplyLength("words")
    metric.update(["a b", "a b c d", "", ["x", "y"]])
    score = metric.compute()
    assert score.value == 2 and score.unit == "words" and score.higher_is_better is None
    parts = score.parts
    assert (parts["min"], parts["max"], parts["q50"], parts["n_empty"]) == (0, 4, 2, 1)
    assert parts["sd"] == pytest.approx(math.sqrt(8 / 3))
    characters = ReplyLength("characters")
    characters.update(["a b", ["x", "yz"]])
    assert characters.compute().value == 3.5


def test_bad_input():
    with pytest.raises(ConfigError, match="order of repetition is 0"):
        ReplyRepetition(0)
    with pytest.raises(ConfigError, match="unknown match 'near'"):
        ContextCopies("near")
    with pytest.raises(DataError, match="context 0 is 'a turn'; accepted: a list of turns"):
        ContextCopies().update(["a"], ["a turn"])
    with pytest.raises(ConfigError, match="length of 'lines'"):
        ReplyLength("lines")
    with pytest.raises(DataError, match="got one string"):
        Vocabulary().update("a string")
    metric = Vocabulary()
    metric.update(["a", "b"])
    with pytest.raises(ConfigError, match="confidence is 2"):
        metric.interval(confidence=2)
