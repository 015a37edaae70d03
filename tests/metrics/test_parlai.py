"""ParlAI's F1 and BLEU-4 against nltk, a literal reading of its formulas, and worked numbers."""

import warnings
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.parlai import ParlaiBLEU, ParlaiF1, parlai_tokens
from empatheia.replies.replies import SystemReply
from empatheia.replies.scoring import columns_of, score_replies

pieces = ["the", "a", "I'm", "sorry", ",", "dog", "Dog!", "...", "ça", "x_y"]
text = st.lists(st.sampled_from(pieces), max_size=9).map(" ".join)


def score(metric, hyps, refs):
    metric.update(hyps, refs)
    return metric.compute()


def f1(hyp, ref):
    shared = sum((Counter(hyp) & Counter(ref)).values())
    if not shared:
        return 0
    precision, recall = shared / len(hyp), shared / len(ref)
    return 2 * precision * recall / (precision + recall)


def bleu(hyp, ref, order):
    """An empty text is split at blanks into one empty word."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        smoothing = SmoothingFunction(epsilon=1e-12).method1
        return sentence_bleu([ref or [""]], hyp or [""], [1 / order] * order, smoothing_function=smoothing)


@given(st.lists(st.tuples(text, text), min_size=1, max_size=5))
def test_both_are_means_of_the_literal_formulas(pairs):
    hyps, refs = map(list, zip(*pairs, strict=True))
    cut = [(parlai_tokens(h), parlai_tokens(r)) for h, r in pairs]
    assert score(ParlaiF1(), hyps, refs).value == pytest.approx(100 * np.mean([f1(h, r) for h, r in cut]))
    for order in (1, 2, 4):
        theirs = 100 * np.mean([bleu(h, r, order) for h, r in cut])
        assert score(ParlaiBLEU(order), hyps, refs).value == pytest.approx(theirs, abs=1e-12)


def test_normalisation():
    assert parlai_tokens("Well-rested, the AN a another_THE (x)?") == ["well", "rested", "another", "x"]
    assert parlai_tokens("¿Qué? ‘a’ theatre") == ["¿qué", "‘", "’", "theatre"]  # only ASCII marks; whole articles
    assert parlai_tokens("The... a!") == []


def test_worked_numbers():
    result = score(ParlaiF1(), ["I'm sorry for the dog.", ""], ["sorry, dog", ""])
    assert result.value == pytest.approx(100 * (4 / 7) / 2)  # i m sorry for dog / sorry dog; nothing shared
    assert result.parts == pytest.approx({"precision": 100 * (2 / 5) / 2, "recall": 50.0})
    assert score(ParlaiBLEU(1), ["dog"], ["dog died"]).value == pytest.approx(100 * np.exp(-1))
    assert score(ParlaiBLEU(), ["cat", ""], ["dog", "dog"]).value == 0
    assert 0 < score(ParlaiBLEU(), ["x dog y z"], ["dog died there now"]).value < 1e-4


def test_tokens_and_text_score_alike():
    for metric in (ParlaiF1, ParlaiBLEU):
        texts = score(metric(), ["oh no , i am sorry"], ["i am sorry ."]).value
        assert score(metric(), [["oh", "no", ",", "i", "am", "sorry"]], [["i", "am", "sorry", "."]]).value == texts


def test_profile_of_kim():
    replies = [SystemReply("x", "I am so sorry to hear!", "i am so sorry to hear that")]
    cells, missing = score_replies(replies, columns_of("kim2021"), n_resamples=0)
    found = {cell.column.name: cell for cell in cells}
    assert found["F1"].unit == found["BLEU-4"].unit == "fraction"
    assert found["F1"].value == pytest.approx(12 / 13)
    assert found["BLEU-4"].value == pytest.approx(np.exp(1 - 7 / 6))
    assert "token accuracy" in {column.name for column, _ in missing}


def test_bad_input():
    with pytest.raises(DataError, match="parlai_f1: got 2 hypotheses, 1 references"):
        ParlaiF1().update(["a", "b"], ["a"])
    with pytest.raises(DataError, match=r"parlai_bleu_4: item 0 is 3"):
        ParlaiBLEU().update([3], ["a"])
    with pytest.raises(ConfigError, match="max_order is 0"):
        ParlaiBLEU(0)
