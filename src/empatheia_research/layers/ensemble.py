"""Two encoders made one: ``h_e = W [h_w ; h_c] + b`` (Rashkin et al. 2018, section 4.3)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import initialization as init


class Ensemble(nn.Linear):
    """Joins an encoder's states with a vector of a second, frozen encoder.

    W starts as the identity on the first encoder's states and zero on the second's vector, b as zero; so a model on
    it starts as what it was without the second encoder.

    Args:
        width: Of the first encoder's states, and of what comes out.
        external_width: Of the second encoder's vector.
    """

    def __init__(self, width: int, external_width: int) -> None:
        super().__init__(width + external_width, width)
        self.start()

    @torch.no_grad()
    def start(self) -> None:
        """Puts W and b to where they start; parameters read from a file are left alone."""
        init.copy_(self.weight, torch.eye(*self.weight.shape, device=self.weight.device))
        init.zeros_(self.bias)

    def forward(self, states: Tensor, external: Tensor) -> Tensor:
        """Joins.

        Args:
            states: Shape: ``(batch, ..., width)``.
            external: One vector a sequence, put beside each of its states. Shape: ``(batch, external width)``.

        Returns:
            Tensor of the shape of ``states``.
        """
        middle = (1,) * (states.dim() - 2)
        beside = external.to(states.dtype).view(len(external), *middle, -1).expand(*states.shape[:-1], -1)
        return super().forward(torch.cat((states, beside), dim=-1))
