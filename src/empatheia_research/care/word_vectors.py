"""Makes the file of :mod:`empatheia.care.word_vectors`: ``python -m empatheia_research.care.word_vectors``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from empatheia.care.normalising import tokens_of
from empatheia.care.word_vectors import SCALE, WIDTH, WORDS
from empatheia.errors import MissingDependencyError
from empatheia.reading import read_record
from empatheia.resources import resolve_model
from empatheia_research.care.training import everyday_texts, read_texts
from empatheia_research.text.vectors import distil_vectors

CLASSES = 600
KNOWN = 15_000


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
            "vectors": np.round(vectors * SCALE).astype(np.int8),
            "weights": rarity.astype(np.float16),
        },
        str(path),
    )


def main() -> None:
    """Words of the training texts first, then those of the encoder."""
    make([[token.text for token in tokens_of(one.text)] for one in [*read_texts(), *everyday_texts()]])


if __name__ == "__main__":
    main()
