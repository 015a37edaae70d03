"""The estimator's task (Kim, Kim and Kim 2021): learnt from sentence labels, measured on words beside its baselines.

Word labels are never learnt from. The words of RECCON's spans are always measured; EmoCause where the user has it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from empatheia.analysis.questions import WordScorer, rank
from empatheia.errors import DataError
from empatheia.metrics.base import Metric
from empatheia.metrics.causes import CauseRecall
from empatheia.metrics.earlier_records import measured_by_names
from empatheia.metrics.perplexity import TokenPerplexity, WordPerplexity
from empatheia.metrics.score import ScoreRecord
from empatheia.metrics.significance import paired_bootstrap
from empatheia.resources import resolve_model
from empatheia.taxonomy import EMOTIONS
from empatheia.text.words import count_words
from empatheia_research.corpora import emocause, reccon, sample
from empatheia_research.corpora.licences import licence_text
from empatheia_research.corpora.loading import canonical_split
from empatheia_research.recipes.data import EstimateData
from empatheia_research.recipes.recipe import StageConfig
from empatheia_research.text.tokenizer import DialogueTokenizer
from empatheia_research.text.vectors import distil_vectors
from empatheia_research.training.evaluation import N_RESAMPLES
from empatheia_research.training.sources import CorpusSource, folder_of
from empatheia_research.training.tasks.base import Task, counted_splits, write_rows
from empatheia_research.training.tasks.classify import classification_scores
from empatheia_research.training.tasks.word_chart import word_chart, word_table
from empatheia_research.understanding.words.baselines import (
    AttentionWords,
    GradientWords,
    LexiconWords,
    RakeWords,
    RandomWords,
)
from empatheia_research.understanding.words.estimator import (
    EmotionEstimator,
    EmotionEstimatorConfig,
    Likelihoods,
    likelihoods,
)
from empatheia_research.understanding.words.estimator_pieces import EstimatorReader
from empatheia_research.understanding.words.evidence import emotion_joint
from empatheia_research.understanding.words.gold import WordItem, emocause_words, reccon_words
from empatheia_research.understanding.words.turns import EVIDENCES, EstimatorWords

TOP_K = (1, 3, 5)
GOLD = ", gold emotion"
_MADE_HERE = ("labels", "log_prior")
_BATCH = 16
PUBLISHED: Mapping[str, tuple[float | None, ...]] = {
    "Human": (41.3, 81.1, 95.0),
    "Random": (10.7, 30.6, 48.5),
    "RAKE": (12.7, 35.8, 55.0),
    "EmpDG": (13.4, 36.2, 49.3),
    "BERT-Attention": (13.8, None, None),
    "GEE": (17.3, 48.1, 68.4),
}
"""EmoCause recall at 1, 3 and 5 in percent. At 1 from a public listing of the paper's results; 3 and 5 recalled, not
checked against the paper."""


class EstimateTask(Task):
    """Trains an :class:`EmotionEstimator` on (emotion, text) pairs; measures it and its baselines on cause words."""

    data: EstimateData

    def build(self) -> None:
        """On the recipe's pretrained model, or from scratch."""
        self.source = CorpusSource(self.data.corpus)
        self.check_fields(EmotionEstimatorConfig, _MADE_HERE)
        recipe, fields = self.recipe, dict(self.recipe.model)
        described = fields.pop("backbone_config", None)
        if recipe.encoder is not None:
            folder = str(resolve_model(recipe.encoder))
            self.model, self.reader = EmotionEstimator.from_backbone(folder, EMOTIONS, **fields)
            return
        if not isinstance(described, dict) or recipe.tokenizer.kind != "bpe":
            raise self.refusal(
                "without `encoder` the estimator is trained from scratch and needs model.backbone_config (with its"
                " model_type, e.g. bart or gpt2) and tokenizer.kind=bpe."
            )
        tokenizer = self._tokenizer()
        ids = {
            "vocab_size": len(tokenizer),
            "pad_token_id": tokenizer.pad_id,
            "bos_token_id": tokenizer.bos_id,
            "eos_token_id": tokenizer.eos_id,
            "decoder_start_token_id": tokenizer.bos_id,
        }
        config = EmotionEstimatorConfig({**described, **ids}, EMOTIONS, **fields)
        self.model = EmotionEstimator(config)
        if recipe.tokenizer.distil is not None:
            _start_table(self.model, tokenizer, recipe.tokenizer.distil)
        self.reader = EstimatorReader(tokenizer, config, self.model.start)

    def _tokenizer(self) -> DialogueTokenizer:
        """Byte-pair pieces of the training texts and the labels."""

        def make() -> DialogueTokenizer:
            texts = [text for _, text in self.pairs("train")]
            return DialogueTokenizer.train_bpe([*texts, *EMOTIONS], size=self.recipe.tokenizer.size)

        return DialogueTokenizer.from_pretrained(self.made_once("tokenizer", make))

    # -- data ------------------------------------------------------------------------------------------------

    def pairs(self, split: str, data: EstimateData | None = None) -> list[tuple[str, str]]:
        """(emotion, text) of a split in the order of the corpus, each pair once."""
        data = data or self.data
        found: dict[tuple[str, str], None] = {}
        for dialogue in self.source.dialogues(split, data):
            if dialogue.emotion is None:
                continue
            spoken = [turn.text for turn in dialogue.turns if turn.role == "speaker"]
            if "situation" in data.texts and dialogue.situation:
                found[dialogue.emotion, dialogue.situation] = None
            if "speaker" in data.texts or "opening" in data.texts:
                for text in spoken if "speaker" in data.texts else spoken[:1]:
                    found[dialogue.emotion, text] = None
        if not found:
            raise DataError(f"recipe {self.recipe.name!r}: the {split} split has no {' or '.join(data.texts)} text.")
        return list(found)

    def rows(self, split: str, data: EstimateData, stage: StageConfig) -> list[Any]:
        """Of the pairs."""
        return self.reader.encode(self.pairs(split, data))

    def lengths(self, rows: Sequence[Any]) -> list[int]:
        """Of label and text."""
        return [self.reader.length(row) for row in rows]

    # -- saving ----------------------------------------------------------------------------------------------

    def read_weights(self, folder: Path) -> dict[str, Tensor]:
        """Weights saved after a stage, tied ones under all their names."""
        found = super().read_weights(folder)
        for target, source in (self.model.all_tied_weights_keys or {}).items():
            for missing, present in ((target, source), (source, target)):
                if missing not in found and present in found:
                    found[missing] = found[present]
        return found

    def facts(self) -> dict[str, object]:
        """``WordsOfTurns.load`` reads them."""
        return {"part": "words", "labels": list(EMOTIONS), "licence": licence_text(self.data.corpus)}

    # -- measuring -------------------------------------------------------------------------------------------

    def word_sets(self, split: str) -> dict[str, tuple[list[WordItem], Mapping[str, int]]]:
        """Items and counts by name of the set: RECCON always, EmoCause if ``data.emocause`` says where it is.

        ``data.word_splits`` adds a set of several splits of RECCON: no method learns from any of them.
        """
        name = canonical_split(split)
        root = folder_of(self.data.corpus)
        found = {own: reccon_words(reccon.load(own, root=root)) for own in {name, *self.data.word_splits}}
        sets = {"reccon words": found[name]}
        if len(found) > 1:
            sets["reccon words, " + " + ".join(_in_order(found))] = _united(found)
        for place, (items, counts) in list(sets.items()):
            sets[f"{place}, part of the turn"] = [item for item in items if not item.is_whole], counts
        if self.data.emocause is not None:
            place = sample.root() / emocause.FOLDER if self.data.emocause == sample.NAME else self.data.emocause
            sets["emocause"] = emocause_words(emocause.read(place, name))
        return {place: own for place, own in sets.items() if own[0]}

    def scorers(self) -> tuple[dict[str, tuple[WordScorer, bool]], dict[str, str]]:
        """Methods by name, each with whether the gold emotion is given; and what is missing, with the reason.

        ``estimator repo``, ``paper`` and ``running`` are the same model with the forms of evidence of ``EVIDENCES``;
        ``estimator own`` is the model's own form where it is none of these.
        """
        memory: dict[str, Likelihoods] = {}
        found: dict[str, tuple[WordScorer, bool]] = {}
        for form, evidence in {**EVIDENCES, self.form(): self.model.config.settings()}.items():
            name = f"estimator {form}"
            own = EstimatorWords(self.model, self.reader, evidence, memory, name)
            found |= {name: (own, False), name + GOLD: (own, True)}
        found |= {"random": (RandomWords(self.data.random_seed), False), "rake": (RakeWords(), False)}
        for path in self.data.lexicons:
            lexicon = LexiconWords.load(path)
            found[lexicon.name] = (lexicon, False)
        missing = {}
        if not self.data.lexicons:
            missing["lexicon"] = "data.lexicons names none; e.g. data.lexicons=[warriner, vader]"
        if self.data.classifier is None:
            reason = "data.classifier names no emotion classifier; e.g. the checkpoint of rashkin2018/emotion_situation"
            missing |= dict.fromkeys((AttentionWords.kind, GradientWords.kind), reason)
            return found, missing
        found[AttentionWords.kind] = (AttentionWords.load(self.data.classifier), False)
        gradient = GradientWords.load(self.data.classifier)
        found |= {gradient.kind: (gradient, False), gradient.kind + GOLD: (gradient, True)}
        return found, missing

    def form(self) -> str:
        """Name of the model's own form of evidence; ``own`` if it is none of ``EVIDENCES``."""
        own = self.model.config.settings()
        return next((name for name, evidence in EVIDENCES.items() if evidence == own), "own")

    def evaluate(self, split: str, outputs: Path | None) -> dict[str, object]:
        """Emotion of the situations, and recall of cause words of every method on every set.

        Keys are ``SET: METHOD: METRIC``; a method gets the emotion it recognises itself unless its name ends in
        ``gold emotion``. ``SET: A - B: METRIC`` are paired bootstrap comparisons with the estimator. Nothing here has
        learnt from word labels.
        """
        scores = self._emotion_scores(split)
        scorers, missing = self.scorers()
        lines: list[dict[str, object]] = []
        sets = self.word_sets(split)
        for set_name, (items, counts) in sets.items():
            scores[f"{set_name}: counts"] = counts
            measured: dict[str, dict[str, Metric]] = {}
            for name, (scorer, with_emotion) in scorers.items():
                ranked = ranked_words(scorer, items, with_emotion)
                measured[name] = recall_metrics(items, ranked)
                scores |= {f"{set_name}: {name}: {key}": _score(m) for key, m in measured[name].items()}
                lines += [_row(set_name, name, *pair) for pair in zip(items, ranked, strict=True)]
            scores |= comparisons(set_name, measured)
        scores["missing"] = missing
        scores["evidence"] = self.form()
        if "emocause" in sets:
            scores["emocause: published"] = {name: dict(zip(TOP_K, v, strict=True)) for name, v in PUBLISHED.items()}
        if outputs is not None:
            write_rows(outputs, lines)
            (self.folder / "words.md").write_text(word_table(measured_by_names(scores)), encoding="utf-8")
            for place in sets:
                file = "words-" + "-".join(re.findall(r"\w+", place)) + ".svg"
                (self.folder / file).write_text(word_chart(measured_by_names(scores), place), encoding="utf-8")
        return scores

    def _emotion_scores(self, split: str) -> dict[str, object]:
        """How well the posterior names the emotion of situations, and how well the gold emotion predicts them."""
        situations = self.data.model_copy(update={"texts": ("situation",)})
        pairs = self.pairs(split, situations)
        found = likelihoods(self.model, self.reader, [text for _, text in pairs], batch_size=_BATCH)
        gold = np.array([EMOTIONS.index(emotion) for emotion, _ in pairs])
        prior = torch.full((len(EMOTIONS),), -math.log(len(EMOTIONS)), dtype=torch.float64)
        posterior = [emotion_joint(own.values, prior, length_norm=False).softmax(-1).numpy() for own in found]
        scores = {
            f"emotion: {name}": value
            for name, value in classification_scores(np.stack(posterior), gold, EMOTIONS).items()
        }
        commonest, _ = Counter(emotion for emotion, _ in self.pairs("train", situations)).most_common(1)[0]
        is_commonest = [emotion == commonest for emotion, _ in pairs]
        scores["emotion: accuracy_majority"] = round(100 * float(np.mean(is_commonest)), 3)
        rows = [
            (-float(own.values[e].sum()), len(own.text.ids), max(1, count_words(text)))
            for own, e, (_, text) in zip(found, gold, pairs, strict=True)
            if own.text.ids and own.text.is_whole
        ]
        for metric in (TokenPerplexity(gold_labels=True), WordPerplexity(gold_labels=True)):
            nll, pieces, words = (list(column) for column in zip(*rows, strict=True))
            metric.update(nll, pieces, n_words=words)
            scores[f"text: {metric.name}"] = _score(metric)
        return scores

    def data_record(self) -> dict[str, object]:
        """Pairs per split with a checksum."""
        return {
            self.data.corpus: counted_splits(
                lambda split: [f"{emotion}\t{text}\n" for emotion, text in self.pairs(split)]
            )
        }


def _in_order(splits: Collection[str]) -> list[str]:
    return [own for own in ("train", "valid", "test") if own in splits]


def _united(found: Mapping[str, tuple[list[WordItem], Mapping[str, int]]]) -> tuple[list[WordItem], dict[str, int]]:
    """Items and summed counts of several splits."""
    items = [item for own in _in_order(found) for item in found[own][0]]
    return items, sum((Counter(counts) for _, counts in found.values()), Counter[str]())


def ranked_words(
    scorer: WordScorer, items: Sequence[WordItem], with_emotion: bool = False, *, batch_size: int = _BATCH
) -> list[list[int]]:
    """Indices of the words each item's scorer ranks, best first.

    Args:
        scorer: Any method.
        items: Gold words are not shown to it.
        with_emotion: Show it the gold emotion.
        batch_size: Most texts in one pass.
    """
    questions = [item.question(with_emotion) for item in items]
    answers = scorer.score(questions, batch_size=batch_size)
    return [rank(question, answer.scores) for question, answer in zip(questions, answers, strict=True)]


def recall_metrics(items: Sequence[WordItem], ranked: Sequence[Sequence[int]]) -> dict[str, Metric]:
    """Top-1, 3 and 5 recall: official (affix match), and strict (same word at the same index).

    Args:
        items: With gold words.
        ranked: From :func:`ranked_words`.

    Returns:
        ``cause_recall_topK`` and ``cause_recall_topK_index`` by name; each score's parts hold its ``ceiling``.
    """
    told = [[(item.text[slice(*item.words[i])], i) for i in own] for item, own in zip(items, ranked, strict=True)]
    out: dict[str, Metric] = {}
    for k in TOP_K:
        lenient, strict = CauseRecall(k), CauseRecall(k, strict="index")
        lenient.update([[word for word, _ in own] for own in told], [[word for word, _ in i.gold] for i in items])
        strict.update(told, [list(item.gold) for item in items])
        out |= {metric.name: metric for metric in (lenient, strict)}
    return out


def comparisons(set_name: str, measured: Mapping[str, Mapping[str, Metric]]) -> dict[str, object]:
    """Each form of the estimator against every baseline on the same items (paired bootstrap)."""
    out: dict[str, object] = {}
    ours = [name for name in measured if name.startswith("estimator") and not name.endswith(GOLD)]
    baselines = [name for name in measured if not name.startswith("estimator")]
    for a in ours:
        for b in baselines:
            for k in TOP_K:
                key = f"cause_recall_top{k}"
                if measured[a][key].n_items > 1:
                    found = paired_bootstrap(measured[a][key], measured[b][key], n_resamples=N_RESAMPLES)
                    out[f"{set_name}: {a} - {b}: {key}"] = found.to_dict()
    return out


def _start_table(model: EmotionEstimator, tokenizer: DialogueTokenizer, encoder: str) -> None:
    """Word table from an encoder's outputs for each piece, at the scale the fresh table has."""
    table = model.backbone.get_input_embeddings().weight
    matrix = torch.from_numpy(distil_vectors(resolve_model(encoder), tokenizer.piece_texts(), width=table.shape[1]))
    is_found = matrix.norm(dim=-1) > 0
    with torch.no_grad():
        table[is_found] = matrix[is_found] / matrix[is_found].std() * table.std()


def _score(metric: Metric) -> ScoreRecord:
    return metric.compute(n_resamples=N_RESAMPLES).to_dict()


def _row(set_name: str, method: str, item: WordItem, ranked: Sequence[int]) -> dict[str, object]:
    """Ids and offsets of one answer; no text, which is not ours to copy."""
    return {
        "set": set_name,
        "method": method,
        "id": item.id,
        "gold": [list(item.words[i]) for _, i in item.gold if i >= 0],
        "ranked": [list(item.words[i]) for i in ranked[: max(TOP_K)]],
    }
