"""Mechanisms of empathy in a reply (EPITOME): the model, its pairs, the exact form of Kim et al.'s metric."""

from __future__ import annotations

from typing import Any

from empatheia.moved import moved_name


def __getattr__(name: str) -> Any:
    return moved_name(__name__, name, "empatheia.understanding.mechanisms.identifier")
