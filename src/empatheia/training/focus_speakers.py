"""Who is measured by task ``focus``: a responder of a run or folder, or a language model, behind one face."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor
from transformers import GenerationMixin

from empatheia.checkpoints.manifest import read_manifest
from empatheia.checkpoints.open import open_folder
from empatheia.config import Recipe, validate_recipe
from empatheia.decoding.world_inputs import Encode
from empatheia.dialogue import Dialogue, Example, Turn
from empatheia.errors import CheckpointError, ConfigError
from empatheia.resources import file_sha256
from empatheia.responders import RESPONDERS
from empatheia.responders.language_model import LanguageModel
from empatheia.text.collation import IGNORED, pad_rows
from empatheia.text.prompt_pieces import PromptReader
from empatheia.text.prompts import read_reply
from empatheia.text.words import tokenize_words
from empatheia.training.prompting import PromptRun, PromptTask

_WEIGHTS = "model.safetensors"


@dataclass(frozen=True)
class Speaker:
    """A model that answers and can be focused.

    Attributes:
        name: For records.
        network: What ``generate()`` is called on, in evaluation mode.
        encode: Contexts as it reads them.
        labels: Replies as its pieces with their end mark, -100 behind. Shape of the answer: ``(n, longest)``.
        read: A row of ``generate()`` behind the prompt to the reply as a person reads it, and to its lower-case words
            with blanks between, which BLEU and Distinct read.
        marks: Start, end and padding, as arguments of ``generate()``.
        pieces: Kind and number of its pieces, for signatures.
        n_given: Leading pieces that every reply has, which are not scored.
        fingerprint: Of its weights; another one makes kept replies void.
    """

    name: str
    network: Any
    encode: Encode
    labels: Callable[[Sequence[str]], Tensor]
    read: Callable[[Sequence[int]], tuple[str, str]]
    marks: dict[str, Any]
    pieces: str
    n_given: int = 0
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
            f"{folder} is no model that can be focused ({' '.join(str(problem).split())[:120]}); give the run or model"
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
    opened = open_folder(folder, manifest, device)
    tokenizer, contexts = opened.tokenizer, opened.reader.contexts
    return Speaker(
        manifest.name,
        opened.network,
        contexts,
        contexts.labels,
        lambda row: (tokenizer.decode(row), tokenizer.decode(row, raw=True)),
        {
            "pad_token_id": tokenizer.pad_id,
            "bos_token_id": tokenizer.bos_id,
            "eos_token_id": tokenizer.eos_id,
            "decoder_start_token_id": tokenizer.bos_id,
        },
        f"{tokenizer.kind}-{len(tokenizer)}",
        fingerprint=fingerprint,
    )


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
    asked: dict[str, Any] = {
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
    model.eval().to(device)
    reader: PromptReader = task.reader
    anything = (Turn("speaker", "Hello."),)

    def encode(dialogues: Sequence[Dialogue]) -> dict[str, Tensor]:
        batch = reader.answering_batch([reader.encode(Example(dialogue.turns, None)) for dialogue in dialogues])
        return {name: tensor.long().to(model.device) for name, tensor in batch.items()}

    def labels(replies: Sequence[str]) -> Tensor:
        rows = [list(reader.encode(Example(anything, reply)).reply or ()) for reply in replies]
        return pad_rows(rows, IGNORED).to(model.device)

    def read(row: Sequence[int]) -> tuple[str, str]:
        start = 1 if reader.form == "seq2seq" else 0
        said = list(row[start:])
        end = next((i for i, piece in enumerate(said) if piece in reader.ends), len(said))
        reply = read_reply(reader.decode(said[:end]))
        return reply, " ".join(word.text for word in tokenize_words(reply))

    marks: dict[str, Any] = {"eos_token_id": reader.ends, "pad_token_id": reader.pad_id}
    if reader.form == "seq2seq":
        marks["decoder_start_token_id"] = reader.decoder_start
    n_given = reader.encode(Example(anything, "Hello.")).n_begin
    pieces = f"{reader.kind}-{len(reader)}"
    return Speaker(name, model.network, encode, labels, read, marks, pieces, n_given, fingerprint)
