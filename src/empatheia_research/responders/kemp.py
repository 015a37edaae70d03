"""KEMP: knowledge-aware empathetic dialogue with an emotional context graph (Li et al., AAAI 2022).

The context and what ConceptNet says of its words form a graph; words attend to their neighbours, a Transformer encodes
words and concepts together. The *emotional signal* is the mean of its states weighted by how intense each word is
(``c_e = sum softmax(eta)_i h_i``), gives the emotion, and enters every decoder block. A further loss pulls the
decoder's mean attention towards the intensities. MK-EDG (arXiv 2009.09708 v1) is the work's earlier name: ``mk_edg`` in
the registry is this system.

``variant="repo"`` keeps what the released code does: the graph's mask fills with 1e-24, so nodes that are no neighbours
keep weight; the first token's predecessor is the last node; padding has intensity (0.5 in the context, 0 among
concepts) and is not masked; attention is the softmax of the heads' mean score, and flattened by a second one to copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig

from empatheia.taxonomy import IGNORED
from empatheia_research.layers.copy import CopyDecoderLayer, compact
from empatheia_research.layers.graph import GraphAttention, context_graph
from empatheia_research.responders.copying import CopyingConfig, CopyingEncoding, CopyingResponder
from empatheia_research.responders.moel_family import FamilyEncoder, family_encoder
from empatheia_research.responders.seq2seq import register

REPO_PADDING_INTENSITY = 0.5


class KEMPConfig(CopyingConfig):
    """KEMP; defaults are the paper's.

    Args:
        graph: The emotional context graph. False: ablation w/o ECE, words alone.
        signal: The emotional signal in the decoder, and its attention loss. False: ablation w/o EDD.
        graph_dropout: In the graph attention.
        **kwargs: Of :class:`CopyingConfig`.
    """

    model_type = "kemp"

    def __init__(self, graph: bool = True, signal: bool = True, graph_dropout: float = 0.2, **kwargs: Any) -> None:
        self.graph = graph
        self.signal = signal
        self.graph_dropout = graph_dropout
        super().__init__(**kwargs)


@dataclass
class KEMPEncoding(CopyingEncoding):
    """Words and concepts, and the emotion in them.

    Attributes:
        intensities: softmax(eta), 0 at padding. Shape: ``(batch, memory)``.
        signal: c_e. Shape: ``(batch, width)``.
    """

    intensities: Tensor | None = None
    signal: Tensor | None = None


class KEMPEncoder(FamilyEncoder):
    """Graph attention, encoder, emotional signal (sections 3.1 and 3.2)."""

    def __init__(self, config: KEMPConfig) -> None:
        super().__init__(config)
        self.is_repo = config.variant == "repo"
        if self.is_pretrained:
            self.stack = family_encoder(config)
        self.graph = self.knowledge = None
        if config.graph:
            self.graph = GraphAttention(config.width, config.graph_dropout, masks=not self.is_repo)
            self.knowledge = nn.Embedding(1, config.width)
        self.emotion = nn.Linear(config.width, config.n_emotions, bias=False)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        role_ids: Tensor | None = None,
        concept_ids: Tensor | None = None,
        concept_mask: Tensor | None = None,
        concept_heads: Tensor | None = None,
        token_intensities: Tensor | None = None,
        concept_intensities: Tensor | None = None,
        **_: Any,
    ) -> KEMPEncoding:
        """Encodes a context and its concepts.

        Args:
            input_ids: Shape: ``(batch, source)``.
            attention_mask: True = keep. Shape: ``(batch, source)``.
            role_ids: Shape: ``(batch, source)``.
            concept_ids: SEP and concepts; an example without concepts has none. Shape: ``(batch, concepts)``.
            concept_mask: True = keep. Shape: ``(batch, concepts)``.
            concept_heads: Position of each concept's token, -1 for SEP. Shape: ``(batch, concepts)``.
            token_intensities: eta of each token; None counts as 0. Shape: ``(batch, source)``.
            concept_intensities: Shape: ``(batch, concepts)``.
        """
        ids = input_ids
        mask = torch.ones_like(ids, dtype=torch.bool) if attention_mask is None else attention_mask.bool()
        nodes = self._tokens(ids, mask, role_ids)
        eta = nodes.new_zeros(ids.shape) if token_intensities is None else token_intensities.to(nodes.dtype)
        if self.is_repo:
            eta = eta.masked_fill(~mask, REPO_PADDING_INTENSITY)
        if self.graph is not None and self.knowledge is not None and concept_ids is not None:
            assert concept_mask is not None and concept_heads is not None and concept_intensities is not None
            concepts = self.dropout((self.words(concept_ids) + self.knowledge.weight) * self.word_scale)
            graph = context_graph(mask, concept_mask, concept_heads)
            if self.is_repo:
                graph[:, 0, -1] = True
            nodes = torch.cat((self.graph(nodes, torch.cat((nodes, concepts), dim=1), graph), concepts), dim=1)
            ids = torch.cat((ids, concept_ids), dim=1)
            mask = torch.cat((mask, concept_mask.bool()), dim=1)
            eta = torch.cat((eta, concept_intensities.to(eta.dtype)), dim=1)
            if not self.is_repo:  # no padding between words and concepts: positions do not depend on the batch
                mask, nodes, ids, eta = compact(mask, nodes, ids, eta)
        states = self.stack(nodes, mask)
        weights = (eta if self.is_repo else eta.masked_fill(~mask, float("-inf"))).softmax(-1)
        signal = (weights.unsqueeze(-1) * states).sum(1)
        return KEMPEncoding(
            last_hidden_state=states,
            memory_mask=mask,
            memory_ids=ids,
            emotion_logits=self.emotion(signal),
            intensities=weights,
            signal=signal,
        )

    def _tokens(self, input_ids: Tensor, mask: Tensor, role_ids: Tensor | None) -> Tensor:
        """Word plus role vectors, or a pretrained encoder's states. Shape: ``(batch, source, width)``."""
        return self.states(input_ids, mask) if self.is_pretrained else self.embed(input_ids, role_ids)


class SignalDecoderLayer(CopyDecoderLayer):
    """Fuses what it attends to with the emotional signal: ``W [o ; c_e]``, no bias (section 3.3)."""

    def __init__(self, width: int, *sizes: Any) -> None:
        super().__init__(width, *sizes)
        self.fusion = nn.Linear(2 * width, width, bias=False)

    def fuse(self, attended: Tensor, signal: Tensor | None) -> Tensor:
        """The fused update. Shape: ``(batch, target, width)``."""
        assert signal is not None
        return self.fusion(torch.cat((attended, signal[:, None].expand_as(attended)), dim=-1))


def attention_loss(weights: Tensor, steps: Tensor, target: Tensor, places: Tensor) -> Tensor:
    """Squared difference of the mean attention and the intensities, a mean over places, for each example.

    Args:
        weights: Attention of each step. Shape: ``(batch, target, memory)``.
        steps: Steps that count; at least one a row or the example gives the target's own square. Shape: ``(batch,
            target)``.
        target: softmax(eta). Shape: ``(batch, memory)``.
        places: Places that count. Shape: ``(batch, memory)``.

    Returns:
        At least 0. Shape: ``(batch,)``.
    """
    counts = steps.unsqueeze(-1).to(weights.dtype)
    mean = (weights * counts).sum(1) / counts.sum(1).clamp_min(1)
    return ((mean - target).square() * places).sum(-1) / places.sum(-1).clamp_min(1)


class KEMP(CopyingResponder):
    """Reads the context with its concepts, and answers in the light of the emotional signal.

    Losses: ``words``, ``emotion``, ``attention`` (published weight 0.1).
    """

    config_class = KEMPConfig
    features: ClassVar[tuple[str, ...]] = (
        "input_ids",
        "attention_mask",
        "role_ids",
        "concept_ids",
        "concept_mask",
        "concept_heads",
        "token_intensities",
        "concept_intensities",
        "emotion_labels",
        "labels",
    )
    side_inputs = ("concept_graph",)

    def build_encoder(self, config: KEMPConfig) -> nn.Module:
        """Graph, blocks, signal."""
        return KEMPEncoder(config)

    def build_decoder(self, config: KEMPConfig) -> nn.Module:
        """Blocks that fuse the signal; plain ones w/o EDD."""
        self.decoder_layer = SignalDecoderLayer if config.signal else CopyDecoderLayer
        return super().build_decoder(config)

    def signal(self, encoding: KEMPEncoding) -> Tensor | None:
        """c_e for the decoder. Shape: ``(batch, width)``."""
        return encoding.signal

    def state_losses(self, states: Tensor, labels: Tensor, encoding: KEMPEncoding) -> dict[str, Tensor]:
        """The ``attention`` loss, a mean over replies; none w/o EDD."""
        if not self.config.signal:
            return {}
        assert encoding.intensities is not None and encoding.memory_mask is not None
        kept, is_repo = labels.ne(IGNORED), self.config.variant == "repo"
        steps = torch.ones_like(kept) if is_repo else kept
        places = torch.ones_like(encoding.memory_mask) if is_repo else encoding.memory_mask
        losses = attention_loss(states[..., self.config.width :], steps, encoding.intensities, places)
        has_reply = kept.any(-1)
        return {"attention": (losses * has_reply).sum() / has_reply.sum().clamp_min(1)}

    @classmethod
    def count_items(cls, batch: dict[str, Tensor], config: PreTrainedConfig) -> dict[str, Tensor]:
        """Adds the replies the ``attention`` loss is a mean over."""
        counts = super().count_items(batch, config)
        if (labels := batch.get("labels")) is not None and config.signal:
            counts["attention"] = labels.ne(IGNORED).any(-1).sum()
        return counts


register(KEMP)
