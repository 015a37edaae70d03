"""Which words are alike: a class and a short vector for some 15,000 English words, in one file of the package.

They let the classifier read a word that no training text holds like its neighbours. Research makes the file, from what
the sentence encoder all-MiniLM-L6-v2 (Apache-2.0) says of each word alone: principal components without the mean, eight
bits each, and 600 classes by k-means. Reading it needs numpy alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from empatheia.errors import CheckpointError
from empatheia.resources.arrays import load_arrays

WORDS = Path(__file__).parent / "data" / "words.safetensors"
WIDTH = 48
SCALE = 127.0
"""What a number of a vector is divided by; it is stored in eight bits."""


@dataclass(frozen=True, slots=True)
class WordVectors:
    """Words with their classes and vectors.

    Attributes:
        places: Word to row.
        classes: Shape: ``(n,)``.
        vectors: In eighths of a byte: divide by 127. Shape: ``(n, WIDTH)``.
        weights: How telling each word is: minus the log of the share of texts it stands in. Shape: ``(n,)``.
    """

    places: dict[str, int]
    classes: np.ndarray
    vectors: np.ndarray
    weights: np.ndarray

    def class_of(self, word: str) -> str:
        """Name of a word's class; ``?`` for an unknown word.

        Args:
            word: A normalised token.
        """
        place = self.places.get(word)
        return "?" if place is None else f"k{self.classes[place]}"

    def mean(self, words: Sequence[str]) -> np.ndarray:
        """Mean vector of the known words, of length 1 (0 if there are none). Shape: ``(WIDTH,)``."""
        places = [place for word in words if (place := self.places.get(word)) is not None]
        if not places:
            return np.zeros(WIDTH, dtype=np.float32)
        total = self.weights[places] @ (self.vectors[places].astype(np.float32) / SCALE)
        return (total / (np.linalg.norm(total) + 1e-6)).astype(np.float32)

    @classmethod
    def load(cls, path: str | Path = WORDS) -> WordVectors:
        """From a file.

        Raises:
            CheckpointError: It is missing or of another form.
        """
        try:
            arrays = load_arrays(Path(path))
            words = arrays["words"].tobytes().decode("utf-8").split("\n")
            found = cls({w: i for i, w in enumerate(words)}, arrays["classes"], arrays["vectors"], arrays["weights"])
        except (CheckpointError, KeyError, ValueError) as error:
            raise CheckpointError(f"the word vectors {path} cannot be read: {error}. Reinstall the package.") from error
        if found.vectors.shape != (len(words), WIDTH):
            raise CheckpointError(f"{path} has the shape {found.vectors.shape}; accepted: {(len(words), WIDTH)}.")
        return found


@lru_cache(maxsize=1)
def shipped_word_vectors() -> WordVectors:
    """The file of the package, read once."""
    return WordVectors.load()
