"""Diverse beam search (Vijayakumar et al. 2016) for any model with transformers' ``generate()``.

The beams fall into groups that search side by side. At each step the groups choose one after the other, and a piece
that beams of earlier groups have chosen at this step costs ``strength`` for each of them (Hamming diversity). Within a
group it is ordinary beam search, with transformers' rules for what is finished and when to stop; so one group is
ordinary beam search, and with strength 0 every group is ordinary beam search with the group's beams.

``model.generate(**inputs, num_beams=12, custom_generate=diverse_beams(n_groups=6, strength=0.5))``
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor
from transformers import GenerationConfig
from transformers.generation.utils import (
    GenerateBeamDecoderOnlyOutput,
    GenerateBeamEncoderDecoderOutput,
    GenerateBeamOutput,
)

from empatheia.errors import DecodingError
from empatheia_research.decoding.models import Processor, StepwiseModel, Stops
from empatheia_research.layers.cache import CACHE

_NEVER = -1.0e9


def diverse_beams(n_groups: int, strength: float) -> Callable[..., Tensor | GenerateBeamOutput]:
    """What to give ``generate()`` as ``custom_generate``.

    Args:
        n_groups: Groups, at least 1; ``num_beams`` must be a multiple of it.
        strength: Nats a piece costs for each beam of an earlier group that chose it at the same step; 0 or more.

    Raises:
        DecodingError: A number is out of range.
    """
    if n_groups < 1 or strength < 0:
        raise DecodingError(f"n_groups={n_groups}, strength={strength}; accepted: at least 1, and 0 or more.")
    return partial(diverse_beam_search, n_groups=n_groups, strength=strength)


@torch.no_grad()
def diverse_beam_search(
    model: StepwiseModel,
    input_ids: Tensor,
    logits_processor: Processor,
    stopping_criteria: Stops,
    generation_config: GenerationConfig,
    n_groups: int,
    strength: float,
    **model_kwargs: Any,
) -> Tensor | GenerateBeamOutput:
    """The loop ``generate()`` calls.

    Args:
        model: Any with ``GenerationMixin``.
        input_ids: Shape: ``(batch * num_beams, prompt)``.
        logits_processor: Sees log-probabilities, as under ordinary beams.
        stopping_criteria: Say which hypotheses are finished.
        generation_config: Its ``num_beams``, ``length_penalty``, ``early_stopping``, ``max_length`` and
            ``num_return_sequences`` count.
        n_groups: See :func:`diverse_beams`.
        strength: Likewise.
        **model_kwargs: Encoder outputs, cache, masks.

    Returns:
        Hypotheses of all groups together, best first (penalties included, divided by length ** length_penalty).
        Shape: ``(batch * num_return_sequences, longest)``.

    Raises:
        DecodingError: ``num_beams`` is no multiple of ``n_groups``, or sampling was asked for.
    """
    n_beams, config = generation_config.num_beams, generation_config
    if n_beams % n_groups or config.do_sample:
        raise DecodingError(
            f"num_beams={n_beams}, n_groups={n_groups}, do_sample={config.do_sample};"
            " accepted: a multiple of the groups, without sampling."
        )
    width = n_beams // n_groups  # beams of a group
    batch = input_ids.shape[0] // n_beams
    groups = [_Group(input_ids.view(batch, n_groups, width, -1)[:, g], config) for g in range(n_groups)]
    rows = torch.arange(batch * n_beams, device=input_ids.device).view(batch, n_groups, width)
    flat, start = input_ids, input_ids.shape[1]
    while True:
        new = 1 if model_kwargs.get("use_cache") and flat.shape[1] > start else None
        inputs = model.prepare_inputs_for_generation(flat, next_sequence_length=new, **model_kwargs)
        outputs = model(**inputs, return_dict=True)
        model_kwargs = model._update_model_kwargs_for_generation(
            outputs, model_kwargs, is_encoder_decoder=model.config.is_encoder_decoder
        )
        log_probs = outputs.logits[:, -1, :].to(copy=True, dtype=torch.float32).log_softmax(-1)
        log_probs = logits_processor(flat, log_probs).view(batch, n_groups, width, -1)
        uses = torch.zeros_like(log_probs[:, 0, 0])  # (batch, vocabulary): earlier groups' choices at this step
        chosen = torch.empty_like(rows)
        for g, group in enumerate(groups):
            penalised = log_probs[:, g] - strength * uses[:, None]
            was_open = group.is_open
            parents = group.step(penalised, stopping_criteria)
            chosen[:, g] = rows[:, g].gather(1, parents)
            uses.scatter_add_(1, group.running[:, :, -1], was_open.expand(-1, width).to(uses.dtype))
        if not any(group.goes_on for group in groups):
            break
        if (cache := model_kwargs.get(CACHE)) is not None:
            cache.reorder_cache(chosen.flatten())
        flat = torch.stack([group.running for group in groups], dim=1).flatten(0, 2)
    return _best(groups, model, config)


class _Group:
    """One group's beam search over a batch: what runs, what is finished, and whether it can still improve.

    Args:
        ids: The prompt. Shape: ``(batch, width, prompt)``.
        config: Generation settings.
    """

    def __init__(self, ids: Tensor, config: GenerationConfig) -> None:
        self.config = config
        self.eos = config._eos_token_tensor
        self.running = ids
        self.prompt = ids.shape[2]
        batch, self.width = ids.shape[:2]
        self.scores = torch.full((batch, self.width), _NEVER, device=ids.device)
        self.scores[:, 0] = 0.0  # all beams begin alike: only the first may branch
        filler = config._pad_token_tensor
        if filler is None:
            assert self.eos is not None  # a model without padding has an end mark
            filler = self.eos[0]
        self.filler = int(filler)
        self.finished = torch.full((batch, self.width, config.max_length), self.filler, device=ids.device)
        self.finished_scores = torch.full((batch, self.width), _NEVER, device=ids.device)
        self.is_finished = torch.zeros((batch, self.width), dtype=torch.bool, device=ids.device)
        self.is_open = torch.ones((batch, 1), dtype=torch.bool, device=ids.device)
        self.goes_on = True

    def step(self, log_probs: Tensor, stopping_criteria: Stops) -> Tensor:
        """Takes the next piece.

        Args:
            log_probs: Shape: ``(batch, width, vocabulary)``.
            stopping_criteria: Of ``generate()``.

        Returns:
            Which beam each running beam continues. Shape: ``(batch, width)``.
        """
        n_new = self.running.shape[2] + 1 - self.prompt
        n_pieces = log_probs.shape[-1]
        n_eos = 0 if self.eos is None else len(self.eos)
        n_kept = max(2, 1 + n_eos) * self.width  # enough to go on with if the best all end here
        best, place = (log_probs + self.scores[:, :, None]).flatten(1).topk(n_kept)  # (batch, n_kept)
        parents, pieces = place // n_pieces, place % n_pieces
        ids = torch.cat((_take(self.running, parents), pieces[..., None]), dim=2)  # (batch, n_kept, length)
        ends = stopping_criteria(ids.flatten(0, 1), None).view(len(ids), -1)
        self._finish(ids, best, ends, n_new)
        if self.eos is not None and bool(ends.all()):  # the longest allowed: all but end marks count as chosen
            stops = torch.isin(pieces, self.eos)
        else:
            stops = ends
        best = best + stops * _NEVER
        onward = best.topk(self.width)[1]
        self.running, self.scores, parents = (_take(x, onward) for x in (ids, best, parents))
        self._close(n_new)
        is_full = bool(self.is_finished.all()) and self.config.early_stopping is True
        self.goes_on = bool(self.is_open.any()) and not is_full and not bool(ends.all())
        return parents

    def _finish(self, ids: Tensor, best: Tensor, ends: Tensor, n_new: int) -> None:
        """Keeps the best finished hypotheses, of those among the first ``width`` candidates of an open search."""
        may = ends & (torch.arange(ends.shape[1], device=ends.device) < self.width) & self.is_open
        if self.config.early_stopping is True:
            may = may & ~self.is_finished.all(1, keepdim=True)
        scores = torch.where(may, best / n_new**self.config.length_penalty, _NEVER)
        padded = torch.nn.functional.pad(ids, (0, self.finished.shape[2] - ids.shape[2]), value=self.filler)
        order = torch.cat((self.finished_scores, scores), 1).topk(self.width)[1]
        self.finished = _take(torch.cat((self.finished, padded), 1), order)
        self.finished_scores = torch.cat((self.finished_scores, scores), 1).gather(1, order)
        self.is_finished = torch.cat((self.is_finished, may), 1).gather(1, order)

    def _close(self, n_new: int) -> None:
        """A search is over when its best running beam cannot beat its worst finished one any more."""
        penalty = self.config.length_penalty
        n_best = self.config.max_length - self.prompt if self._is_patient(penalty) else n_new
        worst = torch.where(self.is_finished, self.finished_scores.amin(1, keepdim=True), _NEVER)
        self.is_open = self.is_open & (self.scores[:, :1] / n_best**penalty > worst).any(1, keepdim=True)

    def _is_patient(self, penalty: float) -> bool:
        return self.config.early_stopping == "never" and penalty > 0


def _take(beams: Tensor, places: Tensor) -> Tensor:
    """Beams at some places. Shape: ``(batch, number of places, ...)``."""
    places = places.view(*places.shape, *(1,) * (beams.dim() - 2))
    return torch.take_along_dim(beams, places, dim=1)


def _best(groups: list[_Group], model: StepwiseModel, config: GenerationConfig) -> Tensor | GenerateBeamOutput:
    scores = torch.cat([group.finished_scores for group in groups], 1)
    values, order = scores.sort(dim=1, descending=True, stable=True)  # of equal ones the earlier group's
    n = config.num_return_sequences
    ids = _take(torch.cat([group.finished for group in groups], 1), order[:, :n]).flatten(0, 1)
    used = ids.ne(groups[0].filler).any(0).nonzero()
    ids = ids[:, : int(used[-1]) + 1]
    if not config.return_dict_in_generate:
        return ids
    kind = GenerateBeamEncoderDecoderOutput if model.config.is_encoder_decoder else GenerateBeamDecoderOnlyOutput
    scores = cast(torch.FloatTensor, values[:, :n].flatten())  # transformers names tensors by an older kind
    return kind(sequences=cast(torch.LongTensor, ids), sequences_scores=scores)
