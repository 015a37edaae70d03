"""The Transformer of MoEL and its kin: narrow attention, convolutions for the feed-forward, sin-then-cos timing.

Lin et al. 2019 and, after them, MIME, EmpDG, KEMP and CEM share these blocks, which come from tensor2tensor. Pre-norm;
a bias-free projection and the timing signal open each stack, a norm closes it. Where a convolution would look at
padding, the padding is 0 here, so an example's encoding does not depend on its batch; the released code lets the
convolution see it (``masks_padding=False``).
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers.cache_utils import Cache, EncoderDecoderCache

from empatheia_research.layers.attention import Attention
from empatheia_research.layers.cache import causal_attention, last_steps, memory_of, with_earlier_steps


def timing_signal(positions: Tensor, width: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """``sin`` of all rates, then ``cos`` of all rates; time scales geometric from 1 to 1e4.

    Args:
        positions: Positions from 0. Shape: ``(...)``, integer.
        width: Number of columns, even.
        dtype: Result type.

    Returns:
        Tensor of shape ``(..., width)``, values in [-1, 1].
    """
    n = width // 2
    steps = torch.arange(n, device=positions.device, dtype=torch.float32)
    angles = positions.to(torch.float32).unsqueeze(-1) * torch.exp(steps * (-math.log(1e4) / max(1, n - 1)))
    return torch.cat((angles.sin(), angles.cos()), dim=-1).to(dtype)


class _Standardised(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, eps: float) -> Tensor:
        n = states.shape[-1]
        normed, mean, inverse = torch.native_layer_norm(states, (n,), None, None, 1e-24)  # 1e-24: for rows of one value
        below = inverse.reciprocal() * math.sqrt(n / (n - 1)) + eps
        factor = (inverse * below).reciprocal()
        ctx.save_for_backward(states, normed, mean, inverse, factor, eps / (n * below.square()))
        return normed * factor

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        states, normed, mean, inverse, factor, change = ctx.saved_tensors
        (gradient,) = gradients
        of_states, _, _ = torch.ops.aten.native_layer_norm_backward(
            gradient * factor, states, states.shape[-1:], mean, inverse, None, None, [True, False, False]
        )
        of_factor = (gradient * normed).sum(-1, keepdim=True)
        return of_states.addcmul_(normed, change * of_factor), None


def standardised(states: Tensor, eps: float) -> Tensor:
    """``(x - mean) / (std + eps)`` over the last dimension, with the unbiased standard deviation.

    Computed by the kernels of the usual layer norm, which divides by ``sqrt(biased variance + eps)``, and one factor a
    row: written out, the passes over the states cost more than a block's products.
    """
    standardised: Any = _Standardised.apply(states, eps)
    return standardised


class UnbiasedLayerNorm(nn.Module):
    """``gamma (x - mean) / (std + eps) + beta`` with the unbiased standard deviation."""

    def __init__(self, width: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.eps = eps

    def forward(self, states: Tensor) -> Tensor:
        """Normalises the last dimension."""
        return torch.addcmul(self.bias, standardised(states, self.eps), self.weight)


class ConvolutionalFeedForward(nn.Module):
    """Two convolutions of width 3 with a ReLU behind each, so what comes out is at least 0.

    Args:
        width: Model width.
        inner_width: Channels between the convolutions.
        is_causal: Pad on the left only: position t sees t-2, t-1 and t.
        dropout: Behind the first convolution.
    """

    def __init__(self, width: int, inner_width: int, *, is_causal: bool, dropout: float = 0.0) -> None:
        super().__init__()
        self.first = nn.Conv1d(width, inner_width, 3)
        self.second = nn.Conv1d(inner_width, width, 3)
        self.is_causal = is_causal
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, states: Tensor, mask: Tensor | None = None, cache: Cache | None = None, cache_index: int = 0
    ) -> Tensor:
        """Convolves.

        Args:
            states: Shape: ``(batch, length, width)``; only the new steps when ``cache`` holds earlier ones.
            mask: True = keep; positions without are 0 for the convolutions. Shape: ``(batch, length)``.
            cache: A cache that keeps the inputs of both convolutions (causal form only).
            cache_index: Its layer for this module.

        Returns:
            Tensor of the shape of ``states``, at least 0.
        """
        if mask is not None:
            states = states * mask.unsqueeze(-1).to(states.dtype)
        if cache is not None:
            return self._step(states, cache, cache_index)
        hidden = self.dropout(self._convolve(self.first, states))
        if mask is not None:
            hidden = hidden * mask.unsqueeze(-1).to(states.dtype)
        return self._convolve(self.second, hidden)

    def _convolve(self, layer: nn.Conv1d, states: Tensor) -> Tensor:
        padding = (2, 0) if self.is_causal else (1, 1)
        return layer(F.pad(states.transpose(1, 2), padding)).relu().transpose(1, 2)

    def _step(self, states: Tensor, cache: Cache, index: int) -> Tensor:
        """New steps, with the two before each from the cache, which re-orders them with the beams."""
        n_new = states.shape[1]
        before = last_steps(cache, index, 2)
        inputs = states if before is None else torch.cat((before[0][:, 0], states), dim=1)
        hidden = self._convolve(self.first, inputs)[:, -n_new:]
        inner = hidden if before is None else torch.cat((before[1][:, 0], hidden), dim=1)
        cache.update(states[:, None], hidden[:, None], index)
        return self._convolve(self.second, inner)[:, -n_new:]


class ConvolutionalEncoderLayer(nn.Module):
    """Self-attention and convolutional feed-forward, each ``x + f(LN(x))``."""

    def __init__(self, width: int, n_heads: int, attention_width: int, ffn_width: int, dropout: float) -> None:
        super().__init__()
        self.attention_norm = UnbiasedLayerNorm(width)
        self.attention = Attention(width, n_heads, attention_width, dropout)
        self.ffn_norm = UnbiasedLayerNorm(width)
        self.ffn = ConvolutionalFeedForward(width, ffn_width, is_causal=False, dropout=dropout)
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: Tensor, mask: Tensor | None = None, masks_padding: bool = True) -> Tensor:
        """Encodes.

        Args:
            states: Shape: ``(batch, source, width)``.
            mask: True = keep. Shape: ``(batch, source)``.
            masks_padding: Hide padding from the convolutions, too.

        Returns:
            Tensor of the shape of ``states``.
        """
        normed = self.attention_norm(states)
        keep = None if mask is None else mask[:, None, None, :].bool()
        states = states + self.dropout(self.attention(normed, *self.attention.project(normed), keep))
        return states + self.dropout(self.ffn(self.ffn_norm(states), mask if masks_padding else None))


class ConvolutionalEncoder(nn.Module):
    """Projection, timing, :class:`ConvolutionalEncoderLayer` times ``n_layers``, norm.

    Args:
        n_layers: Blocks.
        width: Model width.
        n_heads: Attention heads.
        attention_width: Total width of the heads.
        ffn_width: Channels between the convolutions.
        dropout: On residual branches and attention weights.
        input_width: Width of what comes in; None = ``width``.
        masks_padding: Hide padding from the convolutions (the released code does not).
        has_timing: Add the timing signal; False where the input has positions of its own.
    """

    def __init__(
        self,
        n_layers: int,
        width: int,
        n_heads: int,
        attention_width: int,
        ffn_width: int,
        dropout: float = 0.0,
        input_width: int | None = None,
        masks_padding: bool = True,
        has_timing: bool = True,
    ) -> None:
        super().__init__()
        self.masks_padding = masks_padding
        self.has_timing = has_timing
        self.projection = nn.Linear(input_width or width, width, bias=False)
        self.layers = nn.ModuleList(
            ConvolutionalEncoderLayer(width, n_heads, attention_width, ffn_width, dropout) for _ in range(n_layers)
        )
        self.norm = UnbiasedLayerNorm(width)

    def forward(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        """Encodes embedded pieces.

        Args:
            states: Shape: ``(batch, source, input width)``.
            mask: True = keep. Shape: ``(batch, source)``.

        Returns:
            Tensor of shape ``(batch, source, width)``.
        """
        states = self.projection(states)
        if self.has_timing:
            positions = torch.arange(states.shape[1], device=states.device)
            states = states + timing_signal(positions, states.shape[2], states.dtype)
        for layer in self.layers:
            states = layer(states, mask, self.masks_padding)
        return self.norm(states)


class ConvolutionalDecoderLayer(nn.Module):
    """Causal self-attention, cross-attention, causal convolutional feed-forward; all ``x + f(LN(x))``.

    Args:
        width: Model width.
        n_heads: Attention heads.
        attention_width: Total width of the heads.
        ffn_width: Channels between the convolutions.
        dropout: On residual branches and attention weights.
        layer_idx: Position in the stack, the cache's key.
        conv_idx: Cache layer of the convolutions; beyond all attention layers of the decoder.
        memory_width: Width of the memory; None = ``width``.
    """

    def __init__(
        self,
        width: int,
        n_heads: int,
        attention_width: int,
        ffn_width: int,
        dropout: float,
        layer_idx: int,
        conv_idx: int,
        memory_width: int | None = None,
    ) -> None:
        super().__init__()
        self.layer_idx = layer_idx
        self.conv_idx = conv_idx
        self.self_norm = UnbiasedLayerNorm(width)
        self.self_attention = Attention(width, n_heads, attention_width, dropout)
        self.cross_norm = UnbiasedLayerNorm(width)
        self.cross_attention = Attention(width, n_heads, attention_width, dropout, memory_width=memory_width)
        self.ffn_norm = UnbiasedLayerNorm(width)
        self.ffn = ConvolutionalFeedForward(width, ffn_width, is_causal=True, dropout=dropout)
        self.dropout = nn.Dropout(dropout)

    def attend_self(self, states: Tensor, cache: EncoderDecoderCache | None = None) -> Tensor:
        """Self-attention with its residual; the cache takes the new keys and values."""
        normed = self.self_norm(states)
        keys, values = self.self_attention.project(normed)
        keys, values = with_earlier_steps(cache, keys, values, self.layer_idx)
        keep, is_causal = causal_attention(states.shape[1], keys.shape[2], states.device)
        return states + self.dropout(self.self_attention(normed, keys, values, keep, is_causal=is_causal))

    def memory_pair(self, memory: Tensor, cache: EncoderDecoderCache | None = None) -> tuple[Tensor, Tensor]:
        """Keys and values of the memory, projected once an answer."""
        return memory_of(cache, self.layer_idx, memory.shape[1], lambda: self.cross_attention.project(memory))

    def feed(self, states: Tensor, cache: EncoderDecoderCache | None = None) -> Tensor:
        """Convolutional feed-forward with its residual."""
        own = None if cache is None else cache.self_attention_cache
        return states + self.dropout(self.ffn(self.ffn_norm(states), None, own, self.conv_idx))

    def forward(
        self, states: Tensor, memory: Tensor, memory_keep: Tensor | None, cache: EncoderDecoderCache | None = None
    ) -> Tensor:
        """Decodes some steps; shapes as in :meth:`empatheia_research.layers.transformer.DecoderLayer.forward`."""
        states = self.attend_self(states, cache)
        pair = self.memory_pair(memory, cache)
        states = states + self.dropout(self.cross_attention(self.cross_norm(states), *pair, memory_keep))
        return self.feed(states, cache)


class ConvolutionalDecoder(nn.Module):
    """Projection, timing, :class:`ConvolutionalDecoderLayer` times ``n_layers``, norm."""

    def __init__(
        self,
        n_layers: int,
        width: int,
        n_heads: int,
        attention_width: int,
        ffn_width: int,
        dropout: float = 0.0,
        memory_width: int | None = None,
    ) -> None:
        super().__init__()
        self.projection = nn.Linear(width, width, bias=False)
        self.layers = nn.ModuleList(
            ConvolutionalDecoderLayer(
                width, n_heads, attention_width, ffn_width, dropout, i, n_layers + i, memory_width
            )
            for i in range(n_layers)
        )
        self.norm = UnbiasedLayerNorm(width)

    def open(self, states: Tensor, first_position: int) -> Tensor:
        """Projects embedded pieces and adds the timing from ``first_position`` on."""
        positions = torch.arange(first_position, first_position + states.shape[1], device=states.device)
        return self.projection(states) + timing_signal(positions, states.shape[2], states.dtype)

    def forward(
        self, states: Tensor, memory: Tensor, memory_mask: Tensor | None, cache: EncoderDecoderCache | None = None
    ) -> Tensor:
        """Decodes opened states (:meth:`open`).

        Args:
            states: Shape: ``(batch, target, width)``; only the new steps when ``cache`` holds the earlier ones.
            memory: Shape: ``(batch, memory, width)``.
            memory_mask: True = keep. Shape: ``(batch, memory)``.
            cache: An ``EncoderDecoderCache``, updated in place; the convolutions use layers behind the attention's.

        Returns:
            Tensor of the shape of ``states``.
        """
        keep = None if memory_mask is None else memory_mask[:, None, None, :].bool()
        for layer in self.layers:
            states = layer(states, memory, keep, cache)
        return self.norm(states)
