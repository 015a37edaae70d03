"""Pre-norm Transformer encoder and decoder, the decoder with an optional cause-gated attention per block.

Vaswani et al. 2017 with the layer norms in front; Gao et al. 2021, section 3.3, for the third sub-layer.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers.cache_utils import EncoderDecoderCache

from empatheia_research.layers.attention import Attention, GateForm
from empatheia_research.layers.cache import causal_attention, memory_of, with_earlier_steps


class FeedForward(nn.Sequential):
    """``ReLU(x W_1 + b_1) W_2 + b_2``."""

    def __init__(self, width: int, inner_width: int, dropout: float = 0.0) -> None:
        super().__init__(nn.Linear(width, inner_width), nn.ReLU(), nn.Dropout(dropout), nn.Linear(inner_width, width))


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward, each ``x + f(LN(x))``.

    Args:
        width: Model width.
        n_heads: Attention heads.
        attention_width: Total width of the heads.
        ffn_width: Inner width of the feed-forward.
        dropout: On both residual branches and the attention weights.
    """

    def __init__(self, width: int, n_heads: int, attention_width: int, ffn_width: int, dropout: float) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = Attention(width, n_heads, attention_width, dropout)
        self.ffn_norm = nn.LayerNorm(width)
        self.ffn = FeedForward(width, ffn_width, dropout)
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: Tensor, keep: Tensor | None = None) -> Tensor:
        """Encodes.

        Args:
            states: Shape: ``(batch, source, width)``.
            keep: True = keep. Shape: ``(batch, 1, 1, source)``.

        Returns:
            Tensor of the shape of ``states``.
        """
        normed = self.attention_norm(states)
        keys, values = self.attention.project(normed)
        states = states + self.dropout(self.attention(normed, keys, values, keep))
        return states + self.dropout(self.ffn(self.ffn_norm(states)))


class Encoder(nn.Module):
    """A stack of :class:`EncoderLayer` with a final norm; with no layers it is the identity."""

    def __init__(
        self, n_layers: int, width: int, n_heads: int, attention_width: int, ffn_width: int, dropout: float
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            EncoderLayer(width, n_heads, attention_width, ffn_width, dropout) for _ in range(n_layers)
        )
        self.norm = nn.LayerNorm(width) if n_layers else nn.Identity()

    def forward(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        """Encodes.

        Args:
            states: Shape: ``(batch, source, width)``.
            mask: True = keep. Shape: ``(batch, source)``.

        Returns:
            Tensor of the shape of ``states``.
        """
        keep = None if mask is None else mask[:, None, None, :].bool()
        for layer in self.layers:
            states = layer(states, keep)
        return self.norm(states)


class DecoderLayer(nn.Module):
    """Causal self-attention, cross-attention, optional gated cross-attention, feed-forward; all ``x + f(LN(x))``.

    Args:
        width: Model width.
        n_heads: Attention heads.
        attention_width: Total width of the heads.
        ffn_width: Inner width of the feed-forward.
        dropout: On the residual branches and the attention weights.
        gate_form: Form of the gated attention, or None for a plain Transformer decoder.
        layer_idx: Position in the stack, the cache's key.
    """

    def __init__(
        self,
        width: int,
        n_heads: int,
        attention_width: int,
        ffn_width: int,
        dropout: float,
        gate_form: GateForm | None = None,
        layer_idx: int = 0,
    ) -> None:
        super().__init__()
        self.layer_idx = layer_idx
        self.self_norm = nn.LayerNorm(width)
        self.self_attention = Attention(width, n_heads, attention_width, dropout)
        self.cross_norm = nn.LayerNorm(width)
        self.cross_attention = Attention(width, n_heads, attention_width, dropout)
        if gate_form is not None:
            self.gated_norm = nn.LayerNorm(width)
            self.gated_attention = Attention(width, n_heads, attention_width, dropout, gate_form)
        self.is_gated = gate_form is not None
        self.ffn_norm = nn.LayerNorm(width)
        self.ffn = FeedForward(width, ffn_width, dropout)
        self.dropout = nn.Dropout(dropout)

    def _memory(
        self, memory: Tensor, keep: Tensor | None, gates: Tensor | None, cache: EncoderDecoderCache | None
    ) -> list[tuple[Tensor, Tensor]]:
        """Keys and values of the memory for the cross (and gated) attention, from the cache when it has them.

        Both stand in one cache entry, so that beams re-order them together: side by side in each head, because a
        slice of the heads would be copied at every step before a batch can be multiplied with it.
        """

        def project() -> tuple[Tensor, Tensor]:
            kept = None if keep is None or torch.is_grad_enabled() else keep[:, 0, 0]  # padding would be half the work
            keys, values = self.cross_attention.project(memory, None, kept)
            if not self.is_gated:
                return keys, values
            gated_keys, gated_values = self.gated_attention.project(memory, gates, kept)
            return torch.cat((keys, gated_keys), dim=-1), torch.cat((values, gated_values), dim=-1)

        keys, values = memory_of(cache, self.layer_idx, memory.shape[1], project)
        width = self.cross_attention.head_width
        return list(zip(keys.split(width, dim=-1), values.split(width, dim=-1), strict=True))

    def forward(
        self,
        states: Tensor,
        memory: Tensor,
        memory_keep: Tensor | None,
        gates: Tensor | None = None,
        cache: EncoderDecoderCache | None = None,
    ) -> Tensor:
        """Decodes one or several steps.

        Args:
            states: Shape: ``(batch, target, width)``; only the new steps when ``cache`` holds the earlier ones.
            memory: Encoder states. Shape: ``(batch, source, width)``.
            memory_keep: True = keep. Shape: ``(batch, 1, 1, source)``.
            gates: Cause gates in [0, 1]; needed when the layer is gated. Shape: ``(batch, source)``.
            cache: Keys and values of earlier steps; updated in place.

        Returns:
            Tensor of the shape of ``states``.
        """
        normed = self.self_norm(states)
        keys, values = self.self_attention.project(normed)
        keys, values = with_earlier_steps(cache, keys, values, self.layer_idx)
        keep, is_causal = causal_attention(states.shape[1], keys.shape[2], states.device)
        states = states + self.dropout(self.self_attention(normed, keys, values, keep, is_causal=is_causal))

        pairs = self._memory(memory, memory_keep, gates, cache)
        states = states + self.dropout(self.cross_attention(self.cross_norm(states), *pairs[0], memory_keep))
        if self.is_gated:
            mixed = self.gated_attention(self.gated_norm(states), *pairs[1], memory_keep, gates)
            states = states + self.dropout(mixed)
        return states + self.dropout(self.ffn(self.ffn_norm(states)))


class Decoder(nn.Module):
    """A stack of :class:`DecoderLayer` with a final norm."""

    def __init__(
        self,
        n_layers: int,
        width: int,
        n_heads: int,
        attention_width: int,
        ffn_width: int,
        dropout: float,
        gate_form: GateForm | None = None,
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            DecoderLayer(width, n_heads, attention_width, ffn_width, dropout, gate_form, layer_idx)
            for layer_idx in range(n_layers)
        )
        self.norm = nn.LayerNorm(width)

    def forward(
        self,
        states: Tensor,
        memory: Tensor,
        memory_mask: Tensor | None,
        gates: Tensor | None = None,
        cache: EncoderDecoderCache | None = None,
    ) -> Tensor:
        """Decodes; shapes as in :meth:`DecoderLayer.forward`, ``memory_mask`` is ``(batch, source)``, True = keep."""
        keep = None if memory_mask is None else memory_mask[:, None, None, :].bool()
        for layer in self.layers:
            states = layer(states, memory, keep, gates, cache)
        return self.norm(states)
