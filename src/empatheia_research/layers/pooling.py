"""One vector for a sequence: the first state, the mean, or a learned weighted mean (Xie and Pu 2021, section 4.2).

``dot`` is the paper's form, ``alpha_i = softmax_i(v . r_i)``; ``additive`` the released code's,
``alpha_i = softmax_i(v . tanh(W r_i + b))``. Both average the states themselves, not their transform.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from empatheia.errors import ConfigError

POOLINGS = ("cls", "mean", "dot", "additive")


def mean_pool(states: Tensor, keep: Tensor) -> Tensor:
    """Mean of the kept states; a row that keeps none gives zeros.

    Args:
        states: Shape: (batch, source, width).
        keep: True = counts. Shape: (batch, source).

    Returns:
        Shape: (batch, width).
    """
    weights = keep.to(states.dtype).unsqueeze(-1)  # (batch, source, 1)
    return (states * weights).sum(1) / weights.sum(1).clamp(min=1)


class Pooling(nn.Module):
    """A sequence of states to one vector.

    Args:
        form: ``cls`` (first state), ``mean``, ``dot`` or ``additive``.
        width: Of the states.

    Raises:
        ConfigError: The form is unknown.
    """

    def __init__(self, form: str, width: int) -> None:
        super().__init__()
        if form not in POOLINGS:
            raise ConfigError(f"pooling is {form!r}; accepted: {', '.join(POOLINGS)}.")
        self.form = form
        if form == "additive":
            self.transform = nn.Linear(width, width)
        if form in ("dot", "additive"):
            self.query = nn.Linear(width, 1, bias=False)

    def weights(self, states: Tensor, keep: Tensor) -> Tensor:
        """How much each state counts; 0 where ``keep`` is False.

        Args:
            states: Shape: (batch, source, width).
            keep: Shape: (batch, source).

        Returns:
            Shape: (batch, source); rows sum to 1.
        """
        if self.form == "cls":
            first = torch.zeros_like(keep, dtype=states.dtype)
            first[:, 0] = 1
            return first
        if self.form == "mean":
            kept = keep.to(states.dtype)
            return kept / kept.sum(1, keepdim=True).clamp(min=1)
        keyed = torch.tanh(self.transform(states)) if self.form == "additive" else states
        scores = self.query(keyed).squeeze(-1)  # (batch, source)
        return scores.masked_fill(~keep, torch.finfo(scores.dtype).min).softmax(-1)

    def forward(self, states: Tensor, keep: Tensor) -> Tensor:
        """The pooled vector.

        Args:
            states: Shape: (batch, source, width).
            keep: True = counts. Shape: (batch, source).

        Returns:
            Shape: (batch, width).
        """
        if self.form == "cls":
            return states[:, 0]
        if self.form == "mean":
            return mean_pool(states, keep)
        return torch.einsum("bs,bsw->bw", self.weights(states, keep), states)
