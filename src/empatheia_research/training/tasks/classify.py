"""The classifiers' task: an emotion or intent of one text; trained, calibrated on valid, measured on test.

Rashkin et al. (2019), table 9 (situations, ED and ED-cut), and the 41 classes of MEED2 (Xie and Pu 2021, section 3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from empatheia.errors import DataError
from empatheia.metrics.classification import F1, Accuracy, BatchMeanAccuracy, CalibrationError, confusion
from empatheia.records.dialogue import Dialogue
from empatheia.registry import nearest
from empatheia.resources import resolve_model
from empatheia.taxonomy import EMOTIONS, LABELS_41
from empatheia_research.corpora import CORPORA, conversations, empathetic_intents, esconv, labelled_texts, sample
from empatheia_research.corpora.licences import licence_text
from empatheia_research.corpora.loading import SPLITS, LoadedCorpus
from empatheia_research.recipes.data import ClassifyData
from empatheia_research.recipes.recipe import StageConfig
from empatheia_research.training.evaluation import fit_temperature
from empatheia_research.training.sources import folder_of
from empatheia_research.training.stages import StageData
from empatheia_research.training.tasks.base import Task, counted_splits, scored, write_rows
from empatheia_research.understanding.labels.classifier import Reader, Row, Text, classify_rows
from empatheia_research.understanding.labels.feature_classifier import (
    FeatureClassifier,
    FeatureClassifierConfig,
    FeatureReader,
    read_features,
)
from empatheia_research.understanding.labels.linear_classifier import LinearClassifier, LinearClassifierConfig
from empatheia_research.understanding.labels.utterance_classifier import (
    PieceReader,
    UtteranceClassifier,
    UtteranceClassifierConfig,
)

CONFIGS = {
    "utterance_classifier": UtteranceClassifierConfig,
    "linear_classifier": LinearClassifierConfig,
    "feature_classifier": FeatureClassifierConfig,
}
CORPORA_OF_LABELS: dict[int | str, tuple[str, ...]] = {
    41: (empathetic_intents.NAME, sample.NAME),
    "file": (labelled_texts.NAME,),
}
"""Corpora with a label for each text; the 32 emotions are those of conversations, of any registered corpus, and so are
labels of turns."""
LABELLED_TURNS = "labelled_turns"
"""Name of a file of conversations whose turns have labels, given by ``data.path``."""
_MADE_HERE = ("labels", "label_weights", "softmax_temperature", "reads", "words", "lowercase")
_BATCH = 32  # of the released classifier, for its mean over batches


@dataclass(frozen=True, slots=True)
class LabelledText:
    """One item.

    Attributes:
        id: Of the item in its corpus.
        text: What the model reads.
        label: Index of the gold label.
        row: Place among all items of the split, before any is left out; the row of a feature file.
    """

    id: str
    text: Text
    label: int
    row: int

    @property
    def words(self) -> str:
        """The text in one string; turns are joined by line breaks."""
        return self.text if isinstance(self.text, str) else "\n".join(turn.text for turn in self.text)


class ClassifyTask(Task):
    """Trains and measures one of the three classifiers a recipe can name."""

    systems = tuple(CONFIGS)
    fixed = ("corpus", "labels")
    data: ClassifyData

    def build(self) -> None:
        """The system's model, its labels and what reads for it."""
        self._check_labels()
        self.labels = self._label_names()
        self._items: dict[str, list[LabelledText]] = {}
        self._features: dict[str, np.ndarray] | None = None
        self.model, self.reader = self._build()

    def _check_labels(self) -> None:
        """Whether corpus, labels and text go together.

        Raises:
            ConfigError: They do not.
        """
        data = self.data
        known = tuple(name for name in CORPORA.names() if name != empathetic_intents.NAME)
        known += (LABELLED_TURNS,) if data.labels == "turns" else ()
        if data.corpus not in CORPORA_OF_LABELS.get(data.labels, known):
            raise self.refusal(
                f"data.corpus={data.corpus} with data.labels={data.labels}; accepted: a corpus of"
                " conversations with emotions (empathetic_dialogues, sample, own) with 32, empathetic_intents or sample"
                " with 41, labelled_texts with file, a corpus with labels of turns (esconv, labelled_turns) with turns."
            )
        if (data.path is not None) != (data.labels == "file" or data.corpus == LABELLED_TURNS):
            raise self.refusal(
                f"data.path={data.path!r} with data.labels={data.labels}; the path goes with labels=file or"
                f" corpus={LABELLED_TURNS}, which need it."
            )
        if data.labels == 41 and data.text == "context":
            raise self.refusal(
                "data.text=context with data.labels=41; the 41 labels are of single texts, accepted: utterance."
            )
        if data.labels == "turns" and data.text == "situation":
            raise self.refusal(
                "data.text=situation with data.labels=turns; accepted: utterance, the labelled turn alone, or"
                " context, the turns before it."
            )

    # -- model -----------------------------------------------------------------------------------------------

    def _label_names(self) -> tuple[str, ...]:
        if self.data.labels == "turns":
            found = {label for split in SPLITS for _, _, label in self._labelled_turns(split, self.data)}
            if len(found) < 2:
                told = f"only {min(found)!r}" if found else "none"
                raise DataError(
                    f"recipe {self.recipe.name!r}: the turns of {self.data.path or self.data.corpus} have too few"
                    f' labels ({told}); give two or more, each as "label" of its turn.'
                )
            return tuple(sorted(found))
        if self.data.labels == "file":
            return tuple(sorted({label for label, _ in labelled_texts.load(str(self.data.path), "train")}))
        return EMOTIONS if self.data.labels == 32 else LABELS_41

    def _build(self) -> tuple[Any, Reader]:
        recipe, system = self.recipe, self.recipe.system
        hidden, more = (*_MADE_HERE, "width"), ["encoder_config"] if system == "utterance_classifier" else []
        if system == "linear_classifier":
            hidden, more = _MADE_HERE, ["min_count"]
        self.check_fields(CONFIGS[system], hidden, more)
        fields = {**recipe.model, "label_weights": self._label_weights()}
        if (self.data.features is not None) != (system == "feature_classifier"):
            raise self.refusal(
                f"data.features={self.data.features!r} with system {system}; the file goes with feature_classifier, and"
                " feature_classifier needs it."
            )
        if system == "feature_classifier":
            fields["width"] = next(iter(self._feature_arrays().values())).shape[1]
            return FeatureClassifier(FeatureClassifierConfig(labels=self.labels, **fields)), FeatureReader()
        fields["reads"] = "context" if self.data.text == "context" else "turn"
        is_lower = self.data.labels == 41 and self.data.variant == "clean"
        if system == "linear_classifier":
            if is_lower and fields.get("split") == "blanks":
                raise self.refusal(
                    "model.split=blanks with data.variant=clean would learn lower-cased texts and be asked others."
                    " Accepted: model.split=spaced or family, or data.variant=repo."
                )
            return LinearClassifier.from_texts(self._training_texts(), self.labels, **fields)
        fields["lowercase"] = is_lower
        if recipe.encoder is not None:
            fields.pop("encoder_config", None)
            return UtteranceClassifier.from_encoder(str(resolve_model(recipe.encoder)), labels=self.labels, **fields)
        return self._untrained(fields)

    def _untrained(self, fields: dict[str, Any]) -> tuple[Any, Reader]:
        """A small classifier with an encoder and pieces of its own, nothing pretrained.

        Raises:
            ConfigError: The recipe does not say which encoder or how to cut words.
        """
        if self.recipe.tokenizer.kind != "bpe" or "encoder_config" not in fields:
            raise self.refusal(
                "without `encoder`, utterance_classifier is trained from scratch and needs model.encoder_config (with"
                " its model_type) and tokenizer.kind=bpe."
            )
        longest = int(fields.get("max_pieces", 128))
        pieces = self.learnt_pieces(lambda: [item.words for item in self._learnt(self.data)], longest)
        sizes = {"vocab_size": len(pieces), "pad_token_id": pieces.pad_token_id}
        fields["encoder_config"] = {**fields["encoder_config"], **sizes}
        model = UtteranceClassifier(UtteranceClassifierConfig(labels=self.labels, **fields))
        return model, PieceReader(pieces, model.config)

    def _training_texts(self) -> list[Text]:
        """Texts of all stages, the recipe's own data first."""
        blocks = {data.model_dump_json(): data for data in map(self.stage_config, self.recipe.stages)}
        return [item.text for data in blocks.values() for item in self._learnt(data)]

    def _label_weights(self) -> list[float] | None:
        if self.data.class_weights == "none":
            return None
        counts = Counter(item.label for item in self._learnt(self.data))
        share = sum(counts.values()) / len(self.labels)
        return [round(share / max(1, counts[i]), 4) for i in range(len(self.labels))]

    # -- data ------------------------------------------------------------------------------------------------

    def items(self, split: str, data: ClassifyData | None = None) -> list[LabelledText]:
        """Labelled texts of a split, in the order of the corpus."""
        data = data or self.data
        key = f"{split} {data.model_dump_json()}"
        if key not in self._items:
            by_kind = {32: self._emotions, 41: self._intents, "file": self._of_file, "turns": self._of_turns}
            found = by_kind[data.labels](split, data)
            if data.cut:
                found = [item for item in found if self.labels[item.label] not in item.words.lower()]
            if not found:
                raise DataError(f"recipe {self.recipe.name!r}: the {split} split has no labelled {data.text}.")
            self._items[key] = found
        return self._items[key]

    def _intents(self, split: str, data: ClassifyData) -> list[LabelledText]:
        root, limit = folder_of(data.corpus), getattr(data, f"{split}_limit")
        texts = empathetic_intents.read_texts(split, root, variant=data.variant, overlaps=data.overlaps)[:limit]
        return [LabelledText(item.id, item.text, item.label_id, i) for i, item in enumerate(texts)]

    def _of_file(self, split: str, data: ClassifyData) -> list[LabelledText]:
        pairs = labelled_texts.load(str(data.path), split)[: getattr(data, f"{split}_limit")]
        if unknown := sorted({label for label, _ in pairs} - set(self.labels)):
            raise DataError(f"{data.path}: the {split} split has the label {unknown[0]!r}, which train has not.")
        return [LabelledText(str(i), text, self.labels.index(label), i) for i, (label, text) in enumerate(pairs)]

    def _of_turns(self, split: str, data: ClassifyData) -> list[LabelledText]:
        found = self._labelled_turns(split, data)
        return [LabelledText(name, text, self.labels.index(label), i) for i, (name, text, label) in enumerate(found)]

    def _labelled_turns(self, split: str, data: ClassifyData) -> list[tuple[str, Text, str]]:
        """(id, text, label) of the turns with a label; for ``context`` those with a turn before them."""
        corpus = _corpus_of_turns(data, split)
        found: list[tuple[str, Text, str]] = []
        for dialogue in corpus.dialogues[: getattr(data, f"{split}_limit")]:
            for i, label in enumerate(corpus.turn_labels.get(dialogue.id, ())):
                if label and data.text == "utterance":
                    found.append((f"{dialogue.id}/{i}", dialogue.turns[i].text, label))
                elif label and i:
                    found.append((f"{dialogue.id}/{i}", dialogue.turns[:i], label))
        return found

    def _emotions(self, split: str, data: ClassifyData) -> list[LabelledText]:
        dialogues = CORPORA.get(data.corpus)(split).dialogues[: getattr(data, f"{split}_limit")]
        found: list[tuple[str, Text, str]] = []
        for dialogue in dialogues:
            if dialogue.emotion is not None and dialogue.emotion not in EMOTIONS:
                raise DataError(
                    f"{data.corpus}: emotion {dialogue.emotion!r} of {dialogue.id!r} is none of the 32"
                    f".{nearest(dialogue.emotion, list(EMOTIONS))} Labels of your own are learnt with"
                    " data.labels=turns, or as single texts with data.labels=file."
                )
            if dialogue.emotion is not None:
                found += [(name, text, dialogue.emotion) for name, text in _texts_of(dialogue, data.text)]
        return [LabelledText(name, text, EMOTIONS.index(label), i) for i, (name, text, label) in enumerate(found)]

    def _learnt(self, data: ClassifyData) -> list[LabelledText]:
        return [item for split in data.learn for item in self.items(split, data)]

    def _feature_arrays(self) -> dict[str, np.ndarray]:
        if self._features is None:
            self._features = read_features(str(self.data.features))
        return self._features

    def rows(self, split: str, data: ClassifyData | None = None, stage: StageConfig | None = None) -> list[Row]:
        """Items of a split as the model reads them, with their labels."""
        data = data or self.data
        items = self.items(split, data)
        if self.recipe.system == "feature_classifier":
            rows = FeatureReader.rows_of(self._features_of(split, items, data))
        else:
            rows = self.reader.encode([item.text for item in items])
        return [{**row, "label": item.label} for row, item in zip(rows, items, strict=True)]

    def _features_of(self, split: str, items: Sequence[LabelledText], data: ClassifyData) -> np.ndarray:
        arrays = self._feature_arrays()
        whole = self.items(split, data.model_copy(update={"cut": False, f"{split}_limit": None}))
        if split not in arrays or len(arrays[split]) != len(whole):
            found = f"{len(arrays[split]):,} rows" if split in arrays else f"no such array, only {', '.join(arrays)}"
            raise DataError(
                f"{data.features}: split {split!r}: {found}; accepted: {len(whole):,} rows, one for each {data.text} of"
                " the split in the loader's order (before ED-cut and limits)."
            )
        return arrays[split][[item.row for item in items]]

    def stage_data(self, stage: StageConfig) -> StageData:
        """The splits learnt from, and the one that selects the weights."""
        data = self.stage_config(stage)
        train = [row for split in data.learn for row in self.rows(split, data)]
        valid = self.rows(data.choose, data)
        return StageData(train, self.lengths(train), valid, self.lengths(valid), self.reader.collate)

    # -- saving ----------------------------------------------------------------------------------------------

    def calibrate(self) -> None:
        """The temperature, on valid where it is not learnt from."""
        self.model.config.softmax_temperature = 1.0
        if "valid" not in self.data.learn:
            valid = self.items("valid")
            probabilities = classify_rows(self.model, self.reader, self.rows("valid"))
            self.model.config.softmax_temperature = fit_temperature(probabilities, [item.label for item in valid])

    def facts(self) -> dict[str, object]:
        """``TextClassifier.load`` reads them."""
        return {
            "part": {32: "emotion", 41: "intent", "file": "label", "turns": "label"}[self.data.labels],
            "labels": list(self.labels),
            "temperature": self.model.config.softmax_temperature,
            "licence": "that of the texts" if self.data.path is not None else licence_text(self.data.corpus),
        }

    # -- measuring -------------------------------------------------------------------------------------------

    def evaluate(self, split: str, outputs: Path | None) -> dict[str, object]:
        """Scores of a split with intervals, the same before calibration where it matters, and each label's own.

        Gold labels are not part of what the model reads.
        """
        items = self.items(split)
        probabilities = classify_rows(self.model, self.reader, self.rows(split)).astype(np.float64)
        gold = np.array([item.label for item in items])
        write_rows(outputs, map(self._row, items, probabilities))
        learnt = self._learnt(self.data)
        scores = classification_scores(probabilities, gold, self.labels, self.model.config.softmax_temperature)
        commonest = Counter(item.label for item in learnt).most_common(1)[0][0]
        scores["accuracy_majority"] = round(100 * float((gold == commonest).mean()), 3)
        if self.data.labels in ("file", "turns"):  # nobody has published a number to stand beside
            scores |= majority_scores(
                np.bincount([item.label for item in learnt], minlength=len(self.labels)), gold, self.labels
            )
        seen = {item.words.lower() for item in learnt}
        unseen = np.array([item.words.lower() not in seen for item in items])
        if not unseen.all() and unseen.any():
            scores["accuracy_unseen"] = scored("accuracy_unseen", Accuracy(), probabilities[unseen], gold[unseen])
        return scores

    def _row(self, item: LabelledText, probabilities: np.ndarray) -> dict[str, object]:
        best = np.argsort(-probabilities, kind="stable")[:5]
        return {
            "id": item.id,
            "text": item.words,
            "gold": self.labels[item.label],
            "predicted": self.labels[best[0]],
            "probabilities": {self.labels[i]: round(float(probabilities[i]), 4) for i in best},
        }

    def data_record(self) -> dict[str, object]:
        """Items per split and a checksum of them."""
        return {
            self.data.corpus: counted_splits(
                lambda split: [f"{item.id}\t{item.label}\t{item.words}\n" for item in self.items(split)]
            )
        }


def classification_scores(
    probabilities: np.ndarray, gold: np.ndarray, labels: Sequence[str], temperature: float = 1.0
) -> dict[str, object]:
    """Every score of a classifier, JSON-ready.

    Args:
        probabilities: Calibrated. Shape: (n, n_labels).
        gold: Label indices. Shape: (n,).
        labels: Names by index.
        temperature: The one they were divided by; undone for ``calibration_error_before``.

    Returns:
        Name to ``Score.to_dict()`` (accuracy, top 5, F1, calibration error before and after, log loss), the
        temperature, and ``per_label``: precision, recall, F1 in percent and n. With the 41 labels also the accuracy
        on emotions and on intents.
    """
    names, predicted = list(labels), probabilities.argmax(axis=1)
    said, true = [names[i] for i in predicted], [names[i] for i in gold]
    scores: dict[str, object] = {
        "accuracy": scored("accuracy", Accuracy(), probabilities, gold),
        **({"accuracy_top5": scored("accuracy_top5", Accuracy(5), probabilities, gold)} if len(names) >= 5 else {}),
        "f1_weighted": scored("f1_weighted", F1(names, "weighted"), said, true),
        "f1_macro": scored("f1_macro", F1(names, "macro"), said, true),
        "calibration_error": scored("calibration_error", CalibrationError(), probabilities, gold),
    }
    before = np.exp(temperature * np.log(np.clip(probabilities, 1e-30, None)))
    before /= before.sum(axis=1, keepdims=True)
    scores["calibration_error_before"] = scored("calibration_error_before", CalibrationError(), before, gold)
    batches = BatchMeanAccuracy()
    for start in range(0, len(gold), _BATCH):
        batches.update(probabilities[start : start + _BATCH], gold[start : start + _BATCH])
    scores["accuracy_batch_mean"] = batches.compute().to_dict()
    if tuple(names) == LABELS_41:
        for name, chosen in (("emotions", gold < len(EMOTIONS)), ("intents", gold >= len(EMOTIONS))):
            if chosen.any():
                key = f"accuracy_{name}"
                scores[key] = scored(key, Accuracy(), probabilities[chosen], gold[chosen])
    likelihood = probabilities[np.arange(len(gold)), gold]
    scores["nll"] = round(float(-np.log(np.clip(likelihood, 1e-30, None)).mean()), 5)
    scores["temperature"] = temperature
    counts = confusion(said, true, names)
    scores["per_label"] = {name: _label_row(counts, i) for i, name in enumerate(names)}
    return scores


def majority_scores(learnt: np.ndarray, gold: np.ndarray, labels: Sequence[str]) -> dict[str, object]:
    """What always answering the commonest label scores.

    Args:
        learnt: How often each label was learnt. Shape: (n_labels,).
        gold: Label indices. Shape: (n,).
        labels: Names by index.
    """
    names, commonest = list(labels), int(np.argmax(learnt))
    shares = np.tile(learnt / learnt.sum(), (len(gold), 1))
    said, true = [names[commonest]] * len(gold), [names[i] for i in gold]
    return {
        "majority: accuracy": scored("majority: accuracy", Accuracy(), shares, gold),
        "majority: f1_weighted": scored("majority: f1_weighted", F1(names, "weighted"), said, true),
        "majority: f1_macro": scored("majority: f1_macro", F1(names, "macro"), said, true),
    }


def _corpus_of_turns(data: ClassifyData, split: str) -> LoadedCorpus:
    """A split of a corpus whose turns have labels; ``sample`` has ESConv's.

    Raises:
        MissingResourceError: The file of ``data.path`` is not there.
    """
    if data.corpus == LABELLED_TURNS:
        return conversations.read(labelled_texts.find(str(data.path)), LABELLED_TURNS, split)
    if data.corpus == sample.NAME:
        load = esconv.load_turns if data.text == "utterance" else esconv.load_dialogues
        return load(split, sample.root())
    return CORPORA.get(data.corpus)(split)


def _texts_of(dialogue: Dialogue, text: str) -> list[tuple[str, Text]]:
    """(id, text) of the items a conversation gives."""
    if text == "situation":
        return [(dialogue.id, dialogue.situation)] if dialogue.situation else []
    if text == "context":
        return [(f"{dialogue.id}/{e.turn_index}", e.context) for e in dialogue.examples()]
    return [(f"{dialogue.id}/{i}", t.text) for i, t in enumerate(dialogue.turns) if t.role == "speaker"]


def _label_row(counts: np.ndarray, i: int) -> dict[str, float | int]:
    hits, gold, predicted = int(counts[i, i]), int(counts[i].sum()), int(counts[:, i].sum())
    return {
        "precision": round(100 * hits / max(1, predicted), 2),
        "recall": round(100 * hits / max(1, gold), 2),
        "f1": round(200 * hits / max(1, predicted + gold), 2),
        "n": gold,
    }
