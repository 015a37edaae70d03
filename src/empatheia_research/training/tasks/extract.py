"""Causal span extraction on RECCON (Poria et al. 2021, subtask 1), trained on a fold, measured on questions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from empatheia_research.recipes.data import ExtractData
from empatheia_research.training.tasks.base import write_rows
from empatheia_research.training.tasks.entail import RecconTask
from empatheia_research.training.tasks.span_scores import TUNED, best_null_threshold, span_scores, tuned_value
from empatheia_research.understanding.causes.entailment_items import EntailmentItem
from empatheia_research.understanding.causes.span_items import SpanCollator, span_rows
from empatheia_research.understanding.causes.spans import CauseSpans, SpanAnswer, extract


class ExtractTask(RecconTask):
    """Trains a :class:`CauseSpans` model on one fold and measures it on all."""

    model_class, encode, collator = CauseSpans, staticmethod(span_rows), SpanCollator
    data: ExtractData

    def calibrate(self) -> None:
        """The null threshold and the decoding, on valid."""
        self.model.config.null_threshold = self._choose()

    def _choose(self) -> float:
        """The best null threshold on valid; the joint model's ``decoding`` becomes the better one beside it."""
        items, tune, config = self.items("valid"), self.data.tune, self.model.config
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

    def evaluate(self, split: str, outputs: Path | None) -> dict[str, object]:
        """The published scores on every test fold, at null threshold 0 and at the one chosen on valid."""
        tuned = self._choose()
        scores: dict[str, object] = {}
        lines = []
        for fold in self.data.test_folds:
            items = self.items(split, fold)
            answers = extract(self.model, self.tokenizer, items)
            for label, threshold in (("0", 0.0), (TUNED, tuned)):
                record = {"decoding": self.model.config.decoding} | span_scores(items, answers, threshold)
                scores[f"fold{fold} spans, threshold {label}"] = record
            lines += [_row(item, found, fold, tuned) for item, found in zip(items, answers, strict=True)]
        write_rows(outputs, lines)
        return scores


def _row(item: EntailmentItem, found: Mapping[int, SpanAnswer], fold: int, threshold: float) -> dict[str, object]:
    spans = [
        {"turn": a.turn, "text": a.text, "log_odds": round(a.log_odds, 4), "given": a.log_odds >= threshold}
        for a in found.values()
    ]
    return {"fold": fold, "id": item.dialogue_id, "target": item.target, "answers": spans}
