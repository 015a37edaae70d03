"""What holds for every registered metric: merging, order, emptiness, undefined values, signatures, pickling, JSON."""

import inspect
import json
import math
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from empatheia.errors import DataError
from empatheia.metrics import METRICS
from empatheia.metrics.agreement import CohenKappa, FleissKappa, RawAgreement
from empatheia.metrics.bertscore import ROBERTA_LARGE_BASELINE, BERTScore, TokenVectors
from empatheia.metrics.bleu import OverlapMetric
from empatheia.metrics.causes import CauseF1, CauseRecall
from empatheia.metrics.classification import F1, Accuracy, BatchMeanAccuracy, CalibrationError, Confusion
from empatheia.metrics.coverage import Coverage, NearCoverage
from empatheia.metrics.distinct import CorpusDistinct, ResponseDistinct
from empatheia.metrics.distributions import DistributionDistance, LabelShares
from empatheia.metrics.length import ReplyLength
from empatheia.metrics.listening import ListenerAccuracy
from empatheia.metrics.mechanisms import MechanismLevel, RationaleF1
from empatheia.metrics.parlai import ParlaiBLEU, ParlaiF1
from empatheia.metrics.perplexity import BatchPerplexity, Likelihood, WordPerplexity
from empatheia.metrics.repetition import AcrossReplies, ContextCopies, ReplyRepetition
from empatheia.metrics.retrieval import HitsAtK
from empatheia.metrics.rouge import ROUGE
from empatheia.metrics.sacre import ChrF, SacreBLEU
from empatheia.metrics.score import Score
from empatheia.metrics.similarity import SentenceSimilarity
from empatheia.metrics.spans import SpanF1

for package in ("nltk", "sacrebleu"):
    pytest.importorskip(package, reason="every metric is built here")


def letters(words):
    """Two-dimensional vectors of words by their first letter; 'd' is unknown."""
    table = {"a": (1.0, 0.0), "b": (0.9, 0.1), "c": (0.0, 1.0)}
    return np.array([table.get(word[0], (0.0, 0.0)) for word in words])


def encoded(values):
    vectors = np.array([[np.cos(x), np.sin(x)] for x in [0, *values]])
    return TokenVectors(np.array([0, *values]), vectors, np.arange(len(vectors)) > 0)


words = st.lists(st.sampled_from("abcd"), max_size=8)
reference = st.lists(st.sampled_from("abcd"), min_size=1, max_size=8)
text = st.text("ab .", max_size=12)
flag = st.integers(0, 1)
plane = st.tuples(st.integers(-2, 2), st.integers(-2, 2))
marks = st.lists(st.tuples(flag, flag), min_size=1, max_size=5).map(lambda pairs: tuple(zip(*pairs, strict=True)))
pieces = st.lists(st.integers(1, 6), max_size=4).map(encoded)
candidates = st.lists(st.integers(0, 3), min_size=100, max_size=100)

# class of metric: one item of each argument of update; the first class that fits is taken
ITEMS = {
    SacreBLEU: st.tuples(text, text),
    ChrF: st.tuples(text, text),
    OverlapMetric: st.tuples(words, reference),
    ROUGE: st.tuples(words, reference),
    ParlaiF1: st.tuples(words, reference),
    ParlaiBLEU: st.tuples(words, reference),
    BERTScore: st.tuples(pieces, pieces),
    SentenceSimilarity: st.tuples(plane, plane),
    HitsAtK: st.tuples(candidates, st.integers(0, 99)),
    Coverage: st.tuples(words, st.lists(st.sampled_from("abcd"), max_size=3)),
    ListenerAccuracy: st.tuples(flag),
    CorpusDistinct: st.tuples(words),
    ResponseDistinct: st.tuples(words),
    ReplyRepetition: st.tuples(words),
    AcrossReplies: st.tuples(words),
    ReplyLength: st.tuples(words),
    ContextCopies: st.tuples(words, st.lists(words, max_size=2)),
    Likelihood: st.tuples(st.floats(0, 50), st.integers(1, 20), st.integers(1, 20), st.integers(1, 99)),
    CalibrationError: st.tuples(st.floats(0, 1), flag),
    Accuracy: st.tuples(flag, flag),
    F1: st.tuples(flag, flag),
    Confusion: st.tuples(flag, flag),
    LabelShares: st.tuples(flag, st.integers(0, 2)),
    DistributionDistance: st.tuples(flag, flag),
    CauseF1: marks,
    CauseRecall: st.tuples(words, st.lists(st.sampled_from("abc"), min_size=1)),
    SpanF1: st.tuples(text, st.sampled_from([None, "a", "b a"])),
    MechanismLevel: st.tuples(st.integers(0, 2)),
    RationaleF1: marks,
    FleissKappa: st.integers(0, 3).map(lambda k: ([k, 3 - k],)),
    CohenKappa: st.tuples(flag, flag),
    RawAgreement: st.tuples(st.lists(flag, min_size=2, max_size=4)),
}
BY_NAME = {  # an argument of update in a class that stands above nowhere
    "responses": words, "hypotheses": words, "references": reference, "contexts": st.lists(words, max_size=2),
    "predicted": flag, "gold": flag,
}  # fmt: skip
ARGUMENTS = {
    "fleiss_kappa": {"n_categories": 2},
    "cohen_kappa": {"labels": [0, 1]},
    "coverage_near": {"vectors": letters, "encoder": "letters"},
}
BATCHWISE = (BatchMeanAccuracy, BatchPerplexity)  # a call of update is a batch, and the batches count

OTHER = {  # another value of each setting; a class may say more
    "add": 1.0, "average": "weighted", "baseline": ROBERTA_LARGE_BASELINE, "beta": 1, "char_order": 4, "concat": True,
    "counts_end": False, "encoder": "other", "gold_labels": True, "idf": {-1: 1.0, 3: 0.5}, "k": 2, "kind": 3,
    "labels": ["yes", "no", "none"], "layer": 3, "level": "word", "lowercase": True, "match": "within", "max_order": 3,
    "measure": "kl", "min_words": 2, "n_bins": 7, "n_candidates": 50, "n_categories": 3, "order": 3,
    "protocol": "inline", "report": "recall", "seed": 5, "short": "zero", "smoothing": "add1", "stem": True,
    "strict": True, "threshold": 0.7, "ties": "worst", "tokenize": "char", "tokenizer": "family", "top_k": 2,
    "unit": "fraction", "unknown": "<unk>", "variant": "nltk", "weights": (0.3, 0.3, 0.2, 0.2), "word_order": 1,
    "words": "nltk", "forms": "word", "n_worlds": 4, "listener": "other", "distractors": "other",
}  # fmt: skip
TOGETHER = {
    ("F1", "of"): {"average": "class", "of": 1},
    ("EntailmentF1", "of"): {"of": "positive"},
    ("ReplyLength", "of"): {"of": "characters"},
    ("Coverage", "normalise"): {"forms": "first-letter", "normalise": lambda word: word[0]},
    ("ContextCopies", "lowercase"): {"lowercase": False},
    ("BERTScore", "report"): {"report": "p"},
    ("SpanF1", "report"): {"report": "em_pos"},
    ("RationaleF1", "report"): {"report": "iou_f1"},
}


def build(name):
    return METRICS.get(name)(**ARGUMENTS.get(name, {}))


def items_of(name):
    metric = build(name)
    if isinstance(metric, Accuracy) and metric.top_k > 1:
        return st.tuples(st.permutations(range(5)), st.integers(0, 6))
    for kind, strategy in ITEMS.items():
        if isinstance(metric, kind):
            return strategy
    names = needed(metric)
    if not set(names) <= set(BY_NAME):
        kind = type(metric).__name__
        pytest.fail(f"{name}: update takes {', '.join(names)}; add {kind} to ITEMS with one item of each argument.")
    return st.tuples(*(BY_NAME[argument] for argument in names))


def needed(metric):
    """Names of the arguments that update cannot do without."""
    return [x.name for x in inspect.signature(metric.update).parameters.values() if x.default is x.empty]


def another(kind, setting):
    """A value of a setting that is not its default."""
    if (kind.__name__, setting) in TOGETHER:
        return TOGETHER[kind.__name__, setting]
    default = inspect.signature(kind).parameters[setting].default
    if setting in OTHER and OTHER[setting] != default:
        return {setting: OTHER[setting]}
    if isinstance(default, bool):
        return {setting: not default}
    if isinstance(default, int | float):
        return {setting: default + 1}
    return pytest.fail(f"{kind.__name__}: add a value of {setting!r} other than {default!r} to OTHER or TOGETHER.")


def fed(name, *batches):
    metric = build(name)
    for items in batches:
        if items:
            metric.update(*map(list, zip(*items, strict=True)))
    return metric


def same(score, other):
    assert other.value == pytest.approx(score.value, rel=1e-9, abs=1e-12, nan_ok=True)
    assert (other.n, other.signature, other.unit) == (score.n, score.signature, score.unit)


every_metric = pytest.mark.parametrize("name", METRICS.names())


@every_metric
def test_the_registered_name_is_the_name_of_the_score(name):
    metric = build(name)
    assert metric.name == name
    units = "percent fraction perplexity bits kappa level words characters labels"
    assert metric.unit in units.split()
    assert (type(metric).__doc__ and "Example" in type(metric).__doc__) or type(metric) is MechanismLevel


@every_metric
@settings(max_examples=5)
@given(data=st.data())
def test_a_merge_is_a_concatenation_and_order_is_nothing(name, data):
    item = items_of(name)
    left, right = data.draw(st.lists(item, max_size=4)), data.draw(st.lists(item, min_size=1, max_size=4))
    whole = fed(name, left, right).compute()
    same(whole, (fed(name, left) + fed(name, right)).compute())
    same(whole, (fed(name, right) + fed(name, left)).compute())
    turned = data.draw(st.permutations(right))
    same(fed(name, right).compute(), fed(name, turned).compute())
    if not isinstance(build(name), BATCHWISE):
        same(whole, fed(name, left + right).compute())
        same(whole, fed(name, *([one] for one in left + right)).compute())


@every_metric
@settings(max_examples=5)
@given(data=st.data())
def test_an_undefined_score_says_why_and_all_scores_survive_writing(name, data):
    metric = fed(name, data.draw(st.lists(items_of(name), min_size=1, max_size=4)))
    score = metric.compute(n_resamples=10)
    assert math.isnan(score.value) == ("note" in score.parts)
    again = Score.from_dict(json.loads(json.dumps(score.to_dict(), allow_nan=False)))
    assert again.higher_is_better == score.higher_is_better
    assert repr(again) == repr(Score.from_dict(again.to_dict()))
    assert repr(pickle.loads(pickle.dumps(metric)).compute(n_resamples=10)) == repr(score)
    if score.interval is not None and not math.isnan(score.value):
        assert score.interval[0] <= score.interval[1]


@every_metric
@settings(max_examples=3)
@given(data=st.data())
def test_weights_of_one_are_the_score_and_of_zero_leave_items_out(name, data):
    """Permutation tests and the bootstrap see a metric through ``value_at``."""
    item = items_of(name)
    kept, dropped = data.draw(st.lists(item, min_size=1, max_size=3)), data.draw(st.lists(item, min_size=1, max_size=3))
    both, only = fed(name, kept) + fed(name, dropped), fed(name, kept)
    n = both.n_items
    weights = np.stack([np.ones(n), np.arange(n) < only.n_items]).astype(float)
    values = both.value_at(weights)
    assert values.shape == (2,)
    assert values[0] == pytest.approx(both.compute().value, nan_ok=True)
    assert values[1] == pytest.approx(only.compute().value, nan_ok=True)


@every_metric
def test_without_items_there_is_no_score(name):
    with pytest.raises(DataError, match=f"{name}: no items to score"):
        build(name).compute()
    metric = build(name)
    n_arguments = 4 if isinstance(metric, Likelihood) else len(needed(metric))
    metric.update(*([] for _ in range(n_arguments)))
    assert metric.n_items == 0


CLASSES = {type(build(name)).__name__: name for name in METRICS.names()}
SETTINGS = [(name, setting) for kind, name in sorted(CLASSES.items())
            for setting in inspect.signature(type(build(name)).__init__).parameters if setting != "self"]  # fmt: skip


@pytest.mark.parametrize("name, setting", SETTINGS)
def test_another_setting_is_another_score(name, setting):
    kind, base = type(build(name)), dict(ARGUMENTS.get(name, {}))
    if setting == "vectors":  # named by `encoder`
        return
    changed = kind(**{**base, **another(kind, setting)})
    if setting == "words" and kind is not WordPerplexity:
        assert changed.signature() == kind(**base).signature()  # the others count no words
        return
    plain = kind(**base)
    described = [(x.name, x.unit, str(x.signature())) for x in (plain, changed)]
    assert described[0] != described[1]


def test_near_coverage_is_a_coverage_and_signatures_differ():
    assert issubclass(NearCoverage, Coverage)
    assert str(build("coverage").signature()) != str(build("coverage_near").signature())


def test_the_table_in_the_documentation_has_every_metric():
    page = Path(__file__).resolve().parents[2] / "docs" / "concepts" / "metrics.md"
    named = re.findall(r"`([a-z][a-z0-9_]*)`", "\n".join(x for x in page.read_text().splitlines() if x.startswith("|")))
    assert set(METRICS.names()) <= set(named)
