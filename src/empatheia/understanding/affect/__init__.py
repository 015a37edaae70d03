"""What a person feels, how pleasant it is, and which few words caused it: one encoder, three heads."""

from __future__ import annotations

from typing import Any

from empatheia.moved import moved_name


def __getattr__(name: str) -> Any:
    return moved_name(__name__, name, "empatheia.understanding.affect.reader")
