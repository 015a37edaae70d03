"""The tasks `mechanisms` and `anticipate` from recipe to model folder, on a tiny encoder and the sample."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "understanding"))
from tiny_reactions import encoder_folder

from empatheia.errors import ConfigError, DataError
from empatheia.records.dialogue import Dialogue, Span
from empatheia.taxonomy import LABELS_41, MECHANISMS
from empatheia_research.corpora import sample
from empatheia_research.corpora.turn_labels import write_turn_labels
from empatheia_research.recipes.recipe import load_recipe
from empatheia_research.training.runner import run
from empatheia_research.training.tasks.anticipate import AnticipateTask, next_turns, reaction_scores
from empatheia_research.training.tasks.mechanisms import MechanismsTask, mechanism_scores
from empatheia_research.understanding.labels.next_label import ReactionToTurns
from empatheia_research.understanding.mechanisms.identifier import MechanismsOfTurns
from empatheia_research.understanding.mechanisms.pairs import Identified, Pair, PairReader

RECIPES = Path(__file__).resolve().parents[2] / "recipes"


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return encoder_folder(tmp_path_factory.mktemp("encoder"))


def recipe(name, encoder=None, *overrides, size="smoke"):
    named = [f"encoder={encoder}"] if encoder else []
    return load_recipe(RECIPES / name, size=size, overrides=[*named, *overrides])


@pytest.mark.parametrize("size", ["smoke", "cpu", "full"])
def test_recipes_resolve(size):
    for path in sorted((RECIPES / "epitome").glob("*.yaml")):
        found = load_recipe(path, size=size)
        assert found.task == "mechanisms" and found.name == f"epitome/{path.stem}"
    for pooling, name in (("additive", "response_labels"), ("dot", "response_labels_dot")):
        found = load_recipe(RECIPES / "meed2" / f"{name}.yaml", size=size)
        assert (found.task, found.model["pooling"]) == ("anticipate", pooling)


@pytest.mark.parametrize("name", ["emotional_reaction", "interpretation", "exploration"])
def test_full_size_is_the_published_one_of_epitome(name):
    """Specification 5.3, and P9: loss weights 1 and .5, a frozen seeker, 2e-5 falling to 0, no weight decay."""
    found = load_recipe(RECIPES / f"epitome/{name}.yaml", size="full")
    (stage,) = found.stages
    assert found.model["mechanisms"] == [name.replace("_", " ")] and found.seed == 12
    assert (found.encoder, found.model["max_pieces"]) == ("FacebookAI/roberta-base", 64)
    assert found.model["freeze_seeker"] and stage.freeze == ("seeker_encoder",)
    assert stage.losses == {"level": 1.0, "rationale": 0.5}
    assert (stage.epochs, stage.batch_examples, stage.batch_tokens, stage.select) == (4, 32, None, None)
    assert (stage.learning_rate, stage.head_learning_rate, stage.schedule) == (2e-5, None, "linear")
    assert (stage.warmup_steps, stage.weight_decay, stage.eps, stage.max_grad_norm) == (0, 0.0, 1e-8, 1.0)


def test_full_size_is_the_published_predictor_of_meed2():
    """Specification 7.2 and 7.5: RoBERTa's pieces, 4 layers of width 300, 512 examples, 5e-5 throughout."""
    found = load_recipe(RECIPES / "meed2/response_labels.yaml", size="full")
    (stage,) = found.stages
    assert (found.encoder, found.data.pieces) == (None, "FacebookAI/roberta-base")
    assert (found.data.overlong, found.data.roles) == ("skip", ("speaker", "listener"))
    sizes = found.model["encoder_config"]
    assert [sizes[k] for k in ("hidden_size", "num_hidden_layers", "num_attention_heads")] == [300, 4, 6]
    assert (sizes["intermediate_size"], sizes["max_position_embeddings"], found.model["max_pieces"]) == (1200, 102, 100)
    assert (stage.batch_examples, stage.learning_rate, stage.schedule) == (512, 5e-5, "constant")
    assert (stage.betas, stage.eps, stage.weight_decay, stage.max_grad_norm) == ((0.9, 0.98), 1e-6, 0.0, 0.0)
    assert (stage.epochs, stage.select) == (10, "label")


def test_mechanisms_train_save_and_measure(tmp_path, encoder):
    chosen = recipe("epitome/shared.yaml", encoder, "stages.identify.epochs=6", "stages.identify.learning_rate=3e-3")
    status = run(chosen, tmp_path, show_progress=False)
    curves = [json.loads(line) for line in (status.folder / "curves.jsonl").read_text().splitlines()]
    losses = [row["loss"] for row in curves if "loss" in row and "eval_loss" not in row]
    assert np.mean(losses[-3:]) < np.mean(losses[:3])
    scores = status.metrics["metrics"]
    for mechanism in MECHANISMS:
        assert scores[f"{mechanism}: accuracy"]["n"] == 8
        assert 0 <= scores[f"{mechanism}: rationale_iou_f1_all"]["value"] <= 100
        assert set(scores[f"{mechanism}: published"]) and 0 < scores[f"{mechanism}: accuracy_majority"] < 100
    assert status.metrics["data"]["sample"]["train"]["items"] == 30
    component = MechanismsOfTurns.load(status.folder / "checkpoint")
    assert component.name == "epitome/shared"
    assert len(component.annotate([Dialogue.of("My dog is ill", "I'm sorry.")])[0]) == 3
    lines = [json.loads(line) for line in (status.folder / "outputs.jsonl").read_text().splitlines()]
    assert len(lines) == 8 and "response" not in lines[0]
    # the folder says what the run measured
    again = MechanismsTask(chosen, tmp_path)
    again.model, again.reader = type(again.model).open(status.folder / "checkpoint")
    assert again.evaluate("test", None)["exploration: accuracy"] == scores["exploration: accuracy"]


def test_one_mechanism_with_a_frozen_seeker(tmp_path, encoder):
    chosen = recipe("epitome/exploration.yaml", encoder, "stages.identify.epochs=1")
    task = MechanismsTask(chosen, tmp_path)
    before = {name: weight.clone() for name, weight in task.model.seeker_encoder.state_dict().items()}
    status = run(chosen, tmp_path, show_progress=False)
    model, _ = type(task.model).open(status.folder / "checkpoint")
    seeker, response = model.seeker_encoder.state_dict(), model.response_encoder.state_dict()
    assert all((seeker[name] == weight).all() for name, weight in before.items())
    assert any((response[name] != weight).any() for name, weight in before.items())
    assert {key.split(":")[0] for key in status.metrics["metrics"]} == {"exploration"}


def test_mechanism_scores_by_hand():
    offsets = ((0, 0), (0, 2), (3, 5), (0, 0))

    def pair(level, *spans):
        return Pair("x", "s", "ab cd", {"exploration": level}, {"exploration": spans})

    def answer(level, first, second):
        return Identified("exploration", tuple(float(k == level) for k in range(3)), (0.0, first, second, 0.0), offsets)

    class Reader:
        config = type("Config", (), {"no_rationale": "whole"})
        rationale_labels = PairReader.rationale_labels

    gold = [pair(2, Span(1, 0, 2)), pair(0), pair(1, Span(1, 3, 5)), pair(1)]
    said = [answer(2, 0.9, 0.1), answer(0, 0.9, 0.9), answer(0, 0.1, 0.9), answer(2, 0.1, 0.9)]
    scores = mechanism_scores(gold, said, Reader(), [pair(0), pair(0), pair(1)])  # pyright: ignore[reportArgumentType]
    assert scores["accuracy"]["value"] == 50
    assert scores["accuracy_majority"] == 25
    assert scores["f1_present"]["value"] == pytest.approx(100 * 4 / 5)
    assert (scores["level_mean"]["value"], scores["level_mean_gold"]["value"]) == (1.0, 1.0)
    assert scores["rationale_f1"]["value"] == 100 and scores["rationale_f1"]["n"] == 2
    assert scores["rationale_f1_shown"]["value"] == 50
    # all: 1 + 1 (whole, all marked) + 1 + F1 of one of two pieces
    assert scores["rationale_f1_all"]["value"] == pytest.approx(100 * (3 + 2 / 3) / 4)


def test_reactions_train_save_and_measure(tmp_path):
    chosen = recipe("meed2/response_labels.yaml")
    status = run(chosen, tmp_path, show_progress=False)
    curves = [json.loads(line) for line in (status.folder / "curves.jsonl").read_text().splitlines()]
    losses = [row["loss"] for row in curves if "loss" in row and "eval_loss" not in row]
    assert np.mean(losses[-5:]) < np.mean(losses[:5]) - 0.5
    scores = status.metrics["metrics"]
    assert scores["f1_weighted"]["n"] == 8 and scores["all: accuracy"]["n"] == 27
    assert scores["listener: accuracy"]["n"] == 17
    assert scores["labels_by"] == status.metrics["data"]["sample"]["turn_labels"] == "sample/hand"
    assert "no turn labels: f1_weighted" in scores and "majority (questioning): accuracy" in scores
    component = ReactionToTurns.load(status.folder / "checkpoint")
    assert len(component.annotate([Dialogue.of("My dog is ill")])[0]) == 1
    lines = [json.loads(line) for line in (status.folder / "outputs.jsonl").read_text().splitlines()]
    assert len(lines) == 27 and lines[0]["gold"] in LABELS_41


def test_weighted_recall_is_accuracy():
    """Check "Metrics": on random labels."""
    rng = np.random.default_rng(0)
    labels = tuple(LABELS_41[i] for i in rng.integers(0, 41, 200))
    items = next_turns(Dialogue.of(*["a"] * 200), labels)
    scores = reaction_scores(items, rng.random((199, 41)), n_resamples=0)
    assert scores["recall_weighted"]["value"] == pytest.approx(scores["accuracy"]["value"] / 100)


def test_the_same_pieces_after_a_restart(tmp_path, monkeypatch):
    """Pieces are learnt once a run: learning them again, or in another process, may break ties otherwise."""
    chosen = recipe("meed2/response_labels.yaml")
    first = AnticipateTask(chosen, tmp_path)
    monkeypatch.setattr("empatheia_research.training.tasks.base.train_pieces", None)
    again = AnticipateTask(chosen, tmp_path)
    assert again.reader.encode(again.items("test")) == first.reader.encode(first.items("test"))


def test_own_label_file_and_its_model_name(tmp_path):
    rows = [(d.id, ["sad" if i % 2 == 0 else "wishing" for i in range(len(d.turns))]) for d in sample.load("train")]
    path = tmp_path / "own.jsonl"
    write_turn_labels(path, "my classifier", rows[:5])
    task = AnticipateTask(recipe("meed2/response_labels.yaml", None, f"data.labels={path}"), tmp_path)
    found = task.items("train")
    assert {item.label for item in found if item.role == "listener"} == {"wishing"}
    assert len({item.dialogue_id for item in found}) == 5
    assert task.labels().model == "my classifier"
    with pytest.raises(DataError, match="no label for any turn of the valid split"):
        task.items("valid")


def test_targets_of_one_role_and_overlong_contexts(tmp_path):
    overrides = ("data.roles=[listener]", "data.overlong=skip", "model.max_pieces=48")
    task = AnticipateTask(recipe("meed2/response_labels.yaml", None, *overrides), tmp_path)
    assert {item.role for item in task.items("train")} == {"listener"}
    data = task.stage_data(task.recipe.stages[0])
    record = task.data_record()["sample"]["train"]
    assert record["items"] == len(task.items("train"))
    assert 0 < record["skipped_overlong"] == record["items"] - len(data.train)
    assert max(data.train_lengths) <= 48


@pytest.mark.parametrize(
    ("name", "overrides", "message"),
    [
        ("epitome/shared.yaml", ["data.corpus=reccon"], "data.corpus=reccon; accepted: epitome, sample"),
        ("epitome/shared.yaml", ["encoder=null"], "task `mechanisms` needs `encoder`"),
        ("epitome/shared.yaml", ["model.heads=2"], "unknown key 'model.heads'"),
        ("meed2/response_labels.yaml", ["data.corpus=recon"], "no corpus is called 'recon'. Did you mean 'reccon'"),
        ("meed2/response_labels.yaml", ["model.encoder_config=null"], "needs model.encoder_config"),
        ("meed2/response_labels.yaml", ["model.poolin=dot"], "unknown key 'model.poolin'.*pooling"),
    ],
)
def test_faulty_recipes(tmp_path, name, overrides, message):
    task_of = {"mechanisms": MechanismsTask, "anticipate": AnticipateTask}
    chosen = recipe(name, None, *overrides)
    with pytest.raises(ConfigError, match=message):
        task_of[chosen.task](chosen, tmp_path)
