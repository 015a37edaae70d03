"""Whether the header of a GGUF file can be believed, before anything is built from it: bounded work, nothing loaded."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from empatheia.errors import CheckpointError

_WIDTHS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of a value by its type."""
_WHOLE = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 10: "Q", 11: "q"}
_TEXT, _LIST = 8, 9
_VERSIONS = (2, 3)
_MOST_FIELDS, _MOST_TENSORS, _MOST_TEXTS, _MOST_DIMS = 10_000, 100_000, 2_000_000, 8
_SIZES = ("embedding_length", "block_count", "feed_forward_length")
_LEAST_BITS = 1
"""Of a weight in any of the formats."""


def check_gguf(path: Path) -> None:
    """Refuses a file whose header is cut, has no sizes of the network, or has such that its weights cannot fill.

    A network is built by the sizes in the header, and those that it lacks are taken from a model of billions of
    weights.

    Raises:
        CheckpointError: It is refused; says why.
    """
    try:
        with path.open("rb") as file:
            _check(file, path.stat().st_size)
    except (ValueError, struct.error, OverflowError) as problem:
        raise CheckpointError(
            f"{path} is not a complete GGUF file of a language model ({problem}). Fetch it again, or "
            f"choose another one."
        ) from None


def _check(file: BinaryIO, size: int) -> None:
    """Raises ValueError for what :func:`check_gguf` refuses."""
    if file.read(4) != b"GGUF":
        raise ValueError("it does not begin with GGUF")
    if (version := _number(file, "I")) not in _VERSIONS:
        raise ValueError(f"version {version}; accepted: {', '.join(map(str, _VERSIONS))}")
    n_tensors, n_fields = _number(file, "Q"), _number(file, "Q")
    if n_tensors > _MOST_TENSORS or n_fields > _MOST_FIELDS:
        raise ValueError(f"{n_tensors:,} tensors and {n_fields:,} fields; it is damaged")
    fields: dict[str, int | str] = {}
    for _ in range(n_fields):
        name = _text(file, size)
        value = _value(file, size)
        if value is not None:
            fields[name] = value
    n_weights = sum(_weights(file, size) for _ in range(n_tensors))
    if n_weights * _LEAST_BITS > 8 * size:
        raise ValueError(f"{n_weights:,} weights in {size:,} bytes")
    if _least_weights(fields) > 2 * n_weights:
        raise ValueError(f"its header describes a larger network than its {n_weights:,} weights can fill")


def _weights(file: BinaryIO, size: int) -> int:
    """How many weights the next tensor has."""
    _text(file, size)
    if (n_dims := _number(file, "I")) > _MOST_DIMS:
        raise ValueError(f"a tensor of {n_dims:,} dimensions")
    n_weights = math.prod(_number(file, "Q") for _ in range(n_dims))
    _skip(file, 12, size)  # its type, and where it is
    return n_weights


def _least_weights(fields: Mapping[str, int | str]) -> int:
    """Weights of the largest part of the network that the header describes: its blocks, or its vocabulary."""
    kind = fields.get("general.architecture")
    sizes = {name: _count(fields, f"{kind}.{name}") for name in _SIZES}
    missing = [name for name, value in sizes.items() if value <= 0]
    if missing:
        raise ValueError(f"its header does not say {', '.join(missing)}")
    width, n_blocks, inner = sizes.values()
    inner = _count(fields, f"{kind}.expert_feed_forward_length") or inner
    n_pieces = max(_count(fields, "tokenizer.ggml.tokens"), _count(fields, f"{kind}.vocab_size"))
    n_experts = max(1, _count(fields, f"{kind}.expert_count"))
    return width * max(n_blocks * inner * n_experts, n_pieces)


def _count(fields: Mapping[str, int | str], name: str) -> int:
    value = fields.get(name, 0)
    return value if isinstance(value, int) else 0


def _value(file: BinaryIO, size: int) -> int | str | None:
    """A whole number, a text, the length of a list of texts, the largest of a list of numbers, or None."""
    kind = _number(file, "I")
    if kind == _TEXT:
        return _text(file, size)
    if kind != _LIST:
        return _whole(file, kind)
    inner, n = _number(file, "I"), _number(file, "Q")
    if inner == _TEXT:
        if n > _MOST_TEXTS:
            raise ValueError(f"a list of {n:,} texts")
        for _ in range(n):
            _skip(file, _number(file, "Q"), size)
        return n
    if inner not in _WIDTHS:
        raise ValueError(f"a list of values of kind {inner}")
    if inner in _WHOLE and n <= _MOST_FIELDS:
        return max((int(_number(file, _WHOLE[inner])) for _ in range(n)), default=None)
    _skip(file, n * _WIDTHS[inner], size)
    return None


def _whole(file: BinaryIO, kind: int) -> int | None:
    if kind not in _WIDTHS:
        raise ValueError(f"a value of unknown kind {kind}")
    if kind in _WHOLE:
        return _number(file, _WHOLE[kind])
    file.read(_WIDTHS[kind])
    return None


def _number(file: BinaryIO, form: str) -> int:
    raw = file.read(struct.calcsize(f"<{form}"))
    return struct.unpack(f"<{form}", raw)[0]


def _text(file: BinaryIO, size: int) -> str:
    n = _number(file, "Q")
    if n > min(size, 1 << 24):
        raise ValueError(f"a text of {n:,} bytes")
    raw = file.read(n)
    if len(raw) < n:
        raise ValueError("it ends within its header")
    return raw.decode("utf-8", "replace")


def _skip(file: BinaryIO, n: int, size: int) -> None:
    if file.tell() + n > size:
        raise ValueError("it ends within its header")
    file.seek(n, 1)
