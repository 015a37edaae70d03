"""How dangerous normalised words sound, by the perception's file: the second opinion of the check."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from threading import Lock
from typing import Any

import numpy as np

from empatheia.care.classifier import CRISIS, RISK
from empatheia.care.normalising import LAUGH
from empatheia.errors import EmpatheiaError
from empatheia.perceive.perception import bundled_perception

REMEMBERED = 8192
"""Windows whose probabilities are remembered, by a number that does not tell the text."""
_LOG = logging.getLogger(__name__)


class DangerReader:
    """Probabilities of a risk and of a crisis; windows read before are not read again.

    Args:
        read: Texts of normalised words to probabilities. Shape of its answer: (texts, 2).
        thresholds: From which probability ``risk`` and ``crisis`` count.
        notes: What it reached when it was trained.
    """

    def __init__(
        self,
        read: Callable[[Sequence[str]], np.ndarray],
        thresholds: Mapping[str, float],
        notes: Mapping[str, Any] | None = None,
    ) -> None:
        self._read = read
        self.thresholds, self.notes = dict(thresholds), dict(notes or {})
        self._remembered: dict[int, tuple[float, float]] = {}
        self._lock = Lock()

    def probabilities(self, windows: Sequence[Sequence[str]]) -> np.ndarray:
        """Probabilities of a risk and of a crisis.

        Args:
            windows: Normalised tokens of each.

        Returns:
            Shape: ``(len(windows), 2)``.
        """
        texts = {hash(text): text for text in map(joined_words, windows)}
        found = {key: one for key in texts if (one := self._remembered.get(key)) is not None}
        if new := [key for key in texts if key not in found]:
            for key, (risk, crisis) in zip(new, self._read([texts[key] for key in new]).tolist(), strict=True):
                found[key] = (risk, crisis)
        with self._lock:
            self._remembered.update(found)
            for key in list(self._remembered)[: max(0, len(self._remembered) - REMEMBERED)]:
                del self._remembered[key]
        return np.asarray([found[hash(joined_words(words))] for words in windows]).reshape(-1, 2)

    def refined(
        self, chances: Sequence[Mapping[str, float]], windows: Sequence[Sequence[str]]
    ) -> list[dict[str, float]]:
        """What the small classifier says of windows, with risk and crisis as both see them.

        Args:
            chances: By the small classifier.
            windows: Normalised tokens of each.
        """
        small = np.asarray([[one[RISK], one[CRISIS]] for one in chances])
        both = joint(small, self.probabilities(windows)).tolist()
        return [{**one, RISK: risk, CRISIS: crisis} for one, (risk, crisis) in zip(chances, both, strict=True)]


def joined_words(words: Sequence[str]) -> str:
    """A window as the encoder reads it."""
    return " ".join("lol" if word == LAUGH else word for word in words)


def joint(small: np.ndarray, better: np.ndarray) -> np.ndarray:
    """Probabilities by both classifiers: the mean of their logits. The mean errs less than either.

    Args:
        small: By the small one, in [0, 1].
        better: By the encoder. Shape of both: any, the same.

    >>> joint(np.array([0.5]), np.array([0.5])).tolist()
    [0.5]
    """
    logits = [np.log(p / (1.0 - p)) for p in (np.clip(one, 1e-6, 1.0 - 1e-6) for one in (small, better))]
    return 1.0 / (1.0 + np.exp(-0.5 * (logits[0] + logits[1])))


@lru_cache(maxsize=1)
def bundled_danger_reader() -> DangerReader | None:
    """That of the bundled perception; None, with a warning in the log, where its file cannot be read."""
    try:
        perception = bundled_perception()
    except EmpatheiaError as error:
        _LOG.warning("the small classifier judges danger alone: %s", error)
        return None
    facts = perception.file.facts
    return DangerReader(perception.danger, facts.danger_thresholds, facts.danger_notes)
