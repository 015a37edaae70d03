"""CEM: commonsense about the speaker's situation and feelings refines the context (Sabour et al., AAAI 2022).

COMET says of the last turn what the speaker intended, needed, wants, what happens to them (cognition) and how they feel
(affection). ``h_r`` = first state of each cognitive sequence, ``h_react`` = mean of the affective one. Each refines the
context, ``H_r = Encoder([H ; h_r])``; the emotion is read off the affective one; the decoder attends to
``MLP(sigmoid(Z) Z)``, ``Z = [H_intent ; H_need ; H_want ; H_effect ; H_react]``. Loss: words + emotion + 1.5 times a
word loss that weighs common words less (the recipe's weights).

The common words are, as in the released code, those the model itself would say (``frequencies="corpus"``: those of the
training replies, the paper's words). ``variant="repo"`` does as that code in all else, too: ``h_react`` averages
padding, convolutions read it, and what the model would say at padding and in validation counts.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig
from transformers import initialization as init

from empatheia_research.layers.face import WordFrequencies
from empatheia_research.layers.pooling import mean_pool
from empatheia_research.layers.refinement import GatedMLP, beside
from empatheia_research.responders.moel_family import FamilyConfig, FamilyEncoder, FamilyResponder, family_encoder
from empatheia_research.responders.seq2seq import ResponderEncoding, register, word_loss

COGNITION, AFFECT = slice(0, 4), 4
"""Places of intent, need, want and effect, and of the reaction, among the knowledge sequences."""


class DiverseConfig(FamilyConfig):
    """Sizes of systems with the diversity loss.

    Args:
        frequencies: Of which words: ``predictions``, what the model itself would say, as all released code has it, or
            ``corpus``, the training replies, as the papers' words have it.
        label_smoothing: Of the word loss; released: none.
        loss_reduction: Of both word losses; released: their mean.
    """

    model_type = "empatheia_diverse"

    def __init__(
        self,
        frequencies: str = "predictions",
        label_smoothing: float = 0.0,
        loss_reduction: str = "mean",
        **kwargs: Any,
    ) -> None:
        super().__init__(label_smoothing=label_smoothing, loss_reduction=loss_reduction, **kwargs)
        self.frequencies = frequencies


class DiverseResponder(FamilyResponder):
    """A member of the family that also learns ``diversity``: ``-sum_t w(y_t) log P(y_t) / n``, ``n`` unweighted.

    ``n`` is what the word loss is over, too: words, or replies where that loss is a sum.
    """

    config_class = DiverseConfig

    def __init__(self, config: DiverseConfig) -> None:
        super().__init__(config)
        self.frequencies = WordFrequencies(
            config.vocab_size,
            config.frequencies,
            eos_id=config.eos_token_id,
            bos_id=config.bos_token_id,
            pad_id=config.pad_token_id,
            counts_always=config.variant == "repo",
        )
        # the released code counts what it would say at padding
        self.scores_padding = self.frequencies.counts_always and self.frequencies.source == "predictions"

    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        if isinstance(module, WordFrequencies):
            init.zeros_(module.counts)

    def see_corpus(self, replies: Tensor) -> None:
        """Counts the words of the training replies, where the frequencies are the corpus's."""
        self.frequencies.set_corpus(replies)

    def resize_others(self, n_pieces: int, mean_resizing: bool) -> None:
        """Adds the counts of words: new ones were never seen."""
        super().resize_others(n_pieces, mean_resizing)
        self.frequencies.resize(n_pieces)

    def reply_losses(
        self, logits: Tensor, labels: Tensor, encoding: ResponderEncoding, states: Tensor, n_words: Tensor
    ) -> dict[str, Tensor]:
        """``words`` and ``diversity``; predictions are counted before they are weighed."""
        self.frequencies.see(logits.detach(), labels)
        nll = plain = word_loss(logits, labels, self.config.pad_token_id)
        if self.config.label_smoothing:
            nll = word_loss(logits, labels, self.config.pad_token_id, self.config.label_smoothing)
        n = n_words.clamp_min(1)
        return {"words": nll.sum() / n, "diversity": (self.frequencies(labels) * plain).sum() / n}

    @classmethod
    def count_items(cls, batch: dict[str, Tensor], config: PreTrainedConfig) -> dict[str, Tensor]:
        """How many items each loss of ``batch`` is a mean over."""
        counts = super().count_items(batch, config)
        if "words" in counts:
            counts["diversity"] = counts["words"]
        return counts


class CEMConfig(DiverseConfig):
    """CEM; defaults are the released sizes.

    Args:
        affection: Reaction and what hangs on it (False: ablation w/o Aff; the emotion is then read off the context).
        cognition: Intent, need, want, effect (False: ablation w/o Cog).
        **kwargs: Of :class:`DiverseConfig`.

    Raises:
        ValueError: Neither is left.
    """

    model_type = "cem"

    def __init__(self, affection: bool = True, cognition: bool = True, **kwargs: Any) -> None:
        if not (affection or cognition):
            raise ValueError("cem without affection and without cognition is multi_trs; use that.")
        self.affection = affection
        self.cognition = cognition
        super().__init__(**kwargs)


def read_sequences(stack: nn.Module, vectors: Tensor, mask: Tensor) -> Tensor:
    """Several short sequences of each example through one encoder.

    Args:
        stack: Blocks of an encoder.
        vectors: Shape: ``(batch, sequences, pieces, width)``.
        mask: True = keep; a sequence may be empty, its states then mean nothing.
            Shape: ``(batch, sequences, pieces)``.

    Returns:
        Tensor of shape ``(batch, sequences, pieces, width)``.
    """
    keep = mask.clone()
    keep[..., 0] = True  # attention needs something to look at
    return stack(vectors.flatten(0, 1), keep.flatten(0, 1)).unflatten(0, mask.shape[:2])


def affect_vector(states: Tensor, mask: Tensor, counts_padding: bool) -> Tensor:
    """Mean of a sequence's states, 0 for an empty one; the released code's mean is over the batch's longest.

    Args:
        states: Shape: ``(batch, pieces, width)``.
        mask: True = keep. Shape: ``(batch, pieces)``.
        counts_padding: As the released code.
    """
    if counts_padding:
        mask = mask.any(0, keepdim=True).expand_as(mask)
    return mean_pool(states, mask)


class CEMEncoder(FamilyEncoder):
    """Context, knowledge, refined context, emotion."""

    def __init__(self, config: CEMConfig) -> None:
        super().__init__(config)
        self.counts_padding = config.variant == "repo"
        width = config.width
        if config.affection:
            self.affection = family_encoder(config)
            self.affection_refiner = family_encoder(config, input_width=2 * width)
        self.has_affection = config.affection
        self.emotion = nn.Linear(width, config.n_emotions, bias=False)
        if config.cognition:
            self.cognition = family_encoder(config)
            self.cognition_refiner = family_encoder(config, input_width=2 * width)
            if config.affection:
                self.mixer = GatedMLP(5 * width, 3 * width, width)
            else:
                self.mixer = GatedMLP(4 * width, 2 * width, width)
        self.has_cognition = config.cognition

    def feel(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None,
        role_ids: Tensor | None,
        knowledge_ids: Tensor,
        knowledge_mask: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Context, affective context (the context itself w/o Aff), emotion logits ``(batch, 32)``."""
        context = self.states(input_ids, attention_mask, role_ids)  # (batch, source, width)
        refined = context
        if self.has_affection:
            ids, mask = knowledge_ids[:, AFFECT:], knowledge_mask[:, AFFECT:]
            states = read_sequences(self.affection, self._vectors(ids), mask)
            reaction = affect_vector(states[:, 0], mask[:, 0], self.counts_padding)
            refined = self.affection_refiner(beside(context, reaction), attention_mask)
        return context, refined, self.emotion(refined[:, 0])

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        role_ids: Tensor | None = None,
        *,
        knowledge_ids: Tensor,
        knowledge_mask: Tensor,
        **_: Any,
    ) -> ResponderEncoding:
        """Encodes; shapes as in :class:`ResponderEncoding`.

        Args:
            input_ids: Shape: ``(batch, source)``.
            attention_mask: True = keep. Shape: ``(batch, source)``.
            role_ids: Shape: ``(batch, source)``.
            knowledge_ids: Intent, need, want, effect (each behind CLS), reaction. Shape: ``(batch, 5, pieces)``.
            knowledge_mask: True = keep. Shape: ``(batch, 5, pieces)``.
        """
        context, affective, logits = self.feel(input_ids, attention_mask, role_ids, knowledge_ids, knowledge_mask)
        if not self.has_cognition:
            return ResponderEncoding(last_hidden_state=affective, emotion_logits=logits)
        ids, mask = knowledge_ids[:, COGNITION], knowledge_mask[:, COGNITION]
        first = read_sequences(self.cognition, self._vectors(ids), mask)[:, :, 0]  # (batch, 4, width)
        parts = [self.cognition_refiner(beside(context, vector), attention_mask) for vector in first.unbind(1)]
        if self.has_affection:
            parts.append(affective)
        return ResponderEncoding(last_hidden_state=self.mixer(torch.cat(parts, dim=-1)), emotion_logits=logits)

    def _vectors(self, ids: Tensor) -> Tensor:
        return self.dropout(self.words(ids) * self.word_scale)


class CEM(DiverseResponder):
    """Context and commonsense in; emotion and reply out."""

    config_class = CEMConfig
    has_emotion_head = True
    side_inputs: ClassVar[tuple[str, ...]] = ("knowledge_of_relations",)
    features: ClassVar[tuple[str, ...]] = (
        "input_ids",
        "attention_mask",
        "role_ids",
        "knowledge_ids",
        "knowledge_mask",
        "emotion_labels",
        "labels",
    )

    def build_encoder(self, config: CEMConfig) -> nn.Module:
        """Words, roles, five encoders, emotion head, gate."""
        return CEMEncoder(config)

    def encode_heads(
        self, input_ids: Tensor, attention_mask: Tensor | None, **features: Tensor | None
    ) -> ResponderEncoding:
        """The emotion alone: no cognition is read for it."""
        names = ("role_ids", "knowledge_ids", "knowledge_mask")
        known = {name: features.get(name) for name in names}
        return ResponderEncoding(emotion_logits=self.encoder.feel(input_ids, attention_mask, **known)[2])


register(CEM)
