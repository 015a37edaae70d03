"""IMAGINE: emotion, its causes, what the reply should do, and what is plausible besides (Chen and Liang, EMNLP 2022).

1. Emotion perception: ``e = W_e H_S[0] + b_e`` on the encoded conversation (equations 1 to 3).
2. Cause extraction: the causal turns ``C`` (found elsewhere) become ``H_C``, with vectors for word, position and
   speaker (4, 5).
3. Dialogue reaction: which of emotional reaction, interpretation, exploration comes next (6 to 9).
4. Experience projection: commonsense about ``C`` by type, refined with ``H_C`` and gated by affect (10 to 16).
5. Verbal expression: the decoder attends to ``[H_behaviour ; H_physical ; H_events ; e_cm]``; in place of BOS it reads
   the emotion (17, 18).

Losses: words + emotion + mechanisms + 1.5 diversity, the recipe's weights (19 to 23). No code was released, and the
paper leaves gaps: each field of :class:`ImagineConfig` fills one, its default as ``docs/concepts/chen2022.md`` argues.
``variant="repo"`` adds what the code of CEM, on which IMAGINE stands, does beside its paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AutoModel, PreTrainedConfig
from transformers import initialization as init

from empatheia.taxonomy import IGNORED
from empatheia_research.layers.convolutional import ConvolutionalDecoder, ConvolutionalEncoder
from empatheia_research.layers.refinement import GatedMLP, beside
from empatheia_research.pretrained import build_pretrained, described_encoder
from empatheia_research.responders.cem import DiverseConfig, DiverseResponder, affect_vector, read_sequences
from empatheia_research.responders.moel_family import family_encoder
from empatheia_research.responders.seq2seq import ResponderEncoding, given, register

AFFECT, TYPES = 0, slice(1, 4)
"""Places of affect, and of behaviour, physical entities and events, among the knowledge sequences."""
N_MECHANISMS = 3
_CHOICES = {
    "cm_signal": ("literal", "vector"),
    "emotion_input": ("context", "cause"),
}


class ImagineConfig(DiverseConfig):
    """IMAGINE; defaults as described, gaps filled from the code of CEM.

    Args:
        mechanisms: Predict what the reply does (False: ablation w/o CM).
        knowledge: Project experience (False: ablation w/o know; the decoder attends to ``[H_C ; e_cm]``).
        cm_signal: ``literal``: ``sum P_m e_m`` has two numbers (equation 9) and a linear layer widens it; ``vector``:
            ``sum P_m(yes) v_m``, ``v_m = A_m h_c``, with the logits read off ``v_m``.
        emotion_input: Whose first state says the emotion: the ``context``'s (equation 2) or the ``cause``'s.
        tie_encoders: Context and causes share their encoder.
        share_affect: One encoder and one refiner for all four types (equations 10 and 14); False: affect has its own
            (CEM).
        mlp_per_type: Each type has its own MLP (equation 16 has no subscript).
        mlp_width: Between its layers; None = ``width``.
        memory_projection: Project the memory to ``width`` before the decoder; False: its keys and values are wider.
        n_positions: Rows of the position table.
        position_start: Size of the position and speaker vectors at the start, in parts of the words'. The paper does
            not say it; as long as the words (1) they drown them, which costs five points of emotion accuracy.
        frequencies: See :class:`DiverseConfig`.
        **kwargs: Of :class:`DiverseConfig`.

    Raises:
        ValueError: A choice is unknown.
    """

    model_type = "imagine"

    def __init__(
        self,
        mechanisms: bool = True,
        knowledge: bool = True,
        cm_signal: str = "literal",
        emotion_input: str = "context",
        tie_encoders: bool = False,
        share_affect: bool = True,
        mlp_per_type: bool = False,
        mlp_width: int | None = None,
        memory_projection: bool = False,
        n_positions: int = 1024,
        position_start: float = 0.1,
        frequencies: str = "predictions",
        **kwargs: Any,
    ) -> None:
        for name, value in (("cm_signal", cm_signal), ("emotion_input", emotion_input)):
            if value not in _CHOICES[name]:
                raise ValueError(f"imagine: {name} is {value!r}; accepted: {', '.join(_CHOICES[name])}.")
        if not 0 <= position_start <= 10:
            raise ValueError(f"imagine: position_start is {position_start!r}; accepted: 0 to 10.")
        self.mechanisms = mechanisms
        self.knowledge = knowledge
        self.cm_signal = cm_signal
        self.emotion_input = emotion_input
        self.tie_encoders = tie_encoders
        self.share_affect = share_affect
        self.mlp_per_type = mlp_per_type
        self.mlp_width = mlp_width
        self.memory_projection = memory_projection
        self.n_positions = n_positions
        self.position_start = position_start
        super().__init__(frequencies=frequencies, **kwargs)

    @property
    def memory_width(self) -> int:
        """Width of what the decoder attends to, before any projection: 4 times ``width`` in full."""
        return self.width * ((3 if self.knowledge else 1) + self.mechanisms)


@dataclass
class ImagineEncoding(ResponderEncoding):
    """What the encoder hands on.

    Attributes:
        start: The emotion as the decoder's first input. Shape: ``(batch, width)``.
        mechanism_logits: Not shown, shown. Shape: ``(batch, 3, 2)``; None w/o CM.
    """

    start: Tensor | None = None
    mechanism_logits: Tensor | None = None


class Reaction(nn.Module):
    """Mechanisms of the coming reply from ``h_c``, and their signal (equations 6, 7 and 9)."""

    def __init__(self, width: int, form: str) -> None:
        super().__init__()
        self.form = form
        if form == "vector":
            self.vectors = nn.Linear(width, N_MECHANISMS * width)
            self.heads = nn.ModuleList(nn.Linear(width, 2) for _ in range(N_MECHANISMS))
        else:
            self.heads = nn.ModuleList(nn.Linear(width, 2) for _ in range(N_MECHANISMS))
            self.widen = nn.Linear(2, width)

    def forward(self, first: Tensor) -> tuple[Tensor, Tensor]:
        """Logits ``(batch, 3, 2)`` and signal ``(batch, width)``.

        Args:
            first: ``h_c``. Shape: ``(batch, width)``.
        """
        if self.form == "vector":
            vectors = self.vectors(first).unflatten(-1, (N_MECHANISMS, -1))  # (batch, 3, width)
            logits = torch.stack([head(v) for head, v in zip(self.heads, vectors.unbind(1), strict=True)], dim=1)
            return logits, (logits.softmax(-1)[..., 1:] * vectors).sum(1)
        logits = torch.stack([head(first) for head in self.heads], dim=1)  # (batch, 3, 2)
        return logits, self.widen((logits.softmax(-1) * logits).sum(1))


class Projection(nn.Module):
    """Experience projection: knowledge acquired (equations 10 to 12) and refined with the causes (13 to 16)."""

    def __init__(self, config: ImagineConfig) -> None:
        super().__init__()
        width = config.width
        self.counts_padding = config.variant == "repo"
        self.encoder = family_encoder(config)
        self.refiner = family_encoder(config, input_width=2 * width)
        self.has_own_affect = not config.share_affect
        if self.has_own_affect:
            self.affect_encoder = family_encoder(config)
            self.affect_refiner = family_encoder(config, input_width=2 * width)
        n_mixers = 3 if config.mlp_per_type else 1
        inner = config.mlp_width or width
        self.mixers = nn.ModuleList(GatedMLP(2 * width, inner, width) for _ in range(n_mixers))

    def acquire(self, vectors: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """``h_affect`` ``(batch, width)`` and ``h`` of the other types ``(batch, 3, width)``.

        Args:
            vectors: Of the words. Shape: ``(batch, 4, pieces, width)``.
            mask: True = keep. Shape: ``(batch, 4, pieces)``.
        """
        if self.has_own_affect:
            affect = read_sequences(self.affect_encoder, vectors[:, :1], mask[:, :1])
            others = read_sequences(self.encoder, vectors[:, TYPES], mask[:, TYPES])
        else:
            states = read_sequences(self.encoder, vectors, mask)
            affect, others = states[:, :1], states[:, TYPES]
        return affect_vector(affect[:, 0], mask[:, AFFECT], self.counts_padding), others[:, :, 0]

    def refine(self, causes: Tensor, cause_mask: Tensor, affect: Tensor, others: Tensor) -> list[Tensor]:
        """Behaviour, physical entities and events in the light of the causes, each ``(batch, causes, width)``."""
        affect_refiner = self.affect_refiner if self.has_own_affect else self.refiner
        refined = affect_refiner(beside(causes, affect), cause_mask)
        out = []
        for i, vector in enumerate(others.unbind(1)):
            pair = torch.cat((self.refiner(beside(causes, vector), cause_mask), refined), dim=-1)
            out.append(self.mixers[i % len(self.mixers)](pair))
        return out

    def forward(self, causes: Tensor, cause_mask: Tensor, vectors: Tensor, mask: Tensor) -> list[Tensor]:
        """Both steps; shapes as in :meth:`acquire` and :meth:`refine`."""
        return self.refine(causes, cause_mask, *self.acquire(vectors, mask))


class ImagineEncoder(nn.Module):
    """Everything before the decoder."""

    main_input_name = "input_ids"

    def __init__(self, config: ImagineConfig) -> None:
        super().__init__()
        width = config.width
        self.word_scale = config.word_scale
        self.words = nn.Embedding(config.vocab_size, width, padding_idx=config.pad_token_id)
        self.dropout = nn.Dropout(config.dropout)
        self.emotion_input = config.emotion_input
        self.is_pretrained = config.encoder_config is not None
        if config.encoder_config is not None:
            self.pretrained = build_pretrained(AutoModel, described_encoder(config))
            self.projection = nn.Linear(self.pretrained.config.hidden_size, width)
        else:
            self.positions = ScaledEmbedding(config.n_positions, width, config.position_start)
            self.speakers = ScaledEmbedding(2, width, config.position_start)
            self.cause_stack = _with_positions(family_encoder(config))
            if not config.tie_encoders and config.emotion_input == "context":
                self.context_stack = _with_positions(family_encoder(config))
        self.has_context_stack = hasattr(self, "context_stack")
        self.emotion = nn.Linear(width, config.n_emotions)
        self.start = nn.Linear(config.n_emotions, width)
        self.reaction = Reaction(width, config.cm_signal) if config.mechanisms else None
        self.experience = Projection(config) if config.knowledge else None
        self.to_memory = nn.Linear(config.memory_width, width) if config.memory_projection else None

    def read(self, ids: Tensor, mask: Tensor | None, role_ids: Tensor | None, stack: nn.Module | None) -> Tensor:
        """``E_W + E_P + E_S`` through an encoder (equations 4 and 5). Shape: ``(batch, length, width)``.

        Positions beyond the table share its last row.
        """
        if self.is_pretrained or stack is None:
            keep = torch.ones_like(ids) if mask is None else mask.long()
            return self.projection(self.pretrained(input_ids=ids, attention_mask=keep).last_hidden_state)
        places = torch.arange(ids.shape[1], device=ids.device).clamp_max(self.positions.num_embeddings - 1)
        vectors = self.words(ids) + self.positions(places)
        if role_ids is not None:
            vectors = vectors + self.speakers(role_ids.eq(2).long())  # CLS counts as the speaker's
        return stack(self.dropout(vectors * self.word_scale), mask)

    def perceive(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None,
        role_ids: Tensor | None,
        cause_ids: Tensor,
        cause_mask: Tensor,
        cause_role_ids: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """``H_C`` ``(batch, causes, width)`` and emotion logits ``(batch, 32)``."""
        own = None if self.is_pretrained else self.cause_stack
        causes = self.read(cause_ids, cause_mask, cause_role_ids, own)
        first = causes[:, 0]
        if self.emotion_input == "context":
            stack = self.context_stack if self.has_context_stack else own
            first = self.read(input_ids, attention_mask, role_ids, stack)[:, 0]
        return causes, self.emotion(first)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        role_ids: Tensor | None = None,
        *,
        cause_ids: Tensor,
        cause_mask: Tensor,
        cause_role_ids: Tensor | None = None,
        knowledge_ids: Tensor,
        knowledge_mask: Tensor,
        **_: Any,
    ) -> ImagineEncoding:
        """Encodes; shapes as in :class:`ImagineEncoding`, the memory ``(batch, causes, memory width)``.

        Args:
            input_ids: Whole context. Shape: ``(batch, source)``.
            attention_mask: True = keep. Shape: ``(batch, source)``.
            role_ids: 0 CLS, 1 speaker, 2 listener. Shape: ``(batch, source)``.
            cause_ids: CLS and the causal turns. Shape: ``(batch, causes)``.
            cause_mask: True = keep. Shape: ``(batch, causes)``.
            cause_role_ids: As ``role_ids``. Shape: ``(batch, causes)``.
            knowledge_ids: Affect, then (each behind CLS) behaviour, physical entities, events.
                Shape: ``(batch, 4, pieces)``.
            knowledge_mask: True = keep. Shape: ``(batch, 4, pieces)``.
        """
        causes, emotions = self.perceive(input_ids, attention_mask, role_ids, cause_ids, cause_mask, cause_role_ids)
        parts = [causes]
        if self.experience is not None:
            vectors = self.dropout(self.words(knowledge_ids) * self.word_scale)
            parts = self.experience(causes, cause_mask, vectors, knowledge_mask)
        logits = None
        if self.reaction is not None:
            logits, signal = self.reaction(causes[:, 0])
            parts.append(signal.unsqueeze(1).expand_as(causes))
        memory = torch.cat(parts, dim=-1)
        return ImagineEncoding(
            last_hidden_state=memory if self.to_memory is None else self.to_memory(memory),
            memory_mask=cause_mask,
            emotion_logits=emotions,
            start=self.start(emotions),
            mechanism_logits=logits,
        )


def _with_positions(stack: ConvolutionalEncoder) -> ConvolutionalEncoder:
    """An encoder whose input has learned positions: no timing signal."""
    stack.has_timing = False
    return stack


class ScaledEmbedding(nn.Embedding):
    """A table whose vectors start at a part of the words' size.

    Args:
        n: Rows.
        width: Of each.
        start: The part; 1 = as long as the words.
    """

    def __init__(self, n: int, width: int, start: float) -> None:
        super().__init__(n, width)
        self.start = start


class Imagine(DiverseResponder):
    """Context, causes and commonsense in; emotion and reply out."""

    config_class = ImagineConfig
    has_emotion_head = True
    side_inputs: ClassVar[tuple[str, ...]] = ("cause_turns", "knowledge_of_types")
    features: ClassVar[tuple[str, ...]] = (
        "input_ids",
        "attention_mask",
        "role_ids",
        "cause_ids",
        "cause_mask",
        "cause_role_ids",
        "knowledge_ids",
        "knowledge_mask",
        "emotion_labels",
        "mechanism_labels",
        "labels",
    )

    def build_encoder(self, config: ImagineConfig) -> nn.Module:
        """Perception, reaction, experience."""
        return ImagineEncoder(config)

    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        if isinstance(module, ScaledEmbedding):
            init.normal_(module.weight, std=module.start * self.config.width**-0.5)

    def build_decoder(self, config: ImagineConfig) -> nn.Module:
        """The family's decoder over a wider memory."""
        return ConvolutionalDecoder(
            config.n_decoder_layers,
            config.width,
            config.n_heads,
            config.attention_width or config.width,
            config.ffn_width,
            config.dropout,
            None if config.memory_projection else config.memory_width,
        )

    def embed_reply(self, ids: Tensor, encoding: ImagineEncoding, first_position: int) -> Tensor:
        """Words; the emotion in the place of BOS."""
        vectors = super().embed_reply(ids, encoding, first_position)
        if first_position > 0:
            return vectors
        return torch.cat((given(encoding.start).unsqueeze(1), vectors[:, 1:]), dim=1)

    def encode_heads(
        self, input_ids: Tensor, attention_mask: Tensor | None, **features: Tensor | None
    ) -> ImagineEncoding:
        """Emotion and mechanisms alone: no commonsense is read for them."""
        names = ("role_ids", "cause_ids", "cause_mask", "cause_role_ids")
        known = {name: features.get(name) for name in names}
        causes, emotions = self.encoder.perceive(input_ids, attention_mask, **known)
        reaction = self.encoder.reaction
        logits = None if reaction is None else reaction(causes[:, 0])[0]
        return ImagineEncoding(emotion_logits=emotions, mechanism_logits=logits)

    def encoding_losses(self, encoding: ImagineEncoding, **labels: Tensor | None) -> dict[str, Tensor]:
        """``emotion`` (equation 3) and ``mechanisms``, the sum of three cross-entropies (equation 8)."""
        losses = super().encoding_losses(encoding, **labels)
        gold = labels.get("mechanism_labels")
        if gold is not None and encoding.mechanism_logits is not None:
            logits = encoding.mechanism_logits.flatten(0, 1)
            total = F.cross_entropy(logits, gold.flatten(), ignore_index=IGNORED, reduction="sum")
            losses["mechanisms"] = total / gold[:, 0].ne(IGNORED).sum().clamp_min(1)
        return losses

    @classmethod
    def count_items(cls, batch: dict[str, Tensor], config: PreTrainedConfig) -> dict[str, Tensor]:
        """How many items each loss of ``batch`` is a mean over."""
        counts = super().count_items(batch, config)
        if config.mechanisms and (gold := batch.get("mechanism_labels")) is not None:
            counts["mechanisms"] = gold[:, 0].ne(IGNORED).sum()
        return counts


register(Imagine)
