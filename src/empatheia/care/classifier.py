"""A small linear classifier on hashed features: numpy alone, about one megabyte, well under a millisecond a text.

One row of weights for each head: ``risk`` and ``crisis`` read all features, the others (whose danger it is, and the
kinds) only words, letters and lexicon hits, in half as many buckets. Written by
:mod:`empatheia_research.care.training`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np

from empatheia.care.features import BUCKETS, FEATURES
from empatheia.errors import CheckpointError
from empatheia.reading import parse_json
from empatheia.records.danger import KINDS
from empatheia.resources.arrays import load_described

WEIGHTS = Path(__file__).parent / "data" / "classifier.safetensors"
HEADS = ("risk", "crisis", "self", "other", "past", "fiction", *KINDS)
RISK, CRISIS = "risk", "crisis"
N_WIDE = 2
"""Of the heads, those that read all features: the first ones."""
NARROW = BUCKETS // 2


class LinearClassifier:
    """Weights, and probabilities by them.

    Args:
        wide: Of the first heads. Shape: ``(N_WIDE, FEATURES)``.
        narrow: Of the others. Shape: ``(len(HEADS) - N_WIDE, NARROW)``.
        bias: Shape: ``(len(HEADS),)``.
        thresholds: From which probability ``risk`` and ``crisis`` count.
        notes: How it was trained and what it reached on the validation part.
    """

    def __init__(
        self,
        wide: np.ndarray,
        narrow: np.ndarray,
        bias: np.ndarray,
        thresholds: Mapping[str, float],
        notes: Mapping[str, object] | None = None,
    ) -> None:
        self.wide = np.ascontiguousarray(wide.astype(np.float16).T)  # features first: a text reads few of them
        self.narrow = np.ascontiguousarray(narrow.astype(np.float16).T)
        self.bias = bias.astype(np.float32)
        self.thresholds = dict(thresholds)
        self.notes = dict(notes or {})

    def probabilities(self, numbers: np.ndarray, values: np.ndarray) -> dict[str, float]:
        """Probability of every head; see :func:`~empatheia.care.features.feature_row`.

        Args:
            numbers: Of the features. Shape: ``(n,)``.
            values: Shape: ``(n,)``.
        """
        is_narrow = numbers < BUCKETS
        narrow = values[is_narrow] @ self.narrow[numbers[is_narrow] % NARROW].astype(np.float32)
        wide = values @ self.wide[numbers].astype(np.float32)
        scores = np.concatenate([wide, narrow]) + self.bias
        chances = 1.0 / (1.0 + np.exp(-np.clip(scores, -30, 30)))
        return dict(zip(HEADS, chances.tolist(), strict=True))

    def save(self, path: str | Path = WEIGHTS) -> None:
        """Into one file; the same weights give the same bytes."""
        from safetensors.numpy import save_file

        told = {"heads": ",".join(HEADS), "thresholds": json.dumps(self.thresholds), "notes": json.dumps(self.notes)}
        arrays = {
            "wide": np.ascontiguousarray(self.wide.T),
            "narrow": np.ascontiguousarray(self.narrow.T),
            "bias": self.bias,
        }
        save_file(arrays, str(path), metadata={"about": json.dumps(told, sort_keys=True)})  # one key: a stable order

    @classmethod
    def load(cls, path: str | Path = WEIGHTS) -> LinearClassifier:
        """From a file.

        Raises:
            CheckpointError: It is missing, truncated or of another form, or holds NaN.
        """
        try:
            arrays, described = load_described(Path(path))
            told = parse_json(described["about"])
            wide, narrow, bias = (arrays[name] for name in ("wide", "narrow", "bias"))
            thresholds, notes = parse_json(told["thresholds"]), parse_json(told["notes"])
        except (CheckpointError, KeyError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"the classifier {path} cannot be read: {error}. Reinstall the package, or train it again:"
                " python -m empatheia_research.care.training"
            ) from error
        shapes, wanted = (wide.shape, narrow.shape), ((N_WIDE, FEATURES), (len(HEADS) - N_WIDE, NARROW))
        if shapes != wanted or told["heads"] != ",".join(HEADS):
            raise CheckpointError(
                f"the classifier {path} has the shapes {shapes}; this release reads {wanted}."
                " Train it again: python -m empatheia_research.care.training"
            )
        return cls(wide, narrow, bias, thresholds, notes)

    @classmethod
    def blank(cls) -> LinearClassifier:
        """One that knows nothing: for reading texts before there is any."""
        narrow = np.zeros((len(HEADS) - N_WIDE, NARROW))
        return cls(np.zeros((N_WIDE, FEATURES)), narrow, np.zeros(len(HEADS)), {RISK: 2.0, CRISIS: 2.0})


@lru_cache(maxsize=1)
def shipped_classifier() -> LinearClassifier:
    """The file of the package, read once."""
    return LinearClassifier.load()
