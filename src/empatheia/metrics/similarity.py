"""Similarity of whole replies: cosine of sentence vectors (SES of Xie & Pu 2021, table 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from empatheia.errors import DataError
from empatheia.metrics.base import Metric, check_same_length


class SentenceSimilarity(Metric):
    """Mean cosine of the vectors of reply and gold reply: -1 to 1, higher is better.

    1 for equal texts; 0 where one of the two has no content (its vector is all zeros; part ``n_empty``). The number
    depends on the encoder, which is in the signature.

    Args:
        encoder: Name of what made the vectors.

    Example:
        >>> metric = SentenceSimilarity(encoder="mine")
        >>> metric.update([[1.0, 0.0], [0.0, 0.0]], [[1.0, 1.0], [1.0, 0.0]])
        >>> round(metric.compute().value, 4)
        0.3536
    """

    name = "sentence_similarity"
    unit = "fraction"
    columns = ("cosine", "n_items", "n_empty")

    def __init__(self, encoder: str = "given") -> None:
        super().__init__()
        self.encoder = encoder

    def update(
        self,
        hypotheses: Sequence[Sequence[float]] | np.ndarray,
        references: Sequence[Sequence[float]] | np.ndarray,
        texts: Sequence[str] | None = None,
    ) -> None:
        """Adds pairs.

        Args:
            hypotheses: Vectors of the replies, of any length. Shape: (n_items, width).
            references: Vectors of the gold replies. Shape: (n_items, width).
            texts: The gold replies as text, for the fingerprint in the signature.

        Raises:
            DataError: The shapes differ, or a value is not finite.
        """
        check_same_length(self.name, hypotheses=hypotheses, references=references)
        if texts is not None:
            check_same_length(self.name, references=references, texts=texts)
        first, second = np.asarray(hypotheses, dtype=np.float64), np.asarray(references, dtype=np.float64)
        if not first.size and not second.size:
            return
        if first.ndim != 2 or first.shape != second.shape or not (np.isfinite(first) & np.isfinite(second)).all():
            raise DataError(
                f"{self.name}: vectors have shapes {first.shape} and {second.shape}; accepted: twice (n_items, width),"
                " all finite."
            )
        lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
        is_empty = lengths == 0
        cosines = (first * second).sum(axis=1) / np.where(is_empty, 1.0, lengths)
        self._append(np.stack([cosines, np.ones(len(first)), is_empty], axis=1), references=texts)

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """The mean."""
        return sums[..., 0] / sums[..., 1]

    def settings(self) -> Mapping[str, object]:
        """The encoder."""
        return {"encoder": self.encoder}

    def parts_of(self, sums: np.ndarray) -> dict[str, int]:
        """Pairs with an empty text."""
        return {"n_empty": int(sums[2])}
