"""The annotator's task: RECCON causal emotion entailment (Poria et al. 2021), trained on a fold, measured on pairs.

An annotator that also marks pieces (``spans: true``) is measured on the questions of causal span extraction as well.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from empatheia.config import Recipe, StageConfig, validate_model_fields
from empatheia.corpora import sample
from empatheia.corpora.licences import LICENCES
from empatheia.corpora.reccon import load as load_reccon
from empatheia.dialogue import CauseAnnotation
from empatheia.errors import ConfigError
from empatheia.metrics import METRICS
from empatheia.resources import load_weights, resolve_model
from empatheia.training.saving import save_understander
from empatheia.training.stages import StageData
from empatheia.training.tasks.span_scores import N_RESAMPLES, TUNED, best_null_threshold, marked_answers, span_scores
from empatheia.understanding.causes.entailment import (
    CauseEntailment,
    EntailmentCollator,
    EntailmentDataset,
    EntailmentItem,
    annotate,
    encode_joint,
    items_of_fold,
)
from empatheia.understanding.causes.entailment_scores import best_scores, question_cells, scores_at


class RecconTask:
    """What the two RECCON tasks share: a fold's items by split, the model folder, the counts.

    Args:
        recipe: Names ``encoder`` and, in ``data``, the fold and the folds it is tested on.
        model_class: Has ``from_encoder``.

    Raises:
        ConfigError: The recipe names no encoder, or ``model`` has an unknown field.
    """

    def __init__(self, recipe: Recipe, model_class: Any) -> None:
        if recipe.encoder is None:
            raise ConfigError(
                f"recipe {recipe.name!r}: task `{recipe.task}` needs `encoder`, a folder or name of an encoder."
            )
        accepted = [p for p in inspect.signature(model_class.config_class).parameters if p != "kwargs"]
        validate_model_fields(recipe.model, accepted, f"recipe {recipe.name!r}")
        self.recipe = recipe
        self.model, self.tokenizer = model_class.from_encoder(str(resolve_model(recipe.encoder)), **recipe.model)
        self._items: dict[tuple[str, int], list[EntailmentItem]] = {}
        self._unread: dict[tuple[str, int], dict[str, int]] = {}

    def items(self, split: str, fold: int | None = None) -> list[EntailmentItem]:
        """Targets of a split with their histories and gold labels, in the training fold or another."""
        fold = int(self.recipe.data.fold if fold is None else fold)
        if (split, fold) not in self._items:
            root = sample.root() if self.recipe.data.corpus == "sample" else None
            limit = getattr(self.recipe.data, f"{split}_limit")
            self._items[split, fold] = items_of_fold(load_reccon(split, root=root), fold, limit=limit)
        return self._items[split, fold]

    def read_weights(self, folder: Path) -> dict[str, Tensor]:
        """Weights saved after a stage."""
        return load_weights(folder / "model.safetensors")

    def write(self, folder: Path) -> None:
        """Model, tokenizer, ``empatheia.json`` and the resolved recipe."""
        data = self.recipe.data
        licence = LICENCES[data.corpus].licence
        save = self.tokenizer.save_pretrained
        save_understander(folder, self.recipe, self.model, save, part="causes", fold=data.fold, licence=licence)

    def data_record(self) -> dict[str, object]:
        """Rows and published pairs of each split and fold that was read, and what the model's length cut off.

        An unread turn counts as found not causal, so unread causes are misses before the model has said anything.
        """
        return {
            "reccon": {
                f"{split}, fold {fold}": {
                    "items": len(items),
                    "pairs": sum(1 for item in items for _ in item.questions()),
                    **self._cut_off(split, fold),
                }
                for (split, fold), items in self._items.items()
            }
        }

    def _cut_off(self, split: str, fold: int) -> dict[str, int]:
        """Labelled turns that joint rows have no room for, and the causes among them."""
        config = self.model.config
        if config.form != "joint" or not config.context:
            return {}
        if (split, fold) not in self._unread:
            items = self._items[split, fold]
            rows = encode_joint(items, self.tokenizer, config.max_pieces)
            lost = [
                label
                for item, row in zip(items, rows, strict=True)
                for label in (item.labels or ())[: row["first_turn"]]
            ]
            counts = {"unread_turns": sum(label >= 0 for label in lost), "unread_causes": lost.count(1)}
            self._unread[split, fold] = counts
        return self._unread[split, fold]


class EntailTask(RecconTask):
    """Trains a :class:`CauseEntailment` model on one fold and measures it on all."""

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        super().__init__(recipe, CauseEntailment)
        self.collator = EntailmentCollator(self.tokenizer, self.model.config.form)

    def stage_data(self, stage: StageConfig) -> StageData:
        """RECCON train and valid of the recipe's fold."""
        train = EntailmentDataset(self.items("train"), self.tokenizer, self.model.config)
        valid = EntailmentDataset(self.items("valid"), self.tokenizer, self.model.config)
        return StageData(train, train.lengths, valid, valid.lengths, self.collator)

    def save(self, folder: Path) -> None:
        """Model (threshold chosen on valid) and tokenizer.

        They load with ``CauseEntailment.from_pretrained`` and ``AutoTokenizer``.
        """
        self.model.config.threshold = self._best_threshold()
        self.write(folder)

    def _best_threshold(self) -> float:
        items = self.items("valid")
        return best_scores(question_cells(items, annotate(self.model, self.tokenizer, items))).threshold

    def evaluate(self, split: str, outputs: Path | None) -> dict[str, object]:
        """F1 over the published pairs of every test fold, at threshold 0.5 and at the one chosen on valid.

        Validation pairs are those of the fold it was trained on, so a row of the cross-fold table is one model. With a
        head for pieces also the span scores, at log-odds 0 and at those chosen on valid.
        """
        marks = bool(self.model.config.spans)
        valid = self.items("valid")
        notes = annotate(self.model, self.tokenizer, valid, threshold=0.0)  # a span for every turn
        tuned = best_scores(question_cells(valid, notes)).threshold
        odds = best_null_threshold(valid, marked_answers(valid, notes)) if marks else 0.0
        scores: dict[str, object] = {}
        for fold in self.recipe.data.test_folds:
            items = self.items(split, fold)
            notes = annotate(self.model, self.tokenizer, items, threshold=0.0)
            for label, threshold in (("0.5", 0.5), (TUNED, tuned)):
                scores[f"fold{fold} pairs, threshold {label}"] = pair_scores(items, notes, threshold)
            answers = marked_answers(items, notes) if marks else []
            for label, threshold in (("0", 0.0), (TUNED, odds)) if marks else ():
                scores[f"fold{fold} spans, threshold {label}"] = span_scores(items, answers, threshold)
            if outputs is not None:
                with outputs.open("a" if fold != self.recipe.data.test_folds[0] else "w", encoding="utf-8") as file:
                    file.write(_lines(notes, fold, tuned))
        return scores


def pair_scores(
    items: Sequence[EntailmentItem], notes: Sequence[CauseAnnotation], threshold: float
) -> dict[str, object]:
    """The plain numbers in percent, and under ``scores`` each F1 with its signature and bootstrap interval.

    The bootstrap draws pairs.
    """
    return cell_scores(question_cells(items, notes), threshold)


def cell_scores(cells: Sequence[tuple[float, int]], threshold: float) -> dict[str, Any]:
    """As :func:`pair_scores`, of (probability, gold label) cells."""
    plain = scores_at(cells, threshold)
    record: dict[str, object] = {name: getattr(plain, name) for name in plain.__dataclass_fields__}
    scores: dict[str, object] = {}
    for name in ("entailment_f1_positive", "entailment_f1_negative", "entailment_f1_macro"):
        metric = METRICS.get(name)()
        metric.update([int(p >= threshold) for p, _ in cells], [label for _, label in cells])
        scores[name] = metric.compute(n_resamples=N_RESAMPLES).to_dict()
    return record | {"scores": scores}


def _lines(notes: Sequence[CauseAnnotation], fold: int, threshold: float) -> str:
    rows = (
        {
            "fold": fold,
            "id": note.dialogue_id,
            "target": note.target,
            "turns": [turn for turn, p in enumerate(note.probabilities) if p >= threshold],
            "p": note.probabilities,
        }
        for note in notes
    )
    return "".join(json.dumps(row) + "\n" for row in rows)
