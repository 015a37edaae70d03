"""RECCON's span scores by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.spans import SpanF1, is_nested, lcs_f1, squad_f1, squad_tokens

word_text = st.lists(st.sampled_from(["the", "cat", "Sat", "mat."]), max_size=5).map(" ".join)


def score(report, predictions, golds):
    metric = SpanF1(report)
    metric.update(predictions, golds)
    return metric.compute()


def test_f1_of_empty_predictions():
    """Specification check 20."""
    # 10 negatives, 8 left empty; 5 positives, 2 left empty: P 8/10, R 8/10
    golds = [None] * 10 + ["x"] * 5
    predictions = [""] * 8 + ["y"] * 2 + [" "] * 2 + ["x"] * 3
    result = score("f1_neg", predictions, golds)
    assert result.value == pytest.approx(80)
    assert (result.parts["n_negative"], result.parts["negative_empty"], result.parts["positive_empty"]) == (
        10,
        8,
        2,
    )


def test_squad_and_lcs_examples():
    """Specification check 21."""
    assert squad_tokens("The cat's  mat!") == ["cats", "mat"]
    # "cat sat" against "cat": P 1, R 1/2
    assert squad_f1("a cat", "the cat sat") == pytest.approx(2 / 3)
    # longest common substring "b c"
    assert lcs_f1("b c d", "a b c") == pytest.approx(2 / 3)


def test_empty_after_normalisation():
    assert squad_f1("the", "a") == 1
    assert squad_f1("", "cat") == squad_f1("cat", "the") == 0
    assert lcs_f1("", "cat") == 0
    assert lcs_f1("xyz", "abc") == 0


@given(word_text, word_text)
def test_ranges_and_identity(a, b):
    for measure in (squad_f1, lcs_f1):
        assert 0 <= measure(a, b) <= 1
        assert measure(a, a) == 1
    assert squad_f1(a, b) == squad_f1(b, a)


def test_overall_f1_scores_a_negative_by_its_emptiness():
    result = score("f1", ["the cat", "", "oops"], ["The cat sat", None, None])
    assert result.value == pytest.approx(100 * (2 / 3 + 1 + 0) / 3)
    assert result.parts["f1_pos"] == pytest.approx(100 * 2 / 3)
    assert result.parts["em_pos"] == 0


def test_the_released_script_counts_nested_answers_only():
    """`eval_qa.py` takes overlaps from answers inside the gold span or around it; all others score 0."""
    golds = ["ate the cake", "ate the cake", "ate the cake", "ate the cake", "the", None, None]
    predictions = ["the cake .", " the cake ", "He ate the cake .", "", "a", "", "oops"]
    assert [is_nested(p, g) for p, g in zip(predictions[:5], golds[:5], strict=True)] == [
        False, True, True, False, False,
    ]  # fmt: skip
    result = score("f1_pos", predictions, golds)
    # ate cake / cake: 2/3 for the first two; ate cake / he ate cake: 4/5; two articles are equal without words
    assert result.value == pytest.approx(100 * (2 / 3 + 2 / 3 + 4 / 5 + 0 + 1) / 5)
    assert score("f1_pos_nested", predictions, golds).value == pytest.approx(100 * (2 / 3 + 4 / 5) / 5)
    assert score("f1_nested", predictions, golds).value == pytest.approx(100 * (2 / 3 + 4 / 5 + 1) / 7)
    assert result.parts["f1_pos_nested"] < result.parts["f1_pos"] and result.parts["n_positive"] == 5
    assert score("f1_pos_nested", ["The cat"], ["The cat"]).value == 100


def test_exact_match_strips_but_does_not_normalise():
    assert score("em_pos", [" a cat ", "A cat"], ["a cat", "a cat"]).value == 50


def test_scores_without_their_kind_of_item_are_undefined():
    assert score("f1_neg", ["x"], ["x"]).parts["note"] == "no negative item"
    result = score("lcs_f1", [""], [None])
    assert math.isnan(result.value) and result.parts["note"] == "no positive item"


def test_bad_input():
    with pytest.raises(DataError, match="item 0 is None / 'x'"):
        SpanF1().update([None], ["x"])
    with pytest.raises(DataError, match="accepted: predicted text"):
        SpanF1().update(["x"], ["  "])
    with pytest.raises(DataError, match="1 predictions, 2 golds"):
        SpanF1().update(["x"], ["x", None])
    with pytest.raises(ConfigError, match="unknown span score 'em'"):
        SpanF1("em")
