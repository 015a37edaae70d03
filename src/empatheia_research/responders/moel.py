"""MoEL: 32 listeners, each for one emotion, mixed by how the context feels.

Zhaojiang Lin, Andrea Madotto, Jamin Shin, Peng Xu, Pascale Fung. MoEL: Mixture of Empathetic Listeners. EMNLP 2019.

An emotion tracker compares the context's vector q with a key for each emotion; the scores say the emotion and how much
each listener, a decoder layer of its own, is heard. A shared listener always is; a meta listener turns the sum into
words. In training the gold emotion's listener is often the only one heard, ever less often: the teacher's schedule.
Outside training no gold label is read (the released code leaves the teacher on when it evaluates).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import initialization as init
from transformers.cache_utils import EncoderDecoderCache

from empatheia.taxonomy import IGNORED
from empatheia_research.layers.convolutional import ConvolutionalDecoder, ConvolutionalDecoderLayer
from empatheia_research.layers.experts import ExpertDecoderLayer, ExpertLinear, ExpertNorm, Routing
from empatheia_research.layers.pooling import mean_pool
from empatheia_research.responders.moel_family import FamilyConfig, FamilyEncoder, FamilyResponder
from empatheia_research.responders.seq2seq import ResponderEncoding, given, register

LEAST_TEACHING = 1e-4


class MoELConfig(FamilyConfig):
    """Sizes of MoEL and what its released code can switch.

    Args:
        topk: Listeners heard besides the shared one, those of the highest scores; 0 = all.
        softmax: Weights are a softmax over the heard listeners' scores, the emotion loss is cross-entropy; False:
            sigmoids and binary cross-entropy.
        pooling: q: ``cls`` (first state) or ``mean`` (of all states).
        shared_listener: Add the listener that all emotions share.
        teacher_steps: T of the teacher's schedule; 0 = no teacher.
        n_decoder_layers: Layers of the meta listener.
        **kwargs: Of :class:`FamilyConfig`.

    Raises:
        ValueError: ``topk`` or ``pooling`` is out of range.
    """

    model_type = "moel"

    def __init__(
        self,
        topk: int = 5,
        softmax: bool = True,
        pooling: str = "cls",
        shared_listener: bool = True,
        teacher_steps: float = 10_000,
        n_decoder_layers: int = 1,
        **kwargs: Any,
    ) -> None:
        self.topk = topk
        self.softmax = softmax
        self.pooling = pooling
        self.shared_listener = shared_listener
        self.teacher_steps = teacher_steps
        super().__init__(n_decoder_layers=n_decoder_layers, **kwargs)
        if not 0 <= topk <= self.n_emotions:
            raise ValueError(f"topk is {topk}; accepted: 0 (all) to {self.n_emotions} listeners.")
        if pooling not in ("cls", "mean"):
            raise ValueError(f"pooling is {pooling!r}; accepted: cls, mean.")

    @property
    def n_attention_layers(self) -> int:
        """All listeners together, the shared one, the meta listener's layers."""
        return 1 + int(self.shared_listener) + self.n_decoder_layers

    @property
    def n_cache_layers(self) -> int:
        """Layers of a generation cache: one for each attention, one for each pair of convolutions."""
        return 2 * self.n_attention_layers


@dataclass
class MoELEncoding(ResponderEncoding):
    """The context, and who listens.

    Attributes:
        listener_ids: Emotions of the heard listeners. Shape: ``(batch, heard)``.
        listener_weights: How much each is heard, in [0, 1]. Shape: ``(batch, heard)``.
    """

    listener_ids: Tensor | None = None
    listener_weights: Tensor | None = None


class MoELEncoder(FamilyEncoder):
    """The family's encoder with the emotion tracker: scores ``s = K q``, weights of the highest."""

    def __init__(self, config: MoELConfig) -> None:
        super().__init__(config)
        self.topk = config.topk or config.n_emotions
        self.is_softmax = config.softmax
        self.pooling = config.pooling
        self.averages_padding = config.variant == "repo"
        self.keys = nn.Linear(config.width, config.n_emotions, bias=False)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        role_ids: Tensor | None = None,
        **_: Any,
    ) -> MoELEncoding:
        """Encodes the context and weighs the listeners; shapes as in :class:`MoELEncoding`."""
        states = self.states(input_ids, attention_mask, role_ids)
        if self.pooling == "cls":
            query = states[:, 0]
        elif attention_mask is None or self.averages_padding:
            query = states.mean(1)
        else:
            query = mean_pool(states, attention_mask.bool())
        scores = self.keys(query)  # (batch, 32)
        ids, weights = self.gates(scores)
        return MoELEncoding(last_hidden_state=states, emotion_logits=scores, listener_ids=ids, listener_weights=weights)

    def gates(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """The ``topk`` listeners of the highest scores and their weights (all others have 0).

        Args:
            scores: Shape: ``(batch, 32)``.

        Returns:
            Ids and weights. Shape: ``(batch, topk)``; softmax weights sum to 1.
        """
        highest, ids = scores.topk(self.topk, dim=-1)
        return ids, highest.softmax(-1) if self.is_softmax else highest.sigmoid()


class ListenerDecoder(ConvolutionalDecoder):
    """Listeners over the same words and memory, their weighted sum plus the shared one's, the meta listener.

    ``z = o_0 + sum_i p_i o_i``; the meta listener is the stack of :class:`ConvolutionalDecoder`.
    """

    def __init__(self, config: MoELConfig) -> None:
        sizes = (config.width, config.n_heads, config.attention_width, config.ffn_width, config.dropout)
        super().__init__(0, *sizes)
        n = config.n_attention_layers
        self.listeners = ExpertDecoderLayer(config.n_emotions, *sizes, layer_idx=0, conv_idx=n)
        self.shared = ConvolutionalDecoderLayer(*sizes, 1, n + 1) if config.shared_listener else None
        meta = range(n - config.n_decoder_layers, n)
        self.layers = nn.ModuleList(ConvolutionalDecoderLayer(*sizes, i, n + i) for i in meta)

    def mix(
        self,
        states: Tensor,
        memory: Tensor,
        memory_mask: Tensor | None,
        ids: Tensor,
        weights: Tensor,
        cache: EncoderDecoderCache | None = None,
    ) -> Tensor:
        """What is heard: ``z``.

        Args:
            states: From :meth:`open`. Shape: ``(batch, target, width)``.
            memory: Shape: ``(batch, source, width)``.
            memory_mask: True = keep. Shape: ``(batch, source)``.
            ids: Listeners. Shape: ``(batch, heard)``.
            weights: Shape: ``(batch, heard)``.
            cache: Keys, values and convolution inputs of earlier steps, or None.

        Returns:
            Tensor of the shape of ``states``.
        """
        keep = None if memory_mask is None else memory_mask[:, None, None, :].bool()
        routing = Routing.of(ids, self.listeners.n_experts)
        heard = self.listeners(states, memory, keep, routing, cache)  # (batch, heard, target, width)
        mixed = (weights.to(heard.dtype)[:, :, None, None] * heard).sum(1)
        return mixed if self.shared is None else mixed + self.shared(states, memory, keep, cache)


class Teacher(nn.Module):
    """Whether the gold emotion's listener alone is heard: ``P(t) = c + (1 - c) exp(-t / T)``, ``c = 1e-4``.

    Decided at every update t, used from the next on (released code). Step and decision are saved.

    Args:
        n_steps: T.
    """

    step: Tensor
    speaks: Tensor

    def __init__(self, n_steps: float) -> None:
        super().__init__()
        self.n_steps = n_steps
        self._spoke = False
        self.register_buffer("step", torch.zeros((), dtype=torch.long))
        self.register_buffer("speaks", torch.zeros((), dtype=torch.bool))

    def chance(self, step: float) -> float:
        """P(t), in [1e-4, 1]."""
        return LEAST_TEACHING + (1.0 - LEAST_TEACHING) * math.exp(-step / self.n_steps)

    def forward(self, continues_update: bool = False) -> bool:
        """One update: the decision in force; then the next is made.

        Args:
            continues_update: A further batch of the same update: what was decided for the first holds.
        """
        if not continues_update:
            self._spoke = bool(self.speaks)
            self.speaks.fill_(torch.rand(()).item() <= self.chance(int(self.step)))
            self.step += 1
        return self._spoke


class MoEL(FamilyResponder):
    """Context in; emotion and reply out.

    Attributes:
        continues_update: The trainer's word that this batch is not the first of its update.
    """

    config_class = MoELConfig
    has_emotion_head = True
    continues_update: bool = False

    def __init__(self, config: MoELConfig) -> None:
        super().__init__(config)
        self.teacher = Teacher(config.teacher_steps) if config.teacher_steps else None

    def build_encoder(self, config: MoELConfig) -> nn.Module:
        """Words, roles, blocks, emotion tracker."""
        return MoELEncoder(config)

    def build_decoder(self, config: MoELConfig) -> nn.Module:
        """Listeners and meta listener."""
        return ListenerDecoder(config)

    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        if isinstance(module, ExpertLinear):
            init.uniform_(module.weight, -module.bound, module.bound)
            if module.bias is not None:
                init.zeros_(module.bias)
        elif isinstance(module, ExpertNorm):
            init.ones_(module.weight)
            init.zeros_(module.bias)
        elif isinstance(module, Teacher):
            init.zeros_(module.step)
            init.zeros_(module.speaks)

    def encode_heads(
        self, input_ids: Tensor, attention_mask: Tensor | None, **features: Tensor | None
    ) -> ResponderEncoding:
        """The emotion alone; no listener speaks, so no step of the teacher's schedule passes."""
        return super().encode(input_ids, attention_mask, **features)

    def encode(self, input_ids: Tensor, attention_mask: Tensor | None, **features: Tensor | None) -> MoELEncoding:
        """The context; in training, when the teacher speaks, with the gold emotion's listener alone."""
        encoding: Any = super().encode(input_ids, attention_mask, **features)
        gold = features.get("emotion_labels")
        if self.training and self.teacher is not None and gold is not None and self.teacher(self.continues_update):
            self.teach(encoding, gold)
        return encoding

    @staticmethod
    def teach(encoding: MoELEncoding, gold: Tensor) -> None:
        """Lets only the gold emotion's listener be heard, with weight 1; where it is unknown, all stays.

        Args:
            encoding: Changed in place.
            gold: Emotions, -100 unknown. Shape: ``(batch,)``.
        """
        ids, weights = encoding.listener_ids, encoding.listener_weights
        assert ids is not None and weights is not None
        known = gold.ne(IGNORED)[:, None]
        if bool(known.all()):
            encoding.listener_ids, encoding.listener_weights = gold[:, None], torch.ones_like(weights[:, :1])
            return
        alone = torch.zeros_like(weights)
        alone[:, 0] = 1.0
        encoding.listener_ids = torch.where(known, gold.clamp_min(0)[:, None], ids)
        encoding.listener_weights = torch.where(known, alone, weights)

    def decode(
        self, states: Tensor, encoding: MoELEncoding, attention_mask: Tensor | None, cache: EncoderDecoderCache | None
    ) -> Tensor:
        """Listeners, then the meta listener; shapes as in :meth:`Seq2SeqResponder.decode`."""
        memory, decoder = given(encoding.last_hidden_state), cast(ListenerDecoder, self.decoder)  # as it was built
        heard = (given(encoding.listener_ids), given(encoding.listener_weights))
        mixed = decoder.mix(states, memory, attention_mask, *heard, cache)
        return decoder(mixed, memory, attention_mask, cache)

    def encoding_losses(self, encoding: MoELEncoding, **labels: Tensor | None) -> dict[str, Tensor]:
        """``emotion``: cross-entropy, or the mean binary cross-entropy of the sigmoids."""
        gold = labels.get("emotion_labels")
        if self.config.softmax or gold is None:
            return super().encoding_losses(encoding, **labels)
        known = gold.ne(IGNORED)
        scores = given(encoding.emotion_logits)[known]
        wanted = F.one_hot(gold[known], scores.shape[-1]).to(scores.dtype)
        total = F.binary_cross_entropy_with_logits(scores, wanted, reduction="none").mean(-1).sum()
        return {"emotion": total / known.sum().clamp_min(1)}


register(MoEL)
