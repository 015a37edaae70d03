"""Causal span extraction on RECCON (Poria et al. 2021, subtask 1), trained on a fold, measured on questions."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from empatheia.config import Recipe, StageConfig
from empatheia.metrics import METRICS
from empatheia.training.entailing import N_RESAMPLES, TUNED, RecconTask
from empatheia.training.stages import StageData
from empatheia.understanding.cause_spans import CauseSpans, SpanAnswer, SpanCollator, SpanDataset, extract
from empatheia.understanding.entailment_items import EntailmentItem

METRIC_NAMES = ("span_em_pos", "span_f1_pos", "span_f1_neg", "span_f1", "span_lcs_f1")
Answers = Sequence[Mapping[int, SpanAnswer]]


class ExtractTask(RecconTask):
    """Trains a :class:`CauseSpans` model on one fold and measures it on all."""

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        super().__init__(recipe, CauseSpans)
        self.collator = SpanCollator(self.tokenizer, self.model.config.form)

    def stage_data(self, stage: StageConfig) -> StageData:
        """RECCON train and valid of the recipe's fold: questions in windows, or joint rows."""
        train = SpanDataset(self.items("train"), self.tokenizer, self.model.config)
        valid = SpanDataset(self.items("valid"), self.tokenizer, self.model.config)
        return StageData(train, train.lengths, valid, valid.lengths, self.collator)

    def save(self, folder: Path) -> None:
        """Model (null threshold and decoding chosen on valid) and tokenizer.

        They load with ``CauseSpans.from_pretrained`` and ``AutoTokenizer``.
        """
        self.model.config.null_threshold = self._choose()
        self.write(folder, "cause_spans")

    def _choose(self) -> float:
        """The best null threshold on valid; the joint model's ``decoding`` becomes the better one beside it."""
        items, tune, config = self.items("valid"), self.recipe.data.tune, self.model.config
        is_open = config.form == "joint" and "decoding" not in self.recipe.model
        best = (float("-inf"), "", 0.0)
        for decoding in ("argmax", "overlap") if is_open else (config.decoding,):
            config.decoding = decoding
            answers = extract(self.model, self.tokenizer, items)
            threshold = best_null_threshold(items, answers, tune)
            value = tuned_value(items, answers, threshold, tune)
            if value > best[0]:
                best = (value, decoding, threshold)
        config.decoding = best[1]
        return best[2]

    def evaluate(self, split: str, outputs: Path | None) -> dict[str, Any]:
        """The published scores on every test fold, at null threshold 0 and at the one chosen on valid."""
        tuned = self._choose()
        scores: dict[str, Any] = {}
        lines = []
        for fold in self.recipe.data.test_folds:
            items = self.items(split, fold)
            answers = extract(self.model, self.tokenizer, items)
            for label, threshold in (("0", 0.0), (TUNED, tuned)):
                record = {"decoding": self.model.config.decoding} | span_scores(items, answers, threshold)
                scores[f"fold{fold} spans, threshold {label}"] = record
            lines += [_line(item, found, fold, tuned) for item, found in zip(items, answers, strict=True)]
        if outputs is not None:
            outputs.write_text("".join(lines), encoding="utf-8")
        return scores


def predictions(items: Sequence[EntailmentItem], answers: Answers, threshold: float) -> tuple[list[str], list[Any]]:
    """Predicted text ("" for none) and gold span (None for a negative) of every published question.

    Args:
        items: With labels and spans.
        answers: From :func:`extract`, in the same order.
        threshold: Log-odds from which an answer is given.
    """
    texts, golds = [], []
    for item, found in zip(items, answers, strict=True):
        for turn, label, span in item.questions():
            answer = found.get(turn)
            texts.append(answer.text if answer is not None and answer.log_odds >= threshold else "")
            golds.append(item.texts[turn][span.start : span.end] if label and span is not None else None)
    return texts, golds


def span_scores(items: Sequence[EntailmentItem], answers: Answers, threshold: float) -> dict[str, Any]:
    """The plain numbers in percent, and under ``scores`` each with its signature and bootstrap interval.

    The bootstrap draws questions.
    """
    texts, golds = predictions(items, answers, threshold)
    record: dict[str, Any] = {"threshold": threshold, "scores": {}}
    for name in METRIC_NAMES:
        metric = METRICS.get(name)()
        metric.update(texts, golds)
        score = metric.compute(n_resamples=N_RESAMPLES)
        record["scores"][name] = score.to_dict()
        record |= score.parts
    return record


def best_null_threshold(items: Sequence[EntailmentItem], answers: Answers, tune: str = "balanced") -> float:
    """The threshold with the best score over at most 200 values between the answers' own log-odds.

    Args:
        items: Validation items with labels and spans.
        answers: Their answers.
        tune: ``balanced`` (mean of F1_pos and F1_neg) or ``f1`` (over all questions). Three of four questions have no
            answer, so ``f1`` alone rewards silence: answering nothing gives F1 73.8 on fold 1.
    """
    odds = sorted({answer.log_odds for found in answers for answer in found.values()})
    if not odds:
        return 0.0
    step = max(1, len(odds) // 200)
    choices = sorted(round(value, 4) for value in (0.0, *odds[::step], odds[-1] + 1.0))

    return max(choices, key=lambda threshold: (tuned_value(items, answers, threshold, tune), -abs(threshold)))


def tuned_value(items: Sequence[EntailmentItem], answers: Answers, threshold: float, tune: str = "balanced") -> float:
    """What :func:`best_null_threshold` makes best, in percent; -1 where it is undefined."""
    metric = METRICS.get("span_f1")()
    metric.update(*predictions(items, answers, threshold))
    parts = metric.compute().parts
    value = parts["f1"] if tune == "f1" else (parts["f1_pos"] + parts["f1_neg"]) / 2
    return -1.0 if math.isnan(value) else value


def _line(item: EntailmentItem, found: Mapping[int, SpanAnswer], fold: int, threshold: float) -> str:
    spans = [
        {"turn": a.turn, "text": a.text, "log_odds": round(a.log_odds, 4), "given": a.log_odds >= threshold}
        for a in found.values()
    ]
    return json.dumps({"fold": fold, "id": item.dialogue_id, "target": item.target, "answers": spans}) + "\n"
