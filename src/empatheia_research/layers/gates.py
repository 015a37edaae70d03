"""Gates made of cause logits: soft (the probability) and hard (a drawn or decided 0/1). Gao et al. 2021, 5.1."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def soft_gates(cause_logits: Tensor) -> Tensor:
    """``g_i = P(c_i = 1)``, differentiable.

    Args:
        cause_logits: Not-cause and cause logit of each position. Shape: ``(batch, source, 2)``.

    Returns:
        Gates in (0, 1). Shape: ``(batch, source)``.
    """
    return cause_logits.softmax(-1)[..., 1]


def hard_gates(cause_logits: Tensor, *, sample: bool, temperature: float = 1.0, open_first: bool = True) -> Tensor:
    """``g_i`` in {0, 1}: a straight-through Gumbel-softmax draw, or the more probable class.

    Args:
        cause_logits: Shape: ``(batch, source, 2)``.
        sample: Draw (training; the authors' code draws at test time too) or take the argmax (evaluation).
        temperature: Of the Gumbel-softmax, > 0; the authors' code uses 1.
        open_first: Force the gate of position 0 (CLS) open, so that attention never has an empty support.

    Returns:
        Gates, exactly 0 or 1, with the soft sample's gradient. Shape: ``(batch, source)``.
    """
    if sample:
        gates = F.gumbel_softmax(cause_logits, tau=temperature, hard=True)[..., 1]
    else:
        probabilities = soft_gates(cause_logits)
        decided = (probabilities > 0.5).to(probabilities.dtype)
        gates = decided + probabilities - probabilities.detach() if probabilities.requires_grad else decided
    # adding and subtracting the soft value may leave 1 - 1e-8: round the value, keep the gradient
    gates = gates + (gates.round() - gates).detach()
    if open_first:
        first = torch.zeros_like(gates[:1])
        first[:, 0] = 1.0
        gates = torch.where(first.bool(), torch.ones_like(gates), gates)
    return gates
