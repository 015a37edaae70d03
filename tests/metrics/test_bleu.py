"""BLEU against nltk, sacrebleu, a literal reading of multi-bleu.perl, and worked numbers."""

import math
import warnings
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.translate.bleu_score import SmoothingFunction, corpus_bleu, sentence_bleu
from sacrebleu.metrics.bleu import BLEU as Sacre

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.bleu import BLEU, AverageBLEU, SentenceBLEU, bleu_nltk_3_weighted
from empatheia.metrics.ngrams import clipped_matches, ngram_table
from empatheia.metrics.sacre import SacreBLEU

tokens = st.lists(st.sampled_from(["a", "b", "c", "D", "d"]), max_size=10)
corpus = st.lists(st.tuples(tokens, tokens), min_size=1, max_size=8)


def score(metric, hyps, refs):
    metric.update(hyps, refs)
    return metric.compute()


def random_corpus(n=300, seed=0):
    rng = np.random.default_rng(seed)
    vocabulary = [f"w{i}" for i in range(12)]
    hyps = [list(rng.choice(vocabulary, rng.integers(1, 14))) for _ in range(n)]
    refs = [[w if rng.random() < 0.6 else "x" for w in h] + ["."] * int(rng.integers(0, 3)) for h in hyps]
    return hyps, refs


def multi_bleu(hyps, refs, lowercase=False, max_order=4):
    """The arithmetic of Moses' multi-bleu.perl for one reference, written line by line with counters."""
    correct, total, len_hyp, len_ref = Counter(), Counter(), 0, 0
    for hyp, ref in zip(hyps, refs, strict=True):
        hyp, ref = ([w.lower() for w in side] if lowercase else side for side in (hyp, ref))
        len_hyp, len_ref = len_hyp + len(hyp), len_ref + len(ref)
        for n in range(1, max_order + 1):
            in_ref = Counter(tuple(ref[i : i + n]) for i in range(len(ref) - n + 1))
            for gram, count in Counter(tuple(hyp[i : i + n]) for i in range(len(hyp) - n + 1)).items():
                total[n] += count
                correct[n] += min(count, in_ref[gram])
    if not len_ref or any(not correct[n] for n in range(1, max_order + 1)):
        return 0.0
    penalty = 1.0 if len_hyp >= len_ref else math.exp(1 - len_ref / len_hyp)
    logs = sum(math.log(correct[n] / total[n]) for n in range(1, max_order + 1))
    return 100 * penalty * math.exp(logs / max_order)


@given(corpus)
def test_corpus_bleu_is_multi_bleu(pairs):
    hyps, refs = map(list, zip(*pairs, strict=True))
    for lowercase in (False, True):
        for order in (1, 2, 4):
            ours = score(BLEU(order, lowercase=lowercase), hyps, refs)
            if math.isnan(ours.value):
                assert "every reference is empty" in ours.parts["note"] or "no reply has" in ours.parts["note"]
            else:
                assert ours.value == pytest.approx(multi_bleu(hyps, refs, lowercase, order), abs=1e-9)


@given(corpus)
def test_nltk_variant_is_corpus_bleu_of_nltk(pairs):
    hyps, refs = map(list, zip(*pairs, strict=True))
    for order in (1, 2, 3, 4):
        ours = score(BLEU(order, "nltk"), hyps, refs).value
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = 100 * corpus_bleu([[r] for r in refs], hyps, weights=[1 / order] * order)
        if not math.isnan(ours):
            assert ours == pytest.approx(theirs, abs=1e-9)


def test_nltk_parity_on_a_larger_corpus_and_with_the_released_weights():
    hyps, refs = random_corpus()
    references = [[r] for r in refs]
    assert score(BLEU(4, "nltk"), hyps, refs).value == pytest.approx(100 * corpus_bleu(references, hyps))
    odd = 100 * corpus_bleu(references, hyps, weights=(0.333, 0.333, 0.333))
    ours = score(bleu_nltk_3_weighted(), hyps, refs)
    assert ours.value == pytest.approx(odd)
    assert ours.value != pytest.approx(score(BLEU(3, "nltk"), hyps, refs).value, abs=1e-6)
    assert "weights:0.333,0.333,0.333" in ours.signature


def test_short_replies_separate_the_two_variants():
    hyps, refs = [["a", "b", "c", "d"], ["a"]], [["a", "b", "c", "d"], ["a"]]
    assert score(BLEU(4), hyps, refs).value == pytest.approx(100)
    # nltk counts one 2-, 3- and 4-gram for the one-word reply: 1, 3/4, 2/3, 1/2
    expected = 100 * (1 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25
    assert score(BLEU(4, "nltk"), hyps, refs).value == pytest.approx(expected)


def test_worked_numbers_of_rashkin():
    # p = 3/4, 2/3, 1/2, 0
    result = score(AverageBLEU(), ["a b c e"], ["a b c d"])
    expected = (75, 70.71, 63.00, 0)
    assert [result.parts[f"bleu_{n}"] for n in range(1, 5)] == pytest.approx(expected, abs=0.005)
    assert result.value == pytest.approx(52.18, abs=0.005)


def test_brevity_penalty():
    assert score(BLEU(1), ["a b"], ["a b c d"]).value == pytest.approx(100 * math.exp(-1))
    assert score(BLEU(2), ["a b"], ["a b c d"]).parts["brevity_penalty"] == pytest.approx(math.exp(-1))


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=4, max_size=9), min_size=1, max_size=6))
def test_a_text_compared_with_itself(texts):
    for metric in (BLEU(4), BLEU(4, "nltk"), AverageBLEU(), SentenceBLEU()):
        assert score(metric, texts, texts).value == pytest.approx(100)
    joined = [" ".join(t) for t in texts]
    assert score(SacreBLEU(), joined, joined).value == pytest.approx(100)


def add_one_bleu(hyps, refs, max_order):
    """The smoothing switch of the scorer that EmpDG and KEMP released, written with counters."""
    matches, possible, len_hyp, len_ref = [0] * max_order, [0] * max_order, 0, 0
    for hyp, ref in zip(hyps, refs, strict=True):
        len_hyp, len_ref = len_hyp + len(hyp), len_ref + len(ref)
        for n in range(1, max_order + 1):
            in_hyp, in_ref = (Counter(tuple(s[i : i + n]) for i in range(len(s) - n + 1)) for s in (hyp, ref))
            matches[n - 1] += sum((in_hyp & in_ref).values())
            possible[n - 1] += max(0, len(hyp) - n + 1)
    if not len_hyp:
        return 0.0
    penalty = 1.0 if len_hyp > len_ref else math.exp(1 - len_ref / len_hyp)
    logs = sum(math.log((m + 1) / (p + 1)) for m, p in zip(matches, possible, strict=True))
    return 100 * penalty * math.exp(logs / max_order)


@given(corpus.filter(lambda pairs: all(ref for _, ref in pairs)), st.integers(1, 4))
def test_adding_one_against_counters(pairs, order):
    hyps, refs = map(list, zip(*pairs, strict=True))
    ours = score(BLEU(order, smoothing="add1"), hyps, refs)
    assert ours.name == f"bleu_corpus_{order}_add1"
    assert ours.value == pytest.approx(add_one_bleu(hyps, refs, order))
    mean = np.mean([add_one_bleu([h], [r], order) for h, r in pairs])
    assert score(SentenceBLEU("add1", max_order=order), hyps, refs).value == pytest.approx(mean)


def test_sentence_mean_of_lower_orders_against_nltk():
    hyps, refs = random_corpus(60)
    ours = score(SentenceBLEU(max_order=2), hyps, refs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = [sentence_bleu([r], h, (0.5, 0.5)) for h, r in zip(hyps, refs, strict=True)]
    assert ours.name == "bleu_sent_none_2"
    assert ours.value == pytest.approx(100 * np.mean(theirs))


@pytest.mark.parametrize("metric", [BLEU(1, unknown="<UNK>"), AverageBLEU(unknown="<UNK>")])
def test_an_unknown_word_in_a_reference_never_matches(metric):
    """Check T of Rashkin et al.: a reference of unknown words only, and the same reply."""
    assert score(metric, ["<UNK> <UNK> <UNK> <UNK>"], ["<UNK> <UNK> <UNK> <UNK>"]).value == 0
    assert "unk:<UNK>" in metric.compute().signature
    assert "unk:" not in score(BLEU(1), ["a"], ["a"]).signature
    metric.update(["a b c d"], ["a b c d"])
    assert metric.compute().parts["ref_len"] == 8


def test_an_empty_reply_scores_nothing_and_does_not_crash():
    assert score(BLEU(4), [""], ["a b c d"]).value == 0
    assert score(SacreBLEU(), [""], ["a b c d"]).value == 0
    mixed = score(BLEU(4), ["", "a b c d"], ["a b c d", "a b c d"])
    assert mixed.value == pytest.approx(100 * math.exp(-1))


@pytest.mark.parametrize("variant", ["corpus", "nltk"])
def test_replies_too_short_for_the_order_are_undefined_not_zero(variant):
    result = score(BLEU(4, variant), ["a b", "c"], ["a b", "c"])
    assert math.isnan(result.value)
    assert result.parts["note"] == "no reply has 3 tokens, so there is no 3-gram to score; use a lower order"
    assert "every reference is empty" in score(BLEU(1, variant), ["a"], [""]).parts["note"]


def test_sentence_mean_against_nltk():
    hyps, refs = random_corpus(60, seed=5)
    smooth = SmoothingFunction()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        none = np.mean([sentence_bleu([r], h) for h, r in zip(hyps, refs, strict=True)])
        method7 = [sentence_bleu([r], h, smoothing_function=smooth.method7) for h, r in zip(hyps, refs, strict=True)]
    assert score(SentenceBLEU("none"), hyps, refs).value == pytest.approx(100 * none)
    assert score(SentenceBLEU("m7"), hyps, refs).value == pytest.approx(100 * np.mean(method7))


words = st.lists(st.sampled_from(["I", "am", "so", "sorry,", "3.5", "don't", "Oh!", "&amp;"]), max_size=9)


@settings(max_examples=60)
@given(st.lists(st.tuples(words, words), min_size=1, max_size=5), st.booleans())
def test_sacre_is_sacrebleu(pairs, lowercase):
    hyps, refs = ([" ".join(side) for side in both] for both in zip(*pairs, strict=True))
    ours = score(SacreBLEU(lowercase=lowercase), hyps, refs)
    theirs = Sacre(lowercase=lowercase).corpus_score(hyps, [refs])
    assert ours.value == pytest.approx(theirs.score, abs=1e-9)


@pytest.mark.parametrize(("hyp", "ref"), [("a b", "a b"), ("", "a b c d"), ("", ""), ("a b c d", ""), ("x", "y")])
def test_sacre_is_zero_where_sacrebleu_is(hyp, ref):
    assert score(SacreBLEU(), [hyp], [ref]).value == Sacre().corpus_score([hyp], [[ref]]).score == 0


def test_sacre_signature_is_sacrebleus():
    ours = SacreBLEU()
    ours.update(["a"], ["a"])
    assert "tok:13a" in ours.compute().signature and "version:" in ours.compute().signature


def test_ngram_table_never_crosses_a_border():
    table = list(ngram_table([["a", "b"], [], ["b", "a", "b"]], 3))
    assert [owners.tolist() for _, owners in table] == [[0, 0, 2, 2, 2], [0, 2, 2], [2]]
    ids, _ = table[1]
    assert ids[0] == ids[2] != ids[1]  # "a b" twice, "b a" once


def test_clipping():
    # Papineni et al. 2002, section 2.1: "the" seven times against a reference that has it twice
    matches, totals = clipped_matches([["the"] * 7], [["the", "cat", "is", "on", "the", "mat"]], 1)
    assert (matches[0, 0], totals[0, 0]) == (2, 7)


def test_bad_input():
    with pytest.raises(DataError, match="got 2 hypotheses, 1 references"):
        BLEU().update(["a", "b"], ["a"])
    with pytest.raises(DataError, match="got one string 'abc'"):
        BLEU().update("abc", "abc")
    with pytest.raises(DataError, match=r"item 0 is \[1, 2\]"):
        BLEU().update([[1, 2]], [["a"]])
    with pytest.raises(DataError, match="accepted: a plain string"):
        SacreBLEU().update([["a"]], [["a"]])
    with pytest.raises(ConfigError, match="max_order is 0"):
        BLEU(0)
    with pytest.raises(ConfigError, match="unknown BLEU variant 'moses'"):
        BLEU(4, "moses")
    with pytest.raises(ConfigError, match="2 positive numbers"):
        BLEU(2, weights=(1, 0))
    with pytest.raises(ConfigError, match="unknown smoothing 'add2'"):
        SentenceBLEU("add2")
    with pytest.raises(ConfigError, match="unknown tokeniser '14a'"):
        SacreBLEU("14a")
