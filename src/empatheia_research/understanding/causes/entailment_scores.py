"""F1 over RECCON's (target, candidate) pairs: causal, not causal and macro (Poria et al. 2021, subtask 2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from empatheia.errors import DataError
from empatheia.records.dialogue import CauseAnnotation
from empatheia_research.understanding.causes.entailment_items import EntailmentItem


@dataclass(frozen=True, slots=True)
class PairScores:
    """Scores over (target, candidate) pairs, in percent; higher is better.

    Attributes:
        positive_f1: F1 of the causal class.
        negative_f1: F1 of the other class.
        macro_f1: Mean of both.
        precision: Of the causal class.
        recall: Of the causal class.
        n_positive: Gold causal pairs (RECCON DailyDialog test: 1894).
        n_negative: Gold non-causal pairs (5330).
        threshold: Probability from which a pair was called causal.
    """

    positive_f1: float
    negative_f1: float
    macro_f1: float
    precision: float
    recall: float
    n_positive: int
    n_negative: int
    threshold: float


def question_cells(items: Iterable[EntailmentItem], annotations: Iterable[CauseAnnotation]) -> list[tuple[float, int]]:
    """(probability, gold label) of every published pair of labelled items, whatever their fold.

    Args:
        items: With labels.
        annotations: Predictions of the same items, in the same order.

    Raises:
        DataError: The numbers of items and predictions differ.
    """
    items, annotations = list(items), list(annotations)
    if len(items) != len(annotations):
        raise DataError(f"{len(annotations)} predictions for {len(items)} items; annotate exactly these items.")
    return [
        (note.probabilities[turn], label)
        for item, note in zip(items, annotations, strict=True)
        for turn, label, _ in item.questions()
    ]


def scores_at(cells: Sequence[tuple[float, int]], threshold: float = 0.5) -> PairScores:
    """Scores of (probability, gold label) cells when a pair is causal from ``threshold`` on."""
    return _pair_scores(cells, threshold)


def best_scores(cells: Sequence[tuple[float, int]]) -> PairScores:
    """Scores at the threshold (0.05, 0.06, ... 0.95) with the best macro-F1; for validation cells only."""
    return max(
        (_pair_scores(cells, i / 100) for i in range(5, 96)),
        key=lambda s: (s.macro_f1, -abs(s.threshold - 0.5)),
    )


def _pair_scores(cells: Sequence[tuple[float, int]], threshold: float) -> PairScores:
    hits = sum(p >= threshold for p, label in cells if label)
    false_alarms = sum(p >= threshold for p, label in cells if not label)
    positives = sum(label for _, label in cells)
    negatives = len(cells) - positives
    rejected = negatives - false_alarms
    positive = 200 * hits / max(positives + hits + false_alarms, 1)
    negative = 200 * rejected / max(negatives + rejected + positives - hits, 1)
    return PairScores(
        positive_f1=positive,
        negative_f1=negative,
        macro_f1=(positive + negative) / 2,
        precision=100 * hits / max(hits + false_alarms, 1),
        recall=100 * hits / max(positives, 1),
        n_positive=positives,
        n_negative=negatives,
        threshold=threshold,
    )
