"""Arrays in safetensors files, read without torch and checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from empatheia.errors import CheckpointError

if TYPE_CHECKING:
    from torch import Tensor

AGAIN = "Train it again, or copy it anew."


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    """Arrays of numpy by name from a safetensors file, without torch; raises as :func:`load_described`."""
    return load_described(path)[0]


def load_described(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Arrays of numpy by name, and what is told of them, from a safetensors file, without torch.

    Raises:
        CheckpointError: The file is missing, truncated or of another kind, or holds NaN or infinite numbers.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            arrays, told = {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (OSError, SafetensorError, KeyError, ValueError, AttributeError, TypeError) as problem:  # an odd dtype
        raise damaged(path, problem) from None
    check_finite(arrays, path)
    return arrays, told


def check_finite(weights: Mapping[str, Tensor | np.ndarray], place: object, remedy: str = AGAIN) -> None:
    """Refuses weights that are not numbers: whatever is computed with one is none, and every answer is the first label.

    Args:
        weights: By name; read once, nothing is copied.
        place: Where they are from, for the message.
        remedy: How it ends.

    Raises:
        CheckpointError: One is NaN or infinite; names it.
    """
    odd = [name for name, values in weights.items() if not _is_finite(values)]
    if odd:
        raise CheckpointError(
            f"{place}: {len(odd)} of {len(weights)} arrays hold NaN or infinite numbers, first {odd[0]!r}. {remedy}"
        )


def _is_finite(values: Any) -> bool:
    if not math.prod(values.shape):
        return True
    if hasattr(values, "aminmax"):  # of torch; a least and a largest number are NaN where any is
        if values.is_meta or not values.is_floating_point():
            return True
        values = values.detach().float() if values.element_size() == 1 else values.detach()
        return all(math.isfinite(bound) for bound in values.aminmax())
    return values.dtype.kind != "f" or all(math.isfinite(bound) for bound in (values.min(), values.max()))


def damaged(path: Path, problem: Exception) -> CheckpointError:
    """The error for a file that is missing, truncated or of another kind."""
    said = " ".join(str(problem).split())[:200]
    return CheckpointError(f"{path} is missing, truncated or damaged ({said}). {AGAIN}")
