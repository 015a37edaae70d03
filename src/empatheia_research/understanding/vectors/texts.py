"""Texts to unit vectors: any Hugging Face encoder with mean pooling, or hashed words where there is none.

``SentenceVectors`` gives the vectors of sentence-transformers models that pool by the mean (Reimers and Gurevych 2019);
``WordVectors`` is tf-idf over hashed word stems (Weinberger et al. 2009): it needs no weights and sees no synonyms.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from empatheia.analysis.questions import is_candidate
from empatheia.errors import CheckpointError, ConfigError, MissingResourceError
from empatheia.reading import read_array
from empatheia.resources import file_sha256, resolve_model
from empatheia.text.batching import BucketBatchSampler
from empatheia.text.stems import stem
from empatheia_research.understanding.fingerprints import fingerprint_of

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

WORDS = "words"
"""Name of the encoder that needs no weights."""
WEIGHTS = (
    "*.safetensors",
    "pytorch_model*.bin",
    "config.json",
    "tokenizer*.json",
    "vocab*",
    "merges.txt",
    "spiece.model",
)
_MOST_PIECES = 256
_IDF_FILE = "idf.npy"


class Vectors(Protocol):
    """Texts to unit vectors.

    Attributes:
        name: As it is found again: a name, or the whole path of a folder.
        width: Of a vector.
    """

    name: str
    width: int

    def fingerprint(self) -> str:
        """A hash of everything the vectors depend on."""
        ...

    def encode(
        self, texts: Sequence[str], *, batch_size: int = 32, progress: Callable[[int], None] | None = None
    ) -> np.ndarray:
        """Unit vectors; zeros for a text without content.

        Args:
            texts: Any.
            batch_size: Most texts in one pass.
            progress: Called with the number of texts just finished.

        Returns:
            float32. Shape: (n_texts, width).
        """
        ...

    def save(self, folder: Path) -> None:
        """Writes what was fitted to the table, if anything."""
        ...


class SentenceVectors:
    """The mean of an encoder's last states over the text's pieces, scaled to length 1.

    The encoder runs in double precision: in single precision a vector depends in its last bits on the other texts of
    the batch, and so would ranks and printed scores.

    Args:
        model: Encoder; put into evaluation mode.
        tokenizer: Its own.
        name: For records.
        weights: Hash of its files.
        device: Where it runs; None = the processor.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        name: str,
        weights: str,
        device: str | torch.device | None = None,
    ) -> None:
        placed: Any = model.eval()
        self.model: PreTrainedModel = placed.to(usable_device(device))
        if self.model.device.type != "mps":  # has no double precision
            self.model = self.model.double()
        self.tokenizer = tokenizer
        self.name = name
        self.width = int(model.config.hidden_size)
        self._weights = weights
        limit = getattr(model.config, "max_position_embeddings", None) or _MOST_PIECES
        offset = 2 if model.config.model_type in ("roberta", "xlm-roberta", "camembert", "mpnet") else 0
        self.max_pieces = min(tokenizer.model_max_length, limit - offset, _MOST_PIECES)

    @classmethod
    def load(cls, folder: str | Path, device: str | torch.device | None = None) -> SentenceVectors:
        """From a folder or a name such as ``minilm``.

        Raises:
            MissingResourceError: There is no such encoder on this machine.
            CheckpointError: The folder holds no encoder, or lacks weights.
        """
        from empatheia_research.understanding.encoders import load_encoder, plain_encoder

        path = resolve_model(folder)
        with _quiet():
            model, tokenizer = load_encoder(str(path))
        model = plain_encoder(model)
        name = str(path.resolve()) if Path(folder).expanduser().is_dir() else str(folder)
        return cls(model, tokenizer, name, weights_fingerprint(path), device)

    def fingerprint(self) -> str:
        """Of the files and the pooling."""
        return fingerprint_of(kind="sentences", weights=self._weights, pooling="mean", max_pieces=self.max_pieces)

    def encode(
        self, texts: Sequence[str], *, batch_size: int = 32, progress: Callable[[int], None] | None = None
    ) -> np.ndarray:
        """See :class:`Vectors`; equal texts are read once, like lengths together."""
        import torch

        from empatheia_research.layers.pooling import mean_pool

        places = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        out = np.zeros((len(places), self.width), np.float32)
        distinct = list(places)
        rows = self.tokenizer(distinct, truncation=True, max_length=self.max_pieces)["input_ids"] if distinct else []
        sampler = BucketBatchSampler([len(row) for row in rows], batch_size, shuffle=False)
        for batch in sampler.batches():
            padded = self.tokenizer.pad({"input_ids": [rows[i] for i in batch]}, return_tensors="pt")
            ids, mask = (padded[key].to(self.model.device) for key in ("input_ids", "attention_mask"))
            with torch.inference_mode():
                states = self.model(input_ids=ids, attention_mask=mask).last_hidden_state  # (batch, source, width)
                pooled = mean_pool(states, mask.bool())  # (batch, width)
                out[batch] = torch.nn.functional.normalize(pooled, dim=-1).float().cpu().numpy()
            if progress is not None:
                progress(len(batch))
        if progress is not None and len(texts) > len(distinct):
            progress(len(texts) - len(distinct))
        return out[[places[text] for text in texts]]

    def save(self, folder: Path) -> None:
        """Nothing is fitted: the encoder stays where it is."""


class WordVectors:
    """``log(1 + tf) * idf`` of word stems, hashed into a fixed number of places with a sign.

    Args:
        width: Places.
        idf: Shape: (width,); None = not fitted yet, all 1.
    """

    name = WORDS

    def __init__(self, width: int = 1024, idf: np.ndarray | None = None) -> None:
        self.width = width
        self.idf = np.ones(width, np.float32) if idf is None else np.asarray(idf, np.float32)

    @classmethod
    def open(cls, folder: Path) -> WordVectors:
        """What :meth:`save` wrote.

        Raises:
            CheckpointError: It is not there or damaged.
        """
        try:
            idf = read_array(folder / _IDF_FILE)
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{folder / _IDF_FILE}: {error}. Build the index again.") from None
        return cls(len(idf), idf)

    def fit(self, texts: Sequence[str]) -> WordVectors:
        """Sets ``idf = log((1 + n) / (1 + df)) + 1`` from the texts of a table."""
        df = np.zeros(self.width)
        for text in texts:
            df[list({place for place, _ in map(self._place, _stems(text))})] += 1
        self.idf = (np.log((1 + len(texts)) / (1 + df)) + 1).astype(np.float32)
        return self

    def fingerprint(self) -> str:
        """Of the weights of the words."""
        return fingerprint_of(kind=WORDS, width=self.width, idf=zlib.crc32(self.idf.tobytes()))

    def encode(
        self, texts: Sequence[str], *, batch_size: int = 32, progress: Callable[[int], None] | None = None
    ) -> np.ndarray:
        """See :class:`Vectors`."""
        out = np.zeros((len(texts), self.width), np.float32)
        for row, text in zip(out, texts, strict=True):
            for part, times in Counter(_stems(text)).items():
                place, sign = self._place(part)
                row[place] += sign * np.log1p(times) * self.idf[place]
        if progress is not None:
            progress(len(texts))
        return out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-12)

    def save(self, folder: Path) -> None:
        """Writes the weights of the words."""
        np.save(folder / _IDF_FILE, self.idf)

    def _place(self, stem: str) -> tuple[int, int]:
        number = zlib.crc32(stem.encode("utf-8", "replace"))
        return number // 2 % self.width, 1 if number % 2 else -1


def usable_device(device: str | torch.device | None) -> torch.device:
    """A torch device that is here; None = the processor.

    Raises:
        ConfigError: torch does not know it, or this machine has none.
    """
    import torch

    try:
        found = torch.device(device or "cpu")
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).split("\n")[0].split(". ")[0]
        raise ConfigError(
            f"device {str(device)!r} cannot be used: {reason}. Use cpu, or cuda where there is one."
        ) from None
    return found


def load_vectors(name: str | Path, device: str | torch.device | None = None) -> SentenceVectors | WordVectors:
    """An encoder by folder or name; ``words`` is the one without weights.

    Raises:
        MissingResourceError: There is no such encoder on this machine.
        CheckpointError: The folder holds no encoder, or lacks weights.
    """
    if str(name) == WORDS:
        return WordVectors()
    try:
        return SentenceVectors.load(name, device)
    except MissingResourceError as error:
        raise MissingResourceError(f"{error} Or use the encoder {WORDS!r}, which needs no weights.") from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the library's report on the pooler that mean pooling does not use."""
    from transformers.utils import logging

    level, has_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if has_bars:
            logging.enable_progress_bar()


def weights_fingerprint(folder: Path) -> str:
    """A hash of a model folder's weights, configuration and tokenizer."""
    files = sorted({path for pattern in WEIGHTS for path in folder.glob(pattern) if path.is_file()})
    return fingerprint_of(**{path.name: file_sha256(path) for path in files})


def _stems(text: str) -> list[str]:
    words = [word.strip(".,!?\"'()") for word in text.lower().split()]
    return [stem(word) for word in words if is_candidate(word) and not word.startswith("person")]
