"""What a decoder's self-attention sees of earlier steps, whatever kind of cache keeps them.

A cache that grows hands out the steps there are. A static one has its final size from the start and hands out empty
slots too, which nobody may attend to: what has not been said is cut off here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin, EncoderDecoderCache
from transformers.modeling_outputs import Seq2SeqLMOutput


def cache_field(output_class: type[Any]) -> str:
    """The name that transformers has for a cache, in a model's inputs and outputs; it differs between releases.

    Args:
        output_class: An output class of transformers, whose one field with a cache has that name.
    """
    return next(field.name for field in fields(output_class) if "Cache" in str(field.type))


CACHE = cache_field(Seq2SeqLMOutput)
CACHE_NAMES = tuple(dict.fromkeys((CACHE, "past_key_values", "cache")))
"""What callers may have for it: the installed transformers' name first."""


def with_earlier_steps(
    cache: EncoderDecoderCache | None, keys: Tensor, values: Tensor, layer_idx: int
) -> tuple[Tensor, Tensor]:
    """Stores new keys and values, and gives those of all steps so far.

    Args:
        cache: Updated in place; None = there are no earlier steps.
        keys: Of the new steps. Shape: ``(batch, heads, new, head_width)``.
        values: Likewise.
        layer_idx: The cache's key.

    Returns:
        Keys and values. Shape of each: ``(batch, heads, earlier + new, head_width)``.
    """
    if cache is None:
        return keys, values
    own = cache.self_attention_cache
    n_all = int(own.get_seq_length(layer_idx)) + keys.shape[2]
    keys, values = own.update(keys, values, layer_idx)
    return keys[:, :, :n_all], values[:, :, :n_all]


def causal_attention(n_new: int, n_all: int, device: torch.device) -> tuple[Tensor | None, bool]:
    """Which of ``n_all`` steps each of the last ``n_new`` sees: its own and all before.

    Returns:
        A mask of shape ``(n_new, n_all)``, True = keep, or None where none is needed; and whether attention is plainly
        causal, which its kernels do without a mask.
    """
    if n_new in (1, n_all):
        return None, n_new > 1
    return torch.ones(n_new, n_all, dtype=torch.bool, device=device).tril(n_all - n_new), False


def last_steps(cache: Cache | None, layer_idx: int, n: int) -> tuple[Tensor, Tensor] | None:
    """The last ``n`` steps that a layer of a cache keeps, or as many as there are.

    Args:
        cache: A self-attention cache, or None.
        layer_idx: Its layer.
        n: How many.

    Returns:
        Keys and values, steps in the third dimension; None where nothing is kept yet.
    """
    if cache is None or layer_idx >= len(cache.layers):
        return None
    layer = cache.layers[layer_idx]
    if not (isinstance(layer, CacheLayerMixin) and layer.is_initialized) or layer.keys is None or layer.values is None:
        return None
    n_kept = int(layer.get_seq_length())
    first = max(0, n_kept - n)
    return layer.keys[:, :, first:n_kept], layer.values[:, :, first:n_kept]


def memory_of(
    cache: EncoderDecoderCache | None, layer_idx: int, length: int, project: Callable[[], tuple[Tensor, Tensor]]
) -> tuple[Tensor, Tensor]:
    """Keys and values of the memory, projected once an answer.

    Args:
        cache: Takes them the first time, and gives them from then on; None = they are projected anew.
        layer_idx: The cache's key.
        length: Places in the memory; a static cache may have more slots.
        project: Computes keys and values, each ``(batch, heads, length, head_width)``.

    Returns:
        What ``project`` gives, in the order of the beams as they are now.
    """
    if cache is None:
        return project()
    if cache.is_updated.get(layer_idx):
        entry: Any = cache.cross_attention_cache.layers[layer_idx]
        keys, values = entry.keys, entry.values
    else:
        keys, values = cache.cross_attention_cache.update(*project(), layer_idx)
        cache.is_updated[layer_idx] = True
    return keys[:, :, :length], values[:, :, :length]
