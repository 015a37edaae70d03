"""Many decoder layers at once: the experts of a mixture as stacked weights, computed for the chosen ones only.

Lin et al. 2019 (MoEL) run 32 decoder layers one after the other. Here the weights of all lie in one tensor, each
example names the experts it listens to (its slots), and every projection is one batched product over the experts in
use: examples are sorted by expert, multiplied, and put back. Whatever has no weight is left alone: attention works on
the slots directly. Nothing loops over experts, and one that nobody chose costs nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers.cache_utils import Cache, EncoderDecoderCache

from empatheia_research.layers.cache import causal_attention, last_steps, memory_of, with_earlier_steps
from empatheia_research.layers.convolutional import standardised


@dataclass
class Routing:
    """Which expert each slot of each example uses, sorted for batched products.

    Attributes:
        ids: Expert of each slot. Shape: ``(batch, slots)``.
        used: Experts in use, ascending. Shape: ``(n_used,)``; None = all.
        pairs: (example, slot) pair in each place of the sorted order, ``n_used`` groups of equal size; a group that
            has fewer is filled up with pair 0, whose result nobody reads. Shape: ``(n_used * size,)``.
        places: Place of each pair. Shape: ``(batch * slots,)``.
    """

    ids: Tensor
    used: Tensor | None
    pairs: Tensor
    places: Tensor

    @classmethod
    def of(cls, ids: Tensor, n_experts: int) -> Routing:
        """Sorts the pairs of ``ids`` (shape: ``(batch, slots)``) by expert."""
        flat = ids.flatten()
        used, groups = flat.unique(return_inverse=True)
        counts = torch.bincount(groups, minlength=used.shape[0])
        size = int(counts.max())
        order = groups.argsort(stable=True)
        first = counts.cumsum(0) - counts  # of each group, in the sorted order
        rank = torch.arange(flat.shape[0], device=ids.device) - first[groups[order]]
        places = torch.empty_like(order)
        places[order] = groups[order] * size + rank
        pairs = order.new_zeros(used.shape[0] * size)
        pairs[places] = torch.arange(flat.shape[0], device=ids.device)
        return cls(ids, None if used.shape[0] == n_experts else used, pairs, places)


class ExpertLinear(nn.Module):
    """One linear map for each expert.

    Args:
        n_experts: E.
        width_in: Width of what comes in.
        width_out: Width of what goes out.
        bias: Add one.
        fans: Fan-in and fan-out for Xavier's range, where the map stands for several or for a convolution.
    """

    def __init__(
        self, n_experts: int, width_in: int, width_out: int, bias: bool = False, fans: tuple[int, int] | None = None
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_experts, width_in, width_out))
        self.bias = nn.Parameter(torch.zeros(n_experts, 1, width_out)) if bias else None
        self.bound = math.sqrt(6.0 / sum(fans or (width_in, width_out)))
        nn.init.uniform_(self.weight, -self.bound, self.bound)

    def forward(self, states: Tensor, routing: Routing) -> Tensor:
        """Maps each slot by its expert.

        Args:
            states: Shape: ``(batch, slots, length, width_in)``, or ``(batch, length, width_in)`` when all slots of an
                example read the same.
            routing: Of the slots.

        Returns:
            Tensor of shape ``(batch, slots, length, width_out)``.
        """
        n_slots, length = routing.ids.shape[1], states.shape[-2]
        sources = routing.pairs if states.dim() == 4 else routing.pairs // n_slots
        rows = states.flatten(0, -3)[sources]  # (n_used * size, length, width_in)
        weight = self.weight if routing.used is None else self.weight[routing.used]
        grouped = rows.reshape(weight.shape[0], -1, weight.shape[1])  # (n_used, size * length, width_in)
        if self.bias is None:
            mapped = torch.bmm(grouped, weight)
        else:
            bias = self.bias if routing.used is None else self.bias[routing.used]
            mapped = torch.baddbmm(bias, grouped, weight)
        mapped = mapped.reshape(-1, length, weight.shape[2])[routing.places]
        return mapped.unflatten(0, (-1, n_slots))


class ExpertNorm(nn.Module):
    """:class:`empatheia_research.layers.convolutional.UnbiasedLayerNorm` with a scale and a shift for each expert."""

    def __init__(self, n_experts: int, width: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n_experts, width))
        self.bias = nn.Parameter(torch.zeros(n_experts, width))
        self.eps = eps

    def forward(self, states: Tensor, ids: Tensor) -> Tensor:
        """Normalises the last dimension.

        Args:
            states: Shape: ``(batch, slots or 1, length, width)``.
            ids: Expert of each slot. Shape: ``(batch, slots)``.

        Returns:
            Tensor of shape ``(batch, slots, length, width)``.
        """
        return torch.addcmul(self.bias[ids].unsqueeze(2), standardised(states, self.eps), self.weight[ids].unsqueeze(2))


class ExpertFeedForward(nn.Module):
    """Two causal convolutions of width 3 with a ReLU behind each, one pair for each expert.

    A convolution is a linear map of three neighbouring steps, the oldest first.
    """

    def __init__(self, n_experts: int, width: int, inner_width: int, dropout: float = 0.0) -> None:
        super().__init__()
        fans = (3 * width, 3 * inner_width)  # of a convolution: channels times its width
        self.first = ExpertLinear(n_experts, 3 * width, inner_width, bias=True, fans=fans)
        self.second = ExpertLinear(n_experts, 3 * inner_width, width, bias=True, fans=(fans[1], fans[0]))
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: Tensor, routing: Routing, cache: Cache | None = None, cache_index: int = 0) -> Tensor:
        """Convolves.

        Args:
            states: Shape: ``(batch, slots, length, width)``; only the new steps when ``cache`` holds earlier ones.
            routing: Of the slots.
            cache: A cache that keeps the inputs of both convolutions.
            cache_index: Its layer for this module.

        Returns:
            Tensor of the shape of ``states``, at least 0.
        """
        before = last_steps(cache, cache_index, 2)
        inputs = self._windows(states, None if before is None else before[0])
        hidden = self.dropout(self.first(inputs, routing).relu())  # (batch, slots, length, inner)
        inner = self._windows(hidden, None if before is None else before[1])
        if cache is not None:
            cache.update(states, hidden, cache_index)
        return self.second(inner, routing).relu()

    @staticmethod
    def _windows(states: Tensor, before: Tensor | None) -> Tensor:
        """Each step with the two before it side by side. Shape: ``(batch, slots, length, 3 * width)``."""
        n_known = 0 if before is None else before.shape[2]
        if before is not None:
            states = torch.cat((before, states), dim=2)
        padded = F.pad(states, (0, 0, 2 - n_known, 0))
        return torch.cat((padded[:, :, :-2], padded[:, :, 1:-1], padded[:, :, 2:]), dim=-1)


class ExpertDecoderLayer(nn.Module):
    """:class:`empatheia_research.layers.convolutional.ConvolutionalDecoderLayer` for each of many experts.

    Args:
        n_experts: How many.
        width: Model width.
        n_heads: Attention heads.
        attention_width: Total width of the heads.
        ffn_width: Channels between the convolutions.
        dropout: On residual branches and attention weights.
        layer_idx: The cache's key.
        conv_idx: Cache layer of the convolutions; beyond all attention layers of the decoder.
    """

    def __init__(
        self,
        n_experts: int,
        width: int,
        n_heads: int,
        attention_width: int,
        ffn_width: int,
        dropout: float,
        layer_idx: int,
        conv_idx: int,
    ) -> None:
        super().__init__()
        self.n_experts = n_experts
        self.n_heads = n_heads
        self.layer_idx = layer_idx
        self.conv_idx = conv_idx
        fans = (width, attention_width)
        self.self_norm = ExpertNorm(n_experts, width)
        self.self_projection = ExpertLinear(n_experts, width, 3 * attention_width, fans=fans)  # query, key, value
        self.self_out = ExpertLinear(n_experts, attention_width, width)
        self.cross_norm = ExpertNorm(n_experts, width)
        self.cross_query = ExpertLinear(n_experts, width, attention_width)
        self.cross_projection = ExpertLinear(n_experts, width, 2 * attention_width, fans=fans)  # key, value
        self.cross_out = ExpertLinear(n_experts, attention_width, width)
        self.ffn_norm = ExpertNorm(n_experts, width)
        self.ffn = ExpertFeedForward(n_experts, width, ffn_width, dropout)
        self.dropout = nn.Dropout(dropout)

    def _split(self, states: Tensor) -> Tensor:
        """Heads of all slots side by side. Shape: ``(batch, slots * heads, length, head width)``."""
        return states.unflatten(-1, (self.n_heads, -1)).transpose(2, 3).flatten(1, 2)

    def _attend(self, queries: Tensor, keys: Tensor, values: Tensor, keep: Tensor | None, is_causal: bool) -> Tensor:
        dropout = self.dropout.p if self.training else 0.0
        mixed = F.scaled_dot_product_attention(queries, keys, values, keep, dropout, is_causal)
        return mixed.unflatten(1, (-1, self.n_heads)).transpose(2, 3).flatten(3)  # (batch, slots, length, inner)

    def _attend_self(self, states: Tensor, routing: Routing, cache: EncoderDecoderCache | None) -> Tensor:
        projected = self.self_projection(self.self_norm(states, routing.ids), routing)
        queries, keys, values = map(self._split, projected.chunk(3, dim=-1))
        keys, values = with_earlier_steps(cache, keys, values, self.layer_idx)
        keep, is_causal = causal_attention(queries.shape[2], keys.shape[2], states.device)
        mixed = self._attend(queries, keys, values, keep, is_causal)
        return states + self.dropout(self.self_out(mixed, routing))

    def _memory_pair(
        self, memory: Tensor, routing: Routing, cache: EncoderDecoderCache | None
    ) -> tuple[Tensor, Tensor]:
        """Keys and values of the memory, projected once an answer."""

        def project() -> tuple[Tensor, Tensor]:
            keys, values = self.cross_projection(memory, routing).chunk(2, dim=-1)
            return self._split(keys), self._split(values)

        return memory_of(cache, self.layer_idx, memory.shape[1], project)

    def forward(
        self,
        states: Tensor,
        memory: Tensor,
        memory_keep: Tensor | None,
        routing: Routing,
        cache: EncoderDecoderCache | None = None,
    ) -> Tensor:
        """Decodes one or several steps by the chosen experts.

        Args:
            states: What all experts read. Shape: ``(batch, target, width)``.
            memory: Shape: ``(batch, memory, width)``.
            memory_keep: True = keep. Shape: ``(batch, 1, 1, memory)``.
            routing: Which experts.
            cache: An ``EncoderDecoderCache``, updated in place; rows are (example, slot, head).

        Returns:
            Tensor of shape ``(batch, slots, target, width)``.
        """
        states = self._attend_self(states.unsqueeze(1), routing, cache)
        queries = self._split(self.cross_query(self.cross_norm(states, routing.ids), routing))
        pair = self._memory_pair(memory, routing, cache)
        mixed = self._attend(queries, *pair, memory_keep, is_causal=False)
        states = states + self.dropout(self.cross_out(mixed, routing))
        own = None if cache is None else cache.self_attention_cache
        return states + self.dropout(self.ffn(self.ffn_norm(states, routing.ids), routing, own, self.conv_idx))
