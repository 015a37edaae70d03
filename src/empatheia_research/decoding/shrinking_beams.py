"""The beam search of MEED2's released code (Xie and Pu 2021), for any encoder-decoder with ``generate()``.

It differs from transformers' own: a hypothesis that ends keeps its place, so the search goes on with one beam fewer;
and a running hypothesis in which an n-gram of pieces has come twice is not prevented but given the log-probability
-1e20, with which it stays until better ones crowd it out. When the limit is reached, running hypotheses get an end mark
at its price. The result is the best log-probability / length ** length_penalty, the end mark counted.

``model.generate(**inputs, num_beams=32, custom_generate=shrinking_beams(blocked=4))``
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig

from empatheia.errors import DecodingError
from empatheia.giving_way import give_way
from empatheia_research.decoding.models import Processor, StepwiseModel, Stops
from empatheia_research.layers.cache import CACHE

BLOCKED = -1.0e20


def shrinking_beams(blocked: int = 4) -> Callable[..., Tensor]:
    """What to give ``generate()`` as ``custom_generate``.

    Args:
        blocked: Length of the n-grams of which none should come twice; 0 = no limit.

    Raises:
        DecodingError: The number is negative.
    """
    if blocked < 0:
        raise DecodingError(f"blocked={blocked}; accepted: 0 or more.")
    return partial(shrinking_beam_search, blocked=blocked)


def repeats(ids: Tensor, n: int) -> Tensor:
    """Whether an n-gram occurs twice, overlapping occurrences included.

    Args:
        ids: Without the piece that starts a reply. Shape: ``(rows, length)``.
        n: Pieces, at least 1.

    Returns:
        bool. Shape: ``(rows,)``.

    >>> repeats(torch.tensor([[7, 7, 7, 7, 7], [1, 2, 3, 4, 1]]), 4).tolist()
    [True, False]
    """
    if ids.shape[1] <= n:
        return torch.zeros(len(ids), dtype=torch.bool, device=ids.device)
    grams = ids.unfold(1, n, 1)  # (rows, windows, n)
    same = (grams[:, :, None] == grams[:, None]).all(-1)  # (rows, windows, windows)
    return same.triu(1).any(-1).any(-1)


@torch.no_grad()
def shrinking_beam_search(
    model: StepwiseModel,
    input_ids: Tensor,
    logits_processor: Processor,
    stopping_criteria: Stops,
    generation_config: GenerationConfig,
    blocked: int = 4,
    **model_kwargs: Any,
) -> Tensor:
    """The loop ``generate()`` calls.

    Args:
        model: Any encoder-decoder with ``GenerationMixin``.
        input_ids: The start piece. Shape: ``(batch * num_beams, 1)``.
        logits_processor: Sees log-probabilities, as under ordinary beams.
        stopping_criteria: Not asked: a hypothesis ends with the end mark or at ``max_length``.
        generation_config: Its ``num_beams``, ``length_penalty``, ``max_length`` and ``num_return_sequences`` count.
        blocked: See :func:`shrinking_beams`.
        **model_kwargs: Encoder outputs, cache, masks.

    Returns:
        Hypotheses, best first, the start piece included. Shape: ``(batch * num_return_sequences, longest)``.

    Raises:
        DecodingError: Sampling was asked for, or the model has not exactly one end mark.
    """
    config, width = generation_config, generation_config.num_beams
    ends = config._eos_token_tensor
    if config.do_sample or ends is None or len(ends) != 1:
        raise DecodingError("shrinking beams need do_sample=False and a model with one end mark.")
    end, pad = int(ends[0]), int(config._pad_token_tensor if config._pad_token_tensor is not None else ends[0])
    batch = input_ids.shape[0] // width
    ids = input_ids.view(batch, width, -1)
    scores = torch.full((batch, width), BLOCKED, device=ids.device)
    scores[:, 0] = 0.0  # all beams begin alike: only the first may branch
    is_live = torch.ones_like(scores, dtype=torch.bool)
    rows = torch.arange(batch * width, device=ids.device).view(batch, width)
    lengths = torch.zeros_like(rows)  # pieces behind the start, end mark included
    while True:
        give_way()
        flat = ids.flatten(0, 1)
        new = 1 if model_kwargs.get("use_cache") and flat.shape[1] > input_ids.shape[1] else None
        inputs = model.prepare_inputs_for_generation(flat, next_sequence_length=new, **model_kwargs)
        outputs = model(**inputs, return_dict=True)
        model_kwargs = model._update_model_kwargs_for_generation(
            outputs, model_kwargs, is_encoder_decoder=model.config.is_encoder_decoder
        )
        log_probs = outputs.logits[:, -1, :].to(copy=True, dtype=torch.float32).log_softmax(-1)
        log_probs = logits_processor(flat, log_probs).view(batch, width, -1)
        if ids.shape[2] >= config.max_length - 1:  # room for the end mark alone
            scores = torch.where(is_live, scores + log_probs[..., end], scores)
            ids = torch.cat((ids, torch.where(is_live, end, pad)[..., None]), -1)
            lengths = lengths + is_live
            break
        candidates = (scores[..., None] + log_probs).masked_fill(~is_live[..., None], -torch.inf)
        best, place = candidates.flatten(1).topk(width)  # (batch, width); only as many as are live count
        rank = (is_live.cumsum(1) - 1).clamp_min(0)
        parents = torch.where(is_live, (place // log_probs.shape[-1]).gather(1, rank), rows - rows[:, :1])
        pieces = torch.where(is_live, (place % log_probs.shape[-1]).gather(1, rank), pad)
        scores = torch.where(is_live, best.gather(1, rank), scores)
        ids = torch.cat((ids.gather(1, parents[..., None].expand_as(ids)), pieces[..., None]), -1)
        lengths = torch.where(is_live, ids.shape[2] - input_ids.shape[1], lengths)
        is_live = is_live & pieces.ne(end)
        if not bool(is_live.any()):
            break
        if blocked:
            twice = repeats(ids[..., input_ids.shape[1] :].flatten(0, 1), blocked).view(batch, width)
            scores = torch.where(is_live & twice, BLOCKED, scores)
        if (cache := model_kwargs.get(CACHE)) is not None:
            cache.reorder_cache(rows.gather(1, parents).flatten())
    order = (scores / lengths**config.length_penalty).sort(dim=1, descending=True, stable=True)[1]
    order = order[:, : config.num_return_sequences]
    return ids.gather(1, order[..., None].expand(-1, -1, ids.shape[2])).flatten(0, 1)


__all__ = ["BLOCKED", "repeats", "shrinking_beam_search", "shrinking_beams"]
