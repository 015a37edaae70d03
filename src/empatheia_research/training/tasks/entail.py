"""The annotator's task: RECCON causal emotion entailment (Poria et al. 2021), trained on a fold, measured on pairs.

An annotator that also marks pieces (``spans: true``) is measured on the questions of causal span extraction as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from empatheia.metrics import METRICS
from empatheia.records.dialogue import CauseAnnotation
from empatheia_research.corpora.licences import LICENCES
from empatheia_research.corpora.reccon import load as load_reccon
from empatheia_research.recipes.data import EntailData, ExtractData
from empatheia_research.recipes.recipe import StageConfig
from empatheia_research.training.sources import folder_of
from empatheia_research.training.stages import StageData
from empatheia_research.training.tasks.base import Task, write_rows
from empatheia_research.training.tasks.span_scores import (
    N_RESAMPLES,
    TUNED,
    best_null_threshold,
    marked_answers,
    span_scores,
)
from empatheia_research.understanding.causes.entailment import CauseEntailment, annotate
from empatheia_research.understanding.causes.entailment_items import (
    EntailmentCollator,
    EntailmentItem,
    encode_joint,
    entailment_rows,
    items_of_fold,
)
from empatheia_research.understanding.causes.entailment_scores import best_scores, question_cells, scores_at


class FoldItems:
    """Example source: RECCON's targets with their histories and gold labels, by split and fold.

    Args:
        data: Names the corpus, the training fold and limits.
    """

    def __init__(self, data: EntailData | ExtractData) -> None:
        self.data = data
        self.read: dict[tuple[str, int], list[EntailmentItem]] = {}

    def items(self, split: str, fold: int | None = None) -> list[EntailmentItem]:
        """Of a split, in the training fold or another."""
        fold = int(self.data.fold if fold is None else fold)
        if (split, fold) not in self.read:
            corpus, limit = load_reccon(split, root=folder_of(self.data.corpus)), getattr(self.data, f"{split}_limit")
            self.read[split, fold] = items_of_fold(corpus, fold, limit=limit)
        return self.read[split, fold]

    def counts(self) -> dict[str, dict[str, int]]:
        """Rows and published pairs of each split and fold that was read."""
        return {
            f"{split}, fold {fold}": {"items": len(items), "pairs": sum(1 for item in items for _ in item.questions())}
            for (split, fold), items in self.read.items()
        }


class RecconTask(Task):
    """What the two RECCON tasks share: a fold's items by split, the model folder, the counts."""

    model_class: ClassVar[Any]
    encode: ClassVar[Any]
    collator: ClassVar[Any]

    def build(self) -> None:
        """On the recipe's encoder."""
        encoder = self.encoder()
        self.check_fields(self.model_class.config_class)
        self.model, self.tokenizer = self.model_class.from_encoder(encoder, **self.recipe.model)
        self.source = FoldItems(self.data)
        self.items = self.source.items
        self._unread: dict[tuple[str, int], dict[str, int]] = {}

    def stage_data(self, stage: StageConfig) -> StageData:
        """RECCON train and valid of the recipe's fold."""
        train, valid = (self.encode(self.items(s), self.tokenizer, self.model.config) for s in ("train", "valid"))
        collate = self.collator(self.tokenizer, self.model.config.form)
        return StageData(train, self.lengths(train), valid, self.lengths(valid), collate)

    def save_reader(self, folder: Path) -> None:
        """The tokenizer; it loads with ``AutoTokenizer``."""
        self.tokenizer.save_pretrained(folder)

    def facts(self) -> dict[str, object]:
        """Where it was trained."""
        return {"part": "causes", "fold": self.data.fold, "licence": LICENCES[self.data.corpus].licence}

    def data_record(self) -> dict[str, object]:
        """Rows and published pairs of each split and fold that was read, and what the model's length cut off.

        An unread turn counts as found not causal, so unread causes are misses before the model has said anything.
        """
        both = zip(self.source.counts().items(), self.source.read, strict=True)
        return {"reccon": {name: counts | self._cut_off(*key) for (name, counts), key in both}}

    def _cut_off(self, split: str, fold: int) -> dict[str, int]:
        """Labelled turns that joint rows have no room for, and the causes among them."""
        config = self.model.config
        if config.form != "joint" or not config.context:
            return {}
        if (split, fold) not in self._unread:
            items = self.source.read[split, fold]
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

    model_class, encode, collator = CauseEntailment, staticmethod(entailment_rows), EntailmentCollator
    data: EntailData

    def calibrate(self) -> None:
        """The threshold, on valid."""
        self.model.config.threshold = self._best_threshold()

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
        lines: list[dict[str, object]] = []
        for fold in self.data.test_folds:
            items = self.items(split, fold)
            notes = annotate(self.model, self.tokenizer, items, threshold=0.0)
            for label, threshold in (("0.5", 0.5), (TUNED, tuned)):
                scores[f"fold{fold} pairs, threshold {label}"] = pair_scores(items, notes, threshold)
            answers = marked_answers(items, notes) if marks else []
            for label, threshold in (("0", 0.0), (TUNED, odds)) if marks else ():
                scores[f"fold{fold} spans, threshold {label}"] = span_scores(items, answers, threshold)
            lines += _rows(notes, fold, tuned)
        write_rows(outputs, lines)
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


def _rows(notes: Sequence[CauseAnnotation], fold: int, threshold: float) -> Iterator[dict[str, object]]:
    for note in notes:
        turns = [turn for turn, p in enumerate(note.probabilities) if p >= threshold]
        p = note.probabilities
        yield {"fold": fold, "id": note.dialogue_id, "target": note.target, "turns": turns, "p": p}
