"""EmpDG: multi-resolution emotion perception and interactive adversarial learning (Li et al., COLING 2020).

*Generator*: a semantic encoder over the context gives S, an emotion encoder over LAB and the context's emotion words
gives A; ``e = W [A_0 ; S_0]``; the decoder starts from e, attends to ``[S ; A]`` and copies from it.
*Discriminators*: one reads sentences, one their emotion words; both see the context and the *feedback*, the speaker's
next turn. They learn ``D(generated) - D(gold)`` with a gradient penalty, the generator ``-D(generated)``.

The feedback and the reply reach the discriminators while training, and nothing else: :meth:`EmpDG.forward` reads them
in training mode only, and the generator's encoder never.

``variant="repo"`` keeps what the released code does: the adversarial term is a number without gradient, the
discriminators' convolutions are drawn anew in every call, their batch norms do not learn, the penalty has no effect,
and the attention to copy is the softmax of the heads' mean score, flattened by a second softmax.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence
from transformers import initialization as init
from transformers.cache_utils import DynamicCache, EncoderDecoderCache

from empatheia.taxonomy import IGNORED
from empatheia_research.layers.copy import compact
from empatheia_research.layers.losses import total_of
from empatheia_research.layers.precision import wide
from empatheia_research.responders.copying import CopyingConfig, CopyingEncoding, CopyingResponder
from empatheia_research.responders.moel_family import FamilyEncoder, family_encoder
from empatheia_research.responders.seq2seq import ResponderOutput, given, register

DISCRIMINATORS = {"both": ("semantic", "emotion"), "semantic": ("semantic",), "none": ()}
REPLY_LOSSES = frozenset(("words", "emotion"))


class EmpDGConfig(CopyingConfig):
    """EmpDG; defaults are the paper's.

    Args:
        multi_resolution: The emotion encoder. False: Multi-TRS in its place (with ``discriminators="semantic"``:
            ablation w/o G).
        discriminators: ``both``, ``semantic``, or ``none`` (ablation w/o D).
        n_sampled_words: Longest reply the generator makes for the discriminators.
        gumbel_temperature: Of the draw whose gradient reaches the generator.
        gradient_penalty: Weight of ``mean((|grad| - 1)^2)`` in the discriminators' loss (paper: 0.1).
        **kwargs: Of :class:`CopyingConfig`.
    """

    model_type = "empdg"

    def __init__(
        self,
        multi_resolution: bool = True,
        discriminators: str = "both",
        n_sampled_words: int = 30,
        gumbel_temperature: float = 1.0,
        gradient_penalty: float = 0.1,
        **kwargs: Any,
    ) -> None:
        if discriminators not in DISCRIMINATORS:
            raise ValueError(f"unknown discriminators {discriminators!r}; accepted: {', '.join(DISCRIMINATORS)}.")
        if discriminators == "both" and not multi_resolution:
            raise ValueError("discriminators 'both' without multi_resolution; accepted then: semantic, none.")
        self.multi_resolution = multi_resolution
        self.discriminators = discriminators
        self.n_sampled_words = n_sampled_words
        self.gumbel_temperature = gumbel_temperature
        self.gradient_penalty = gradient_penalty
        super().__init__(**kwargs)


@dataclass
class EmpDGEncoding(CopyingEncoding):
    """The memory, and the emotion encoder's summary.

    Attributes:
        emotion_state: A_0. Shape: ``(batch, width)``; None without the emotion encoder.
    """

    emotion_state: Tensor | None = None


class EmpDGEncoder(FamilyEncoder):
    """Semantic and emotion encoder, and the emotion they agree on."""

    def __init__(self, config: EmpDGConfig) -> None:
        super().__init__(config)
        self.emotion_stack = family_encoder(config) if config.multi_resolution else None
        n_views = 1 + config.multi_resolution
        self.emotion = nn.Linear(n_views * config.width, config.n_emotions, bias=False)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        role_ids: Tensor | None = None,
        emotion_word_ids: Tensor | None = None,
        emotion_word_mask: Tensor | None = None,
        **_: Any,
    ) -> EmpDGEncoding:
        """Encodes a context.

        Args:
            input_ids: Shape: ``(batch, source)``.
            attention_mask: True = keep. Shape: ``(batch, source)``.
            role_ids: Shape: ``(batch, source)``.
            emotion_word_ids: LAB, then the context's emotion words. Shape: ``(batch, 1 + emotion words)``.
            emotion_word_mask: True = keep; LAB always. Shape: that of the ids.

        Returns:
            The memory ``[S ; A]``, its mask and pieces, and the emotion logits.
        """
        mask = torch.ones_like(input_ids, dtype=torch.bool) if attention_mask is None else attention_mask.bool()
        states, ids, felt = self.states(input_ids, attention_mask, role_ids), input_ids, None
        summary = states[:, 0]
        if self.emotion_stack is not None and emotion_word_ids is not None and emotion_word_mask is not None:
            vectors = self.dropout(self.words(emotion_word_ids) * self.word_scale)
            felt = self.emotion_stack(vectors, emotion_word_mask)
            summary = torch.cat((felt[:, 0], summary), dim=-1)
            states = torch.cat((states, felt), dim=1)
            mask = torch.cat((mask, emotion_word_mask.bool()), dim=1)
            ids = torch.cat((ids, emotion_word_ids), dim=1)
        return EmpDGEncoding(
            last_hidden_state=states,
            memory_mask=mask,
            memory_ids=ids,
            emotion_logits=self.emotion(summary),
            emotion_state=None if felt is None else felt[:, 0],
        )


class FreshConvolution(nn.Module):
    """The released code's convolution of width 2: its weights are drawn anew in every call and learn nothing."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, states: Tensor) -> Tensor:
        """Shape: ``(batch, width, length)`` to ``(batch, width, length - 1)``."""
        bound = (2 * self.width) ** -0.5
        weight = states.new_empty(self.width, self.width, 2).uniform_(-bound, bound)
        return F.conv1d(states, weight, states.new_empty(self.width).uniform_(-bound, bound))


class BatchStandardization(nn.Module):
    """The released code's batch norm, likewise anew in every call: it only standardises each channel."""

    def forward(self, states: Tensor) -> Tensor:
        """Standardises the last dimension over all others; one row alone passes unchanged."""
        flat = states.flatten(0, -2)
        return F.batch_norm(flat, None, None, training=True).view_as(states) if flat.shape[0] > 1 else states


class Discriminator(nn.Module):
    """Judges a reply by what was said before and what came back (section 3.4).

    ``D = w relu(W relu(max_t relu(conv(LSTM(y))) + c + f + b))``: f is the LSTM's last cell state over the feedback,
    c the generator's view of the context. ``paper`` has no norms: with a batch norm one reply's penalty would depend on
    its neighbours (Gulrajani et al. 2017), and a layer norm makes the slopes at small LSTM states far too steep.

    Args:
        config: Sizes and variant.
        reads_emotion_words: See only LAB and the emotion words of what is read.
    """

    def __init__(self, config: EmpDGConfig, *, reads_emotion_words: bool) -> None:
        super().__init__()
        width, is_repo = config.width, config.variant == "repo"
        self.word_scale = config.word_scale
        self.words = nn.Embedding(config.vocab_size, width, padding_idx=config.pad_token_id)
        self.lab = nn.Embedding(1, width) if reads_emotion_words else None
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.convolution = FreshConvolution(width) if is_repo else nn.Conv1d(width, width, 2)
        self.norm = BatchStandardization() if is_repo else nn.Identity()
        self.bias = nn.Embedding(1, width)
        self.hidden = nn.Linear(width, width // 2)
        self.hidden_norm = BatchStandardization() if is_repo else nn.Identity()
        self.score = nn.Linear(width // 2, 1, bias=False)  # a constant cancels in D(generated) - D(gold)

    def embed(
        self, ids: Tensor, mask: Tensor, emotion_vocabulary: Tensor, soft: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Vectors of what it reads.

        Args:
            ids: Pieces. Shape: ``(batch, length)``.
            mask: True = keep, at least one a row, all at the front. Shape: ``(batch, length)``.
            emotion_vocabulary: True for pieces that are emotion words. Shape: ``(vocabulary,)``.
            soft: Rows that are one-hot at ``ids`` and carry a gradient. Shape: ``(batch, length, vocabulary)``.

        Returns:
            Vectors ``(batch, length, width)`` and their mask; with LAB in front where only emotion words count.
        """
        vectors = (self.words(ids) if soft is None else soft @ self.words.weight) * self.word_scale
        if self.lab is None:
            return vectors, mask
        mask, vectors = compact(mask & emotion_vocabulary[ids], vectors)
        lab = (self.lab.weight * self.word_scale).expand(len(ids), 1, -1)
        return torch.cat((lab, vectors), dim=1), F.pad(mask, (1, 0), value=True)

    def read(self, vectors: Tensor) -> Tensor:
        """LSTM states of embedded pieces. Shape: ``(batch, length, width)``."""
        return self.lstm(vectors)[0]

    def listen(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """f, the last cell state over the feedback; shapes as :meth:`embed` gives. Shape: ``(batch, width)``."""
        packed = pack_padded_sequence(vectors, mask.sum(-1).cpu(), batch_first=True, enforce_sorted=False)
        return self.lstm(packed)[1][1][-1]

    def judge(self, states: Tensor, mask: Tensor, context: Tensor, feedback: Tensor) -> Tensor:
        """Scores; higher is more like people.

        Args:
            states: From :meth:`read`. Shape: ``(batch, length, width)``.
            mask: True = keep, at least one a row. Shape: ``(batch, length)``.
            context: c. Shape: ``(batch, width)``.
            feedback: f. Shape: ``(batch, width)``.

        Returns:
            Unbounded. Shape: ``(batch,)``.
        """
        pairs = self.convolution(F.pad(states.transpose(1, 2), (1, 0))).transpose(1, 2)  # (batch, length, width)
        features = self.norm(pairs).relu().masked_fill(~mask.unsqueeze(-1), 0.0)  # no feature is below 0
        fused = (features.amax(1) + context + feedback + self.bias.weight).relu()
        return self.score(self.hidden_norm(self.hidden(fused).relu())).squeeze(-1)

    def penalty(
        self, one: Tensor, one_mask: Tensor, other: Tensor, other_mask: Tensor, context: Tensor, feedback: Tensor
    ) -> Tensor:
        """``mean((|grad D(x)| - 1)^2)`` at random mixtures x of two replies' LSTM states (Gulrajani et al. 2017).

        Args:
            one: States of one reply each. Shape: ``(batch, length, width)``.
            one_mask: Shape: ``(batch, length)``.
            other: States of the other; its length may differ.
            other_mask: Likewise.
            context: Shape: ``(batch, width)``.
            feedback: Shape: ``(batch, width)``.

        Returns:
            A scalar whose gradient reaches the parameters that judge.
        """
        length = max(one.shape[1], other.shape[1])
        (one, one_mask), (other, other_mask) = (
            (F.pad(x * m.unsqueeze(-1), (0, 0, 0, length - x.shape[1])), F.pad(m, (0, length - m.shape[1])))
            for x, m in ((one.detach(), one_mask), (other.detach(), other_mask))
        )
        share = mixing_shares(one)
        mixed = (share * one + (1.0 - share) * other).requires_grad_(True)
        scores = self.judge(mixed, one_mask | other_mask, context, feedback.detach())
        (gradient,) = torch.autograd.grad(scores.sum(), mixed, create_graph=True)
        norms = (gradient.square().sum((1, 2)) + 1e-12).sqrt()
        return (norms - 1.0).square().mean()


def mixing_shares(states: Tensor) -> Tensor:
    """How much of the first of two replies a mixture has, uniform in [0, 1]. Shape: ``(batch, 1, 1)``."""
    return torch.rand(states.shape[0], 1, 1, device=states.device, dtype=states.dtype)


def gumbel_noise(scores: Tensor) -> Tensor:
    """Standard Gumbel draws of the shape of ``scores``."""
    return -torch.empty_like(scores).exponential_().clamp_min(1e-20).log()


@contextmanager
def frozen(module: nn.Module) -> Iterator[None]:
    """What is computed inside passes gradients through the module and leaves none in it."""
    learning = [parameter for parameter in module.parameters() if parameter.requires_grad]
    for parameter in learning:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in learning:
            parameter.requires_grad_(True)


class _Taught(NamedTuple):
    """What the discriminators are taught by."""

    labels: Tensor
    feedback_ids: Tensor
    emotion_vocabulary: Tensor

    @classmethod
    def of(
        cls, labels: Tensor | None, feedback_ids: Tensor | None, emotion_vocabulary: Tensor | None
    ) -> _Taught | None:
        """None where one of them is not given."""
        if labels is None or feedback_ids is None or emotion_vocabulary is None:
            return None
        return cls(labels, feedback_ids, emotion_vocabulary)


class EmpDG(CopyingResponder):
    """Reads the emotion at two resolutions, answers, and is judged by two discriminators while it learns.

    Losses: ``words``, ``emotion``; in training mode with the next turn at hand also ``critic_semantic``,
    ``critic_emotion`` (for the discriminators) and ``adversarial_semantic``, ``adversarial_emotion`` (for the
    generator). None of them leaves a gradient on the other side.

    Attributes:
        chooses_losses: The trainer says which losses it wants, and only those are computed.
        loss_features: What a loss needs beside the context.
    """

    config_class = EmpDGConfig
    config: EmpDGConfig
    features: ClassVar[tuple[str, ...]] = (
        "input_ids",
        "attention_mask",
        "role_ids",
        "emotion_word_ids",
        "emotion_word_mask",
        "emotion_labels",
        "feedback_ids",
        "emotion_vocabulary",
        "labels",
    )
    gold_features = CopyingResponder.gold_features | {"feedback_ids", "emotion_vocabulary"}
    side_inputs = ("emotion_words",)
    chooses_losses: ClassVar[bool] = True
    loss_features: ClassVar[dict[str, tuple[str, ...]]] = {
        f"{side}_{name}": ("labels", "feedback_ids", "emotion_vocabulary")
        for name in ("semantic", "emotion")
        for side in ("critic", "adversarial")
    }

    def __init__(self, config: EmpDGConfig) -> None:
        super().__init__(config)
        self.discriminators = nn.ModuleDict(
            {
                name: Discriminator(config, reads_emotion_words=name == "emotion")
                for name in DISCRIMINATORS[config.discriminators]
            }
        )
        self.post_init()

    @staticmethod
    def opens_with_emotion(config: EmpDGConfig) -> bool:
        """Multi-TRS, the generator of w/o G, starts from BOS."""
        return config.multi_resolution

    def build_encoder(self, config: EmpDGConfig) -> nn.Module:
        """Semantic and emotion encoder."""
        return EmpDGEncoder(config)

    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        if isinstance(module, nn.LSTM):
            for name, parameter in module.named_parameters():
                (init.zeros_ if "bias" in name else init.xavier_uniform_)(parameter)

    def word_tables(self) -> list[nn.Embedding]:
        """Generator and discriminators own separate tables (released code)."""
        judges: Any = self.discriminators.values()
        return [self.encoder.words, *(judge.words for judge in judges)]

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        encoder_outputs: EmpDGEncoding | None = None,
        use_cache: bool | None = None,
        return_dict: bool | None = None,
        wanted_losses: Collection[str] | None = None,
        feedback_ids: Tensor | None = None,
        emotion_vocabulary: Tensor | None = None,
        **features: Any,
    ) -> ResponderOutput:
        """As :meth:`Seq2SeqResponder.forward`, and the adversarial losses in training mode.

        Args:
            input_ids: Shape: ``(batch, source)``.
            attention_mask: True = keep. Shape: ``(batch, source)``.
            labels: Shape: ``(batch, target)``.
            decoder_input_ids: Given during generation.
            encoder_outputs: Given during generation.
            use_cache: Given during generation.
            return_dict: Accepted for the library's sake.
            wanted_losses: Names of the losses to compute; None = all that can be.
            feedback_ids: The speaker's next turn, -100 padding; a row of padding = unknown. Shape: ``(batch,
                feedback)``. Read in training mode only.
            emotion_vocabulary: True for pieces that are emotion words. Shape: ``(vocabulary,)``. Likewise.
            **features: What the encoder reads, and ``emotion_labels``.
        """
        names = [name for name in self._adversarial_names(self.config) if not wanted_losses or name in wanted_losses]
        losses: dict[str, Tensor] = {}
        counts: dict[str, Tensor] = {}
        answers = True
        taught = _Taught.of(labels, feedback_ids, emotion_vocabulary)
        if self.training and names and taught is not None:
            answers = not wanted_losses or bool(REPLY_LOSSES & set(wanted_losses))
            counts = self.count_items({"labels": taught.labels, "feedback_ids": taught.feedback_ids}, self.config)
            with torch.set_grad_enabled(answers or self._reaches_generator(names)):
                encoding = cast(
                    EmpDGEncoding, self.encode(self._context(input_ids), attention_mask, **features)
                )  # its encoder's
            losses = self.judge(encoding, *taught, names)
            encoder_outputs = encoding
        if not answers:
            return ResponderOutput(loss=total_of(losses), losses=losses, counts=counts)
        output = super().forward(
            input_ids=input_ids,
            attention_mask=attention_mask,
            labels=labels,
            decoder_input_ids=decoder_input_ids,
            encoder_outputs=encoder_outputs,
            use_cache=use_cache,
            **features,
        )
        if losses:
            output.losses = {**(output.losses or {}), **losses}
            output.counts = {**(output.counts or {}), **counts}
            output.loss = total_of(output.losses)
        return output

    def _reaches_generator(self, names: Collection[str]) -> bool:
        return self.config.variant != "repo" and any(name.startswith("adversarial") for name in names)

    @staticmethod
    def _adversarial_names(config: EmpDGConfig) -> list[str]:
        found = DISCRIMINATORS[config.discriminators]
        return [name for name in EmpDG.loss_features if name.rpartition("_")[2] in found]

    @classmethod
    def count_items(cls, batch: dict[str, Tensor], config: EmpDGConfig) -> dict[str, Tensor]:
        """Adds, for each adversarial loss, the examples whose reply and next turn are known."""
        counts = super().count_items(batch, config)
        if (feedback := batch.get("feedback_ids")) is not None and (labels := batch.get("labels")) is not None:
            counts |= dict.fromkeys(cls._adversarial_names(config), _are_known(labels, feedback).sum())
        return counts

    def judge(
        self,
        encoding: EmpDGEncoding,
        labels: Tensor,
        feedback_ids: Tensor,
        emotion_vocabulary: Tensor,
        names: Collection[str],
    ) -> dict[str, Tensor]:
        """The adversarial losses, means over the examples whose reply and next turn are known.

        Args:
            encoding: The generator's view of the contexts.
            labels: Gold replies, -100 padding. Shape: ``(batch, target)``.
            feedback_ids: Next turns, -100 padding. Shape: ``(batch, feedback)``.
            emotion_vocabulary: True for emotion words. Shape: ``(vocabulary,)``.
            names: Which to compute.

        Returns:
            By name: ``critic_*`` = mean D(generated) - D(gold) + penalty; ``adversarial_*`` = -mean D(generated)
            (``repo``: +, and without gradient).
        """
        known = _are_known(labels, feedback_ids)
        if not known.any():
            score = {name: judge.score.weight.sum() for name, judge in self._judges()}
            idle = given(encoding.last_hidden_state).sum()
            return {n: 0.0 * (score[n[7:]] if n.startswith("critic") else idle) for n in names}
        encoding = type(encoding)(**{name: rows[known] for name, rows in encoding.items()})
        with torch.set_grad_enabled(self._reaches_generator(names)):
            made, made_mask, soft = self.speak(encoding, has_gradient=self._reaches_generator(names))
        gold, heard = _rows(labels[known]), _rows(feedback_ids[known])
        losses: dict[str, Tensor] = {}
        for name, judge in self._judges():
            reads_sentences = name == "semantic"
            context = given(encoding.last_hidden_state)[:, 0] if reads_sentences else given(encoding.emotion_state)
            context = context.detach()
            if f"critic_{name}" in names:
                feedback = judge.listen(*judge.embed(*heard, emotion_vocabulary))
                vectors, mask = judge.embed(made, made_mask, emotion_vocabulary)
                states, loss = judge.read(vectors), 0.0
                gold_vectors, gold_mask = judge.embed(*gold, emotion_vocabulary)
                gold_states = judge.read(gold_vectors)
                if self.config.variant != "repo":  # the released penalty has no second-order graph, so no effect
                    penalty = judge.penalty(states, mask, gold_states, gold_mask, context, feedback)
                    loss = self.config.gradient_penalty * penalty
                made_score = judge.judge(states, mask, context, feedback).mean()
                losses[f"critic_{name}"] = (
                    made_score - judge.judge(gold_states, gold_mask, context, feedback).mean() + loss
                )
            if f"adversarial_{name}" in names:
                with frozen(judge), torch.set_grad_enabled(soft is not None):
                    feedback = judge.listen(*judge.embed(*heard, emotion_vocabulary))
                    vectors, mask = judge.embed(made, made_mask, emotion_vocabulary, soft)
                    score = judge.judge(judge.read(vectors), mask, context, feedback).mean()
                losses[f"adversarial_{name}"] = score if self.config.variant == "repo" else -score
        return losses

    def _judges(self) -> list[tuple[str, Discriminator]]:
        return [(name, cast(Discriminator, judge)) for name, judge in self.discriminators.items()]

    def speak(self, encoding: EmpDGEncoding, *, has_gradient: bool) -> tuple[Tensor, Tensor, Tensor | None]:
        """Replies drawn word by word by Gumbel-softmax, straight through (Jang et al. 2017).

        Args:
            encoding: The contexts.
            has_gradient: Also give the draws as rows whose gradient reaches the generator.

        Returns:
            Pieces and mask ``(batch, length)``, the end mark kept; and rows that are one-hot there, ``(batch, length,
            vocabulary)``, or None. At most ``n_sampled_words`` long.
        """
        cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        read = given(encoding.memory_ids)
        begin = read.new_full((len(read), 1), cast(int, self.config.decoder_start_token_id))
        vectors = self.embed_reply(begin, encoding, 0)
        is_open = torch.ones(len(begin), dtype=torch.bool, device=begin.device)
        ids, masks, rows = [], [], []
        for step in range(self.config.n_sampled_words):
            states = self.decode(self.dropout(self.decoder.open(vectors, step)), encoding, None, cache)
            scores = wide(self.word_logits(states, encoding)[:, 0]).log_softmax(-1)  # (batch, vocabulary)
            soft = ((scores + gumbel_noise(scores)) / self.config.gumbel_temperature).softmax(-1)
            drawn = soft.argmax(-1)
            ids.append(drawn)
            masks.append(is_open)
            if has_gradient:
                row = F.one_hot(drawn, soft.shape[-1]).to(soft.dtype) - soft.detach() + soft
                rows.append(row.to(self.encoder.words.weight.dtype))
            is_open = is_open & drawn.ne(self.config.eos_token_id)
            if not is_open.any():
                break
            said = rows[-1] @ self.encoder.words.weight if has_gradient else self.encoder.words(drawn)
            vectors = (said * self.config.word_scale)[:, None]
        return torch.stack(ids, 1), torch.stack(masks, 1), torch.stack(rows, 1) if has_gradient else None


def _are_known(labels: Tensor, feedback_ids: Tensor) -> Tensor:
    """Examples with a reply and a next turn. Shape: ``(batch,)``."""
    return labels.ne(IGNORED).any(-1) & feedback_ids.ne(IGNORED).any(-1)


def _rows(ids: Tensor) -> tuple[Tensor, Tensor]:
    """Pieces with 0 for what is ignored, and the mask."""
    mask = ids.ne(IGNORED)
    return ids.masked_fill(~mask, 0), mask


register(EmpDG)
