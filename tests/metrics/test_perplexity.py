"""Perplexities against hand calculation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.perplexity import (
    BatchPerplexity,
    BitsPerCharacter,
    ItemPerplexity,
    MeanItemPerplexity,
    TokenPerplexity,
    WordPerplexity,
)

ALL = (TokenPerplexity, WordPerplexity, ItemPerplexity, BitsPerCharacter, MeanItemPerplexity, BatchPerplexity)


def test_check_17_three_numbers_under_one_name():
    """imagine, check 17: two replies with token losses (1, 1) and (3 x 8)."""
    for metric, expected in ((ItemPerplexity(), 7.389), (TokenPerplexity(), 13.464), (MeanItemPerplexity(), 11.402)):
        metric.update([2.0, 24.0], [2, 8])
        assert round(metric.compute().value, 3) == expected


def test_mean_over_batches():
    """Batch means 5/3 and 1; batches of one item are items."""
    metric = BatchPerplexity()
    metric.update([2.0, 3.0], [2, 1])
    metric.update([], [])
    metric.update([1.0], [1])
    assert metric.compute().value == pytest.approx(math.exp((5 / 3 + 1) / 2)) and metric.compute().n == 2
    single, items = BatchPerplexity(), ItemPerplexity()
    for nll, tokens in ((2.0, 2), (3.0, 1)):
        single.update([nll], [tokens])
        items.update([nll], [tokens])
    assert single.compute().value == items.compute().value


def test_what_the_model_was_told_and_what_was_counted_are_in_the_signature():
    plain, oracle, open_end = TokenPerplexity(), TokenPerplexity(gold_labels=True), TokenPerplexity(counts_end=False)
    assert "gold_labels:no" in str(plain.signature()) and "gold_labels:yes" in str(oracle.signature())
    assert "end:" not in str(plain.signature()) and "end:no" in str(open_end.signature())


def test_item_and_token_perplexity_differ():
    # token losses [1, 1] and [3]: item means 1 and 3, token mean 5/3
    for metric, expected in ((ItemPerplexity(), math.exp(2)), (TokenPerplexity(), math.exp(5 / 3))):
        metric.update([2.0, 3.0], [2, 1])
        assert metric.compute().value == pytest.approx(expected)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=10), st.integers(2, 1000))
def test_a_uniform_model_has_the_vocabulary_as_perplexity(lengths, vocabulary):
    for metric in (TokenPerplexity(), ItemPerplexity()):
        metric.update(np.array(lengths) * math.log(vocabulary), lengths)
        assert metric.compute().value == pytest.approx(vocabulary)


def test_per_word_does_not_depend_on_how_words_are_cut():
    coarse, fine = WordPerplexity(tokenizer="word"), WordPerplexity(tokenizer="bpe")
    coarse.update([12.0], [4], n_words=[4])
    fine.update([12.0], [9], n_words=[4])
    assert coarse.compute().value == fine.compute().value == pytest.approx(math.exp(3))
    assert "words:space" in coarse.compute().signature


def test_bits_per_character():
    metric = BitsPerCharacter()
    metric.update([math.log(2) * 30], [3], n_chars=[20])
    score = metric.compute()
    assert score.value == pytest.approx(1.5)
    assert (score.unit, score.higher_is_better) == ("bits", False)


def test_gold_labels_and_references_are_in_the_signature():
    metric = TokenPerplexity(tokenizer="bpe-50265", gold_labels=True)
    metric.update([1.0], [1], references=["hi"])
    assert "gold_labels:yes" in metric.compute().signature
    assert "tok:bpe-50265" in metric.compute().signature
    assert "refs:" in metric.compute().signature


def test_a_hopeless_model_has_infinite_perplexity_not_an_error():
    metric = TokenPerplexity()
    metric.update([1e6, 1.0], [1, 1])
    assert metric.compute(n_resamples=50).value == math.inf


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0])
def test_impossible_likelihoods(bad):
    with pytest.raises(DataError, match=f"item 1 of the batch has negative log likelihood {bad}"):
        TokenPerplexity().update([1.0, bad], [1, 1])


def test_bad_counts():
    with pytest.raises(DataError, match="got 2 nll_sums, 1 n_tokens"):
        TokenPerplexity().update([1.0, 2.0], [1])
    with pytest.raises(DataError, match="item 0 has n_tokens 0"):
        TokenPerplexity().update([1.0], [0])
    with pytest.raises(DataError, match="1 items, 2 references"):
        TokenPerplexity().update([1.0], [1], references=["a", "b"])
    with pytest.raises(ConfigError, match="n_words is missing"):
        WordPerplexity().update([1.0], [1])
    with pytest.raises(ConfigError, match="n_chars is missing"):
        BitsPerCharacter().update([1.0], [1])


@pytest.mark.parametrize("kind", ALL)
def test_an_empty_batch_adds_nothing(kind):
    metric = kind()
    metric.update([], [], [], [])
    assert metric.n_items == 0
