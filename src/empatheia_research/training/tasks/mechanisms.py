"""The task of EPITOME (Sharma et al. 2020): levels and rationales of mechanisms, learnt and measured on its pairs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from empatheia.metrics.classification import F1, Accuracy
from empatheia.metrics.mechanisms import EPITOME_PUBLISHED, MechanismLevel, RationaleF1
from empatheia.taxonomy import MECHANISMS
from empatheia_research.corpora import epitome, sample
from empatheia_research.corpora.epitome import EpitomeCorpus
from empatheia_research.corpora.licences import LICENCES
from empatheia_research.recipes.data import MechanismsData
from empatheia_research.recipes.recipe import StageConfig
from empatheia_research.training.sources import folder_of
from empatheia_research.training.tasks.base import Task, counted_splits, scored, write_rows
from empatheia_research.understanding.mechanisms.identifier import (
    MechanismIdentifier,
    MechanismIdentifierConfig,
    identify,
)
from empatheia_research.understanding.mechanisms.pairs import IGNORED, Identified, Pair, PairReader

LEVELS = (0, 1, 2)


class MechanismsTask(Task):
    """Trains and measures a :class:`MechanismIdentifier` of one or more mechanisms."""

    data: MechanismsData

    def build(self) -> None:
        """On the recipe's encoder."""
        encoder = self.encoder()
        if self.data.corpus not in (epitome.NAME, sample.NAME):
            raise self.refusal(f"data.corpus={self.data.corpus}; accepted: epitome, sample.")
        self.check_fields(MechanismIdentifierConfig)
        self.model, self.reader = MechanismIdentifier.from_encoder(encoder, **self.recipe.model)
        self._corpora: dict[str, EpitomeCorpus] = {}

    # -- data ------------------------------------------------------------------------------------------------

    def _corpus(self, split: str) -> EpitomeCorpus:
        if split not in self._corpora:
            self._corpora[split] = epitome.load(split, folder_of(self.data.corpus))
        return self._corpora[split]

    def pairs(self, split: str, data: MechanismsData | None = None) -> list[Pair]:
        """Pairs of a split with their labels."""
        return labelled_pairs(self._corpus(split))[: getattr(data or self.data, f"{split}_limit")]

    def rows(self, split: str, data: MechanismsData, stage: StageConfig) -> list[dict[str, Any]]:
        """Of the split made by ``corpora.epitome``."""
        return self.reader.encode(self.pairs(split, data))

    def facts(self) -> dict[str, object]:
        """``MechanismsOfTurns.load`` reads them."""
        names = self.model.config.mechanisms
        return {"part": "mechanisms", "mechanisms": names, "licence": LICENCES[self.data.corpus].licence}

    # -- measuring -------------------------------------------------------------------------------------------

    def evaluate(self, split: str, outputs: Path | None) -> dict[str, object]:
        """Scores of each mechanism, with published figures beside them; see :func:`mechanism_scores`."""
        pairs = self.pairs(split)
        answers = identify(self.model, self.reader, pairs)
        write_rows(outputs, map(_row, pairs, answers))
        learnt = self.pairs("train")
        scores: dict[str, object] = {}
        for m, mechanism in enumerate(self.model.config.mechanisms):
            own = [answer[m] for answer in answers]
            scores |= {
                f"{mechanism}: {name}": value
                for name, value in mechanism_scores(pairs, own, self.reader, learnt).items()
            }
        return scores

    def data_record(self) -> dict[str, object]:
        """Pairs per split, a checksum of ids and levels, and what was mended in the files."""

        def lines(split: str) -> list[str]:
            return [f"{p.id}\t{[(p.levels or {}).get(m) for m in MECHANISMS]}\n" for p in self.pairs(split)]

        return {self.data.corpus: {**counted_splits(lines), "counts": dict(self._corpus("train").counts)}}


def labelled_pairs(corpus: EpitomeCorpus) -> list[Pair]:
    """Pairs with gold levels and rationales; rationales that were not all found in the response are left unknown."""
    pairs = []
    for dialogue in corpus:
        labels = dict(zip(MECHANISMS, corpus.mechanisms[dialogue.id], strict=True))
        seeker, response = (turn.text for turn in dialogue.turns)
        levels = {name: label.level for name, label in labels.items()}
        spans = {name: label.rationales for name, label in labels.items() if not label.n_lost}
        pairs.append(Pair(dialogue.id, seeker, response, levels, spans))
    return pairs


def mechanism_scores(
    pairs: Sequence[Pair], answers: Sequence[Identified], reader: PairReader, learnt: Sequence[Pair] = ()
) -> dict[str, object]:
    """Every score of one mechanism, JSON-ready.

    Args:
        pairs: With gold labels.
        answers: One a pair, all of one mechanism.
        reader: The model's; its pieces are what rationales are measured on, up to ``max_pieces``.
        learnt: Training pairs, for the level that always answers (``accuracy_majority``).

    Returns:
        Levels: ``accuracy``, ``f1_macro`` (its parts hold each level's F1), ``recall_macro``, ``f1_present`` (weak and
        strong as one), ``level_mean`` and ``level_mean_gold``. Rationales: ``rationale_f1`` and ``rationale_iou_f1``
        over responses with a gold rationale, whatever level was predicted; ``..._shown``: the same when nothing is
        marked at a predicted level 0, as a user sees it; ``..._all``: over all responses, where one without a
        rationale counts whole as one (the released script's way). ``published``: figures of others, by source.
    """
    name = answers[0].mechanism
    gold = [int((pair.levels or {})[name]) for pair in pairs]
    said = [answer.level for answer in answers]
    scores: dict[str, object] = {
        "accuracy": scored("accuracy", Accuracy(), said, gold),
        "f1_macro": scored("f1_macro", F1(LEVELS, "macro"), said, gold),
        "recall_macro": scored("recall_macro", F1(LEVELS, "macro", report="recall"), said, gold),
    }
    present = F1((False, True), "class", of=True)
    scores["f1_present"] = scored("f1_present", present, [s > 0 for s in said], [g > 0 for g in gold])
    scores["level_mean"] = scored("level_mean", MechanismLevel(), said)
    scores["level_mean_gold"] = scored("level_mean_gold", MechanismLevel(), gold)
    if learnt:
        levels = [int((pair.levels or {})[name]) for pair in learnt]
        commonest = max(LEVELS, key=levels.count)
        scores["accuracy_majority"] = round(100 * gold.count(commonest) / len(gold), 3)
    marks = _rationale_marks(pairs, answers, reader, name)
    for label, found in marks.items():
        if found:
            for report in ("f1", "iou_f1"):
                key = f"rationale_{report}{label}"
                scores[key] = scored(key, RationaleF1(report), *map(list, zip(*found, strict=True)))
    scores["published"] = {source: dict(values) for source, values in EPITOME_PUBLISHED[name].items()}
    return scores


def _rationale_marks(
    pairs: Sequence[Pair], answers: Sequence[Identified], reader: PairReader, name: str
) -> dict[str, list[tuple[list[int], list[int]]]]:
    """(predicted, gold) marks a response, by the kind of score."""
    out: dict[str, list[tuple[list[int], list[int]]]] = {"": [], "_shown": [], "_all": []}
    for pair, answer in zip(pairs, answers, strict=True):
        whole = [int(start < end) if start < end else IGNORED for start, end in answer.offsets]
        spans = (pair.rationales or {}).get(name)
        gold = reader.rationale_labels(pair, name, answer.offsets) if spans else whole
        kept = [i for i, label in enumerate(gold) if label != IGNORED]
        if not kept or spans is None:
            continue
        true = [gold[i] for i in kept]
        marks = [int(answer.pieces[i] > 0.5) for i in kept]
        out["_all"].append((marks, true))
        if spans and any(true):
            out[""].append((marks, true))
            out["_shown"].append((marks if answer.level else [0] * len(kept), true))
    return out


def _row(pair: Pair, answers: Sequence[Identified]) -> dict[str, object]:
    """Ids, levels and offsets of one pair; no text, which is not ours to copy."""
    return {
        "id": pair.id,
        "mechanisms": {
            a.mechanism: {
                "gold": (pair.levels or {}).get(a.mechanism),
                "level": a.level,
                "probabilities": [round(p, 4) for p in a.probabilities],
                "rationales": [[span.start, span.end] for span in a.rationales(pair.response)],
            }
            for a in answers
        },
    }
