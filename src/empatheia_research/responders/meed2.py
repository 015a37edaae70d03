"""MEED2: replies with a fine-grained emotion or intent.

Yubo Xie and Pearl Pu. Empathetic Dialog Generation with Fine-Grained Intents. CoNLL 2021.

Every utterance has a label, one of 32 emotions, 8 intents and neutral, and so has the reply that is to be written. What
encoder and decoder read at a position is a sum (section 4.1, figure 4)::

    LN(word + position + segment + label)

The label of a context turn is what a classifier says of that turn; all pieces of the decoder get the label of the
reply. In training it is the classifier's label of the gold reply; when answering, a separate predictor
(``understanding/labels/next_label.py``) reads the context and says it, or the caller does:
``generate(..., label="consoling")``. Both come from outside, as side inputs (``side_inputs/turn_labels.py``).

The context is ``<s> u_1 </s> </s> u_2 </s> ...`` (``separators: double``); 4 + 4 post-norm layers of width 300, GELU,
an output layer of its own and one set of tables for both sides: 40,371,765 parameters on RoBERTa's 50,265 pieces.
(Table 7's 121M and 180M count Adam's two moments, too.) ``turn_labels``, ``reply_label`` and ``segments`` False give
the paper's "full Transformer" baseline. On a pretrained encoder the context is read by it, its tables of labels and
segments starting at zero, and the decoder keeps tables of its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import LongTensor, Tensor, nn
from transformers import AutoModel, PreTrainedConfig
from transformers import initialization as init
from transformers.generation.utils import GenerateOutput
from transformers.models.auto.modeling_auto import MODEL_MAPPING

from empatheia.errors import DecodingError
from empatheia.reading import Json
from empatheia.taxonomy import IGNORED, LABELS_41, canonical_emotion
from empatheia_research.layers.post_norm import PostNormDecoder, PostNormEncoder
from empatheia_research.pretrained import build_pretrained, described_encoder, load_pretrained
from empatheia_research.responders.seq2seq import (
    ResponderEncoding,
    Seq2SeqConfig,
    Seq2SeqResponder,
    register,
    word_loss,
)

VARIANTS = ("paper", "repo")
N_LABELS = len(LABELS_41)
FIRST_POSITION = 2
"""RoBERTa's positions begin behind the padding piece's index."""
LISTENER = 2
"""In ``role_ids``."""


class MEED2Config(Seq2SeqConfig):
    """Sizes and switches; defaults are the paper's appendix B.

    Args:
        variant: ``paper``: the word loss is a mean over pieces; ``repo``: over the means of the replies, as released.
        turn_labels: Add the label of each context turn to its pieces.
        reply_label: Add the label of the reply to the decoder's pieces.
        reply_label_dropout: How often, in training, a reply's label is left out, in [0, 1); it is the classifier's of
            the gold reply there and a predictor's in use, mostly another one. 0 as published.
        segments: Add a vector for who speaks: 0 speaker, 1 listener; the reply has the other one than the last turn.
        n_positions: Pieces with a position of their own; those beyond share the last.
        loss_reduction: ``mean`` over pieces, ``item`` = mean of the replies' means, ``sum`` of a reply's pieces;
            None = the variant's.
        encoder_config: A Hugging Face encoder's configuration as a dict: it reads the context.
        n_encoder_layers: Blocks of the encoder.
        n_decoder_layers: Blocks of the decoder.
        n_heads: Attention heads.
        dropout: In [0, 1).
        tie_words: The output layer is the word table (published: a layer of its own).
        **kwargs: Of :class:`Seq2SeqConfig`.

    Raises:
        ValueError: A value is not accepted.
    """

    model_type = "meed2"

    def __init__(
        self,
        variant: str = "paper",
        turn_labels: bool = True,
        reply_label: bool = True,
        reply_label_dropout: float = 0.0,
        segments: bool = True,
        n_positions: int = 100,
        loss_reduction: str | None = None,
        encoder_config: dict[str, Json] | None = None,
        n_encoder_layers: int = 4,
        n_decoder_layers: int = 4,
        n_heads: int = 6,
        dropout: float = 0.1,
        tie_words: bool = False,
        **kwargs: Any,
    ) -> None:
        if variant not in VARIANTS:
            raise ValueError(f"unknown variant {variant!r}; accepted: {', '.join(VARIANTS)}.")
        loss_reduction = loss_reduction or ("item" if variant == "repo" else "mean")
        if loss_reduction not in ("mean", "item", "sum"):
            raise ValueError(f"loss_reduction is {loss_reduction!r}; accepted: mean, item, sum.")
        if not 0 <= reply_label_dropout < 1:
            raise ValueError(f"reply_label_dropout is {reply_label_dropout}; accepted: 0 to below 1.")
        if n_positions < 1:
            raise ValueError(f"n_positions is {n_positions}; accepted: 1 or more.")
        self.variant = variant
        self.turn_labels = turn_labels
        self.reply_label = reply_label
        self.reply_label_dropout = reply_label_dropout
        self.segments = segments
        self.n_positions = n_positions
        self.encoder_config = encoder_config
        super().__init__(
            n_encoder_layers=n_encoder_layers,
            n_decoder_layers=n_decoder_layers,
            n_heads=n_heads,
            dropout=dropout,
            tie_words=tie_words,
            loss_reduction=loss_reduction,
            **kwargs,
        )


@dataclass
class MEED2Encoding(ResponderEncoding):
    """What decoding reads beside the memory.

    Attributes:
        reply_label_ids: Label of the reply, -1 = none. Shape: ``(batch,)``; None where the model takes none.
        reply_segment_ids: Segment of the reply. Shape: ``(batch,)``; None without segments.
    """

    reply_label_ids: Tensor | None = None
    reply_segment_ids: Tensor | None = None


def add_labels(states: Tensor, table: nn.Embedding, label_ids: Tensor) -> Tensor:
    """Adds label vectors; -1 adds nothing.

    Args:
        states: Shape: ``(batch, length, width)``.
        table: Labels to vectors.
        label_ids: Shape: ``(batch, length)``, or ``(batch, 1)`` for one label a row.
    """
    return states + table(label_ids.clamp_min(0)) * label_ids.ge(0).unsqueeze(-1)


def segments_of(role_ids: Tensor) -> Tensor:
    """0 for speaker, 1 for listener; CLS belongs to the turn behind it. Shape: that of ``role_ids``."""
    segments = role_ids.eq(LISTENER).long()
    return torch.cat((segments[:, :2].amax(1, keepdim=True), segments[:, 1:]), dim=1)  # CLS itself counts as 0


class PretrainedContext(nn.Module):
    """A pretrained encoder that also reads labels and segments of turns; its states, projected to the width."""

    def __init__(self, config: MEED2Config) -> None:
        super().__init__()
        described = described_encoder(config)
        reader = MODEL_MAPPING.get(type(described), None)
        takes = inspect.signature(reader.__init__).parameters if reader is not None else {}
        bare = {"add_pooling_layer": False} if "add_pooling_layer" in takes else {}  # a pooler would never learn
        self.model = build_pretrained(AutoModel, described, **bare)
        width = described.hidden_size
        self.reads_types = (getattr(described, "type_vocab_size", 0) or 0) >= 2
        self.labels = nn.Embedding(N_LABELS, width) if config.turn_labels else None
        self.segments = nn.Embedding(2, width) if config.segments and not self.reads_types else None
        self.projection = nn.Linear(width, config.width)

    def forward(self, input_ids: Tensor, keep: Tensor, segment_ids: Tensor | None, label_ids: Tensor | None) -> Tensor:
        """States of the context. Shape: ``(batch, source, width)``; arguments ``(batch, source)``."""
        embedded = self.model.get_input_embeddings()(input_ids)
        extra = {}
        if segment_ids is not None and self.reads_types:
            extra = {"token_type_ids": segment_ids}
        elif segment_ids is not None and self.segments is not None:
            embedded = embedded + self.segments(segment_ids)
        if self.labels is not None and label_ids is not None:
            embedded = add_labels(embedded, self.labels, label_ids)
        states = self.model(inputs_embeds=embedded, attention_mask=keep.long(), **extra).last_hidden_state
        return self.projection(states)

    @torch.no_grad()
    def start(self, folder: str) -> None:
        """Takes a folder's weights; tables the encoder did not know start at zero."""
        source = load_pretrained(AutoModel, folder).state_dict()
        own = self.model.state_dict()
        self.model.load_state_dict({name: tensor for name, tensor in source.items() if name in own})
        for table in (self.labels, self.segments):
            if table is not None:
                init.zeros_(table.weight)


class MEED2Encoder(nn.Module):
    """The tables of both sides, and the encoder's blocks."""

    main_input_name = "input_ids"

    def __init__(self, config: MEED2Config) -> None:
        super().__init__()
        self.n_positions = config.n_positions
        self.words = nn.Embedding(config.vocab_size, config.width, padding_idx=config.pad_token_id)
        self.positions = nn.Embedding(FIRST_POSITION + config.n_positions, config.width)
        self.segments = nn.Embedding(2, config.width) if config.segments else None
        # on a pretrained encoder the context's labels have a table there: without the reply's none is needed here
        reads_labels = config.reply_label or (config.turn_labels and config.encoder_config is None)
        self.labels = nn.Embedding(N_LABELS, config.width) if reads_labels else None
        self.norm = nn.LayerNorm(config.width)
        self.dropout = nn.Dropout(config.dropout)
        self.turn_labels = config.turn_labels
        self.reply_label = config.reply_label
        self.pretrained = None if config.encoder_config is None else PretrainedContext(config)
        if self.pretrained is None:
            self.stack = PostNormEncoder(
                config.n_encoder_layers,
                config.width,
                config.n_heads,
                config.attention_width,
                config.ffn_width,
                config.dropout,
                nn.GELU,
            )

    def embed(self, ids: Tensor, first_position: int, segment_ids: Tensor | None, label_ids: Tensor | None) -> Tensor:
        """``LN(word + position + segment + label)``.

        Args:
            ids: Pieces. Shape: ``(batch, length)``.
            first_position: Position of the first column, from 0.
            segment_ids: 0 or 1; None = none. Shape: ``(batch, length)`` or ``(batch, 1)``.
            label_ids: Below 41, -1 = unknown; None = none. Shape: likewise.

        Returns:
            Tensor of shape ``(batch, length, width)``.
        """
        places = torch.arange(first_position, first_position + ids.shape[1], device=ids.device)
        places = places.clamp(max=self.n_positions - 1) + FIRST_POSITION
        states = self.words(ids) + self.positions(places)
        if self.segments is not None and segment_ids is not None:
            states = states + self.segments(segment_ids)
        if self.labels is not None and label_ids is not None:
            states = add_labels(states, self.labels, label_ids)
        return self.norm(states)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        role_ids: Tensor | None = None,
        turn_label_ids: Tensor | None = None,
        reply_label_ids: Tensor | None = None,
        **_: Any,
    ) -> MEED2Encoding:
        """Encodes the context.

        Args:
            input_ids: ``<s> u_1 </s> </s> u_2 </s>``. Shape: ``(batch, source)``.
            attention_mask: True = keep. Shape: ``(batch, source)``.
            role_ids: 0 none, 1 speaker, 2 listener. Shape: ``(batch, source)``; None = all speaker.
            turn_label_ids: Label of each piece's turn, -1 = unknown. Shape: ``(batch, source)``.
            reply_label_ids: Label the reply is to have, -1 = none. Shape: ``(batch,)``.
        """
        keep = torch.ones_like(input_ids, dtype=torch.bool) if attention_mask is None else attention_mask.bool()
        segment_ids = reply_segment_ids = None
        if self.segments is not None:
            roles = torch.ones_like(input_ids) if role_ids is None else role_ids
            segment_ids = segments_of(roles)
            last = (keep * torch.arange(keep.shape[1], device=keep.device)).amax(1, keepdim=True)
            reply_segment_ids = 1 - segment_ids.gather(1, last).squeeze(1)
        label_ids = turn_label_ids if self.turn_labels else None
        if self.pretrained is None:
            states = self.stack(self.dropout(self.embed(input_ids, 0, segment_ids, label_ids)), keep)
        else:
            states = self.pretrained(input_ids, keep, segment_ids, label_ids)
        return MEED2Encoding(
            last_hidden_state=states,
            reply_label_ids=reply_label_ids if self.reply_label else None,
            reply_segment_ids=reply_segment_ids,
        )


class MEED2(Seq2SeqResponder):
    """Context, labels of its turns and a label for the reply in; reply out."""

    config_class = MEED2Config
    encoder: MEED2Encoder
    features: ClassVar[tuple[str, ...]] = (
        "input_ids",
        "attention_mask",
        "role_ids",
        "turn_label_ids",
        "reply_label_ids",
        "gold_reply_label_ids",
        "labels",
    )
    gold_features: ClassVar[frozenset[str]] = Seq2SeqResponder.gold_features | {"gold_reply_label_ids"}
    side_inputs: ClassVar[tuple[str, ...]] = ("turn_labels",)

    def __init__(self, config: MEED2Config) -> None:
        super().__init__(config)
        self.scores_padding = config.loss_reduction == "item"  # the loss must know which piece is whose

    @property
    def told_features(self) -> dict[str, str]:
        """What the paper's perplexity takes from the gold reply: a feature, and the gold one that stands in its place.

        Only a score that says so in its name uses it. Empty for a model that takes no label of the reply.
        """
        return {"reply_label_ids": "gold_reply_label_ids"} if self.config.reply_label else {}

    @property
    def takes_label(self) -> bool:
        """Whether a caller may say what the reply is to express."""
        return self.config.reply_label

    def build_encoder(self, config: MEED2Config) -> nn.Module:
        """Tables and blocks."""
        return MEED2Encoder(config)

    def build_decoder(self, config: MEED2Config) -> nn.Module:
        """Post-norm blocks."""
        return PostNormDecoder(
            config.n_decoder_layers,
            config.width,
            config.n_heads,
            config.attention_width,
            config.ffn_width,
            config.dropout,
            nn.GELU,
        )

    def _init_weights(self, module: nn.Module) -> None:
        """As Keras starts them: Glorot, and tables uniform in [-0.05, 0.05]."""
        if isinstance(module, nn.Embedding):
            init.uniform_(module.weight, -0.05, 0.05)
        else:
            super()._init_weights(module)

    def load_encoder(self, folder: str) -> None:
        """Starts the context's encoder from a Hugging Face model folder."""
        assert self.encoder.pretrained is not None  # built because the recipe names an encoder
        self.encoder.pretrained.start(folder)

    def encode(self, input_ids: Tensor, attention_mask: Tensor | None, **features: Tensor | None) -> ResponderEncoding:
        """Runs the encoder; in training mode the gold reply's label is the reply's label (teacher forcing)."""
        gold = features.get("gold_reply_label_ids")
        if self.training and gold is not None:
            if self.config.reply_label_dropout:
                left_out = torch.rand(gold.shape, device=gold.device) < self.config.reply_label_dropout
                gold = gold.masked_fill(left_out, -1)
            features["reply_label_ids"] = gold
        return super().encode(input_ids, attention_mask, **features)

    def decoder_inputs(self, ids: Tensor, encoding: MEED2Encoding, first_position: int) -> Tensor:
        """Embeds the reply's pieces, each with the reply's label and segment. Shape: ``(batch, target, width)``."""
        segment_ids = None if encoding.reply_segment_ids is None else encoding.reply_segment_ids[:, None]
        label_ids = None if encoding.reply_label_ids is None else encoding.reply_label_ids[:, None]
        return self.encoder.embed(ids, first_position, segment_ids, label_ids)

    def reply_losses(
        self, logits: Tensor, labels: Tensor, encoding: MEED2Encoding, states: Tensor, n_words: Tensor
    ) -> dict[str, Tensor]:
        """The word loss; ``item``: pieces averaged within a reply, then replies averaged. Arguments as in the base."""
        if self.config.loss_reduction != "item":
            return super().reply_losses(logits, labels, encoding, states, n_words)
        nll = word_loss(logits, labels, self.config.pad_token_id, self.config.label_smoothing)
        return {"words": (nll.sum(-1) / labels.ne(IGNORED).sum(-1).clamp_min(1)).sum() / n_words.clamp_min(1)}

    @classmethod
    def count_items(cls, batch: dict[str, Tensor], config: PreTrainedConfig) -> dict[str, Tensor]:
        """How many items each loss of ``batch`` is a mean over."""
        counts = super().count_items(batch, config)
        if config.loss_reduction == "item" and (labels := batch.get("labels")) is not None:
            counts["words"] = labels.ne(IGNORED).any(-1).sum()
        return counts

    def generate(
        self, *args: Any, label: str | Sequence[str] | None = None, **kwargs: Any
    ) -> GenerateOutput | LongTensor:
        """As in transformers, with a say in what the reply expresses.

        Args:
            *args: As there.
            label: One of the 41 labels for all replies, or one for each; in the place of ``reply_label_ids``.
            **kwargs: As there.

        Raises:
            DataError: A label is unknown.
            DecodingError: The model takes no label, or there are not as many labels as contexts.
        """
        if label is not None:
            if not self.config.reply_label:
                raise DecodingError("this model takes no label of the reply (reply_label is false); leave label out.")
            input_ids = kwargs["input_ids"] if "input_ids" in kwargs else args[0]
            names = [label] * len(input_ids) if isinstance(label, str) else list(label)
            if len(names) != len(input_ids):
                raise DecodingError(f"{len(names)} labels for {len(input_ids)} contexts; give one, or one each.")
            ids = [LABELS_41.index(canonical_emotion(name)) for name in names]
            kwargs["reply_label_ids"] = torch.tensor(ids, device=input_ids.device)
        return super().generate(*args, **kwargs)


register(MEED2)

__all__ = ["MEED2", "MEED2Config", "MEED2Encoder", "MEED2Encoding", "PretrainedContext", "add_labels", "segments_of"]
