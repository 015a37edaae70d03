"""The network of a model folder, loaded after its weights and its vocabulary were checked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from empatheia.errors import CheckpointError, ConfigError
from empatheia.resources.manifest import MANIFEST, REMEDY, WEIGHTS, Manifest, read_json
from empatheia.resources.quiet import quiet_loading
from empatheia_research.pretrained import check_pieces, load_pretrained

if TYPE_CHECKING:
    from transformers import GenerationConfig


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

    from empatheia_research.responders import RESPONDERS

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
            f"{folder / 'config.json'} has another architecture, {found!r};"
            f" {manifest.system} needs {wanted!r}. {REMEDY}"
        )
    _check_weights(folder / WEIGHTS)
    with quiet_loading():
        odd = f"the weights in {folder} do not fit config.json"
        network, report = load_pretrained(
            network_class, folder, odd, REMEDY, dtype=torch.float32, output_loading_info=True
        )
    for what in ("missing_keys", "mismatched_keys", "unexpected_keys"):
        if keys := sorted(map(str, report.get(what) or ())):
            raise CheckpointError(
                f"{folder / WEIGHTS} does not fit config.json:"
                f" {len(keys)} {what.replace('_', ' ')}, e.g. {keys[0]}. {REMEDY}"
            )
    check_pieces(n_pieces, network.get_input_embeddings().num_embeddings, folder, exactly=True)
    if network.can_generate():
        _check_generation(folder, network.generation_config, n_pieces)
    return network.to(target).eval()


def _check_generation(folder: Path, settings: GenerationConfig, n_pieces: int) -> None:
    """Refuses settings of ``generate()`` that name no pieces or such as there are not, or are no plain values."""
    path = folder / "generation_config.json"
    if settings.decoder_start_token_id is None and settings.bos_token_id is None:
        raise CheckpointError(f"{path} has no decoder_start_token_id, the piece replies start from. {REMEDY}")
    for name, value in settings.to_diff_dict().items():
        is_id = name.endswith("_token_id")
        values = value if name == "eos_token_id" and isinstance(value, list) else [value]
        known = [type(one) is int and 0 <= one < n_pieces if is_id else _is_plain(one) for one in values]
        if not (known and all(known)):
            accepted = f"a piece from 0 to {n_pieces - 1:,}" if is_id else "a word, true, false or a number"
            raise CheckpointError(f"{path} has {name} {value!r:.60}; accepted: {accepted}. {REMEDY}")


def _is_plain(value: object) -> bool:
    return isinstance(value, str | bool) or (isinstance(value, int | float) and abs(value) < 1 << 31)


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
