"""Scores, signatures, merging and the shared bootstrap."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from empatheia.errors import ConfigError, DataError
from empatheia.metrics import METRICS
from empatheia.metrics.base import bootstrap_weights, quantiles
from empatheia.metrics.bleu import BLEU
from empatheia.metrics.classification import Accuracy
from empatheia.metrics.distinct import CorpusDistinct
from empatheia.metrics.score import Score, Signature, references_hash


def filled(build, items):
    metric = build()
    if items:
        metric.update(*map(list, zip(*items, strict=True)))
    return metric


def test_updates_after_a_merge_leave_the_merged_metric_alone():
    left, right = CorpusDistinct(), CorpusDistinct()
    left.update(["a b"])
    right.update(["a c"])
    merged = left + right
    left.update(["x y z"])
    assert merged.compute().value == pytest.approx(75.0)
    assert sum([left, right]).n_items == 3


def test_only_equal_settings_can_be_merged():
    with pytest.raises(ConfigError, match=r"cannot add bleu_corpus_4 .* and bleu_corpus_2"):
        BLEU(4) + BLEU(2)
    with pytest.raises(ConfigError, match="case:lc"):
        BLEU(4) + BLEU(4, lowercase=True)


def test_several_runs_over_the_same_items_are_one_system():
    """Their mean, whose bootstrap and coins keep all that was said of an item together."""
    first, second, other = Accuracy(), Accuracy(), Accuracy()
    first.update([1, 1, 0, 1], [1, 1, 1, 1])
    second.update([0, 1, 0, 0], [1, 1, 1, 1])
    other.update([1, 0, 0, 1], [1, 0, 1, 1])
    both = first.together(second)
    assert both.n_items == 4 and both.compute().value == (75 + 25) / 2
    assert both.statistics().tolist() == (first.statistics() + second.statistics()).tolist()
    assert first.together().compute() == first.compute() and first.compute().value == 75
    with pytest.raises(DataError, match="item 1 has another reference"):
        first.together(other)
    with pytest.raises(DataError, match="each item needs exactly one"):
        first.together(both + second)
    with pytest.raises(ConfigError, match="run by run"):
        CorpusDistinct().together(CorpusDistinct())


def test_bootstrap_of_a_mean_has_the_textbook_width():
    rng = np.random.default_rng(3)
    correct = (rng.random(400) < 0.7).astype(int)
    metric = Accuracy()
    metric.update(correct, np.ones(400, dtype=int))
    low, high = metric.interval(4000, seed=1)
    p = correct.mean()
    half = 100 * 1.96 * math.sqrt(p * (1 - p) / 400)
    assert (high - low) / 2 == pytest.approx(half, rel=0.06)
    assert low < 100 * p < high


def test_bootstrap_equals_recomputation_on_the_drawn_items():
    hyps, refs = ["a b c d e", "a b", "x y z w"], ["a b c d", "a b", "x y q w"]
    metric = filled(lambda: BLEU(2), list(zip(hyps, refs, strict=True)))
    (weights,) = bootstrap_weights(3, 5, seed=4)
    assert (weights.sum(axis=1) == 3).all()
    for row, value in zip(weights.astype(int), metric.value_at(weights), strict=True):
        drawn = [i for i in range(3) for _ in range(row[i])]
        again = filled(lambda: BLEU(2), [(hyps[i], refs[i]) for i in drawn])
        assert again.compute().value == pytest.approx(value)


def test_bootstrap_is_seeded_and_wider_when_more_certain():
    metric = filled(Accuracy, [(1, 1), (0, 1), (1, 1), (0, 0), (1, 0)] * 9)
    assert metric.interval(200, seed=1) == metric.interval(200, seed=1)
    narrow, wide = metric.interval(500, confidence=0.5), metric.interval(500, confidence=0.99)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_interval_limits():
    metric = filled(Accuracy, [(1, 1)])
    assert metric.interval() is None
    assert metric.compute(n_resamples=10).interval is None
    with pytest.raises(ConfigError, match="n_resamples is 1"):
        metric.interval(1)
    with pytest.raises(ConfigError, match=r"confidence is 95"):
        filled(Accuracy, [(1, 1), (1, 0)]).interval(10, confidence=95)
    assert quantiles(np.array([np.nan, 1.0, 3.0]), 0.5) == (1.5, 2.5)
    assert quantiles(np.array([np.nan]), 0.5) is None
    assert quantiles(np.array([1.0, np.inf]), 0.9) == (1.0, math.inf)


def test_signature_round_trip_and_order():
    signature = Signature({}).including(tok="13a", case="lc", nothing=None)
    assert str(signature) == "case:lc|tok:13a"
    assert Signature.parse(str(signature)) == signature
    with pytest.raises(ConfigError, match="contains"):
        Signature({"tok": "a|b"})


def test_signature_of_a_metric_names_settings_references_and_version():
    metric = filled(lambda: BLEU(4, "nltk", tokenizer="family"), [("a", "b")])
    entries = Signature.parse(metric.compute(n_resamples=2).signature).values
    assert entries["tok"] == "family" and entries["variant"] == "nltk" and entries["smooth"] == "none"
    assert entries["refs"] == references_hash([["b"]])
    assert {"empatheia", "case", "order", "weights"} <= set(entries)


@given(st.lists(st.text(max_size=5), max_size=6), st.randoms())
def test_references_hash_ignores_order_but_not_content(texts, random):
    shuffled = list(texts)
    random.shuffle(shuffled)
    assert references_hash(texts) == references_hash(shuffled)
    assert references_hash([*texts, "new"]) != references_hash(texts)


def test_score_units_and_text():
    score = Score("dist_corpus_1", 1.8, "percent", 10, True, (1.0, 2.0))
    assert score.in_unit("fraction").value == pytest.approx(0.018)
    assert score.in_unit("fraction").interval == pytest.approx((0.01, 0.02))
    assert score.in_unit("percent") is score
    assert str(score) == "dist_corpus_1 = 1.8 % (n = 10, interval 1 to 2)"
    with pytest.raises(ConfigError, match="cannot be expressed in percent"):
        Score("ppl_token", 30.0, "perplexity", 10, False).in_unit("percent")


def test_score_json_of_nan_and_infinity():
    score = Score("x", math.nan, "percent", 1, True, (1.0, math.inf), parts={"note": "why", "n": 3})
    data = json.loads(json.dumps(score.to_dict(), allow_nan=False))
    assert data["value"] is None and data["interval"] == [1.0, "inf"]
    assert repr(Score.from_dict(data)) == repr(score)
    with pytest.raises(DataError, match="missing higher_is_better, n, unit"):
        Score.from_dict({"name": "x", "value": 1})
    for n in (float("inf"), float("nan"), "many"):
        with pytest.raises(DataError, match="n of 'x' is"):
            Score.from_dict(data | {"n": n})


def test_registry_suggests_a_name():
    with pytest.raises(ConfigError, match=r"bleu_nltk_5.*Did you mean 'bleu_nltk_"):
        METRICS.get("bleu_nltk_5")


def test_half_a_surrogate_pair_in_a_reference_is_fingerprinted():
    r"""JSON may hold "\ud83d" alone, which UTF-8 cannot write."""
    assert references_hash(["\ud83d b"]) != references_hash(["\ud83e b"])
