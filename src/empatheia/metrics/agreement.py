"""Do raters agree, and do printed tables add up: kappas, checks of A/B tables, mean and deviation over seeds.

Sources: Fleiss 1971; Cohen 1960; Gao et al. 2021 (tables 3, 5 and 7, whose deviations are those of a sample).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.base import Metric, check_same_length
from empatheia.metrics.classification import label_indices
from empatheia.metrics.score import references_hash


class FleissKappa(Metric):
    """Agreement of a fixed number of raters beyond chance: -1 to 1, higher is better.

    kappa = (mean P_i - sum p_j**2) / (1 - sum p_j**2), P_i = (sum_j n_ij**2 - n) / (n (n - 1)) of item i with
    n raters, p_j the share of category j. NaN when all ratings fall into one category.

    Args:
        n_categories: Columns of the counts.

    Example:
        >>> metric = FleissKappa(n_categories=2)
        >>> metric.update([[2, 1], [1, 2]])
        >>> round(metric.compute().value, 4)
        -0.3333
    """

    name = "fleiss_kappa"
    unit = "kappa"

    def __init__(self, n_categories: int) -> None:
        super().__init__()
        if n_categories < 2:
            raise ConfigError(f"n_categories is {n_categories}; accepted: 2 or more.")
        self.n_categories = n_categories
        self.columns = ("agreement", *(f"share_{j}" for j in range(n_categories)), "n_items")
        self.n_raters: int | None = None

    def update(self, counts: Sequence[Sequence[int]] | np.ndarray) -> None:
        """Adds items.

        Args:
            counts: How many raters put each item into each category. Shape: (n_items, n_categories).

        Raises:
            DataError: The shape is wrong, or the items have different or fewer than two raters.
        """
        table = np.asarray(counts, dtype=np.float64)
        if table.size == 0:
            return
        if table.ndim != 2 or table.shape[1] != self.n_categories or not (table >= 0).all():
            raise DataError(
                f"{self.name}: counts have shape {table.shape} and minimum {table.min():g};"
                f" accepted: (n_items, {self.n_categories}), none negative."
            )
        raters = np.unique(table.sum(axis=1))
        n = raters[0] if self.n_raters is None else self.n_raters
        if len(raters) > 1 or n != raters[0] or n < 2:
            found = ", ".join(f"{r:g}" for r in {*raters.tolist(), n})
            raise DataError(f"{self.name}: items have {found} raters; accepted: one same number, at least 2.")
        self.n_raters = int(n)
        agreement = ((table**2).sum(axis=1) - n) / (n * (n - 1))
        self._append(np.column_stack([agreement, table / n, np.ones(len(table))]))

    def __add__(self, other: Self) -> Self:
        """The accumulator of both sets of items; they must have the same number of raters."""
        merged = super().__add__(other)
        raters = {n for n in (self.n_raters, other.n_raters) if n is not None}
        if len(raters) > 1:
            raise DataError(f"{self.name}: cannot merge items with {self.n_raters} and {other.n_raters} raters.")
        merged.n_raters = raters.pop() if raters else None
        return merged

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """Kappa."""
        observed = sums[..., 0] / sums[..., -1]
        chance = ((sums[..., 1:-1] / sums[..., -1:]) ** 2).sum(axis=-1)
        return _beyond_chance(observed, chance)

    def settings(self) -> Mapping[str, object]:
        """Number of categories."""
        return {"categories": self.n_categories}

    def parts_of(self, sums: np.ndarray) -> dict[str, float]:
        """Observed agreement, number of raters."""
        return {"observed": float(sums[0] / sums[-1]), "n_raters": self.n_raters or 0}

    def note_of(self, sums: np.ndarray) -> str:
        """No variation."""
        return "all ratings fall into one category, so chance agreement is 1"


class CohenKappa(Metric):
    """Agreement of two raters beyond chance: -1 to 1, higher is better.

    kappa = (observed - chance) / (1 - chance), chance = sum over labels of the product of both raters'
    shares.

    Args:
        labels: All labels a rater can give.

    Example:
        >>> metric = CohenKappa(labels=["yes", "no"])
        >>> metric.update(["yes", "no", "yes", "no"], ["yes", "no", "no", "yes"])
        >>> metric.compute().value
        0.0
    """

    name = "cohen_kappa"
    unit = "kappa"

    def __init__(self, labels: Sequence[Hashable]) -> None:
        super().__init__()
        if len(set(labels)) < 2:
            raise ConfigError(f"labels are {list(labels)!r}; accepted: two or more different labels.")
        self.labels = list(labels)
        shares = (f"{rater}_{label}" for rater in ("first", "second") for label in self.labels)
        self.columns = ("agreement", *shares, "n_items")

    def update(self, first: Sequence[Hashable], second: Sequence[Hashable]) -> None:
        """Adds items, one label of each rater.

        Raises:
            DataError: The numbers differ or a label is unknown.
        """
        n = check_same_length(self.name, first=first, second=second)
        eye = np.eye(len(self.labels))
        a = eye[label_indices(self.name, first, self.labels)]
        b = eye[label_indices(self.name, second, self.labels)]
        self._append(np.column_stack([(a * b).sum(axis=1), a, b, np.ones(n)]))

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """Kappa."""
        n_labels, n = len(self.labels), sums[..., -1:]
        a, b = sums[..., 1 : 1 + n_labels] / n, sums[..., 1 + n_labels : -1] / n
        return _beyond_chance(sums[..., 0] / sums[..., -1], (a * b).sum(axis=-1))

    def settings(self) -> Mapping[str, object]:
        """Fingerprint of the labels."""
        return {"labels": references_hash(enumerate(self.labels))}

    def parts_of(self, sums: np.ndarray) -> dict[str, float]:
        """Observed agreement."""
        return {"observed": float(sums[0] / sums[-1])}

    def note_of(self, sums: np.ndarray) -> str:
        """No variation."""
        return "both raters gave one and the same label throughout, so chance agreement is 1"


class RawAgreement(Metric):
    """Share of agreeing pairs of raters, averaged over items: 0 to 100 percent, higher is better.

    Example:
        >>> metric = RawAgreement()
        >>> metric.update([["win", "win", "tie"]])
        >>> round(metric.compute().value, 2)
        33.33
    """

    name = "raw_agreement"
    unit = "percent"
    columns = ("agreement", "n_items")

    def update(self, ratings: Sequence[Sequence[Hashable]]) -> None:
        """Adds items, each with the labels of two or more raters (the number may vary).

        None and NaN are no label; an item with fewer than two labels is left out, as Krippendorff's alpha leaves it.

        Raises:
            DataError: An item was shown to fewer than two raters.
        """
        rows = []
        for i, given in enumerate(ratings):
            labels = [label for label in given if label is not None and label == label]  # NaN differs from itself
            if len(given) < 2:
                raise DataError(f"{self.name}: item {i} has {len(given)} rating(s); accepted: two or more.")
            if (n := len(labels)) < 2:
                continue
            agreeing = sum(a == b for j, a in enumerate(labels) for b in labels[j + 1 :])
            rows.append([agreeing / (n * (n - 1) / 2), 1])
        self._append(rows)

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """Percent of pairs."""
        return 100 * sums[..., 0] / sums[..., 1]

    def settings(self) -> Mapping[str, object]:
        """None."""
        return {}


@dataclass(frozen=True, slots=True)
class TableCheck:
    """What a printed win/loss/tie row can be.

    Attributes:
        counts: Judgements behind win, loss and tie, rounded to integers.
        integral: Every percentage is a whole number of judgements.
        complete: The three percentages add up to 100.
    """

    counts: tuple[int, int, int]
    integral: bool
    complete: bool


def check_ab_row(win: float, loss: float, tie: float, n_judgements: int = 300, tolerance: float = 0.05) -> TableCheck:
    """Checks a row of an A/B table in percent, printed with two decimals.

    Args:
        win: Percent of judgements won.
        loss: Percent lost.
        tie: Percent tied.
        n_judgements: Items times raters (Gao et al. 2021: 100 * 3).
        tolerance: Allowed distance of the sum from 100.

    Example:
        >>> check_ab_row(38.00, 20.33, 41.67)
        TableCheck(counts=(114, 61, 125), integral=True, complete=True)
        >>> check_ab_row(41.00, 23.67, 31.67).complete
        False
    """
    exact = [p * n_judgements / 100 for p in (win, loss, tie)]
    counts = (round(exact[0]), round(exact[1]), round(exact[2]))
    slack = 0.005 * n_judgements / 100 + 0.005  # half a unit of the second printed decimal, and a little
    integral = all(abs(x - count) <= slack for x, count in zip(exact, counts, strict=True))
    return TableCheck(counts, integral, abs(win + loss + tie - 100) <= tolerance)


def _beyond_chance(observed: np.ndarray, chance: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.isclose(chance, 1.0, atol=1e-12), math.nan, (observed - chance) / (1 - chance))
