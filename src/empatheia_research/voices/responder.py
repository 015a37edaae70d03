"""A responder of this package as a voice."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import LogitsProcessor

from empatheia.taxonomy import LABELS_41
from empatheia.text.inputs import prepare
from empatheia.voices.decoding import Decoding
from empatheia.voices.voice import Request, Traits
from empatheia_research.checkpoints.reader import EncodedInput
from empatheia_research.voices.local import LocalVoice
from empatheia_research.voices.responder_listener import ResponderListener


class ResponderVoice(LocalVoice):
    """A responder of this package.

    Args:
        listener: Loaded.
        shown: Not read.
    """

    def __init__(self, listener: ResponderListener, shown: Sequence[str] | None = None) -> None:
        self.listener = listener
        self.model = listener.network
        self.name = self.place = listener.name
        self.takes_label = bool(getattr(listener.network, "takes_label", False))
        self.traits = Traits(focusable=True, reads_intent=self.takes_label)

    def length(self, request: Request) -> int:
        """See :class:`LocalVoice`."""
        return len(self._encoded([request])[0].pieces.input_ids)

    def tensors(self, requests: Sequence[Request]) -> dict[str, Tensor]:
        """See :class:`LocalVoice`; a wanted label goes to systems that take one."""
        inputs = self.listener.reader.tensors(self._encoded(requests))
        if self.takes_label and any(one.label for one in requests):
            ids = [LABELS_41.index(one.label) if one.label else -1 for one in requests]
            wanted = torch.tensor(ids, device=self.model.device)
            own = inputs.get("reply_label_ids", torch.full_like(wanted, -1))
            inputs["reply_label_ids"] = torch.where(wanted < 0, own, wanted)
        return inputs

    def write(
        self,
        requests: Sequence[Request],
        inputs: dict[str, Tensor],
        decoding: Decoding,
        n: int,
        processors: Sequence[LogitsProcessor],
    ) -> list[str]:
        """See :class:`LocalVoice`."""
        extra = {"num_return_sequences": n} if n > 1 else {}
        rows = self.listener.generate(self._encoded(requests), inputs, decoding, processors, **extra)
        return [self.listener.tokenizer.decode(row) for row in rows.tolist()]

    def labels(self, requests: Sequence[Request], replies: Sequence[str]) -> list[list[int]]:
        """See :class:`LocalVoice`."""
        return self.listener.reader.contexts.reply_pieces(replies)

    def piece(self, id: int) -> str:
        """See :class:`LocalVoice`."""
        tokenizer = self.listener.tokenizer
        return "[UNK]" if id == tokenizer.unk_id else tokenizer.decode([id], raw=True)

    def _encoded(self, requests: Sequence[Request]) -> list[EncodedInput]:
        return self.listener.reader.encode([prepare(one.dialogue) for one in requests])
