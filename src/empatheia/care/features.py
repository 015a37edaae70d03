"""What the small classifier reads of a text.

Hashed: words, pairs and triples of them, letters inside words, lexicon hits, and the same runs over classes of words.
Not hashed: the mean vector of the words. Each sort has a stretch of the numbers of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from zlib import crc32

import numpy as np

from empatheia.care.word_vectors import WIDTH, WordVectors, shipped_word_vectors

BUCKETS = 1 << 15
"""Of words, letters and lexicon hits; as many again of classes."""
FEATURES = 2 * BUCKETS + WIDTH
LETTERS = (3, 4, 5)
MAX_TOKENS = 400
"""Of one window; longer texts are read window by window."""
_WORD_SHARE = 1.0
_LETTER_SHARE = 0.6
_LEXICON_SHARE = 0.35
_CLASS_SHARE = 1.0
_SHORTEST = 6.0


def word_features(words: Sequence[str]) -> set[str]:
    """Single words, pairs, triples, pairs with one word between; ends of the text are words too.

    >>> sorted(word_features(["so", "sad"]))[:3]
    ['1so', '2so sad', '2sad >']
    """
    padded = ["<", *words, ">"]
    out = {"1" + word for word in words}
    out.update("2" + " ".join(pair) for pair in pairwise(padded))
    out.update("3" + " ".join(three) for three in zip(padded, padded[1:], padded[2:], strict=False))
    out.update("4" + " ".join(pair) for pair in zip(padded, padded[2:], strict=False))
    return out


def _letters_of(word: str) -> list[str]:
    marked = f"<{word[:24]}>"
    return ["c" + marked[i : i + n] for n in LETTERS for i in range(len(marked) - n + 1)]


@lru_cache(maxsize=1 << 14)
def _letter_codes(word: str) -> frozenset[int]:
    """Numbers of a word's letter features; the same few thousand words come again and again."""
    return frozenset(map(_code, _letters_of(word)))


def _code(name: str) -> int:
    return crc32(name.encode("utf-8", "replace"))


def class_features(words: Sequence[str], vectors: WordVectors) -> set[str]:
    """Runs over classes of words, and pairs of a word and the class beside it."""
    classes = [vectors.class_of(word) for word in words]
    padded, named = ["<", *classes, ">"], ["<", *words, ">"]
    out = {"1" + name for name in classes}
    out.update("2" + " ".join(pair) for pair in pairwise(padded))
    out.update("3" + " ".join(three) for three in zip(padded, padded[1:], padded[2:], strict=False))
    out.update("4" + " ".join(pair) for pair in zip(padded, padded[2:], strict=False))
    out.update("5" + " ".join(pair) for pair in zip(named, padded[1:], strict=False))
    out.update("6" + " ".join(pair) for pair in zip(padded, named[1:], strict=False))
    return out


def feature_row(
    words: Sequence[str], lexicon: Iterable[str] = (), vectors: WordVectors | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers and values of the features of one text.

    Args:
        words: Its tokens.
        lexicon: Names of what the lexicon found.
        vectors: None = the shipped ones.

    Returns:
        Numbers below :data:`FEATURES`, each once, ascending, and their values. Shapes: ``(n,)``, ``(n,)``.
    """
    vectors = vectors or shipped_word_vectors()
    words = list(words)[:MAX_TOKENS]
    places, values = [], []
    for share, first, codes in (
        (_WORD_SHARE, 0, set(map(_code, word_features(words)))),
        (_LETTER_SHARE, 0, set().union(*map(_letter_codes, set(words)))),
        (_LEXICON_SHARE, 0, {_code("L" + name) for name in lexicon}),
        (_CLASS_SHARE, BUCKETS, set(map(_code, class_features(words, vectors)))),
    ):
        if codes:
            each = share if share == _LEXICON_SHARE else share / max(_SHORTEST, len(codes)) ** 0.5
            places.append(np.fromiter(codes, dtype=np.int64, count=len(codes)) % BUCKETS + first)
            values.append(np.full(len(codes), each))
    places.append(np.arange(2 * BUCKETS, FEATURES))
    values.append(vectors.mean(words))
    numbers, of = np.unique(np.concatenate(places), return_inverse=True)
    return numbers, np.bincount(of, np.concatenate(values)).astype(np.float32)
