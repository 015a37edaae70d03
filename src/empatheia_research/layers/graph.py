"""Attention over the neighbours in a graph of context words and concepts (KEMP, section 3.1)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from empatheia_research.layers.convolutional import UnbiasedLayerNorm


def context_graph(token_mask: Tensor, concept_mask: Tensor, concept_heads: Tensor) -> Tensor:
    """Who is whose neighbour: a token has the token before it, CLS and its own concepts; CLS has all of them.

    Args:
        token_mask: True = keep; CLS at position 0. Shape: ``(batch, source)``.
        concept_mask: Shape: ``(batch, concepts)``.
        concept_heads: Position of the token a concept belongs to, -1 for none. Shape: ``(batch, concepts)``.

    Returns:
        True where row's token sees the column's node. Shape: ``(batch, source, source + concepts)``.
    """
    S = token_mask.shape[1]
    positions = torch.arange(S, device=token_mask.device)
    before = positions[:, None] == positions[None, :] + 1  # (source, source)
    cls = (positions[None, :] == 0) ^ (positions[:, None] == 0)
    among = (before | cls) & token_mask[:, None, :].bool()
    own = concept_heads[:, None, :] == positions[None, :, None]  # (batch, source, concepts)
    own[:, 0] = concept_heads >= 0
    graph = torch.cat((among, own & concept_mask[:, None, :].bool()), dim=-1)
    return graph & token_mask[:, :, None].bool()


class GraphAttention(nn.Module):
    """``LN(x + W_o sum_j a_j v_j)`` over a token's neighbours; one head, biases, no scaling of the scores.

    Args:
        width: Width of nodes.
        dropout: On what is added.
        masks: Give nodes that are no neighbours a weight of exactly 0. False, as released: their score becomes
            1e-24, so they keep the weight of a score of 0.
    """

    def __init__(self, width: int, dropout: float = 0.2, *, masks: bool = True) -> None:
        super().__init__()
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)
        self.norm = UnbiasedLayerNorm(width)
        self.dropout = nn.Dropout(dropout)
        self.masks = masks

    def weights(self, tokens: Tensor, nodes: Tensor, graph: Tensor) -> Tensor:
        """Attention of tokens over nodes.

        Args:
            tokens: Shape: ``(batch, source, width)``.
            nodes: Tokens, then concepts. Shape: ``(batch, nodes, width)``.
            graph: From :func:`context_graph`. Shape: ``(batch, source, nodes)``.

        Returns:
            Rows sum to 1; a row without neighbours is 0. Shape: ``(batch, source, nodes)``.
        """
        scores = self.query(tokens) @ self.key(nodes).transpose(1, 2)
        if not self.masks:
            return scores.masked_fill(~graph, 1e-24).softmax(-1)
        lonely = ~graph.any(-1, keepdim=True)
        return scores.masked_fill(~graph & ~lonely, float("-inf")).softmax(-1).masked_fill(lonely, 0.0)

    def forward(self, tokens: Tensor, nodes: Tensor, graph: Tensor) -> Tensor:
        """Tokens that have looked at their neighbours; shapes as in :meth:`weights`.

        Returns:
            Tensor of the shape of ``tokens``.
        """
        mixed = self.weights(tokens, nodes, graph) @ self.value(nodes)
        return self.norm(tokens + self.dropout(self.out(mixed)))
