"""Which words are alike: a class and a short vector for some 15,000 English words, in one file of the package.

They let the classifier read a word that no training text holds like its neighbours. Made once, by
``python -m empatheia.care.word_vectors``, from what the sentence encoder all-MiniLM-L6-v2 (Apache-2.0; the extra
``encoder``) says of each word alone: principal components without the mean, eight bits each, and 600 classes by
k-means. Reading the file needs numpy alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from empatheia.errors import CheckpointError, MissingDependencyError
from empatheia.reading import read_record
from empatheia.resources import resolve_model
from empatheia.resources.arrays import load_arrays
from empatheia_research.text.vectors import distil_vectors

WORDS = Path(__file__).parent / "data" / "words.safetensors"
WIDTH = 48
CLASSES = 600
KNOWN = 15_000
_SCALE = 127.0


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
        total = self.weights[places] @ (self.vectors[places].astype(np.float32) / _SCALE)
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


def _known(texts: Sequence[Sequence[str]], pieces: Sequence[str]) -> list[str]:
    """The words that get a vector: those of the texts that are there twice, the commonest first, then the encoder's."""
    counts = Counter(word for words in texts for word in words)
    own = [word for word, n in counts.most_common() if n >= 2]
    others = [piece for piece in pieces if len(piece) > 1]
    return [word for word in dict.fromkeys([*own, *others]) if word.isascii() and word.isalpha()][:KNOWN]


def make(texts: Sequence[Sequence[str]], path: Path = WORDS) -> None:
    """Writes the file anew.

    Args:
        texts: Tokens of texts: their words come first, and are weighed by how rare they are.
        path: Where to.

    Raises:
        MissingDependencyError: scikit-learn is not installed.
        MissingResourceError: The encoder is not on this machine.
    """
    try:
        from sklearn.cluster import KMeans
    except ImportError as error:
        raise MissingDependencyError(
            "making word vectors needs scikit-learn: pip install 'empatheia[topics]'. Using them does not."
        ) from error
    from safetensors.numpy import save_file

    folder = resolve_model("minilm")
    shares = Counter(word for words in texts for word in set(words))
    vocabulary = read_record(folder / "tokenizer.json")["model"]["vocab"]
    words = _known(texts, sorted(vocabulary, key=vocabulary.get))
    vectors = distil_vectors(folder, words, width=WIDTH)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-9
    make: Any = KMeans  # its annotations allow n_init no number
    classes = make(CLASSES, n_init=1, max_iter=20, random_state=0).fit_predict(vectors)
    rarity = np.log((len(texts) + 1.0) / (np.asarray([shares[word] for word in words]) + 1.0))
    save_file(
        {
            "words": np.frombuffer("\n".join(words).encode(), dtype=np.uint8),
            "classes": classes.astype(np.uint16),
            "vectors": np.round(vectors * _SCALE).astype(np.int8),
            "weights": rarity.astype(np.float16),
        },
        str(path),
    )


def main() -> None:
    """Words of the training texts first, then those of the encoder."""
    from empatheia.care.normalising import tokens_of
    from empatheia_research.care.training import everyday_texts, read_texts

    make([[token.text for token in tokens_of(one.text)] for one in [*read_texts(), *everyday_texts()]])


if __name__ == "__main__":
    main()
