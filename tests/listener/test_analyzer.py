"""The parts composed: once loaded, once computed, nothing missing without a reason, gold labels never read."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest
from fake_components import DIALOGUE, FakeEmotion, FakeIntent, fake_components, put_into_registry

import empatheia
from empatheia.errors import CheckpointError, ConfigError, DataError, MissingResourceError
from empatheia.listener import analyzer as module
from empatheia.listener.analyzer import Analyzer
from empatheia.listener.parts import PART_MODELS, parse_parts, part_model
from empatheia.records.analysis import PARTS
from empatheia.records.dialogue import Dialogue, Turn


@pytest.fixture
def models(tmp_path, monkeypatch):
    """An empty folder of models, no cache, and fakes behind the registry."""
    monkeypatch.setenv("EMPATHEIA_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("EMPATHEIA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("EMPATHEIA_OFFLINE", "1")
    put_into_registry(monkeypatch)
    return tmp_path / "models"


def install(root, folder_name, **record):
    folder = root / folder_name
    folder.mkdir(parents=True)
    (folder / "empatheia.json").write_text(json.dumps({"format": 1, "name": f"the {folder_name}", **record}))
    return folder


def test_every_part_answers():
    analysis = Analyzer(components=fake_components()).analyze(DIALOGUE)
    assert set(analysis.by) == set(PARTS) and not analysis.missing and not analysis.unsure
    assert analysis.dialogue is DIALOGUE
    assert [one.turn for one in analysis.turns if one.emotion] == [0, 2] and all(one.intent for one in analysis.turns)
    plain = analysis.to_dict()
    assert {"emotion", "intent", "causes", "words", "mechanisms", "inferences", "reaction"} <= set(plain)
    for part in ("causes", "words"):
        for record in plain[part]:
            for span in record.get("spans", record.get("words")):
                assert DIALOGUE.turns[span["turn"]].text[span["start"] : span["end"]] == span["text"]
    json.dumps(plain)


def test_only_what_is_asked():
    analysis = Analyzer("words,emotion", components=fake_components()).analyze(DIALOGUE)
    assert list(analysis.by) == ["emotion", "words"] and not any(one.intent for one in analysis.turns)
    assert "intent" not in analysis.to_dict()


def test_one_turn_is_answered_for_and_later_ones_are_not_read():
    analyzer = Analyzer(components=fake_components())
    whole, one = analyzer.analyze(DIALOGUE), analyzer.analyze(DIALOGUE, target=2)
    assert one.dialogue.turns == DIALOGUE.turns[:3]
    assert one.turns == whole.turns[2:3] and one.newest.emotion
    assert one.newest.evidence.target == 2 and not one.newest.mechanisms
    assert analyzer.analyze([DIALOGUE, DIALOGUE], target=2) == [one, one]
    (answer,) = {record.turn for record in analyzer.analyze(DIALOGUE, target=3).turns[0].mechanisms}
    assert answer == 3
    with pytest.raises(DataError, match="target is 4; accepted: a turn, one of 0, 1, 2, 3"):
        analyzer.analyze(DIALOGUE, target=4)
    with pytest.raises(DataError, match="input 2: target is 1; accepted: a turn, one of 0"):
        analyzer.analyze([DIALOGUE, "One turn."], target=1)


def test_parts_are_checked():
    assert parse_parts("all") == PARTS and parse_parts(["reaction", "emotion"]) == ("emotion", "reaction")
    with pytest.raises(ConfigError, match=r"unknown part 'emotions'\. Did you mean 'emotion'"):
        parse_parts("emotions")
    with pytest.raises(ConfigError, match="no part is named"):
        parse_parts(" , ")
    with pytest.raises(ConfigError, match=r"unknown model name 'cause'\. Did you mean 'causes'"):
        Analyzer("causes", {"cause": "x"})
    with pytest.raises(ConfigError, match="components: unknown part 'cause_spans'"):
        Analyzer("causes", components={"cause_spans": FakeEmotion()})
    with pytest.raises(ConfigError, match=r"no model 'intents' of an analysis. Did you mean 'intent'"):
        part_model("intents")


def test_same_alone_and_in_a_batch(monkeypatch):
    monkeypatch.setattr(module, "WINDOW_TURNS", 5)
    inputs = [
        DIALOGUE,
        "I lost my job.",
        dataclasses.replace(DIALOGUE, id="twin"),
        Dialogue.of("Hi.", "Hello.", "Bye."),
    ]
    done: list[int] = []
    together = Analyzer(components=fake_components()).analyze(inputs, progress=done.append)
    assert sum(done) == 4 and len(done) > 1 and min(done) > 0
    for item, found in zip(inputs, together, strict=True):
        alone = Analyzer(components=fake_components()).analyze(item)
        assert alone == found
    assert list(Analyzer(components=fake_components()).stream(iter(inputs))) == together


def test_emotion_is_computed_once_for_all_who_read_it(models):
    for name in ("emotion", "causes", "reaction", "intent"):
        install(models, name)
    analyzer = Analyzer("emotion,intent,causes,reaction")
    analysis = analyzer.analyze(DIALOGUE)
    emotion, intent = (analyzer.component(part).component for part in ("emotion", "intent"))
    assert (emotion.n_calls, emotion.n_dialogues) == (1, 1) and intent.n_calls == 1
    assert analyzer.component("reaction").options["labeller"].component is intent
    assert [one.evidence.emotion for one in analysis.turns[::2]] == [one.emotion.label for one in analysis.turns[::2]]
    before = analyzer.component("causes")
    analyzer.analyze(DIALOGUE)
    assert analyzer.component("causes") is before and emotion.n_calls == 2  # nothing is kept between calls


def test_emotion_helps_causes_though_it_was_not_asked_for(models):
    install(models, "emotion")
    install(models, "causes")
    analysis = Analyzer("causes").analyze(DIALOGUE)
    assert list(analysis.by) == ["causes"] and analysis.newest.emotion is None and analysis.newest.evidence.emotion


def test_look_up_order(models, tmp_path):
    """A given folder, then EMPATHEIA_MODELS, then the cache."""
    given = install(tmp_path / "elsewhere", "own", name="given")
    install(tmp_path / "cache" / "models", "intent", name="cached")
    assert Analyzer("intent").names == {"intent": "cached"}
    install(models, "intent", name="mirrored")
    assert Analyzer("intent").names == {"intent": "mirrored"}
    assert Analyzer("intent", {"intent": given}).names == {"intent": "given"}


def test_a_folder_of_that_name_where_the_program_runs_is_not_taken(models, tmp_path, monkeypatch):
    install(tmp_path, "intent")
    monkeypatch.chdir(tmp_path)
    assert "intent" in Analyzer("intent").missing


def test_span_model_is_handed_to_causes(models, tmp_path):
    install(models, "cause_spans")
    assert Analyzer("causes").names == {"causes": "cause_spans"}  # alone it answers too
    install(models, "causes")
    assert Analyzer("causes").names == {"causes": "causes+cause_spans"}
    own = install(tmp_path, "mine")
    assert Analyzer("causes", {"causes": own}).names == {"causes": "mine"}  # an installed one is not mixed in
    assert Analyzer("causes", {"causes": own, "cause_spans": own}).names == {"causes": "mine+mine"}


def test_progress_goes_on_while_one_part_works():
    done: list[int] = []
    texts = [f"Hi, {i}." for i in range(10)]
    Analyzer("emotion,intent", components=fake_components()).analyze(texts, progress=done.append)
    assert done == [5, 5]
    Analyzer("emotion", components={}, listener="nowhere/at/all").analyze(["Hi."] * 3, progress=done.append)
    assert done == [5, 5, 3]  # nothing can answer, and the conversations are done all the same


def test_what_is_missing_says_which_command_gets_it(models):
    analyzer = Analyzer("intent,inferences,mechanisms", components={"mechanisms": fake_components()["mechanisms"]})
    analysis = analyzer.analyze(DIALOGUE)
    assert set(analysis.missing) == {"intent", "inferences"} and list(analysis.by) == ["mechanisms"]
    assert "empatheia models train intent" in analysis.missing["intent"]
    assert "empathetic_intents in EMPATHEIA_DATA" in analysis.missing["intent"]
    assert "--model-for inferences=FOLDER" in analysis.missing["inferences"]
    assert analysis.to_dict()["missing"] == dict(analysis.missing) and "intent" not in analysis.to_dict()


def test_a_damaged_installed_model_is_missing_and_a_given_one_an_error(models, monkeypatch):
    folder = install(models, "emotion")
    (folder / "empatheia.json").write_text("{")
    assert "cannot be loaded: JSONDecodeError" in Analyzer("emotion").missing["emotion"]
    assert "empatheia models train emotion" in Analyzer("emotion").missing["emotion"]
    with pytest.raises(CheckpointError, match="the model for 'emotion' cannot be loaded"):
        Analyzer("emotion", {"emotion": folder}).load()
    monkeypatch.setattr(FakeEmotion, "part", "intent")
    install(models, "again")
    with pytest.raises(CheckpointError, match="gives a component for 'intent', not for 'emotion'"):
        Analyzer("emotion", {"emotion": models / "again"}).load()


def test_a_given_model_that_is_not_there_is_an_error(models, monkeypatch):
    def load(folder, device=None):
        raise MissingResourceError(f"no model folder {folder!r}.")

    monkeypatch.setattr(FakeIntent, "load", staticmethod(load))
    with pytest.raises(MissingResourceError, match="no model folder 'nowhere'"):
        Analyzer("intent", {"intent": "nowhere"}).load()


def test_a_stand_in_says_so(models):
    install(models, "emotion", degraded="a toy")
    install(models, "intent", degraded="a toy")
    analysis = Analyzer("emotion,intent").analyze(DIALOGUE)
    assert analysis.unsure == ("stand-in for emotion, intent: a toy",)
    install(models, "causes")
    install(models, "cause_spans", degraded="another toy")  # a helping model counts too
    assert Analyzer("causes").analyze(DIALOGUE).unsure == ("stand-in for causes: another toy",)


def test_only_the_listener_speaks():
    analysis = Analyzer(components=fake_components()).analyze(Dialogue("x", (Turn("listener", "How are you?"),)))
    about_speaker = {"emotion", "causes", "words", "inferences", "reaction"}
    assert set(analysis.missing) == about_speaker | {"mechanisms"} and set(analysis.by) == set(PARTS)
    assert all("no speaker turn" in analysis.missing[part] for part in about_speaker)
    assert "no listener turn answers" in analysis.missing["mechanisms"] and analysis.newest.intent
    assert analysis.to_dict()["emotion"] == []


def test_one_turn_and_five_hundred():
    one = Analyzer(components=fake_components()).analyze("I lost my job.")
    assert list(one.missing) == ["mechanisms"] and one.newest.emotion and one.newest.evidence
    long = Dialogue("long", tuple(Turn(("speaker", "listener")[i % 2], f"Turn {i} is here.") for i in range(500)))
    many = Analyzer(components=fake_components()).analyze(long)
    assert sum(one.intent is not None for one in many.turns) == 500 and not many.missing
    assert sum(one.emotion is not None for one in many.turns) == 250


def test_a_conversation_may_end_with_the_listener_but_not_be_empty():
    analyzer = Analyzer("emotion", components=fake_components())
    assert analyzer.analyze(Dialogue.of("I won!", "Great.")).newest.emotion
    with pytest.raises(DataError, match="has no turns"):
        analyzer.analyze(Dialogue("x", ()))
    with pytest.raises(DataError, match="input 2: turn 2 of 2 is only white space"):
        analyzer.analyze(["fine", Dialogue.of("I won!", " \n")])
    with pytest.raises(DataError, match="cannot read a int"):
        analyzer.analyze([5])  # type: ignore[list-item]


def test_offsets_hold_and_doubts_are_told_with_their_turns():
    odd = Dialogue(
        "x", (Turn("speaker", "I\x07 lost\u202e it \ud800."), Turn("listener", "Oh."), Turn("speaker", "Ja \U0001f622"))
    )
    analysis = Analyzer("words", components=fake_components()).analyze(odd)
    assert [word.of(odd.turns) for word in analysis.turns[0].words][:2] == ["I", "lost"]
    assert analysis.dialogue.turns[0].text == odd.turns[0].text
    assert "control characters were ignored (turn 1)" in analysis.unsure
    assert "emoji are not understood (turn 3)" in analysis.unsure


def test_a_turn_that_is_too_long_to_be_read_whole_is_told():
    analyzer = Analyzer("intent", components=fake_components())
    analysis = analyzer.analyze(Dialogue.of("I lost my job. " * 200, "Oh no."))
    assert analysis.unsure == ("longer than 2,000 characters, of which the models read a part (turn 1)",)
    assert not analyzer.analyze(Dialogue.of("I lost my job. " * 100, "Oh no.")).unsure


def test_every_model_has_a_part_and_a_way_to_get_it():
    assert {model.part for model in PART_MODELS} == set(PARTS)
    assert all(model.remedy == f"empatheia models train {model.name}" and model.corpus for model in PART_MODELS)
    assert [model.name for model in PART_MODELS if not model.recipe] == ["inferences"]


# -- the bundled listener ------------------------------------------------------------------------------------


def test_emotion_and_words_come_from_the_listener_without_a_model(models, tiny_model, listener):
    analyzer = Analyzer("emotion,words,causes", listener=tiny_model)
    analysis = analyzer.analyze(DIALOGUE)
    assert analysis.by == {"emotion": "tiny", "causes": "tiny", "words": "tiny"} and not analysis.missing
    expected = listener.analyze(Dialogue("", DIALOGUE.turns[:3]))
    assert dict(analysis.newest.emotion.probabilities) == pytest.approx(dict(expected.newest.emotions), abs=1e-6)
    assert analysis.newest.evidence.target == 2 and analysis.newest.causes == expected.newest.causes
    assert [one.turn for one in analysis.turns if one.scores] == [0, 2]
    assert all(word.turn == one.turn for one in analysis.turns for word in one.words)
    assert sum(word.score for word in analysis.turns[0].words) == pytest.approx(1.0)
    named = {word.of(DIALOGUE.turns).lower(): word.score for word in analysis.turns[0].words}
    assert named["my"] == named["."] == 0.0 < named["sister"]


def test_the_listener_reads_once_for_both_and_gives_the_same_in_a_batch(models, tiny_model, monkeypatch):
    from empatheia_research.voices.responder_listener import ResponderListener

    calls, analyze = [], ResponderListener.analyze

    def counting(self, items, **options):
        calls.append(len(items))
        return analyze(self, items, **options)

    monkeypatch.setattr(ResponderListener, "analyze", counting)
    analyzer = Analyzer("emotion,words", listener=tiny_model)
    inputs = ["Hi.", DIALOGUE, Dialogue.of("I lost my grandmother last week and I keep her scarf on my desk.", "Oh.")]
    together = analyzer.analyze(inputs, batch_size=2)
    assert [n for n in calls if n] == [4]
    for item, found in zip(inputs, together, strict=True):
        alone = analyzer.analyze(item)
        for one, two in zip(alone.turns, found.turns, strict=True):
            assert one.turn == two.turn and (one.emotion is None) == (two.emotion is None)
            if one.emotion is not None:
                assert dict(one.emotion.probabilities) == pytest.approx(dict(two.emotion.probabilities), abs=1e-5)
            assert [(w.start, w.end) for w in one.words] == [(w.start, w.end) for w in two.words]
            assert [w.score for w in one.words] == pytest.approx([w.score for w in two.words], abs=1e-5)


def test_without_a_listener_the_reason_is_told(models, tmp_path):
    analyzer = Analyzer("emotion", listener=tmp_path / "nowhere")
    assert analyzer.names == {} and "no model folder" in analyzer.missing["emotion"]


def test_the_python_of_the_docs_runs(models, tmp_path, monkeypatch, capsys):
    """The blocks of docs/analysis.md, one after the other, with the bundled listener."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "analysis.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in blocks:
        exec(block, names)
    assert len(blocks) == 3 and len(blocks[0].strip().splitlines()) <= 4
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 4 and empatheia.analyze("I won!").by["emotion"] in printed[-1]
    assert "two sisters" in (tmp_path / "report.html").read_text(encoding="utf-8")
