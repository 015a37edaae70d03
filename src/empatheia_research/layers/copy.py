"""Replies that copy: the attention of the last decoder block, mixed into the distribution over words.

See et al. 2017's pointer-generator without coverage, as EmpDG and KEMP use it on the family's blocks
(:mod:`empatheia_research.layers.convolutional`).
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from transformers.cache_utils import EncoderDecoderCache

from empatheia_research.layers.convolutional import ConvolutionalDecoder, ConvolutionalDecoderLayer
from empatheia_research.layers.precision import wide


def copy_mixture(logits: Tensor, weights: Tensor, share: Tensor, memory_ids: Tensor) -> Tensor:
    """``log(alpha softmax(logits) + (1 - alpha) sum of the weights at each piece)``.

    Args:
        logits: Word scores. Shape: ``(batch, target, vocabulary)``.
        weights: Attention over the memory, rows sum to 1. Shape: ``(batch, target, memory)``.
        share: alpha in [0, 1], what is generated and not copied. Shape: ``(batch, target, 1)``.
        memory_ids: Piece at each place of the memory. Shape: ``(batch, memory)``.

    Returns:
        Log-probabilities, at least log 1e-18; of half precision in 32 bits. Shape: that of ``logits``.
    """
    share, scores = wide(share), wide(logits)
    places = memory_ids[:, None].expand(weights.shape)
    mixed = (share * scores.softmax(-1)).scatter_add(-1, places, ((1.0 - share) * weights).to(scores.dtype))
    return (mixed + 1e-18).log()


class Copy(nn.Module):
    """``alpha = sigmoid(w y_t + b)`` and the mixture.

    Args:
        width: Width of decoder states.
        softens: Take the softmax of the attention a second time, padding included, as the released code does: what
            is copied is then close to uniform.
    """

    def __init__(self, width: int, *, softens: bool = False) -> None:
        super().__init__()
        self.share = nn.Linear(width, 1)
        self.softens = softens

    def forward(self, states: Tensor, weights: Tensor, logits: Tensor, memory_ids: Tensor) -> Tensor:
        """Log-probabilities of pieces.

        Args:
            states: Shape: ``(batch, target, width)``.
            weights: As in :func:`copy_mixture`.
            logits: Shape: ``(batch, target, vocabulary)``.
            memory_ids: Shape: ``(batch, memory)``.
        """
        weights = weights.softmax(-1) if self.softens else weights
        return copy_mixture(logits, weights, self.share(states).sigmoid(), memory_ids)


class CopyDecoderLayer(ConvolutionalDecoderLayer):
    """The family's decoder block, which also tells where it looked.

    Attributes:
        averages_scores: Where it looked is the softmax of the heads' mean score, as the released code has it, and not
            the mean of the heads' weights.
    """

    averages_scores: bool = False

    def look(
        self,
        states: Tensor,
        memory: Tensor,
        memory_keep: Tensor | None,
        cache: EncoderDecoderCache | None = None,
        signal: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Decodes one or several steps.

        Args:
            states: Shape: ``(batch, target, width)``.
            memory: Shape: ``(batch, memory, width)``.
            memory_keep: True = keep; broadcastable to ``(batch, heads, target, memory)``.
            cache: As in :class:`ConvolutionalDecoderLayer`.
            signal: What a subclass fuses with the attended memory. Shape: ``(batch, width)``.

        Returns:
            States, and attention weights of all heads together, ``(batch, target, memory)``.
        """
        states = self.attend_self(states, cache)
        normed = self.cross_norm(states)
        keys, values = self.memory_pair(memory, cache)
        scores = self.cross_attention.scores(normed, keys, memory_keep)
        weights = scores.mean(1).softmax(-1) if self.averages_scores else scores.softmax(-1).mean(1)
        attended = self.fuse(self.cross_attention(normed, keys, values, memory_keep), signal)
        return self.feed(states + self.dropout(attended), cache), weights

    def fuse(self, attended: Tensor, signal: Tensor | None) -> Tensor:
        """What enters the residual stream; here the attended memory alone. Shape: ``(batch, target, width)``."""
        return attended


class CopyDecoder(ConvolutionalDecoder):
    """The family's decoder; its ``forward`` also gives the last block's attention.

    Args:
        n_layers: Blocks.
        width: Model width.
        n_heads: Attention heads.
        attention_width: Total width of the heads.
        ffn_width: Channels between the convolutions.
        dropout: On residual branches and attention weights.
        layer_class: Kind of block.
        averages_scores: See :class:`CopyDecoderLayer`.
    """

    def __init__(
        self,
        n_layers: int,
        width: int,
        n_heads: int,
        attention_width: int,
        ffn_width: int,
        dropout: float = 0.0,
        layer_class: type[CopyDecoderLayer] = CopyDecoderLayer,
        averages_scores: bool = False,
    ) -> None:
        super().__init__(0, width, n_heads, attention_width, ffn_width, dropout)
        self.layers = nn.ModuleList(
            layer_class(width, n_heads, attention_width, ffn_width, dropout, i, n_layers + i) for i in range(n_layers)
        )
        for layer in self.layers:
            cast(CopyDecoderLayer, layer).averages_scores = averages_scores

    def forward(
        self,
        states: Tensor,
        memory: Tensor,
        memory_mask: Tensor | None,
        cache: EncoderDecoderCache | None = None,
        signal: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Decodes opened states.

        Args:
            states: Shape: ``(batch, target, width)``.
            memory: Shape: ``(batch, memory, width)``.
            memory_mask: True = keep. Shape: ``(batch, memory)``.
            cache: As in :class:`ConvolutionalDecoder`.
            signal: See :meth:`CopyDecoderLayer.look`.

        Returns:
            States, and the last block's attention weights, ``(batch, target, memory)``.
        """
        keep = None if memory_mask is None else memory_mask[:, None, None, :].bool()
        weights = states.new_zeros(*states.shape[:2], memory.shape[1])
        for layer in self.layers:
            states, weights = cast(CopyDecoderLayer, layer).look(states, memory, keep, cache, signal)
        return self.norm(states), weights


def compact(mask: Tensor, *rows: Tensor) -> tuple[Tensor, ...]:
    """Moves what is kept to the front of each row, in order, so that padding stands behind.

    Args:
        mask: True = keep. Shape: ``(batch, length)``.
        *rows: Tensors to move alike. Shape of each: ``(batch, length, ...)``.

    Returns:
        The mask, then the tensors, re-ordered; shapes as given.
    """
    order = mask.logical_not().to(torch.uint8).argsort(dim=-1, stable=True)
    moved = [mask.gather(1, order)]
    for row in rows:
        places = order.view(*order.shape, *[1] * (row.dim() - 2)).expand(row.shape)
        moved.append(row.gather(1, places))
    return tuple(moved)
