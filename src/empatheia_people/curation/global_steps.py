"""The steps that see all dialogues: duplicates, the cap on frequent endings, the most emotional ones.

They see numbers only, a few bytes a dialogue: phase A, in each shard, makes hashes and scores; phase B, here, decides;
and phase C, in each shard again, applies it. Which of several equal dialogues stays is told by a hash of its key, never
by the order of arrival; ties of scores are broken by the keys themselves.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

import numpy as np

_BYTES_A_ROW = 64
"""Of working memory, when rows are sorted by two columns."""
_NOT_WORDS = re.compile(r"[\W_]+")


def hash64(text: str) -> int:
    """64 bits of BLAKE2b; among 9 million texts two equal ones are to be expected once in 500,000 runs."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big")


def ending_of(text: str) -> str:
    """An utterance as the cap counts it: small letters and digits.

    >>> ending_of("I don 't know .") == ending_of("I don't know!")
    True
    """
    return _NOT_WORDS.sub("", text.lower())


def keep_some(
    groups: np.ndarray, order: np.ndarray, most: int, memory: int, among: np.ndarray | None = None
) -> np.ndarray:
    """At most so many of each group, those of the smallest ``order``.

    The work goes over ranges of hashes so small that sorting one fits into the memory.

    Args:
        groups: Hash of what must not be frequent. Shape: (n,), uint64.
        order: Hash that says which stays. Shape: (n,), uint64.
        most: How many of a group may stay.
        memory: Bytes for the work.
        among: Only these are looked at, the others stay out. Shape: (n,), bool; None = all.

    Returns:
        Shape: (n,), bool.

    >>> keep_some(np.array([7, 7, 9], np.uint64), np.array([2, 1, 0], np.uint64), 1, 10**9)
    array([False,  True,  True])
    """
    n = len(groups)
    keep = np.zeros(n, bool)
    n_parts = max(1, -(-n * _BYTES_A_ROW // max(1, memory)))
    shift = np.uint64(64 - 16)
    parts = (groups >> shift).astype(np.uint32) * n_parts >> 16 if n_parts > 1 else None
    for part in range(n_parts):
        chosen = np.arange(n) if parts is None else np.flatnonzero(parts == part)
        if among is not None:
            chosen = chosen[among[chosen]]
        own, rank = groups[chosen], order[chosen]
        sorted_places = np.lexsort((rank, own))
        ranked = own[sorted_places]
        starts = (
            np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]])) if len(ranked) else np.zeros(0, int)
        )
        lengths = np.diff(np.append(starts, len(ranked)))
        places = np.arange(len(ranked)) - np.repeat(starts, lengths)
        keep[chosen[sorted_places[places < most]]] = True
    return keep


def wanted_number(top: int | float, n: int) -> int:
    """How many dialogues a number or a share stands for."""
    return min(n, int(top) if top >= 1 else round(float(top) * n))


def top_threshold(scores: np.ndarray, k: int) -> tuple[float, int]:
    """The ``k``-th largest score, and how many of those that have it belong to the first ``k``.

    >>> top_threshold(np.array([0.5, 0.7, 0.5]), 2)
    (0.5, 1)
    """
    if k < 1 or not len(scores):
        return float("inf"), 0
    if k >= len(scores):
        low = float(scores.min())
        return low, int((scores == low).sum())
    threshold = float(np.partition(scores, len(scores) - k)[len(scores) - k])
    return threshold, k - int((scores > threshold).sum())


def split_of(name: str, shares: Iterable[int]) -> str:
    """``train``, ``valid`` or ``test`` by a hash of a film's or a dialogue's name."""
    parts = list(shares)
    place = hash64(f"split/{name}") % sum(parts)
    for part, share in zip(("train", "valid", "test"), parts, strict=True):
        if place < share:
            return part
        place -= share
    raise AssertionError("a place below the sum of the shares is in one of them")
