"""The task of MEED2's predictor (Xie and Pu 2021): the label of the next turn of EmpatheticDialogues.

All labels, those to be predicted too, are a classifier's and not people's.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor
from transformers import AutoTokenizer, PreTrainedTokenizerFast
from transformers import PreTrainedTokenizerBase as Tokenizer

from empatheia.config import AnticipateData, Recipe, StageConfig, stage_data_config, validate_model_fields
from empatheia.corpora import CORPORA, sample
from empatheia.corpora.licences import licence_text
from empatheia.corpora.turn_labels import LabelledTurns, load_released, read_turn_labels
from empatheia.dialogue import Dialogue
from empatheia.errors import ConfigError, DataError
from empatheia.metrics.base import Metric
from empatheia.metrics.classification import F1, Accuracy, CalibrationError
from empatheia.metrics.published import published
from empatheia.resources import load_pretrained, load_weights, resolve_model
from empatheia.taxonomy import LABELS_41
from empatheia.training.evaluation import N_RESAMPLES
from empatheia.training.saving import save_understander
from empatheia.training.stages import StageData
from empatheia.understanding.labels.next_label import (
    ContextReader,
    NextTurn,
    ReactionPredictor,
    ReactionPredictorConfig,
    predict,
)
from empatheia.understanding.labels.utterance_classifier import train_pieces
from empatheia.writing import save_folder

PUBLISHED_ROWS = ("Random", "MEED2 (OS)", "MEED2 (OS → EDOS)", "MEED2 (OS → ED)")
ONE_TURN_SEED = 2021
ONE_TURN_DIALOGUES = 2_000


class AnticipateTask:
    """Trains and measures a :class:`ReactionPredictor`, on a pretrained encoder or from scratch."""

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        self.recipe = recipe
        self.folder = folder
        self.data: AnticipateData = recipe.data
        CORPORA.target(self.data.corpus)  # an unknown name is refused before anything is built
        accepted = [p for p in inspect.signature(ReactionPredictorConfig).parameters if p != "kwargs"]
        validate_model_fields(recipe.model, accepted, f"recipe {recipe.name!r}")
        self._labels: dict[str, LabelledTurns] = {}
        self._items: dict[str, list[NextTurn]] = {}
        self._dialogues: dict[str, tuple[Dialogue, ...]] = {}
        self._skipped: dict[str, int] = {}
        self.model: Any
        self.model, self.reader = self._build()

    def _build(self) -> tuple[ReactionPredictor, ContextReader]:
        recipe, fields = self.recipe, dict(self.recipe.model)
        described = fields.pop("encoder_config", None)
        if recipe.encoder is not None:
            return ReactionPredictor.from_encoder(str(resolve_model(recipe.encoder)), **fields)
        if not isinstance(described, dict):
            raise ConfigError(
                f"recipe {recipe.name!r}: without `encoder` the model is trained from scratch and needs"
                " model.encoder_config (with its model_type)."
            )
        tokenizer = self._tokenizer(int(fields.get("max_pieces", 100)))
        sizes = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
        model = ReactionPredictor(ReactionPredictorConfig({**described, **sizes}, **fields))
        return model, ContextReader(tokenizer, model.config)

    def _tokenizer(self, max_pieces: int) -> Tokenizer:
        """Of another model (published: RoBERTa's), or pieces learnt from the training turns."""
        if self.data.pieces is None:
            place = self.folder / "tokenizer"
            if not place.is_dir():  # a resumed run and every other process must find the same pieces
                texts = [turn.text for dialogue in self.dialogues("train") for turn in dialogue.turns]
                save_folder(place, train_pieces(texts, self.recipe.tokenizer.size, max_pieces).save_pretrained)
            return load_pretrained(PreTrainedTokenizerFast, place)
        folder = resolve_model(self.data.pieces)
        return load_pretrained(
            AutoTokenizer, folder, f"data.pieces: no tokenizer in {str(folder)!r}", "Give a folder with tokenizer.json."
        )

    # -- data ------------------------------------------------------------------------------------------------

    def _root(self) -> Path | None:
        return sample.root() if self.data.corpus == sample.NAME else None

    def dialogues(self, split: str, data: AnticipateData | None = None) -> tuple[Dialogue, ...]:
        """Conversations of a split, up to its limit."""
        if split not in self._dialogues:
            self._dialogues[split] = CORPORA.get(self.data.corpus)(split).dialogues
        return self._dialogues[split][: getattr(data or self.data, f"{split}_limit")]

    def labels(self, data: AnticipateData | None = None) -> LabelledTurns:
        """Labels of the turns, and the model that made them."""
        name = (data or self.data).labels
        if name not in self._labels:
            self._labels[name] = load_released(self._root()) if name == "released" else read_turn_labels(name)
        return self._labels[name]

    def items(self, split: str, data: AnticipateData | None = None) -> list[NextTurn]:
        """Every turn but the first whose role is wanted and whose label is known, with all turns before it.

        Raises:
            DataError: No dialogue of the split has labels.
        """
        data = data or self.data
        key = f"{split} {data.model_dump_json()}"
        if key not in self._items:
            labels = self.labels(data)
            found = [item for d in self.dialogues(split, data) for item in next_turns(d, labels.of(d), data.roles)]
            if not found:
                raise DataError(f"{labels.path}: no label for any turn of the {split} split of {data.corpus}.")
            self._items[key] = found
        return self._items[key]

    def _rows(self, split: str, data: AnticipateData) -> list[dict[str, Any]]:
        rows = self.reader.encode(self.items(split, data))
        if data.overlong == "skip":
            kept = [row for row in rows if row["is_whole"]]
            self._skipped[split] = len(rows) - len(kept)
            rows = kept
        return rows

    def stage_data(self, stage: StageConfig) -> StageData:
        """Train and valid."""
        data: Any = stage_data_config(self.recipe, stage.data)
        rows = {split: self._rows(split, data) for split in ("train", "valid")}
        lengths = {split: [len(row["input_ids"]) for row in own] for split, own in rows.items()}
        return StageData(rows["train"], lengths["train"], rows["valid"], lengths["valid"], self.reader.collate)

    # -- saving ----------------------------------------------------------------------------------------------

    def read_weights(self, folder: Path) -> dict[str, Tensor]:
        """Weights saved after a stage."""
        return load_weights(folder / "model.safetensors")

    def save(self, folder: Path) -> None:
        """Model, tokenizer and record; ``ReactionToTurns.load`` reads them."""
        save_understander(
            folder,
            self.recipe,
            self.model,
            self.reader.save,
            part="reaction",
            labels=list(LABELS_41),
            turn_labels=self.labels().model,
            licence=licence_text(self.data.corpus),
        )

    # -- measuring -------------------------------------------------------------------------------------------

    def evaluate(self, split: str, outputs: Path | None) -> dict[str, object]:
        """Scores over three choices of turns, with the context's labels and without.

        ``precision_weighted``, ``recall_weighted`` (= accuracy), ``f1_weighted`` (fractions, as printed) over one
        turn a dialogue drawn at random, first 2,000 dialogues of a random order: MEED2's test, with other draws. Keys
        ``all: ...`` are over every turn but the first, ``listener: ...`` over replies only; ``no turn labels: ...``
        repeats the first without the labels of the context's turns.
        """
        both = self.data.model_copy(update={"roles": ("speaker", "listener")})
        items = self.items(split, both)
        rows = self.reader.encode(items)
        if self.data.overlong == "skip":
            items = [item for item, row in zip(items, rows, strict=True) if row["is_whole"]]
            self._skipped[split] = len(rows) - len(items)
        found = predict(self.model, self.reader, items)
        drawn = one_turn_a_dialogue(items)
        if outputs is not None:
            outputs.write_text("".join(_line(i, p) for i, p in zip(items, found, strict=True)), encoding="utf-8")
        chosen = [items[i] for i in drawn]
        replies = [i for i, item in enumerate(items) if item.role == "listener"]
        scores = reaction_scores(chosen, found[drawn])
        scores |= _named("all: ", reaction_scores(items, found))
        scores |= _named("listener: ", reaction_scores([items[i] for i in replies], found[replies]))
        if self.model.config.turn_labels:
            blind = predict(self.model, self.reader, chosen, use_labels=False)
            scores |= _named("no turn labels: ", reaction_scores(chosen, blind))
        scores |= self._majority_scores(chosen)
        scores["labels_by"] = self.labels().model
        if self.data.corpus != sample.NAME:
            printed = {row: published("meed2", "4", row, dataset="ED test (2000 dialogs)") for row in PUBLISHED_ROWS}
            scores["published"] = {
                row: {name: number.value for name, number in numbers.items()} for row, numbers in printed.items()
            }
        return scores

    def _majority_scores(self, chosen: Sequence[NextTurn]) -> dict[str, object]:
        """Of who always says the label that is commonest in training."""
        learnt = Counter(str(item.label) for item in self.items("train"))
        commonest = learnt.most_common(1)[0][0]
        constant = np.zeros((len(chosen), len(LABELS_41)))
        constant[:, LABELS_41.index(commonest)] = 1
        scores = reaction_scores(chosen, constant, n_resamples=0)
        return {f"majority ({commonest}): {key}": scores[key] for key in ("f1_weighted", "accuracy") if key in scores}

    def data_record(self) -> dict[str, object]:
        """Items per split with a checksum, dialogues without labels, contexts skipped for their length."""
        record: dict[str, object] = {"turn_labels": self.labels().model}
        for split in ("train", "valid", "test"):
            items = self.items(split)
            digest = hashlib.sha256("".join(f"{i.dialogue_id}\t{i.turn}\t{i.label}\n" for i in items).encode())
            unlabelled = sum(self.labels().of(d) is None for d in self.dialogues(split))
            record[split] = {
                "items": len(items),
                "sha256": digest.hexdigest()[:16],
                "dialogues_without_labels": unlabelled,
                "skipped_overlong": self._skipped.get(split, 0),
            }
        return {self.data.corpus: record}


def _named(start: str, scores: dict[str, Any]) -> dict[str, object]:
    """The same scores under longer names."""
    return {f"{start}{key}": value for key, value in scores.items()}


def next_turns(
    dialogue: Dialogue, labels: Sequence[str | None] | None, roles: Sequence[str] = ("speaker", "listener")
) -> list[NextTurn]:
    """Prefix expansion: n turns give n - 1 items; those of other roles or without a label are left out."""
    if labels is None:
        return []
    return [
        NextTurn(dialogue.turns[:i], tuple(labels[:i]), labels[i], dialogue.id, i, dialogue.turns[i].role)
        for i in range(1, len(dialogue.turns))
        if dialogue.turns[i].role in roles and labels[i] is not None
    ]


def one_turn_a_dialogue(items: Sequence[NextTurn], seed: int = ONE_TURN_SEED) -> list[int]:
    """Indices of one random item a dialogue, of at most 2,000 dialogues, in the order of the items.

    The same for any number of processes; another choice than the paper's, which is not published.
    """
    by_dialogue: dict[str, list[int]] = {}
    for i, item in enumerate(items):
        by_dialogue.setdefault(item.dialogue_id, []).append(i)
    generator = random.Random(seed)
    drawn = [generator.choice(own) for own in by_dialogue.values()]
    generator.shuffle(drawn)
    return sorted(drawn[:ONE_TURN_DIALOGUES])


def reaction_scores(
    items: Sequence[NextTurn], probabilities: np.ndarray, n_resamples: int = N_RESAMPLES
) -> dict[str, object]:
    """Accuracy and macro F1 in percent, weighted precision, recall and F1 as fractions, calibration error.

    Args:
        items: With gold labels.
        probabilities: Shape: (n, 41).
        n_resamples: Bootstrap replicates; 0 = no interval.
    """
    gold = [str(item.label) for item in items]
    said = [LABELS_41[i] for i in probabilities.argmax(-1)]
    metrics: dict[str, tuple[Metric, Any, Any]] = {
        f"{report}_weighted": (F1(LABELS_41, "weighted", report=report, unit="fraction"), said, gold)
        for report in ("precision", "recall", "f1")
    }
    truth = np.array([LABELS_41.index(label) for label in gold])
    metrics["accuracy"] = (Accuracy(), said, gold)
    metrics["accuracy_top5"] = (Accuracy(5), probabilities, truth)
    metrics["f1_macro"] = (F1(LABELS_41, "macro"), said, gold)
    metrics["calibration_error"] = (CalibrationError(), probabilities, truth)
    out = {}
    for name, (metric, first, second) in metrics.items():
        metric.update(first, second)
        out[name] = {**metric.compute(n_resamples=n_resamples).to_dict(), "name": name}
    return out


def _line(item: NextTurn, probabilities: np.ndarray) -> str:
    best = np.argsort(-probabilities, kind="stable")[:5]
    record = {
        "id": item.dialogue_id,
        "turn": item.turn,
        "gold": item.label,
        "predicted": LABELS_41[best[0]],
        "probabilities": {LABELS_41[i]: round(float(probabilities[i]), 4) for i in best},
    }
    return json.dumps(record) + "\n"
