"""RECCON's span scores over the questions of labelled items, and the null threshold that makes them best.

The answers come from a span model, or from an annotator whose head marks causal pieces: nothing is trained for those.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from empatheia.metrics import METRICS
from empatheia.metrics.spans import squad_f1
from empatheia.records.dialogue import CauseAnnotation
from empatheia_research.understanding.causes.entailment_items import EntailmentItem
from empatheia_research.understanding.causes.spans import SpanAnswer

METRIC_NAMES = (
    "span_em_pos",
    "span_f1_pos",
    "span_f1_neg",
    "span_f1",
    "span_lcs_f1",
    "span_f1_pos_nested",
    "span_f1_nested",
)
N_RESAMPLES = 1000
TUNED = "tuned on valid"
_MOST_ODDS = 10.0  # of a probability whose four decimals are all 0 or all 9
Answers = Sequence[Mapping[int, SpanAnswer]]


def marked_answers(items: Sequence[EntailmentItem], notes: Sequence[CauseAnnotation]) -> list[dict[int, SpanAnswer]]:
    """Answers of an annotator with a head for pieces: the best run of marked pieces of every turn.

    Args:
        items: Targets with their histories.
        notes: What :func:`~empatheia_research.understanding.causes.entailment.annotate` gave for them at threshold 0,
            so that every turn that was read has its span.

    Returns:
        As :func:`~empatheia_research.understanding.causes.spans.extract`; ``log_odds`` is of the turn being causal.
    """
    out = []
    for item, note in zip(items, notes, strict=True):
        answers = {}
        for span in note.spans:
            p = note.probabilities[span.turn]
            odds = math.log(p / (1 - p)) if 0 < p < 1 else math.copysign(_MOST_ODDS, p - 0.5)
            answers[span.turn] = SpanAnswer(span.turn, span, item.texts[span.turn][span.start : span.end], odds)
        out.append(answers)
    return out


def predictions(
    items: Sequence[EntailmentItem], answers: Answers, threshold: float
) -> tuple[list[str], list[str | None]]:
    """Predicted text ("" for none) and gold span (None for a negative) of every published question.

    Args:
        items: With labels and spans.
        answers: From :func:`extract`, in the same order.
        threshold: Log-odds from which an answer is given.
    """
    texts, golds = [], []
    for item, found in zip(items, answers, strict=True):
        for turn, label, span in item.questions():
            answer = found.get(turn)
            texts.append(answer.text if answer is not None and answer.log_odds >= threshold else "")
            golds.append(item.texts[turn][span.start : span.end] if label and span is not None else None)
    return texts, golds


def span_scores(items: Sequence[EntailmentItem], answers: Answers, threshold: float) -> dict[str, object]:
    """The plain numbers in percent, and under ``scores`` each with its signature and bootstrap interval.

    The bootstrap draws questions.
    """
    texts, golds = predictions(items, answers, threshold)
    scores: dict[str, object] = {}
    record: dict[str, object] = {"threshold": threshold, "scores": scores}
    for name in METRIC_NAMES:
        metric = METRICS.get(name)()
        metric.update(texts, golds)
        score = metric.compute(n_resamples=N_RESAMPLES)
        scores[name] = score.to_dict()
        record |= score.parts
    return record


def best_null_threshold(items: Sequence[EntailmentItem], answers: Answers, tune: str = "balanced") -> float:
    """The threshold with the best score over at most 200 values between the answers' own log-odds.

    Args:
        items: Validation items with labels and spans.
        answers: Their answers.
        tune: ``balanced`` (mean of F1_pos and F1_neg) or ``f1`` (over all questions). Three of four questions have no
            answer, so ``f1`` alone rewards silence: answering nothing gives F1 73.8 on fold 1.
    """
    cells = _Cells(items, answers)
    odds = np.unique(cells.odds[np.isfinite(cells.odds)])
    if not len(odds):
        return 0.0
    step = math.ceil(len(odds) / 200)
    choices = sorted(round(float(value), 4) for value in (0.0, *odds[::step], odds[-1] + 1.0))
    return max(choices, key=lambda threshold: (cells.value(threshold, tune), -abs(threshold)))


def tuned_value(items: Sequence[EntailmentItem], answers: Answers, threshold: float, tune: str = "balanced") -> float:
    """What :func:`best_null_threshold` makes best, in percent; -1 where it is undefined."""
    return _Cells(items, answers).value(threshold, tune)


class _Cells:
    """Every question's log-odds and its score with and without the answer, so that a threshold costs no comparison.

    Attributes:
        odds: -inf where there is no answer. Shape: (n_questions,).
    """

    def __init__(self, items: Sequence[EntailmentItem], answers: Answers) -> None:
        texts, golds = predictions(items, answers, -math.inf)
        self.positive = np.array([gold is not None for gold in golds], dtype=bool)
        self.given = np.array([squad_f1(t, g) if g is not None else 0.0 for t, g in zip(texts, golds, strict=True)])
        self.empty = np.array([1.0 if g is None else squad_f1("", g) for g in golds])
        asked = (found.get(turn) for item, found in zip(items, answers, strict=True) for turn, *_ in item.questions())
        self.odds = np.array([a.log_odds if a is not None and a.text.strip() else -math.inf for a in asked])

    def value(self, threshold: float, tune: str) -> float:
        """In percent; -1 where it is undefined."""
        is_empty = ~((self.odds >= threshold) & np.isfinite(self.odds))
        scores = np.where(is_empty, self.empty, self.given)
        if tune == "f1":
            return 100 * float(scores.mean()) if len(scores) else -1.0
        n_negative = int((~self.positive).sum())
        if not self.positive.any() or not n_negative:
            return -1.0
        negative_empty = int((is_empty & ~self.positive).sum())
        f1_neg = 2 * negative_empty / (int(is_empty.sum()) + n_negative)
        return 100 * (float(scores[self.positive].mean()) + f1_neg) / 2
