"""The task of MEED2's predictor (Xie and Pu 2021): the label of the next turn of EmpatheticDialogues.

All labels, those to be predicted too, are a classifier's and not people's.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from transformers import AutoTokenizer
from transformers import PreTrainedTokenizerBase as Tokenizer

from empatheia.errors import DataError
from empatheia.metrics.base import Metric
from empatheia.metrics.classification import F1, Accuracy, CalibrationError
from empatheia.metrics.published import published
from empatheia.records.dialogue import Dialogue
from empatheia.resources import resolve_model
from empatheia.taxonomy import LABELS_41
from empatheia_research.corpora import sample
from empatheia_research.corpora.licences import licence_text
from empatheia_research.corpora.loading import SPLITS
from empatheia_research.corpora.turn_labels import LabelledTurns, load_released, read_turn_labels
from empatheia_research.pretrained import load_pretrained
from empatheia_research.recipes.data import AnticipateData
from empatheia_research.recipes.recipe import StageConfig
from empatheia_research.training.evaluation import N_RESAMPLES
from empatheia_research.training.sources import CorpusSource, folder_of
from empatheia_research.training.tasks.base import Task, counted, scored, write_rows
from empatheia_research.understanding.labels.next_label import (
    ContextReader,
    NextTurn,
    ReactionPredictor,
    ReactionPredictorConfig,
    predict,
)

PUBLISHED_ROWS = ("Random", "MEED2 (OS)", "MEED2 (OS → EDOS)", "MEED2 (OS → ED)")
ONE_TURN_SEED = 2021
ONE_TURN_DIALOGUES = 2_000


class AnticipateTask(Task):
    """Trains and measures a :class:`ReactionPredictor`, on a pretrained encoder or from scratch."""

    data: AnticipateData

    def build(self) -> None:
        """On the recipe's encoder, or from scratch."""
        self.source = CorpusSource(self.data.corpus)
        self.check_fields(ReactionPredictorConfig, more=("encoder_config",))
        self._labels: dict[str, LabelledTurns] = {}
        self._items: dict[str, list[NextTurn]] = {}
        self._skipped: dict[str, int] = {}
        recipe, fields = self.recipe, dict(self.recipe.model)
        described = fields.pop("encoder_config", None)
        if recipe.encoder is not None:
            self.model, self.reader = ReactionPredictor.from_encoder(str(resolve_model(recipe.encoder)), **fields)
            return
        if not isinstance(described, dict):
            raise self.refusal(
                "without `encoder` the model is trained from scratch and needs model.encoder_config (with its"
                " model_type)."
            )
        tokenizer = self._tokenizer(int(fields.get("max_pieces", 100)))
        sizes = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
        self.model = ReactionPredictor(ReactionPredictorConfig(encoder_config={**described, **sizes}, **fields))
        self.reader = ContextReader(tokenizer, self.model.config)

    def _tokenizer(self, max_pieces: int) -> Tokenizer:
        """Of another model (published: RoBERTa's), or pieces learnt from the training turns."""
        if self.data.pieces is None:
            return self.learnt_pieces(
                lambda: [turn.text for d in self.source.dialogues("train", self.data) for turn in d.turns], max_pieces
            )
        folder = resolve_model(self.data.pieces)
        return load_pretrained(
            AutoTokenizer, folder, f"data.pieces: no tokenizer in {str(folder)!r}", "Give a folder with tokenizer.json."
        )

    # -- data ------------------------------------------------------------------------------------------------

    def labels(self, data: AnticipateData | None = None) -> LabelledTurns:
        """Labels of the turns, and the model that made them."""
        name = (data or self.data).labels
        if name not in self._labels:
            released = name == "released"
            self._labels[name] = load_released(folder_of(self.data.corpus)) if released else read_turn_labels(name)
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
            dialogues = self.source.dialogues(split, data)
            found = [item for d in dialogues for item in next_turns(d, labels.of(d), data.roles)]
            if not found:
                raise DataError(f"{labels.path}: no label for any turn of the {split} split of {data.corpus}.")
            self._items[key] = found
        return self._items[key]

    def rows(self, split: str, data: AnticipateData, stage: StageConfig) -> list[dict[str, Any]]:
        """Of the wanted turns; those whose context is cut are left out where the recipe says so."""
        rows = self.reader.encode(self.items(split, data))
        if data.overlong == "skip":
            kept = [row for row in rows if row["is_whole"]]
            self._skipped[split] = len(rows) - len(kept)
            rows = kept
        return rows

    def facts(self) -> dict[str, object]:
        """``ReactionToTurns.load`` reads them."""
        facts: dict[str, object] = {"part": "reaction", "labels": list(LABELS_41), "turn_labels": self.labels().model}
        return facts | {"licence": licence_text(self.data.corpus)}

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
        write_rows(outputs, map(_row, items, found))
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
        for split in SPLITS:
            unlabelled = sum(self.labels().of(d) is None for d in self.source.dialogues(split, self.data))
            record[split] = {
                **counted([f"{item.dialogue_id}\t{item.turn}\t{item.label}\n" for item in self.items(split)]),
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
    return {name: scored(name, *values, n_resamples=n_resamples) for name, values in metrics.items()}


def _row(item: NextTurn, probabilities: np.ndarray) -> dict[str, object]:
    best = np.argsort(-probabilities, kind="stable")[:5]
    return {
        "id": item.dialogue_id,
        "turn": item.turn,
        "gold": item.label,
        "predicted": LABELS_41[best[0]],
        "probabilities": {LABELS_41[i]: round(float(probabilities[i]), 4) for i in best},
    }
