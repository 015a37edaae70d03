"""Post-norm Transformer blocks, ``LN(x + f(x))``, with biases in the attention, as Vaswani et al. 2017 print them.

An encoder layer of width 300 and inner width 1,200 has 1,083,900 parameters, a decoder layer 1,445,700: the sizes that
the figures of Rashkin et al. (2018), table 4, are made of. Sub-modules and cache are those of
:mod:`empatheia_research.layers.transformer`; the place of the norms differs, and dropout is on attention weights and on
what a sub-layer gives, not inside the feed-forward.
"""

from __future__ import annotations

from torch import Tensor, nn
from transformers.cache_utils import EncoderDecoderCache

from empatheia_research.layers.attention import Attention
from empatheia_research.layers.cache import causal_attention, with_earlier_steps
from empatheia_research.layers.transformer import Decoder, DecoderLayer, Encoder, EncoderLayer


class PostNormEncoderLayer(EncoderLayer):
    """Self-attention and feed-forward, each ``LN(x + f(x))``; as :class:`EncoderLayer`, and ``activation``."""

    def __init__(
        self,
        width: int,
        n_heads: int,
        attention_width: int,
        ffn_width: int,
        dropout: float,
        activation: type[nn.Module] = nn.ReLU,
    ) -> None:
        super().__init__(width, n_heads, attention_width, ffn_width, dropout)
        self.ffn[1], self.ffn[2] = activation(), nn.Identity()
        self.attention = Attention(width, n_heads, attention_width, dropout, bias=True)

    def forward(self, states: Tensor, keep: Tensor | None = None) -> Tensor:
        """Encodes; shapes as in :meth:`EncoderLayer.forward`."""
        mixed = self.attention(states, *self.attention.project(states), keep)
        states = self.attention_norm(states + self.dropout(mixed))
        return self.ffn_norm(states + self.dropout(self.ffn(states)))


class PostNormEncoder(Encoder):
    """A stack of :class:`PostNormEncoderLayer`; its last layer ends with a norm, so there is none behind it."""

    def __init__(
        self,
        n_layers: int,
        width: int,
        n_heads: int,
        attention_width: int,
        ffn_width: int,
        dropout: float,
        activation: type[nn.Module] = nn.ReLU,
    ) -> None:
        super().__init__(0, width, n_heads, attention_width, ffn_width, dropout)
        self.layers = nn.ModuleList(
            PostNormEncoderLayer(width, n_heads, attention_width, ffn_width, dropout, activation)
            for _ in range(n_layers)
        )


class PostNormDecoderLayer(DecoderLayer):
    """Causal self-attention, cross-attention, feed-forward, each ``LN(x + f(x))``.

    Arguments as :class:`DecoderLayer`, without gates, and ``activation``.
    """

    def __init__(
        self,
        width: int,
        n_heads: int,
        attention_width: int,
        ffn_width: int,
        dropout: float,
        layer_idx: int = 0,
        activation: type[nn.Module] = nn.ReLU,
    ) -> None:
        super().__init__(width, n_heads, attention_width, ffn_width, dropout, None, layer_idx)
        self.ffn[1], self.ffn[2] = activation(), nn.Identity()
        self.self_attention = Attention(width, n_heads, attention_width, dropout, bias=True)
        self.cross_attention = Attention(width, n_heads, attention_width, dropout, bias=True)

    def forward(
        self,
        states: Tensor,
        memory: Tensor,
        memory_keep: Tensor | None,
        gates: Tensor | None = None,
        cache: EncoderDecoderCache | None = None,
    ) -> Tensor:
        """Decodes one or several steps; shapes as in :meth:`DecoderLayer.forward`, ``gates`` is not read."""
        keys, values = self.self_attention.project(states)
        keys, values = with_earlier_steps(cache, keys, values, self.layer_idx)
        keep, is_causal = causal_attention(states.shape[1], keys.shape[2], states.device)
        mixed = self.self_attention(states, keys, values, keep, is_causal=is_causal)
        states = self.self_norm(states + self.dropout(mixed))
        [pair] = self._memory(memory, memory_keep, None, cache)
        states = self.cross_norm(states + self.dropout(self.cross_attention(states, *pair, memory_keep)))
        return self.ffn_norm(states + self.dropout(self.ffn(states)))


class PostNormDecoder(Decoder):
    """A stack of :class:`PostNormDecoderLayer`, without a norm behind it."""

    def __init__(
        self,
        n_layers: int,
        width: int,
        n_heads: int,
        attention_width: int,
        ffn_width: int,
        dropout: float,
        activation: type[nn.Module] = nn.ReLU,
    ) -> None:
        super().__init__(0, width, n_heads, attention_width, ffn_width, dropout)
        self.layers = nn.ModuleList(
            PostNormDecoderLayer(width, n_heads, attention_width, ffn_width, dropout, i, activation)
            for i in range(n_layers)
        )
        self.norm = nn.Identity()
