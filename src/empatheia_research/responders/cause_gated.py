"""Emotion reasoner and cause-gated response generator (Gao et al., Findings of EMNLP 2021).

Reasoner (section 4.2): ``V = Encoder_r(E(X))``, ``P(emotion) = softmax(W_e v_0 + b_e)``,
``P(c_i) = softmax(W_c v_i + b_c)``, ``L_r = -log P(emotion) - sum_i log P(c_i)`` (equation 4). Generator (4.3):
inputs ``E_w + E_p + E_emotion[predicted]``, every decoder block adds an attention over the context gated by the
predicted causes (equation 5). ``L = L_r + L_g`` (equations 6 and 7).

Where paper and released code differ, ``CauseGatedConfig.variant_fields`` lists both; the gates and the emotion
embedding always come from the reasoner's own predictions, never from gold labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import LongTensor, Tensor, nn
from transformers import AutoModel, PreTrainedConfig
from transformers.generation.utils import GenerateOutput
from transformers.utils import ModelOutput

from empatheia.reading import Json
from empatheia.taxonomy import IGNORED
from empatheia_research.layers.attention import Attention, GateForm
from empatheia_research.layers.gates import hard_gates, soft_gates
from empatheia_research.layers.positions import sinusoidal_positions
from empatheia_research.layers.transformer import Encoder
from empatheia_research.pretrained import build_pretrained, described_encoder, load_pretrained
from empatheia_research.responders.seq2seq import (
    ResponderEncoding,
    Seq2SeqConfig,
    Seq2SeqResponder,
    embed_source,
    encoder_stack,
    register,
)

_VARIANTS: dict[str, dict[str, Any]] = {
    # name: value in the paper, value in the released code (spec: sections 4, 5 and 8)
    "paper": {
        "gated_attention": "weights",
        "reasoner_block": "transformer",
        "loss_reduction": "sum",
        "label_smoothing": 0.0,
        "sample_gates_at_evaluation": False,
        "open_cls": True,
        "n_encoder_layers": 6,
        "n_decoder_layers": 6,
        "n_heads": 8,
        "attention_width": 304,
        "reasoner_attention_width": 300,
    },
    "repo": {
        "gated_attention": "repo",
        "reasoner_block": "attention_only",
        "loss_reduction": "mean",
        "label_smoothing": 0.1,
        "sample_gates_at_evaluation": True,
        "open_cls": False,
        "n_encoder_layers": 2,
        "n_decoder_layers": 2,
        "n_heads": 2,
        "attention_width": 512,
        "reasoner_attention_width": 512,
    },
}


class CauseGatedConfig(Seq2SeqConfig):
    """Gao et al.'s system; defaults are the paper's, ``variant="repo"`` gives the released code's.

    Args:
        variant: ``paper`` or ``repo``: fills every field below (and the sizes) that is not given.
        gate: ``soft``, ``hard``, or ``none`` (ablation w/o ec: no cause head, no gated attention).
        emotion_embedding: Add the predicted emotion's vector to all inputs (False: ablation w/o el).
        gated_attention: ``weights`` (equation 5) or ``repo`` (scaled memory if soft, -1e18 bias if hard).
        gumbel_temperature: Of the hard gate's draw.
        sample_gates_at_evaluation: Draw hard gates when not training, too.
        open_cls: Force the hard gate of CLS open.
        reasoner_block: ``transformer`` or ``attention_only`` (no residual, no feed-forward, no dropout
            before the heads).
        n_reasoner_layers: Blocks of the reasoner.
        n_reasoner_heads: Attention heads of the reasoner.
        reasoner_attention_width: Total width of those heads.
        reasoner_positions: Position vectors for the reasoner (both sources: none).
        emotion_pooling: ``cls`` (v_0, as published) or ``mean`` over the kept positions.
        emotion_smoothing: Label smoothing of the emotion loss, mass over all 32 classes; None = as the words'.
        encoder_config: A Hugging Face encoder's configuration as a dict: the reasoner then reads its states in
            place of its own word table and blocks, and the generator's encoder stands on a projection of them.
    """

    model_type = "cause_gated"

    def __init__(
        self,
        variant: str = "paper",
        gate: str = "soft",
        emotion_embedding: bool = True,
        gumbel_temperature: float = 1.0,
        n_reasoner_layers: int = 1,
        n_reasoner_heads: int = 1,
        reasoner_positions: bool = False,
        emotion_pooling: str = "cls",
        emotion_smoothing: float | None = None,
        encoder_config: dict[str, Json] | None = None,
        **kwargs: Any,
    ) -> None:
        fields = dict(self.variant_fields(variant))
        if kwargs.get("width", 300) != 300:  # derived widths follow the width unless given
            fields.pop("attention_width" if variant == "paper" else "_", None)
            fields["reasoner_attention_width"] = kwargs["width"] if variant == "paper" else 512
        fields.update(kwargs)
        self.variant = variant
        self.gate = gate
        self.emotion_embedding = emotion_embedding
        self.gated_attention = fields.pop("gated_attention")
        self.gumbel_temperature = gumbel_temperature
        self.sample_gates_at_evaluation = fields.pop("sample_gates_at_evaluation")
        self.open_cls = fields.pop("open_cls")
        self.reasoner_block = fields.pop("reasoner_block")
        self.n_reasoner_layers = n_reasoner_layers
        self.n_reasoner_heads = n_reasoner_heads
        self.reasoner_attention_width = fields.pop("reasoner_attention_width")
        self.reasoner_positions = reasoner_positions
        self.emotion_pooling = emotion_pooling
        self.emotion_smoothing = fields["label_smoothing"] if emotion_smoothing is None else emotion_smoothing
        self.encoder_config = encoder_config
        super().__init__(**fields)

    @staticmethod
    def variant_fields(variant: str) -> dict[str, Any]:
        """The values ``variant`` fills in, by field name."""
        if variant not in _VARIANTS:
            raise ValueError(f"unknown variant {variant!r}; accepted: {', '.join(_VARIANTS)}.")
        return _VARIANTS[variant]


@dataclass
class Reasoning(ModelOutput):
    """What the reasoner says.

    Attributes:
        states: V. Shape: ``(batch, source, reasoner width)``.
        emotion_logits: Shape: ``(batch, 32)``.
        cause_logits: Not-cause and cause logit. Shape: ``(batch, source, 2)``; None w/o ec.
        cause_probs: P(c_i = 1), 0 at padding. Shape: ``(batch, source)``; None w/o ec.
    """

    states: Tensor | None = None
    emotion_logits: Tensor | None = None
    cause_logits: Tensor | None = None
    cause_probs: Tensor | None = None


class AttentionOnlyBlock(nn.Module):
    """The released code's reasoner block: attention and dropout, no residual; one norm ends the stack."""

    def __init__(self, width: int, n_heads: int, attention_width: int, dropout: float) -> None:
        super().__init__()
        self.attention = Attention(width, n_heads, attention_width, dropout)
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attends; shapes as in :class:`empatheia_research.layers.transformer.Encoder`."""
        keep = None if mask is None else mask[:, None, None, :].bool()
        return self.norm(self.dropout(self.attention(states, *self.attention.project(states), keep)))


class EmotionReasoner(nn.Module):
    """Emotion of the conversation and cause probability of each position (section 4.2, equations 1 to 4)."""

    def __init__(self, config: CauseGatedConfig) -> None:
        super().__init__()
        self.has_positions = config.reasoner_positions
        self.pooling = config.emotion_pooling
        self.word_scale = config.word_scale
        self.drops_pooled = config.reasoner_block == "transformer"  # the released code has no dropout before its heads
        width = config.width
        if config.encoder_config is not None:
            self.pretrained = build_pretrained(AutoModel, described_encoder(config))
            width = self.pretrained.config.hidden_size
        else:
            self.words = nn.Embedding(config.vocab_size, width, padding_idx=config.pad_token_id)
            sizes = (config.n_reasoner_heads, config.reasoner_attention_width)
            if config.reasoner_block == "attention_only":
                self.stack: nn.Module = AttentionOnlyBlock(width, *sizes, config.dropout)
            else:
                self.stack = Encoder(config.n_reasoner_layers, width, *sizes, config.ffn_width, config.dropout)
        self.is_pretrained = config.encoder_config is not None
        self.width = width
        self.dropout = nn.Dropout(config.dropout)
        self.emotion = nn.Linear(width, config.n_emotions)
        self.cause = nn.Linear(width, 2) if config.gate != "none" else None

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Reasoning:
        """Reasons.

        Args:
            input_ids: CLS first. Shape: ``(batch, source)``.
            attention_mask: True = keep. Shape: ``(batch, source)``.

        Returns:
            Emotion logits and, with a cause head, cause logits.
        """
        mask = torch.ones_like(input_ids, dtype=torch.bool) if attention_mask is None else attention_mask.bool()
        if self.is_pretrained:
            states = self.pretrained(input_ids=input_ids, attention_mask=mask.long()).last_hidden_state
        else:
            states = self.words(input_ids) * self.word_scale
            if self.has_positions:
                positions = torch.arange(input_ids.shape[1], device=input_ids.device)
                states = states + sinusoidal_positions(positions, self.width, states.dtype)
            states = self.stack(self.dropout(states), mask)  # (batch, source, width)
        if self.pooling == "mean":
            kept = mask.unsqueeze(-1).to(states.dtype)
            pooled = (states * kept).sum(1) / kept.sum(1).clamp_min(1)
        else:
            pooled = states[:, 0]
        cause_logits = self.cause(states) if self.cause is not None else None
        return Reasoning(
            states=states,
            emotion_logits=self.emotion(self.dropout(pooled) if self.drops_pooled else pooled),
            cause_logits=cause_logits,
            cause_probs=None if cause_logits is None else soft_gates(cause_logits) * mask,
        )


class CauseGatedEncoder(nn.Module):
    """Reasoner, gates, and the generator's encoder ``H = Encoder(E_w + E_p + E_emotion[predicted])``."""

    main_input_name = "input_ids"

    def __init__(self, config: CauseGatedConfig) -> None:
        super().__init__()
        self.gate = config.gate
        self.word_scale = config.word_scale
        self.draws_at_evaluation = config.sample_gates_at_evaluation
        self.temperature = config.gumbel_temperature
        self.open_cls = config.open_cls
        self.reasoner = EmotionReasoner(config)
        self.words = nn.Embedding(config.vocab_size, config.width, padding_idx=config.pad_token_id)
        self.has_projection = config.encoder_config is not None
        if self.has_projection:
            self.projection = nn.Linear(self.reasoner.width, config.width)
        self.emotions = nn.Embedding(config.n_emotions, config.width) if config.emotion_embedding else None
        self.roles = nn.Embedding(3, config.width) if config.role_embedding else None
        self.dropout = nn.Dropout(config.dropout)
        self.stack = encoder_stack(config)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        role_ids: Tensor | None = None,
        reasoning: Reasoning | None = None,
        **_: Any,
    ) -> ResponderEncoding:
        """Reasons, unless that has been done, and encodes; shapes as in :class:`ResponderEncoding`."""
        found: Any = self.reasoner(input_ids, attention_mask) if reasoning is None else reasoning
        emotion_ids = found.emotion_logits.argmax(-1)  # (batch,)
        if self.has_projection:
            states = self.projection(found.states)
        else:
            states = embed_source(self.words, input_ids, self.word_scale)
        if self.emotions is not None:
            states = states + self.emotions(emotion_ids)[:, None]
        if self.roles is not None and role_ids is not None:
            states = states + self.roles(role_ids)
        return ResponderEncoding(
            last_hidden_state=self.stack(self.dropout(states), attention_mask),
            gates=self.gates(found),
            emotion_ids=emotion_ids,
            emotion_logits=found.emotion_logits,
            cause_logits=found.cause_logits,
        )

    def gates(self, found: Reasoning) -> Tensor | None:
        """Gates of the context's positions, in [0, 1]. Shape: ``(batch, source)``; None w/o ec.

        Soft gates are the reasoner's own ``cause_probs`` (section 5.1): computed, and closed at padding, in one place.
        """
        if found.cause_logits is None or self.gate == "soft":
            return found.cause_probs
        sample = self.training or self.draws_at_evaluation
        return hard_gates(found.cause_logits, sample=sample, temperature=self.temperature, open_first=self.open_cls)


class CauseGated(Seq2SeqResponder):
    """Reasons about emotion and cause, then answers with the causes in view."""

    config_class = CauseGatedConfig
    has_emotion_head = True
    takes_reasoning = True
    scales_random_words = True
    features: ClassVar[tuple[str, ...]] = (
        "input_ids",
        "attention_mask",
        "role_ids",
        "emotion_labels",
        "cause_labels",
        "emotion_teacher",
        "labels",
    )

    def build_encoder(self, config: CauseGatedConfig) -> nn.Module:
        """Reasoner and generator encoder."""
        return CauseGatedEncoder(config)

    def decoder_gate_form(self, config: CauseGatedConfig) -> GateForm | None:
        """Equation 5, or the released code's form for the gate at hand."""
        if config.gate == "none":
            return None
        if config.gated_attention == "repo":
            return "memory" if config.gate == "soft" else "bias"
        return config.gated_attention

    def word_tables(self) -> list[nn.Embedding]:
        """Reasoner and generator own separate tables (released code)."""
        own = [] if self.config.encoder_config is not None else [self.encoder.reasoner.words]
        return [self.encoder.words, *own]

    def load_encoder(self, folder: str) -> None:
        """Fills the pretrained part of the reasoner from a Hugging Face model folder."""
        source = load_pretrained(AutoModel, folder)
        own = self.encoder.reasoner.pretrained.state_dict()
        self.encoder.reasoner.pretrained.load_state_dict(
            {name: tensor for name, tensor in source.state_dict().items() if name in own}
        )

    def decoder_inputs(self, ids: Tensor, encoding: ResponderEncoding, first_position: int) -> Tensor:
        """Words + positions + the predicted emotion's vector."""
        states = super().decoder_inputs(ids, encoding, first_position)
        if self.encoder.emotions is not None:
            states = states + self.encoder.emotions(encoding.emotion_ids)[:, None]
        return states

    def encode_heads(
        self, input_ids: Tensor, attention_mask: Tensor | None, **features: Tensor | None
    ) -> ResponderEncoding:
        """The reasoner alone: its pre-training needs no memory for the decoder."""
        reasoning = self.encoder.reasoner(input_ids, attention_mask)
        return ResponderEncoding(emotion_logits=reasoning.emotion_logits, cause_logits=reasoning.cause_logits)

    def encoding_losses(self, encoding: ResponderEncoding, **labels: Tensor | None) -> dict[str, Tensor]:
        """Reasoner losses (equation 4): ``emotion``, ``cause`` and, with a teacher, ``emotion_teacher``."""
        losses: dict[str, Tensor] = {}
        if (gold := labels.get("emotion_labels")) is not None and encoding.emotion_logits is not None:
            total = F.cross_entropy(
                encoding.emotion_logits,
                gold,
                ignore_index=IGNORED,
                reduction="sum",
                label_smoothing=self.config.emotion_smoothing,
            )
            losses["emotion"] = total / gold.ne(IGNORED).sum().clamp_min(1)
        if (gold := labels.get("cause_labels")) is not None and encoding.cause_logits is not None:
            total = F.cross_entropy(
                encoding.cause_logits.flatten(0, 1), gold.flatten(), ignore_index=IGNORED, reduction="sum"
            )
            losses["cause"] = total / self._cause_count(gold, self.config).clamp_min(1)
        if (teacher := labels.get("emotion_teacher")) is not None and encoding.emotion_logits is not None:
            has_teacher = teacher.sum(-1).gt(0)
            nll = -(teacher * encoding.emotion_logits.log_softmax(-1)).sum()
            losses["emotion_teacher"] = nll / has_teacher.sum().clamp_min(1)
        return losses

    @staticmethod
    def _cause_count(cause_labels: Tensor, config: PreTrainedConfig) -> Tensor:
        kept = cause_labels.ne(IGNORED)
        return kept.any(-1).sum() if config.loss_reduction == "sum" else kept.sum()

    @classmethod
    def count_items(cls, batch: dict[str, Tensor], config: PreTrainedConfig) -> dict[str, Tensor]:
        """How many items each loss of ``batch`` is a mean over."""
        counts = super().count_items(batch, config)
        if (gold := batch.get("cause_labels")) is not None and config.gate != "none":
            counts["cause"] = cls._cause_count(gold, config)
        if (teacher := batch.get("emotion_teacher")) is not None:
            counts["emotion_teacher"] = teacher.sum(-1).gt(0).sum()
        return counts

    @torch.no_grad()
    def understand(self, input_ids: Tensor, attention_mask: Tensor | None = None, **_: Any) -> Reasoning:
        """Emotion and causes alone, without encoding for the generator.

        Args:
            input_ids: Shape: ``(batch, source)``.
            attention_mask: True = keep. Shape: ``(batch, source)``.

        Returns:
            Emotion logits ``(batch, 32)`` and cause probabilities ``(batch, source)`` (None w/o ec).
        """
        return self.encoder.reasoner(input_ids, attention_mask)

    def encode_reasoned(self, reasoning: Reasoning, input_ids: Tensor, **inputs: Tensor) -> ResponderEncoding:
        """What ``generate()`` takes as ``encoder_outputs``, from what :meth:`understand` found in the same context.

        Args:
            reasoning: Of the context.
            input_ids: Shape: ``(batch, source)``.
            **inputs: ``attention_mask`` and ``role_ids``, likewise; others are not read.
        """
        names = [name for name in ("attention_mask", "role_ids") if name in inputs]
        return self.encoder(input_ids, **{name: inputs[name] for name in names}, reasoning=reasoning)

    def generate(self, *args: Any, reasoning: Reasoning | None = None, **kwargs: Any) -> GenerateOutput | LongTensor:
        """As in transformers; what :meth:`understand` found in the same context is not computed again.

        Args:
            *args: See transformers.
            reasoning: Of the context, by keyword; None = it is reasoned about.
            **kwargs: See transformers.
        """
        if reasoning is not None:
            kwargs["encoder_outputs"] = self.encode_reasoned(reasoning, **kwargs)
        return super().generate(*args, **kwargs)


register(CauseGated)
