"""The plain Transformer responder: the baseline without emotion and cause, and the limit of Gao et al.'s ablations.

Vaswani et al. 2017 in pre-norm form, source ``[CLS] U_1 [SEP] U_2 [SEP] ...``, tied word table. It has no
emotion head: it answers, and does not analyse.
"""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor, nn

from empatheia_research.responders.seq2seq import (
    ResponderEncoding,
    Seq2SeqConfig,
    Seq2SeqResponder,
    embed_source,
    encoder_stack,
    register,
)


class TransformerConfig(Seq2SeqConfig):
    """Sizes of the plain Transformer; defaults are Gao et al.'s paper sizes (6 layers, 8 heads, width 300)."""

    model_type = "empatheia_transformer"


class TransformerEncoder(nn.Module):
    """Words + positions (+ roles), then the encoder stack."""

    main_input_name = "input_ids"

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.word_scale = config.word_scale
        self.words = nn.Embedding(config.vocab_size, config.width, padding_idx=config.pad_token_id)
        if config.role_embedding:
            self.roles = nn.Embedding(3, config.width)
        self.has_roles = config.role_embedding
        self.dropout = nn.Dropout(config.dropout)
        self.stack = encoder_stack(config)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        role_ids: Tensor | None = None,
        **_: Any,
    ) -> ResponderEncoding:
        """Encodes the context; shapes as in :class:`ResponderEncoding`."""
        states = embed_source(self.words, input_ids, self.word_scale)  # (batch, source, width)
        if self.has_roles and role_ids is not None:
            states = states + self.roles(role_ids)
        return ResponderEncoding(last_hidden_state=self.stack(self.dropout(states), attention_mask))


class Transformer(Seq2SeqResponder):
    """Context in, reply out."""

    config_class = TransformerConfig
    scales_random_words = True
    features: ClassVar[tuple[str, ...]] = ("input_ids", "attention_mask", "role_ids", "labels")

    def build_encoder(self, config: TransformerConfig) -> nn.Module:
        """Words, positions, encoder stack."""
        return TransformerEncoder(config)


register(Transformer)
