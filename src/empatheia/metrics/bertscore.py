"""Rescaling of BERTScore (Zhang et al. 2020, section 3); the raw score needs a model and is not made here."""

from __future__ import annotations

from types import MappingProxyType

from empatheia.errors import DataError

# roberta-large, layer 17, English, as used by Gao et al. 2021
ROBERTA_LARGE_BASELINE = MappingProxyType({"P": 0.83150584, "R": 0.8314941, "F": 0.83122575})


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
