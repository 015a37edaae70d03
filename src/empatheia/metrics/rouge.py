"""ROUGE-N and ROUGE-L (Lin 2004, sections 2 and 3.1) of single replies; percent, higher is better.

The arithmetic and the tokens are those of the ``rouge-score`` package: text is lower-cased, whatever is no ASCII
letter or digit separates words, and a score is the plain mean over pairs, not a ratio of sums.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import Any, Literal, get_args

import numpy as np

from empatheia.errors import ConfigError, MissingDependencyError
from empatheia.metrics.base import Metric, check_same_length
from empatheia.metrics.ngrams import Tokens, as_tokens, clipped_matches

Report = Literal["f1", "precision", "recall"]
_NO_WORD = re.compile(r"[^a-z0-9]+")


def rouge_tokens(text: str, stem: bool = False) -> list[str]:
    """Lower-cased runs of ASCII letters and digits.

    Args:
        text: Anything.
        stem: Cut words of more than three characters to their Porter stem (needs nltk).

    Example:
        >>> rouge_tokens("I'm well-rested!")
        ['i', 'm', 'well', 'rested']
    """
    words = [word for word in _NO_WORD.split(text.lower()) if word]
    if not stem:
        return words
    stems = (_porter()(word) if len(word) > 3 else word for word in words)
    return [word for word in stems if word and not _NO_WORD.search(word)]


@cache
def _porter() -> Any:
    try:
        from nltk.stem.porter import PorterStemmer
    except ImportError as error:
        raise MissingDependencyError("ROUGE with stems needs nltk: pip install 'empatheia[score]'") from error
    return lru_cache(maxsize=100_000)(PorterStemmer().stem)


def longest_common_subsequence(first: Sequence[str], second: Sequence[str]) -> int:
    """Length of the longest common subsequence, by Hyyrö's bit-parallel rule (2004): one addition a token.

    Example:
        >>> longest_common_subsequence("the cat sat".split(), "the dog and the cat sat".split())
        3
    """
    places: dict[str, int] = {}
    for i, token in enumerate(first):
        places[token] = places.get(token, 0) | 1 << i
    full = (1 << len(first)) - 1
    state = full
    for token in second:
        here = state & places.get(token, 0)
        state = ((state + here) | (state - here)) & full
    return len(first) - state.bit_count()


class ROUGE(Metric):
    """Mean ROUGE over pairs: 0 to 100 percent, higher is better.

    Of one pair with m shared units (clipped n-grams, or tokens of the longest common subsequence): precision
    m / units of the hypothesis, recall m / units of the reference, F1 their harmonic mean; 0 where one of the
    two texts has no unit. The other two means are parts.

    Args:
        kind: 1, 2, ... for ROUGE-N, ``l`` for ROUGE-L.
        report: Which of the three is the value.
        stem: Compare Porter stems (the package's ``use_stemmer``).

    Raises:
        ConfigError: Unknown kind or report.

    Example:
        >>> metric = ROUGE("l")
        >>> metric.update(["the cat sat"], ["The dog sat."])
        >>> round(metric.compute().value, 2)
        66.67
    """

    unit = "percent"
    columns = ("f1", "precision", "recall", "n_items")

    def __init__(self, kind: int | Literal["l"] = "l", report: Report = "f1", stem: bool = False) -> None:
        super().__init__()
        if kind != "l" and not (isinstance(kind, int) and 1 <= kind <= 9):
            raise ConfigError(f"kind of ROUGE is {kind!r}; accepted: 1 to 9, or 'l'.")
        if report not in get_args(Report):
            raise ConfigError(f"unknown report {report!r}; accepted: {', '.join(get_args(Report))}.")
        self.kind, self.report, self.stem = kind, report, stem
        self.name = f"rouge_{kind}" + ("" if report == "f1" else f"_{report}") + ("_stem" if stem else "")

    def update(self, hypotheses: Sequence[str | Tokens], references: Sequence[str | Tokens]) -> None:
        """Adds pairs; the words of a token list are joined by blanks first, so both forms score alike.

        Args:
            hypotheses: One reply of the system for each item; it may be empty.
            references: One gold reply for each item.

        Raises:
            DataError: The numbers differ, or an item is neither a string nor a list of strings.
        """
        check_same_length(self.name, hypotheses=hypotheses, references=references)
        hyps, refs = self._cut(hypotheses), self._cut(references)
        sizes = np.array([list(map(len, hyps)), list(map(len, refs))], dtype=float).reshape(2, -1)
        if isinstance(self.kind, int):
            matches = clipped_matches(hyps, refs, self.kind)[0][:, -1]
            sizes = np.maximum(sizes - self.kind + 1, 0)
        else:
            pairs = zip(hyps, refs, strict=True)
            matches = np.array([longest_common_subsequence(h, r) for h, r in pairs], dtype=float)
        with np.errstate(divide="ignore", invalid="ignore"):
            precision, recall, f1 = (np.nan_to_num(matches / d) for d in (sizes[0], sizes[1], sizes.sum(0) / 2))
        self._append(np.stack([f1, precision, recall, np.ones(len(hyps))], axis=1), references=references)

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """The mean in percent."""
        return 100 * sums[..., self.columns.index(self.report)] / sums[..., 3]

    def settings(self) -> Mapping[str, object]:
        """Kind, report, stemming."""
        stem = "porter" if self.stem else "none"
        return {"kind": self.kind, "report": self.report, "stem": stem, "tok": "rouge", "nrefs": 1}

    def parts_of(self, sums: np.ndarray) -> dict[str, float]:
        """The three means in percent."""
        return {name: float(100 * sums[i] / sums[3]) for i, name in enumerate(self.columns[:3])}

    def _cut(self, items: Sequence[str | Tokens]) -> list[list[str]]:
        return [rouge_tokens(" ".join(tokens), self.stem) for tokens in as_tokens(self.name, items)]


rouge_1, rouge_2, rouge_l = partial(ROUGE, 1), partial(ROUGE, 2), partial(ROUGE, "l")
