"""A finished perception run made into the folder that is bundled: the model, its numbers, its card."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np
from safetensors.numpy import save_file

from empatheia.analysis.perceptions import open_perception
from empatheia.errors import CheckpointError
from empatheia.perceive.affect import Perceiving
from empatheia.perceive.model_file import FACTS, GRAPH
from empatheia.reading import read_record
from empatheia.resources import resolve_model
from empatheia.resources.arrays import load_arrays
from empatheia.settings import read_yaml
from empatheia.writing import save_folder
from empatheia_research.corpora import everyday, sample
from empatheia_research.recipes.recipe import Recipe, validate_recipe
from empatheia_research.training.release import finished_record
from empatheia_research.training.tasks.perceive import OUTSIDE, perception_scores
from empatheia_research.understanding.affect.reader import ADAPTER
from empatheia_research.understanding.affect.states import JoinedAffect, StatesOfTurns

_INSIDE = {
    "affect_states": "one hidden layer on its states, in half precision",
    "affect_reader": "low-rank updates and heads alone, in half precision",
    "None": "low-rank updates and heads alone, in half precision",
}


class PerceptionCard(TypedDict):
    """What the card of a packaged perception tells.

    Attributes:
        name, description: As given.
        recipe, size, seed, note, training_seconds, environment, data, metrics, parameters: Of the run's record.
        licence: Of the weights.
        base: The encoder under it, which is not inside.
        system: Of two layers; missing where there is one.
    """

    name: str
    description: str
    recipe: str
    size: str
    seed: int
    note: str
    training_seconds: float
    environment: dict[str, Any]
    data: dict[str, Any]
    metrics: dict[str, Any]
    parameters: int
    licence: str
    base: str
    system: NotRequired[str]


class PerceptionFolder:
    """A perception's model folder, opened for measuring.

    Args:
        folder: A run's checkpoint, or a packaged folder.

    Raises:
        CheckpointError: Something is missing in it.
        MissingResourceError: Its base encoder is not here.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        weights = _weights_of(self.folder)
        for name in ("empatheia.json", "recipe.yaml", FACTS if weights == GRAPH else "config.json", weights):
            if not (self.folder / name).is_file():
                raise CheckpointError(
                    f"{self.folder} has no {name}; give a run folder's checkpoint/ or a model folder."
                )
        self.meta = read_record(self.folder / "empatheia.json")
        place = self.folder / "recipe.yaml"
        self.recipe: Recipe = validate_recipe(read_yaml(place), str(place))
        self.affect = self._opened()

    def _opened(self) -> Perceiving:
        if self.meta.get("system") != "affect_states":
            return open_perception(self.folder)
        second, beside = StatesOfTurns.load(self.folder), self.meta.get("beside")
        return second if beside is None else JoinedAffect(open_perception(resolve_model(beside)), second)

    def evaluate(self, split: str = "test", outputs: Path | None = None) -> dict[str, object]:
        """Scores of :func:`empatheia_research.training.tasks.perceive.perception_scores`; the card's are these."""
        is_sample = self.recipe.data.corpus == "sample"
        items = everyday.items(split, sample.root() / everyday.NAME if is_sample else None)
        return perception_scores(self.affect.read, split, items, outputs, () if is_sample else OUTSIDE)


def _weights_of(folder: Path) -> str:
    """The name of the file of weights: what the folder says, low-rank updates where it says nothing."""
    try:
        return str(read_record(folder / "empatheia.json").get("weights") or ADAPTER)
    except (OSError, ValueError):
        return ADAPTER


def package_perception(run: Path, target: Path, name: str, description: str = "") -> PerceptionCard:
    """Makes a model folder from a finished run: the model in half precision, and its card from the record.

    Args:
        run: Run folder of task ``perceive``.
        target: New model folder.
        name: What the model calls itself.
        description: First paragraph of the card.

    Raises:
        CheckpointError: The run is not finished.
    """
    record = finished_record(run)
    meta = read_record(run / "checkpoint" / "empatheia.json") | {"name": name}
    fields = ("recipe", "size", "seed", "note", "training_seconds", "environment", "data", "metrics")
    told: dict[str, Any] = {field: record.get(field) for field in fields}
    card = PerceptionCard(
        name=name,
        description=description,
        **told,
        parameters=record["parameters"],
        licence=meta["licence"],
        base=meta["base"],
    )
    if meta.get("system") == "affect_states":
        card["system"] = meta["system"]

    def fill(folder: Path) -> None:
        for path in (run / "checkpoint").iterdir():
            if path.is_file():
                (folder / path.name).write_bytes(path.read_bytes())
        if meta.get("system") == "affect_states":
            _halve(folder / meta["weights"])
        (folder / "empatheia.json").write_text(json.dumps(meta, indent=2), encoding="utf-8")
        (folder / "card.json").write_text(json.dumps(card, indent=1, ensure_ascii=False), encoding="utf-8")
        (folder / "README.md").write_text(card_text(card), encoding="utf-8")

    save_folder(target, fill)
    return card


def _halve(path: Path) -> None:
    """Rounds weights to half precision, but not how states are standardised: a mean may be far from its deviation."""
    arrays = load_arrays(path)
    halved = {name: own if name in ("mean", "deviation") else own.astype(np.float16) for name, own in arrays.items()}
    save_file(halved, path, metadata={"format": "pt"})


def score_rows(metrics: Mapping[str, object]) -> list[tuple[str, str, str, int]]:
    """Printed rows of measured scores: label, value, 95 % interval, n (0 where a score is a bare number)."""
    rows = []
    for label, score in metrics.items():
        if isinstance(score, int | float):
            rows.append((label, f"{score:.2f}", "", 0))
        elif isinstance(score, dict) and isinstance(score.get("value"), int | float):
            interval = score.get("interval")
            factor = 100.0 if score.get("unit") == "fraction" else 1.0
            text = " to ".join(f"{factor * value:.1f}" for value in interval) if interval else ""
            rows.append((label, f"{factor * score['value']:.2f}", text, int(score.get("n") or 0)))
    return rows


def card_text(card: PerceptionCard) -> str:
    """The model card in Markdown, from the record alone."""
    environment = card["environment"]
    lines = [
        f"# {card['name']}",
        "",
        card["description"] or card["note"],
        "",
        f"- **Licence of the weights:** {card['licence']} (EmpatheticDialogues is in the training data).",
        f"- **Recipe:** `{card['recipe']}`, size `{card['size']}`, seed {card['seed']},"
        f" commit `{environment['commit'][:12]}`.",
        f"- **Base:** `{card['base']}`, not inside: {_INSIDE[str(card.get('system'))]}.",
        f"- **Trained:** {card['training_seconds'] / 60:.0f} minutes on {environment['device']}.",
        "- **Chosen on validation data:** temperatures of emotion and side, the threshold of cause words.",
        "",
        "## Data",
        "",
        card["note"],
        "",
        "## Numbers",
        "",
        "Percent; intervals are 95 % bootstrap over items; one seed. `acceptable`: the likeliest label is one that a"
        " careful reader accepts. `side`: the likelier of pleasant and unpleasant is right, where the gold side is one"
        " of these. `unnamed`: texts that name no feeling. `six`: six emotions of another corpus, by sums of the 32.",
        "",
        "| metric | value | 95 % interval | n |",
        "|---|---|---|---|",
        *(
            f"| {label} | {value} | {low_high} | {n or ''} |"
            for label, value, low_high, n in score_rows(card["metrics"])
        ),
        "",
        "## Failure modes",
        "",
        "- Irony and understatement are often read at face value.",
        "- Labels near each other (angry and furious, afraid and terrified) are swapped; read the probabilities.",
        "- English only, and mostly the Englishes its writers knew. Emoji are not understood.",
        "- By itself it does not recognise a crisis; `empatheia.care` stands in front of its answers, and misses some.",
        "",
    ]
    return "\n".join(lines)
