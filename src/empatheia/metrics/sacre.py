"""BLEU as sacrebleu defines it (Post 2018): on plain text, with sacrebleu's own tokeniser and signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from empatheia.errors import ConfigError, DataError, MissingDependencyError
from empatheia.metrics.base import check_same_length
from empatheia.metrics.bleu import OverlapMetric, brevity_penalty
from empatheia.metrics.ngrams import Tokens
from empatheia.metrics.score import Signature, package_version


class SacreBLEU(OverlapMetric):
    """BLEU-4 of detokenised text, exponential smoothing: 0 to 100 percent, higher is better.

    Comparable between systems with different tokenisers, since the text is tokenised here. sacrebleu cuts it;
    the counts are ours, so that the shared bootstrap applies.

    Args:
        tokenize: A tokeniser of sacrebleu that works offline: ``13a``, ``intl``, ``char``, ``none``.
        lowercase: Compare lower-cased text.

    Raises:
        MissingDependencyError: sacrebleu is not installed.
        ConfigError: Unknown tokeniser.

    Example:
        >>> metric = SacreBLEU()
        >>> metric.update(["I am sorry to hear that."], ["I am so sorry to hear that."])
        >>> round(metric.compute().value, 2)
        61.3
    """

    name = "bleu_sacre"

    def __init__(self, tokenize: str = "13a", lowercase: bool = False) -> None:
        super().__init__(4, lowercase, tokenize)
        try:
            from sacrebleu.metrics.bleu import BLEU as Reference
        except ImportError as error:
            raise MissingDependencyError("bleu_sacre needs sacrebleu; run: pip install sacrebleu") from error
        if tokenize not in Reference.TOKENIZERS:
            known = ", ".join(sorted(Reference.TOKENIZERS))
            raise ConfigError(f"unknown tokeniser {tokenize!r}; sacrebleu knows: {known}.")
        self._reference = Reference(lowercase=lowercase, tokenize=tokenize)

    def update(self, hypotheses: Sequence[str | Tokens], references: Sequence[str | Tokens]) -> None:
        """Adds pairs of plain text.

        Args:
            hypotheses: One reply of the system for each item, detokenised.
            references: One gold reply for each item, detokenised.

        Raises:
            DataError: The numbers differ or an item is not a string.
        """
        check_same_length(self.name, hypotheses=hypotheses, references=references)
        hyps, refs = self._cut(hypotheses), self._cut(references)
        self._append(self._rows(hyps, refs), references=references)

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """BLEU-4 in percent; the k-th order without a match gets precision 1 / (2**k * total)."""
        matches, totals, _, hyp_len, ref_len = self._split(sums)
        with np.errstate(divide="ignore", invalid="ignore"):
            halvings = np.cumsum(matches == 0, axis=-1)
            precisions = np.where(matches > 0, matches, 0.5**halvings) / np.where(totals == 0, np.nan, totals)
            values = 100 * brevity_penalty(hyp_len, ref_len) * np.exp(np.log(precisions).mean(axis=-1))
        values = np.where(matches.sum(axis=-1) == 0, np.where(np.isnan(values), np.nan, 0.0), values)
        values = np.where(hyp_len == 0, 0.0, values)
        return np.where(ref_len == 0, np.nan, values)

    def settings(self) -> Mapping[str, object]:
        """The library's own entries."""
        case = "lc" if self.lowercase else "mixed"
        return {"nrefs": 1, "case": case, "eff": "no", "tok": self.tokenizer, "smooth": "exp"}

    def signature(self) -> Signature:
        """The library's entries and version, then ours."""
        return super().signature().including(version=package_version("sacrebleu"))

    def sacrebleu_signature(self) -> str:
        """The line sacrebleu itself prints, in its order."""
        entries = {**self.settings(), "version": package_version("sacrebleu")}
        return "|".join(f"{key}:{value}" for key, value in entries.items())

    def _cut(self, texts: Sequence[str | Tokens]) -> list[list[str]]:
        out = []
        for i, text in enumerate(texts):
            if not isinstance(text, str):
                raise DataError(f"{self.name}: item {i} is {text!r}; accepted: a plain string, not tokens.")
            cased = text.lower() if self.lowercase else text
            out.append(self._reference.tokenizer(cased.rstrip()).split())
        return out
