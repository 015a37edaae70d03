"""Mechanisms of empathy as numbers: how much of one replies show, and how well its rationales were found.

Mean level as an automatic metric of replies: Kim et al. (2021), released code. Rationale F1 and IOU-F1: Sharma et al.
(2020), after DeYoung et al. (2020); the released script's slips are mended: a run of pieces that reaches the end keeps
its last piece, and nothing behind the response counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.base import Metric, check_same_length

Report = Literal["f1", "iou_f1", "accuracy"]
_RERUN = "a rerun of the released code, random 9:1 split (issue 4 of its repository)"
EPITOME_PAPER = "Sharma et al. 2020, Reddit, own split; recalled, not checked against the paper"
EPITOME_PUBLISHED: Mapping[str, Mapping[str, Mapping[str, float]]] = MappingProxyType(
    {
        "emotional reaction": {
            EPITOME_PAPER: {"accuracy": 79.43, "f1_macro": 74.46},
            _RERUN: {"accuracy": 78.56, "f1_macro": 76.38},
        },
        "interpretation": {
            EPITOME_PAPER: {"accuracy": 84.04, "f1_macro": 62.60},
            _RERUN: {"accuracy": 84.94, "f1_macro": 65.73},
        },
        "exploration": {
            EPITOME_PAPER: {"accuracy": 92.61, "f1_macro": 72.58},
            _RERUN: {"accuracy": 91.06, "f1_macro": 71.72},
        },
    }
)
"""Percent, by mechanism and source. RoBERTa-base encoders; no official split exists, so no test set is the same."""


class MechanismLevel(Metric):
    """Mean level of one mechanism over replies: 0 to 2, higher is more.

    The levels' counts are parts: a mean of 1 may be all weak or half strong. Report the score of the gold replies and
    of a fixed reply beside it: the classifier was trained on another kind of text.

    Example:
        >>> metric = MechanismLevel()
        >>> metric.update([0, 2, 1, 0])
        >>> metric.compute().value
        0.75
    """

    name = "mechanism_level"
    unit = "level"
    columns = ("level", "n_0", "n_1", "n_2")

    def update(self, levels: Sequence[int] | np.ndarray) -> None:
        """Adds replies.

        Raises:
            DataError: A level is not 0, 1 or 2.
        """
        given = np.asarray(levels)
        wrong = np.flatnonzero(~np.isin(given, (0, 1, 2)))
        if len(wrong):
            raise DataError(f"{self.name}: item {wrong[0]} is {given[wrong[0]]}; accepted: 0, 1, 2.")
        self._append(np.column_stack([given, *(given == level for level in (0, 1, 2))]))

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """The mean."""
        return sums[..., 0] / sums[..., 1:].sum(-1)

    def settings(self) -> Mapping[str, object]:
        """Nothing to set."""
        return {}


class RationaleF1(Metric):
    """How well marked pieces agree with gold ones: mean over responses, 0 to 100 percent, higher is better.

    Args:
        report: Which score is the value; the others are parts.

            - ``f1``: F1 of the marked pieces of a response ("macro F1" of the released script).
            - ``iou_f1``: F1 of runs. A predicted run counts when it shares at least half of its union with some gold
              run; precision over predicted runs, recall over gold runs.
            - ``accuracy``: Share of pieces marked as they should be.

    A response with neither predicted nor gold marks scores 100; with only one of them, 0 (but for ``accuracy``).

    Example:
        >>> metric = RationaleF1("iou_f1")
        >>> metric.update([[0, 1, 1, 1]], [[0, 0, 1, 1]])
        >>> metric.compute().value
        100.0
    """

    unit = "percent"
    columns = ("f1", "iou_f1", "accuracy", "n_responses")

    def __init__(self, report: Report = "f1") -> None:
        super().__init__()
        if report not in get_args(Report):
            raise ConfigError(f"unknown rationale score {report!r}; accepted: {', '.join(get_args(Report))}.")
        self.report = report
        self.name = f"rationale_{report}"

    def update(self, predicted: Sequence[Sequence[int]], gold: Sequence[Sequence[int]]) -> None:
        """Adds responses.

        Args:
            predicted: For each response 1 or 0 a piece, special pieces left out.
            gold: Likewise.

        Raises:
            DataError: The numbers of responses or of pieces differ, or a response has no piece.
        """
        check_same_length(self.name, predicted=predicted, gold=gold)
        rows = []
        for i, (said, true) in enumerate(zip(predicted, gold, strict=True)):
            if len(said) != len(true) or not len(true):
                raise DataError(f"{self.name}: item {i} has {len(said)} predicted and {len(true)} gold pieces.")
            guess, truth = np.asarray(said, dtype=bool), np.asarray(true, dtype=bool)
            rows.append([_f1(guess, truth), _iou_f1(guess, truth), float((guess == truth).mean()), 1])
        self._append(rows, references=("".join(str(int(mark)) for mark in true) for true in gold))

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """The mean in percent."""
        return 100 * sums[..., self.columns.index(self.report)] / sums[..., -1]

    def settings(self) -> Mapping[str, object]:
        """Threshold of the overlap, for ``iou_f1``."""
        return {"report": self.report, "iou": 0.5 if self.report == "iou_f1" else None}

    def parts_of(self, sums: np.ndarray) -> dict[str, float]:
        """All three scores in percent."""
        return {name: 100 * float(sums[i] / sums[-1]) for i, name in enumerate(self.columns[:-1])}


def _f1(guess: np.ndarray, truth: np.ndarray) -> float:
    n = int(guess.sum() + truth.sum())
    return 2 * float((guess & truth).sum()) / n if n else 1.0


def runs(marks: Sequence[int] | np.ndarray) -> list[tuple[int, int]]:
    """Maximal stretches ``[start, end)`` of true marks.

    >>> runs([0, 1, 1, 0, 1])
    [(1, 3), (4, 5)]
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[0], np.asarray(marks, dtype=int), [0]])))
    return [(int(start), int(end)) for start, end in zip(edges[::2], edges[1::2], strict=True)]


def _iou_f1(guess: np.ndarray, truth: np.ndarray) -> float:
    said, true = runs(guess), runs(truth)
    if not said or not true:
        return float(not said and not true)
    hits = sum(any(_iou(a, b) >= 0.5 for b in true) for a in said)
    return 2 * hits / (len(said) + len(true)) if hits else 0.0


def _iou(a: tuple[int, int], b: tuple[int, int]) -> float:
    shared = max(0, min(a[1], b[1]) - max(a[0], b[0]))
    return shared / (a[1] - a[0] + b[1] - b[0] - shared)


rationale_f1, rationale_iou_f1 = partial(RationaleF1, "f1"), partial(RationaleF1, "iou_f1")
