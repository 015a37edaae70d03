"""The sum of a model's losses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from torch import Tensor


def total_of(losses: Mapping[str, Tensor]) -> Tensor | None:
    """Plain sum of losses, in their order; None without any.

    Args:
        losses: By name. Shape of each: ``()``.
    """
    return cast(Tensor, sum(losses.values())) if losses else None
