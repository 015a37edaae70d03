"""The annotator's task: RECCON causal emotion entailment (Poria et al. 2021), trained on a fold, measured on pairs."""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from torch import Tensor

from empatheia.config import Recipe, StageConfig, validate_model_fields
from empatheia.corpora import reccon_pairs, sample
from empatheia.corpora.reccon import load as load_reccon
from empatheia.errors import ConfigError
from empatheia.resources import resolve_model
from empatheia.training.stages import StageData
from empatheia.understanding.cause_entailment import (
    CauseEntailment,
    CauseEntailmentConfig,
    EntailmentCollator,
    EntailmentDataset,
    EntailmentItem,
    annotate,
    best_threshold,
    evaluate_pairs,
    items_from_reccon,
)


class EntailTask:
    """Trains and measures a :class:`CauseEntailment` model."""

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        if recipe.encoder is None:
            raise ConfigError(f"recipe {recipe.name!r}: task `entail` needs `encoder`, a folder or name of an encoder.")
        if recipe.data.fold != 1:
            raise ConfigError(f"recipe {recipe.name!r}: data.fold={recipe.data.fold}; only fold 1 trains an annotator.")
        accepted = [p for p in inspect.signature(CauseEntailmentConfig).parameters if p != "kwargs"]
        validate_model_fields(recipe.model, accepted, f"recipe {recipe.name!r}")
        self.recipe = recipe
        self.encoder_folder = str(resolve_model(recipe.encoder))
        self.model, self.tokenizer = CauseEntailment.from_encoder(self.encoder_folder, **recipe.model)
        self.collator = EntailmentCollator(self.tokenizer, self.model.config.form)
        self._items: dict[str, list[EntailmentItem]] = {}

    def _root(self) -> Path | None:
        return sample.root() if self.recipe.data.corpus == "sample" else None

    def items(self, split: str) -> list[EntailmentItem]:
        """Targets of a split with their histories and gold labels."""
        if split not in self._items:
            corpus = load_reccon(split, root=self._root())
            limit = getattr(self.recipe.data, f"{split}_limit")
            notes = corpus.annotations[:limit] if limit else corpus.annotations
            self._items[split] = items_from_reccon(corpus.dialogues, notes)
        return self._items[split]

    def stage_data(self, stage: StageConfig) -> StageData:
        """RECCON train and valid, fold 1."""
        train = EntailmentDataset(self.items("train"), self.tokenizer, self.model.config)
        valid = EntailmentDataset(self.items("valid"), self.tokenizer, self.model.config)
        return StageData(train, train.lengths, valid, valid.lengths, self.collator)

    def read_weights(self, folder: Path) -> dict[str, Tensor]:
        """Weights saved after a stage."""
        return load_file(folder / "model.safetensors")

    def save(self, folder: Path) -> None:
        """Model (threshold chosen on valid) and tokenizer.

        They load with ``CauseEntailment.from_pretrained`` and ``AutoTokenizer``.
        """
        notes = annotate(self.model, self.tokenizer, self.items("valid"))
        self.model.config.threshold = best_threshold(notes, self._pairs("valid")).threshold
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        meta = {"format": 1, "system": "cause_entailment", "name": self.recipe.name, "seed": self.recipe.seed}
        (folder / "empatheia.json").write_text(json.dumps(meta, indent=2), encoding="utf-8")

    def _pairs(self, split: str) -> list[reccon_pairs.Pair]:
        known = {(item.dialogue_id, item.target) for item in self.items(split)}
        corpus = load_reccon(split, root=self._root())
        return [p for p in reccon_pairs.pairs(corpus, fold=1) if (p.dialogue_id, p.target) in known]

    def evaluate(self, split: str, outputs: Path | None) -> dict[str, Any]:
        """Pair F1 on fold 1 at threshold 0.5, and at the threshold chosen on the validation pairs."""
        notes = {}
        pairs = {}
        for name in ("valid", split):
            notes[name] = annotate(self.model, self.tokenizer, self.items(name))
            pairs[name] = self._pairs(name)
        tuned = best_threshold(notes["valid"], pairs["valid"]).threshold
        scores: dict[str, Any] = {}
        for label, threshold in (("0.5", 0.5), ("tuned on valid", tuned)):
            result = evaluate_pairs(notes[split], pairs[split], threshold)
            scores[f"fold1 pairs, threshold {label}"] = {
                field: getattr(result, field) for field in result.__dataclass_fields__
            }
        if outputs is not None:
            outputs.write_text(_lines(notes[split]), encoding="utf-8")
        return scores

    def data_record(self) -> dict[str, Any]:
        """Targets per split."""
        return {"reccon": {split: len(items) for split, items in self._items.items()}}


def _lines(notes: Sequence[Any]) -> str:
    return "".join(
        json.dumps({"id": n.dialogue_id, "target": n.target, "turns": n.turns, "p": n.probabilities}) + "\n"
        for n in notes
    )
