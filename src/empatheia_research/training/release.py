"""A finished run made into a model folder to hand on: thresholds chosen on validation data, card from the record."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict

from safetensors.torch import load_file, save_file

from empatheia.errors import CheckpointError, EmpatheiaError
from empatheia.metrics.earlier_records import is_score, score_of
from empatheia.reading import read_record
from empatheia.records.dialogue import Example
from empatheia.settings import read_yaml
from empatheia.writing import check_replaceable, is_run, save_folder, write_atomically
from empatheia_research.checkpoints.open import open_model
from empatheia_research.corpora import CORPORA, recec, sample
from empatheia_research.corpora.licences import licence
from empatheia_research.recipes.recipe import Recipe, validate_recipe
from empatheia_research.training import evaluation


class ModelCard(TypedDict):
    """What the card of a packaged responder tells: of its run, and of the model as it was packaged.

    Attributes:
        name, description: As given.
        recipe, size, seed, note, training_seconds, environment, data: Of the run's record.
        parameters: Numbers in the network.
        licence: Of the weights.
        cause_threshold, temperature: Chosen on validation data.
        uses: What it learnt from or took besides replies.
        pretraining_corpora: Names.
        metrics: Scores by name, and facts.
    """

    name: str
    description: str
    recipe: str
    size: str
    seed: int
    note: str
    parameters: int
    training_seconds: float
    environment: dict[str, Any]
    data: dict[str, Any]
    licence: str
    cause_threshold: float
    temperature: float
    uses: dict[str, Any]
    pretraining_corpora: list[str]
    metrics: dict[str, object]


class ModelFolder:
    """A responder's folder, opened for measuring.

    Args:
        folder: What ``write_model_folder`` wrote.

    Raises:
        CheckpointError: Something is missing in it, or it holds another kind of model.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        for name in ("empatheia.json", "config.json", "model.safetensors", "recipe.yaml"):
            if not (self.folder / name).is_file():
                raise CheckpointError(
                    f"{self.folder} has no {name}; give a run folder's checkpoint/ or a model folder."
                )
        self.meta = read_record(self.folder / "empatheia.json")
        self.recipe: Recipe = validate_recipe(read_yaml(self.folder / "recipe.yaml"), str(self.folder / "recipe.yaml"))
        if self.recipe.task != "respond":
            raise CheckpointError(
                f"{self.folder} is a model of task {self.recipe.task!r}; accepted: a responder. Its scores are"
                " in metrics.json of its run; `empatheia evaluate understanding` sets records beside published rows."
            )
        opened = open_model(self.folder)
        self.contexts = opened.reader.contexts
        self.model: Any = opened.network
        self.tokenizer = opened.tokenizer
        self.tokenizer.remember()
        self.sample_root = sample.root() if self.recipe.data.corpus == "sample" else None

    def examples(self, split: str) -> list[Example]:
        """What the recipe measures of a split of its corpus."""
        data = self.recipe.data
        dialogues = CORPORA.get(data.corpus)(split).dialogues
        limit = getattr(data, f"{split}_limit")
        examples = [e for d in dialogues[:limit] for e in d.examples(data.roles, max_context_words=512)]
        return evaluation.one_turn_a_dialogue(examples) if data.test_turns == "one" else examples

    def evaluate(self, split: str = "test", outputs: Path | None = None) -> dict[str, object]:
        """All metrics on a split; the same call made the numbers of the card."""
        try:
            gold = {note.dialogue_id: note for note in recec.load(split, root=self.sample_root).annotations}
        except EmpatheiaError:
            gold = {}
        result = evaluation.evaluate_model(
            self.contexts,
            self.examples(split),
            self.recipe.decoding,
            gold,
            outputs,
            cause_threshold=self.meta["cause_threshold"],
            sentence_encoder=self.recipe.sentence_encoder,
        )
        if self.recipe.data.spans == "reccon":
            rows = self._word_flags(split)
            result |= evaluation.word_cause_scores(rows, self.meta["cause_threshold"])
            if "cause_threshold_in_turn" in self.meta:
                given = evaluation.word_cause_scores(rows, self.meta["cause_threshold_in_turn"], "_given_turn")
                result |= {name: score for name, score in given.items() if name == "reccon_word_f1_given_turn"}
            rows = self._word_flags(split, whole_history=True)
            result |= evaluation.word_cause_scores(rows, self.meta["cause_threshold"], "_history")
        return result

    def _word_flags(self, split: str, whole_history: bool = False) -> list[tuple[list[float], list[int]]]:
        return evaluation.word_cause_flags(self.contexts, split, self.sample_root, whole_history=whole_history)

    def calibrate(self) -> dict[str, float]:
        """Cause thresholds (over whole histories; inside turns known to be causal) and temperature, from valid."""
        from empatheia_research.training.tasks.respond import EMOTION_INDEX

        chosen: dict[str, float] = {}
        if self.recipe.data.spans == "reccon":
            rows = self._word_flags("valid", whole_history=True)
            if rows:
                chosen["cause_threshold"] = evaluation.best_word_threshold(rows, tolerance=0.01)
                chosen["cause_threshold_in_turn"] = evaluation.best_word_threshold(self._word_flags("valid"))
        examples = self.examples("valid")
        items = self.contexts.pieces(examples, emotion_index=EMOTION_INDEX)
        self.contexts.add_side_inputs(examples, items)
        measured = evaluation.measure(self.model, items, self.tokenizer.pad_id, side_inputs=self.contexts.side_inputs)
        gold = [item.emotion_label for item in items]
        if measured.emotion_probabilities is not None and min(gold, default=-1) >= 0:
            chosen["temperature"] = evaluation.fit_temperature(measured.emotion_probabilities, gold)
        return chosen


def package(run: Path, target: Path, name: str, *, half: bool = True, description: str = "") -> ModelCard:
    """Makes a model folder from a finished run: weights rounded to 16 bits, calibrated, measured, with its card.

    Args:
        run: Run folder of a responder.
        target: New model folder; one that was packaged before is replaced.
        name: What the model calls itself.
        half: Store weights as float16 (half the size); they are rounded before anything is measured.
        description: First paragraph of the card.

    Raises:
        CheckpointError: The run is not finished, or something else than a packaged model is in the place.
    """
    record = finished_record(run)
    check_target(run, target)
    cards: list[ModelCard] = []

    def fill(folder: Path) -> None:
        for path in (run / "checkpoint").iterdir():
            (folder / path.name).write_bytes(path.read_bytes())
        if half:
            weights = halved(load_file(folder / "model.safetensors"))
            save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        (folder / "model.safetensors").chmod(0o644)
        meta_path = folder / "empatheia.json"
        meta = read_record(meta_path) | {"name": name}
        meta_path.write_text(json.dumps(meta, indent=2), encoding="utf-8")
        meta |= ModelFolder(folder).calibrate()
        meta_path.write_text(json.dumps(meta, indent=2), encoding="utf-8")
        opened = ModelFolder(folder)
        card = _card(opened, record, name, description, opened.evaluate("test"))
        cards.append(card)
        write_atomically(folder / "card.json", json.dumps(card, indent=1, ensure_ascii=False))
        write_atomically(folder / "README.md", card_text(card))

    save_folder(target, fill)
    return cards[0]


def check_target(run: Path, target: Path) -> None:
    """Whether a model folder may be made there: not in a run, nor around one, nor in the place of something else.

    Raises:
        CheckpointError: It may not.
    """
    place = target.resolve()
    inside = next((folder for folder in (place, *place.parents) if is_run(folder) or folder == run.resolve()), None)
    if inside is not None or place in run.resolve().parents:
        what = f"in the run folder {inside}" if inside is not None else f"around the run folder {run}"
        raise CheckpointError(f"{target} is {what}; a model folder lies beside runs: name another, new folder.")
    check_replaceable(place)


def _card(
    opened: ModelFolder, record: dict[str, Any], name: str, description: str, metrics: dict[str, object]
) -> ModelCard:
    """What the model card tells, from the run's record and the model as packaged."""
    return {
        "name": name,
        "description": description,
        "recipe": record["recipe"],
        "size": record["size"],
        "seed": record["seed"],
        "note": record["note"],
        "parameters": record["parameters"],
        "training_seconds": record["training_seconds"],
        "environment": record["environment"],
        "data": record["data"],
        "licence": opened.meta["licence"],
        "cause_threshold": opened.meta["cause_threshold"],
        "temperature": opened.meta["temperature"],
        "uses": {
            "situations": opened.recipe.data.situations or any(s.data.get("situations") for s in opened.recipe.stages),
            "spans": opened.recipe.data.spans,
            "causes": opened.recipe.data.causes,
            "teacher": opened.recipe.tokenizer.distil,
            "emotion_teacher": opened.recipe.data.emotion_teacher,
            "encoder": opened.recipe.encoder,
        },
        "pretraining_corpora": sorted({c for s in opened.recipe.stages for c in s.data.get("extra", ())}),
        "metrics": metrics,
    }


_CARD_ROWS = (
    ("accuracy", "Emotion accuracy, 32 classes (%)", 2),
    ("accuracy_top5", "Emotion accuracy, top 5 (%)", 2),
    ("ppl_word", "Perplexity per word (family words + end mark)", 2),
    ("ppl_token", "Perplexity per piece", 2),
    ("bleu_nltk_4", "BLEU-4, NLTK corpus (%)", 3),
    ("bleu_nltk_2", "BLEU-2, NLTK corpus (%)", 3),
    ("dist_corpus_1", "Distinct-1, corpus (%)", 3),
    ("dist_corpus_2", "Distinct-2, corpus (%)", 3),
    ("cause_f1_turn", "Cause turns against RecEC's labels, F1 (%)", 2),
    ("reccon_word_f1", "Cause words inside RECCON's causal turns, F1 (%)", 2),
    ("reccon_word_f1_given_turn", "The same, threshold chosen inside causal turns (%)", 2),
    ("reccon_word_f1_whole_turn", "The same, marking the whole turn (%)", 2),
    ("reccon_word_f1_later_half", "The same, marking the later half (%)", 2),
    ("reccon_word_precision", "Precision inside causal turns (%)", 2),
    ("reccon_word_share_marked", "Share of words marked inside causal turns (%)", 2),
    ("reccon_word_auc", "Area under the curve inside a causal turn", 4),
    ("reccon_word_auc_later_first", "The same, later words first", 4),
    ("reccon_word_f1_history", "Cause words in RECCON's whole history, F1 (%)", 2),
    ("reccon_word_f1_history_whole_turn", "The same, marking every word (%)", 2),
)


def metric_rows(metrics: Mapping[str, object]) -> list[tuple[str, str, str, int]]:
    """Printed rows of measured scores: label, value, 95 % interval, n."""
    rows = []
    for key, label, digits in _CARD_ROWS:
        if not is_score(value := metrics.get(key)):
            continue
        score = score_of(key, value)
        if math.isnan(score.value):  # undefined on these items, e.g. BLEU-4 of replies shorter than four words
            rows.append((label, "undefined", "", score.n))
            continue
        factor = 100.0 if score.unit == "fraction" and "(%)" in label else 1.0
        interval = " to ".join(f"{factor * end:.{digits}f}" for end in score.interval or ())
        rows.append((label, f"{factor * score.value:.{digits}f}", interval, score.n))
    return rows


def number_lines(note: str, metrics: Mapping[str, object]) -> list[str]:
    """The section of a card that tells what was measured: what on, then a row for each score."""
    table = ["| metric | value | 95 % interval | n |", "|---|---|---|---|"]
    rows = [f"| {label} | {value} | {interval} | {n} |" for label, value, interval, n in metric_rows(metrics)]
    return ["", "## Numbers", "", note, "", *table, *rows]


def finished_record(run: Path) -> dict[str, Any]:
    """What a finished run says of itself.

    Raises:
        CheckpointError: The run is not finished.
    """
    path = run / "metrics.json"
    if not path.is_file():
        raise CheckpointError(
            f"{run} has no metrics.json: the run is not finished; continue it with `empatheia train`."
        )
    return read_record(path)


def halved(weights: Mapping[str, Any]) -> dict[str, Any]:
    """Floating-point tensors as float16, the others as they are."""
    return {key: own.half() if own.is_floating_point() else own for key, own in weights.items()}


def card_text(card: ModelCard) -> str:
    """The model card in Markdown, from the record alone."""
    environment = card["environment"]
    lines = [
        f"# {card['name']}",
        "",
        card["description"] or card["note"],
        "",
        f"- **Licence of the weights:** {card['licence']} (they were trained on EmpatheticDialogues, CC BY-NC 4.0).",
        f"- **Recipe:** `{card['recipe']}`, size `{card['size']}`, seed {card['seed']},"
        f" commit `{environment['commit'][:12]}`.",
        f"- **Parameters:** {card['parameters']:,}, trained"
        f" {card['training_seconds'] / 60:.0f} minutes on {environment['device']}.",
        f"- **Thresholds chosen on validation data:** cause words from probability {card['cause_threshold']},"
        f" emotion temperature {card['temperature']}.",
        "",
        "## Data",
        "",
        "- EmpatheticDialogues train (CC BY-NC 4.0): replies and emotion labels"
        + (", situations." if card["uses"]["situations"] else "."),
    ]
    if card["uses"]["spans"] == "reccon":
        lines.append(
            "- RECCON (DailyDialog part) train: cause spans, for the word head. The annotation states no licence; its"
            " text is DailyDialog's, CC BY-NC-SA 4.0."
        )
    if card["uses"]["causes"] != "none":
        lines.append(f"- Cause turns of EmpatheticDialogues: {card['uses']['causes']}.")
    for name in card["pretraining_corpora"]:
        entry = licence(name)
        lines.append(f"- {name}: {entry.licence} (replies, pre-training).")
    if card["uses"]["teacher"]:
        lines.append(
            f"- Teacher: the word vectors started from the outputs of the sentence encoder {card['uses']['teacher']!r}"
            " for each piece (distilled; no weight of it is inside)."
        )
    if card["uses"].get("emotion_teacher"):
        lines.append(
            "- Teacher: the emotion head also learnt from the distributions of `gao2021/soft_pretrained`'s reasoner"
            f" (`{card['uses']['emotion_teacher']}`)."
        )
    if card["uses"]["encoder"]:
        lines.append(f"- Pretrained encoder inside: {card['uses']['encoder']!r}; its own licence applies too.")
    lines += number_lines(
        "EmpatheticDialogues test, every listener turn, greedy decoding, no gold label given to the model;"
        " intervals are 95 % bootstrap over items. One seed.",
        card["metrics"],
    )
    lines += [
        "",
        "Words are counted by the family's rules: lower-case, contractions expanded, NLTK tokens, plus one end mark a"
        " reply; all nats of a reply's pieces are divided by that count, so no word is unknown. `empatheia evaluate"
        " FOLDER`, with this folder, prints these numbers again.",
        "",
        "## Failure modes",
        "",
        "- Replies are short, often generic, and can miss or invert what happened; they are not advice.",
        "- The emotion is that of a conversation's label among 32 overlapping ones: angry and furious, afraid and"
        " terrified are often swapped.",
        "- Cause words follow RECCON's habits (everyday English dialogues); irony, several causes and long texts fail.",
        "- English only. Emoji, other languages and unknown words are answered but marked as uncertain.",
        "- Not a therapist: by itself it does not recognise a crisis; `empatheia.care` stands in front of its answers,"
        " and misses some. Do not use it on people in distress without supervision.",
        "",
    ]
    return "\n".join(lines)
