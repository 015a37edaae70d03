"""Texts to one vector a piece, by any Hugging Face encoder: what BERTScore matches (Zhang et al. 2020, section 3).

The pieces are read as the ``bert-score`` package reads them: the text is stripped, byte-level tokenizers get a blank in
front, and the opening and closing piece of the sequence take part but do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from empatheia.errors import ConfigError
from empatheia.metrics.bertscore import TokenVectors
from empatheia.text.batching import BucketBatchSampler
from empatheia.text.readable import SURROGATES
from empatheia_research.understanding.encoders import special_ids
from empatheia_research.understanding.fingerprints import fingerprint_of
from empatheia_research.understanding.vectors.texts import SentenceVectors

if TYPE_CHECKING:
    import torch

_BYTE_LEVEL = ("roberta", "longformer", "bart", "gpt2")
"""Encoders whose tokenizer cuts a word behind a blank otherwise than one that opens the text."""


class TokenEncoder:
    """The states of one layer over the pieces of a text; see ``SentenceVectors`` for the double precision.

    Args:
        base: Encoder and tokenizer.
        layer: Whose states; 0 = the word table's, None = the last.

    Raises:
        ConfigError: The encoder has no such layer.
    """

    def __init__(self, base: SentenceVectors, layer: int | None = None) -> None:
        self.model, self.tokenizer, self.max_pieces = base.model, base.tokenizer, base.max_pieces
        self.name, self.width = base.name, base.width
        n_layers = int(self.model.config.num_hidden_layers)
        if layer is not None and not 0 <= layer <= n_layers:
            raise ConfigError(f"encoder {base.name!r} has {n_layers} layers, not {layer}; accepted: 0 to {n_layers}.")
        self.layer = n_layers if layer is None else layer
        self._sentences = base.fingerprint()
        self._around = set(special_ids(self.tokenizer)[:2])

    @classmethod
    def load(
        cls, folder: str | Path, layer: int | None = None, device: str | torch.device | None = None
    ) -> TokenEncoder:
        """From a folder or a name such as ``minilm``.

        Raises:
            MissingResourceError: There is no such encoder on this machine.
            CheckpointError: The folder holds no encoder, or lacks weights.
            ConfigError: The encoder has no such layer.
        """
        return cls(SentenceVectors.load(folder, device), layer)

    def fingerprint(self) -> str:
        """Of the encoder's files and the layer."""
        return fingerprint_of(kind="tokens", encoder=self._sentences, layer=self.layer)

    def encode(
        self, texts: Sequence[str], *, batch_size: int = 32, progress: Callable[[int], None] | None = None
    ) -> list[TokenVectors]:
        """The pieces of each text; equal texts are read once, like lengths together.

        Args:
            texts: Any; what is longer than the encoder reads is cut.
            batch_size: Most texts in one pass.
            progress: Called with the number of texts just finished.

        Returns:
            One record for each text, float32 vectors; equal texts share theirs.
        """
        places = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        rows = self._rows(list(places))
        found: list[TokenVectors | None] = [None] * len(rows)
        for batch in BucketBatchSampler([len(row) for row in rows], batch_size, shuffle=False).batches():
            states = self._states([rows[i] for i in batch])
            for i, vectors in zip(batch, states, strict=True):
                ids = np.array(rows[i], dtype=np.int64)
                counts = ~np.isin(ids, list(self._around))
                found[i] = TokenVectors(ids, vectors[: len(ids)].copy(), counts)
            if progress is not None:
                progress(len(batch))
        if progress is not None and len(texts) > len(rows):
            progress(len(texts) - len(rows))
        whole = [one for one in found if one is not None]
        return [whole[places[text]] for text in texts]

    def _rows(self, texts: Sequence[str]) -> list[list[int]]:
        """Pieces of texts as the encoder reads them."""
        front = " " if self.model.config.model_type in _BYTE_LEVEL else ""
        read = [SURROGATES.sub(" ", text).strip() for text in texts]
        read = [front + text if text else text for text in read]
        return self.tokenizer(read, truncation=True, max_length=self.max_pieces)["input_ids"] if read else []

    def _states(self, rows: list[list[int]]) -> np.ndarray:
        """States of one layer, right-padded. Shape: (batch, pieces, width), float32."""
        import torch

        width = max(map(len, rows))
        padding = self.tokenizer.pad_token_id or 0
        ids = torch.tensor([row + [padding] * (width - len(row)) for row in rows], device=self.model.device)
        lengths = torch.tensor([len(row) for row in rows], device=self.model.device)
        mask = (torch.arange(width, device=self.model.device) < lengths[:, None]).long()  # (batch, pieces)
        with torch.inference_mode():
            states = self.model(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
        return states[self.layer].float().cpu().numpy()
