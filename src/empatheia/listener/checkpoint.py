"""A model folder: what it must hold, the checks before it is trusted, and loading it.

``empatheia.json`` says which system it is and how it reads text; the rest is what ``save_pretrained`` writes.
Every fault becomes a :class:`CheckpointError` that names the file and the remedy.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from empatheia.errors import CheckpointError, ConfigError
from empatheia.reading import read_record
from empatheia.resources import load_pretrained
from empatheia.taxonomy import EMOTIONS

MANIFEST = "empatheia.json"
WEIGHTS = "model.safetensors"
FORMAT = 1
_LONGEST_NAME = 100
_REMEDY = "Give a folder that 'empatheia train' wrote, or a name from 'empatheia models list'."


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
        raise CheckpointError(f"no model folder at {folder}. {_REMEDY}")
    path = folder / MANIFEST
    weights = read_json(path).get("weights", WEIGHTS) if path.is_file() else WEIGHTS
    is_name = isinstance(weights, str) and Path(weights).name == weights and len(weights) <= _LONGEST_NAME
    weights = weights if is_name else WEIGHTS
    for name in (MANIFEST, "config.json", *([weights] if weights else [])):
        if not (folder / name).is_file():
            raise CheckpointError(f"{folder} has no {name}, so it is not a whole model folder. {_REMEDY}")
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
        raise CheckpointError(f"{path} lacks a field ({error}). {_REMEDY}") from error
    _check_types(path, manifest)
    for name in ("system", "name"):
        if not isinstance(getattr(manifest, name), str):
            raise CheckpointError(f"{path} has {name} {getattr(manifest, name)!r}; a string is expected. {_REMEDY}")
    if sorted(map(str, manifest.emotions)) != sorted(EMOTIONS):
        odd = sorted(set(manifest.emotions) ^ set(EMOTIONS))
        raise CheckpointError(
            f"{path} lists {len(manifest.emotions)} emotions that are not the taxonomy's {len(EMOTIONS)}"
            f" (differing: {', '.join(odd[:5]) or 'repeated names'}). {_REMEDY}"
        )
    if not (isinstance(manifest.temperature, int | float) and 0 < manifest.temperature < math.inf):
        found = f"{path} has temperature {manifest.temperature!r}"
        raise CheckpointError(f"{found}; it must be above 0, and finite. {_REMEDY}")
    if not (isinstance(manifest.cause_threshold, int | float) and 0 <= manifest.cause_threshold <= 1):
        found = f"{path} has cause_threshold {manifest.cause_threshold!r}"
        raise CheckpointError(f"{found}; it must be in 0 to 1. {_REMEDY}")
    return manifest


def _check_types(path: Path, manifest: Manifest) -> None:
    """Raises CheckpointError unless what is a mapping, a list or a text in a manifest is one."""
    kinds = {"layout": dict, "side_inputs": dict, "emotions": list | tuple, "licence": str, "degraded": str}
    for name, kind in kinds.items():
        value = getattr(manifest, name)
        if not isinstance(value, kind):
            wanted = "an object" if kind is dict else "a string" if kind is str else "a list"
            raise CheckpointError(f"{path} has {name} {value!r:.60}; {wanted} is expected. {_REMEDY}")


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
        raise CheckpointError(f"{path} holds a JSON {type(record).__name__}; an object is expected. {_REMEDY}")
    return record


def load_network(folder: Path, manifest: Manifest, n_pieces: int, device: str) -> Any:
    """Loads the network of a model folder, in evaluation mode.

    Args:
        folder: The model folder.
        manifest: Its manifest.
        n_pieces: Size of the folder's vocabulary.
        device: Any torch device name.

    Raises:
        CheckpointError: The weights are truncated, foreign, or do not fit the config or the vocabulary.
    """
    import torch

    from empatheia.responders import RESPONDERS

    try:
        network_class = RESPONDERS.get(manifest.system)
    except ConfigError as error:
        raise CheckpointError(f"{folder / MANIFEST} names a system this release does not have: {error}") from error
    try:
        target = torch.device(device)
        torch.empty(0, device=target)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(
            f"device {device!r} cannot be used here ({reason}). Accepted: cpu, cuda, cuda:0 ..."
        ) from error
    wanted, found = network_class.config_class.model_type, read_json(folder / "config.json").get("model_type")
    if found != wanted:
        raise CheckpointError(
            f"{folder / 'config.json'} is of a foreign architecture, {found!r};"
            f" {manifest.system} needs {wanted!r}. {_REMEDY}"
        )
    _check_weights(folder / WEIGHTS)
    with quiet_loading():
        odd = f"the weights in {folder} do not fit config.json"
        network, report = load_pretrained(
            network_class, folder, odd, _REMEDY, dtype=torch.float32, output_loading_info=True
        )
    for what in ("missing_keys", "mismatched_keys", "unexpected_keys"):
        if keys := sorted(map(str, report.get(what) or ())):
            raise CheckpointError(
                f"{folder / WEIGHTS} does not fit config.json:"
                f" {len(keys)} {what.replace('_', ' ')}, e.g. {keys[0]}. {_REMEDY}"
            )
    n_rows = network.get_input_embeddings().num_embeddings
    if n_rows != n_pieces:
        raise CheckpointError(
            f"the vocabulary in {folder} has {n_pieces} pieces but the weights have {n_rows} rows:"
            " the tokenizer files and the weights are from different models. Put those of one run together."
        )
    return network.to(target).eval()


def _check_weights(path: Path) -> None:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            n_tensors = len(list(file.keys()))
    except (SafetensorError, OSError) as error:
        raise CheckpointError(
            f"{path} is truncated or damaged ({path.stat().st_size:,} bytes: {error}). Fetch or train the model again."
        ) from error
    if not n_tensors:
        raise CheckpointError(f"{path} holds no tensors. Fetch or train the model again.")


@contextmanager
def quiet_loading() -> Iterator[None]:
    """Keeps transformers' progress bars and load reports away from the caller's terminal."""
    from transformers.utils import logging as transformers_logging

    level, bars = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity(logging.CRITICAL)
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(level)
        if bars:
            transformers_logging.enable_progress_bar()
