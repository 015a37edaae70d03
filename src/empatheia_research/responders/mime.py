"""MIME: the reply mimics the speaker's emotion, mixed with emotions of the other polarity.

Navonil Majumder, Pengfei Hong, Shanshan Peng, Jiankun Lu, Deepanway Ghosal, Alexander Gelbukh, Rada Mihalcea, Soujanya
Poria. MIME: MIMicking Emotions for Empathetic Response Generation. EMNLP 2020.

The 32 emotions fall into 13 positive and 19 negative ones. For each group a Gaussian latent gives a mixture of its
emotion vectors; the group that holds the context's emotion is mimicked, the other is not. Two encoders refine the
context with one mixture each, a gate fuses what they say, and the decoder attends to the result.

``paper`` (default) mends what the released code gets wrong: each group has its own variance, in training the decoder
sees the posterior's sample (released: computed and thrown away), means leave padding out, and at evaluation the
latent is its mean, so that an answer is a function of its input (released: drawn anew). In both variants the gold
emotion decides the polarity in training alone (the released code's perplexity reads it in evaluation, too).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import PreTrainedConfig

from empatheia.taxonomy import EMOTIONS, IGNORED
from empatheia_research.layers.attention import Attention
from empatheia_research.layers.convolutional import ConvolutionalFeedForward, UnbiasedLayerNorm, timing_signal
from empatheia_research.layers.pooling import mean_pool
from empatheia_research.responders.moel_family import FamilyConfig, FamilyEncoder, FamilyResponder, family_encoder
from empatheia_research.responders.seq2seq import ResponderEncoding, register

POSITIVE = (
    "caring",
    "confident",
    "content",
    "excited",
    "faithful",
    "grateful",
    "hopeful",
    "impressed",
    "joyful",
    "prepared",
    "proud",
    "surprised",
    "trusting",
)
"""The other 19 are negative; so is ``anticipating``."""
IS_POSITIVE = [name in POSITIVE for name in EMOTIONS]
FUSIONS = ("gate", "attention")


class MIMEConfig(FamilyConfig):
    """Sizes of MIME, its released options, and the parts its abstract names.

    Args:
        fusion: ``gate`` (released numbers) or ``attention``.
        grouping: Mix each polarity's own emotions; False: both mixtures are over all 32.
        mimicry: The first refining encoder gets the context's polarity; False: always the positive mixture.
        stochastic: Draw the latents in training and learn a posterior; False: take their means, no KL.
        posterior_sample: In training the decoder sees the posterior's sample; None = True in ``paper``, False (the
            prior's) in ``repo``.
        separate_variances: Each polarity has its own log-variance; None = True in ``paper``, False (the positive
            one's serves both) in ``repo``.
        sample_at_evaluation: Draw the prior's latents when answering, too; None = False in ``paper``, True in ``repo``.
        free_bits: Nats a reply's latents may tell for nothing: the KL costs only what its mean over the batch has above
            (Kingma et al., NeurIPS 2016), so that the posterior need not fall onto the prior. 0 as published.
        **kwargs: Of :class:`FamilyConfig`.

    Raises:
        ValueError: ``fusion`` is unknown, ``free_bits`` is negative, or there are not 32 emotions to group.
    """

    model_type = "mime"

    def __init__(
        self,
        fusion: str = "gate",
        grouping: bool = True,
        mimicry: bool = True,
        stochastic: bool = True,
        posterior_sample: bool | None = None,
        separate_variances: bool | None = None,
        sample_at_evaluation: bool | None = None,
        free_bits: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        is_repo = self.variant == "repo"
        self.fusion = fusion
        self.grouping = grouping
        self.mimicry = mimicry
        self.stochastic = stochastic
        self.posterior_sample = not is_repo if posterior_sample is None else posterior_sample
        self.separate_variances = not is_repo if separate_variances is None else separate_variances
        self.sample_at_evaluation = is_repo if sample_at_evaluation is None else sample_at_evaluation
        self.free_bits = free_bits
        if free_bits < 0:
            raise ValueError(f"free_bits is {free_bits}; accepted: 0 or more nats.")
        if fusion not in FUSIONS:
            raise ValueError(f"unknown fusion {fusion!r}; accepted: {', '.join(FUSIONS)}.")
        if self.n_emotions != len(EMOTIONS):
            raise ValueError(f"n_emotions is {self.n_emotions}; accepted: {len(EMOTIONS)}, each with its polarity.")


@dataclass
class MIMEEncoding(ResponderEncoding):
    """The fused context.

    Attributes:
        mixture: Probabilities of the mimicked and of the other polarity's emotions, 0 outside its group. Shape:
            ``(batch, 2, 32)``.
        kl: KL(posterior || prior) of both polarities, in nats; None outside training. Shape: ``(batch,)``.
    """

    mixture: Tensor | None = None
    kl: Tensor | None = None


@dataclass
class Gaussians:
    """Diagonal Gaussians of the positive and the negative latent; both fields ``(batch, 2, width)``."""

    mean: Tensor
    log_variance: Tensor

    def sample(self) -> Tensor:
        """``z = mu + sigma eps``. Shape: ``(batch, 2, width)``."""
        return self.mean + (0.5 * self.log_variance).exp() * torch.randn_like(self.mean)

    def kl(self, prior: Gaussians) -> Tensor:
        """KL(self || prior) in nats, summed over polarities and dimensions. Shape: ``(batch,)``."""
        gap = self.log_variance - prior.log_variance
        distance = (self.mean - prior.mean).square() * (-prior.log_variance).exp()
        return 0.5 * (gap.exp() + distance - gap - 1.0).sum((1, 2))


class LatentHeads(nn.Module):
    """``h = ReLU(W x)``, then a mean and a log-variance for each polarity.

    Args:
        width_in: Width of x.
        width: Of the latents.
        n_hidden: 1: one h for both polarities (the prior); 2: one for each (the posterior).
        n_variances: 2; 1: the positive one's serves both (released code); 0: none, for latents that are never drawn.
    """

    def __init__(self, width_in: int, width: int, n_hidden: int, n_variances: int) -> None:
        super().__init__()
        self.hidden = nn.ModuleList(nn.Linear(width_in, width) for _ in range(n_hidden))
        self.mean = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.log_variance = nn.ModuleList(nn.Linear(width, width) for _ in range(n_variances))

    def forward(self, positive: Tensor, negative: Tensor) -> Gaussians:
        """The latents of what each polarity reads; inputs ``(batch, width_in)``."""
        h = [self.hidden[0](positive).relu(), self.hidden[-1](negative).relu()]
        means = torch.stack([head(x) for head, x in zip(self.mean, h, strict=True)], 1)
        variances = [head(x) for head, x in zip(self.log_variance, h, strict=False)] or [torch.zeros_like(means[:, 0])]
        return Gaussians(means, torch.stack([variances[0], variances[-1]], 1))


class GateFusion(nn.Module):
    """``v = W_2 (sigmoid(W_1 u) * u)``, ``u = [m ; m~]``."""

    def __init__(self, config: MIMEConfig) -> None:
        super().__init__()
        self.gate = nn.Linear(2 * config.width, 2 * config.width)
        self.out = nn.Linear(2 * config.width, config.width)

    def forward(self, states: Tensor, mimicking: Tensor, other: Tensor, mask: Tensor | None) -> Tensor:
        """Fuses m and m~; all shapes ``(batch, source, width)``."""
        both = torch.cat((mimicking, other), dim=-1)
        return self.out(self.gate(both).sigmoid() * both)


class AttentionFusion(nn.Module):
    """The context's states attend to m and m~ side by side in time; convolutions as in a decoder layer."""

    def __init__(self, config: MIMEConfig) -> None:
        super().__init__()
        width = config.width
        self.projection = nn.Linear(width, width, bias=False)
        self.attention_norm = UnbiasedLayerNorm(width)
        self.attention = Attention(width, config.n_heads, config.attention_width, config.dropout)
        self.ffn_norm = UnbiasedLayerNorm(width)
        self.ffn = ConvolutionalFeedForward(width, config.ffn_width, is_causal=True, dropout=config.dropout)
        self.norm = UnbiasedLayerNorm(width)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, states: Tensor, mimicking: Tensor, other: Tensor, mask: Tensor | None) -> Tensor:
        """Fuses m and m~; all shapes ``(batch, source, width)``, ``mask`` ``(batch, source)``."""
        positions = torch.arange(states.shape[1], device=states.device)
        states = self.projection(states) + timing_signal(positions, states.shape[2], states.dtype)
        pair = self.attention.project(torch.cat((mimicking, other), dim=1))
        keep = None if mask is None else torch.cat((mask, mask), dim=1)[:, None, None, :].bool()
        states = states + self.dropout(self.attention(self.attention_norm(states), *pair, keep))
        return self.norm(states + self.dropout(self.ffn(self.ffn_norm(states))))


class MIMEEncoder(FamilyEncoder):
    """Context, emotion, the two mixtures, refinement and fusion."""

    def __init__(self, config: MIMEConfig) -> None:
        super().__init__(config)
        width = config.width
        everyone = list(range(config.n_emotions))
        positive = [i for i in everyone if IS_POSITIVE[i]]
        negative = [i for i in everyone if not IS_POSITIVE[i]]
        self.groups = (positive, negative) if config.grouping else (everyone, everyone)
        self.mimics = config.mimicry
        self.averages_padding = config.variant == "repo"
        self.draws_at_evaluation = config.sample_at_evaluation and config.stochastic
        self.is_stochastic = config.stochastic
        self.decodes_posterior = config.posterior_sample
        self.emotions = nn.Embedding(config.n_emotions, width)
        self.emotion_query = nn.Linear(width, width, bias=False)
        n_variances = 1 + config.separate_variances if config.stochastic else 0
        self.prior = LatentHeads(width, width, 1, n_variances)
        self.posterior = LatentHeads(2 * width, width, 2, n_variances) if config.stochastic else None
        self.mixtures = nn.ModuleList(nn.Linear(width, len(group)) for group in self.groups)
        self.mimicking = family_encoder(config, n_layers=1, input_width=2 * width)
        self.other = family_encoder(config, n_layers=1, input_width=2 * width)
        self.fusion = GateFusion(config) if config.fusion == "gate" else AttentionFusion(config)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        role_ids: Tensor | None = None,
        **_: Any,
    ) -> MIMEEncoding:
        """Reads the context and fuses both mixtures by the predicted polarity; see :class:`MIMEEncoding`."""
        states = self.states(input_ids, attention_mask, role_ids)
        scores = self.emotion_scores(states)
        return self.empathise(states, attention_mask, scores, scores.argmax(-1))

    def emotion_scores(self, states: Tensor) -> Tensor:
        """``s = E (W q)``, q the state of CLS. Shape: ``(batch, 32)``."""
        return F.linear(self.emotion_query(states[:, 0]), self.emotions.weight)

    def empathise(self, states: Tensor, mask: Tensor | None, scores: Tensor, emotion: Tensor) -> MIMEEncoding:
        """Latents, mixtures, refinement, fusion.

        Args:
            states: H. Shape: ``(batch, source, width)``.
            mask: True = keep. Shape: ``(batch, source)``.
            scores: Emotion scores, passed on. Shape: ``(batch, 32)``.
            emotion: Whose polarity is mimicked. Shape: ``(batch,)``.

        Returns:
            The decoder's memory and, in training, the KL of the latents.
        """
        is_positive = self.polarity(emotion)
        prior = self.prior(states[:, 0], states[:, 0])
        draws = self.is_stochastic and (self.training or self.draws_at_evaluation)
        mixture = self.mix(prior.sample() if draws else prior.mean, is_positive)
        refined = self.refine(states, mask, mixture)
        kl = None
        if self.training and self.posterior is not None:
            seen = torch.stack([self._mean(part, mask) for part in refined], 1)  # (batch, 2, width), mimicked first
            seen = _swap_unless(is_positive, seen)  # positive first
            query = states[:, :1].expand(-1, 2, -1)
            posterior = self.posterior(*torch.cat((query, seen), dim=-1).unbind(1))
            kl = posterior.kl(prior)
            if self.decodes_posterior:
                mixture = self.mix(posterior.sample(), is_positive)
                refined = self.refine(states, mask, mixture)
        memory = self.fusion(states, *refined, mask)
        return MIMEEncoding(last_hidden_state=memory, emotion_logits=scores, mixture=mixture, kl=kl)

    def polarity(self, emotion: Tensor) -> Tensor:
        """True where the positive mixture is the mimicked one. Shape: ``(batch,)``."""
        if not self.mimics:
            return torch.ones_like(emotion, dtype=torch.bool)
        return torch.tensor(IS_POSITIVE, device=emotion.device)[emotion]

    def mix(self, latents: Tensor, is_positive: Tensor) -> Tensor:
        """``softmax(D z)`` over each group's emotions.

        Args:
            latents: Positive and negative z. Shape: ``(batch, 2, width)``.
            is_positive: Which is mimicked. Shape: ``(batch,)``.

        Returns:
            Probabilities over all emotions, the mimicked mixture first. Shape: ``(batch, 2, 32)``.
        """
        parts = []
        for head, group, z in zip(self.mixtures, self.groups, latents.unbind(1), strict=True):
            among = head(z).softmax(-1)  # (batch, group)
            everyone = among.new_zeros(among.shape[0], self.emotions.num_embeddings)
            parts.append(everyone.index_copy(1, torch.tensor(group, device=z.device), among))
        return _swap_unless(is_positive, torch.stack(parts, 1))

    def refine(self, states: Tensor, mask: Tensor | None, mixture: Tensor) -> tuple[Tensor, Tensor]:
        """Encodes the states beside each mixture's vector: m and m~. Shapes: ``(batch, source, width)``."""
        vectors = mixture @ self.emotions.weight  # (batch, 2, width)
        pairs = [torch.cat((states, e[:, None].expand_as(states)), dim=-1) for e in vectors.unbind(1)]
        return self.mimicking(pairs[0], mask), self.other(pairs[1], mask)

    def _mean(self, states: Tensor, mask: Tensor | None) -> Tensor:
        if mask is None or self.averages_padding:
            return states.mean(1)
        return mean_pool(states, mask.bool())


def _swap_unless(keep: Tensor, pairs: Tensor) -> Tensor:
    """Rows of ``pairs`` ``(batch, 2, width)`` as they are where ``keep``, else the other way round."""
    return torch.where(keep[:, None, None], pairs, pairs.flip(1))


class MIME(FamilyResponder):
    """Context in; emotion and reply out."""

    config_class = MIMEConfig
    has_emotion_head = True

    def build_encoder(self, config: MIMEConfig) -> nn.Module:
        """Everything up to the decoder's memory."""
        return MIMEEncoder(config)

    def encode_heads(self, input_ids: Tensor, attention_mask: Tensor | None, **features: Tensor | None) -> MIMEEncoding:
        """The emotion alone."""
        states = self.encoder.states(input_ids, attention_mask, features.get("role_ids"))
        return MIMEEncoding(emotion_logits=self.encoder.emotion_scores(states))

    def encode(self, input_ids: Tensor, attention_mask: Tensor | None, **features: Tensor | None) -> MIMEEncoding:
        """The fused context; in training the gold emotion, where it is known, decides the polarity."""
        gold = features.get("emotion_labels")
        if not self.training or gold is None:
            return cast(MIMEEncoding, super().encode(input_ids, attention_mask, **features))  # its encoder's
        states = self.encoder.states(input_ids, attention_mask, features.get("role_ids"))
        scores = self.encoder.emotion_scores(states)
        emotion = torch.where(gold.ne(IGNORED), gold, scores.argmax(-1))
        return self.encoder.empathise(states, attention_mask, scores, emotion)

    def reply_losses(
        self, logits: Tensor, labels: Tensor, encoding: MIMEEncoding, states: Tensor, n_words: Tensor
    ) -> dict[str, Tensor]:
        """``words`` and, in training, ``kl``, over as many items as the words: so both weigh as in the sum of both."""
        losses = super().reply_losses(logits, labels, encoding, states, n_words)
        if encoding.kl is not None:
            free = self.config.free_bits * len(encoding.kl)
            losses["kl"] = encoding.kl.sum().clamp_min(free) / n_words.clamp_min(1)
        return losses

    @classmethod
    def count_items(cls, batch: dict[str, Tensor], config: PreTrainedConfig) -> dict[str, Tensor]:
        """How many items each loss of ``batch`` is a mean over."""
        counts = super().count_items(batch, config)
        if config.stochastic and "words" in counts:
            counts["kl"] = counts["words"]
        return counts


register(MIME)
