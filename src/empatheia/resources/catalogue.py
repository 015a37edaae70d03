"""The models on this machine: bundled, in EMPATHEIA_MODELS, and what their folders say about themselves."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from empatheia.errors import CheckpointError, MissingResourceError
from empatheia.perceive.model_file import BUNDLED
from empatheia.reading import Json
from empatheia.registry import Registry
from empatheia.resources import cache_dir, installed_model, is_at_hand, resolve_model, resolve_weights
from empatheia.resources.lookup import bundled_root
from empatheia.resources.manifest import MANIFEST, read_json, read_manifest

DEFAULT = "empatheia"
"""The listener that answers where nobody is named; it perceives by :data:`LISTENER`."""
SMALL = "gao2021-small"
"""The small bundled responder, which needs nothing else."""
_WAS_SMALL = "default"
LISTENER = "listener"
"""The bundled perception."""
AS_TRAINED = "listener_as_trained"
"""The weights that :data:`LISTENER` was written from, in a checkout: where training begins."""
SECOND_LOOK = "second_look"
"""The bundled second look at what is felt, which needs its language model and is asked for by name alone."""
SYSTEMS = Registry("systems", {})
"""What is asked about published systems: their names, and how to get a model of one."""
INDEX = "inference_index"
"""``kind`` of a folder in which inferences are looked up; it has no network."""


@dataclass(frozen=True, kw_only=True)
class ModelEntry:
    """One model folder.

    Attributes:
        name: By which ``Listener.load`` finds it.
        title: What the model calls itself.
        system: Which kind of model it is, e.g. ``affect_reader``, ``inference_index``, or ``?``.
        licence: Of the weights.
        megabytes: Of the folder, in 10^6 bytes.
        folder: Where it is.
        origin: ``bundled``, ``EMPATHEIA_MODELS``, ``cache`` or ``folder``.
        numbers: Metric name to value, from ``card.json``; empty without one.
        fault: Why it cannot be used, or empty.
        lacks: The model it stands on, where that is not on this machine, or empty.
    """

    name: str
    title: str
    system: str
    licence: str
    megabytes: float
    folder: str
    origin: str = "folder"
    numbers: Mapping[str, float] = field(default_factory=dict)
    fault: str = ""
    lacks: str = ""

    def to_dict(self) -> dict[str, Json]:
        """Plain JSON-ready data."""
        return {
            **{name: getattr(self, name) for name in self.__dataclass_fields__},
            "numbers": dict(self.numbers),
        }


def known_models() -> list[ModelEntry]:
    """Bundled models, those in EMPATHEIA_MODELS, then those installed in the cache, by name; loads none of them."""
    entries = [describe_model(BUNDLED, LISTENER, "bundled")]
    roots = [("bundled", bundled_root())]
    if mirror := os.environ.get("EMPATHEIA_MODELS", "").strip():
        roots.append(("EMPATHEIA_MODELS", Path(mirror).expanduser()))
    roots.append(("cache", cache_dir() / "models"))
    for origin, root in roots:
        for manifest in sorted(root.glob(f"*/{MANIFEST}")) + sorted(root.glob(f"*/*/{MANIFEST}")):
            name = manifest.parent.relative_to(root).as_posix()
            entries.append(describe_model(manifest.parent, name, origin))
    return entries


def find_model(name: str | Path) -> Path:
    """The folder of a model (see :func:`empatheia.resources.resolve_model`); of a finished run its checkpoint.

    Raises:
        MissingResourceError: It is not on this machine and cannot be fetched.
        CheckpointError: The name is a file.
    """
    path = Path(name).expanduser()
    if path.is_file():
        raise CheckpointError(f"{name} is a file; give the model folder that holds it: {path.absolute().parent}.")
    if not path.is_dir() and not is_here(str(name)) and (told := SYSTEMS.get("how_to_get")(str(name))):
        raise MissingResourceError(told)
    folder = _by_title(str(name)) or resolve_model(name)
    is_run = not (folder / MANIFEST).is_file() and (folder / "checkpoint" / MANIFEST).is_file()
    return folder / "checkpoint" if is_run else folder


def renamed(name: str) -> str:
    """What is told of a name that a model had; empty for others."""
    if name != _WAS_SMALL:
        return ""
    return (
        f"no model is called {name!r}: the small bundled responder is {SMALL!r}; without a name the listener answers."
    )


def _by_title(name: str) -> Path | None:
    """The folder of the model that calls itself so, where no folder is called so: a name that is printed is accepted.

    Raises:
        MissingResourceError: It is what the small bundled responder was called.
    """
    if Path(name).expanduser().is_dir() or installed_model(name) is not None:
        return None
    if told := renamed(name):
        raise MissingResourceError(told)
    return next((Path(entry.folder) for entry in known_models() if entry.title == name), None)


def is_here(name: str) -> bool:
    """Whether a model of that name is on this machine."""
    return installed_model(name) is not None


def second_look_lacks() -> str:
    """What is lacking for a second look, ``perception: joined``: a model, its language model, or that file's reader.

    Empty where nothing is. Whether the files are those it was trained with is found where it is loaded.
    """
    folder = installed_model(SECOND_LOOK)
    if folder is None:
        return "no model of that name is installed"
    try:
        file = resolve_weights(str(read_json(folder / "config.json").get("base")))[1]
    except MissingResourceError:
        return "its language model is not here"
    if file is not None and find_spec("gguf") is None:
        return "the package gguf, which reads its language model, is not here"
    return ""


def describe_model(folder: Path, name: str, origin: str = "folder") -> ModelEntry:
    """What a folder says about itself; faults are told, not raised."""
    said, numbers, fault = {}, {}, ""
    try:
        said, numbers = _index(folder) if _is_index(folder) else (asdict(read_manifest(folder)), {})
    except CheckpointError as error:
        fault = str(error)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    base = "" if fault else str(read_json(folder / MANIFEST).get("base") or "")
    return ModelEntry(
        name=name,
        title=str(said.get("name") or "?"),
        system=str(said.get("system") or "?"),
        licence=str(said.get("licence") or "?"),
        megabytes=round(size / 1e6, 1),
        folder=str(folder),
        origin=origin,
        numbers=numbers or _numbers(folder / "card.json"),
        fault=fault,
        lacks=base if base and not is_at_hand(base) else "",
    )


def _is_index(folder: Path) -> bool:
    try:
        return read_json(folder / MANIFEST).get("kind") == INDEX
    except CheckpointError:
        return False


def _index(folder: Path) -> tuple[dict[str, Any], dict[str, float]]:
    """What an index of inferences says about itself: its facts, and how much is in it."""
    record = read_json(folder / MANIFEST)
    counts = record.get("counts")
    numbers = {name: float(counts[name]) for name in ("heads", "tuples") if name in counts} if counts else {}
    return {"name": record.get("name"), "system": INDEX, "licence": record.get("source")}, numbers


def _numbers(path: Path) -> dict[str, float]:
    """``metrics`` of a card: each a number, an object with ``value``, or a group of these."""
    try:
        metrics = read_json(path).get("metrics", {})
    except CheckpointError:
        return {}
    return dict(_flat(metrics)) if isinstance(metrics, dict) else {}


def _flat(metrics: Mapping[str, Any], group: str = "") -> Iterator[tuple[str, float]]:
    for name, score in metrics.items():
        value = score.get("value") if isinstance(score, dict) and "value" in score else score
        if isinstance(value, dict) and not group:
            yield from _flat(value, f"{name}: ")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{group}{name}", float(value)
