"""BERTScore (Zhang et al. 2020): greedy matching of token vectors that an encoder made elsewhere.

The arithmetic is that of the ``bert-score`` package: the pieces an encoder puts around a text may be matched but do not
count, a text without pieces of its own scores 0, and rescaling comes last.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np

from empatheia.errors import ConfigError, DataError, MissingResourceError
from empatheia.metrics.base import Metric, check_same_length
from empatheia.metrics.score import references_hash
from empatheia.reading import csv_reader, read_text

# roberta-large, layer 17, English, as used by Gao et al. 2021
ROBERTA_LARGE_BASELINE = MappingProxyType({"P": 0.83150584, "R": 0.8314941, "F": 0.83122575})

_LETTER = MappingProxyType({"f": "F", "p": "P", "r": "R"})


def rescale(raw: float, baseline: float) -> float:
    """(raw - baseline) / (1 - baseline): 1 for identical texts, about 0 for unrelated ones; higher is better.

    Args:
        raw: BERTScore precision, recall or F, a cosine.
        baseline: The same statistic's mean over random pairs, below 1.

    Raises:
        DataError: The baseline is not below 1.

    Example:
        >>> round(rescale(0.854, ROBERTA_LARGE_BASELINE["F"]), 4)
        0.1349
    """
    if not baseline < 1:
        raise DataError(f"baseline is {baseline}; accepted: below 1, e.g. 0.83122575.")
    return (raw - baseline) / (1 - baseline)


def read_baseline(path: str | Path, layer: int) -> dict[str, float]:
    """One layer's line of a baseline file as the ``bert-score`` package has them (``LAYER,P,R,F``).

    Args:
        path: E.g. ``rescale_baseline/en/roberta-large.tsv`` of its source; separated by commas or tabs.
        layer: Which layer the vectors are of.

    Returns:
        Baselines by ``P``, ``R``, ``F``.

    Raises:
        MissingResourceError: There is no such file.
        DataError: A line cannot be read, or the layer is not there.
    """
    path = Path(path)
    if not path.is_file():
        raise MissingResourceError(f"no baseline at {str(path)!r}; give a file with the columns LAYER,P,R,F.")
    text = read_text(path)
    rows = list(csv_reader(text.splitlines(), delimiter="\t" if "\t" in text else ","))
    known = []
    for line, row in enumerate(rows[1:], start=2):
        try:
            number, *values = int(row[0]), *map(float, row[1:])
        except (ValueError, IndexError):
            raise DataError(f"{path}:{line}: {row} is not a layer and three numbers.") from None
        if number == layer and len(values) == 3:
            return dict(zip("PRF", values, strict=True))
        known.append(number)
    raise DataError(f"{path}: no baseline of layer {layer}; it has {', '.join(map(str, known)) or 'none'}.")


@dataclass(frozen=True, slots=True, eq=False)
class TokenVectors:
    """A text as an encoder reads it.

    Attributes:
        ids: Piece numbers. Shape: (n_pieces,).
        vectors: Shape: (n_pieces, width).
        counts: False for the pieces put around a text, such as CLS and SEP. Shape: (n_pieces,).
    """

    ids: np.ndarray
    vectors: np.ndarray
    counts: np.ndarray


def inverse_document_frequencies(references: Iterable[TokenVectors]) -> dict[int, float]:
    """log((n + 1) / (df + 1)) of each piece over the references (Zhang et al. 2020, section 3).

    Pieces that no reference has weigh log(n + 1); :class:`BERTScore` finds that under the key -1.

    Example:
        >>> import numpy as np
        >>> text = TokenVectors(np.array([5, 6, 6]), np.ones((3, 2)), np.ones(3, dtype=bool))
        >>> idf = inverse_document_frequencies([text])
        >>> idf[5], round(idf[-1], 4)
        (0.0, 0.6931)
    """
    frequencies: Counter[int] = Counter()
    n = 0
    for text in references:
        frequencies.update(set(map(int, text.ids)))
        n += 1
    return {-1: math.log(n + 1), **{piece: math.log((n + 1) / (df + 1)) for piece, df in frequencies.items()}}


def greedy_match(
    hypothesis: TokenVectors, reference: TokenVectors, idf: Mapping[int, float] | None = None
) -> tuple[float, float, float]:
    """Precision, recall and F of one pair: cosines, at most 1; not rescaled.

    P = sum_i w_i max_j cos(h_i, r_j) / sum_i w_i over the pieces of the hypothesis, R the same from the reference's
    side, F = 2 P R / (P + R). All three are 0 for a text without counted pieces.

    Args:
        hypothesis: The reply.
        reference: The gold reply.
        idf: Weights of pieces, see :func:`inverse_document_frequencies`; None = all 1.

    Raises:
        DataError: The vectors differ in width.
    """
    if hypothesis.vectors.shape[1:] != reference.vectors.shape[1:]:
        raise DataError(
            f"bertscore: vectors of width {hypothesis.vectors.shape[-1]} against {reference.vectors.shape[-1]}; use one"
            " encoder for both."
        )
    weights = [_weights(text, idf) for text in (hypothesis, reference)]
    if min(weight.sum() for weight in weights) <= 0:
        return 0.0, 0.0, 0.0
    units = [text.vectors / np.linalg.norm(text.vectors, axis=1, keepdims=True) for text in (hypothesis, reference)]
    cosines = units[0] @ units[1].T  # (n_hypothesis, n_reference)
    precision = float(cosines.max(axis=1) @ weights[0] / weights[0].sum())
    recall = float(cosines.max(axis=0) @ weights[1] / weights[1].sum())
    return precision, recall, 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _weights(text: TokenVectors, idf: Mapping[int, float] | None) -> np.ndarray:
    if idf is None:
        return text.counts.astype(np.float64)
    unseen = idf.get(-1, 0.0)
    return np.array([idf.get(int(piece), unseen) for piece in text.ids]) * text.counts


class BERTScore(Metric):
    """Mean BERTScore over pairs: raw a cosine up to 1, rescaled 1 for equal texts and about 0 for unrelated ones.

    Higher is better. Numbers of different encoders or layers cannot be compared; both are in the signature.

    Args:
        report: ``f``, ``p`` or ``r``: which is the value; all three are parts.
        encoder: Name of what made the vectors.
        layer: Of the encoder, for the signature; None = the last.
        idf: Weights of pieces from the whole set of references; None = all 1.
        baseline: ``P``, ``R``, ``F`` to rescale with, see :func:`read_baseline`; None = raw.

    Raises:
        ConfigError: Unknown report.
        DataError: A baseline is missing or not below 1.

    Example:
        >>> import numpy as np
        >>> reply = TokenVectors(np.array([7, 8]), np.eye(2), np.ones(2, dtype=bool))
        >>> gold = TokenVectors(np.array([7]), np.eye(2)[:1], np.ones(1, dtype=bool))
        >>> metric = BERTScore("p")
        >>> metric.update([reply], [gold])
        >>> metric.compute().value
        0.5
    """

    unit = "fraction"
    columns = ("p", "r", "f", "n_items", "n_empty")

    def __init__(
        self,
        report: Literal["f", "p", "r"] = "f",
        encoder: str = "given",
        layer: int | None = None,
        idf: Mapping[int, float] | None = None,
        baseline: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__()
        if report not in _LETTER:
            raise ConfigError(f"unknown report {report!r}; accepted: f, p, r.")
        if baseline is not None and set(baseline) != set("PRF"):
            raise DataError(f"baseline has {', '.join(baseline) or 'nothing'}; accepted: one value for P, R and F.")
        self.report, self.encoder, self.layer = report, encoder, layer
        self.idf = None if idf is None else dict(idf)
        self.baseline = None if baseline is None else dict(baseline)
        for value in (self.baseline or {}).values():
            rescale(0.0, value)  # raises for what cannot be one
        self.name = f"bertscore_{report}" + ("" if baseline is None else "_rescaled")

    def update(
        self,
        hypotheses: Sequence[TokenVectors],
        references: Sequence[TokenVectors],
        texts: Sequence[str] | None = None,
    ) -> None:
        """Adds pairs.

        Args:
            hypotheses: One reply of the system for each item, encoded.
            references: One gold reply for each item, encoded by the same encoder.
            texts: The gold replies as text, for the fingerprint in the signature.

        Raises:
            DataError: The numbers or the widths differ.
        """
        check_same_length(self.name, hypotheses=hypotheses, references=references)
        if texts is not None:
            check_same_length(self.name, references=references, texts=texts)
        rows = []
        for hypothesis, reference in zip(hypotheses, references, strict=True):
            is_empty = not (hypothesis.counts.any() and reference.counts.any())
            rows.append([*greedy_match(hypothesis, reference, self.idf), 1, is_empty])
        self._append(rows, references=texts)

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """The mean."""
        return self._mean(self.report, sums)

    def settings(self) -> Mapping[str, object]:
        """Encoder, layer, report, fingerprints of weights and baselines."""
        layer = "last" if self.layer is None else self.layer
        marks = {"idf": self.idf, "rescaled": self.baseline}
        hashes = {key: "no" if x is None else references_hash(sorted(x.items())) for key, x in marks.items()}
        return {"encoder": self.encoder, "layer": layer, "report": self.report, **hashes}

    def parts_of(self, sums: np.ndarray) -> dict[str, float]:
        """The three means, pairs with an empty text."""
        means = {letter: float(self._mean(name, sums)) for name, letter in _LETTER.items()}
        return {**means, "n_empty": int(sums[4])}

    def _mean(self, report: str, sums: np.ndarray) -> np.ndarray:
        mean = sums[..., self.columns.index(report)] / sums[..., 3]
        if self.baseline is None:
            return mean
        base = self.baseline[_LETTER[report]]
        return (mean - base) / (1 - base)


bertscore_f, bertscore_p, bertscore_r = (partial(BERTScore, report) for report in ("f", "p", "r"))
bertscore_f_rescaled, bertscore_p_rescaled, bertscore_r_rescaled = (
    partial(BERTScore, report, baseline=ROBERTA_LARGE_BASELINE) for report in ("f", "p", "r")
)
