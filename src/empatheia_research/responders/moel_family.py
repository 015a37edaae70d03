"""What MoEL, MIME, EmpDG, KEMP, CEM and IMAGINE stand on: one encoder-decoder with one way to be trained.

All descend from MoEL's code (Lin et al. 2019). Source ``[CLS] w ...`` of all turns, a vector for who speaks, word
vectors times the square root of the width, :mod:`empatheia_research.layers.convolutional` blocks, an emotion head
without bias on the state of CLS, an output layer of its own, smoothed targets.

``variant="paper"`` (default) is the system as described: masks that mask, the word loss a mean over words, so that it
and the emotion loss weigh alike. ``variant="repo"`` does what the released code does: convolutions that see padding,
the word loss summed over a reply (over the batch, with the recipe's weight), and what each system's file lists.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from transformers import AutoModel
from transformers.cache_utils import EncoderDecoderCache

from empatheia.reading import Json
from empatheia_research.layers.convolutional import ConvolutionalDecoder, ConvolutionalEncoder
from empatheia_research.pretrained import build_pretrained, described_encoder, load_pretrained
from empatheia_research.responders.seq2seq import ResponderEncoding, Seq2SeqConfig, Seq2SeqResponder

VARIANTS = ("paper", "repo")


class FamilyConfig(Seq2SeqConfig):
    """Sizes of the family; defaults are the released ones (1 layer, 2 heads of 20, 50 channels).

    Args:
        variant: ``paper`` or ``repo``; see the module.
        n_encoder_layers: Blocks of the encoder.
        n_decoder_layers: Blocks of the decoder.
        n_heads: Attention heads.
        attention_width: Total width of the heads (released: 40).
        ffn_width: Channels between the convolutions (released: 50).
        dropout: Released: 0.
        label_smoothing: Mass spread over the other classes in the word loss.
        loss_reduction: Of the words; None = ``mean`` in ``paper``, ``sum`` in ``repo``.
        encoder_config: A Hugging Face encoder's configuration as a dict: its projected states stand in place of
            the context's word vectors and blocks.
    """

    model_type = "empatheia_family"
    attribute_map: ClassVar[dict[str, str]] = {"hidden_size": "width", "num_hidden_layers": "n_cache_layers"}

    def __init__(
        self,
        variant: str = "paper",
        n_encoder_layers: int = 1,
        n_decoder_layers: int = 1,
        n_heads: int = 2,
        attention_width: int | None = 40,
        ffn_width: int = 50,
        dropout: float = 0.0,
        label_smoothing: float = 0.1,
        loss_reduction: str | None = None,
        encoder_config: dict[str, Json] | None = None,
        **kwargs: Any,
    ) -> None:
        if variant not in VARIANTS:
            raise ValueError(f"unknown variant {variant!r}; accepted: {', '.join(VARIANTS)}.")
        self.variant = variant
        self.encoder_config = encoder_config
        kwargs.setdefault("role_embedding", True)
        kwargs.setdefault("scale_words", True)
        kwargs.setdefault("tie_words", False)
        super().__init__(
            n_encoder_layers=n_encoder_layers,
            n_decoder_layers=n_decoder_layers,
            n_heads=n_heads,
            attention_width=attention_width,
            ffn_width=ffn_width,
            dropout=dropout,
            label_smoothing=label_smoothing,
            loss_reduction=loss_reduction or ("sum" if variant == "repo" else "mean"),
            **kwargs,
        )

    @property
    def n_cache_layers(self) -> int:
        """Layers of a generation cache: one for each attention, one for each pair of convolutions."""
        return 2 * self.n_decoder_layers


def family_encoder(
    config: FamilyConfig, n_layers: int | None = None, input_width: int | None = None
) -> ConvolutionalEncoder:
    """Encoder blocks of a configuration's sizes.

    Args:
        config: Sizes and variant.
        n_layers: Blocks, if not ``n_encoder_layers``.
        input_width: Width of what comes in; None = the model's.
    """
    return ConvolutionalEncoder(
        config.n_encoder_layers if n_layers is None else n_layers,
        config.width,
        config.n_heads,
        config.attention_width,
        config.ffn_width,
        config.dropout,
        input_width,
        masks_padding=config.variant != "repo",
    )


class FamilyEncoder(nn.Module):
    """Context to states: word and role vectors through the family's blocks, or a pretrained encoder's states.

    A system's own encoder extends it: :meth:`embed` and :meth:`states` are the parts to reuse.
    """

    main_input_name = "input_ids"

    def __init__(self, config: FamilyConfig) -> None:
        super().__init__()
        self.word_scale = config.word_scale
        self.words = nn.Embedding(config.vocab_size, config.width, padding_idx=config.pad_token_id)
        self.dropout = nn.Dropout(config.dropout)
        if config.encoder_config is not None:
            self.pretrained = build_pretrained(AutoModel, described_encoder(config))
            self.projection = nn.Linear(self.pretrained.config.hidden_size, config.width)
        else:
            self.roles = nn.Embedding(3, config.width) if config.role_embedding else None
            self.stack = family_encoder(config)
        self.is_pretrained = config.encoder_config is not None

    def embed(self, input_ids: Tensor, role_ids: Tensor | None = None) -> Tensor:
        """Word plus role vectors, times sqrt(width). Shape: ``(batch, source, width)``."""
        vectors = self.words(input_ids)
        if self.roles is not None and role_ids is not None:
            vectors = vectors + self.roles(role_ids)
        return self.dropout(vectors * self.word_scale)

    def states(self, input_ids: Tensor, attention_mask: Tensor | None, role_ids: Tensor | None = None) -> Tensor:
        """H, the encoded context. Shape: ``(batch, source, width)``."""
        if self.is_pretrained:
            mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask.long()
            return self.projection(self.pretrained(input_ids=input_ids, attention_mask=mask).last_hidden_state)
        return self.stack(self.embed(input_ids, role_ids), attention_mask)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        role_ids: Tensor | None = None,
        **_: Any,
    ) -> ResponderEncoding:
        """Encodes the context; shapes as in :class:`ResponderEncoding`."""
        return ResponderEncoding(last_hidden_state=self.states(input_ids, attention_mask, role_ids))


class FamilyResponder(Seq2SeqResponder):
    """The plain member: encoder, decoder, output layer; a system overrides what is its own."""

    config_class = FamilyConfig
    features: ClassVar[tuple[str, ...]] = ("input_ids", "attention_mask", "role_ids", "emotion_labels", "labels")
    decoder: ConvolutionalDecoder

    def build_encoder(self, config: FamilyConfig) -> nn.Module:
        """Words, roles, blocks."""
        return FamilyEncoder(config)

    def build_decoder(self, config: FamilyConfig) -> nn.Module:
        """The family's decoder blocks."""
        return ConvolutionalDecoder(
            config.n_decoder_layers,
            config.width,
            config.n_heads,
            config.attention_width,
            config.ffn_width,
            config.dropout,
        )

    def load_encoder(self, folder: str) -> None:
        """Fills the pretrained part from a Hugging Face model folder."""
        source = load_pretrained(AutoModel, folder).state_dict()
        own = self.encoder.pretrained.state_dict()
        self.encoder.pretrained.load_state_dict({name: tensor for name, tensor in source.items() if name in own})

    def embed_reply(self, ids: Tensor, encoding: ResponderEncoding, first_position: int) -> Tensor:
        """Word vectors times sqrt(width); a system may put something else in the place of BOS (position 0)."""
        return self.encoder.words(ids) * self.config.word_scale

    def decoder_inputs(self, ids: Tensor, encoding: ResponderEncoding, first_position: int) -> Tensor:
        """Words, projected, plus timing. Shape: ``(batch, target, width)``."""
        return self.decoder.open(self.embed_reply(ids, encoding, first_position), first_position)

    def decode(
        self,
        states: Tensor,
        encoding: ResponderEncoding,
        attention_mask: Tensor | None,
        cache: EncoderDecoderCache | None,
    ) -> Tensor:
        """Decoder states over the memory; shapes as in :meth:`Seq2SeqResponder.decode`."""
        mask = attention_mask if encoding.memory_mask is None else encoding.memory_mask
        return self.decoder(states, encoding.last_hidden_state, mask, cache)
