"""One vector a text from a second, frozen encoder: h_c of the ensembles of Rashkin et al. 2018.

Published: DeepMoji's 2,304 columns (Ensem-DM), DeepMoji after fine-tuning (Ensem-DM+), a Transformer trained on tags of
a social-media corpus (Ensem-Tran). Here: any Hugging Face encoder or a classifier trained here, by folder or name (the
mean of its last states, scaled to length 1), or a file of features. What stands in for what is for the recipe's note.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from empatheia.errors import CheckpointError, ConfigError, DataError, MissingResourceError
from empatheia.reading import Json, parse_json
from empatheia.records.dialogue import Example, Turn
from empatheia.resources.arrays import load_described
from empatheia_research.text.collation import EncodedExample
from empatheia_research.text.tokenizer import DialogueTokenizer
from empatheia_research.understanding.vectors.cache import CachedVectors
from empatheia_research.understanding.vectors.texts import SentenceVectors

READS = ("last", "context")


class ExternalVectors:
    """Vectors of contexts (and, in retrieval, of replies).

    Args:
        tokenizer: Not read: the second encoder has its own.
        encoder: Folder or name; None = there is no second encoder, or only a file.
        path: A safetensors file with ``vectors`` (n, d) and, in its metadata, ``keys``: a JSON list of n keys, each
            ``dialogue_id#turn_index`` of a reply (the vector is its context's) or the text itself. Looked into first.
        reads: Of a context the ``last`` turn (as the old fields of the corpus suggest), or the whole ``context``.
        cache: SQLite file that keeps the encoder's vectors from run to run.

    Raises:
        ConfigError: ``reads`` is unknown.
        MissingResourceError: There is no such encoder or file.
    """

    features: ClassVar[tuple[str, ...]] = ("external_vectors",)

    def __init__(
        self,
        tokenizer: DialogueTokenizer | None = None,
        encoder: str | None = None,
        path: str | None = None,
        reads: str = "last",
        cache: str | None = None,
    ) -> None:
        if reads not in READS:
            raise ConfigError(f"external_vectors: reads={reads!r}; accepted: {', '.join(READS)}.")
        self._settings = {"encoder": encoder, "path": path, "reads": reads, "cache": cache}
        self.reads = reads
        self.table: dict[str, np.ndarray] = {} if path is None else read_features(path)
        self.encoder: SentenceVectors | CachedVectors[np.ndarray] | None = None
        if encoder is not None:
            own = SentenceVectors.load(encoder)
            if own.model.device.type == "cpu":
                own.model.float()  # a learnt map follows: the last bits are not worth twice the time
            self.encoder = own if cache is None else CachedVectors(own, cache)

    @property
    def width(self) -> int:
        """Columns; 0 without a second encoder."""
        if self.encoder is not None:
            return self.encoder.width
        return len(next(iter(self.table.values()))) if self.table else 0

    def settings(self) -> dict[str, Json]:
        """What makes an equal one; empty without a second encoder."""
        return {name: value for name, value in self._settings.items() if value is not None} if self.width else {}

    def of_contexts(self, contexts: Sequence[Sequence[Turn]], keys: Sequence[str] = ()) -> np.ndarray:
        """Vectors of contexts; ``keys`` are looked up in the file first. Shape: ``(n, width)``, float32."""
        texts = [turns[-1].text if self.reads == "last" else "\n".join(t.text for t in turns) for turns in contexts]
        return self.of_texts(texts, keys)

    def of_texts(self, texts: Sequence[str], keys: Sequence[str] = ()) -> np.ndarray:
        """Vectors of texts. Shape: ``(n, width)``, float32.

        Raises:
            DataError: A text is not in the file and there is no encoder.
        """
        out = np.zeros((len(texts), self.width), dtype=np.float32)
        missing: list[int] = []
        for i, text in enumerate(texts):
            row = self.table.get(keys[i]) if keys else None
            row = self.table.get(text) if row is None else row
            if row is None:
                missing.append(i)
            else:
                out[i] = row
        if missing and self.width:
            if self.encoder is None:
                raise DataError(
                    f"external_vectors: {len(missing)} of {len(texts)} texts are not in {self._settings['path']}, first"
                    f" {texts[missing[0]][:60]!r}; give the encoder that made the file, too."
                )
            out[missing] = self.encoder.encode([texts[i] for i in missing])
        return out

    def add(self, examples: Sequence[Example], items: Sequence[EncodedExample]) -> None:
        """The vector of each context."""
        if not self.width:
            return
        keys = [f"{example.dialogue_id}#{example.turn_index}" for example in examples]
        for item, row in zip(items, self.of_contexts([e.context for e in examples], keys), strict=True):
            item.extra["external_vectors"] = row

    def collate(self, items: Sequence[EncodedExample], pad_id: int, width: int) -> dict[str, Tensor]:
        """``external_vectors``. Shape: ``(batch, width)``, float32; no column without a second encoder."""
        if not self.width:
            return {"external_vectors": torch.zeros(len(items), 0)}
        nothing = np.zeros(self.width, dtype=np.float32)
        rows = np.stack([item.extra.get("external_vectors", nothing) for item in items])
        return {"external_vectors": torch.from_numpy(rows)}


def read_features(path: str | Path) -> dict[str, np.ndarray]:
    """Rows of a feature file by key.

    Raises:
        MissingResourceError: There is no such file.
        DataError: It lacks ``vectors`` or ``keys``, or their numbers differ.
    """
    if not Path(path).is_file():
        raise MissingResourceError(f"no feature file at {str(path)!r}; give a safetensors file with vectors and keys.")
    try:
        arrays, told = load_described(Path(path))
        vectors, keys = arrays["vectors"].astype(np.float32), parse_json(told["keys"])
    except (CheckpointError, KeyError, ValueError) as problem:
        raise DataError(
            f"{path}: no feature file ({problem}); needed: `vectors` and, in its metadata, `keys`."
        ) from None
    if vectors.ndim != 2 or len(keys) != len(vectors):
        raise DataError(f"{path}: {len(keys)} keys with vectors of shape {vectors.shape}; accepted: one row a key.")
    return dict(zip(keys, vectors, strict=True))
