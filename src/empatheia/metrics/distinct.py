"""Distinct-n (Li et al. 2016): how varied the replies are; higher is better.

Papers print three numbers under this name: distinct n-grams over *all* replies / all n-grams (Gao et al. as a
fraction, CEM and IMAGINE in percent), the mean of that ratio over single replies (EmpDG's second number), and
that of EmpDG's released code, whose bigrams are two words *joined without a space* ("a bc" and "ab c"
collide). N-grams never cross a reply; nothing is padded. All depend on how much was generated: compare equal
test sets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import NormalDist
from typing import Literal, Self

import numpy as np

from empatheia.errors import ConfigError
from empatheia.metrics.base import Metric
from empatheia.metrics.ngrams import Tokens, as_tokens, ngram_table


class _Distinct(Metric):
    """Settings that the corpus ratio and the mean over replies share."""

    def __init__(self, order: int, unit: Literal["percent", "fraction"], lowercase: bool, tokenizer: str) -> None:
        super().__init__()
        if order < 1:
            raise ConfigError(f"the order of Distinct is {order}; accepted: 1 or more.")
        if unit not in ("percent", "fraction"):
            raise ConfigError(f"unknown unit {unit!r}; accepted: percent, fraction.")
        self.order, self.unit, self.lowercase, self.tokenizer = order, unit, lowercase, tokenizer
        self.scale = 100.0 if unit == "percent" else 1.0

    def settings(self) -> Mapping[str, object]:
        """Tokeniser, casing, order."""
        return {"tok": self.tokenizer, "case": "lc" if self.lowercase else "mixed", "order": self.order}

    def note_of(self, sums: np.ndarray) -> str:
        """No reply is long enough."""
        return f"no reply has {self.order} tokens, so there is no {self.order}-gram to count"


class CorpusDistinct(_Distinct):
    """Distinct n-grams / n-grams over all replies: (0, 1] or (0, 100], higher is better.

    Interval: the ratio is not a sum over replies. Drawing replies with replacement repeats some and misses
    about a third of them; it would put the interval *below* the value. Instead the delete-one jackknife is
    used: leaving out reply i removes exactly the n-gram types found nowhere else, so all n leave-one-out values
    are exact and cheap. The interval is value ± z * jackknife standard error; by the Efron-Stein inequality
    (1981) that error is on average not too small. No random numbers: ``n_resamples`` and ``seed`` are unused.

    Args:
        order: n of Distinct-n.
        unit: ``percent`` or ``fraction``.
        concat: Join the words of an n-gram without a space (EmpDG).
        lowercase: Count lower-cased tokens.
        tokenizer: Name of what made the tokens.

    Example:
        >>> metric = CorpusDistinct(order=1, unit="fraction")
        >>> metric.update([["a", "b", "a"], ["a"]])
        >>> metric.compute().value
        0.5
    """

    columns = ("ngrams",)
    can_bootstrap = False

    def __init__(
        self,
        order: int = 1,
        unit: Literal["percent", "fraction"] = "percent",
        concat: bool = False,
        lowercase: bool = False,
        tokenizer: str = "space",
    ) -> None:
        super().__init__(order, unit, lowercase, tokenizer)
        self.concat = concat
        self.name = f"dist_corpus_{'concat_' if concat else ''}{order}"
        self._replies: list[list[str]] = []
        self._texts: set[str] = set()
        self._cache: tuple[np.ndarray, np.ndarray] | None = None

    def update(self, responses: Sequence[str | Tokens]) -> None:
        """Adds replies; strings are split at white space, token lists are taken as they are.

        Raises:
            DataError: An item is neither a string nor a list of strings.
        """
        replies = as_tokens(self.name, responses, self.lowercase)
        texts = (item.strip() if isinstance(item, str) else " ".join(item) for item in responses)
        self._texts = self._texts | {text.lower() if self.lowercase else text for text in texts}
        self._replies = [*self._replies, *replies]
        self._cache = None
        self._append([[max(0, len(reply) - self.order + 1)] for reply in replies])

    def _types(self) -> tuple[np.ndarray, np.ndarray]:
        """Each n-gram type once for each reply it stands in: its id and the reply's index."""
        if self._cache is None:
            replies: Sequence[Tokens] = self._replies
            order = self.order
            if self.concat:
                replies = [["".join(r[i : i + order]) for i in range(len(r) - order + 1)] for r in replies]
                order = 1
            ids, owners = list(ngram_table(replies, order))[-1]
            n_types = int(ids.max(initial=0)) + 1
            entries = np.unique(owners * n_types + ids)
            self._cache = entries % n_types, entries // n_types
        return self._cache

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """Not a function of sums."""
        raise NotImplementedError("Distinct over a corpus is computed by value_at")

    def value_at(self, weights: np.ndarray) -> np.ndarray:
        """The ratio over the replies whose weight is positive, n-grams counted by weight."""
        ids, owners = self._types()
        totals = weights @ self.statistics()[:, 0]
        n_types = np.empty(len(weights))
        seen = np.zeros(int(ids.max(initial=0)) + 1, dtype=bool)
        for row, chosen in enumerate(weights > 0):
            seen[:] = False
            seen[ids[chosen[owners]]] = True
            n_types[row] = np.count_nonzero(seen)
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.scale * n_types / totals

    def interval(self, n_resamples: int = 1000, seed: int = 0, confidence: float = 0.95) -> tuple[float, float] | None:
        """Jackknife interval, cut to the possible range; None for fewer than two replies."""
        if not 0 < confidence < 1:
            raise ConfigError(f"confidence is {confidence}; accepted: a number between 0 and 1, e.g. 0.95.")
        n = self.n_items
        counts = self.statistics()[:, 0]
        total = counts.sum()
        if n < 2 or counts.max() == total:  # no leave-one-out value, or one of them is 0/0
            return None
        ids, owners = self._types()
        only_here = np.bincount(ids)[ids] == 1
        lost = np.bincount(owners[only_here], minlength=n)  # types that vanish with reply i
        n_types = len(np.unique(ids))
        left_out = self.scale * (n_types - lost) / (total - counts)
        error = math.sqrt((n - 1) / n * float(((left_out - left_out.mean()) ** 2).sum()))
        value, z = self.scale * n_types / total, NormalDist().inv_cdf((1 + confidence) / 2)
        return max(0.0, float(value - z * error)), min(self.scale, float(value + z * error))

    def settings(self) -> Mapping[str, object]:
        """Adds the joining of words."""
        return {**super().settings(), "concat": "yes" if self.concat else "no"}

    def parts_of(self, sums: np.ndarray) -> dict[str, float]:
        """Counts of types and of n-grams, mean reply length in tokens, number of different replies (as texts)."""
        ids, _ = self._types()
        return {
            "types": len(np.unique(ids)),
            "ngrams": int(sums[0]),
            "mean_length": sum(map(len, self._replies)) / self.n_items,
            "distinct_replies": len(self._texts),
        }

    def __add__(self, other: Self) -> Self:
        """The accumulator of both sets of replies."""
        merged = super().__add__(other)
        merged._replies = [*self._replies, *other._replies]
        merged._texts = self._texts | other._texts
        merged._cache = None
        return merged

    def _interval_label(self, n_resamples: int, confidence: float) -> str:
        return f"jackknife-{confidence:g}"


class ResponseDistinct(_Distinct):
    """Mean over replies of distinct n-grams / n-grams of the reply: (0, 1] or (0, 100], higher is better.

    It measures repetition inside a reply, not variety of the system: one same short reply always scores 100.

    Args:
        order: n of Distinct-n.
        unit: ``percent`` or ``fraction``.
        short: What a reply without an n-gram of this order counts: ``skip`` leaves it out of the mean,
            ``zero`` is the released code of EmpDG and KEMP. The part ``n_short`` says how many there were.
        lowercase: Count lower-cased tokens.
        tokenizer: Name of what made the tokens.
        concat: Join the words of an n-gram without a space (EmpDG, KEMP).

    Example:
        >>> metric = ResponseDistinct(order=1, unit="fraction")
        >>> metric.update(["a b a", "a"])
        >>> round(metric.compute().value, 4)
        0.8333
    """

    columns = ("ratio", "n_replies", "n_short")

    def __init__(
        self,
        order: int = 1,
        unit: Literal["percent", "fraction"] = "percent",
        short: Literal["skip", "zero"] = "skip",
        lowercase: bool = False,
        tokenizer: str = "space",
        concat: bool = False,
    ) -> None:
        super().__init__(order, unit, lowercase, tokenizer)
        if short not in ("skip", "zero"):
            raise ConfigError(f"unknown treatment of short replies {short!r}; accepted: skip, zero.")
        self.short, self.concat = short, concat
        self.name = f"dist_response_{'concat_' if concat else ''}{order}{'_zero' if short == 'zero' else ''}"

    def update(self, responses: Sequence[str | Tokens]) -> None:
        """Adds replies; strings are split at white space, token lists are taken as they are.

        Raises:
            DataError: An item is neither a string nor a list of strings.
        """
        replies = as_tokens(self.name, responses, self.lowercase)
        rows = []
        for reply in replies:
            spans = (reply[i : i + self.order] for i in range(len(reply) - self.order + 1))
            grams = ["".join(span) for span in spans] if self.concat else [tuple(span) for span in spans]
            rows.append([len(set(grams)) / len(grams), 1, 0] if grams else [0, self.short == "zero", 1])
        self._append(rows)

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """Mean ratio."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.scale * sums[..., 0] / sums[..., 1]

    def settings(self) -> Mapping[str, object]:
        """Adds the treatment of short replies and the joining of words."""
        return {**super().settings(), "short": self.short, "concat": "yes" if self.concat else "no"}


dist_corpus_1, dist_corpus_2 = partial(CorpusDistinct, 1), partial(CorpusDistinct, 2)
dist_corpus_concat_2 = partial(CorpusDistinct, 2, concat=True)
dist_response_1, dist_response_2 = partial(ResponseDistinct, 1), partial(ResponseDistinct, 2)
dist_response_1_zero = partial(ResponseDistinct, 1, short="zero")
dist_response_concat_2_zero = partial(ResponseDistinct, 2, short="zero", concat=True)
