"""Causal span extraction (RECCON subtask 1; Poria et al. 2021): exact match, SQuAD F1, F1 of "no cause".

An item is one (utterance, candidate) pair. Its gold answer is a span of text (a positive) or None (a
negative, where the empty prediction is right).

The paper calls F1_pos SQuAD's F1, but the released script (``eval_qa.py``) gives 0 to an answer that neither lies
inside the gold span nor holds it, however many words they share. The printed F1_pos and F1 are therefore set beside
the ``_nested`` scores.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from functools import partial
from typing import Literal, get_args

import numpy as np

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.base import Metric, check_same_length

Report = Literal["em_pos", "f1_pos", "f1_neg", "f1", "lcs_f1", "f1_pos_nested", "f1_nested"]

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def squad_tokens(text: str) -> list[str]:
    """Lower-cased words without ASCII punctuation and the articles a, an, the (SQuAD's evaluation script)."""
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def squad_f1(prediction: str, gold: str) -> float:
    """F1 of the bags of words: 0 to 1. If either has no words, 1 when both have none, else 0.

    Example:
        >>> round(squad_f1("a cat", "the cat sat"), 4)
        0.6667
    """
    guess, truth = squad_tokens(prediction), squad_tokens(gold)
    if not guess or not truth:
        return float(guess == truth)
    return 2 * (Counter(guess) & Counter(truth)).total() / (len(guess) + len(truth))


def is_nested(prediction: str, gold: str) -> bool:
    """One of the two, stripped, is a character substring of the other, and neither is empty.

    Example:
        >>> is_nested("the cat", "the cat sat"), is_nested("a cat sat", "cat sat down")
        (True, False)
    """
    guess, truth = prediction.strip(), gold.strip()
    return bool(guess and truth) and (guess in truth or truth in guess)


def lcs_f1(prediction: str, gold: str) -> float:
    """F1 of the longest common *character* substring, counted in white-space words: 0 to 1.

    As RECCON's script; a substring may cut through words, and a piece of a word counts as one.

    Example:
        >>> round(lcs_f1("b c d", "a b c"), 4)
        0.6667
    """
    n_guess, n_truth = len(prediction.split()), len(gold.split())
    if not n_guess or not n_truth:
        return float(n_guess == n_truth)
    matcher = SequenceMatcher(None, prediction, gold, autojunk=False)
    match = matcher.find_longest_match(0, len(prediction), 0, len(gold))
    n_shared = len(prediction[match.a : match.a + match.size].split())
    return 2 * n_shared / (n_guess + n_truth)


class SpanF1(Metric):
    """One of RECCON's span scores; the others are parts: 0 to 100 percent, higher is better.

    Args:
        report: Which score is the value.

            - ``em_pos``: share of positives whose stripped prediction equals the stripped gold span.
            - ``f1_pos``: mean SQuAD F1 over positives.
            - ``f1_neg``: F1 of "empty", P = empty negatives / all empty, R = empty negatives / negatives.
            - ``f1``: mean over all items; a positive scores its SQuAD F1, a negative 1 if and only if empty.
            - ``lcs_f1``: mean F1 of the longest common substring over positives.
            - ``f1_pos_nested``, ``f1_nested``: as ``f1_pos`` and ``f1``, but an answer that neither lies inside the
              gold span nor holds it scores 0 (the released script).

    Example:
        >>> metric = SpanF1("f1")
        >>> metric.update(["a cat", "", "oops"], ["the cat sat", None, None])
        >>> round(metric.compute().value, 2)
        55.56
    """

    unit = "percent"
    columns = ("exact", "f1", "lcs_f1", "nested_f1", "n_positive", "positive_empty", "n_negative", "negative_empty")

    def __init__(self, report: Report = "f1") -> None:
        super().__init__()
        if report not in get_args(Report):
            raise ConfigError(f"unknown span score {report!r}; accepted: {', '.join(get_args(Report))}.")
        self.report = report
        self.name = f"span_{report}"

    def update(self, predictions: Sequence[str], golds: Sequence[str | None]) -> None:
        """Adds items.

        Args:
            predictions: The extracted text of each item; empty or blank for "no cause here".
            golds: The gold span of each item, or None for a negative.

        Raises:
            DataError: The numbers differ, an entry is not text, or a positive's span is blank.
        """
        check_same_length(self.name, predictions=predictions, golds=golds)
        self._append(
            [self._row(i, p, g) for i, (p, g) in enumerate(zip(predictions, golds, strict=True))],
            references=("\x00" if gold is None else gold for gold in golds),
        )

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """The chosen score in percent."""
        return 100 * self._all(sums)[self.report]

    def settings(self) -> Mapping[str, object]:
        """Normalisation of the words."""
        return {"report": self.report, "norm": "none" if self.report in ("em_pos", "lcs_f1") else "squad"}

    def parts_of(self, sums: np.ndarray) -> dict[str, float]:
        """All scores in percent; numbers of positives and negatives and how many were left empty."""
        scores = {name: 100 * float(value) for name, value in self._all(sums).items()}
        return {**scores, **{name: int(sums[i]) for i, name in enumerate(self.columns) if i > 3}}

    def note_of(self, sums: np.ndarray) -> str:
        """No item of the kind that the score is about."""
        return "no negative item" if self.report == "f1_neg" else "no positive item"

    def _row(self, i: int, prediction: str, gold: str | None) -> list[float]:
        if not isinstance(prediction, str) or not (gold is None or (isinstance(gold, str) and gold.strip())):
            raise DataError(
                f"{self.name}: item {i} is {prediction!r} / {gold!r}; accepted: predicted text (may be empty)"
                " and a gold span, or None when there is none."
            )
        empty = not prediction.strip()
        if gold is None:
            return [0, 0, 0, 0, 0, 0, 1, empty]
        exact = prediction.strip() == gold.strip()
        f1 = squad_f1(prediction, gold)
        nested = 1.0 if exact else f1 * is_nested(prediction, gold)
        return [exact, f1, lcs_f1(prediction.strip(), gold.strip()), nested, 1, empty, 0, 0]

    @staticmethod
    def _all(sums: np.ndarray) -> dict[str, np.ndarray]:
        exact, f1, lcs, nested, n_pos, pos_empty, n_neg, neg_empty = np.moveaxis(np.asarray(sums), -1, 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            # 2PR/(P+R) with P = neg_empty / (neg_empty + pos_empty), R = neg_empty / n_neg
            f1_neg = np.where(n_neg > 0, 2 * neg_empty / (neg_empty + pos_empty + n_neg), np.nan)
            return {
                "em_pos": exact / n_pos,
                "f1_pos": f1 / n_pos,
                "f1_neg": f1_neg,
                "f1": (f1 + neg_empty) / (n_pos + n_neg),
                "lcs_f1": lcs / n_pos,
                "f1_pos_nested": nested / n_pos,
                "f1_nested": (nested + neg_empty) / (n_pos + n_neg),
            }


span_em_pos, span_f1_pos, span_f1_neg, span_f1, span_lcs_f1, span_f1_pos_nested, span_f1_nested = (
    partial(SpanF1, r) for r in get_args(Report)
)
