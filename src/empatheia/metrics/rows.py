"""What a run measured, as rows: a score or a test with labels that say of what, and facts beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from empatheia.metrics.score import Score
from empatheia.metrics.significance import ComparisonRecord

LABELS = (
    *(
        "set",
        "fold",
        "of",
        "threshold",
        "rule",
        "method",
        "told",
        "turns",
        "protocol",
        "candidates",
        "system",
        "variant",
    ),
    "mechanism",
)
"""What may distinguish two scores of one metric in a run, in the order in which a name tells them.

``set``: corpus or part of one; ``fold``, ``of``, ``threshold``: RECCON's fold, pairs or spans, and
log-odds or probability, or the ``rule`` of position in its place (``of`` also tells an estimator's emotions from its
text); ``method``: who ranks or guesses, where several do; ``told``: what the model was given of the gold reply;
``turns``: which turns, or how they were read; ``protocol`` and ``candidates``: of retrieval; ``system``, ``variant``:
focused speakers and listeners.
"""
_FOLD_LABELS = ("fold", "of", "threshold", "rule")
LEVEL = "mechanism_level"
"""The metric whose rows are called by their mechanism alone."""


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """One score.

    Attributes:
        metric: What was measured, e.g. ``ppl_word``.
        score: The number with interval, items and signature.
        labels: Of what; keys out of :data:`LABELS`.
    """

    metric: str
    score: Score
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The metric; of a mechanism's mean level the mechanism, which is what tells it from the others."""
        return self.labels["mechanism"] if self.metric == LEVEL else self.metric

    @property
    def name(self) -> str:
        """Labels and metric in one line, as records of earlier versions called the score.

        >>> score = Score("accuracy", 50.0, "percent", 2, True)
        >>> ScoreRow("accuracy", score, {"mechanism": "exploration"}).name
        'exploration: accuracy'
        """
        labels = dict(self.labels)
        parts = []
        if "fold" in labels:
            parts.append(fold_name(labels))
            labels = {label: value for label, value in labels.items() if label not in _FOLD_LABELS}
        parts += [labels[label] for label in LABELS if label in labels]
        return ": ".join(parts if self.metric == LEVEL else [*parts, self.metric])


@dataclass(frozen=True, slots=True)
class TestRow:
    """One paired comparison.

    Attributes:
        metric: What was compared.
        labels: Whose score; keys out of :data:`LABELS`.
        against: The other, by the value of the label that differs.
        result: ``difference``, ``p_value``, ``method``, ``n``, ``n_resamples`` and more, JSON-ready.
    """

    __test__ = False  # no test case of pytest's

    metric: str
    labels: Mapping[str, str]
    against: str
    result: ComparisonRecord


@dataclass(frozen=True, slots=True)
class Measured:
    """All that a run measured.

    Attributes:
        rows: Scores, in the order in which they were measured.
        tests: Comparisons.
        facts: What is no score: counts, decoding, label tables; JSON-ready.
    """

    rows: Sequence[ScoreRow] = ()
    tests: Sequence[TestRow] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def where(self, metric: str | None = None, **labels: str) -> Iterator[ScoreRow]:
        """Rows of a metric that carry these labels; they may carry others."""
        for row in self.rows:
            if metric in (None, row.metric) and all(row.labels.get(k) == v for k, v in labels.items()):
                yield row

    def score(self, metric: str, **labels: str) -> Score | None:
        """The score with exactly these labels, or None."""
        return next((row.score for row in self.where(metric, **labels) if len(row.labels) == len(labels)), None)

    def by_key(self, **labels: str) -> dict[str, Score]:
        """Scores that have exactly these labels, the mechanism aside, by :attr:`ScoreRow.key`."""
        found = {}
        for row in self.where(**labels):
            if set(row.labels) - set(labels) <= ({"mechanism"} if row.metric == LEVEL else set()):
                found.setdefault(row.key, row.score)
        return found

    def test(self, metric: str, against: str | None, **labels: str) -> ComparisonRecord | None:
        """The comparison of what has these labels with another, or None."""
        same = (test for test in self.tests if (test.metric, test.against) == (metric, against))
        return next((test.result for test in same if dict(test.labels) == labels), None)


def fold_name(labels: Mapping[str, str]) -> str:
    """A fold of RECCON in words.

    >>> fold_name({"fold": "1", "of": "pairs", "threshold": "0.5"})
    'fold1 pairs, threshold 0.5'
    """
    how = "rule" if "rule" in labels else "threshold"
    return f"fold{labels['fold']} {labels['of']}, {how} {labels[how]}"
