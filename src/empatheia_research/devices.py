"""Where torch works: the processor, a graphics card by its number, or whatever is best."""

from __future__ import annotations

import os
import re

from empatheia.errors import ConfigError

_DEVICE = re.compile(r"auto|cpu|mps|cuda(?::(?P<number>\d+))?")
_VISIBLE = "CUDA_VISIBLE_DEVICES"


def choose_device(name: str) -> str:
    """Makes this process work on a device; call it before anything looks at graphics cards.

    Other cards than the chosen one are hidden from the process, so that whatever it loads later lands there. Where
    torchrun started several processes, ``cuda`` leaves each its own.

    Args:
        name: ``cpu``; ``cuda``, the first card; ``cuda:1``, the second; ``mps``, Apple's; ``auto``, a CUDA card where
            there is one, else the processor.

    Returns:
        ``auto``, ``cpu``, ``cuda`` or ``mps``.

    Raises:
        ConfigError: No such name, or this machine has no such device as far as torch sees.
    """
    found = _DEVICE.fullmatch(name)
    if found is None:
        raise ConfigError(f"unknown device {name!r}; accepted: cpu, cuda, cuda:N (N from 0), mps, auto.")
    if name == "cpu":
        os.environ[_VISIBLE] = ""
    if name in ("auto", "cpu"):
        return name
    import torch

    if name == "mps":
        if not torch.backends.mps.is_available():
            raise ConfigError("device 'mps': torch sees no Apple GPU here; accepted here: cpu, auto.")
        return name
    number, n_cards = int(found["number"] or 0), torch.cuda.device_count()
    if number >= n_cards:
        cards = f"{n_cards} CUDA card{'' if n_cards == 1 else 's'}"
        accepted = ", ".join(["cpu", *(f"cuda:{i}" for i in range(n_cards)), "auto"])
        raise ConfigError(f"device {name!r}: torch {torch.__version__} sees {cards} here; accepted here: {accepted}.")
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        seen = [one for one in os.environ.get(_VISIBLE, "").split(",") if one.strip()]
        os.environ[_VISIBLE] = seen[number] if number < len(seen) else str(number)
    return "cuda"
