"""What half precision cannot hold: small probabilities and long sums are computed in 32 bits."""

from __future__ import annotations

import torch
from torch import Tensor


def wide(x: Tensor) -> Tensor:
    """``x`` in 32 bits if it has fewer, else as it is."""
    return x if x.dtype in (torch.float32, torch.float64) else x.float()
