"""A model folder: what it must hold, and the checks before it is trusted.

``empatheia.json`` says which system it is and how it reads text; the rest is what ``save_pretrained`` writes.
Every fault becomes a :class:`CheckpointError` that names the file and the remedy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from empatheia.errors import CheckpointError
from empatheia.perceive.model_file import FACTS, GRAPH, TOKENIZER
from empatheia.reading import read_record
from empatheia.taxonomy import EMOTIONS

MANIFEST = "empatheia.json"
WEIGHTS = "model.safetensors"
FORMAT = 1
_LONGEST_NAME = 100
_DESCRIBED = {GRAPH: (FACTS, TOKENIZER)}
"""File of the weights to the files that say how it is built, in the place of ``config.json``."""
REMEDY = "Give a folder that 'empatheia train' wrote, or a name from 'empatheia models list'."


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Contents of ``empatheia.json``.

    Attributes:
        format: Version of this file; this release reads 1.
        system: Name in ``RESPONDERS``.
        name: What the model calls itself in its answers.
        layout: Fields of ``text.Layout``: how a context becomes pieces.
        side_inputs: Settings of what the system reads beside the context, by name.
        emotions: The model's emotion labels, in the order of its logits.
        cause_threshold: Words at or above it are causes; in [0, 1].
        temperature: The emotion logits are divided by it before the softmax; above 0.
        licence: Licence of the weights.
        weights: File of the weights; empty for a model that stands on another one and learnt nothing of its own.
        degraded: Why the model is a stand-in, or empty.
    """

    format: int
    system: str
    name: str
    layout: dict[str, Any] = field(default_factory=dict)
    side_inputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    emotions: tuple[str, ...] = EMOTIONS
    cause_threshold: float = 0.5
    temperature: float = 1.0
    licence: str = ""
    weights: str = WEIGHTS
    degraded: str = ""


def read_manifest(folder: Path) -> Manifest:
    """Reads and checks ``empatheia.json``.

    Raises:
        CheckpointError: The folder or a file is missing, or the manifest says something impossible.
    """
    if not folder.is_dir():
        raise CheckpointError(f"no model folder at {folder}. {REMEDY}")
    path = folder / MANIFEST
    weights = read_json(path).get("weights", WEIGHTS) if path.is_file() else WEIGHTS
    is_name = isinstance(weights, str) and Path(weights).name == weights and len(weights) <= _LONGEST_NAME
    weights = weights if is_name else WEIGHTS
    for name in (MANIFEST, *_DESCRIBED.get(weights, ("config.json",)), *([weights] if weights else [])):
        if not (folder / name).is_file():
            raise CheckpointError(f"{folder} has no {name}, so it is not a complete model folder. {REMEDY}")
    record = read_json(path)
    if record.get("format") != FORMAT:
        raise CheckpointError(
            f"{path} has format {record.get('format')!r}; this release reads {FORMAT}."
            " Upgrade with: pip install --upgrade empatheia"
        )
    try:
        known = {entry.name for entry in fields(Manifest)}
        manifest = Manifest(**{name: value for name, value in record.items() if name in known})
    except TypeError as error:
        raise CheckpointError(f"{path} lacks a field ({error}). {REMEDY}") from error
    _check_types(path, manifest)
    _check_values(path, manifest)
    return manifest


def _check_types(path: Path, manifest: Manifest) -> None:
    """Raises CheckpointError unless what is a mapping, a list or a text in a manifest is one."""
    kinds = {"layout": dict, "side_inputs": dict, "emotions": list | tuple, "licence": str, "degraded": str}
    for name, kind in kinds.items():
        value = getattr(manifest, name)
        if not isinstance(value, kind):
            wanted = "an object" if kind is dict else "a string" if kind is str else "a list"
            raise CheckpointError(f"{path} has {name} {value!r:.60}; {wanted} is expected. {REMEDY}")


def _check_values(path: Path, manifest: Manifest) -> None:
    """Raises CheckpointError for names, emotions and numbers that cannot be."""
    for name in ("system", "name"):
        if not isinstance(getattr(manifest, name), str):
            raise CheckpointError(f"{path} has {name} {getattr(manifest, name)!r}; a string is expected. {REMEDY}")
    named = [str(emotion) for emotion in manifest.emotions]
    if sorted(named) != sorted(EMOTIONS):
        odd = sorted(set(named) ^ set(EMOTIONS))
        raise CheckpointError(
            f"{path} lists {len(manifest.emotions)} emotions that are not the taxonomy's {len(EMOTIONS)}"
            f" (differing: {', '.join(odd[:5]) or 'repeated names'}). {REMEDY}"
        )
    if not (isinstance(manifest.temperature, int | float) and 0 < manifest.temperature < math.inf):
        raise CheckpointError(
            f"{path} has temperature {manifest.temperature!r}; it must be above 0, and finite. {REMEDY}"
        )
    if not (isinstance(manifest.cause_threshold, int | float) and 0 <= manifest.cause_threshold <= 1):
        raise CheckpointError(
            f"{path} has cause_threshold {manifest.cause_threshold!r}; it must be in 0 to 1. {REMEDY}"
        )


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file.

    Raises:
        CheckpointError: The file cannot be read or is not a JSON object.
    """
    try:
        record = read_record(path)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}. Fetch or train the model again.") from error
    if not isinstance(record, dict):
        raise CheckpointError(f"{path} holds a JSON {type(record).__name__}; an object is expected. {REMEDY}")
    return record
