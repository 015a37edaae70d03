"""Ready replies to choose from: which texts may be candidates, and the index over their vectors.

The candidates of Rashkin et al. 2018: the targets of the training split, then other corpora, each text once and only
short ones (``candidate_texts`` does what their released code does).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from empatheia.errors import CheckpointError, DataError
from empatheia.reading import read_array, read_json
from empatheia.text.words import tokenize_words

TEXTS, VECTORS = "candidates.json", "candidates.npy"
MOST = 1_000_000


def candidate_texts(
    texts: Iterable[str],
    *,
    max_words: int = 20,
    is_known: Callable[[str], bool] | None = None,
    drop_quotes: bool = False,
    limit: int = MOST,
    seen: set[str] | None = None,
) -> list[str]:
    """The texts that may be candidates, in order, each once; texts of the same words are one.

    Args:
        texts: Of one source.
        max_words: Longest, in words of the ``rashkin`` rules.
        is_known: False for a text with an unknown word, which is left out; None = all are known.
        drop_quotes: Leave out texts that begin with ``&gt``. The released code means to, but for word models its test
            is always false.
        limit: Most candidates, those in ``seen`` included.
        seen: Words of the candidates of earlier sources, joined by blanks; extended in place.
    """
    seen = set() if seen is None else seen
    kept = []
    for text in texts:
        text = text.strip()
        if len(seen) >= limit:
            break
        if not text or "&lt" in text or (drop_quotes and text.startswith("&gt")):
            continue
        words = [word.text for word in tokenize_words(text, "rashkin")]
        if len(words) > max_words or (key := " ".join(words)) in seen or (is_known is not None and not is_known(text)):
            continue
        seen.add(key)
        kept.append(text)
    return kept


class ReplyIndex:
    """Candidates and their vectors; the best by dot product, exactly.

    Vectors are rounded to half precision, as they are saved, so that an index answers alike before and after.

    Args:
        texts: Candidates.
        vectors: In the same order. Shape: ``(n, width)``, floating point.

    Raises:
        DataError: There is none, the numbers differ, or half precision cannot hold a number.
    """

    def __init__(self, texts: Sequence[str], vectors: np.ndarray) -> None:
        if not len(texts) or len(texts) != len(vectors):
            raise DataError(f"{len(texts)} candidates with {len(vectors)} vectors; accepted: one each, at least one.")
        self.texts = list(texts)
        with np.errstate(over="ignore"):
            self.vectors = np.asarray(vectors).astype(np.float16).astype(np.float32)
        if not np.isfinite(self.vectors).all():
            largest = float(np.abs(np.asarray(vectors)).max())
            raise DataError(f"vectors of candidates reach {largest:g}; accepted: numbers within 65504.")

    def __len__(self) -> int:
        return len(self.texts)

    def best(self, queries: np.ndarray, k: int = 1, block: int = 256) -> tuple[np.ndarray, np.ndarray]:
        """The k best candidates of each query; of equal ones the earlier.

        Args:
            queries: Context vectors. Shape: ``(n_queries, width)``.
            k: How many, at most the number of candidates.
            block: Queries compared at once.

        Returns:
            Indices and scores, best first. Shape of both: ``(n_queries, k)``.
        """
        k = min(k, len(self))
        places = np.zeros((len(queries), k), dtype=np.int64)
        scores = np.zeros((len(queries), k), dtype=np.float32)
        for start in range(0, len(queries), block):
            table = np.asarray(queries[start : start + block], dtype=np.float32) @ self.vectors.T
            if k == 1:
                found = table.argmax(axis=1)[:, None]
            else:
                found = np.argsort(-table, axis=1, kind="stable")[:, :k]
            places[start : start + block] = found
            scores[start : start + block] = np.take_along_axis(table, found, axis=1)
        return places, scores

    def save(self, folder: Path) -> None:
        """Writes the texts (JSON) and the vectors (half precision) into a folder."""
        (folder / TEXTS).write_text(json.dumps(self.texts, ensure_ascii=False), encoding="utf-8")
        np.save(folder / VECTORS, self.vectors.astype(np.float16))

    @classmethod
    def load(cls, folder: Path) -> ReplyIndex:
        """Reads what :meth:`save` wrote.

        Raises:
            CheckpointError: A file is missing or damaged.
        """
        try:
            texts = read_json(folder / TEXTS)
            return cls(texts, read_array(folder / VECTORS))
        except (OSError, TypeError, ValueError, DataError) as problem:
            raise CheckpointError(
                f"the candidates in {folder} cannot be read ({problem}); train the retrieval model again."
            ) from None
