"""What EmpDG and KEMP add to the family: a reply that opens with the felt emotion, and copies from what was read.

Both come from one code base (Li et al. 2020 and 2022): the first decoder input is a linear map of the raw emotion
logits in place of BOS, and the output is a pointer mixture over the decoder's memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers.cache_utils import EncoderDecoderCache

from empatheia_research.layers.copy import Copy, CopyDecoder, CopyDecoderLayer
from empatheia_research.responders.moel_family import FamilyConfig, FamilyResponder
from empatheia_research.responders.seq2seq import ResponderEncoding, given


class CopyingConfig(FamilyConfig):
    """Sizes of a system that copies.

    Args:
        copies: Mix copies of the memory's pieces into the output (released option ``pointer_gen``).
        **kwargs: Of :class:`FamilyConfig`.
    """

    model_type = "empatheia_copying"

    def __init__(self, copies: bool = True, **kwargs: Any) -> None:
        self.copies = copies
        super().__init__(**kwargs)


@dataclass
class CopyingEncoding(ResponderEncoding):
    """A memory whose pieces are known.

    Attributes:
        memory_ids: Piece at each place of the memory. Shape: ``(batch, memory)``.
    """

    memory_ids: Tensor | None = None


class CopyingResponder(FamilyResponder):
    """The decoder's side of EmpDG and KEMP; a system brings its encoder.

    ``decode`` gives the states and, behind their ``width`` columns, the last block's attention over the memory.
    """

    config_class = CopyingConfig
    has_emotion_head = True
    decoder_layer: type[CopyDecoderLayer] = CopyDecoderLayer

    def __init__(self, config: CopyingConfig) -> None:
        super().__init__(config)
        self.emotion_input = nn.Linear(config.n_emotions, config.width) if self.opens_with_emotion(config) else None
        self.copy = Copy(config.width, softens=config.variant == "repo") if config.copies else None
        self.post_init()

    @staticmethod
    def opens_with_emotion(config: CopyingConfig) -> bool:
        """Whether the emotion logits stand in place of BOS."""
        return True

    def build_decoder(self, config: CopyingConfig) -> nn.Module:
        """The family's blocks, which tell where they look."""
        return CopyDecoder(
            config.n_decoder_layers,
            config.width,
            config.n_heads,
            config.attention_width,
            config.ffn_width,
            config.dropout,
            self.decoder_layer,
            averages_scores=config.variant == "repo",
        )

    def embed_reply(self, ids: Tensor, encoding: CopyingEncoding, first_position: int) -> Tensor:
        """Word vectors; the emotion's in place of BOS."""
        vectors = super().embed_reply(ids, encoding, first_position)
        if first_position or self.emotion_input is None:
            return vectors
        return torch.cat((self.emotion_input(encoding.emotion_logits)[:, None], vectors[:, 1:]), dim=1)

    def decode(
        self,
        states: Tensor,
        encoding: CopyingEncoding,
        attention_mask: Tensor | None,
        cache: EncoderDecoderCache | None,
    ) -> Tensor:
        """States, then attention weights. Shape: ``(batch, target, width + memory)``."""
        mask = attention_mask if encoding.memory_mask is None else encoding.memory_mask
        return torch.cat(self.decoder(states, encoding.last_hidden_state, mask, cache, self.signal(encoding)), dim=-1)

    def signal(self, encoding: CopyingEncoding) -> Tensor | None:
        """What each decoder block fuses with the memory it attends to; here nothing."""
        return None

    def word_logits(self, states: Tensor, encoding: CopyingEncoding) -> Tensor:
        """Log-probabilities of pieces (scores without copy). Shape: ``(batch, target, vocabulary)``."""
        return self._score(states, encoding, given(encoding.memory_ids))

    def kept_logits(self, states: Tensor, kept: Tensor, encoding: CopyingEncoding) -> Tensor:
        """As :meth:`word_logits`, of the states that count. Shape: ``(1, number kept, vocabulary)``."""
        rows = kept.nonzero()[:, 0]
        return self._score(states[kept][:, None], encoding, given(encoding.memory_ids)[rows]).transpose(0, 1)

    def _score(self, states: Tensor, encoding: CopyingEncoding, memory_ids: Tensor) -> Tensor:
        hidden, weights = states.split((self.config.width, states.shape[-1] - self.config.width), dim=-1)
        logits = super().word_logits(hidden, encoding)
        return logits if self.copy is None else self.copy(hidden, weights, logits, memory_ids)
