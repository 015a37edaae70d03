"""The rational speaker of Kim et al. (2021), on log-probabilities: equations alone, no model.

A listener L0 who hears the pieces so far weighs which of several contexts ("worlds", the true one first) they answer;
a pragmatic speaker S1 prefers pieces from which that listener recognises the true one.

- ``L0(c | u_<=t, p_t) = S0(u_t | c, u_<t)^beta p_t(c) / sum_c' S0(u_t | c', u_<t)^beta p_t(c')``
- ``S1(u_t | c_0, u_<t) ~ L0(c_0 | u_<=t, p_t)^alpha S0(u_t | c_0, u_<t)``, normalised over the vocabulary
- ``p_0 = 1 / W``; the next prior is L0 at the piece said (``L0``), p_0 for ever (``uniform``), or a listener who goes
  by each world's own favourite piece (``L1``, of the released code only: it never hears what was said)

Everything is computed in 32 bits or more, over the whole vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor

from empatheia.errors import DecodingError
from empatheia.voices.decoding import Prior

_MOST_ODDS = 80.0  # nats; the exponentials of a few of them still have a finite sum in 32 bits


def log_listener(log_s0: Tensor, log_prior: Tensor, beta: float) -> Tensor:
    """``log L0(c | u, p)`` for all worlds and pieces.

    Args:
        log_s0: Shape: ``(..., W, V)``.
        log_prior: Shape: ``(..., W)``.
        beta: Of the listener.

    Returns:
        Tensor of the shape of ``log_s0``; sums to 1 over the worlds (dimension -2).
    """
    weighed = _weigh(log_s0, beta) + log_prior.unsqueeze(-1)
    norm = weighed.logsumexp(-2, keepdim=True)
    return torch.where(norm.isfinite(), weighed - norm, log_prior.unsqueeze(-1).log_softmax(-2))


def log_true_world(log_s0: Tensor, log_prior: Tensor, beta: float) -> Tensor:
    """``log L0(c_0 | u, p)``: the part of :func:`log_listener` that the speaker needs. Shape: ``(..., V)``."""
    lead = log_prior[..., 1:] - log_prior[..., :1]
    return listener_loss(log_s0[..., 0, :], log_s0[..., 1:, :], lead, beta).neg_()


def listener_loss(true: Tensor, others: Tensor, lead: Tensor, beta: float) -> Tensor:
    """``-log L0(c_0 | u, p) = log(1 + sum_{c != c_0} exp(g_c - g_0))`` with ``g_c = beta log S0(u | c) + log p(c)``.

    What focus costs beside the model, so it makes few passes over the vocabulary.

    Args:
        true: ``log S0`` in the true world; raw scores will do if ``lead`` has ``log p - beta log Z`` of each world in
            place of ``log p``. Shape: ``(..., V)``.
        others: The same of the distractors. Shape: ``(..., W - 1, V)``.
        lead: ``log p(c) - log p(c_0)``. Shape: ``(..., W - 1)``.
        beta: Of the listener.

    Returns:
        Tensor of the shape of ``true``, 0 or more; where no world allows the piece, that of the prior.
    """
    gaps = torch.sub(others, true.unsqueeze(-2))
    odds = torch.add(lead.unsqueeze(-1), gaps, alpha=beta)  # (..., W - 1, V)
    if bool(odds.amax() <= _MOST_ODDS):  # so none is NaN
        total = odds.exp_()[..., 0, :]
        for j in range(1, others.shape[-2]):
            total += odds[..., j, :]
        return total.log1p_()
    gaps = others - true.unsqueeze(-2).clamp_min(torch.finfo(true.dtype).min)
    gaps = gaps.masked_fill_(others.isneginf() & true.isneginf().unsqueeze(-2), 0.0)  # which is no evidence
    return torch.nn.functional.softplus((_weigh(gaps, beta) + lead.unsqueeze(-1)).logsumexp(-2), threshold=40.0)


def log_sums(scores: Tensor) -> Tensor:
    """``scores.logsumexp(-1)`` by the faster kernel of ``log_softmax``. Shape: all but the last dimension."""
    return scores.amax(-1) - scores.log_softmax(-1).amax(-1)


def log_speaker(log_s0: Tensor, log_prior: Tensor, alpha: float, beta: float) -> Tensor:
    """``log S1(u | c_0)``.

    Args:
        log_s0: World 0 is the true one. Shape: ``(..., W, V)``.
        log_prior: Shape: ``(..., W)``.
        alpha: Of the speaker; 0 returns S0 of the true world as it is.
        beta: Of the listener.

    Returns:
        Tensor of shape ``(..., V)``; sums to 1 over the pieces.
    """
    base = log_s0[..., 0, :]
    if alpha == 0.0:
        return base
    raised = base + alpha * log_true_world(log_s0, log_prior, beta)
    return raised.masked_fill(base.isneginf(), -torch.inf).log_softmax(-1)


def next_prior(log_prior: Tensor, log_said: Tensor, beta: float, prior: Prior, log_s0: Tensor | None = None) -> Tensor:
    """The listener's belief before the next piece.

    Args:
        log_prior: p_t. Shape: ``(..., W)``.
        log_said: ``log S0`` of the piece said, in every world. Shape: ``(..., W)``.
        beta: Of the listener.
        prior: Which update.
        log_s0: ``log S0`` of all pieces, for ``L1``. Shape: ``(..., W, V)``.

    Returns:
        p_{t+1}, normalised. Shape: ``(..., W)``.

    Raises:
        DecodingError: ``L1`` without ``log_s0``.
    """
    if prior == "uniform":
        return log_prior
    if prior == "L0":
        updated = log_prior + _weigh(log_said, beta)
        return torch.where(updated.isneginf().all(-1, keepdim=True), log_prior, updated).log_softmax(-1)
    if log_s0 is None:
        raise DecodingError("prior 'L1' needs the scores of all pieces in every world.")
    height, favourite = log_s0.max(-1)  # (..., W): what each world itself would say
    listener = log_listener(log_s0, log_prior, beta)
    return (height + listener.gather(-1, favourite.unsqueeze(-1)).squeeze(-1)).log_softmax(-1)


def priors_along(log_said: Tensor, beta: float, prior: Prior, log_s0: Tensor | None = None) -> Tensor:
    """p_t before each piece of a given reply, from uniform: ``p_t(c) ~ p_0(c) prod_{k<t} S0(u_k | c, u_<k)^beta``.

    Args:
        log_said: ``log S0`` of each piece in every world. Shape: ``(batch, T, W)``.
        beta: Of the listener.
        prior: Which update.
        log_s0: For ``L1``. Shape: ``(batch, T, W, V)``.

    Returns:
        Tensor of shape ``(batch, T + 1, W)``; the last is what the listener believes after the whole reply.
    """
    first = torch.zeros_like(log_said[:, :1]).log_softmax(-1)
    if prior == "uniform":
        return first.expand(-1, log_said.shape[1] + 1, -1)
    if prior == "L0" and bool(log_said.isfinite().all()):
        return torch.cat((first, (first + _weigh(log_said, beta).cumsum(1)).log_softmax(-1)), 1)
    steps = [first[:, 0]]
    for t in range(log_said.shape[1]):
        steps.append(next_prior(steps[-1], log_said[:, t], beta, prior, None if log_s0 is None else log_s0[:, t]))
    return torch.stack(steps, 1)


def _weigh(log_s0: Tensor, beta: float) -> Tensor:
    """``beta log S0``; a listener with beta 0 does not hear that a piece is impossible."""
    return torch.zeros_like(log_s0) if beta == 0.0 else beta * log_s0
