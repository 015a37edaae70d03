"""The one door to models, tokenizers and configurations of transformers: what lies in a folder is read and never run.

A model folder comes from anywhere. Code in it is not run and nobody is asked whether it may be; weights are read from
safetensors files (or GGUF), never unpickled; links that lead out of the folder are not followed; nothing is fetched
while it is read.
"""

from __future__ import annotations

import math
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from empatheia.errors import CheckpointError, EmpatheiaError, MissingDependencyError
from empatheia.reading import read_record
from empatheia.resources.arrays import AGAIN, check_finite, damaged
from empatheia.resources.lookup import resolve_model
from empatheia_research.gguf_header import check_gguf

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedConfig

WHOLE = "Give a folder with config.json, model.safetensors and tokenizer.json."
_NEEDS_GGUF = "reading a GGUF file needs the package gguf, which is not installed: pip install 'empatheia[gguf]'"
_NOT_RUN = "which is never run here. Choose a model that transformers knows itself."
_PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".h5", ".msgpack")


def load_pretrained(loader: Any, place: str | Path, problem: str = "", remedy: str = WHOLE, **options: Any) -> Any:
    """``loader.from_pretrained`` for anything in a folder that others wrote.

    Args:
        loader: A class of transformers, or one of ours that derives from it: a model, a tokenizer or a configuration.
        place: Folder, or a name as for :func:`empatheia.resources.resolve_model`.
        problem: How the message begins if it cannot be read.
        remedy: How it ends.
        **options: Passed on.

    Raises:
        MissingResourceError: There is no such folder and no such model.
        CheckpointError: It cannot be read, or only by running code of its own or by unpickling, or its weights hold NaN
            or infinite numbers.
        MissingDependencyError: Reading it needs a package that is not installed.
    """
    folder = Path(place) if Path(place).is_dir() else resolve_model(place)
    is_model = hasattr(loader, "from_config") or hasattr(loader, "_from_config")
    lead = problem or f"cannot read {str(place)!r}"
    if "gguf_file" not in options:
        check_links(folder)
        _check_config(folder, lead)
    else:
        check_gguf(folder / options["gguf_file"])
    try:
        loaded = loader.from_pretrained(
            str(folder),
            trust_remote_code=False,
            local_files_only=True,
            **({"use_safetensors": True} if is_model else {}),
            **options,
        )
    except EmpatheiaError:
        raise
    except ImportError as error:
        said = " ".join(str(error).split())[:200]
        raise MissingDependencyError(_NEEDS_GGUF if "gguf" in said.lower() else f"{lead}: {said}") from None
    except Exception as error:  # truncated and foreign files raise errors of all kinds
        raise CheckpointError(f"{lead}: {_reason(folder, error, is_model)} {remedy}") from None
    if is_model:
        model = loaded[0] if isinstance(loaded, tuple) else loaded
        check_finite(model.state_dict(), f"{lead}: {folder}", remedy)
    return loaded


@contextmanager
def fitting_parts(place: object) -> Iterator[None]:
    """Around the first use of what was read from a folder: whatever its files did not show by themselves is told.

    Raises:
        CheckpointError: In place of any error that is not the package's own.
    """
    try:
        yield
    except EmpatheiaError:
        raise
    except Exception as error:  # files of different models raise errors of all kinds
        said = " ".join(str(error).split())[:200] or type(error).__name__
        raise CheckpointError(f"{place}: its files do not fit each other ({said}). {AGAIN}") from None


def check_pieces(n_pieces: int, n_rows: int, place: object, exactly: bool = False) -> None:
    """Refuses a vocabulary and weights of different models.

    Args:
        n_pieces: Of the tokenizer.
        n_rows: Of the word table, which encoders may have more of.
        place: Where they are from, for the message.
        exactly: They must be equal.

    Raises:
        CheckpointError: A piece has no row.
    """
    if n_pieces > n_rows or (exactly and n_pieces != n_rows):
        raise CheckpointError(
            f"the vocabulary in {place} has {n_pieces} pieces but the weights have {n_rows} rows:"
            " the tokenizer files and the weights are from different models. Put those of one run together."
        )


def load_weights(path: Path) -> dict[str, Tensor]:
    """Tensors by name from a safetensors file.

    Raises:
        CheckpointError: The file is missing, truncated or of another kind, or holds NaN or infinite numbers.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        weights = load_file(path)
    except (OSError, SafetensorError, KeyError, ValueError) as problem:
        raise damaged(path, problem) from None
    check_finite(weights, path)
    return weights


def build_pretrained(auto: Any, config: Any, **options: Any) -> Any:
    """``auto.from_config``: a network of transformers with fresh weights; a configuration may name code, too."""
    return auto.from_config(config, trust_remote_code=False, **options)


def described_encoder(config: Any) -> PreTrainedConfig:
    """The configuration of the encoder of transformers that a model holds.

    Args:
        config: Of the model; its ``encoder_config`` describes the encoder. Where it asks for eager attention, so does
            the encoder's.
    """
    from transformers import AutoConfig

    fields = dict(config.encoder_config)
    if config._attn_implementation == "eager":  # otherwise the best that the encoder itself can
        fields["attn_implementation"] = "eager"
    return AutoConfig.for_model(fields.pop("model_type"), **fields)


def check_links(folder: Path, recursive: bool = False) -> None:
    """Whether all that lies in a folder lies in it: no link leads out, except into the store of the hub's own cache.

    Args:
        folder: Itself may be a link.
        recursive: Look into its folders, too.

    Raises:
        CheckpointError: One leads out; names it.
    """
    root = folder.resolve()
    allowed = [
        root,
        *(Path(place).resolve() for place in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}),
    ]
    if root.parent.name == "snapshots":  # .../models--name/snapshots/revision, whose files are links into blobs
        allowed.append(root.parent.parent / "blobs")
    for path in sorted(folder.rglob("*") if recursive else folder.iterdir()):
        if path.is_symlink() and not any(path.resolve().is_relative_to(place) for place in allowed):
            raise CheckpointError(
                f"{path} is a link that leads out of its folder; it is not followed. Put the file itself there."
            )


def model_type_of(place: str | Path) -> str:
    """What kind of model a folder's ``config.json`` says it holds; empty if it does not say.

    Raises:
        MissingResourceError: There is no such folder and no such model.
    """
    folder = Path(place) if Path(place).is_dir() else resolve_model(place)
    return str(_config(folder).get("model_type") or "")


def _check_config(folder: Path, lead: str) -> None:
    """Refuses a configuration that names code on the hub (``"attn_implementation": "someone/kernel"``), or holds NaN.

    A threshold or temperature that is NaN is below and above nothing: checks of ranges pass it and answers are silent.
    """
    for name, value in _config(folder).items():
        if name.endswith("_implementation") and "/" in str(value):
            raise CheckpointError(f"{lead}: its config.json asks for code ({name}: {str(value)[:80]!r}), {_NOT_RUN}")
        if isinstance(value, float) and math.isnan(value):
            raise CheckpointError(f"{lead}: {folder / 'config.json'} has {name} NaN; a number is expected. {WHOLE}")


def _config(folder: Path) -> dict[str, Any]:
    """What ``config.json`` says; nothing if it cannot be read, which its reader will tell."""
    try:
        config = read_record(folder / "config.json")
    except (OSError, ValueError):
        return {}
    return config if isinstance(config, dict) else {}


def _reason(folder: Path, error: Exception, is_model: bool) -> str:
    said = " ".join(str(error).split()) or type(error).__name__
    if "custom code" in said:
        return f"it brings code of its own, {_NOT_RUN}"
    pickled = [path.name for path in sorted(folder.iterdir()) if path.suffix in _PICKLED]
    if is_model and pickled and not list(folder.glob("*.safetensors")):
        return (
            f"its weights are in {pickled[0]}, a kind of file that can run code and is not read; save as safetensors."
        )
    if type(error).__name__ == "SafetensorError":
        said = f"a weights file is truncated or damaged ({said})"
    return said[:300].rstrip(".") + "."
