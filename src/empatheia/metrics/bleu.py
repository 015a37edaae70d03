"""BLEU (Papineni et al. 2002) in the variants this field prints under one name; percent, higher is better.

All are *cumulative* (BLEU-2 is the geometric mean of 1- and 2-gram precision), on tokens, with one reference.

- ``corpus``: counts pooled over the corpus, no smoothing = Moses ``multi-bleu.perl`` (MoEL, MIME); ``-lc`` is
  ``lowercase=True``. Also fairseq's scorer (Rashkin et al. 2018).
- ``nltk``: nltk ``corpus_bleu`` (Gao et al. 2021). The difference: a hypothesis with fewer than n tokens
  still adds 1 to the total of order n, so short replies lower the score.
- ``avg``: mean of corpus BLEU-1..4 (Rashkin et al. 2018). ``sent``: mean of sentence scores (EmpDG).
- ``add1``: one added to the matches and to the n-grams of every order, the first too (the smoothing switch of
  the scorer that EmpDG and KEMP released; they leave it off).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from empatheia.errors import ConfigError, MissingDependencyError
from empatheia.metrics.base import Metric, check_same_length
from empatheia.metrics.ngrams import Tokens, as_tokens, clipped_matches

Variant = Literal["corpus", "nltk"]
_NEVER_MATCHES = "\x00"  # takes the place of unknown words in references; white space splits no such token off a text


def brevity_penalty(hyp_len: np.ndarray, ref_len: np.ndarray) -> np.ndarray:
    """1 when hypotheses are at least as long as references, else exp(1 - ref/hyp); 0 for no tokens."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(hyp_len >= ref_len, 1.0, np.exp(1 - ref_len / hyp_len))


class OverlapMetric(Metric):
    """Per-item counts that every BLEU of this module is made of.

    Args:
        max_order: Longest n-gram, at least 1.
        lowercase: Compare lower-cased tokens (Moses ``-lc``).
        tokenizer: Name of what made the tokens, for the signature; ``space`` when plain strings are passed.
        unknown: A token that never matches when it stands in a reference (fairseq's treatment of UNK); None =
            no such token.
    """

    unit = "percent"

    def __init__(
        self, max_order: int = 4, lowercase: bool = False, tokenizer: str = "space", unknown: str | None = None
    ) -> None:
        super().__init__()
        if max_order < 1:
            raise ConfigError(f"max_order is {max_order}; accepted: 1 or more, 4 is usual.")
        self.max_order, self.lowercase, self.tokenizer, self.unknown = max_order, lowercase, tokenizer, unknown
        orders = range(1, max_order + 1)
        # "short": hypotheses without a single n-gram of that order
        groups = [f"{group}_{n}" for group in ("match", "total", "short") for n in orders]
        self.columns = (*groups, "hyp_len", "ref_len")

    def update(self, hypotheses: Sequence[str | Tokens], references: Sequence[str | Tokens]) -> None:
        """Adds pairs; strings are split at white space, token lists are taken as they are.

        Args:
            hypotheses: One reply of the system for each item; it may be empty.
            references: One gold reply for each item.

        Raises:
            DataError: The numbers differ, or an item is neither a string nor a list of strings.
        """
        check_same_length(self.name, hypotheses=hypotheses, references=references)
        hyps = as_tokens(self.name, hypotheses, self.lowercase)
        refs = as_tokens(self.name, references, self.lowercase)
        matchable = refs
        if self.unknown is not None:
            matchable = [[_NEVER_MATCHES if token == self.unknown else token for token in ref] for ref in refs]
        self._append(self._rows(hyps, matchable), references=refs)

    def settings(self) -> Mapping[str, object]:
        """Tokeniser, casing, order, smoothing; the unknown word where there is one."""
        case = "lc" if self.lowercase else "mixed"
        unknown = {} if self.unknown is None else {"unk": self.unknown}
        return {"tok": self.tokenizer, "case": case, "order": self.max_order, "smooth": "none", "nrefs": 1, **unknown}

    def _rows(self, hyps: list[list[str]], refs: list[list[str]]) -> np.ndarray:
        matches, totals = clipped_matches(hyps, refs, self.max_order)
        lengths = [list(map(len, hyps)), list(map(len, refs))]
        return np.concatenate([matches, totals, totals == 0, np.array(lengths).T], axis=1)

    def _split(self, sums: np.ndarray) -> tuple[np.ndarray, ...]:
        """Matches, totals, shorts (each (..., max_order)), hypothesis and reference length (each (...))."""
        n = self.max_order
        return sums[..., :n], sums[..., n : 2 * n], sums[..., 2 * n : 3 * n], sums[..., -2], sums[..., -1]

    def _cumulative(
        self, sums: np.ndarray, weights: np.ndarray, pad_short: bool = False, add: float = 0.0
    ) -> np.ndarray:
        """BLEU in percent. ``weights``: exponents of the precisions, shape (max_order,), positive."""
        matches, totals, shorts, hyp_len, ref_len = self._split(sums)
        with np.errstate(divide="ignore", invalid="ignore"):
            precisions = (matches + add) / (totals + shorts * pad_short + add)
            precisions = np.where((totals == 0) & (add == 0), np.nan, precisions)
            mean_log = (np.log(precisions) * weights).sum(axis=-1)
            values = 100 * brevity_penalty(hyp_len, ref_len) * np.exp(mean_log)
        values = np.where(hyp_len == 0, 0.0, values)  # no output at all is worth nothing
        return np.where(ref_len == 0, np.nan, values)

    def parts_of(self, sums: np.ndarray) -> dict[str, float]:
        """Precision of each order in percent, brevity penalty, lengths in tokens (corpus totals)."""
        matches, totals, _, hyp_len, ref_len = self._split(sums)
        with np.errstate(divide="ignore", invalid="ignore"):
            precisions = 100 * matches / totals
        parts: dict[str, float] = {f"precision_{i + 1}": float(p) for i, p in enumerate(precisions)}
        parts["brevity_penalty"] = float(brevity_penalty(hyp_len, ref_len)) if hyp_len else 0.0
        return {**parts, "hyp_len": int(hyp_len), "ref_len": int(ref_len)}

    def note_of(self, sums: np.ndarray) -> str:
        """Empty references, or replies too short for the order."""
        _, totals, _, _, ref_len = self._split(sums)
        if ref_len == 0:
            return "every reference is empty"
        order = int(np.flatnonzero(totals == 0)[0]) + 1
        return f"no reply has {order} tokens, so there is no {order}-gram to score; use a lower order"


class BLEU(OverlapMetric):
    """Corpus BLEU: 0 to 100 percent, higher is better.

    BP * exp(sum_n w_n log p_n), p_n = clipped matches / n-grams of the hypotheses, pooled over the corpus.
    An order without a match gives 0 (that is the definition without smoothing); an order without any n-gram
    in the hypotheses gives NaN, because then the number says nothing.

    Args:
        max_order: n of BLEU-n.
        variant: ``corpus`` (Moses, fairseq) or ``nltk``; see the module.
        weights: Exponents of p_1..p_n, uniform by default. The released code of Gao et al. uses (0.333,) * 3
            for BLEU-3, which is not quite a third.
        lowercase: Compare lower-cased tokens.
        tokenizer: Name of what made the tokens.
        smoothing: ``none``, or ``add1``; see the module.
        unknown: A token that never matches when it stands in a reference.

    Raises:
        ConfigError: Unknown variant or smoothing, or weights that do not fit the order.

    Example:
        >>> metric = BLEU(max_order=2)
        >>> metric.update(["a b c e"], ["a b c d"])
        >>> round(metric.compute().value, 2)
        70.71
        >>> metric.name
        'bleu_corpus_2'
    """

    def __init__(
        self,
        max_order: int = 4,
        variant: Variant = "corpus",
        weights: Sequence[float] | None = None,
        lowercase: bool = False,
        tokenizer: str = "space",
        smoothing: Literal["none", "add1"] = "none",
        unknown: str | None = None,
    ) -> None:
        super().__init__(max_order, lowercase, tokenizer, unknown)
        if variant not in ("corpus", "nltk"):
            raise ConfigError(f"unknown BLEU variant {variant!r}; accepted: corpus, nltk.")
        if smoothing not in ("none", "add1"):
            raise ConfigError(f"unknown smoothing {smoothing!r}; accepted: none, add1.")
        if weights is not None and (len(weights) != max_order or min(weights) <= 0):
            raise ConfigError(f"weights are {tuple(weights)}; accepted: {max_order} positive numbers.")
        self.variant = variant
        self.weights = tuple(weights) if weights is not None else (1 / max_order,) * max_order
        self.smoothing = smoothing
        marks = {"weighted": weights is not None, "lc": lowercase, "add1": smoothing == "add1"}
        self.name = "_".join(["bleu", variant, str(max_order), *(mark for mark, is_set in marks.items() if is_set)])

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """BLEU-n in percent."""
        add = 1.0 if self.smoothing == "add1" else 0.0
        return self._cumulative(sums, np.array(self.weights), pad_short=self.variant == "nltk", add=add)

    def settings(self) -> Mapping[str, object]:
        """Adds variant, weights and smoothing."""
        weights = ",".join(f"{w:.4g}" for w in self.weights)
        return {**super().settings(), "variant": self.variant, "weights": weights, "smooth": self.smoothing}


class AverageBLEU(OverlapMetric):
    """Mean of cumulative corpus BLEU-1, -2, -3 and -4 (Rashkin et al. 2018): 0 to 100, higher is better.

    Args:
        lowercase: Compare lower-cased tokens; the paper does not.
        tokenizer: Name of what made the tokens.
        unknown: A token that never matches when it stands in a reference.

    Example:
        >>> metric = AverageBLEU()
        >>> metric.update(["a b c e"], ["a b c d"])
        >>> round(metric.compute().value, 2)
        52.18
    """

    name = "bleu_avg"

    def __init__(self, lowercase: bool = False, tokenizer: str = "space", unknown: str | None = None) -> None:
        super().__init__(4, lowercase, tokenizer, unknown)

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """Mean over the four orders, in percent."""
        return np.mean(list(self._by_order(sums)), axis=0)

    def parts_of(self, sums: np.ndarray) -> dict[str, float]:
        """Adds the four scores."""
        scores = {f"bleu_{n}": float(value) for n, value in enumerate(self._by_order(sums), start=1)}
        return {**scores, **super().parts_of(sums)}

    def _by_order(self, sums: np.ndarray) -> list[np.ndarray]:
        out = []
        for n in range(1, 5):
            inner = BLEU(n)
            keep = [self.columns.index(column) for column in inner.columns]
            out.append(inner.value_of(sums[..., keep]))
        return out


class SentenceBLEU(OverlapMetric):
    """Mean of BLEU over single pairs (EmpDG: BLEU-4): 0 to 100 percent, higher is better.

    Unsmoothed, a reply without a match of the highest order scores 0, and so does one with fewer tokens than
    that; the share of such items is the part ``zero_share``.

    Args:
        smoothing: ``none``; ``add1``, see the module; or ``m7`` for method 7 of Chen & Cherry (2014) as nltk
            has it (needs nltk).
        lowercase: Compare lower-cased tokens.
        tokenizer: Name of what made the tokens.
        max_order: n of BLEU-n.

    Raises:
        ConfigError: Unknown smoothing.

    Example:
        >>> metric = SentenceBLEU()
        >>> metric.update(["a b c d", "x"], ["a b c d", "y"])
        >>> metric.compute().value
        50.0
    """

    def __init__(
        self,
        smoothing: Literal["none", "add1", "m7"] = "none",
        lowercase: bool = False,
        tokenizer: str = "space",
        max_order: int = 4,
    ) -> None:
        super().__init__(max_order, lowercase, tokenizer)
        if smoothing not in ("none", "add1", "m7"):
            raise ConfigError(f"unknown smoothing {smoothing!r}; accepted: none, add1, m7.")
        self.smoothing = smoothing
        self.name = f"bleu_sent_{smoothing}" + ("" if max_order == 4 else f"_{max_order}")
        self.columns = ("bleu", "zero", "n_items")

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """Mean of the items' scores in percent."""
        return sums[..., 0] / sums[..., 2]

    def settings(self) -> Mapping[str, object]:
        """Adds the smoothing."""
        return {**super().settings(), "smooth": self.smoothing}

    def parts_of(self, sums: np.ndarray) -> dict[str, float]:
        """Share of items that score 0, as a fraction."""
        return {"zero_share": float(sums[1] / sums[2])}

    def _rows(self, hyps: list[list[str]], refs: list[list[str]]) -> np.ndarray:
        weights = (1 / self.max_order,) * self.max_order
        if self.smoothing == "m7":
            scores = 100 * np.array([_nltk_method7(h, r, weights) for h, r in zip(hyps, refs, strict=True)])
        else:
            add = 1.0 if self.smoothing == "add1" else 0.0
            scores = np.nan_to_num(self._cumulative(super()._rows(hyps, refs), np.array(weights), add=add))
        return np.stack([scores, scores == 0, np.ones(len(hyps))], axis=1)


def _nltk_method7(hypothesis: list[str], reference: list[str], weights: tuple[float, ...]) -> float:
    try:
        from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
    except ImportError as error:
        raise MissingDependencyError("bleu_sent_m7 needs nltk: pip install 'empatheia[score]'") from error
    if not hypothesis or not reference:
        return 0.0
    smoothing = SmoothingFunction().method7
    score: Any = sentence_bleu([reference], hypothesis, weights, smoothing_function=smoothing)
    return float(score)


bleu_corpus_1, bleu_corpus_2, bleu_corpus_3, bleu_corpus_4 = (partial(BLEU, n) for n in (1, 2, 3, 4))
bleu_corpus_4_lc = partial(BLEU, 4, lowercase=True)
bleu_nltk_1, bleu_nltk_2, bleu_nltk_3, bleu_nltk_4 = (partial(BLEU, n, "nltk") for n in (1, 2, 3, 4))
bleu_nltk_3_weighted = partial(BLEU, 3, "nltk", (0.333, 0.333, 0.333))
bleu_corpus_2_add1 = partial(BLEU, 2, smoothing="add1")
bleu_sent_none, bleu_sent_none_2 = partial(SentenceBLEU, "none"), partial(SentenceBLEU, "none", max_order=2)
bleu_sent_add1_2 = partial(SentenceBLEU, "add1", max_order=2)
bleu_sent_m7 = partial(SentenceBLEU, "m7")
