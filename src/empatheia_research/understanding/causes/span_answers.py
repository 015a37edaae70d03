"""From start and end scores to one answer: n-best spans (Poria et al. 2021's settings), or the best expected overlap.

The published answer is the span with the largest ``start + end``. The metric F1_pos counts shared words, though, so the
joint form answers with the span whose expected F1 under the model's own distribution over spans is largest (minimum
Bayes risk; Kumar and Byrne 2004 for translation).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

N_LIKELY = 60


def n_best(
    start: np.ndarray, end: np.ndarray, allowed: np.ndarray, n: int = 20, longest: int = 200
) -> list[tuple[float, int, int]]:
    """The best spans as (start score + end score, first piece, last piece), best first.

    Args:
        start: Score of each piece as the first. Shape: (n_pieces,).
        end: Score of each piece as the last. Shape: (n_pieces,).
        allowed: True where an answer may lie. Shape: (n_pieces,).
        n: Only the ``n`` best starts and the ``n`` best ends are combined, and ``n`` spans returned.
        longest: Most pieces in an answer.

    >>> scores = np.array([0.0, 5.0, 1.0])
    >>> n_best(scores, scores[::-1], np.array([False, True, True]))[0]
    (10.0, 1, 1)
    """
    places = np.flatnonzero(allowed)
    starts = places[np.argsort(-start[places], kind="stable")[:n]]
    ends = places[np.argsort(-end[places], kind="stable")[:n]]
    spans = [(float(start[s] + end[e]), int(s), int(e)) for s in starts for e in ends if s <= e < s + longest]
    return sorted(spans, key=lambda span: (-span[0], span[1], span[2]))[:n]


def best_overlap(start: np.ndarray, end: np.ndarray, longest: int = 200) -> tuple[int, int, float]:
    """The span with the largest expected F1 of shared pieces when spans have probability ~ exp(start + end).

    The expectation runs over the 60 most probable spans.

    Args:
        start: Log-score of each piece of one turn as the first. Shape: (n_pieces,), at least one.
        end: Likewise as the last. Shape: (n_pieces,).
        longest: Most pieces in an answer.

    Returns:
        First piece, last piece, expected F1 in [0, 1].

    >>> best_overlap(np.log([0.98, 0.01, 0.01]), np.log([0.01, 0.01, 0.98]))[:2]
    (0, 2)
    """
    n = len(start)
    s, e = np.triu_indices(n)
    kept = e - s < longest
    s, e = s[kept], e[kept]
    scores = start[s] + end[e]
    likely = np.argsort(-scores, kind="stable")[:N_LIKELY]
    weights = np.exp(scores[likely] - scores[likely[0]])
    weights /= weights.sum()
    shared = np.minimum(e[:, None], e[likely]) - np.maximum(s[:, None], s[likely]) + 1  # (n_spans, n_likely)
    sizes = (e - s + 1)[:, None] + (e[likely] - s[likely] + 1)
    expected = (2 * np.clip(shared, 0, None) / sizes) @ weights  # (n_spans,)
    best = int(np.argmax(expected))
    return int(s[best]), int(e[best]), float(min(1.0, expected[best]))


def whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    """The range stretched to white space on both sides and stripped of it; (0, 0) when nothing is left.

    >>> whole_words("ate the cake .", 5, 10)
    (4, 12)
    """
    if start >= end:
        return 0, 0
    while start > 0 and not text[start - 1].isspace() and not text[start].isspace():
        start -= 1
    while end < len(text) and not text[end].isspace() and not text[end - 1].isspace():
        end += 1
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return (start, end) if start < end else (0, 0)


def place_of(offset: int, texts: Sequence[str]) -> tuple[int, int]:
    """Turn and character within it of an offset into the turns joined by single spaces.

    The joining space belongs to the turn before it.

    >>> place_of(4, ["ab", "cd"])
    (1, 1)
    """
    for turn, text in enumerate(texts):
        if offset <= len(text):
            return turn, offset
        offset -= len(text) + 1
    return len(texts) - 1, len(texts[-1])
