"""Texts to the vectors of a retrieval model, with its prepended labels and its second encoder.

Training, measuring and answering all go through :class:`PairReader`, so they read alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypedDict

import numpy as np
import torch
from torch import Tensor

from empatheia.records.dialogue import Turn
from empatheia.taxonomy import IGNORED
from empatheia.text.batching import TokenBatchSampler
from empatheia_research.responders.rashkin_retrieval import RashkinRetrieval, RetrievalConfig, TextReader
from empatheia_research.side_inputs.external_vectors import ExternalVectors
from empatheia_research.side_inputs.prepended_labels import PrependedLabels
from empatheia_research.text.tokenizer import DialogueTokenizer

BATCH_TOKENS = 4096


class Row(TypedDict):
    """A text as a model reads it: its pieces, and the second encoder's vector. Shape: (external width,)."""

    ids: Sequence[int]
    external: np.ndarray


class PairReader:
    """Contexts and replies as a model reads them.

    Args:
        tokenizer: Pieces.
        config: The model's configuration.
        labels: What is prepended.
        external: The second encoder.
    """

    def __init__(
        self, tokenizer: DialogueTokenizer, config: RetrievalConfig, labels: PrependedLabels, external: ExternalVectors
    ) -> None:
        self.tokenizer = tokenizer
        self.text = TextReader(tokenizer, config)
        self.labels = labels
        self.external = external

    def contexts(self, contexts: Sequence[Sequence[Turn]], keys: Sequence[str] = ()) -> list[Row]:
        """Rows of contexts.

        Args:
            contexts: Turns, the newest last.
            keys: ``dialogue_id#turn_index`` of each, for a feature file.
        """
        ids = self.text.contexts([[turn.text for turn in turns] for turns in contexts], self.labels.pieces_of(contexts))
        return _rows(ids, self.external.of_contexts(contexts, keys))

    def replies(self, texts: Sequence[str]) -> list[Row]:
        """Rows of replies; labels are predicted from the reply itself."""
        return _rows(self.text.replies(texts, self.labels.pieces_of(texts)), self.external.of_texts(texts))

    def tensors(self, rows: Sequence[Row]) -> tuple[Tensor, Tensor, Tensor | None]:
        """Pieces, mask and external vectors (None without a second encoder) of rows."""
        ids, keep = self.text.tensors([row["ids"] for row in rows])
        external = np.stack([row["external"] for row in rows]) if self.external.width else None
        return ids, keep, None if external is None else torch.from_numpy(external)

    def collate(self, pairs: Sequence[tuple[Row, Row, int]]) -> dict[str, Tensor]:
        """A batch of (context, reply, emotion) for ``forward``; the emotion is left out where none is known."""
        batch: dict[str, Tensor] = {}
        for names, rows in ((_CONTEXT, [pair[0] for pair in pairs]), (_REPLY, [pair[1] for pair in pairs])):
            values = self.tensors(rows)
            batch |= {name: value for name, value in zip(names, values, strict=True) if value is not None}
        emotions = torch.tensor([pair[2] for pair in pairs])
        return batch if emotions.eq(IGNORED).all() else {**batch, "emotion_labels": emotions}


_CONTEXT = ("input_ids", "attention_mask", "external_vectors")
_REPLY = ("candidate_ids", "candidate_mask", "candidate_external")


def _rows(ids: Sequence[Sequence[int]], external: np.ndarray) -> list[Row]:
    return [{"ids": own, "external": vector} for own, vector in zip(ids, external, strict=True)]


@torch.inference_mode()
def vectors_of(
    model: RashkinRetrieval,
    reader: PairReader,
    rows: Sequence[Row],
    side: str,
    *,
    batch_tokens: int = BATCH_TOKENS,
    progress: Callable[[int], None] | None = None,
) -> np.ndarray:
    """Vectors of rows, in their order.

    Args:
        model: Put into evaluation mode.
        reader: The model's.
        rows: Of :meth:`PairReader.contexts` or :meth:`PairReader.replies`.
        side: ``context`` or ``candidate``.
        batch_tokens: Padded pieces in one pass.
        progress: Called with the number of rows just finished.

    Returns:
        float32. Shape: (n_rows, width).
    """
    model.eval()
    encode = model.encode_contexts if side == "context" else model.encode_candidates
    out = np.zeros((len(rows), model.context_tower.width), dtype=np.float32)
    for batch in TokenBatchSampler([len(row["ids"]) for row in rows], batch_tokens, shuffle=False):
        ids, keep, external = reader.tensors([rows[i] for i in batch])
        outside = None if external is None else external.to(model.device)
        out[batch] = encode(ids.to(model.device), keep.to(model.device), outside).float().cpu().numpy()
        if progress is not None:
            progress(len(batch))
    return out
