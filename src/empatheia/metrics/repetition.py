"""What generators do instead of answering: repeat themselves, say the same to everybody, echo the context.

Repeated n-grams inside a reply are seq-rep-n of Welleck et al. (2020, section 6); the number of different replies is
what the released outputs of this field differ in most (a third of them may be one sentence).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import NormalDist
from typing import Literal, Self

import numpy as np

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.base import Metric, check_same_length
from empatheia.metrics.ngrams import Tokens, as_tokens


class ReplyRepetition(Metric):
    """Repeated n-grams inside a reply, 1 - distinct / all, as the mean over replies: 0 to 100 percent, lower is better.

    A reply without an n-gram of this order has no such ratio and is left out of the mean; the part ``n_short`` counts
    these, ``n_repeating`` the replies with at least one repeated n-gram.

    Args:
        order: n.
        lowercase: Count lower-cased tokens.
        tokenizer: Name of what made the tokens.

    Example:
        >>> metric = ReplyRepetition(order=1)
        >>> metric.update(["so so sad", "oh no"])
        >>> round(metric.compute().value, 2)
        16.67
    """

    unit = "percent"
    higher_is_better = False
    columns = ("ratio", "n_replies", "n_short", "n_repeating")

    def __init__(self, order: int = 4, lowercase: bool = False, tokenizer: str = "space") -> None:
        super().__init__()
        if order < 1:
            raise ConfigError(f"the order of repetition is {order}; accepted: 1 or more, 4 is usual.")
        self.order, self.lowercase, self.tokenizer = order, lowercase, tokenizer
        self.name = f"repetition_{order}"

    def update(self, responses: Sequence[str | Tokens]) -> None:
        """Adds replies; strings are split at white space, token lists are taken as they are.

        Raises:
            DataError: An item is neither a string nor a list of strings.
        """
        rows = []
        for reply in as_tokens(self.name, responses, self.lowercase):
            n = len(reply) - self.order + 1
            if n < 1:
                rows.append([0, 0, 1, 0])
                continue
            repeated = 1 - len({tuple(reply[i : i + self.order]) for i in range(n)}) / n
            rows.append([repeated, 1, 0, repeated > 0])
        self._append(rows)

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """The mean in percent."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return 100 * sums[..., 0] / sums[..., 1]

    def settings(self) -> Mapping[str, object]:
        """Tokeniser, casing, order."""
        return {"tok": self.tokenizer, "case": "lc" if self.lowercase else "mixed", "order": self.order}

    def parts_of(self, sums: np.ndarray) -> dict[str, int]:
        """Counts of replies."""
        return {name: int(total) for name, total in zip(self.columns[1:], sums[1:], strict=True)}

    def note_of(self, sums: np.ndarray) -> str:
        """No reply is long enough."""
        return f"no reply has {self.order} tokens, so there is no {self.order}-gram to repeat"


class AcrossReplies(Metric):
    """Numbers of a *set* of replies: which units (whole replies, words) stand in which reply.

    They are no sums over replies, and drawing replies with replacement would make copies; as for Distinct over a
    corpus the interval is value ± z * delete-one jackknife standard error, and ``n_resamples`` and ``seed`` are unused.

    Args:
        lowercase: Compare lower-cased tokens.
        tokenizer: Name of what made the tokens.
    """

    columns = ("n_items",)
    can_bootstrap = False
    limits = (0.0, math.inf)

    def __init__(self, lowercase: bool = False, tokenizer: str = "space") -> None:
        super().__init__()
        self.lowercase, self.tokenizer = lowercase, tokenizer
        self._replies: list[list[str]] = []

    @abstractmethod
    def leave_one_out(self) -> np.ndarray:
        """Values of the replies without the i-th. Shape: (n_items,)."""

    def update(self, responses: Sequence[str | Tokens]) -> None:
        """Adds replies; strings are split at white space, token lists are taken as they are.

        Raises:
            DataError: An item is neither a string nor a list of strings.
        """
        replies = as_tokens(self.name, responses, self.lowercase)
        self._replies = [*self._replies, *replies]
        self._append(np.ones((len(replies), 1)))

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """Not a function of sums."""
        raise NotImplementedError(f"{self.name} is computed by value_at")

    def interval(self, n_resamples: int = 1000, seed: int = 0, confidence: float = 0.95) -> tuple[float, float] | None:
        """Jackknife interval, cut to the possible range; None for fewer than two replies."""
        if not 0 < confidence < 1:
            raise ConfigError(f"confidence is {confidence}; accepted: a number between 0 and 1, e.g. 0.95.")
        n = self.n_items
        if n < 2:
            return None
        left_out = self.leave_one_out()
        error = math.sqrt((n - 1) / n * float(((left_out - left_out.mean()) ** 2).sum()))
        value, z = float(self.value_at(np.ones((1, n)))[0]), NormalDist().inv_cdf((1 + confidence) / 2)
        return max(self.limits[0], value - z * error), min(self.limits[1], value + z * error)

    def settings(self) -> Mapping[str, object]:
        """Tokeniser, casing."""
        return {"tok": self.tokenizer, "case": "lc" if self.lowercase else "mixed"}

    def __add__(self, other: Self) -> Self:
        """The accumulator of both sets of replies."""
        merged = super().__add__(other)
        merged._replies = [*self._replies, *other._replies]
        return merged

    def _interval_label(self, n_resamples: int, confidence: float) -> str:
        return f"jackknife-{confidence:g}"


class DuplicateReplies(AcrossReplies):
    """Share of replies that the system gave to another context as well: 0 to 100 percent, lower is better.

    It grows with the size of the test set; compare equal sets. Parts: how many different replies there are, the most
    frequent one and its share.

    Example:
        >>> metric = DuplicateReplies()
        >>> metric.update(["i am sorry .", "i am  sorry .", "congratulations !", "oh ?"])
        >>> metric.compute().value
        50.0
    """

    name = "duplicate_replies"
    unit = "percent"
    higher_is_better = False
    limits = (0.0, 100.0)

    def value_at(self, weights: np.ndarray) -> np.ndarray:
        """Share of weight on replies whose text weighs 2 or more."""
        groups = self._groups()
        order = np.argsort(groups, kind="stable")
        starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
        by_text = np.add.reduceat(weights[:, order], starts, axis=1)  # (n_samples, n_texts)
        return 100 * np.where(by_text > 1, by_text, 0.0).sum(axis=1) / by_text.sum(axis=1)

    def leave_one_out(self) -> np.ndarray:
        """A reply of a pair takes its twin out of the count, one of a larger group only itself."""
        groups = self._groups()
        size = np.bincount(groups)[groups]
        n_twice = np.count_nonzero(size > 1)
        return 100 * (n_twice - np.where(size > 2, 1, np.where(size == 2, 2, 0))) / (len(groups) - 1)

    def parts_of(self, sums: np.ndarray) -> dict[str, float | str]:
        """Different replies, the most frequent reply, its share in percent."""
        counts = np.bincount(self._groups())
        texts = list(dict.fromkeys(map(tuple, self._replies)))
        most = min(np.flatnonzero(counts == counts.max()), key=lambda i: texts[i])
        share = 100 * float(counts[most]) / self.n_items
        return {"distinct_replies": len(counts), "most_frequent": " ".join(texts[most]), "most_frequent_share": share}

    def _groups(self) -> np.ndarray:
        """Number of each reply's text, in order of first appearance. Shape: (n_items,)."""
        numbers: dict[tuple[str, ...], int] = {}
        return np.array([numbers.setdefault(tuple(reply), len(numbers)) for reply in self._replies], dtype=np.int64)


class Vocabulary(AcrossReplies):
    """Different words in all replies: 0 upwards; more is more varied, but it grows with the test set.

    Parts: running words, words that occur once, words a reply.

    Example:
        >>> metric = Vocabulary()
        >>> metric.update(["oh no", "oh yes yes"])
        >>> metric.compute().value
        3.0
    """

    name = "vocabulary"
    unit = "words"

    def value_at(self, weights: np.ndarray) -> np.ndarray:
        """Number of words in replies of positive weight."""
        words, owners = self._types()
        if not len(words):
            return np.zeros(len(weights))
        order = np.argsort(words, kind="stable")
        starts = np.flatnonzero(np.diff(words[order], prepend=-1))
        in_a_reply = (weights > 0)[:, owners[order]]  # (n_samples, n_entries)
        return np.logical_or.reduceat(in_a_reply, starts, axis=1).sum(axis=1).astype(float)

    def leave_one_out(self) -> np.ndarray:
        """Words that stand in no other reply vanish with it."""
        words, owners = self._types()
        only_here = np.bincount(words)[words] == 1
        lost = np.bincount(owners[only_here], minlength=self.n_items)
        return len(np.unique(words)) - lost.astype(float)

    def parts_of(self, sums: np.ndarray) -> dict[str, float]:
        """Counts."""
        all_words = [word for reply in self._replies for word in reply]
        counts = np.unique(all_words, return_counts=True)[1] if all_words else np.empty(0)
        once = int(np.count_nonzero(counts == 1))
        return {"running_words": len(all_words), "once": once, "words_per_reply": len(all_words) / self.n_items}

    def _types(self) -> tuple[np.ndarray, np.ndarray]:
        """Each word once for each reply it stands in: its number and the reply's index."""
        numbers: dict[str, int] = {}
        found = [
            (numbers.setdefault(word, len(numbers)), i)
            for i, reply in enumerate(self._replies)
            for word in dict.fromkeys(reply)
        ]
        table = np.array(found, dtype=np.int64).reshape(-1, 2)
        return table[:, 0], table[:, 1]


class ContextCopies(Metric):
    """Share of replies that copy a turn of their context: 0 to 100 percent, lower is better.

    Args:
        match: ``equal``: the reply is the turn; ``within``: the turn stands in the reply as a whole.
        min_words: Turns with fewer words are never called copied ("yes ." proves nothing).
        lowercase: Compare lower-cased tokens.
        tokenizer: Name of what made the tokens.

    Raises:
        ConfigError: Unknown match or a ``min_words`` below 1.

    Example:
        >>> metric = ContextCopies()
        >>> metric.update(["my dog died", "i am sorry"], [["hi", "my dog died"], ["my cat ran off"]])
        >>> metric.compute().value
        50.0
    """

    name = "context_copies"
    unit = "percent"
    higher_is_better = False
    columns = ("n_copies", "n_items")

    def __init__(
        self,
        match: Literal["equal", "within"] = "equal",
        min_words: int = 1,
        lowercase: bool = True,
        tokenizer: str = "space",
    ) -> None:
        super().__init__()
        if match not in ("equal", "within"):
            raise ConfigError(f"unknown match {match!r}; accepted: equal, within.")
        if min_words < 1:
            raise ConfigError(f"min_words is {min_words}; accepted: 1 or more.")
        self.match, self.min_words, self.lowercase, self.tokenizer = match, min_words, lowercase, tokenizer

    def update(self, responses: Sequence[str | Tokens], contexts: Sequence[Sequence[str | Tokens]]) -> None:
        """Adds replies.

        Args:
            responses: One reply for each item, a string or its tokens.
            contexts: The turns before each reply; there may be none.

        Raises:
            DataError: The numbers differ, or a context is no list of turns.
        """
        check_same_length(self.name, responses=responses, contexts=contexts)
        rows = []
        for i, (reply, turns) in enumerate(zip(as_tokens(self.name, responses, self.lowercase), contexts, strict=True)):
            if isinstance(turns, str) or not isinstance(turns, Sequence):
                raise DataError(f"{self.name}: context {i} is {turns!r}; accepted: a list of turns.")
            known = [turn for turn in as_tokens(self.name, turns, self.lowercase) if len(turn) >= self.min_words]
            rows.append([any(self._copies(reply, turn) for turn in known), 1])
        self._append(rows)

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """Percent."""
        return 100 * sums[..., 0] / sums[..., 1]

    def settings(self) -> Mapping[str, object]:
        """What counts as a copy, tokeniser, casing."""
        case = "lc" if self.lowercase else "mixed"
        return {"match": self.match, "min_words": self.min_words, "tok": self.tokenizer, "case": case}

    def _copies(self, reply: list[str], turn: list[str]) -> bool:
        if self.match == "equal":
            return reply == turn
        n = len(turn)
        return any(reply[i : i + n] == turn for i in range(len(reply) - n + 1))


repetition_4 = partial(ReplyRepetition, 4)
