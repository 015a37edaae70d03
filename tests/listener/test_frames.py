"""Frames in, frames out; equal texts once; what does not fit is marked, refused or told, in words."""

from __future__ import annotations

import inspect
import typing

import numpy as np
import polars as pl
import pytest

import empatheia
from empatheia.errors import DataError, DecodingError, EmpatheiaError
from empatheia.files.result_table import as_text
from empatheia.listener import Analyzer, FocusedListener, Listener
from empatheia.listener.frames import is_missing
from empatheia.listener.steps.steering import SteeredFields, Steering
from empatheia.records.dialogue import Dialogue
from empatheia.voices.decoding import Decoding, DecodingFields
from empatheia_research.voices.responder_listener import ResponderListener

TEXTS = ["I lost my keys.", None, "I won!", "  ", "I lost my keys.", "I won!"]
OWN = ["emotion", "probability", "side", "causes", "uncertain", "error"]


@pytest.fixture
def model(tiny_model, monkeypatch):
    """The tiny model's place, and the texts it is asked to read, in order."""
    listener, asked = Listener.load(tiny_model), []
    read = listener.reader.understand

    def understand(inputs, batch_size, progress=None):
        asked.extend(item.ready.turns[-1].text for item in inputs)
        return read(inputs, batch_size, progress)

    monkeypatch.setattr(listener.reader, "understand", understand)
    monkeypatch.setattr("empatheia.listener.listener._shared", lambda place: listener)
    return tiny_model, asked


def test_a_frame_of_pandas_keeps_index_and_columns(model):
    pd = pytest.importorskip("pandas")
    place, asked = model
    frame = pd.DataFrame({"emotion": list("abcdef"), "body": TEXTS}, index=[7, 5, 3, 9, 9, 1])
    frame.loc[5, "body"] = float("nan")
    with pytest.warns(UserWarning, match=r"2 of 6 rows have no text to read and are marked .* row 2: missing"):
        found = empatheia.analyze(frame, place, column="body")
    assert asked == ["I lost my keys.", "I won!"]
    assert list(found.index) == list(frame.index) and list(found.columns) == [
        "emotion", "body", "empatheia_emotion", *OWN[1:],
    ]  # fmt: skip
    assert found["emotion"].equals(frame["emotion"]) and "side" not in frame
    alone = empatheia.analyze("I won!", place)
    for row in (2, 5):
        assert found["empatheia_emotion"].iloc[row] == alone.newest.emotion.label
        assert found["probability"].iloc[row] == alone.newest.emotions[alone.newest.emotion.label]
    assert found["probability"].isna().tolist() == [False, True, False, True, False, False]
    assert found["error"].notna().tolist() == [False, True, False, True, False, False]
    assert "white space" in found["error"].iloc[3]


def test_frames_of_polars_and_series(model):
    place, _ = model
    frame = pl.DataFrame({"body": TEXTS})
    with pytest.warns(UserWarning, match="2 of 6"):
        found = empatheia.analyze(frame, place, column="body")
        assert found.equals(empatheia.analyze(frame["body"], place)) and found.columns == ["body", *OWN]
        assert found.equals(empatheia.analyze(frame.lazy(), place, column="body"))
        replies = empatheia.respond(frame, place, column="body", max_new_tokens=4)
    assert replies["reply"].to_list()[2] == empatheia.respond("I won!", place, max_new_tokens=4).text
    assert replies["reply"].is_null().to_list() == [False, True, False, True, False, False]


def test_a_frame_without_any_text_is_refused(model):
    with pytest.raises(DataError, match="2 of 2 rows have no text to read; row 1: an int; accepted: a text"):
        empatheia.analyze(pl.DataFrame({"id": [1, 2]}), model[0], column="id")


def test_equal_texts_of_a_list_are_read_once(model):
    place, asked = model
    told: list[int] = []
    found = empatheia.analyze(["a b", "c", "a b", "a b", "c"], place, progress=told.append)
    assert asked == ["a b", "c"] and sum(told) == 5
    assert [one.dialogue.turns[0].text for one in found] == ["a b", "c", "a b", "a b", "c"]
    talks = [Dialogue.of("a b", "Oh.", "c"), Dialogue.of("a b", "Hm.", "c")]  # not equal: other turns before
    assert [one.dialogue.turns for one in empatheia.analyze(talks, place)] == [talk.turns for talk in talks]


def test_progress_is_a_bar_where_it_is_asked_for(model, capsys, monkeypatch):
    monkeypatch.setattr("empatheia.listener.progress.SECONDS_BETWEEN", 0.0)
    empatheia.analyze(["a", "b"], model[0], progress=True)
    assert "2 of 2 rows" in capsys.readouterr().err
    empatheia.analyze(["a", "b"], model[0])
    assert not capsys.readouterr().err


def test_what_cannot_be_read_is_an_error_of_ours_and_a_type_error(model):
    for item in (None, 3, {"text": "x"}, ["fine", None], b"x"):
        with pytest.raises(EmpatheiaError, match=r"Accepted: a text") as found:
            empatheia.analyze(item, model[0])
        assert isinstance(found.value, TypeError)
    with pytest.raises(EmpatheiaError, match="has no column 'txt'"):
        empatheia.analyze(pl.DataFrame({"text": ["x"]}), model[0], column="txt")


def test_settings_are_typed_and_those_of_generation_change_no_reflection(tiny_model):
    assert typing.get_type_hints(DecodingFields).keys() == Decoding.__dataclass_fields__.keys()
    assert typing.get_type_hints(SteeredFields).keys() == {
        *Decoding.__dataclass_fields__,
        *Steering.__dataclass_fields__,
    }
    for function in (
        empatheia.analyze,
        empatheia.respond,
        FocusedListener.respond,
        ResponderListener.converse,
        ResponderListener.stream,
    ):
        kinds = [own for own in inspect.signature(function).parameters.values() if own.kind is own.VAR_KEYWORD]
        assert all("Unpack" in str(own.annotation) for own in kinds)
    listener = FocusedListener(reasoner=Listener.load(tiny_model))
    plain = listener.respond("I lost my keys at work.")
    for settings, told in (
        ({"strategy": "sample", "top_p": 0.5}, "strategy, top_p: not used"),
        ({"num_beams": 7}, "num_beams: not used"),
        ({"decoding": Decoding(temperature=0.1)}, "temperature: not used"),
    ):
        with pytest.warns(UserWarning, match=f"{told}, because the default reply is a reflection.*gao2021-small"):
            said = listener.respond("I lost my keys at work.", **settings)
        assert said.text == plain.text and said.analysis.turns == plain.analysis.turns
    with pytest.raises(DecodingError, match=r"unknown setting 'style'.*Accepted: strategy"):
        listener.respond("I lost my keys.", style="formal")


def test_listeners_and_conversations_show_themselves_shortly(tiny_model):
    listener = Listener.load(tiny_model)
    assert repr(listener) == "ResponderListener('tiny', cause_gated)"
    steps = FocusedListener(reasoner=listener)
    assert repr(steps) == "FocusedListener('empatheia', answers by reflection)"
    talk = steps.converse()
    assert repr(talk) == "SteeredConversation(with 'empatheia', 0 turns)"
    talk.say("I won!")
    assert repr(talk).startswith("SteeredConversation(with 'empatheia', 2 turns, the last ")
    analyzer = Analyzer("emotion,words", listener=tiny_model)
    assert repr(analyzer) == "Analyzer(emotion, words)"
    assert repr(analyzer.load()) == "Analyzer(emotion, words; loaded: emotion by tiny, words by tiny)"


def test_a_model_that_is_steered_is_the_voice_of_five_steps(tiny_model):
    text = "I lost my keys at work."
    reply = empatheia.respond(text, tiny_model, focus="off", explain=True, max_new_tokens=4, strategy="greedy")
    assert reply.model == "tiny" and reply.candidates[0].responder == "tiny"
    plain = empatheia.respond(text, tiny_model, max_new_tokens=4)
    assert plain.candidates == () and plain.text == reply.candidates[0].text


def test_a_dialogue_goes_to_json_and_back():
    talk = Dialogue.of("I won!", "Well done.", id="7", emotion="proud")
    assert talk.to_dict() == {
        "id": "7",
        "turns": [{"role": "speaker", "text": "I won!"}, {"role": "listener", "text": "Well done."}],
        "emotion": "proud",
    }
    assert Dialogue.from_dict(talk.to_dict()) == talk
    for record, words in (({"id": "7"}, "needs turns"), ({"turns": [{"role": "speaker"}]}, "turn 1 has no text")):
        with pytest.raises(DataError, match=words):
            Dialogue.from_dict(record)


def test_lists_in_cells_are_marked(model):
    place, _ = model
    with pytest.warns(UserWarning, match=r"2 of 3 rows .* row 2: a Series; accepted: a text"):
        found = empatheia.analyze(pl.Series("body", ["I won!", pl.Series([1, 2]), [1]], dtype=pl.Object), place)
    assert found["error"].is_null().to_list() == [True, False, False]


def test_missing_cells():
    cells = [None, float("nan"), np.float32("nan"), np.array([1.0, 2.0]), pl.Series([1, 2]), "", 0]
    assert [is_missing(cell) for cell in cells] == [True, True, True, False, False, False, False]


@pytest.mark.parametrize("start", ["\u200b=", "\ufeff+", " \u200b@", "\u2212", "\u2060 -", "\t"])
def test_formulas_behind_what_nobody_sees_are_texts(start):
    assert as_text(f"{start}A1") == f"'{start}A1" and as_text(f"a{start}") == f"a{start}"
