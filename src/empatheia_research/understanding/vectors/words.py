"""Vectors of single words for ``coverage_near``: static ones from a file, or those of any encoder.

Stop words and punctuation get zeros, so that nothing is near to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from empatheia.analysis.questions import is_candidate
from empatheia.metrics.coverage import NearCoverage
from empatheia.text.words import tokenize_words
from empatheia_research.text.vectors import load_vectors
from empatheia_research.understanding.vectors.texts import Vectors

STATIC = 0.6
ENCODED = 0.7
"""Least cosine for vectors of an encoder. MiniLM: dog and puppy .80, job and work .78, but dog and cat .66, brother and
sister .65; words that have nothing to do with each other .26 to .39."""


class WordVectors:
    """Words to vectors, each computed once.

    Args:
        source: New words to vectors, zeros for an unknown one. Shape of the answer: ``(n_words, width)``.
        name: For signatures.
        threshold: Least cosine of words that are near, unless another is asked for.
    """

    def __init__(self, source: Callable[[Sequence[str]], np.ndarray], name: str, threshold: float = STATIC) -> None:
        self.source = source
        self.name = name
        self.threshold = threshold
        self._known: dict[str, np.ndarray] = {}

    @classmethod
    def of_encoder(cls, encoder: Vectors) -> WordVectors:
        """Of an encoder, e.g. ``SentenceVectors.load("minilm")``: each word is encoded as a text of its own."""
        return cls(lambda words: encoder.encode(list(words)), encoder.name, ENCODED)

    @classmethod
    def of_file(cls, path: str | Path, texts: Iterable[str]) -> WordVectors:
        """Static vectors (GloVe or fastText text form) of all words in some texts, read once.

        Args:
            path: The file.
            texts: Every reply and target that will be asked about; other words count as unknown.

        Raises:
            MissingResourceError: No such file.
            DataError: It cannot be read, or holds none of the words.
        """
        words = sorted({word.text for text in texts for word in tokenize_words(text, "recec")})
        matrix, _ = load_vectors(path, words)
        rows = dict(zip(words, matrix, strict=True))
        nothing = np.zeros(matrix.shape[1], dtype=np.float32)
        return cls(lambda asked: np.stack([rows.get(word, nothing) for word in asked]), Path(path).name)

    def __call__(self, words: Sequence[str]) -> np.ndarray:
        """Vectors of lower-case words. Shape: ``(n_words, width)``."""
        if new := [word for word in dict.fromkeys(words) if word not in self._known]:
            found = np.asarray(self.source(new), dtype=np.float64)
            kept = np.array([is_candidate(word) for word in new])
            self._known |= dict(zip(new, np.where(kept[:, None], found, 0.0), strict=True))
        return np.stack([self._known[word] for word in words])

    def coverage(self, threshold: float | None = None) -> NearCoverage:
        """A metric that counts a target as taken up by a word this near; name and threshold are in its signature."""
        least = self.threshold if threshold is None else threshold
        return NearCoverage(self, self.name, least, tokenizer="recec")
