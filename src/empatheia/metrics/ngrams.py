"""N-grams of many token lists at once, as integer arrays; BLEU and Distinct are counts over them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from empatheia.errors import DataError

Tokens = Sequence[str]
_KEPT_PAIRS = 20_000  # counts of test sets up to this size are kept: a table asks for them once for every BLEU
_KEPT_ORDER = 4


def as_tokens(metric: str, items: Sequence[str | Tokens], lowercase: bool = False) -> list[list[str]]:
    """Token lists: a string is split at white space, a list is taken as it is.

    Raises:
        DataError: ``items`` is one string, or an item is neither a string nor a list of strings.
    """
    if isinstance(items, str):
        raise DataError(f"{metric}: got one string {items[:40]!r}; accepted: a list of replies.")
    out = []
    for i, item in enumerate(items):
        if isinstance(item, str):
            out.append((item.lower() if lowercase else item).split())
            continue
        if not isinstance(item, Sequence) or not all(isinstance(token, str) for token in item):
            raise DataError(f"{metric}: item {i} is {item!r}; accepted: a string or a list of string tokens.")
        out.append([token.lower() for token in item] if lowercase else list(item))
    return out


def ngram_table(sequences: Sequence[Tokens], max_order: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields, for each order 1..max_order, every n-gram of every sequence; none crosses a border.

    Yields:
        ids: Equal n-grams have equal ids, 0..n_types-1. Shape: (n_ngrams,).
        owners: Index of the sequence each n-gram stands in. Shape: (n_ngrams,).
    """
    codes: dict[str, int] = {}
    flat = [codes.setdefault(token, len(codes)) for sequence in sequences for token in sequence]
    tokens = np.array(flat, dtype=np.int64)
    lengths = np.array([len(sequence) for sequence in sequences], dtype=np.int64)
    owners = np.repeat(np.arange(len(sequences)), lengths)  # (n_tokens,)
    room = np.repeat(np.cumsum(lengths), lengths) - np.arange(len(tokens))  # tokens left here
    ids = tokens
    for order in range(1, max_order + 1):
        starts = np.flatnonzero(room >= order)
        if order > 1:
            keys = ids[starts] * len(codes) + tokens[starts + order - 1]
            ids = np.zeros(len(tokens), dtype=np.int64)
            ids[starts] = np.unique(keys, return_inverse=True)[1]
        yield ids[starts], owners[starts]


def clipped_matches(
    hypotheses: Sequence[Tokens], references: Sequence[Tokens], max_order: int
) -> tuple[np.ndarray, np.ndarray]:
    """Clipped n-gram matches and n-gram totals of each pair (Papineni et al. 2002, 2.1.1; one reference).

    Returns:
        matches: Shape: (n_pairs, max_order).
        totals: N-grams of the hypothesis. Shape: (n_pairs, max_order).
    """
    if max_order > _KEPT_ORDER or len(hypotheses) > _KEPT_PAIRS:
        return _count(hypotheses, references, max_order)
    matches, totals = _kept_counts(tuple(map(tuple, hypotheses)), tuple(map(tuple, references)))
    return matches[:, :max_order].copy(), totals[:, :max_order].copy()


@lru_cache(maxsize=1)
def _kept_counts(hypotheses: tuple[Tokens, ...], references: tuple[Tokens, ...]) -> tuple[np.ndarray, np.ndarray]:
    return _count(hypotheses, references, _KEPT_ORDER)


def _count(hypotheses: Sequence[Tokens], references: Sequence[Tokens], max_order: int) -> tuple[np.ndarray, np.ndarray]:
    """See ``clipped_matches``."""
    n = len(hypotheses)
    matches, totals = np.zeros((n, max_order)), np.zeros((n, max_order))
    for column, (ids, owners) in enumerate(ngram_table([*hypotheses, *references], max_order)):
        n_types = int(ids.max()) + 1 if len(ids) else 1
        of_hypothesis = owners < n
        pairs = (owners % n if n else owners) * n_types + ids  # one key for each (pair, n-gram)
        hyp_keys, hyp_counts = np.unique(pairs[of_hypothesis], return_counts=True)
        ref_keys, ref_counts = np.unique(pairs[~of_hypothesis], return_counts=True)
        shared, in_hyp, in_ref = np.intersect1d(hyp_keys, ref_keys, assume_unique=True, return_indices=True)
        clipped = np.minimum(hyp_counts[in_hyp], ref_counts[in_ref])
        matches[:, column] = np.bincount(shared // n_types, weights=clipped, minlength=n)[:n]
        totals[:, column] = np.bincount(owners[of_hypothesis], minlength=n)[:n]
    return matches, totals
