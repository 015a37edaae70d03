"""Decoding that gives way (:mod:`empatheia.giving_way`) at each of its steps."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import StoppingCriteria

from empatheia.giving_way import give_way


class GivesWay(StoppingCriteria):
    """Never stops ``generate()``; it ends by an exception where nobody waits for it."""

    def __call__(self, input_ids: Tensor, scores: object, **kwargs: Any) -> Tensor:
        """After a step. Shape: ``(batch,)``, bool."""
        give_way()
        return torch.zeros(input_ids.shape[0], dtype=torch.bool, device=input_ids.device)


def giving_way(given: Any) -> list[Any]:
    """The ``stopping_criteria`` of a ``generate()`` that gives way, from those that its caller gave."""
    return [*(given or ()), GivesWay()]
