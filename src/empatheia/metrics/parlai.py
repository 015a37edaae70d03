"""ParlAI's default text metrics, F1 and BLEU-4, which the evaluation of Kim et al. (2021) prints.

Both compare *normalised* text: lower-case, ASCII punctuation replaced by blanks, the articles a, an, the removed. Both
are means over replies. ParlAI prints them as fractions. They are no other BLEU or F1 of this package: without marks and
articles replies match more often, and BLEU's smoothing (1e-12 for an order without a match; method 1 of Chen & Cherry
2014) leaves next to nothing of most replies.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from empatheia.errors import ConfigError
from empatheia.metrics.base import Metric, check_same_length
from empatheia.metrics.bleu import brevity_penalty
from empatheia.metrics.ngrams import Tokens, as_tokens, clipped_matches

_MARKS = str.maketrans(dict.fromkeys(string.punctuation, " "))
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_EPSILON = 1e-12


def parlai_tokens(text: str) -> list[str]:
    """Words of the normalised text.

    Example:
        >>> parlai_tokens("That's the spirit, an A!")
        ['that', 's', 'spirit']
    """
    return _ARTICLES.sub(" ", text.lower().translate(_MARKS)).split()


class _OnNormalisedText(Metric):
    """How the two take their pairs."""

    unit = "percent"

    def _pairs(
        self, hypotheses: Sequence[str | Tokens], references: Sequence[str | Tokens]
    ) -> tuple[list[list[str]], list[list[str]]]:
        """Normalised words; an empty text is one empty word."""
        check_same_length(self.name, hypotheses=hypotheses, references=references)
        sides = (as_tokens(self.name, side) for side in (hypotheses, references))
        hyps, refs = ([parlai_tokens(" ".join(tokens)) or [""] for tokens in side] for side in sides)
        return hyps, refs


def _lengths(texts: list[list[str]]) -> np.ndarray:
    return np.array(list(map(len, texts)), dtype=float)


class ParlaiF1(_OnNormalisedText):
    """Mean F1 of the bags of words of reply and gold reply: 0 to 100 percent, higher is better.

    0 where they share no word, also where both are empty. Precision and recall are parts.

    Example:
        >>> metric = ParlaiF1()
        >>> metric.update(["A dog died!"], ["the dog"])
        >>> round(metric.compute().value, 2)
        66.67
    """

    name = "parlai_f1"
    columns = ("f1", "precision", "recall", "n_items")

    def update(self, hypotheses: Sequence[str | Tokens], references: Sequence[str | Tokens]) -> None:
        """Adds pairs; the words of a token list are joined by blanks first.

        Raises:
            DataError: The numbers differ, or an item is neither a string nor a list of strings.
        """
        hyps, refs = self._pairs(hypotheses, references)
        hyp_len, ref_len = _lengths(hyps), _lengths(refs)
        both_empty = np.array([hyp == ref == [""] for hyp, ref in zip(hyps, refs, strict=True)], dtype=bool)
        shared = np.where(both_empty, 0.0, clipped_matches(hyps, refs, 1)[0][:, 0])
        columns = [2 * shared / (hyp_len + ref_len), shared / hyp_len, shared / ref_len, np.ones(len(hyps))]
        self._append(np.stack(columns, axis=1), references=references)

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """The mean in percent."""
        return 100 * sums[..., 0] / sums[..., 3]

    def settings(self) -> Mapping[str, object]:
        """The normalisation."""
        return {"norm": "parlai", "nrefs": 1}

    def parts_of(self, sums: np.ndarray) -> dict[str, float]:
        """Mean precision and recall in percent."""
        return {name: float(100 * sums[i] / sums[3]) for i, name in ((1, "precision"), (2, "recall"))}


class ParlaiBLEU(_OnNormalisedText):
    """Mean sentence BLEU of normalised text, nltk's smoothing method 1 with 1e-12: 0 to 100 percent, higher is better.

    A reply without a word of its gold reply scores 0; one with shared words but no shared n-gram of the highest order
    next to 0. An empty text counts as one empty word, so two empty texts share it (the released code).

    Args:
        max_order: n of BLEU-n.

    Raises:
        ConfigError: The order is below 1.

    Example:
        >>> metric = ParlaiBLEU()
        >>> metric.update(["The dog died, poor you!", "x"], ["a dog died: poor you", "y"])
        >>> round(metric.compute().value, 2)
        50.0
    """

    columns = ("bleu", "n_items")

    def __init__(self, max_order: int = 4) -> None:
        super().__init__()
        if max_order < 1:
            raise ConfigError(f"max_order is {max_order}; accepted: 1 or more, 4 is usual.")
        self.max_order, self.name = max_order, f"parlai_bleu_{max_order}"

    def update(self, hypotheses: Sequence[str | Tokens], references: Sequence[str | Tokens]) -> None:
        """Adds pairs; the words of a token list are joined by blanks first.

        Raises:
            DataError: The numbers differ, or an item is neither a string nor a list of strings.
        """
        hyps, refs = self._pairs(hypotheses, references)
        matches, totals = clipped_matches(hyps, refs, self.max_order)
        hyp_len, ref_len = _lengths(hyps), _lengths(refs)
        precisions = np.where(matches > 0, matches, _EPSILON) / np.maximum(totals, 1)
        scores = brevity_penalty(hyp_len, ref_len) * np.exp(np.log(precisions).mean(axis=1))
        scores = np.where(matches[:, 0] > 0, scores, 0.0)
        self._append(np.stack([scores, np.ones(len(hyps))], axis=1), references=references)

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """The mean in percent."""
        return 100 * sums[..., 0] / sums[..., 1]

    def settings(self) -> Mapping[str, object]:
        """Normalisation, order, smoothing."""
        return {"norm": "parlai", "order": self.max_order, "smooth": "m1-1e-12", "nrefs": 1}


parlai_bleu_4 = partial(ParlaiBLEU, 4)
