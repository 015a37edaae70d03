"""Low-rank updates of frozen linear maps (LoRA, Hu et al., ICLR 2022), small enough to travel without their base.

``y = W x + b + (scale / rank) U D x`` with ``U = 0`` at the start; ``W`` and ``b`` never learn. :func:`merge` puts the
update into ``W`` for speed. PEFT does the same for language models; here it would be a dependency of every reply.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class LowRankLinear(nn.Module):
    """A linear map with a low-rank update.

    Args:
        base: Frozen.
        rank: Of the update, 1 or more.
        scale: The update is multiplied by ``scale / rank``.
    """

    def __init__(self, base: nn.Linear, rank: int, scale: float) -> None:
        super().__init__()
        self.base = base
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)
        self.factor = scale / rank

    def reset(self) -> None:
        """Begins without any update: ``up`` is zero."""
        nn.init.kaiming_uniform_(self.down.weight, a=5**0.5)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Shape of ``x``: (..., in_features); of the answer: (..., out_features)."""
        return self.base(x) + self.factor * self.up(self.down(x))

    @torch.no_grad()
    def merged(self) -> nn.Linear:
        """One linear map that does the same in evaluation."""
        self.base.weight += self.factor * (self.up.weight @ self.down.weight)
        return self.base


def add_low_rank(model: nn.Module, rank: int, scale: float, skip: Sequence[str] = ()) -> int:
    """Gives every linear map inside ``model`` an update, in place.

    Args:
        model: An encoder.
        rank: Of the updates.
        scale: See :class:`LowRankLinear`.
        skip: Parts of names of maps that get none.

    Returns:
        How many maps got one.
    """
    found = [(name, part) for name, part in model.named_modules() if isinstance(part, nn.Linear)]
    chosen = [(name, part) for name, part in found if not any(word in name for word in skip)]
    for name, part in chosen:
        owner, _, last = name.rpartition(".")
        update = LowRankLinear(part, rank, scale)
        update.reset()
        setattr(model.get_submodule(owner), last, update)
    return len(chosen)


def merge(model: nn.Module) -> None:
    """Puts every update inside ``model`` into its base, in place."""
    for name, part in list(model.named_modules()):
        if isinstance(part, LowRankLinear):
            owner, _, last = name.rpartition(".")
            setattr(model.get_submodule(owner), last, part.merged())
