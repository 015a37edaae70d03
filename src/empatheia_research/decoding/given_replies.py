"""Given replies under the pragmatic speaker and in the eyes of its listener, all pieces at once.

What :func:`empatheia_research.decoding.focus.focused_generate` would have made of each piece: perplexity under *S1*,
re-ranking, and whether a listener can tell the true context from a reply (Kim et al. 2021, section 4.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from empatheia.errors import DecodingError
from empatheia.taxonomy import IGNORED
from empatheia.voices.decoding import ALPHA, BETA, Prior, check_rationality
from empatheia_research.decoding import pragmatics
from empatheia_research.decoding.models import GeneratingModel
from empatheia_research.decoding.worlds import MOST_SCORES, Worlds, check_readable, limits_told, takes, trimmed


@dataclass(frozen=True, slots=True)
class FocusedScores:
    """A reply under the speaker and in the eyes of the listener.

    Attributes:
        log_s1: ``log S1`` of each piece, 0 where there is none. Shape: ``(batch, T)``.
        log_s0: ``log S0`` in the true world. Shape: ``(batch, T)``.
        entropy: Of S1 before each piece, in nats; 0 where there is none. Shape: ``(batch, T)``.
        log_belief: ``log p_t(c)`` before each piece and after the last; padding changes nothing. Shape:
            ``(batch, T + 1, W)``.
        n_pieces: Pieces of each reply. Shape: ``(batch,)``.
    """

    log_s1: Tensor
    log_s0: Tensor
    entropy: Tensor
    log_belief: Tensor
    n_pieces: Tensor

    def perplexity(self, of: str = "s1") -> float:
        """Exponentiated mean over all pieces, those of ``log_s1`` or ``log_s0``."""
        values = self.log_s1 if of == "s1" else self.log_s0
        return float((-values.double().sum() / self.n_pieces.sum()).exp())

    def tells_true(self) -> Tensor:
        """Whether, having heard the whole reply, the listener finds the true world the likeliest.

        Shape: ``(batch,)``; a tie tells nothing.
        """
        last = self.log_belief[:, -1]
        return last[:, 0] > last[:, 1:].amax(-1)


@torch.no_grad()
def focused_score(
    model: GeneratingModel[object],
    worlds: Worlds,
    labels: Tensor,
    alpha: float = ALPHA,
    beta: float = BETA,
    prior: Prior = "L0",
) -> FocusedScores:
    """Given replies under the pragmatic speaker, all pieces at once.

    Args:
        model: As for :func:`focused_generate`.
        worlds: Likewise.
        labels: Pieces of the replies with their end mark, -100 behind it. Shape: ``(batch, T)``.
        alpha: Of the speaker.
        beta: Of the listener.
        prior: Update of the belief.

    Raises:
        DecodingError: A value is out of range, a reply has no piece, or the numbers of replies and contexts differ.
    """
    check_rationality(alpha, beta, prior, worlds.n_worlds)
    check_readable(model, worlds)
    if len(labels) != worlds.n_examples:
        raise DecodingError(f"{len(labels)} replies for {worlds.n_examples} contexts; one reply each.")
    kept = labels.ne(IGNORED)
    if not bool(kept.any(-1).all()) or bool((kept[:, 1:] & ~kept[:, :-1]).any()):
        raise DecodingError("labels must hold at least one piece a reply, and -100 only behind the last.")
    size = getattr(model.config.get_text_config(decoder=True), "vocab_size", 50_000)
    most = max(1, MOST_SCORES // (worlds.n_worlds * labels.shape[1] * size))
    parts = []
    for start in range(0, len(labels), most):
        rows = slice(start * worlds.n_worlds, (start + most) * worlds.n_worlds)
        inputs = trimmed({name: tensor[rows] for name, tensor in worlds.inputs.items()})
        with limits_told(model, worlds):
            parts.append(_score(model, inputs, labels[start : start + most], worlds.n_worlds, alpha, beta, prior))
    return FocusedScores(*(torch.cat(columns) for columns in zip(*parts, strict=True)))


def _score(
    model: GeneratingModel[object],
    inputs: dict[str, Tensor],
    labels: Tensor,
    n_worlds: int,
    alpha: float,
    beta: float,
    prior: Prior,
) -> tuple[Tensor, ...]:
    kept = labels.ne(IGNORED)
    logits = _logits(model, inputs, labels.repeat_interleave(n_worlds, 0)).float()
    log_s0 = logits.log_softmax(-1).unflatten(0, (-1, n_worlds)).transpose(1, 2)  # (batch, T, W, V)
    pieces = labels.masked_fill(~kept, 0)
    said = log_s0.gather(-1, pieces[:, :, None, None].expand(-1, -1, n_worlds, 1)).squeeze(-1)  # (batch, T, W)
    said = said * kept.unsqueeze(-1)  # padding says nothing
    belief = pragmatics.priors_along(said, beta, prior, log_s0 if prior == "L1" else None)
    n_pieces = kept.sum(-1)
    heard = torch.arange(belief.shape[1], device=labels.device).minimum(n_pieces[:, None])
    belief = belief.gather(1, heard.unsqueeze(-1).expand_as(belief))  # nothing is heard behind the end
    log_s1 = pragmatics.log_speaker(log_s0, belief[:, :-1], alpha, beta)
    entropy = torch.special.entr(log_s1.exp()).sum(-1)
    log_s1 = log_s1.gather(-1, pieces.unsqueeze(-1)).squeeze(-1)
    return log_s1 * kept, said[..., 0], entropy * kept, belief, n_pieces


def _logits(model: GeneratingModel[object], inputs: dict[str, Tensor], labels: Tensor) -> Tensor:
    """Scores of each label's place. Shape: ``(rows, T, vocabulary)``."""
    if model.config.is_encoder_decoder:
        return model(**inputs, labels=labels).logits
    ids = torch.cat((inputs["input_ids"], labels.clamp_min(0)), 1)
    prompt_mask = inputs.get("attention_mask")
    if prompt_mask is None:
        prompt_mask = torch.ones_like(inputs["input_ids"])
    mask = torch.cat((prompt_mask, labels.ne(IGNORED).to(prompt_mask.dtype)), 1)
    others: dict[str, Any] = {
        name: tensor for name, tensor in inputs.items() if name not in ("input_ids", "attention_mask")
    }
    n = labels.shape[1]
    if takes(model, "position_ids"):
        others["position_ids"] = (mask.long().cumsum(-1) - 1).clamp_min(0)
    if takes(model, "logits_to_keep"):
        others["logits_to_keep"] = n + 1
    return model(input_ids=ids, attention_mask=mask, **others).logits[:, -n - 1 : -1]
