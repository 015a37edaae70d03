"""Can a listener tell from a reply what it answers: the aim of Kim et al. (2021), measured by another model.

The paper measures coverage only; this score asks the question its listener L0 asks, of a model that did not speak.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.base import Metric


class ListenerAccuracy(Metric):
    """Replies from which a listener picks the true context out of W: 0 to 100 percent, higher is more.

    A tie tells nothing and counts as wrong. Part ``chance`` is 100 / W.

    Args:
        n_worlds: W, at least 2.
        listener: Name of the model that listened, for the signature.
        distractors: Name of what it was told from, for the signature.

    Raises:
        ConfigError: Fewer than two worlds.

    Example:
        >>> metric = ListenerAccuracy(3)
        >>> metric.update([True, False, True, True])
        >>> metric.compute().value
        75.0
    """

    name = "listener_accuracy"
    unit = "percent"
    columns = ("told", "n_replies")

    def __init__(self, n_worlds: int = 3, listener: str = "unnamed", distractors: str = "unnamed") -> None:
        super().__init__()
        if n_worlds < 2:
            raise ConfigError(f"n_worlds is {n_worlds}; accepted: 2 or more.")
        self.n_worlds, self.listener, self.distractors = n_worlds, listener, distractors

    def update(self, told: Sequence[bool | int] | np.ndarray) -> None:
        """Adds replies.

        Args:
            told: For each reply whether the listener found the true context the likeliest.

        Raises:
            DataError: A value is neither true nor false.
        """
        given = np.asarray(told)
        wrong = np.flatnonzero(~np.isin(given, (0, 1)))
        if len(wrong):
            raise DataError(f"{self.name}: item {wrong[0]} is {given[wrong[0]]}; accepted: True, False.")
        self._append(np.column_stack([given.astype(float), np.ones(len(given))]))

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """The share in percent."""
        return 100 * sums[..., 0] / sums[..., 1]

    def settings(self) -> Mapping[str, object]:
        """Who listened, and to what it was told from."""
        return {"worlds": self.n_worlds, "listener": self.listener, "distractors": self.distractors}

    def parts_of(self, sums: np.ndarray) -> dict[str, float]:
        """Chance level."""
        return {"chance": 100 / self.n_worlds}
