"""What all metrics share: accumulation, merging, the score from sums, and one vectorised bootstrap.

A metric turns each item into a row of numbers (its sufficient statistics) and the sum of rows into the score.
So a concatenation of test sets is an addition, and a bootstrap replicate is a row of ``weights @ statistics``
(percentile bootstrap over items: Efron 1979; for BLEU: Koehn 2004).
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Self

import numpy as np

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.score import Score, Signature, hashes_of, package_version, references_hash

__all__ = [
    "Metric",
    "Score",
    "Signature",
    "bootstrap_weights",
    "check_same_length",
    "quantiles",
    "references_hash",
]

CHUNK_CELLS = 4_000_000  # cells of a weight matrix held at once: 32 MB
KEPT_CELLS = 8_000_000  # draws up to this size are kept, since a table of metrics asks for the same ones each time


class Metric(ABC):
    """An accumulator.

    A subclass names its ``columns``, appends one row for each item in ``update``, and maps summed rows to the
    value in ``value_of``. Objects are plain data and can be pickled between processes.

    Attributes:
        name: Name of the score; it follows from the settings, so it cannot lie about them.
        unit: See ``Score.unit``.
        higher_is_better: Direction; None for what has none.
        columns: Names of the sufficient statistics.
        can_bootstrap: False where drawing items with replacement would bias the value.
        reads: What ``update`` takes of a file of replies, in order, from ``reply``, ``reference``, ``context``,
            ``predicted`` and ``emotion``; () where no file holds it. None: as its arguments are named (``responses`` or
            ``hypotheses``, ``references``, ``contexts``).
    """

    name: str
    unit: str
    higher_is_better: bool | None = True
    columns: tuple[str, ...]
    can_bootstrap: bool = True
    reads: tuple[str, ...] | None = None

    def __init__(self) -> None:
        self._chunks: list[np.ndarray] = []
        self._hashes: np.ndarray | None = None  # of the references, item by item; None without references

    @abstractmethod
    def update(self, *columns: Any, **more: Any) -> None:
        """Adds items: one argument for each thing a subclass reads of them, all of one length.

        Raises:
            DataError: The lengths differ, or a value is out of range.
        """

    @abstractmethod
    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """Scores of summed statistics.

        Args:
            sums: Shape: (..., n_columns).

        Returns:
            Shape: (...); NaN where the score is undefined.
        """

    @abstractmethod
    def settings(self) -> Mapping[str, object]:
        """What defines the number; it goes into the signature, and only equal settings can be merged."""

    def parts_of(self, sums: np.ndarray) -> Mapping[str, object]:
        """Numbers behind the value, from the sums over all items. Shape of ``sums``: (n_columns,)."""
        return {name: float(total) for name, total in zip(self.columns, sums, strict=True)}

    def note_of(self, sums: np.ndarray) -> str:
        """Why the value is NaN, as a sentence."""
        return "undefined for these items"

    @property
    def n_items(self) -> int:
        """Items seen so far."""
        return sum(len(chunk) for chunk in self._chunks)

    def first_other_reference(self, other: Metric) -> int | None:
        """Index of the first item whose reference is another one there; None where all agree or none were given."""
        if self._hashes is None or other._hashes is None or len(self._hashes) != len(other._hashes):
            return None
        different = np.flatnonzero(self._hashes != other._hashes)
        return int(different[0]) if len(different) else None

    def statistics(self) -> np.ndarray:
        """Shape: (n_items, n_columns), one row for each item in the order of the updates."""
        if len(self._chunks) != 1:
            self._chunks = [np.concatenate([np.empty((0, len(self.columns))), *self._chunks])]
        return self._chunks[0]

    def value_at(self, weights: np.ndarray) -> np.ndarray:
        """Scores of reweighted samples: item i counts ``weights[r, i]`` times in sample r.

        Args:
            weights: Shape: (n_samples, n_items).

        Returns:
            Shape: (n_samples,).
        """
        return self.value_of(weights @ self.statistics())

    def compute(self, n_resamples: int = 0, seed: int = 0, confidence: float = 0.95) -> Score:
        """The score of everything seen so far.

        Args:
            n_resamples: Bootstrap replicates for the interval; 0 for none.
            seed: Of the bootstrap.
            confidence: Coverage of the interval, e.g. 0.95.

        Raises:
            DataError: Nothing was seen.
        """
        if self.n_items == 0:
            raise DataError(f"{self.name}: no items to score; call update() with at least one item first.")
        sums = self.statistics().sum(axis=0)
        value = float(self.value_at(np.ones((1, self.n_items)))[0])
        parts = dict(self.parts_of(sums))
        if math.isnan(value):
            parts["note"] = self.note_of(sums)
        interval = self.interval(n_resamples, seed, confidence) if n_resamples else None
        signature = self.signature().including(
            ci=None if interval is None else self._interval_label(n_resamples, confidence)
        )
        return Score(self.name, value, self.unit, self.n_items, self.higher_is_better, interval, str(signature), parts)

    def interval(self, n_resamples: int = 1000, seed: int = 0, confidence: float = 0.95) -> tuple[float, float] | None:
        """Percentile bootstrap interval over items.

        Replicates in which the score is undefined are left out.

        Args:
            n_resamples: Replicates, at least 2.
            seed: Of the draws; equal seeds and items give equal intervals.
            confidence: Coverage between 0 and 1.

        Returns:
            (low, high) in the metric's unit; None for fewer than two items or when no replicate is defined.

        Raises:
            ConfigError: ``n_resamples`` or ``confidence`` is out of range.
        """
        if n_resamples < 2:
            raise ConfigError(f"n_resamples is {n_resamples}; a bootstrap needs at least 2, 1000 is usual.")
        if self.n_items < 2:
            return None
        chunks = bootstrap_weights(self.n_items, n_resamples, seed)
        return quantiles(np.concatenate([self.value_at(weights) for weights in chunks]), confidence)

    def signature(self) -> Signature:
        """Settings, fingerprint of the references and version of this package."""
        refs = None if self._hashes is None else f"{int(self._hashes.sum()):016x}"[:12]
        return Signature({}).including(**self.settings(), refs=refs, empatheia=package_version())

    def __add__(self, other: Self) -> Self:
        """The accumulator of both sets of items."""
        if type(other) is not type(self) or dict(other.settings()) != dict(self.settings()):
            raise ConfigError(
                f"cannot add {_describe(self)} and {_describe(other)}:"
                " only equal metrics with equal settings can be merged."
            )
        merged = copy.copy(self)
        merged._chunks = [*self._chunks, *other._chunks]
        hashes = [h for h in (self._hashes, other._hashes) if h is not None]
        merged._hashes = np.concatenate(hashes) if hashes else None
        return merged

    def together(self, *others: Self) -> Self:
        """The accumulator of the same items, each with what all of these saw of it: several runs as one system.

        Raises:
            ConfigError: They are other metrics, have other settings, or their score is no function of summed rows alone
                (Distinct over a corpus).
            DataError: They did not see the same items.
        """
        if not self.can_bootstrap:
            raise ConfigError(f"{self.name} cannot be summed over several runs; compute it run by run.")
        for other in others:
            _ = self + other  # raises for what cannot be merged
            check_same_length(self.name, items=range(self.n_items), items_there=range(other.n_items))
            if (i := self.first_other_reference(other)) is not None:
                raise DataError(f"{self.name}: item {i} has another reference there; give runs over the same items.")
        summed = copy.copy(self)
        summed._chunks = [sum((other.statistics() for other in others), self.statistics())]
        return summed

    def __radd__(self, other: object) -> Self:
        """Lets ``sum(metrics)`` start from 0."""
        if other == 0:
            return self
        return NotImplemented

    def _append(self, rows: np.ndarray | Sequence[Sequence[float]], references: Iterable[object] | None = None) -> None:
        """Adds one row for each item and, if given, the items' references to the fingerprint."""
        self._chunks = [*self._chunks, np.asarray(rows, dtype=np.float64).reshape(-1, len(self.columns))]
        if references is not None:
            hashes = hashes_of(references)
            self._hashes = hashes if self._hashes is None else np.concatenate([self._hashes, hashes])

    def _interval_label(self, n_resamples: int, confidence: float) -> str:
        return f"bootstrap-{n_resamples}-{confidence:g}"


def bootstrap_weights(n_items: int, n_resamples: int, seed: int) -> Iterator[np.ndarray]:
    """How often each item was drawn, in read-only chunks of shape (n_rows, n_items); every row sums to n_items."""
    if n_items * n_resamples <= KEPT_CELLS:
        yield from _kept_weights(n_items, n_resamples, seed)
    else:
        yield from _draw_weights(n_items, n_resamples, seed)


@lru_cache(maxsize=1)
def _kept_weights(n_items: int, n_resamples: int, seed: int) -> tuple[np.ndarray, ...]:
    return tuple(_draw_weights(n_items, n_resamples, seed))


def _draw_weights(n_items: int, n_resamples: int, seed: int) -> Iterator[np.ndarray]:
    rng = np.random.default_rng(seed)
    step = max(1, CHUNK_CELLS // n_items)
    for start in range(0, n_resamples, step):
        n_rows = min(step, n_resamples - start)
        drawn = rng.integers(0, n_items, size=(n_rows, n_items))
        drawn += np.arange(n_rows)[:, None] * n_items  # row r counts in its own n_items cells
        counts = np.bincount(drawn.ravel(), minlength=n_rows * n_items)
        weights = counts.reshape(n_rows, n_items).astype(np.float64)
        weights.flags.writeable = False
        yield weights


def quantiles(values: np.ndarray, confidence: float) -> tuple[float, float] | None:
    """Central interval of the defined values; None when there is none.

    Raises:
        ConfigError: ``confidence`` is not between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise ConfigError(f"confidence is {confidence}; accepted: a number between 0 and 1, e.g. 0.95.")
    defined = values[~np.isnan(values)]
    if not len(defined):
        return None
    tail = (1 - confidence) / 2
    # "nearest" never interpolates, so an infinite replicate cannot turn a bound into NaN
    method = "nearest" if np.isinf(defined).any() else "linear"
    low, high = np.quantile(defined, [tail, 1 - tail], method=method)
    return float(low), float(high)


def check_same_length(metric: str, **named: Sequence[Any] | np.ndarray) -> int:
    """Number of items in all the given sequences.

    Raises:
        DataError: The numbers differ.
    """
    sizes = {name: len(values) for name, values in named.items()}
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"{size} {name}" for name, size in sizes.items())
        raise DataError(f"{metric}: got {found}; each item needs exactly one of each.")
    return next(iter(sizes.values()))


def _describe(other: object) -> str:
    if isinstance(other, Metric):
        return f"{other.name} ({Signature({}).including(**other.settings())})"
    return repr(other)
