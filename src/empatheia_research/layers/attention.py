"""Multi-head attention over a memory, plain or gated by the probability that a word is a cause.

Vaswani et al. 2017 for the plain form; Gao et al. 2021, equation 5, for the gates.
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from empatheia_research.layers.precision import wide

GateForm = Literal["weights", "memory", "bias"]


def gated_weights(scores: Tensor, keep: Tensor | None, gates: Tensor) -> Tensor:
    """Attention weights ``a_i = g_i exp(s_i) / sum_j g_j exp(s_j)`` (Gao et al. 2021, equation 5).

    The gate multiplies the exponentiated score instead of shifting the score by ``log g``: so a closed gate
    (g = 0) gives a weight of exactly 0 and still has a finite gradient, which the straight-through estimator
    of the hard gate needs. Scaling all gates by c > 0 changes nothing.

    Args:
        scores: Scaled dot products. Shape: ``(batch, heads, target, source)``.
        keep: False for padding. Shape broadcastable to ``scores``; None keeps all.
        gates: In [0, 1]. Shape: ``(batch, source)``; shared by heads and queries.

    Returns:
        Weights of the shape of ``scores``; a row sums to 1 unless all its gates are 0, then to 0.
    """
    if keep is not None:
        scores = scores.masked_fill(~keep, float("-inf"))
    dtype, scores = scores.dtype, wide(scores)  # half precision has no room for a product of small gates
    scores = scores - scores.amax(-1, keepdim=True).clamp_min(torch.finfo(scores.dtype).min).detach()
    opened = scores.exp() * gates[:, None, None, :].to(scores.dtype)  # padding: exp(-inf) = 0
    return (opened / opened.sum(-1, keepdim=True).clamp_min(torch.finfo(scores.dtype).tiny)).to(dtype)


class Attention(nn.Module):
    """Scaled dot-product attention with several heads.

    Args:
        width: Width of queries, memory and output.
        n_heads: Number of heads.
        inner_width: Total width of all heads' projections; a multiple of ``n_heads`` that may differ from
            ``width`` (300 is not divisible by 8 heads; Gao's code projects 300 to 512 and back).
        dropout: On the attention weights.
        gate_form: How ``gates`` enter: ``weights`` (paper, equation 5), ``memory`` (Gao's soft code: keys and
            values of ``g_i * h_i``), ``bias`` (Gao's hard code: scores + (1 - g)(-1e18)).
        memory_width: Width of the memory; None = ``width``.
        bias: On all four projections.
    """

    def __init__(
        self,
        width: int,
        n_heads: int,
        inner_width: int | None = None,
        dropout: float = 0.0,
        gate_form: GateForm = "weights",
        memory_width: int | None = None,
        bias: bool = False,
    ) -> None:
        super().__init__()
        inner_width = inner_width or width
        if inner_width % n_heads:
            raise ValueError(f"attention width {inner_width} is not a multiple of {n_heads} heads.")
        self.n_heads = n_heads
        self.head_width = inner_width // n_heads
        self.dropout = dropout
        self.gate_form = gate_form
        self.query = nn.Linear(width, inner_width, bias=bias)
        self.key = nn.Linear(memory_width or width, inner_width, bias=bias)
        self.value = nn.Linear(memory_width or width, inner_width, bias=bias)
        self.out = nn.Linear(inner_width, width, bias=bias)

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.n_heads, self.head_width)).transpose(1, 2)  # (batch, heads, length, head_width)

    def project(self, memory: Tensor, gates: Tensor | None = None, keep: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Keys and values of a memory, to be cached while the memory stays the same.

        Args:
            memory: Shape: ``(batch, source, width)``.
            gates: Only read when ``gate_form`` is ``memory``. Shape: ``(batch, source)``.
            keep: False where nobody will look: not projected, 0 in the result. Shape: ``(batch, source)``.

        Returns:
            Keys and values, each ``(batch, heads, source, head_width)``.
        """
        if gates is not None and self.gate_form == "memory":
            memory = memory * gates.unsqueeze(-1).to(memory.dtype)
        if keep is None:
            return self._split(self.key(memory)), self._split(self.value(memory))
        rows = memory[keep]
        spread = [rows.new_zeros(*keep.shape, self.key.out_features) for _ in range(2)]
        for whole, part in zip(spread, (self.key(rows), self.value(rows)), strict=True):
            whole[keep] = part.to(whole.dtype)
        return self._split(spread[0]), self._split(spread[1])

    def weights(self, queries: Tensor, keys: Tensor, keep: Tensor | None = None) -> Tensor:
        """Where the queries look, without gates or dropout.

        Args:
            queries: Shape: ``(batch, target, width)``.
            keys: From :meth:`project`. Shape: ``(batch, heads, source, head_width)``.
            keep: True = keep. Shape broadcastable to ``(batch, heads, target, source)``.

        Returns:
            Rows sum to 1. Shape: ``(batch, heads, target, source)``.
        """
        return self.scores(queries, keys, keep).softmax(-1)

    def scores(self, queries: Tensor, keys: Tensor, keep: Tensor | None = None) -> Tensor:
        """What :meth:`weights` are the softmax of, -inf where nothing is kept; arguments and shape as there."""
        scores = self._split(self.query(queries)) @ keys.transpose(-1, -2) * self.head_width**-0.5
        return scores if keep is None else scores.masked_fill(~keep, float("-inf"))

    def forward(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        keep: Tensor | None = None,
        gates: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Attends.

        Args:
            queries: Shape: ``(batch, target, width)``.
            keys: From :meth:`project`. Shape: ``(batch, heads, source, head_width)``.
            values: Likewise.
            keep: True = keep. Shape broadcastable to ``(batch, heads, target, source)``.
            gates: Gates of the memory's positions in [0, 1]. Shape: ``(batch, source)``.
            is_causal: Query t sees positions up to t only (``keep`` must then be None).

        Returns:
            Tensor of shape ``(batch, target, width)``.
        """
        q = self._split(self.query(queries))  # (batch, heads, target, head_width)
        dropout = self.dropout if self.training else 0.0
        if gates is None or self.gate_form == "memory":
            mixed = F.scaled_dot_product_attention(q, keys, values, keep, dropout, is_causal)
        else:
            scores = q @ keys.transpose(-1, -2) * self.head_width**-0.5  # (batch, heads, target, source)
            if self.gate_form == "weights":
                weights = gated_weights(scores, keep, gates)
            else:
                scores = wide(scores) + (1.0 - wide(gates)[:, None, None, :]) * -1e18  # beyond float16
                if keep is not None:
                    scores = scores.masked_fill(~keep, float("-inf"))
                weights = scores.softmax(-1).to(q.dtype)
            mixed = F.dropout(weights, dropout, self.training) @ values
        return self.out(mixed.transpose(1, 2).flatten(-2))  # (batch, target, width)
