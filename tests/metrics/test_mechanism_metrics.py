"""Mean level, rationale F1 and IOU-F1, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from empatheia.errors import ConfigError, DataError
from empatheia.metrics import METRICS
from empatheia.metrics.mechanisms import MechanismLevel, RationaleF1, runs


def rationale(report, predicted, gold):
    metric = RationaleF1(report)
    metric.update(predicted, gold)
    return metric.compute().value


def test_mean_level():
    """P1: predicted levels (0, 2, 1, 0) have the mean .75."""
    metric = METRICS.get("mechanism_level")()
    metric.update([0, 2, 1, 0])
    score = metric.compute()
    assert score.value == 0.75
    assert (score.parts["n_0"], score.parts["n_1"], score.parts["n_2"]) == (2, 1, 1)
    with pytest.raises(DataError, match="item 1 is 3; accepted: 0, 1, 2"):
        MechanismLevel().update([0, 3])


@pytest.mark.parametrize("marks", [[1, 0, 1, 1], [0, 0, 0, 1], [1], [0, 1, 1, 1]])
def test_identical_runs_score_one(marks):
    """P6: also a one-piece run at the end, which the released script scores 0."""
    assert rationale("iou_f1", [marks], [marks]) == 100
    assert rationale("f1", [marks], [marks]) == 100


def test_overlap_threshold():
    """P6: IoU 1/3 is no hit at .5, IoU 2/3 is one."""
    assert rationale("iou_f1", [[0, 1, 1, 0]], [[0, 0, 1, 1]]) == 0
    assert rationale("iou_f1", [[0, 1, 1, 1]], [[0, 0, 1, 1]]) == 100


def test_precision_and_recall_over_runs():
    # one of two predicted runs hits the only gold run: P 1/2, R 1
    assert rationale("iou_f1", [[1, 1, 0, 0, 1]], [[1, 1, 0, 0, 0]]) == pytest.approx(100 * 2 / 3)


def test_pieces_and_mean_over_responses():
    predicted, gold = [[1, 1, 0, 0], [0, 0]], [[0, 1, 1, 0], [0, 0]]
    assert rationale("f1", predicted, gold) == pytest.approx((50 + 100) / 2)
    assert rationale("accuracy", predicted, gold) == pytest.approx((50 + 100) / 2)
    assert rationale("f1", [[1, 0]], [[0, 0]]) == 0
    both = RationaleF1("f1")
    both.update(predicted[:1], gold[:1])
    other = RationaleF1("f1")
    other.update(predicted[1:], gold[1:])
    assert (both + other).compute().value == 75


def test_f1_from_sets():
    rng = np.random.default_rng(0)
    gold = [[1, *rng.integers(0, 2, 9).tolist()] for _ in range(20)]
    predicted = [rng.integers(0, 2, 10).tolist() for _ in range(20)]
    expected = []
    for true, said in zip(gold, predicted, strict=True):
        a, b = ({i for i, mark in enumerate(marks) if mark} for marks in (true, said))
        precision, recall = len(a & b) / max(1, len(b)), len(a & b) / len(a)
        expected.append(2 * precision * recall / (precision + recall) if precision else 0.0)
    assert rationale("f1", predicted, gold) == pytest.approx(100 * np.mean(expected))


def test_runs():
    assert runs([]) == []
    assert runs([1, 1, 0, 1]) == [(0, 2), (3, 4)]


def test_faults():
    with pytest.raises(ConfigError, match="unknown rationale score 'iou'"):
        RationaleF1("iou")  # pyright: ignore[reportArgumentType]
    with pytest.raises(DataError, match="item 0 has 2 predicted and 3 gold pieces"):
        RationaleF1().update([[1, 0]], [[1, 0, 0]])
    with pytest.raises(DataError, match="item 0 has 0 predicted and 0 gold pieces"):
        RationaleF1().update([[]], [[]])
