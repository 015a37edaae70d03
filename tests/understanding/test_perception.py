"""Emotion and intent of turns: which turns, what is seen of the conversation, folders, odd conversations."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tiny_classifiers import encoder_classifier, linear_classifier, save

from empatheia.analysis.component import COMPONENTS
from empatheia.errors import CheckpointError
from empatheia.records.dialogue import Dialogue, Turn
from empatheia.taxonomy import EMOTIONS, LABELS_41
from empatheia_research.understanding.labels.turns import EmotionOfTurns, IntentOfTurns

TALK = Dialogue.of("My dog ate the cake.", "Oh no, the whole cake?", "He was so happy!", "How is he now?", id="a")
LISTENER_ONLY = Dialogue("b", (Turn("listener", "Did you tell him?"), Turn("listener", "Hello?")))
LONG = Dialogue.of(*[f"turn number {i} of the cake" for i in range(500)], id="c")
DIALOGUES = [TALK, LISTENER_ONLY, Dialogue("empty", ()), Dialogue.of("", id="d"), LONG]


@pytest.fixture(scope="module")
def components():
    return {
        "emotion": EmotionOfTurns(encoder_classifier(reads="context")),
        "intent": IntentOfTurns(encoder_classifier(LABELS_41, pooling="additive")),
        "linear": EmotionOfTurns(linear_classifier(reads="context")),
    }


def test_the_speakers_turns_have_an_emotion_and_all_turns_an_intent(components):
    emotion, intent = (components[name].annotate(DIALOGUES) for name in ("emotion", "intent"))
    assert [[r.turn for r in row] for row in emotion[:4]] == [[0, 2], [], [], [0]]
    assert [[r.turn for r in row] for row in intent[:4]] == [[0, 1, 2, 3], [0, 1], [], [0]]
    assert len(emotion[4]) == 250 and len(intent[4]) == 500
    for row, labels in ((emotion[0], EMOTIONS), (intent[0], LABELS_41)):
        for record in row:
            assert tuple(record.probabilities) == labels and record.label in labels
            assert sum(record.probabilities.values()) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("name", ["emotion", "intent", "linear"])
def test_the_same_alone_or_among_others(components, name):
    together = components[name].annotate(DIALOGUES[:4], batch_size=3)
    for dialogue, row in zip(DIALOGUES, together, strict=False):
        (alone,) = components[name].annotate([dialogue], batch_size=1)
        assert [r.turn for r in alone] == [r.turn for r in row]
        for one, other in zip(alone, row, strict=True):
            assert one.probabilities == pytest.approx(other.probabilities, abs=1e-5)


def test_no_answer_sees_the_future_or_the_gold_label(components):
    """A turn's answer is that of the conversation cut after it, whatever its gold emotion and situation."""
    for name in ("emotion", "intent", "linear"):
        (whole,) = components[name].annotate([TALK])
        cut = Dialogue("x", TALK.turns[:1], emotion="furious", situation="Somebody stole my bicycle.")
        (first,) = components[name].annotate([cut])
        assert first[0].probabilities == pytest.approx(whole[0].probabilities, abs=1e-5)


def test_context_matters_only_to_models_that_read_it(components):
    other = replace(TALK, turns=(Turn("speaker", "Congratulations"), *TALK.turns[1:]))
    for name, reads in (("emotion", True), ("linear", True), ("intent", False)):
        ((*_, one),) = components[name].annotate([Dialogue("x", TALK.turns[:3])])
        ((*_, two),) = components[name].annotate([Dialogue("x", other.turns[:3])])
        assert (one.probabilities != pytest.approx(two.probabilities, abs=1e-6)) is reads


def test_progress_counts_conversations(components, monkeypatch):
    monkeypatch.setattr("empatheia_research.understanding.labels.turns.WINDOW_TURNS", 5)
    done: list[int] = []
    rows = components["intent"].annotate(DIALOGUES[:4], progress=done.append)
    assert sum(done) == 4 and len(done) == 2 and len(rows) == 4


def test_registered_and_loaded_by_folder(tmp_path):
    folder = save(encoder_classifier(LABELS_41), tmp_path / "intent")
    (folder / "empatheia.json").write_text(json.dumps({"name": "meed2/emotion_intent"}))
    component = COMPONENTS.get("intent").load(folder)
    assert (component.part, component.name) == ("intent", "meed2/emotion_intent")
    assert component.annotate([TALK]) == IntentOfTurns(encoder_classifier(LABELS_41)).annotate([TALK])
    linear = COMPONENTS.get("emotion").load(save(linear_classifier(), tmp_path / "emotion"))
    assert linear.name == "emotion" and len(linear.annotate([TALK])[0]) == 2


def test_other_labels_are_refused(tmp_path):
    with pytest.raises(CheckpointError, match=r"has 41 labels .*unknown acknowledging.*needs a classifier of the 32"):
        EmotionOfTurns(encoder_classifier(LABELS_41))
    with pytest.raises(CheckpointError, match=r"has 2 labels \(unknown gloomy, glum; missing acknowledging"):
        IntentOfTurns(encoder_classifier(("gloomy", "glum")))
