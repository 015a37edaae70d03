"""Measures a responder: teacher-forced likelihood, emotion and causes from its own predictions, decoded replies.

No gold label enters the model: emotion and gates are the model's own in all three parts, so perplexity is "without
gold labels". Words are counted by the family's preprocessing (lower-case, contractions expanded, NLTK tokens) plus
one end mark a reply, whatever pieces the model scores.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Protocol, cast

import numpy as np
import torch
from transformers import GenerationConfig
from transformers.trainer_utils import set_seed

from empatheia.errors import EmpatheiaError
from empatheia.metrics import METRICS
from empatheia.metrics.score import Score
from empatheia.records.dialogue import CauseAnnotation, Example, Span
from empatheia.taxonomy import EMOTIONS
from empatheia.text.batching import TokenBatchSampler
from empatheia.text.words import tokenize_words
from empatheia_research.checkpoints.contexts import ContextReader
from empatheia_research.corpora import reccon, recec, sample
from empatheia_research.decoding.diverse_beams import diverse_beams
from empatheia_research.decoding.shrinking_beams import shrinking_beams
from empatheia_research.recipes.data import DataConfig
from empatheia_research.recipes.recipe import DecodingConfig, GenerateSettings, Recipe
from empatheia_research.responders.seq2seq import Seq2SeqResponder, word_loss
from empatheia_research.side_inputs import SideInput, TeachingSideInput
from empatheia_research.text.collation import Collator, EncodedExample, merge_spans, word_scores
from empatheia_research.text.tokenizer import DialogueTokenizer
from empatheia_research.training import word_marks

N_RESAMPLES = 1000
TOLD = "gold label: "
"""Begins the name of a score whose model was told what the gold reply expresses."""
ROWS_AT_ONCE = 512
"""Most hypotheses in one decoding step."""


@dataclass
class Measured:
    """Per-item results of one pass, in the order of the items.

    Attributes:
        nll: Nats of each gold reply. Shape: ``(n,)``.
        n_tokens: Scored pieces. Shape: ``(n,)``.
        emotion_probabilities: Shape: ``(n, 32)``; None without an emotion head.
        cause_probabilities: One array for each item, ``(source,)``; None without a cause head.
    """

    nll: np.ndarray
    n_tokens: np.ndarray
    emotion_probabilities: np.ndarray | None
    cause_probabilities: list[np.ndarray] | None


class ResponderRun(Protocol):
    """A recipe's responder with its examples and how it reads them."""

    @property
    def recipe(self) -> Recipe:
        """What it was made by."""
        ...

    def examples(self, data: DataConfig, split: str) -> list[Example]:
        """Contexts and gold replies of a split."""
        ...

    def contexts(self, data: DataConfig) -> ContextReader:
        """How the model reads contexts."""
        ...


class CountedReply(Protocol):
    """An item that says how long its gold reply is."""

    @property
    def n_target_words(self) -> int:
        """Words and an end mark, by the family's rules."""
        ...


class NamedPieces(Protocol):
    """A vocabulary as the signature of a score names it; its length is the number of pieces."""

    @property
    def kind(self) -> str:
        """How texts are cut, e.g. ``words``, ``bpe``, ``hf``."""
        ...

    def __len__(self) -> int: ...


def batches_of(
    items: Sequence[EncodedExample], max_tokens: int, key: Callable[[EncodedExample], int]
) -> list[list[int]]:
    """Length-sorted batches of at most ``max_tokens`` padded pieces."""
    return [list(b) for b in TokenBatchSampler([key(item) for item in items], max_tokens, shuffle=False, seed=0)]


def context_features(model: Seq2SeqResponder) -> tuple[str, ...]:
    """What a system reads to answer: its features without gold labels."""
    return tuple(name for name in model.features if name not in model.gold_features)


@torch.inference_mode()
def measure(
    model: Seq2SeqResponder,
    items: Sequence[EncodedExample],
    pad_id: int,
    max_tokens: int = 6000,
    side_inputs: Sequence[SideInput] = (),
    told: Mapping[str, str] = MappingProxyType({}),
) -> Measured:
    """Teacher-forced pass over items.

    Args:
        model: A responder; put into evaluation mode.
        items: With ``labels`` for the likelihood (items without count 0 nats over 0 pieces).
        pad_id: Padding piece.
        max_tokens: Padded pieces a batch.
        side_inputs: What the system reads beside the context.
        told: Feature to the gold feature that stands in its place, for a score "with gold labels".
    """
    model.eval()
    n = len(items)
    nll, n_tokens = np.zeros(n), np.zeros(n, dtype=int)
    emotions: dict[int, np.ndarray] = {}
    causes: dict[int, np.ndarray] = {}
    collate = Collator((*context_features(model), *told.values(), "labels"), pad_id, side_inputs)
    for indices in batches_of(items, max_tokens, lambda item: max(len(item.input_ids), len(item.labels or ()))):
        batch = {k: v.to(model.device) for k, v in collate([items[i] for i in indices]).items()}
        batch |= {feature: batch.pop(gold) for feature, gold in told.items()}
        output = model(**batch)
        if output.logits is not None:
            losses = word_loss(output.logits, batch["labels"], pad_id)
            nll[indices] = losses.double().sum(-1).cpu().numpy()
            n_tokens[indices] = batch["labels"].ne(-100).sum(-1).cpu().numpy()
        for row, i in enumerate(indices):
            if output.emotion_logits is not None:
                emotions[i] = output.emotion_logits[row].double().softmax(-1).cpu().numpy()
            if output.cause_logits is not None:
                probabilities = output.cause_logits[row, : len(items[i].input_ids)].softmax(-1)[:, 1]
                causes[i] = probabilities.cpu().numpy()
    return Measured(
        nll,
        n_tokens,
        np.stack([emotions[i] for i in range(n)]) if emotions else None,
        [causes[i] for i in range(n)] if causes else None,
    )


@torch.inference_mode()
def generate(
    model: Seq2SeqResponder,
    items: Sequence[EncodedExample],
    tokenizer: DialogueTokenizer,
    decoding: DecodingConfig,
    *,
    batch_size: int = 64,
    progress: Callable[[int, int], None] | None = None,
    side_inputs: Sequence[SideInput] = (),
) -> list[str]:
    """Replies as space-joined lower-case words (what the metrics read), in the order of the items.

    Args:
        model: A responder.
        items: Contexts; their labels are not read.
        tokenizer: The model's tokeniser.
        decoding: Strategy and limits; sampling is seeded once, so it depends on the batch size.
        batch_size: Contexts decoded at once; fewer with wide beams.
        progress: Called with (done, all) after each batch.
        side_inputs: What the system reads beside the context.
    """
    model.eval()
    set_seed(decoding.seed)
    settings: GenerateSettings = {
        "max_new_tokens": decoding.max_new_tokens,
        "do_sample": decoding.strategy == "sample",
        # always given: what is not would be taken from the model's own settings; shrinking beams have their own rule
        "num_beams": 1,
        "no_repeat_ngram_size": 0 if decoding.strategy == "shrinking_beam" else decoding.no_repeat_ngram_size,
    }
    if decoding.strategy == "sample":
        settings.update(top_k=decoding.top_k or 0, top_p=decoding.top_p, temperature=decoding.temperature)
    elif decoding.strategy == "beam":
        settings.update(num_beams=decoding.num_beams, length_penalty=decoding.length_penalty)
    extra: dict[str, object] = {}
    if decoding.strategy == "diverse_beam":
        settings.update(num_beams=decoding.num_beams, length_penalty=decoding.length_penalty)
        extra = {"custom_generate": diverse_beams(decoding.num_groups, decoding.diversity)}
    elif decoding.strategy == "shrinking_beam":
        settings.update(num_beams=decoding.num_beams, length_penalty=decoding.length_penalty)
        extra = {"custom_generate": shrinking_beams(decoding.no_repeat_ngram_size)}
    batch_size = min(batch_size, max(1, ROWS_AT_ONCE // settings.get("num_beams", 1)))
    config = GenerationConfig(
        **settings,
        pad_token_id=tokenizer.pad_id,
        bos_token_id=tokenizer.bos_id,
        eos_token_id=tokenizer.eos_id,
        decoder_start_token_id=tokenizer.bos_id,
    )
    replies = [""] * len(items)
    collate = Collator(context_features(model), tokenizer.pad_id, side_inputs)
    order = sorted(range(len(items)), key=lambda i: (len(items[i].input_ids), i))
    for start in range(0, len(order), batch_size):
        indices = order[start : start + batch_size]
        batch = {k: v.to(model.device) for k, v in collate([items[i] for i in indices]).items()}
        produced = model.generate(**batch, generation_config=config, **extra)
        assert isinstance(produced, torch.Tensor)  # no dictionary was asked for
        for i, ids in zip(indices, produced.tolist(), strict=True):
            replies[i] = tokenizer.decode(ids, raw=True)
        if progress is not None:
            progress(min(start + batch_size, len(order)), len(order))
    return replies


def evaluate_responder(task: ResponderRun, split: str, outputs: Path | None) -> dict[str, object]:
    """All foundation metrics of a responder run on a split of its corpus.

    Args:
        task: A :class:`~empatheia_research.training.tasks.respond.RespondTask`.
        split: ``valid`` or ``test``.
        outputs: File for one JSON line a reply (context ids, hypothesis, reference, emotion, cause spans); None writes
            none.

    Returns:
        Name to ``Score.to_dict()``, plus ``decoding`` facts.
    """
    recipe = task.recipe
    examples = [e for e in task.examples(task.recipe.data, split) if e.response is not None]
    if recipe.data.test_turns == "one":
        examples = one_turn_a_dialogue(examples)
    root = sample.root() if recipe.data.corpus == "sample" else None
    try:
        gold_causes = {note.dialogue_id: note for note in recec.load(split, root=root).annotations}
    except EmpatheiaError:
        gold_causes = {}
    return evaluate_model(
        task.contexts(recipe.data),
        examples,
        recipe.decoding,
        gold_causes,
        outputs,
        sentence_encoder=recipe.sentence_encoder,
    )


def one_turn_a_dialogue(examples: Sequence[Example], seed: int = 2021, most: int = 2_000) -> list[Example]:
    """One example of each conversation, drawn at random, of ``most`` conversations at most, in their order.

    MEED2's test (Xie and Pu 2021, released code), whose own draws are not published.
    """
    by_dialogue: dict[str, list[Example]] = {}
    for example in examples:
        by_dialogue.setdefault(example.dialogue_id, []).append(example)
    draw = random.Random(seed)
    drawn = [draw.choice(own) for own in by_dialogue.values()]
    return [drawn[i] for i in sorted(draw.sample(range(len(drawn)), min(most, len(drawn))))]


def evaluate_model(
    contexts: ContextReader,
    examples: Sequence[Example],
    decoding: DecodingConfig,
    gold_causes: Mapping[str, CauseAnnotation],
    outputs: Path | None = None,
    max_target: int | None = None,
    cause_threshold: float = 0.5,
    sentence_encoder: str | None = None,
) -> dict[str, object]:
    """See :func:`evaluate_responder`; this one takes a reader, so that a bundled model can be measured too.

    Whole replies are scored, whatever a recipe keeps in training, unless ``max_target`` limits their pieces. With a
    ``sentence_encoder`` the similarity of replies and gold replies is measured, too.
    """
    index = {name: i for i, name in enumerate(EMOTIONS)}
    model, tokenizer, side_inputs = contexts.network, contexts.tokenizer, contexts.side_inputs
    items = contexts.pieces(examples, emotion_index=index, max_target=max_target)
    contexts.add_side_inputs(examples, items)
    set_seed(decoding.seed)  # a model may draw when it answers (MIME as released): measured again, the same numbers
    measured = measure(model, items, tokenizer.pad_id, side_inputs=side_inputs)
    begun = time.perf_counter()
    replies = generate(model, items, tokenizer, decoding, side_inputs=side_inputs)
    seconds = time.perf_counter() - begun
    references = [" ".join(word.text for word in tokenize_words(e.response or "")) for e in examples]
    scores: list[Score] = likelihood_scores(measured, items, examples, tokenizer)
    scores += told_scores(model, items, examples, tokenizer, side_inputs)
    scores += reply_scores(replies, references)
    if sentence_encoder is not None:
        scores.append(similarity_score(replies, references, sentence_encoder))
    gold = [item.emotion_label for item in items]
    if measured.emotion_probabilities is not None and all(label >= 0 for label in gold):
        scores += emotion_scores(measured.emotion_probabilities, gold)
    if measured.cause_probabilities is not None and gold_causes:
        scores += turn_cause_scores(measured.cause_probabilities, items, gold_causes, cause_threshold)
    if outputs is not None:
        _write_outputs(outputs, measured, items, replies, references, cause_threshold)
    result: dict[str, object] = {score.name: score.to_dict() for score in scores}
    result["decoding"] = {**decoding.model_dump(), **_facts(replies, seconds)}
    return result


def _write_outputs(
    file: Path,
    measured: Measured,
    items: Sequence[EncodedExample],
    replies: Sequence[str],
    references: Sequence[str],
    cause_threshold: float,
) -> None:
    """One JSON line a reply: :func:`evaluate_responder` says what it holds."""
    with file.open("w", encoding="utf-8") as stream:
        for i, (item, reply, reference) in enumerate(zip(items, replies, references, strict=True)):
            row = {"id": item.dialogue_id, "turn": item.turn_index, "hyp": reply, "ref": reference}
            if measured.emotion_probabilities is not None:
                row |= {
                    "emotion": EMOTIONS[item.emotion_label] if item.emotion_label >= 0 else None,
                    "predicted": EMOTIONS[measured.emotion_probabilities[i].argmax()],
                }
            if measured.cause_probabilities is not None:
                spans = merge_spans(word_scores(item, measured.cause_probabilities[i].tolist()), cause_threshold)
                row["causes"] = [{"turn": span.turn, "start": span.start, "end": span.end} for span in spans]
            stream.write(json.dumps(row, ensure_ascii=False) + "\n")


def _facts(replies: Sequence[str], seconds: float) -> dict[str, object]:
    """How many replies, how fast, how long, how many different."""
    return {
        "replies": len(replies),
        "replies_per_second": round(len(replies) / max(seconds, 1e-9), 1),
        "mean_words": round(sum(len(r.split()) for r in replies) / max(1, len(replies)), 2),
        "distinct_replies": len(set(replies)),
    }


def likelihood_scores(
    measured: Measured,
    items: Sequence[CountedReply],
    examples: Sequence[Example],
    tokenizer: NamedPieces,
    gold_labels: bool = False,
) -> list[Score]:
    """Token, per-word and item-level perplexity; ``gold_labels`` says whether the model was told any."""
    name = f"{tokenizer.kind}-{len(tokenizer)}"
    words = [item.n_target_words for item in items]
    scores = []
    for metric_name in ("ppl_token", "ppl_word", "ppl_item"):
        metric = METRICS.get(metric_name)(tokenizer=name, words="family+eos", gold_labels=gold_labels)
        metric.update(measured.nll, measured.n_tokens, n_words=words, references=[e.response or "" for e in examples])
        scores.append(metric.compute(n_resamples=N_RESAMPLES))
    return scores


def told_scores(
    model: Seq2SeqResponder,
    items: Sequence[EncodedExample],
    examples: Sequence[Example],
    tokenizer: DialogueTokenizer,
    side_inputs: Sequence[SideInput],
) -> list[Score]:
    """Perplexities of a model that is told what its paper's is told of the gold reply; names begin with ``TOLD``.

    Nothing for a model without ``told_features``. Writes the gold features into the items.
    """
    told = getattr(model, "told_features", {})
    if not told:
        return []
    for side in side_inputs:
        if set(side.features) & set(told.values()):
            cast(TeachingSideInput, side).teach(examples, items)  # gold features are what it teaches
    measured = measure(model, items, tokenizer.pad_id, side_inputs=side_inputs, told=told)
    scores = likelihood_scores(measured, items, examples, tokenizer, gold_labels=True)
    return [replace(score, name=TOLD + score.name) for score in scores]


def similarity_score(replies: Sequence[str], references: Sequence[str], encoder: str) -> Score:
    """SES: mean cosine of the sentence vectors of replies and gold replies; 0 for an empty reply.

    Args:
        replies: Texts.
        references: Likewise.
        encoder: Folder or name of a Hugging Face encoder; its states are averaged.
    """
    from empatheia_research.understanding.vectors.texts import SentenceVectors

    vectors = SentenceVectors.load(encoder)
    pairs = [vectors.encode(texts) * [[bool(text.strip())] for text in texts] for texts in (replies, references)]
    metric = METRICS.get("sentence_similarity")(encoder=encoder)
    metric.update(*pairs, texts=references)
    return metric.compute(n_resamples=N_RESAMPLES)


def reply_scores(replies: Sequence[str], references: Sequence[str]) -> list[Score]:
    """BLEU and Distinct variants on lower-case word tokens."""
    scores = []
    for name in ("bleu_nltk_1", "bleu_nltk_2", "bleu_nltk_3", "bleu_nltk_4", "bleu_avg"):
        metric = METRICS.get(name)()
        metric.update([r.split() for r in replies], [r.split() for r in references])
        scores.append(metric.compute(n_resamples=N_RESAMPLES if name in ("bleu_nltk_2", "bleu_nltk_4") else 0))
    for name in ("dist_corpus_1", "dist_corpus_2"):
        metric = METRICS.get(name)()
        metric.update([r.split() for r in replies])
        scores.append(metric.compute(n_resamples=N_RESAMPLES))
    return scores


def emotion_scores(probabilities: np.ndarray, gold: Sequence[int]) -> list[Score]:
    """Top-1 and top-5 accuracy, macro F1, calibration."""
    scores = []
    accuracy = METRICS.get("accuracy")()
    accuracy.update(probabilities.argmax(-1), gold)
    scores.append(accuracy.compute(n_resamples=N_RESAMPLES))
    for name in ("accuracy_top5", "calibration_error"):
        metric = METRICS.get(name)()
        metric.update(probabilities, gold)
        scores.append(metric.compute())
    macro = METRICS.get("f1_macro")()
    macro.update(probabilities.argmax(-1), gold)
    scores.append(macro.compute())
    return scores


def turn_cause_scores(
    probabilities: Sequence[np.ndarray],
    items: Sequence[EncodedExample],
    gold: Mapping[str, CauseAnnotation],
    threshold: float,
) -> list[Score]:
    """Turn-level precision, recall, F1 against RecEC's labels of the same conversation.

    A turn is called a cause when the mean probability of its pieces reaches the threshold. RecEC explains the
    conversation's last speaker turn, so only the example whose context ends there is compared.
    """
    predicted, truth = [], []
    for item, values in zip(items, probabilities, strict=True):
        note = gold.get(item.dialogue_id)
        if note is None or item.turn_index - 1 != note.target:
            continue
        turns = np.asarray(item.turn_ids)
        flags: list[int] = []
        gold_flags: list[int] = []
        for turn in range(note.target + 1):  # old turns that did not fit count as no cause
            mine = values[turns == turn]
            flags.append(int(mine.size > 0 and mine.mean() >= threshold))
            gold_flags.append(int(turn in note.turns))
        predicted.append(flags)
        truth.append(gold_flags)
    if not truth:
        return []
    metric = METRICS.get("cause_f1_turn")()
    metric.update(predicted, truth)
    return [metric.compute(n_resamples=N_RESAMPLES)]


_PLAIN_WORD_SCORES = (
    ("precision", "precision", "percent"),
    ("share_marked", "share marked", "percent"),
    ("auc", "auc inside", "fraction"),
    ("f1_later_half", "f1 of the later half", "percent"),
    ("auc_later_first", "auc of later words first", "fraction"),
)
"""Ends of names, those of :func:`empatheia_research.training.word_marks.word_scores`, and their units."""


def word_cause_flags(
    contexts: ContextReader, split: str, root: Path | None, *, whole_history: bool = False
) -> list[tuple[list[float], list[int]]]:
    """Cause probability and gold flag of every word inside RECCON's causal turns, one entry a turn.

    A word is gold when it overlaps a gold span of that turn. Contexts are histories that end with the target turn.
    With ``whole_history`` the turns without a cause count too, as they do for a user who reads the highlights.
    """
    examples, notes = reccon.as_examples(split, root)
    items = contexts.pieces(examples)
    measured = measure(contexts.network, items, contexts.tokenizer.pad_id)
    if measured.cause_probabilities is None:
        return []
    rows = []
    for example, item, values in zip(examples, items, measured.cause_probabilities, strict=True):
        note = notes[example.dialogue_id, len(example.context) - 1]
        words = word_scores(item, values.tolist())
        causal = {span.turn for span in note.spans if span.turn < len(example.context)}
        for turn in sorted({word.turn for word in words} if whole_history else causal):
            spans = [span for span in note.spans if span.turn == turn]
            inside = [word for word in words if word.turn == turn]
            if inside:
                rows.append(([float(word.score or 0.0) for word in inside], _overlaps(inside, spans)))
    return rows


def _overlaps(words: Sequence[Span], spans: Sequence[Span]) -> list[int]:
    """1 for each word that shares a character with a span of its turn, else 0."""
    return [int(any(span.start < word.end and word.start < span.end for span in spans)) for word in words]


def word_cause_scores(
    rows: Sequence[tuple[list[float], list[int]]], threshold: float, scope: str = ""
) -> dict[str, object]:
    """Word-level cause F1 over the given turns, ours beside marking every word; ``scope`` ends the names.

    Besides precision and the share marked; the area under the curve inside a turn; and what reads no word: F1 of the
    later half of each turn, and the area of later words first.
    """
    if not rows:
        return {}
    out: dict[str, object] = {}
    plain = word_marks.word_scores(
        [list(zip(values, map(bool, gold), strict=True)) for values, gold in rows], threshold
    )
    for name, predicted in (
        (f"reccon_word_f1{scope}", [[int(p >= threshold) for p in values] for values, _ in rows]),
        (f"reccon_word_f1{scope}_whole_turn", [[1] * len(values) for values, _ in rows]),
    ):
        metric = METRICS.get("cause_f1_word")()
        metric.update(predicted, [gold for _, gold in rows])
        out[name] = {**metric.compute(n_resamples=N_RESAMPLES).to_dict(), "name": name}
    for key, told, unit in _PLAIN_WORD_SCORES:
        if (value := plain[told]) is not None:
            score = Score(f"reccon_word_{key}{scope}", value, unit, len(rows), None if "marked" in key else True)
            out[score.name] = score.to_dict()
    return out


def best_word_threshold(rows: Sequence[tuple[list[float], list[int]]], tolerance: float = 0.0) -> float:
    """The threshold (0.05, 0.06 ... 0.95) with the best word F1; for validation rows only.

    Args:
        rows: From :func:`word_cause_flags`.
        tolerance: F1 (0 to 1) that may be given up: of the thresholds within it of the best the highest is taken,
            which marks the fewest words.
    """
    flat = np.concatenate([np.asarray(values) for values, _ in rows])
    gold = np.concatenate([np.asarray(flags) for _, flags in rows])

    def f1(threshold: float) -> float:
        hits = ((flat >= threshold) & (gold == 1)).sum()
        return 2 * hits / max(1, (flat >= threshold).sum() + gold.sum())

    scores = {i / 100: f1(i / 100) for i in range(5, 96)}
    enough = max(scores.values()) - tolerance
    return max(t for t, score in scores.items() if score >= enough)


def fit_temperature(logits_or_probabilities: np.ndarray, gold: Sequence[int]) -> float:
    """Softmax temperature with the lowest negative log-likelihood on validation items (Guo et al. 2017).

    Args:
        logits_or_probabilities: Probabilities at temperature 1. Shape: ``(n, 32)``.
        gold: Labels. Shape: ``(n,)``.
    """
    log_p = np.log(np.clip(logits_or_probabilities, 1e-30, None))

    def nll(temperature: float) -> float:
        scaled = log_p / temperature
        scaled = scaled - np.logaddexp.reduce(scaled, axis=1, keepdims=True)
        return float(-scaled[np.arange(len(gold)), np.asarray(gold)].mean())

    return round(min((t / 100 for t in range(40, 401)), key=nll), 2)
