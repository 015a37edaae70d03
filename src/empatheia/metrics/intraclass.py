"""Intraclass correlations: how much of the spread of ratings on a scale lies between the things that were rated.

Source: McGraw and Wong (1996), Forming inferences about some intraclass correlation coefficients, tables 4 and 7, whose
names of the forms are used; Shrout and Fleiss (1979) call them ICC(1,1), ICC(2,1), ICC(3,1), and with k for 1 the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.base import Metric

Form = Literal["1", "k", "A,1", "A,k", "C,1", "C,k"]
FORMS: tuple[Form, ...] = ("1", "k", "A,1", "A,k", "C,1", "C,k")


class IntraclassCorrelation(Metric):
    """An intraclass correlation of ratings: at most 1, about 0 as by chance; NaN where nothing varies.

    Args:
        form: ``1`` and ``k``: each item has raters of its own, in any number (one-way random). ``A,1`` and ``A,k``: all
            items have the same raters, who shall agree in the number (two-way, absolute agreement). ``C,1`` and
            ``C,k``: likewise, but a rater who is always stricter counts as agreeing (consistency). With ``1`` of one
            rating, with ``k`` of the mean of all ratings of an item.
        n_raters: Of the two-way forms.

    Raises:
        ConfigError: Unknown form, or a two-way form without two raters.

    Example:
        >>> metric = IntraclassCorrelation("C,1", n_raters=2)
        >>> metric.update([[1, 2], [2, 3], [4, 5]])
        >>> metric.compute().value
        1.0
    """

    unit = "icc"

    def __init__(self, form: Form = "1", n_raters: int = 0) -> None:
        super().__init__()
        if form not in FORMS:
            raise ConfigError(f"unknown form {form!r}; accepted: {', '.join(FORMS)}.")
        self.form, self.is_two_way = form, "," in form
        if self.is_two_way and n_raters < 2:
            raise ConfigError(f"ICC({form}) of {n_raters} raters; accepted: 2 or more, the same for every item.")
        self.n_raters = n_raters if self.is_two_way else 0
        self.name = f"icc({form})"
        own = tuple(f"rater_{j}" for j in range(self.n_raters))
        self.columns = (*own, "n_ratings", "n_ratings_squared", "sum", "squares", "within", "n_items")

    def update(self, ratings: Sequence[Sequence[float | None]]) -> None:
        """Adds items, each with its ratings; of the two-way forms in the order of the raters.

        Args:
            ratings: Missing ones (None, NaN) are left out, and with them, of the one-way forms, items with fewer than
                two.

        Raises:
            DataError: An item of a two-way form lacks a rating, or has more.
        """
        rows = []
        for i, given in enumerate(ratings):
            values = np.asarray(given, dtype=np.float64)
            values = values[~np.isnan(values)]
            n = len(values)
            if self.is_two_way and n != self.n_raters:
                raise DataError(
                    f"{self.name}: item {i} has {n} rating(s); accepted: one of each of {self.n_raters} raters. Form 1"
                    " and form k take items with any number."
                )
            if n < 2:
                continue
            total = values.sum()
            own = values if self.is_two_way else ()
            rows.append([*own, n, n * n, total, (values**2).sum(), total**2 / n, 1])
        self._append(rows)

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """The correlation, from the mean squares of the analysis of variance."""
        n_ratings, squared, total, squares, within, n = (sums[..., i - 6] for i in range(6))
        centre = total**2 / n_ratings
        with np.errstate(divide="ignore", invalid="ignore"):
            between = (within - centre) / (n - 1)
            if not self.is_two_way:
                error = (squares - within) / (n_ratings - n)
                k = (n_ratings - squared / n_ratings) / (n - 1)
                extra = np.zeros_like(n)
            else:
                k = self.n_raters
                of_raters = (sums[..., : self.n_raters] ** 2).sum(axis=-1) / n - centre
                error = (squares - within - of_raters) / ((n - 1) * (k - 1))
                extra = (of_raters / (k - 1) - error) / n if self.form.startswith("A") else np.zeros_like(n)
            spread = between + extra if self.form.endswith("k") else between + (k - 1) * error + k * extra
            return np.where(np.isclose(spread, 0, atol=1e-12), np.nan, (between - error) / spread)

    def settings(self) -> Mapping[str, object]:
        """Form and number of raters."""
        return {"form": self.form.replace(",", ""), "raters": self.n_raters or "any"}

    def note_of(self, sums: np.ndarray) -> str:
        """No variation."""
        return "the ratings do not vary, or there are fewer than two items"
