"""The one way from a model folder to a network that reads and writes: :func:`open_model`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pydantic import TypeAdapter

from empatheia.errors import CheckpointError
from empatheia.resources import file_sha256
from empatheia.resources.catalogue import find_model
from empatheia.resources.manifest import MANIFEST, REMEDY, WEIGHTS, Manifest, read_manifest
from empatheia_research.checkpoints.reader import Reader
from empatheia_research.checkpoints.weights import load_network
from empatheia_research.responders.seq2seq import Seq2SeqResponder
from empatheia_research.text.collation import Layout
from empatheia_research.text.tokenizer import DialogueTokenizer


@dataclass(frozen=True)
class OpenModel:
    """A responder's folder, opened.

    Attributes:
        folder: Where it lies.
        manifest: Its ``empatheia.json``.
        reader: Its network, tokenizer and how they read a conversation.
    """

    folder: Path
    manifest: Manifest
    reader: Reader

    @property
    def network(self) -> Seq2SeqResponder:
        """In evaluation mode, on the device it was opened for."""
        return self.reader.network

    @property
    def tokenizer(self) -> DialogueTokenizer:
        """The pieces it was trained on."""
        return self.reader.tokenizer

    @cached_property
    def fingerprint(self) -> str:
        """Of the weights: 16 hexadecimal digits."""
        return file_sha256(self.folder / WEIGHTS)[:16]


def open_model(place: str | Path, device: str = "cpu") -> OpenModel:
    """Opens a responder's model folder.

    Args:
        place: A folder, a finished run, or a name from ``empatheia models list``.
        device: A torch device, e.g. ``cpu`` or ``cuda``.

    Raises:
        MissingResourceError: No such model on this machine.
        CheckpointError: The folder is incomplete, truncated, foreign, or its parts do not fit.
        ConfigError: The device cannot be used.
    """
    folder = find_model(place)
    return open_folder(folder, read_manifest(folder), device)


def open_folder(folder: Path, manifest: Manifest, device: str = "cpu") -> OpenModel:
    """As :func:`open_model`, for a folder that was found and whose manifest was read."""
    tokenizer = DialogueTokenizer.from_pretrained(folder)
    network = load_network(folder, manifest, len(tokenizer), device)
    try:
        TypeAdapter(Layout).validate_json(json.dumps(manifest.layout), strict=True)
        return OpenModel(folder, manifest, Reader(network, tokenizer, manifest))
    except (TypeError, ValueError) as error:  # pydantic's among them
        said = " ".join(str(error).split())[:200]
        raise CheckpointError(f"{folder / MANIFEST} has a layout this release cannot read: {said}. {REMEDY}") from None
