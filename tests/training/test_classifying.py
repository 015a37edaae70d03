"""The classifiers' task: what is read and left out, training to a folder that answers the same, calibration, scores."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from empatheia.errors import CheckpointError, ConfigError, DataError
from empatheia.metrics.classification import CalibrationError
from empatheia.taxonomy import EMOTIONS, LABELS_41
from empatheia_research.corpora import sample
from empatheia_research.recipes.recipe import Recipe, load_recipe
from empatheia_research.reports.results_page import keep
from empatheia_research.training.runner import run
from empatheia_research.training.tasks.classify import ClassifyTask, classification_scores
from empatheia_research.understanding.labels.classifier import TextClassifier
from empatheia_research.understanding.labels.feature_classifier import write_features

RECIPES = Path(__file__).resolve().parents[2] / "recipes"
STAGE = {"name": "label", "losses": {"label": 1.0}, "batch_examples": 16, "learning_rate": 1e-2, "evaluations": 1}
ENCODER = {"model_type": "bert", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
           "intermediate_size": 32, "max_position_embeddings": 64}  # fmt: skip
MODELS = {
    "linear_classifier": {"width": 8, "buckets": 100},
    "utterance_classifier": {"encoder_config": ENCODER, "max_pieces": 64, "dropout": 0.0, "encoder_dropout": 0.0},
    "feature_classifier": {},
}


def recipe(system: str = "linear_classifier", data: dict | None = None, model: dict | None = None, **stage) -> Recipe:
    tree = {
        "name": "tiny/classifier",
        "task": "classify",
        "system": system,
        "size": "smoke",
        "seed": 3,
        "tokenizer": {"kind": "bpe", "size": 300},
        "model": MODELS[system] | (model or {}),
        "data": {"corpus": "sample", **(data or {})},
        "stages": [STAGE | stage],
    }
    return Recipe.model_validate(tree)


def items_of(split: str = "train", folder: Path | None = None, **data):
    return ClassifyTask(recipe(data=data), folder or Path()).items(split)


# -- what is read --------------------------------------------------------------------------------------------


def test_one_item_a_situation_a_context_or_a_speaker_turn():
    dialogues = list(sample.load("test"))
    situations, contexts, turns = (items_of("test", text=text) for text in ("situation", "context", "utterance"))
    assert [(i.id, i.text) for i in situations] == [(d.id, d.situation) for d in dialogues]
    examples = [(e, d) for d in dialogues for e in d.examples()]
    assert [(i.id, i.text) for i in contexts] == [(f"{d.id}/{e.turn_index}", e.context) for e, d in examples]
    assert [i.text for i in turns] == [t.text for d in dialogues for t in d.turns if t.role == "speaker"]
    for item, (_, dialogue) in zip(contexts, examples, strict=True):
        assert EMOTIONS[item.label] == dialogue.emotion and item.words.count("\n") == len(item.text) - 1


def test_cut_leaves_out_texts_with_their_own_label():
    whole, cut = items_of(), items_of(cut=True)
    gone = {i.id for i in whole} - {i.id for i in cut}
    assert gone == {i.id for i in whole if EMOTIONS[i.label] in i.words.lower()}
    assert [i.row for i in cut] == [i.row for i in whole if i.id not in gone]


@pytest.mark.real_data
def test_cut_shares():
    """Rashkin et al., table 9: ED-cut leaves out 5.4 % of train, 3.9 % of valid, 9.9 % of test situations."""
    if not os.environ.get("EMPATHEIA_DATA", "").strip():
        pytest.skip("EMPATHEIA_DATA is not set: the real corpora are not here")
    task = ClassifyTask(recipe(data={"corpus": "empathetic_dialogues", "train_limit": 5}), Path())
    whole = task.data.model_copy(update={"train_limit": None})
    cut = whole.model_copy(update={"cut": True})
    counts = {s: (len(task.items(s, whole)), len(task.items(s, cut))) for s in ("train", "valid", "test")}
    assert {s: n for s, (n, _) in counts.items()} == {"train": 19_532, "valid": 2_770, "test": 2_547}
    shares = {s: round(100 * (n - m) / n, 1) for s, (n, m) in counts.items()}
    assert shares == {"train": 5.4, "valid": 3.9, "test": 9.9}


def test_variants_of_the_41_labels():
    clean, repo = (items_of(corpus="sample", labels=41, variant=v) for v in ("clean", "repo"))
    assert [i.label for i in clean] == [i.label for i in repo]
    assert [i.text for i in clean] == [i.text.lower() for i in repo] != [i.text for i in repo]


def test_balanced_classes_weigh_alike():
    task = ClassifyTask(recipe(data={"class_weights": "balanced"}), Path())
    weights = np.array(task.model.config.label_weights)
    counts = np.bincount([i.label for i in task.items("train")], minlength=32)
    assert np.allclose(weights * counts, counts.sum() / 32, rtol=1e-3)


# -- runs ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A finished run of each kind of text classifier, learnt on the sample's training texts (and measured on them)."""
    out = tmp_path_factory.mktemp("runs")
    settings = {
        "linear_classifier": {"epochs": 150, "learning_rate": 8.0, "batch_examples": 4},
        "utterance_classifier": {"epochs": 25},
    }
    found = {}
    for system, stage in settings.items():
        labels = {"labels": 41} if system == "utterance_classifier" else {}
        made = recipe(system, labels, **stage).model_copy(update={"name": f"tiny/{system}"})
        found[system] = (made, run(made, out, show_progress=False))
    return found


@pytest.mark.parametrize("system", ["linear_classifier", "utterance_classifier"])
def test_a_run_learns_and_its_folder_answers_the_same(runs, system):
    made, status = runs[system]
    curve = [json.loads(line) for line in (status.folder / "curves.jsonl").read_text().splitlines()]
    losses = [row["loss_label"] for row in curve if "loss_label" in row]
    assert losses[-1] < 0.5 * losses[0]
    task = ClassifyTask(made, status.folder)
    train = task.items("train")
    classifier = TextClassifier.load(status.folder / "checkpoint")
    assert classifier.labels == (EMOTIONS if system == "linear_classifier" else LABELS_41)
    right = classifier.classify_texts([i.text for i in train]).argmax(1) == [i.label for i in train]
    assert right.mean() > 0.5  # the commonest class has a twentieth
    lines = [json.loads(line) for line in (status.folder / "outputs.jsonl").read_text().splitlines()]
    found = classifier.classify_texts([line["text"] for line in lines])
    assert [classifier.labels[i] for i in found.argmax(1)] == [line["predicted"] for line in lines]
    best = [max(line["probabilities"].values()) for line in lines]
    assert np.allclose(found.max(1), best, atol=1e-4) and len(lines) == len(task.items("test"))
    accuracy = 100 * np.mean([line["gold"] == line["predicted"] for line in lines])
    assert status.metrics["metrics"]["accuracy"]["value"] == pytest.approx(accuracy)


def test_the_record_is_whole_and_kept(runs, tmp_path):
    _, status = runs["utterance_classifier"]
    record = json.loads(keep(status.folder, tmp_path).read_text())
    metrics = record["metrics"]
    for name in ("accuracy", "accuracy_top5", "f1_weighted", "f1_macro", "calibration_error"):
        assert metrics[name]["interval"] is not None and metrics[name]["signature"] and metrics[name]["n"] == 17
    assert set(metrics["per_label"]) == set(LABELS_41)
    assert metrics["accuracy_emotions"]["n"] + metrics["accuracy_intents"]["n"] == 17
    assert record["data"]["sample"]["train"]["items"] == 76
    assert "tiny/utterance_classifier" in (tmp_path / "README.md").read_text()


def test_evaluate_says_where_the_scores_are(runs):
    from empatheia_research.training.release import ModelFolder

    _, status = runs["linear_classifier"]
    with pytest.raises(CheckpointError, match=r"is a model of task 'classify'; accepted: a responder.*metrics\.json"):
        ModelFolder(status.folder / "checkpoint")


def test_the_temperature_is_the_best_one_on_valid(runs):
    made, status = runs["linear_classifier"]
    task = ClassifyTask(made, status.folder)
    valid = task.items("valid")
    classifier = TextClassifier.load(status.folder / "checkpoint")
    best = classifier.model.config.softmax_temperature
    gold = [i.label for i in valid]

    def nll(temperature: float) -> float:
        classifier.model.config.softmax_temperature = temperature
        p = classifier.classify_texts([i.text for i in valid])
        return float(-np.log(p[np.arange(len(gold)), gold]).mean())

    assert best > 1 and nll(best) <= min(nll(best - 0.05), nll(1.0))
    assert best == 4.0 or nll(best) <= nll(best + 0.05)  # 4 is the highest one tried
    assert status.metrics["metrics"]["temperature"] == best


def test_gold_labels_do_not_enter_the_answer(runs):
    """Rows with other labels, or with none, give the same distributions."""
    from empatheia_research.understanding.labels.classifier import classify_rows

    made, status = runs["utterance_classifier"]
    task = ClassifyTask(made, status.folder)
    rows = task.rows("test")
    other = [{**row, "label": 0} for row in rows]
    bare = [{k: v for k, v in row.items() if k != "label"} for row in rows]
    answers = [classify_rows(task.model, task.reader, found) for found in (rows, other, bare)]
    assert all(np.array_equal(answers[0], found) for found in answers[1:])


def test_the_same_pieces_after_a_restart(runs):
    made, status = runs["utterance_classifier"]
    first, again = (ClassifyTask(made, status.folder).rows("train") for _ in range(2))
    assert first == again


def test_as_released_learns_from_valid_and_has_no_temperature(tmp_path):
    data = {"labels": 41, "variant": "repo", "learn": ["train", "valid"], "choose": "test"}
    status = run(recipe(data=data, max_steps=3), tmp_path, show_progress=False)
    task = ClassifyTask(recipe(data=data), tmp_path)
    found = task.stage_data(recipe(data=data).stages[0])
    assert len(found.train) == 76 + 17 and len(found.valid) == 17
    assert status.metrics["metrics"]["temperature"] == 1.0
    assert task.items("test")[0].text != task.items("test")[0].text.lower()


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_frozen_features(tmp_path, suffix):
    """Features that give the label away are learnt; the rows stay with their items when ED-cut leaves some out."""
    arrays = {s: np.eye(32)[[i.label for i in items_of(s)]] for s in ("train", "valid", "test")}
    path = tmp_path / f"features{suffix}"
    write_features(path, arrays)
    data = {"features": str(path), "cut": True}
    status = run(recipe("feature_classifier", data, epochs=60, learning_rate=0.3), tmp_path, show_progress=False)
    assert status.metrics["metrics"]["accuracy"]["value"] == 100.0
    write_features(path, {**arrays, "valid": arrays["valid"][:-1]})
    with pytest.raises(DataError, match="split 'valid': 7 rows; accepted: 8 rows"):
        ClassifyTask(recipe("feature_classifier", data), tmp_path).rows("valid")
    write_features(path, {"train": arrays["train"]})
    with pytest.raises(DataError, match="split 'test': no such array, only train"):
        ClassifyTask(recipe("feature_classifier", data), tmp_path).rows("test")


# -- scores --------------------------------------------------------------------------------------------------


def test_scores_on_a_worked_example():
    p = np.array([[0.7, 0.2, 0.1, 0, 0], [0.6, 0.4, 0, 0, 0], [0.1, 0.8, 0.1, 0, 0], [0.2, 0.3, 0.5, 0, 0]])
    gold = np.array([0, 1, 1, 2])
    scores = classification_scores(p, gold, ["a", "b", "c", "d", "e"])
    assert scores["accuracy"]["value"] == 75.0 and scores["accuracy_top5"]["value"] == 100.0
    assert scores["per_label"]["a"] == {"precision": 50.0, "recall": 100.0, "f1": 66.67, "n": 1}
    assert scores["per_label"]["b"] == {"precision": 100.0, "recall": 50.0, "f1": 66.67, "n": 2}
    assert scores["f1_macro"]["value"] == pytest.approx(100 * (2 / 3 + 2 / 3 + 1) / 3)
    assert scores["f1_weighted"]["value"] == pytest.approx(100 * (2 / 3 + 2 * 2 / 3 + 1) / 4)
    assert scores["nll"] == pytest.approx(-np.log([0.7, 0.4, 0.8, 0.5]).mean(), abs=1e-5)
    expected = CalibrationError()
    expected.update(p, gold)
    assert scores["calibration_error"]["value"] == expected.compute().value


def test_the_calibration_error_before_undoes_the_temperature():
    raw = np.random.default_rng(0).normal(size=(200, 6)) * 3
    gold = np.arange(200) % 6

    def softmax(x):
        return np.exp(x) / np.exp(x).sum(1, keepdims=True)

    scores = classification_scores(softmax(raw / 2.5), gold, list("abcdef"), temperature=2.5)
    before = CalibrationError()
    before.update(softmax(raw), gold)
    assert scores["calibration_error_before"]["value"] == pytest.approx(before.compute().value, abs=1e-6)
    assert scores["calibration_error"]["value"] < scores["calibration_error_before"]["value"]


# -- recipes and faults --------------------------------------------------------------------------------------


def test_the_recipes_name_what_the_papers_did():
    cut = load_recipe(RECIPES / "rashkin2018/fasttext_cut.yaml", size="cpu")
    assert cut.data.cut and cut.data.text == "situation" and cut.published.row == "fastText"
    repo = load_recipe(RECIPES / "meed2/emotion_intent_repo.yaml", size="full")
    assert (repo.data.variant, repo.data.learn, repo.data.choose) == ("repo", ("train", "valid"), "test")
    assert (repo.model["pooling"], repo.model["head_width"], repo.model["max_pieces"]) == ("additive", 768, 100)
    assert repo.stages[0].batch_tokens is None and repo.stages[0].batch_examples == 32


@pytest.mark.parametrize(
    ("system", "data", "model", "message"),
    [
        (
            "linear_classifier",
            {"corpus": "empathetic_intents"},
            {},
            "data.corpus=empathetic_intents with data.labels=32",
        ),
        ("linear_classifier", {"labels": 41, "text": "context"}, {}, "data.text=context with data.labels=41"),
        ("linear_classifier", {"labels": 41}, {"split": "blanks"}, "model.split=blanks with data.variant=clean"),
        ("linear_classifier", {"features": "x.npz"}, {}, "the file goes with feature_classifier"),
        ("feature_classifier", {}, {}, "feature_classifier needs it"),
        ("linear_classifier", {}, {"widht": 3}, "unknown key 'model.widht'. Did you mean 'width'"),
        ("linear_classifier", {}, {"words": ["a"]}, "unknown key 'model.words'"),
        ("utterance_classifier", {}, {"labels": ["a"]}, "unknown key 'model.labels'"),
    ],
)
def test_settings_that_cannot_be(system, data, model, message, tmp_path):
    with pytest.raises(ConfigError, match=message):
        ClassifyTask(recipe(system, data, model), tmp_path)


def test_more_settings_that_cannot_be(tmp_path):
    with pytest.raises(
        ConfigError, match=r"task classify is for system .*, not liner_classifier\. Did you mean 'linear_classifier'"
    ):
        ClassifyTask(recipe().model_copy(update={"system": "liner_classifier"}), tmp_path)
    made = recipe("utterance_classifier")
    with pytest.raises(ConfigError, match="is trained from scratch and needs"):
        ClassifyTask(made.model_copy(update={"model": {}}), tmp_path)
    stage = recipe(data={"labels": 32}).stages[0].model_copy(update={"data": {"labels": 41}})
    task = ClassifyTask(recipe(), tmp_path)
    with pytest.raises(ConfigError, match="a stage cannot change"):
        task.stage_data(stage)
    with pytest.raises(ConfigError, match=r"max_grad_norm=1\.0 and weight_decay=0\.0 with a model of sparse tables"):
        run(recipe(max_grad_norm=1.0), tmp_path, show_progress=False)


def test_the_published_schedule_of_the_utterance_classifier():
    """MEED2 checks, learning rate: peak 2e-5, warm-up 700, total 7,000; 0 beyond."""
    import torch
    from transformers import get_scheduler

    (stage,) = load_recipe("meed2/emotion_intent_repo", size="full").stages
    assert (stage.schedule, stage.warmup_steps, stage.max_steps, stage.learning_rate) == ("linear", 700, 7000, 2e-5)
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=stage.learning_rate)
    schedule = get_scheduler(stage.schedule, optimizer, stage.warmup_steps, stage.max_steps)
    (rate,) = schedule.lr_lambdas
    found = [stage.learning_rate * rate(step) for step in (350, 700, 3_850, 7_000, 8_930)]
    assert found == pytest.approx([1e-5, 2e-5, 1e-5, 0, 0], abs=1e-12)
