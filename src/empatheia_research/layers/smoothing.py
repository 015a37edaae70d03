"""Cross-entropy against smoothed targets, without the table of targets and in few passes over the scores.

With 25,000 words the scores of a batch are the largest tensors of a training step: on a processor, what reads and
writes them costs nearly as much as the products that make them. The gradient, ``softmax(x) - q``, is therefore written
from the exponentials of the forward pass.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from empatheia_research.layers.precision import wide


class _SmoothedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor, without: int, smoothing: float) -> Tensor:
        share = smoothing / (logits.shape[-1] - 2)
        highest = logits.amax(-1, keepdim=True)
        weights = (logits - highest).exp_()
        total = weights.sum(-1, keepdim=True)
        gold = logits.gather(1, labels[:, None])
        # (1 - s) (log Z - x_t) + share sum_{j not in {t, PAD}} (log Z - x_j), and log Z's weights sum to 1
        log_z = total.log() + highest
        rest = logits.sum(-1, keepdim=True) - logits[:, without, None] - gold
        ctx.save_for_backward(weights, total, labels)
        ctx.without, ctx.smoothing, ctx.share = without, smoothing, share
        return (log_z - (1.0 - smoothing) * gold - share * rest).squeeze(1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        weights, total, labels = ctx.saved_tensors
        gradient = gradients[0][:, None]
        scores = weights * (gradient / total)
        scores -= ctx.share * gradient
        scores[:, ctx.without] += ctx.share * gradient[:, 0]
        scores.scatter_add_(1, labels[:, None], (ctx.share - (1.0 - ctx.smoothing)) * gradient)
        return scores, None, None, None


def smoothed_cross_entropy(logits: Tensor, labels: Tensor, without: int, smoothing: float) -> Tensor:
    """``-sum_j q_j log softmax(x)_j`` with ``q = 1 - s`` at the label, 0 at one class, the rest of s shared.

    Args:
        logits: x; half precision is computed in 32 bits. Shape: ``(n, classes)``, at least 3 classes.
        labels: Class ids, none of them ``without``. Shape: ``(n,)``.
        without: The class that gets no mass (PAD).
        smoothing: s in [0, 1).

    Returns:
        Losses in nats. Shape: ``(n,)``.
    """
    losses: Any = _SmoothedCrossEntropy.apply(wide(logits), labels, without, smoothing)
    return losses
