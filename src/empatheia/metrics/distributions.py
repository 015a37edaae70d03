"""Which emotions and intents replies show, as shares, and how far two such distributions are apart.

Xie & Pu 2021 (figures 2 and 5) draw shares of 41 labels; figure 5 counts a reply once for each rater who called it
good, hence the weights. Distances: Kullback & Leibler 1951, Lin 1991 (Jensen-Shannon), total variation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal, get_args

import numpy as np

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.base import Metric, check_same_length
from empatheia.metrics.classification import Label, label_indices
from empatheia.metrics.score import references_hash

Measure = Literal["kl", "js", "tv"]
MEASURES: tuple[Measure, ...] = get_args(Measure)
N_LABELS = 41  # 32 emotions, 8 intents, neutral


def distance(p: np.ndarray, q: np.ndarray, measure: Measure = "js") -> np.ndarray:
    """Distance of two distributions over the same labels, given as counts or shares.

    - ``kl``: sum p log2(p / q), 0 to infinity bits; infinite where p has a label that q lacks; not symmetric.
    - ``js``: mean KL of both to their average, 0 to 1 bit (its root is a metric).
    - ``tv``: half the sum of |p - q|, 0 to 1: the largest difference in the probability of any set of labels.

    Args:
        p: Non-negative. Shape: (..., n_labels).
        q: Shape: (..., n_labels).
        measure: Which one.

    Returns:
        Shape: (...); NaN where a side has no items.

    Raises:
        ConfigError: Unknown measure.

    Example:
        >>> float(distance([1, 1], [2, 0], "tv"))
        0.5
    """
    if measure not in MEASURES:
        raise ConfigError(f"unknown measure {measure!r}; accepted: {', '.join(MEASURES)}.")
    with np.errstate(divide="ignore", invalid="ignore"):
        first, second = (np.asarray(x, dtype=float) / np.sum(x, axis=-1, keepdims=True) for x in (p, q))
        if measure == "tv":
            return np.abs(first - second).sum(axis=-1) / 2
        if measure == "kl":
            return _kl(first, second)
        middle = (first + second) / 2
        return (_kl(first, middle) + _kl(second, middle)) / 2


def _kl(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    terms = np.where(p == 0, 0.0, p * np.log2(np.where(p == 0, 1.0, p) / q))
    undefined = np.isnan(p).any(axis=-1) | np.isnan(q).any(axis=-1)
    return np.where(undefined, np.nan, np.maximum(terms.sum(axis=-1), 0.0))


class LabelShares(Metric):
    """How many labels the replies spread over: 1 to n labels; no direction.

    The value is the effective number 1 / sum of squared shares (Simpson 1949): n labels in equal parts give n, one
    label alone gives 1. Parts: the share of each label, entropy in bits, number of labels that occur.

    Args:
        labels: All labels, in order; a number n stands for 0..n-1 (by default 32 emotions, 8 intents, neutral).

    Raises:
        ConfigError: Fewer than two different labels.

    Example:
        >>> metric = LabelShares(["questioning", "agreeing", "sad"])
        >>> metric.update(["questioning", "questioning", "agreeing", "agreeing"])
        >>> metric.compute().value
        2.0
    """

    name = "label_shares"
    unit = "labels"
    higher_is_better = None

    def __init__(self, labels: Sequence[Label] | int = N_LABELS) -> None:
        super().__init__()
        self.labels = _checked(labels)
        self.columns = tuple(f"n:{label}" for label in self.labels)

    def update(self, labels: Sequence[Label] | np.ndarray, weights: Sequence[float] | np.ndarray | None = None) -> None:
        """Adds replies.

        Args:
            labels: One label for each reply.
            weights: How often each counts; None = once. Shape: (n_items,).

        Raises:
            DataError: A label is unknown, or a weight is negative.
        """
        rows = np.eye(len(self.labels))[label_indices(self.name, labels, self.labels)]
        if weights is not None:
            check_same_length(self.name, labels=labels, weights=weights)
            times = np.asarray(weights, dtype=np.float64)
            if not (times >= 0).all():
                raise DataError(f"{self.name}: smallest weight is {times.min():g}; accepted: 0 or more.")
            rows = rows * times[:, None]
        self._append(rows)

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """Effective number of labels."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return sums.sum(axis=-1) ** 2 / (sums**2).sum(axis=-1)

    def settings(self) -> Mapping[str, object]:
        """A fingerprint of the label set."""
        return {"labels": references_hash(enumerate(self.labels))}

    def parts_of(self, sums: np.ndarray) -> dict[str, float]:
        """Shares as fractions (NaN when all weights are 0), entropy, labels that occur."""
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = sums / sums.sum()
            entropy = -np.where(shares > 0, shares * np.log2(np.where(shares > 0, shares, 1.0)), 0.0).sum()
        by_label = {f"share:{label}": float(share) for label, share in zip(self.labels, shares, strict=True)}
        return {"entropy_bits": float(entropy), "n_occurring": int(np.count_nonzero(sums)), **by_label}

    def note_of(self, sums: np.ndarray) -> str:
        """Only weights of 0."""
        return "all weights are 0"


class DistributionDistance(Metric):
    """How far the labels of the replies are from those of the gold replies, as distributions; lower is better.

    It compares shares, not items: the right shares on the wrong items are at distance 0. See :func:`distance` for
    ranges; ``kl`` and ``js`` are in bits, ``tv`` is a fraction. Small samples make every distance larger, and the
    bootstrap interval inherits that.

    Args:
        labels: All labels, in order; a number n stands for 0..n-1.
        measure: ``kl`` (of the replies to the gold replies), ``js`` or ``tv``.
        add: Added to every count before the shares are taken; ``kl`` is infinite with 0 where the gold replies lack a
            label that replies have.

    Raises:
        ConfigError: Unknown measure, fewer than two labels, negative ``add``.

    Example:
        >>> metric = DistributionDistance(["sad", "happy"], "tv")
        >>> metric.update(["sad", "sad"], ["sad", "happy"])
        >>> metric.compute().value
        0.5
    """

    higher_is_better = False

    reads = ("predicted", "emotion")

    def __init__(self, labels: Sequence[Label] | int = N_LABELS, measure: Measure = "js", add: float = 0.0) -> None:
        super().__init__()
        if measure not in MEASURES or not add >= 0:
            raise ConfigError(f"measure is {measure!r}, add {add}; accepted: {', '.join(MEASURES)}; 0 or more.")
        self.labels, self.add = _checked(labels), add
        self.measure: Measure = measure
        self.unit = "fraction" if measure == "tv" else "bits"
        self.name = f"distribution_{measure}"
        self.columns = tuple(f"{side}:{label}" for side in ("predicted", "gold") for label in self.labels)

    def update(self, predicted: Sequence[Label] | np.ndarray, gold: Sequence[Label] | np.ndarray) -> None:
        """Adds items.

        Args:
            predicted: Label of each reply of the system.
            gold: Label of each gold reply.

        Raises:
            DataError: The numbers differ or a label is unknown.
        """
        check_same_length(self.name, predicted=predicted, gold=gold)
        eye = np.eye(len(self.labels))
        sides = [eye[label_indices(self.name, side, self.labels)] for side in (predicted, gold)]
        self._append(np.concatenate(sides, axis=1), references=(str(label) for label in gold))

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """The distance."""
        predicted, gold = np.split(sums + self.add, 2, axis=-1)
        return distance(predicted, gold, self.measure)

    def settings(self) -> Mapping[str, object]:
        """Measure, smoothing, a fingerprint of the label set."""
        return {"measure": self.measure, "add": self.add, "labels": references_hash(enumerate(self.labels))}

    def parts_of(self, sums: np.ndarray) -> dict[str, float]:
        """The three measures; labels that only the replies, or only the gold replies, have."""
        predicted, gold = np.split(sums, 2)
        only = {"n_only_predicted": int(((predicted > 0) & (gold == 0)).sum())}
        only["n_only_gold"] = int(((predicted == 0) & (gold > 0)).sum())
        sides = predicted + self.add, gold + self.add
        return {**{m: float(distance(*sides, m)) for m in MEASURES}, **only}


def _checked(labels: Sequence[Label] | int) -> list[Label]:
    known: list[Label] = [*range(labels)] if isinstance(labels, int) else list(labels)
    if len(known) < 2 or len(set(known)) < len(known):
        raise ConfigError(f"labels are {known!r}; accepted: two or more different labels.")
    return known


distribution_kl = partial(DistributionDistance, measure="kl")
distribution_js, distribution_tv = (
    partial(DistributionDistance, measure="js"),
    partial(DistributionDistance, measure="tv"),
)
