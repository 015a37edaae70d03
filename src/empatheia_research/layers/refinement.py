"""How CEM and IMAGINE bring knowledge into a context: concatenate, encode again, gate, mix."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class GatedMLP(nn.Module):
    """``W_2 relu(W_1 (sigmoid(x) x))``, no bias: features gate themselves (SiLU), then are mixed.

    Sabour et al. 2022, equations 13 and 14; Chen et al. 2022, equation 16. ``GatedMLP(0) = 0``.

    Args:
        width: Of the input.
        inner_width: Between the two layers.
        out_width: Of the output.
    """

    def __init__(self, width: int, inner_width: int, out_width: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, inner_width, bias=False)
        self.second = nn.Linear(inner_width, out_width, bias=False)

    def forward(self, states: Tensor) -> Tensor:
        """Gates and mixes the last dimension."""
        return self.second(self.first(F.silu(states)).relu())


def beside(states: Tensor, vector: Tensor) -> Tensor:
    """``[H ; h]``: one vector behind each state's features.

    Args:
        states: Shape: ``(batch, source, width)``.
        vector: Shape: ``(batch, other width)``.

    Returns:
        Tensor of shape ``(batch, source, width + other width)``.
    """
    return torch.cat((states, vector.unsqueeze(1).expand(-1, states.shape[1], -1)), dim=-1)
