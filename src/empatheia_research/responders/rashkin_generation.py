"""Rashkin et al. 2018, the generation systems: a Transformer, and three ways to tell it about emotion.

*Base*: a full Transformer (4 + 4 layers, 6 heads of 50, post-norm), one word table for encoder, decoder and output,
mean token likelihood. *Multitask* (section 4.1 of our specification): a linear layer without bias on the mean of the
encoder's states says the emotion, loss = (words + emotion) / 2. *Prepend-k*: the k best labels of a classifier stand in
front of the context. *Ensem*: ``h_e = W [h_w ; h_c] + b``, h_w the state of a word from an encoder already trained,
h_c the vector of a second, frozen encoder, put beside every word; only W, b and the decoder learn then. *Large* has one
more encoder layer, which its 86.2 M parameters fit (85.12 + 1.08).

The code was never released; what the paper leaves open is listed in ``docs/concepts/rashkin2018.md``.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from transformers import AutoModel

from empatheia.reading import Json
from empatheia_research.layers.ensemble import Ensemble
from empatheia_research.layers.pooling import mean_pool
from empatheia_research.layers.post_norm import PostNormDecoder, PostNormEncoder
from empatheia_research.pretrained import build_pretrained, described_encoder, load_pretrained
from empatheia_research.responders.seq2seq import (
    ResponderEncoding,
    Seq2SeqConfig,
    Seq2SeqResponder,
    embed_source,
    encoder_stack,
    register,
)

NORMS = ("post", "pre")


class RashkinGenerationConfig(Seq2SeqConfig):
    """Sizes and parts; defaults are the paper's Base.

    Args:
        norm: ``post`` (Vaswani et al.) or ``pre`` (the frame's other systems).
        emotion_head: Say the emotion (Multitask).
        external_width: Width of the second encoder's vector (Ensem; DeepMoji: 2,304); None = no second encoder.
        encoder_config: A Hugging Face encoder's configuration as a dict: its projected states stand in place of
            the encoder's word vectors and blocks.
        n_encoder_layers: Blocks of the encoder; Large: 5.
        n_decoder_layers: Blocks of the decoder.
        n_heads: Attention heads.
        dropout: In [0, 1).
        loss_reduction: ``mean``: over tokens.
        **kwargs: Of :class:`Seq2SeqConfig`.
    """

    model_type = "rashkin_generation"

    def __init__(
        self,
        norm: str = "post",
        emotion_head: bool = False,
        external_width: int | None = None,
        encoder_config: dict[str, Json] | None = None,
        n_encoder_layers: int = 4,
        n_decoder_layers: int = 4,
        n_heads: int = 6,
        dropout: float = 0.0,
        loss_reduction: str = "mean",
        **kwargs: Any,
    ) -> None:
        if norm not in NORMS:
            raise ValueError(f"unknown norm {norm!r}; accepted: {', '.join(NORMS)}.")
        self.norm = norm
        self.emotion_head = emotion_head
        self.external_width = external_width
        self.encoder_config = encoder_config
        super().__init__(
            n_encoder_layers=n_encoder_layers,
            n_decoder_layers=n_decoder_layers,
            n_heads=n_heads,
            dropout=dropout,
            loss_reduction=loss_reduction,
            **kwargs,
        )


def prepend(input_ids: Tensor, keep: Tensor, prefix: Tensor, pad_id: int) -> tuple[Tensor, Tensor]:
    """Puts label pieces behind CLS, with no padding between them and the context.

    Args:
        input_ids: CLS first. Shape: ``(batch, source)``.
        keep: True = keep. Shape: ``(batch, source)``.
        prefix: Label pieces, padded. Shape: ``(batch, prefix)``.
        pad_id: Padding piece.

    Returns:
        Pieces and mask. Shape of both: ``(batch, prefix + source)``.
    """
    ids = torch.cat((input_ids[:, :1], prefix, input_ids[:, 1:]), dim=1)
    kept = torch.cat((keep[:, :1], prefix.ne(pad_id), keep[:, 1:]), dim=1)
    order = kept.logical_not().int().argsort(dim=1, stable=True)  # what is kept first, in its order
    return ids.gather(1, order), kept.gather(1, order)


class RashkinEncoder(nn.Module):
    """Labels and context to states, and what is said of the emotion."""

    main_input_name = "input_ids"

    def __init__(self, config: RashkinGenerationConfig) -> None:
        super().__init__()
        self.word_scale = config.word_scale
        self.pad_id = int(config.pad_token_id or 0)
        self.words = nn.Embedding(config.vocab_size, config.width, padding_idx=config.pad_token_id)
        self.dropout = nn.Dropout(config.dropout)
        self.is_pretrained = config.encoder_config is not None
        if config.encoder_config is not None:
            self.pretrained = build_pretrained(AutoModel, described_encoder(config))
            self.projection = nn.Linear(self.pretrained.config.hidden_size, config.width)
        elif config.norm == "post":
            sizes = (config.width, config.n_heads, config.attention_width, config.ffn_width, config.dropout)
            self.stack: nn.Module = PostNormEncoder(config.n_encoder_layers, *sizes)
        else:
            self.stack = encoder_stack(config)
        self.emotion = nn.Linear(config.width, config.n_emotions, bias=False) if config.emotion_head else None
        self.ensemble = Ensemble(config.width, config.external_width) if config.external_width else None

    def states(self, ids: Tensor, keep: Tensor) -> Tensor:
        """h_w of every piece. Shape: ``(batch, source, width)``."""
        if self.is_pretrained:
            return self.projection(self.pretrained(input_ids=ids, attention_mask=keep.long()).last_hidden_state)
        return self.stack(self.dropout(embed_source(self.words, ids, self.word_scale)), keep)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        prepended_ids: Tensor | None = None,
        external_vectors: Tensor | None = None,
        **_: Any,
    ) -> ResponderEncoding:
        """Encodes.

        Args:
            input_ids: CLS first. Shape: ``(batch, source)``.
            attention_mask: True = keep. Shape: ``(batch, source)``.
            prepended_ids: Pieces of the labels in front, padded; no column where nothing is prepended. Shape:
                ``(batch, prefix)``.
            external_vectors: h_c. Shape: ``(batch, external width)``; read where the model has an ensemble.

        Returns:
            Memory, its mask and the emotion; shapes as in :class:`ResponderEncoding`.

        Raises:
            ValueError: The model has an ensemble and there is no vector, or one of another width.
        """
        keep = torch.ones_like(input_ids, dtype=torch.bool) if attention_mask is None else attention_mask.bool()
        if prepended_ids is not None and prepended_ids.shape[1]:
            input_ids, keep = prepend(input_ids, keep, prepended_ids, self.pad_id)
        states = self.states(input_ids, keep)
        if self.ensemble is not None:
            wanted = self.ensemble.in_features - self.ensemble.out_features
            if external_vectors is None or external_vectors.shape[1] != wanted:
                found = "none" if external_vectors is None else f"width {external_vectors.shape[1]}"
                raise ValueError(
                    f"external vectors: {found}; this model's second encoder has width {wanted}: name it in"
                    " data.side_inputs.external_vectors."
                )
            states = self.ensemble(states, external_vectors)
        logits = None if self.emotion is None else self.emotion(mean_pool(states, keep))
        return ResponderEncoding(last_hidden_state=states, memory_mask=keep, emotion_logits=logits)


class RashkinGeneration(Seq2SeqResponder):
    """Context (and labels, and a second encoder's vector) in; reply, and in Multitask the emotion, out."""

    config_class = RashkinGenerationConfig
    scales_random_words = True
    features: ClassVar[tuple[str, ...]] = (
        "input_ids",
        "attention_mask",
        "prepended_ids",
        "external_vectors",
        "emotion_labels",
        "labels",
    )
    side_inputs: ClassVar[tuple[str, ...]] = ("prepended_labels", "external_vectors")

    def __init__(self, config: RashkinGenerationConfig) -> None:
        super().__init__(config)
        self.has_emotion_head = config.emotion_head  # of Multitask

    def build_encoder(self, config: RashkinGenerationConfig) -> nn.Module:
        """Words, blocks, emotion head, ensemble."""
        return RashkinEncoder(config)

    def build_decoder(self, config: RashkinGenerationConfig) -> nn.Module:
        """Post- or pre-norm blocks."""
        if config.norm == "pre":
            return super().build_decoder(config)
        sizes = (config.width, config.n_heads, config.attention_width, config.ffn_width, config.dropout)
        return PostNormDecoder(config.n_decoder_layers, *sizes)

    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, Ensemble):
            module.start()
        else:
            super()._init_weights(module)

    def load_encoder(self, folder: str) -> None:
        """Fills the pretrained part from a Hugging Face model folder."""
        source = load_pretrained(AutoModel, folder).state_dict()
        own = self.encoder.pretrained.state_dict()
        self.encoder.pretrained.load_state_dict({name: tensor for name, tensor in source.items() if name in own})


register(RashkinGeneration)
