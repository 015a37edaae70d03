"""ROUGE against the rouge-score package (also as frozen values of its version 0.1.2), chrF against sacrebleu."""

from functools import cache

import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.rouge import ROUGE, longest_common_subsequence, rouge_tokens
from empatheia.metrics.sacre import ChrF

HYPS = [
    "I'm so sorry to hear that, was it expected?",
    "That is great news! Congratulations to you and your family.",
    "",
    "oh no no no",
    "x",
    "Running late again: the trains were cancelled (twice).",
]
REFS = [
    "I am sorry to hear that. Was the loss expected?",
    "congratulations , you and your families must be happy !",
    "How did it go?",
    "oh no, what happened?",
    "...",
    "The train was cancelled twice, so you ran late?",
]
# F1 of each pair, rouge-score 0.1.2
FROZEN = {
    (1, False): [0.7, 0.444444, 0.0, 0.5, 0.0, 0.470588],
    (2, False): [0.444444, 0.25, 0.0, 0.333333, 0.0, 0.133333],
    ("l", False): [0.7, 0.444444, 0, 0.5, 0, 0.352941],
    ("l", True): [0.7, 0.555556, 0, 0.5, 0, 0.470588],
}


@pytest.mark.parametrize("kind, stem", FROZEN)
def test_frozen_values_of_the_package(kind, stem):
    for hyp, ref, f1 in zip(HYPS, REFS, FROZEN[kind, stem], strict=True):
        metric = ROUGE(kind, stem=stem)
        metric.update([hyp], [ref])
        assert metric.compute().value == pytest.approx(100 * f1, abs=1e-4)


@pytest.mark.parametrize("stem", [False, True])
def test_against_the_package(stem):
    scorer = pytest.importorskip("rouge_score.rouge_scorer").RougeScorer(["rouge1", "rouge2", "rougeL"], stem)
    theirs = [scorer.score(ref, hyp) for hyp, ref in zip(HYPS, REFS, strict=True)]
    for kind, key in ((1, "rouge1"), (2, "rouge2"), ("l", "rougeL")):
        metric = ROUGE(kind, stem=stem)
        metric.update(HYPS, REFS)
        parts = metric.compute().parts
        for ours, field in (("f1", "fmeasure"), ("precision", "precision"), ("recall", "recall")):
            mean = sum(getattr(score[key], field) for score in theirs) / len(theirs)
            assert parts[ours] == pytest.approx(100 * mean, abs=1e-9)


@settings(max_examples=60)
@given(st.lists(st.sampled_from("abc"), max_size=9), st.lists(st.sampled_from("abc"), max_size=9))
def test_common_subsequence_against_the_textbook_recursion(first, second):
    @cache
    def slow(i, j):
        if i == len(first) or j == len(second):
            return 0
        return 1 + slow(i + 1, j + 1) if first[i] == second[j] else max(slow(i + 1, j), slow(i, j + 1))

    assert longest_common_subsequence(first, second) == slow(0, 0)


def test_common_subsequence_of_more_than_64_tokens():
    first = [str(i % 7) for i in range(200)]
    assert longest_common_subsequence(first, first) == 200
    assert longest_common_subsequence(first, first[::2]) == 100


def test_rouge_by_hand():
    """Shared bigrams: 'the cat' only; 1 of 2 and 1 of 3."""
    metric = ROUGE(2)
    metric.update(["the cat ran"], ["so the cat sat"])
    score = metric.compute()
    assert (score.parts["precision"], score.parts["recall"]) == (50, pytest.approx(100 / 3))
    assert score.value == pytest.approx(40)
    recall = ROUGE(2, "recall")
    recall.update([["the", "cat", "ran"]], [["so", "the", "cat", "sat"]])  # tokens or text: the same
    assert recall.compute().value == pytest.approx(100 / 3) and recall.name == "rouge_2_recall"


def test_rouge_tokens_drop_what_is_no_ascii_letter_or_digit():
    assert rouge_tokens("Café, 7-up!") == ["caf", "7", "up"]
    assert rouge_tokens("families running", stem=True) == ["famili", "run"]


def test_rouge_refuses():
    with pytest.raises(ConfigError, match="kind of ROUGE is 0"):
        ROUGE(0)
    with pytest.raises(ConfigError, match="unknown report 'f2'"):
        ROUGE(1, "f2")
    with pytest.raises(DataError, match="1 hypotheses, 2 references"):
        ROUGE(1).update(["a"], ["a", "b"])


@pytest.mark.parametrize("options", [{}, {"word_order": 2}, {"lowercase": True}, {"char_order": 3, "beta": 1}])
def test_chrf_against_sacrebleu(options):
    metric = ChrF(**options)
    metric.update(HYPS, REFS)
    library = sacrebleu.CHRF(**options)
    assert metric.compute().value == pytest.approx(library.corpus_score(HYPS, [REFS]).score, abs=1e-9)
    for hyp, ref in zip(HYPS, REFS, strict=True):
        one = ChrF(**options)
        one.update([hyp], [ref])
        assert one.compute().value == pytest.approx(library.corpus_score([hyp], [[ref]]).score, abs=1e-9)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.text("ab.( ", max_size=9), st.text("ab.( ", max_size=9)), min_size=1, max_size=4))
def test_chrf_against_sacrebleu_on_odd_texts(pairs):
    hyps, refs = map(list, zip(*pairs, strict=True))
    metric = ChrF(word_order=2)
    metric.update(hyps, refs)
    assert metric.compute().value == pytest.approx(sacrebleu.CHRF(word_order=2).corpus_score(hyps, [refs]).score)


def test_chrf_refuses():
    with pytest.raises(ConfigError, match="char_order is 0"):
        ChrF(0)
    with pytest.raises(DataError, match=r"item 0 is \['a'\]; accepted: a plain string"):
        ChrF().update([["a"]], ["a"])
