"""Emotion distributions of a trained responder, written as the file that ``data.emotion_teacher`` names.

A small reasoner learns from a larger one's distribution over the 32 emotions (Hinton et al. 2015) for each training
context and situation: the loss ``emotion_teacher``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from empatheia.errors import CheckpointError
from empatheia.reading import read_record
from empatheia.settings import merge
from empatheia.writing import WRITE_PROBLEMS, cannot_write, whole_file
from empatheia_research.recipes.recipe import load_recipe, validate_recipe
from empatheia_research.text.collation import EncodedExample
from empatheia_research.training.evaluation import measure
from empatheia_research.training.tasks.respond import RespondTask


def teacher_key(item: EncodedExample) -> str:
    """What an item is called in a teacher's file: dialogue and target turn (-1 = the situation)."""
    return f"{item.dialogue_id}#{item.turn_index}"


def load_run(folder: str | Path) -> RespondTask:
    """A responder's run, finished or not, with the weights of its last finished stage.

    Raises:
        CheckpointError: No recipe in the folder, or no stage is finished.
    """
    folder = Path(folder)
    if not (folder / "recipe.yaml").is_file() or not (folder / "state.json").is_file():
        raise CheckpointError(f"{folder} is not a run folder with a finished stage; make one with `empatheia train`.")
    recipe = load_recipe(folder / "recipe.yaml")
    task = RespondTask(recipe, folder)
    done = read_record(folder / "state.json")["stages"]
    last = [stage.name for stage in recipe.stages if stage.name in done]
    if not last:
        raise CheckpointError(f"{folder}: no stage of {recipe.name} is finished; continue it with `empatheia train`.")
    task.model.load_state_dict(task.read_weights(folder / "stages" / last[-1]))
    return task


def teacher_items(task: RespondTask, splits: Sequence[str]) -> list[EncodedExample]:
    """Every context and situation of the splits, without replies."""
    tree = task.recipe.model_dump(mode="json")
    tree["data"] = merge(tree["data"], {"situations": True, "target": "none", "causes": "none", "spans": "none"})
    data = validate_recipe(tree, f"recipe {task.recipe.name!r}").data
    items = []
    for split in splits:
        items += task.encode(data, split, with_extras=False)
    return items


def emotion_distributions(
    task: RespondTask,
    items: Sequence[EncodedExample],
    *,
    progress: Callable[[int, int], None] | None = None,
    chunk: int = 4096,
) -> torch.Tensor:
    """The model's distribution over the 32 emotions of each item. Shape: ``(n, 32)``.

    Raises:
        CheckpointError: The model has no emotion head.
    """
    rows: list[Any] = []
    for start in range(0, len(items), chunk):
        made = measure(task.model, items[start : start + chunk], task.tokenizer.pad_id, max_tokens=4096)
        if made.emotion_probabilities is None:
            raise CheckpointError(f"{task.recipe.name} has no emotion head, so it cannot teach one.")
        rows.append(torch.from_numpy(made.emotion_probabilities).float())
        if progress is not None:
            progress(min(start + chunk, len(items)), len(items))
    return torch.cat(rows)


def write_teacher(
    path: str | Path, items: Sequence[EncodedExample], probabilities: torch.Tensor, origin: str
) -> dict[str, object]:
    """Writes ``probabilities`` (n, 32) with the keys of the items, whole or not at all."""
    path = Path(path)
    metadata = {"keys": json.dumps([teacher_key(item) for item in items]), "origin": origin}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as part:
            save_file({"probabilities": probabilities.half().contiguous()}, str(part), metadata)
    except WRITE_PROBLEMS as problem:
        raise cannot_write(path, problem) from None
    return {"distributions": len(items), "file": str(path), "origin": origin}
