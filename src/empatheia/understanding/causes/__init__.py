"""Which earlier turns caused an emotion, and which words in them: models, their items, the component ``turns``."""

from __future__ import annotations

from typing import Any

from empatheia.moved import moved_name


def __getattr__(name: str) -> Any:
    return moved_name(__name__, name, "empatheia.understanding.causes.turns")
