"""Sinusoidal position vectors (Vaswani et al. 2017, section 3.5), computed on the fly.

No buffer holds them: a table that is not in the checkpoint would come back as raw memory from
``from_pretrained``.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def sinusoidal_positions(positions: Tensor, width: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Position vectors ``sin(p / 10000^(2j/width))`` (even columns) and ``cos`` (odd columns).

    Args:
        positions: Positions from 0. Shape: ``(...)``, integer.
        width: Number of columns, even.
        dtype: Result type.

    Returns:
        Tensor of shape ``(..., width)``, values in [-1, 1].
    """
    rates = torch.exp(
        torch.arange(0, width, 2, device=positions.device, dtype=torch.float32) * (-math.log(10000.0) / width)
    )
    angles = positions.to(torch.float32).unsqueeze(-1) * rates  # (..., width / 2)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2).to(dtype)  # (..., width)
