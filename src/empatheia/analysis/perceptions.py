"""A folder to whoever perceives with it."""

from __future__ import annotations

from pathlib import Path

from empatheia.perceive.affect import Perceiving
from empatheia.perceive.model_file import BUNDLED, is_perception
from empatheia.perceive.perception import Perception, bundled_perception
from empatheia.registry import Registry

PERCEPTIONS = Registry("perceptions", {})
"""Perceptions that are not a file for ONNX Runtime: weights as they were trained, and one with a second look."""


def open_perception(folder: Path, device: str = "cpu", *, joined: bool = False) -> Perceiving:
    """Whoever perceives with a folder.

    Args:
        folder: With a file for ONNX Runtime, or with weights as they were trained, which need torch.
        device: Of torch, for the latter.
        joined: Whether the second look, a small language model, is mixed in; it needs torch.

    Raises:
        MissingResourceError: A base encoder, or the second look's model, is not here.
        MissingDependencyError: What reads it is not installed.
        CheckpointError: The folder is incomplete, damaged, or belongs to another base.
    """
    if not is_perception(folder):
        affect = PERCEPTIONS.get("as_trained").load(folder, device)
    elif folder.resolve() == BUNDLED:
        affect = bundled_perception()
    else:
        affect = Perception.open(folder)
    return PERCEPTIONS.get("joined").beside(affect) if joined else affect
