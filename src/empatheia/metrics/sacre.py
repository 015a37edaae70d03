"""BLEU and chrF as sacrebleu defines them (Post 2018; Popović 2015, 2017): on plain text, with its signatures."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from empatheia.errors import ConfigError, DataError, MissingDependencyError
from empatheia.metrics.base import Metric, check_same_length
from empatheia.metrics.bleu import OverlapMetric, brevity_penalty
from empatheia.metrics.ngrams import Tokens, clipped_matches
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
            raise MissingDependencyError("bleu_sacre needs sacrebleu: pip install 'empatheia[score]'") from error
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
        """BLEU-4 in percent; the k-th order without a match gets precision 1 / (2**k * total).

        0, as in sacrebleu, where nothing matches or no reply has four tokens.
        """
        matches, totals, _, hyp_len, ref_len = self._split(sums)
        with np.errstate(divide="ignore", invalid="ignore"):
            halvings = np.cumsum(matches == 0, axis=-1)
            precisions = np.where(matches > 0, matches, 0.5**halvings) / np.where(totals == 0, np.nan, totals)
            values = 100 * brevity_penalty(hyp_len, ref_len) * np.exp(np.log(precisions).mean(axis=-1))
        return np.where((matches.sum(axis=-1) == 0) | (totals == 0).any(axis=-1), 0.0, values)

    def settings(self) -> Mapping[str, object]:
        """The library's own entries."""
        case = "lc" if self.lowercase else "mixed"
        return {"nrefs": 1, "case": case, "eff": "no", "tok": self.tokenizer, "smooth": "exp"}

    def signature(self) -> Signature:
        """The library's entries and version, then ours."""
        return super().signature().including(version=package_version("sacrebleu"))

    def _cut(self, texts: Sequence[str | Tokens]) -> list[list[str]]:
        out = []
        for i, text in enumerate(texts):
            if not isinstance(text, str):
                raise DataError(f"{self.name}: item {i} is {text!r}; accepted: a plain string, not tokens.")
            cased = text.lower() if self.lowercase else text
            out.append(self._reference.tokenizer(cased.rstrip()).split())
        return out


class ChrF(Metric):
    """chrF of character n-grams, chrF++ with word n-grams beside them: 0 to 100 percent, higher is better.

    F_beta of the mean precision and the mean recall over the orders that occur on both sides, from counts pooled over
    the corpus (chrF: Popović 2015, equation 1; chrF++: Popović 2017). Blanks do not count.

    Args:
        char_order: Longest n-gram of characters.
        word_order: Longest n-gram of words; 0 for chrF, 2 for chrF++.
        beta: Weight of recall.
        lowercase: Compare lower-cased text.

    Raises:
        ConfigError: An order or beta is out of range.

    Example:
        >>> metric = ChrF()
        >>> metric.update(["I am sorry to hear that."], ["I am so sorry to hear that."])
        >>> round(metric.compute().value, 2)
        84.92
    """

    unit = "percent"

    def __init__(self, char_order: int = 6, word_order: int = 0, beta: int = 2, lowercase: bool = False) -> None:
        super().__init__()
        if char_order < 1 or word_order < 0 or beta < 1:
            raise ConfigError(
                f"char_order is {char_order}, word_order {word_order}, beta {beta}; accepted: at least 1, 0 and 1."
            )
        self.char_order, self.word_order, self.beta, self.lowercase = char_order, word_order, beta, lowercase
        self.name = "chrf" + "p" * word_order
        orders = [f"char_{n + 1}" for n in range(char_order)] + [f"word_{n + 1}" for n in range(word_order)]
        self.columns = tuple(f"{group}_{order}" for group in ("hyp", "ref", "match") for order in orders)

    def update(self, hypotheses: Sequence[str], references: Sequence[str]) -> None:
        """Adds pairs of plain text.

        Args:
            hypotheses: One reply of the system for each item, detokenised.
            references: One gold reply for each item, detokenised.

        Raises:
            DataError: The numbers differ or an item is not a string.
        """
        check_same_length(self.name, hypotheses=hypotheses, references=references)
        hyps, refs = self._texts(hypotheses), self._texts(references)
        counts = [self._counts(list(map(_characters, hyps)), list(map(_characters, refs)), self.char_order)]
        if self.word_order:
            counts.append(self._counts(list(map(_chrf_words, hyps)), list(map(_chrf_words, refs)), self.word_order))
        self._append(np.concatenate(counts, axis=2).reshape(len(hyps), len(self.columns)), references=references)

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """Percent; 0 where no order occurs on both sides."""
        hyp, ref, match = np.split(sums, 3, axis=-1)
        both = (hyp > 0) & (ref > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            n_orders = both.sum(axis=-1)
            precision = np.where(both, match / hyp, 0.0).sum(axis=-1) / n_orders
            recall = np.where(both, match / ref, 0.0).sum(axis=-1) / n_orders
            value = (1 + self.beta**2) * precision * recall / (self.beta**2 * precision + recall)
        return 100 * np.nan_to_num(value)

    def settings(self) -> Mapping[str, object]:
        """The library's own entries, and beta."""
        case = "lc" if self.lowercase else "mixed"
        orders = {"nc": self.char_order, "nw": self.word_order, "beta": self.beta}
        return {"nrefs": 1, "case": case, "eff": "yes", "space": "no", **orders}

    def _texts(self, texts: Sequence[str]) -> list[str]:
        for i, text in enumerate(texts):
            if not isinstance(text, str):
                raise DataError(f"{self.name}: item {i} is {text!r}; accepted: a plain string, not tokens.")
        return [text.lower() for text in texts] if self.lowercase else list(texts)

    @staticmethod
    def _counts(hyps: list[list[str]], refs: list[list[str]], max_order: int) -> np.ndarray:
        """n-grams of the hypothesis, of the reference, shared ones. Shape: (n_pairs, 3, max_order)."""
        matches, hyp_totals = clipped_matches(hyps, refs, max_order)
        lengths = np.array(list(map(len, refs)), dtype=float)
        ref_totals = np.maximum(lengths[:, None] - np.arange(max_order), 0)
        # sacrebleu leaves out a hypothesis's n-grams of an order the reference is too short for
        return np.stack([np.where(ref_totals > 0, hyp_totals, 0), ref_totals, matches], axis=1)


def _characters(text: str) -> list[str]:
    return list("".join(text.split()))


def _chrf_words(text: str) -> list[str]:
    """White-space words; one ASCII mark is cut off a word's end, or else off its beginning."""
    words = []
    for word in text.split():
        if len(word) > 1 and word[-1] in string.punctuation:
            words += [word[:-1], word[-1]]
        elif len(word) > 1 and word[0] in string.punctuation:
            words += [word[0], word[1:]]
        else:
            words.append(word)
    return words


chrf, chrfpp = ChrF, partial(ChrF, word_order=2)
