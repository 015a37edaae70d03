"""The perception's task: what it learns from, what it measures, and a run at size smoke from end to end."""

import json
import random
import re

import numpy as np
import pytest
import torch

from empatheia.errors import ConfigError
from empatheia.perceive.affect import Affect
from empatheia.records.dialogue import Dialogue, Span, Turn
from empatheia.settings import read_yaml
from empatheia.taxonomy import EMOTIONS, RECCON_EMOTIONS
from empatheia_research.corpora import everyday, reccon, sample
from empatheia_research.pretrained import load_weights
from empatheia_research.recipes.recipe import load_recipe, stage_data_config, validate_recipe
from empatheia_research.training.perception_card import PerceptionFolder, package_perception
from empatheia_research.training.runner import run
from empatheia_research.training.tasks.perceive import (
    SIDE_OF,
    Lesson,
    PerceiveTask,
    _retyped,
    calibration,
    perception_scores,
    six_of,
    speaker_last,
    taught,
)
from empatheia_research.training.tasks.perceive_states import SHARES, PerceiveStatesTask, best_share
from empatheia_research.training.word_marks import best_threshold, marked_scores, reccon_rows, word_scores
from empatheia_research.understanding.affect.states import StatePieces
from empatheia_research.understanding.affect.turns import AffectOfTurns

RECIPE = "recipes/default/perception.yaml"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    status = run(load_recipe(RECIPE, size="smoke"), tmp_path_factory.mktemp("runs"), show_progress=False)
    assert status.state == "finished"
    return status.folder


def items(split="test"):
    return everyday.items(split, sample.root() / everyday.NAME)


def test_a_run_leaves_a_model_that_answers_as_it_was_measured(finished, tmp_path):
    record = json.loads((finished / "metrics.json").read_text())
    opened = PerceptionFolder(finished / "checkpoint")
    again = opened.evaluate("test")
    for name, score in record["metrics"].items():
        if isinstance(score, dict):  # the model was saved in half precision
            assert again[name]["value"] == pytest.approx(score["value"], abs=15)
    card = package_perception(finished, tmp_path / "mine", "mine", "A tiny one.")
    text = (tmp_path / "mine" / "README.md").read_text()
    assert "everyday: acceptable" in text and card["name"] == "mine" and "A tiny one." in text
    assert PerceptionFolder(tmp_path / "mine").meta["name"] == "mine"
    lines = (finished / "outputs.jsonl").read_text().splitlines()
    assert len(lines) == len(items()) and json.loads(lines[0])["gold"]


def test_targets_share_what_is_acceptable():
    item = next(item for item in items("train") if item.acceptable)
    lesson = taught(item, 0.3)
    assert sum(lesson.emotions.values()) == pytest.approx(1) and lesson.emotions[item.dialogue.emotion] == 0.7
    assert set(lesson.emotions) == item.accepted and lesson.sides == {item.side: 1.0}


def test_what_teachers_perceive_is_a_share_of_the_targets(finished, tmp_path):
    checkpoint = str(finished / "checkpoint")
    overrides = [f"data.teachers=[{checkpoint}]", "data.teacher_share=0.25", f"start={checkpoint}"]
    plain = PerceiveTask(load_recipe(RECIPE, size="smoke"), tmp_path / "plain")
    taught = PerceiveTask(load_recipe(RECIPE, size="smoke", overrides=overrides), tmp_path / "taught")
    stage = taught.recipe.stages[0]
    data = stage_data_config(taught.recipe, stage.data)
    one, two = plain.lessons(data.model_copy(update={"teachers": ()})), taught.lessons(data)
    said = AffectOfTurns.load(checkpoint).read([lesson.turns for lesson in one[:3]])
    for before, after, felt in zip(one[:3], two[:3], said, strict=True):
        for i, name in enumerate(EMOTIONS):
            wanted = 0.75 * before.emotions.get(name, 0.0) + 0.25 * float(felt.emotions[i])
            assert after.emotions[name] == pytest.approx(wanted, abs=1e-5)
        assert sum(after.sides.values()) == pytest.approx(1, abs=1e-5)
    assert [lesson.turns for lesson in one] == [lesson.turns for lesson in two]
    assert taught.lessons(data) == two  # read from the run folder the second time
    weights = taught.model.state_dict()
    started = load_weights(finished / "checkpoint" / "adapter.safetensors")
    assert started and all(torch.equal(value.half(), weights[name].half()) for name, value in started.items())


def test_retyped_lessons_keep_their_cause_words():
    text = "My sister didn't come to the wedding, and nobody said why."
    lesson = Lesson((Turn("speaker", text),), {"sad": 1.0}, {"unpleasant": 1.0}, (Span(0, 10, 21),))
    draw, seen = random.Random(3), set()
    for _ in range(50):
        made = _retyped(lesson, draw)
        said = " ".join(span.of(made.turns) for span in made.causes)
        assert 7 <= len(said) <= 13 and said.lower()[:2] == "di"
        seen.add(made.turns[0].text)
    assert len(seen) > 10


def test_no_gold_label_is_read(finished):
    """The model gets the turns alone: another label in the item changes no score of it."""
    folder = PerceptionFolder(finished / "checkpoint")
    read = []

    def spy(conversations):
        read.extend(conversations)
        return folder.affect.read(conversations)

    perception_scores(spy, "test", items(), None, ())
    assert all(isinstance(turn, Turn) for turns in read for turn in turns)
    assert [tuple(turns) for turns in read] == [item.dialogue.turns for item in items()]


def test_a_stage_cannot_change_the_corpus(tmp_path):
    changed = ["stages.everyday.data.corpus=everyday", "stages.everyday.data.copies=1"]
    recipe = load_recipe(RECIPE, size="smoke", overrides=changed)
    with pytest.raises(ConfigError, match=r"cannot change data.corpus"):
        PerceiveTask(recipe, tmp_path).stage_data(recipe.stages[-1])


def affect(emotion, pole, causes=()):
    emotions = np.full(32, 0.01)
    emotions[EMOTIONS.index(emotion)] = 0.69
    sides = np.array([0.8, 0.15, 0.05] if pole == "pleasant" else [0.15, 0.8, 0.05])
    return Affect(emotions, sides, tuple(causes), tuple(causes), 0.5)


def test_scores_by_hand():
    """Two items: one acceptable though not the label, on the right side; one wrong on both."""
    base = {"side": "pleasant", "causes": [[0, 0, 4]], "style": []}
    one = everyday.parse({**base, "turns": ["Won it at last"], "emotion": "proud", "acceptable": ["joyful"]})
    two = everyday.parse(
        {**base, "turns": ["Lost it"], "emotion": "sad", "side": "unpleasant", "style": ["names_feeling"]}
    )
    words = {0: [Span(0, 0, 3, 0.9), Span(0, 4, 6, 0.1)], 1: [Span(0, 0, 4, 0.2), Span(0, 5, 7, 0.7)]}
    found = [affect("joyful", "pleasant", words[0]), affect("proud", "pleasant", words[1])]
    scores = perception_scores(lambda conversations: found, "test", [one, two], None, ())
    assert scores["everyday: acceptable"]["value"] == 50 and scores["everyday: label"]["value"] == 0
    assert scores["everyday unnamed: acceptable"]["value"] == 100 and scores["everyday unnamed: acceptable"]["n"] == 1
    assert scores["everyday: side"]["value"] == 50
    assert scores["everyday: causes precision"] == 50 and scores["everyday: causes recall"] == 50
    assert scores["everyday: causes share marked"] == 50 and scores["everyday: causes auc inside"] == 0.5


def test_word_scores_and_threshold():
    rows = [[(0.9, True), (0.4, False), (0.3, True)], [(0.2, False), (0.6, True)]]
    found = word_scores(rows, 0.5)
    assert found["precision"] == 100 and found["recall"] == pytest.approx(66.67) and found["share gold"] == 60
    assert found["auc inside"] == pytest.approx((0.5 + 1) / 2)
    assert 0.2 < best_threshold(rows) <= 0.3 and best_threshold([[(0.4, False)]]) == 0.5


def test_marking_has_to_beat_what_reads_no_word():
    rows = [[(0.1, False), (0.2, True), (0.9, False), (0.8, True)], [(0.5, True)]]
    found = word_scores(rows, 0.5)
    assert found["f1 of marking all"] == 75  # 3 of 5 words are gold
    assert found["f1 of the later half"] == pytest.approx(66.67)  # marks the third, the fourth and the only word
    assert found["auc of later words first"] == 0.75  # of 4 pairs in the first row one is wrong
    assert marked_scores([[(True, False), (False, True)]])["f1"] == 0
    assert word_scores([], 0.5)["auc inside"] is None


def test_words_are_measured_inside_the_causal_turns_of_the_speaker():
    """The sample has targets whose cause stands in the other's turn, which is no place for a cause word."""

    def read(conversations):
        said = [[Span(i, m.start(), m.end(), 0.5) for i, t in enumerate(turns) if t.role == "speaker"
                 for m in re.finditer(r"\w+", t.text)] for turns in conversations]  # fmt: skip
        return [affect("sad", "unpleasant", words) for words in said]

    rows, counts = reccon_rows(read, "test", sample.root())
    examples, notes = reccon.as_examples("test", sample.root())
    causal = [(e, t) for e in examples for t in {s.turn for s in notes[e.dialogue_id, len(e.context) - 1].spans}]
    own = [e.context[t] for e, t in causal if t < len(e.context) and e.context[t].role == "speaker"]
    assert counts["turns"] == len(own) == len(rows) and counts["of the listener"] > 0 and counts["not read"] == 0
    assert sorted(map(len, rows)) == sorted(len(re.findall(r"\w+", turn.text)) for turn in own)
    assert all(any(flag for _, flag in row) for row in rows)


def test_six_emotions_are_sums_of_the_32():
    even = six_of(np.full(32, 1 / 32))
    assert even.sum() == pytest.approx(1)
    assert even[RECCON_EMOTIONS.index("anger")] == pytest.approx(4 / 32)  # angry, annoyed, furious, jealous
    assert set(SIDE_OF) < set(EMOTIONS)


def test_calibration_is_the_gap_between_sureness_and_rightness():
    sure = np.array([0.95, 0.95, 0.55, 0.55])
    assert calibration(sure, np.array([True, True, True, False])) == pytest.approx(5.0)


def test_who_speaks_last_is_the_speaker():
    turns = speaker_last(Dialogue.of("One", "Two").turns)
    assert [turn.role for turn in turns] == ["listener", "speaker"]


# -- the second look -------------------------------------------------------------------------------------------

SECOND = "recipes/default/second_look.yaml"


@pytest.fixture(scope="module")
def second(finished, tmp_path_factory):
    """A second look beside the tiny perception, from recipe to folder."""
    beside = f"data.beside={finished / 'checkpoint'}"
    recipe = load_recipe(SECOND, size="smoke", overrides=[beside])
    status = run(recipe, tmp_path_factory.mktemp("second"), show_progress=False)
    assert status.state == "finished", status.error
    return status.folder


def test_a_second_look_leaves_a_model_that_answers_as_it_was_measured(second, tmp_path):
    record = json.loads((second / "metrics.json").read_text())
    share = record["metrics"]["share of the second look"]
    assert share in SHARES and "alone: everyday: acceptable" in record["metrics"]
    assert not any("causes" in name for name in record["metrics"] if name.startswith("alone"))
    again = PerceptionFolder(second / "checkpoint").evaluate("test")
    for name in ("everyday: acceptable", "everyday: label", "everyday: side"):
        assert again[name]["value"] == record["metrics"][name]["value"]
    card = package_perception(second, tmp_path / "mine", "mine", "A tiny one.")
    assert "one hidden layer on its states" in (tmp_path / "mine" / "README.md").read_text() and card["name"] == "mine"
    whole, halved = (
        load_weights(folder / "model.safetensors") for folder in (second / "checkpoint", tmp_path / "mine")
    )
    assert {str(own.dtype) for name, own in halved.items() if name not in ("mean", "deviation")} == {"torch.float16"}
    assert all((halved[name] == whole[name]).all() for name in ("mean", "deviation"))
    assert PerceptionFolder(tmp_path / "mine").evaluate("test")["everyday: label"]["n"] > 0


def test_the_states_of_a_run_are_computed_once(second, monkeypatch):
    kept = sorted(path.name for path in (second / "states").iterdir())
    monkeypatch.setattr(StatePieces, "_states", lambda *_: pytest.fail("computed anew"))
    recipe = validate_recipe(read_yaml(second / "recipe.yaml"), "the run's")
    task = PerceiveStatesTask(recipe, second)
    stage = task.recipe.stages[0]
    rows = task.stage_data(stage).train
    assert all(np.isfinite(row["states"]).all() for row in rows)
    assert sorted(path.name for path in (second / "states").iterdir()) == kept


def test_the_share_is_the_one_of_the_highest_likelihood():
    draw = np.random.default_rng(0)
    gold = draw.integers(0, 4, 200)
    right = np.where(np.eye(4)[gold] > 0, 0.85, 0.05)
    blind = draw.dirichlet(np.ones(4), 200)
    assert best_share(blind, right, list(gold)) > 0.8 and best_share(right, blind, list(gold)) < 0.2


def test_a_second_look_starts_anew(tmp_path):
    recipe = load_recipe(SECOND, size="smoke", overrides=["start=somewhere"])
    with pytest.raises(ConfigError, match="starts from scratch; drop start"):
        PerceiveStatesTask(recipe, tmp_path)
