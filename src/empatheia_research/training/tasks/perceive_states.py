"""The task of the second look: emotions and sides by states of a frozen language model, mixed with a perception.

The lessons are those of :mod:`empatheia_research.training.tasks.perceive`. The language model reads each of them
once; its states are kept in the run folder, so epochs cost next to nothing and a stopped run goes on. How much the
second look says in the mixture is found on validation data, half everyday texts and half EmpatheticDialogues, by the
likelihood of the labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM

from empatheia.analysis.perceptions import open_perception
from empatheia.perceive.affect import Affect, Perceiving
from empatheia.records.dialogue import Turn
from empatheia.resources import resolve_model
from empatheia.taxonomy import EMOTIONS, SIDES
from empatheia.writing import save_folder
from empatheia_research.pretrained import build_pretrained
from empatheia_research.recipes.recipe import Recipe, StageConfig
from empatheia_research.text.prompt_pieces import train_prompt_pieces
from empatheia_research.training.evaluation import fit_temperature
from empatheia_research.training.stages import StageData
from empatheia_research.training.tasks.perceive import Lesson, PerceiveTask, everyday_items, perception_scores
from empatheia_research.understanding.affect.states import (
    AffectStates,
    AffectStatesConfig,
    JoinedAffect,
    StatePieces,
    StatesOfTurns,
    joined,
    tempered,
    weights_checksum,
)
from empatheia_research.understanding.labels.classifier import Row

SHARES = tuple(share / 20 for share in range(21))
"""Of the second look in the mixture, of which the best on validation data is taken."""
_NO_FIELDS = ("labels", "base", "base_checksum", "base_width", "softmax_temperature", "side_temperature", "share")
_NO_FIELDS += ("joined_temperature",)


class PerceiveStatesTask(PerceiveTask):
    """Trains and measures an :class:`AffectStates`."""

    systems = ("affect_states",)

    def build(self) -> None:
        """On states of the recipe's language model, or of one with random weights."""
        recipe = self.recipe
        self.beside: str | None = recipe.data.beside
        self.check_fields(AffectStatesConfig, _NO_FIELDS, [] if recipe.encoder is not None else ["base_config"])
        if recipe.start is not None:
            raise self.refusal("a second look trains in a minute and always starts from scratch; drop start.")
        fields = {name: value for name, value in recipe.model.items() if name != "base_config"}
        base = recipe.encoder if recipe.encoder is not None else str(self._made_base(recipe))
        config = AffectStatesConfig(EMOTIONS, base=base, base_checksum=weights_checksum(base), **fields)
        self.reader = StatePieces.load(config, self.folder / "states")
        config.base_width = int(self.reader.base.config.hidden_size)
        torch.manual_seed(recipe.seed)
        self.model = AffectStates(config)
        self._first: Perceiving | None = None

    def _made_base(self, recipe: Recipe) -> Path:
        """A language model of random weights, for a run without one."""
        place = self.folder / "base"
        if not place.is_dir():
            pieces = train_prompt_pieces(self._texts(), recipe.tokenizer.size)
            settings = {"vocab_size": len(pieces), **dict(recipe.model["base_config"])}
            torch.manual_seed(recipe.seed)

            def fill(folder: Path) -> None:
                from transformers import AutoConfig

                config = AutoConfig.for_model(settings.pop("model_type"), **settings)
                build_pretrained(AutoModelForCausalLM, config).save_pretrained(folder)
                pieces.save_pretrained(folder)

            save_folder(place, fill)
        return place

    def encode(self, lessons: Sequence[Lesson]) -> list[Row]:
        """Lessons as the model reads them, with targets; those without an emotion and a side are left out."""
        taught_ones = [lesson for lesson in lessons if lesson.emotions or lesson.sides]
        rows = self.reader.encode([lesson.turns for lesson in taught_ones])
        for row, lesson in zip(rows, taught_ones, strict=True):
            self.add_targets(row, lesson)
        return rows

    def stage_data(self, stage: StageConfig) -> StageData:
        """As of :class:`PerceiveTask`; the states of what is learnt from also say how they are standardised."""
        data = super().stage_data(stage)
        self.model.standardise(np.stack([row["states"] for row in data.train]))
        return data

    def calibrate(self) -> None:
        """The temperatures, and the network's share in the mixture."""
        config = self.model.config
        config.softmax_temperature = config.side_temperature = config.joined_temperature = 1.0
        items = everyday_items("valid", self.data)
        told = self.told(len(items))
        turns = [*(item.dialogue.turns for item in items), *(own for own, _ in told)]
        labels = [*(str(item.dialogue.emotion) for item in items), *(label for _, label in told)]
        gold = [EMOTIONS.index(label) for label in labels]
        emotions, sides = StatesOfTurns(self.model, self.reader).probabilities(turns)
        config.softmax_temperature = fit_temperature(emotions, gold)
        config.side_temperature = fit_temperature(sides[: len(items)], [SIDES.index(item.side) for item in items])
        first = self.first()
        if first is not None:
            one = np.stack([felt.emotions for felt in first.read(turns)])
            two = tempered(emotions, config.softmax_temperature)
            config.share = best_share(one, two, gold)
            config.joined_temperature = fit_temperature(joined(one, two, config.share), gold)

    def save_model(self, folder: Path) -> None:
        """The network."""
        self.model.save_pretrained(folder)

    def save_reader(self, folder: Path) -> None:
        """Nothing: the pieces are the base's."""

    def facts(self) -> dict[str, object]:
        """``StatesOfTurns.load`` reads them."""
        config = self.model.config
        facts = {"part": "affect", "emotions": list(EMOTIONS), "temperature": config.joined_temperature}
        facts |= {"licence": self.licence(), "weights": "model.safetensors", "base": config.base}
        return facts | {"share": config.share, "beside": self.beside}

    def first(self) -> Perceiving | None:
        """The perception it is mixed with, loaded once; None where the recipe names none."""
        if self._first is None and self.beside is not None:
            self._first = open_perception(resolve_model(self.beside))
        return self._first

    def _read(self, conversations: Sequence[Sequence[Turn]], *, spans: bool = False) -> list[Affect]:
        second = StatesOfTurns(self.model, self.reader)
        first = self.first()
        both = second if first is None else JoinedAffect(first, second)
        return both.read(conversations, spans=spans)

    def evaluate(self, split: str, outputs: Path | None) -> dict[str, object]:
        """Of the mixture (see :func:`perception_scores`); of the everyday part also ``alone: ...``, the second only."""
        scores = super().evaluate(split, outputs)
        if self.beside is None:
            return scores
        alone = StatesOfTurns(self.model, self.reader).read
        own = perception_scores(alone, split, everyday_items(split, self.data), None, ())
        scores |= {f"alone: {name}": _renamed(score, f"alone: {name}") for name, score in own.items()}
        return {**scores, "share of the second look": self.model.config.share}


def best_share(first: np.ndarray, second: np.ndarray, gold: Sequence[int]) -> float:
    """The share of the second look with the highest likelihood of the labels, each mixture at its own temperature.

    Args:
        first: Probabilities. Shape: (items, classes).
        second: Likewise.
        gold: Index of each item's label.
    """
    places = np.arange(len(gold))

    def nats(share: float) -> float:
        mixed = joined(first, second, share)
        mixed = tempered(mixed, fit_temperature(mixed, gold))
        return float(-np.log(np.clip(mixed[places, list(gold)], 1e-9, None)).mean())

    return min(SHARES, key=nats)


def _renamed(score: Any, name: str) -> Any:
    return {**score, "name": name} if isinstance(score, dict) else score
