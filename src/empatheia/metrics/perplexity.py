"""Perplexity in the forms that papers print under one name, from summed negative log likelihoods.

Token-weighted (Rashkin et al. 2018); item-level geometric mean (released code of MoEL, MIME, EmpDG, KEMP,
CEM); the same over batches (what their validation prints); mean of the items' perplexities; per word and bits per
character, the two that can be compared across tokenisers. All are teacher-forced: each token is predicted after the
gold tokens before it. Whether the model was told gold labels, too, is in the signature.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.base import Metric, check_same_length

Numbers = Sequence[float] | np.ndarray


class Likelihood(Metric):
    """What the four metrics share: they differ in what the nats are divided by.

    Args:
        tokenizer: Name of what cut the reply into the scored pieces, e.g. ``words-23714`` or ``bpe-50265``.
        words: Name of what counted the words, e.g. ``nltk`` or ``space``.
        gold_labels: True when the model was told the gold emotion or cause (an oracle, as in table 3 of Xie & Pu
            2021); in the signature.
        counts_end: Whether the end mark is among the scored pieces; only its absence is in the signature.
    """

    unit = "perplexity"
    higher_is_better = False
    columns: tuple[str, ...] = ("nll_sum", "n_tokens", "n_words", "n_chars", "nll_per_token", "n_items")

    def __init__(
        self, tokenizer: str = "given", words: str = "space", gold_labels: bool = False, counts_end: bool = True
    ) -> None:
        super().__init__()
        self.tokenizer, self.words, self.gold_labels, self.counts_end = tokenizer, words, gold_labels, counts_end

    def update(
        self,
        nll_sums: Numbers,
        n_tokens: Numbers,
        n_words: Numbers | None = None,
        n_chars: Numbers | None = None,
        references: Sequence[str] | None = None,
    ) -> None:
        """Adds items; an item is one gold reply.

        Args:
            nll_sums: Negative log likelihood of the reply in nats, without label smoothing. Shape:
                (n_items,).
            n_tokens: Scored pieces of the reply, end mark included, padding excluded. Shape: (n_items,).
            n_words: Words of the reply text; only the per-word form needs it.
            n_chars: Characters of the reply text; only bits per character needs it.
            references: The gold replies, for the fingerprint in the signature.

        Raises:
            DataError: Sizes differ, a likelihood is not finite or negative, or a count is not positive.
        """
        given = {"nll_sums": nll_sums, "n_tokens": n_tokens, "n_words": n_words, "n_chars": n_chars}
        present = {name: values for name, values in given.items() if values is not None}
        n = check_same_length(self.name, **present)
        if references is not None:
            check_same_length(self.name, items=nll_sums, references=references)
        nll = np.asarray(nll_sums, dtype=np.float64)
        wrong = np.flatnonzero(~np.isfinite(nll) | (nll < -1e-6))
        if len(wrong):
            raise DataError(
                f"{self.name}: item {wrong[0]} of the batch has negative log likelihood {nll[wrong[0]]};"
                " accepted: finite, at least 0 (nats summed over the reply)."
            )
        counts = {}
        for name in ("n_tokens", "n_words", "n_chars"):
            values = given[name]
            counts[name] = np.zeros(n) if values is None else np.asarray(values, dtype=np.float64)
            if values is not None and n and counts[name].min() <= 0:
                at = int(counts[name].argmin())
                raise DataError(f"{self.name}: item {at} has {name} {counts[name][at]:g}; it needs 1 or more.")
        self._require(n_words, n_chars)
        self._append(self._rows(nll, counts["n_tokens"], counts["n_words"], counts["n_chars"]), references)

    def settings(self) -> Mapping[str, object]:
        """Tokeniser and whether gold labels were seen; that the end mark was not counted, if so."""
        end = {} if self.counts_end else {"end": "no"}
        return {"tok": self.tokenizer, "gold_labels": "yes" if self.gold_labels else "no", **end}

    def _require(self, n_words: Numbers | None, n_chars: Numbers | None) -> None:
        """Raises when a count this form divides by was not given."""

    def _rows(self, nll: np.ndarray, tokens: np.ndarray, words: np.ndarray, chars: np.ndarray) -> np.ndarray:
        """Statistics of a batch of items. Shape: (n_items, n_columns)."""
        return np.stack([nll, tokens, words, chars, nll / tokens, np.ones(len(nll))], axis=1)

    @staticmethod
    def _exp(nats: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.exp(nats)


class TokenPerplexity(Likelihood):
    """exp(sum of nats / sum of tokens): range 1 to infinity, lower is better.

    Depends on the vocabulary; never compare it across tokenisers.

    Example:
        >>> metric = TokenPerplexity()
        >>> metric.update(nll_sums=[2.0, 3.0], n_tokens=[2, 1])
        >>> round(metric.compute().value, 3)
        5.294
    """

    name = "ppl_token"

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """exp(nll_sum / n_tokens)."""
        return self._exp(sums[..., 0] / sums[..., 1])


class WordPerplexity(Likelihood):
    """exp(sum of nats / sum of words): range 1 to infinity, lower is better.

    Comparable across tokenisers when the words are counted alike; the counter's name is in the signature.

    Example:
        >>> metric = WordPerplexity(words="space")
        >>> metric.update(nll_sums=[4.0], n_tokens=[5], n_words=[2])
        >>> round(metric.compute().value, 3)
        7.389
    """

    name = "ppl_word"

    def settings(self) -> Mapping[str, object]:
        """Adds the name of the word counter."""
        return {**super().settings(), "words": self.words}

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """exp(nll_sum / n_words)."""
        return self._exp(sums[..., 0] / sums[..., 2])

    def _require(self, n_words: Numbers | None, n_chars: Numbers | None) -> None:
        if n_words is None:
            raise ConfigError("ppl_word: n_words is missing; pass the number of words of each gold reply.")


class ItemPerplexity(Likelihood):
    """exp(mean over items of the item's mean nats per token): range 1 to infinity, lower is better.

    A geometric mean in which a one-word reply weighs as much as a long one. This is what the released code of
    MoEL and its descendants prints; it is not the token-weighted value.

    Example:
        >>> metric = ItemPerplexity()
        >>> metric.update(nll_sums=[2.0, 3.0], n_tokens=[2, 1])
        >>> round(metric.compute().value, 3)
        7.389
    """

    name = "ppl_item"

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """exp(sum of item means / n_items)."""
        return self._exp(sums[..., 4] / sums[..., 5])


class MeanItemPerplexity(Likelihood):
    """Mean over items of the item's perplexity: range 1 to infinity, lower is better.

    One surprising short reply can carry it; no released code of the field computes it, but texts describe it.

    Example:
        >>> metric = MeanItemPerplexity()
        >>> metric.update(nll_sums=[2.0, 3.0], n_tokens=[2, 1])
        >>> round(metric.compute().value, 3)
        11.402
    """

    name = "ppl_item_mean"
    columns = (*Likelihood.columns, "perplexity")

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """Sum of item perplexities / n_items."""
        return sums[..., 6] / sums[..., 5]

    def _rows(self, nll: np.ndarray, tokens: np.ndarray, words: np.ndarray, chars: np.ndarray) -> np.ndarray:
        rows = super()._rows(nll, tokens, words, chars)
        return np.concatenate([rows, self._exp(rows[:, 4:5])], axis=1)


class BatchPerplexity(Likelihood):
    """exp(mean over batches of the batch's nats per token): range 1 to infinity, lower is better.

    What a training loop prints. It depends on the batch size: every call of ``update`` is one batch, and ``n`` counts
    batches. With batches of one item it equals :class:`ItemPerplexity`.

    Example:
        >>> metric = BatchPerplexity()
        >>> metric.update(nll_sums=[2.0, 3.0], n_tokens=[2, 1])
        >>> metric.update(nll_sums=[1.0], n_tokens=[1])
        >>> round(metric.compute().value, 3)
        3.794
    """

    name = "ppl_batch_mean"

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """exp(sum of batch means / n_batches)."""
        return self._exp(sums[..., 4] / sums[..., 5])

    def _rows(self, nll: np.ndarray, tokens: np.ndarray, words: np.ndarray, chars: np.ndarray) -> np.ndarray:
        if not len(nll):
            return np.empty((0, len(self.columns)))
        totals = [x.sum() for x in (nll, tokens, words, chars)]
        return np.array([[*totals, totals[0] / totals[1], 1.0]])


class BitsPerCharacter(Likelihood):
    """Sum of nats / ln 2 / sum of characters: range 0 to infinity bits, lower is better.

    Example:
        >>> metric = BitsPerCharacter()
        >>> metric.update(nll_sums=[6.931472], n_tokens=[3], n_chars=[10])
        >>> round(metric.compute().value, 3)
        1.0
    """

    name = "bits_per_character"
    unit = "bits"

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """nll_sum / ln 2 / n_chars."""
        return sums[..., 0] / np.log(2) / sums[..., 3]

    def _require(self, n_words: Numbers | None, n_chars: Numbers | None) -> None:
        if n_chars is None:
            raise ConfigError("bits_per_character: n_chars is missing; pass len(text) of each gold reply.")
