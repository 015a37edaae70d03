"""Who is measured by task ``focus``: a responder of a run or folder, or a language model, behind one face."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import GenerationMixin

from empatheia.errors import CheckpointError, ConfigError
from empatheia.resources import file_sha256
from empatheia.resources.manifest import read_manifest
from empatheia_research.checkpoints.contexts import Contexts
from empatheia_research.checkpoints.open import open_folder
from empatheia_research.checkpoints.prompt_contexts import PromptContexts
from empatheia_research.recipes.recipe import Recipe, validate_recipe
from empatheia_research.responders import RESPONDERS
from empatheia_research.responders.language_model import LanguageModel
from empatheia_research.training.tasks.prompt import PromptRun, PromptTask

_WEIGHTS = "model.safetensors"


@dataclass(frozen=True)
class Speaker:
    """A model that answers and can be focused.

    Attributes:
        name: For records.
        contexts: How it reads conversations and says replies; its network is in evaluation mode.
        fingerprint: Of its weights; another one makes kept replies void.
    """

    name: str
    contexts: Contexts
    fingerprint: str = ""


def open_speaker(folder: Path, device: str = "cpu") -> Speaker:
    """A responder's model folder, or that of a language model.

    Args:
        folder: Model folder.
        device: Where it runs.

    Raises:
        CheckpointError: It holds no model that answers by a decoder.
    """
    try:
        manifest = read_manifest(folder)
        system = RESPONDERS.get(manifest.system)
    except (CheckpointError, ConfigError) as problem:
        raise CheckpointError(
            f"{folder} is not a model that can be focused ({' '.join(str(problem).split())[:120]}); "
            f"give the run or model"
            " folder of a responder, or name a language model by model.base."
        ) from None
    weights = folder / _WEIGHTS
    fingerprint = file_sha256(weights)[:16] if weights.is_file() else ""
    if system is LanguageModel:
        return _language_speaker(PromptRun(folder).task, manifest.name, device, fingerprint)
    if not issubclass(system, GenerationMixin):
        raise CheckpointError(
            f"{folder}: {manifest.system} has no decoder that could be focused; give another responder."
        )
    return Speaker(manifest.name, open_folder(folder, manifest, device).reader.contexts, fingerprint)


def open_language_model(recipe: Recipe, folder: Path, device: str = "cpu") -> Speaker:
    """The language model that a recipe's ``model`` block describes, asked as task ``prompt`` asks it.

    Args:
        recipe: Of task ``focus``.
        folder: The run's; pieces of a model that is built on the spot are kept there.
        device: Where it runs.

    Raises:
        ConfigError: The block is not one of a language model in this process.
        MissingResourceError: The model is not on this machine.
    """
    if recipe.model.get("form") not in ("causal", "seq2seq"):
        raise ConfigError(
            f"recipe {recipe.name!r}: model.form is {recipe.model.get('form')!r}; accepted: causal, seq2seq, with"
            " model.base=FOLDER; or name a responder with start=FOLDER."
        )
    asked: dict[str, object] = {
        "name": recipe.name,
        "task": "prompt",
        "system": "language_model",
        "seed": recipe.seed,
        "model": recipe.model,
        "tokenizer": recipe.tokenizer.model_dump(),
        "data": {"corpus": recipe.data.corpus},
    }
    task = PromptTask(validate_recipe(asked, f"recipe {recipe.name!r}"), folder)
    name = str(recipe.model.get("base") or "random weights")
    weights = Path(name) / _WEIGHTS
    return _language_speaker(task, name, device, file_sha256(weights)[:16] if weights.is_file() else name)


def _language_speaker(task: PromptTask, name: str, device: str, fingerprint: str) -> Speaker:
    model: Any = task.model
    return Speaker(name, PromptContexts(model.eval().to(device), task.reader), fingerprint)
