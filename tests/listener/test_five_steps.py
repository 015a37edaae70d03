"""The listener of five steps: every step with and without its model, ranking with every term visible, steering."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from fake_components import FakeEmotion, FakeInferences, FakeIntent, FakeMechanisms, FakeReaction, FakeWords
from pydantic import BaseModel

from empatheia.errors import ConfigError, DataError, DecodingError
from empatheia.listener import FocusedListener, Listener
from empatheia.listener.steps.perceive import carried
from empatheia.listener.steps.settings import (
    DecodingSettings,
    FocusSettings,
    ListenerSettings,
    ResponderSettings,
    WeightSettings,
    read_settings,
)
from empatheia.listener.steps.steering import Steering
from empatheia.records.analysis import Analysis, Inference, Labels, TurnAnalysis, TurnLabels
from empatheia.records.dialogue import Dialogue
from empatheia.records.reply_schema import SCHEMA, ReplyRecord, schema
from empatheia.taxonomy import EMOTIONS, LABELS_41, RELATIONS
from empatheia.text.inputs import prepare
from empatheia.voices.decoding import Decoding
from empatheia.voices.voice import Draft, Request, Voice
from empatheia_research.decoding.distractors import GivenDistractors, RandomDistractors
from empatheia_research.decoding.focus import focused_generate
from empatheia_research.decoding.given_replies import focused_score
from empatheia_research.decoding.turn_pool import TurnPool
from empatheia_research.decoding.world_inputs import worlds_of
from empatheia_research.voices.contrast import targets_of
from empatheia_research.voices.responder import ResponderVoice

sys.path.insert(0, str(Path(__file__).parents[1] / "decoding"))
import tiny_focus

TEXT = "I lost my grandmother last week."
TALK = Dialogue.of("We moved to a new town.", "Oh no, I am so sorry to hear that.", "The dog ate my dinner.")
OTHERS = GivenDistractors(["I am very proud of my daughter.", "My sister passed the exam today."])
POOL = RandomDistractors(TurnPool.of([*OTHERS.texts, "We lost the game.", "My car broke down."]))
SHORT = {"decoding": [{"max_new_tokens": 8}, {"strategy": "beam", "n": 2, "max_new_tokens": 8}]}
FAKES = (FakeEmotion, FakeWords, FakeInferences, FakeReaction, FakeIntent, FakeMechanisms)


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch, tmp_path):
    monkeypatch.setenv("EMPATHEIA_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("EMPATHEIA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("EMPATHEIA_OFFLINE", "1")


def make(listener, fakes=(), settings=None, **options):
    components = {fake.part: fake() for fake in fakes}
    express = {**SHORT, **(settings or {}).pop("express", {})}
    return FocusedListener(
        {**(settings or {}), "express": express},
        components=components,
        voices=options.pop("voices", [listener]),
        reasoner=listener,
        distractors={"given": OTHERS, "random": POOL} | options.pop("distractors", {}),
        **options,
    )


@pytest.fixture(scope="module")
def bare(listener):
    return make(listener)


@pytest.fixture(scope="module")
def whole(listener):
    return make(listener, FAKES)


def test_perception_carries_what_earlier_turns_left_behind():
    one, two = {"sad": 0.7, "proud": 0.2, "angry": 0.1}, {"sad": 0.2, "proud": 0.5, "angry": 0.3}
    row = carried([TurnLabels(0, one), TurnLabels(2, two)], 0.5)
    weights = {name: two[name] * one[name] ** 0.5 for name in one}
    assert row[1].probabilities == pytest.approx({n: w / sum(weights.values()) for n, w in weights.items()})
    assert row[0].probabilities == one
    assert carried([TurnLabels(0, one), TurnLabels(2, two)], 0.0)[1].probabilities == two


def test_carrying_is_in_the_answer(listener):
    anew, kept = (make(listener, FAKES, {"memory": {"carry": carry}}) for carry in (0.0, 1.0))
    first, second = (own.respond(TALK, explain=True) for own in (anew, kept))
    assert set(first.analysis.prior.values()) == {1 / 32} and len(set(second.analysis.prior.values())) > 1
    product = {name: first.analysis.newest.emotions[name] * second.analysis.prior[name] for name in EMOTIONS}
    assert second.analysis.newest.emotions == pytest.approx({n: p / sum(product.values()) for n, p in product.items()})
    assert kept.analyze(TALK).newest.emotions == pytest.approx(second.analysis.newest.emotions)


def test_every_step_answers_and_every_term_is_visible(listener):
    whole = make(listener, FAKES, {"express": {"weights": {"predicted_intent": 0.2}}})
    reply = whole.respond(TALK, explain=True)
    why = reply
    assert why.analysis.by["emotion"] == "fake emotion" and why.analysis.is_felt
    assert [span.of(why.analysis.dialogue.turns) for span in why.analysis.targets][:2] == [
        "dinner",
        "dog",
    ] and why.analysis.by["targets"] == "fake words"
    assert all(span.turn == 2 for span in why.analysis.targets)
    assert why.worlds == (TALK.turns[-1].text, *OTHERS.texts) and why.distractors == "given"
    assert [record.relation for record in why.analysis.newest.inferences] == list(RELATIONS[:8])
    assert why.analysis.newest.reaction.label == max(
        why.analysis.newest.reaction.probabilities, key=why.analysis.newest.reaction.probabilities.get
    ) and set(why.analysis.newest.reaction.probabilities) == set(LABELS_41)
    assert why.analysis.missing.keys() == {"term side", "term information"}  # no perception; that weight is 0
    assert all(weight != 0 for name, weight in why.weights.items() if name not in ("side", "information"))
    assert reply.text == why.candidates[0].text and len({c.text.lower() for c in why.candidates}) == len(why.candidates)
    for candidate in why.candidates:
        assert [n for n, v in candidate.terms.items() if v is None] == ["side", "information"] or not candidate.text
        total = sum(why.weights[name] * (value or 0.0) for name, value in candidate.terms.items())
        assert candidate.score == pytest.approx(total, abs=1e-4)
    scores = [candidate.score for candidate in why.candidates if candidate.text]
    assert scores == sorted(scores, reverse=True)
    assert why.belief[0] == ("", pytest.approx(1 / 3, abs=1e-5))
    assert math.log(why.belief[-1][1]) == pytest.approx(why.candidates[0].terms["listener"], abs=1e-3)


def test_a_given_intent_ranks_and_a_predicted_one_does_not(whole):
    """Unless ``predicted_intent`` weighs it; each conversation for itself."""
    why = whole.respond(TEXT, explain=True)
    assert (
        why.analysis.newest.reaction and why.analysis.by["reaction"] == "fake reaction" and why.weights["intent"] == 0
    )
    assert "predicted one, is 0" in why.analysis.missing["term intent"] and "intent" not in why.analysis.missing
    assert all(candidate.terms["intent"] is None for candidate in why.candidates)
    wanted = whole.respond(TEXT, intent="consoling", explain=True)
    assert (
        wanted.analysis.by["reaction"] == "given"
        and wanted.weights["intent"] == 0.2
        and "term intent" not in wanted.analysis.missing
    )
    assert all(candidate.terms["intent"] is not None for candidate in wanted.candidates if candidate.text)


def test_a_given_intent_that_changes_nothing_is_a_doubt(bare):
    doubts = bare.respond(TEXT, intent="consoling").analysis.unsure
    assert any(doubt.startswith("the wanted intent 'consoling' changes nothing") for doubt in doubts)
    assert bare.respond(TEXT).analysis.unsure == bare.analyze(TEXT).unsure


def test_settings_of_writing_change_the_ways_or_are_one(bare):
    def lengths(reply):
        return sorted({(c.decoding["strategy"], c.decoding["max_new_tokens"]) for c in reply.candidates})

    assert lengths(bare.respond(TEXT, max_new_tokens=4, explain=True)) == [("beam", 4), ("greedy", 4)]
    assert lengths(bare.respond(TEXT, strategy="greedy", max_new_tokens=4, explain=True)) == [("greedy", 4)]
    assert lengths(bare.converse(max_new_tokens=4).say(TEXT)) == [("beam", 4), ("greedy", 4)]
    with pytest.raises(DecodingError, match="max_new_tokens is 0"):
        bare.respond(TEXT, max_new_tokens=0)


def test_replies_that_take_up_what_was_inferred_rank_higher(listener):
    """Term ``knowledge``: by relation, by base form, not by stop words; without inferences it counts nothing."""

    class Knows:
        part, name = "inferences", "knows"
        tails = ("to find the lost keys",)

        def annotate(self, dialogues, *, batch_size=32, progress=None):
            absent = Inference(0, "xReact", (), absent="no near event")
            return [(Inference(0, "xWant", self.tails), absent) for _ in dialogues]

    class Says(Voice):
        name = place = "says"

        def propose(self, requests, way, focus):
            return [[Draft(text, {}) for text in ("To the moon, the sun.", "Did you find them?")] for _ in requests]

    def ask(component):
        weights = dict.fromkeys(("likelihood", "listener", "coverage", "intent", "mechanism", "diversity", "length"), 0)
        own = FocusedListener(
            {"express": {"weights": weights, "decoding": {"strategy": "greedy"}}},
            components={"inferences": component}, voices=[Says()], reasoner=listener,
        )  # fmt: skip
        return own.respond("My keys are gone.", explain=True)

    reply = ask(Knows())
    assert reply.text == "Did you find them?"
    assert [c.terms["knowledge"] for c in reply.candidates] == [1.0, 0.0]
    nothing = Knows()
    nothing.tails = ()
    reply = ask(nothing)
    assert reply.text == "To the moon, the sun." and reply.weights["knowledge"] == 0
    assert reply.analysis.missing["term knowledge"] == "nothing was inferred. It counts 0."


def test_what_is_missing_is_said_and_counts_nothing(bare):
    why = bare.respond(TEXT, explain=True)
    assert {"project", "react", "term intent", "term mechanism"} <= set(why.analysis.missing)
    assert "empatheia models train" in why.analysis.missing["react"]
    assert why.weights["intent"] == why.weights["mechanism"] == 0
    assert all(c.terms["intent"] is None and c.terms["mechanism"] is None for c in why.candidates)
    assert why.analysis.newest.reaction is None and why.analysis.by["emotion"] == "tiny"
    assert bare.respond(TEXT).candidates == ()


def test_the_same_alone_and_in_a_list(whole):
    items = [TEXT, TALK, "I am so proud of my friends, they worked hard for months and then they won it all!"]
    together = whole.respond(items, explain=True)
    for item, reply in zip(items, together, strict=True):
        alone = whole.respond(item, explain=True)
        assert [c.text for c in alone.candidates] == [c.text for c in reply.candidates]
        for one, other in zip(alone.candidates, reply.candidates, strict=True):
            assert one.terms == pytest.approx(other.terms, abs=2e-4) and one.decoding == other.decoding
    assert [u.newest.emotion for u in whole.analyze(items)] == [r.analysis.newest.emotion for r in together]


def test_candidates_are_what_each_way_writes(bare, listener):
    """Plain ones are the responder's own, focused ones those of the equations; likelihood and belief likewise."""
    way = Decoding(max_new_tokens=8)
    why = bare.respond(TEXT, decoding=way, explain=True)
    drafts = {"focus" in c.decoding: c for c in why.candidates}
    plain = listener.respond(TEXT, decoding=way).text
    contrast = OTHERS.make([targets_of(bare.steps.understand([prepare(TEXT)], Steering())[0])])[0]

    def encode(dialogues):
        return listener.reader.tensors(listener.reader.encode([prepare(d) for d in dialogues]))

    worlds = worlds_of([Dialogue("", prepare(TEXT).example.context)], [contrast], encode)
    tokenizer = listener.tokenizer
    silent = {tokenizer.unk_id, tokenizer.pad_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.bos_id}
    options = {"suppress_tokens": sorted(silent), "begin_suppress_tokens": [tokenizer.eos_id], "max_new_tokens": 8}
    with torch.inference_mode():
        rows = focused_generate(listener.network, worlds, 6.0, 0.9, "L0", **options, do_sample=False, num_beams=1)
    focused = tokenizer.decode(rows[0].tolist())
    assert {c.text for c in why.candidates} == {plain, focused}
    assert drafts[False].text == plain and focused != plain
    for candidate in why.candidates:
        pieces = torch.tensor([[*tokenizer.encode(candidate.text).ids, tokenizer.eos_id]])
        scores = focused_score(listener.network, worlds, pieces, 6.0, 0.9)
        assert candidate.terms["likelihood"] == pytest.approx(float(scores.log_s0.mean()), abs=1e-3)
        assert candidate.terms["listener"] == pytest.approx(float(scores.log_belief[0, -1, 0]), abs=1e-3)
    assert drafts[True].terms["listener"] >= drafts[False].terms["listener"]


def test_without_rationality_focus_changes_nothing(bare, listener):
    for strategy in ("greedy", "sample"):
        settings = {"strategy": strategy, "max_new_tokens": 8}
        assert bare.respond(TEXT, focus="grandmother", alpha=0, distractors="random", **settings).text == (
            listener.respond(TEXT, **settings).text
        )


@pytest.mark.parametrize(("focus", "expected"), [("off", {False}), ("auto", {True}), (None, {False, True})])
def test_focus_can_be_steered(whole, focus, expected):
    why = whole.respond(TEXT, focus=focus, explain=True)
    ways = {"focus" in c.decoding for c in why.candidates} | {
        "focused" in also for c in why.candidates for also in c.also
    }
    assert ways == expected
    assert bool(why.worlds) == (focus != "off") and ("term listener" in why.analysis.missing) == (focus == "off")


def test_the_caller_s_word_emotion_and_intent_are_taken(whole):
    why = whole.respond(TALK, emotion="Nostalgic", intent="questioning", focus="dog", explain=True)
    assert (
        why.analysis.newest.emotion.label,
        why.analysis.by.get("emotion", ""),
        why.analysis.newest.emotions["nostalgic"],
    ) == ("nostalgic", "given", 1.0)
    assert (
        why.analysis.newest.reaction.label,
        why.analysis.by.get("reaction", ""),
        why.analysis.newest.reaction.probabilities,
    ) == ("questioning", "given", {"questioning": 1.0})
    assert [span.of(why.analysis.dialogue.turns) for span in why.analysis.targets] == ["dog"] and why.analysis.by.get(
        "targets", ""
    ) == "given"
    assert whole.respond(TALK, label="questioning", explain=True).analysis.newest.reaction.label == "questioning"
    assert whole.respond(TALK, explain=True).analysis.by["emotion"] == "fake emotion"  # the next one is free again


@pytest.mark.parametrize(
    ("settings", "error", "match"),
    [
        ({"alpha": -1}, DecodingError, "alpha is -1; accepted: 0 or more"),
        ({"alpha": float("nan")}, DecodingError, "alpha is nan"),
        ({"beta": -0.1}, DecodingError, "beta is -0.1"),
        ({"worlds": 1}, DecodingError, "1 world"),
        ({"worlds": "3"}, DecodingError, "worlds is '3'; accepted: a whole number"),
        ({"focus": "grandmothers"}, DataError, "does not stand in.*Near words there: grandmother"),
        ({"focus": "the, my", "distractors": "random"}, DataError, "'the' does not stand in"),
        ({"focus": " , "}, DecodingError, "focus names no word"),
        ({"emotion": "sadd"}, DecodingError, "Did you mean 'sad'"),
        ({"emotion": "consoling"}, DecodingError, "emotion: unknown"),
        ({"intent": "consolin"}, DecodingError, "Did you mean 'consoling'"),
        ({"distractors": "gea"}, DecodingError, "Did you mean 'gee'"),
        ({"distractors": "masked"}, DecodingError, "need express.focus.model"),
        ({"focus": "grandmother", "worlds": 9}, DecodingError, "only 2 of 8 distractors possible"),
        ({"alfa": 1}, DecodingError, "unknown setting 'alfa'. Did you mean 'alpha'"),
        ({"strategy": "beem"}, DecodingError, "Did you mean 'beam'"),
    ],
)
def test_bad_values_are_named(whole, settings, error, match):
    with pytest.raises(error, match=match):
        whole.respond(TEXT, **settings)


def test_a_turn_without_distractors_is_answered_without_focus(listener):
    own = make(listener, [FakeWords], distractors={"given": GivenDistractors([TEXT])})
    two = own.respond([TEXT, "I am proud."], worlds=2, focus="auto", explain=True)
    why = two[0]
    assert two[0].text and "answered without focus" in why.analysis.missing["focus"] and why.worlds == ()
    assert why.weights["listener"] == 0 and "there are no distractors" in why.analysis.missing["term listener"]
    assert two[1].worlds == ("I am proud.", TEXT)


def test_a_conversation_remembers_and_is_steered(whole):
    talk = whole.converse()
    first = talk.say("I lost my dog.")
    assert talk.last is first and first.candidates and len(talk.dialogue.turns) == 2
    talk.steering = talk.steering.but(intent="consoling", focus="off")
    stream = talk.stream("He was old.")
    assert stream.analysis.dialogue.turns[-1].text == "He was old." and "".join(stream) == talk.last.text
    why = talk.last
    assert why.analysis.newest.reaction.label == "consoling" and why.worlds == () and len(talk.dialogue.turns) == 4
    alike = whole.respond(Dialogue("", talk.dialogue.turns[:3]), intent="consoling", focus="off")
    assert alike.text == talk.last.text
    talk.reset()
    assert talk.last is None and talk.dialogue.turns == () and talk.steering.intent == "consoling"


def test_what_was_said_before_loses(listener):
    """With every other weight 0 the reply is one that shares least with the listener's earlier turns."""
    zero = dict.fromkeys(("likelihood", "listener", "coverage", "intent", "mechanism", "length"), 0)
    own = make(listener, settings={"express": {"weights": {**zero, "diversity": 1}}})
    said = own.respond(TEXT, focus="off").text
    again = own.respond(Dialogue.of(TEXT, said, TEXT), focus="off", explain=True)
    assert again.candidates[0].terms["diversity"] == max(c.terms["diversity"] for c in again.candidates)
    assert again.candidates[0].score == again.candidates[0].terms["diversity"]


@pytest.mark.parametrize(
    ("memory", "first"), [({"history": "turns", "newest": 1}, 2), ({"history": "speaker_turns"}, 0)]
)
def test_responders_read_what_memory_says(listener, memory, first):
    own = make(listener, settings={"memory": memory})
    read = Dialogue("", tuple(turn for turn in TALK.turns[first:] if turn.role == "speaker"))
    settings = {"focus": "off", "strategy": "greedy", "max_new_tokens": 8}
    assert own.respond(TALK, **settings).text == listener.respond(read, max_new_tokens=8).text
    assert own.respond(TALK, explain=True).worlds[0] == TALK.turns[-1].text


def test_an_instance_is_loaded_from_yaml(tiny_model, tmp_path):
    (tmp_path / "mine").symlink_to(tiny_model)
    (tmp_path / "mine.yaml").write_text(
        "name: mine\nreasoner: ./mine\nexpress:\n  responders: ./mine\n  scorer: ./mine\n  focus: {use: off}\n"
        "  decoding: {max_new_tokens: 6}\n"
    )
    own = Listener.load(tmp_path / "mine.yaml")
    assert isinstance(own, FocusedListener) and own.name == "mine"
    reply = own.respond(TEXT)
    assert reply.model == "mine" and reply.text == Listener.load(tiny_model).respond(TEXT, max_new_tokens=6).text
    assert reply.decoding["responder"] == "tiny" and own.host == ""


@pytest.mark.parametrize(
    ("tree", "match"),
    [
        ({"expres": {}}, "unknown key 'expres'. Did you mean 'express'"),
        ({"express": {"focus": {"alpa": 1}}}, "unknown key 'express.focus.alpa'. Did you mean 'alpha'"),
        ({"express": {"responders": ["a", {"lm": "x"}]}}, "'express.responders.1.lm'. Did you mean 'llm'"),
        ({"express": {"responders": [{"llm": "x", "model": "y"}]}}, "name one of them"),
        ({"express": {"focus": {"alpha": -1}}}, r"express.focus.alpha: .* greater than or equal to 0 \(found -1\)"),
        ({"express": {"focus": {"worlds": 1}}}, "greater than or equal to 2"),
        ({"express": {"decoding": [{"n": 2}]}}, "n is 2, but greedy search returns one reply"),
        ({"express": {"min_words": 9, "max_words": 4}}, "must not be larger"),
        ({"memory": {"carry": 1.5}}, "memory.carry: .* less than or equal to 1"),
        ({"explain": {"targets": "given"}}, "words go with `given` alone"),
        ({"perceive": {"emotion": "sadd"}}, "Did you mean 'sad'"),
        ({"project": {"relations": ["xWants"]}}, "Did you mean 'xWant'"),
        ({"react": {"endpoint": "http://x/v1"}}, "endpoint needs llm"),
    ],
)
def test_bad_settings_are_named(tree, match):
    with pytest.raises(ConfigError, match=match):
        FocusedListener(tree)


def test_a_scorer_must_be_a_responder(listener):
    own = make(listener, settings={"express": {"scorer": "tinny"}})
    with pytest.raises(ConfigError, match=r"no responder 'tinny' that gives probabilities\. Did you mean 'tiny'"):
        own.respond(TEXT)


def test_the_schema_is_the_output(whole, bare, listener):
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == schema()
    records = [own.respond(TALK, explain=True).to_dict() for own in (whole, bare)]
    records += [whole.respond(TALK, focus="off", explain=True).to_dict(), listener.respond(TEXT).to_dict()]
    for record in records:
        ReplyRecord.model_validate_json(json.dumps(record), strict=True)
    broken = json.loads(json.dumps(records[0]))
    broken["explanation"]["candidates"][0]["terms"]["novelty"] = 1.0
    with pytest.raises(ValueError, match="novelty"):
        ReplyRecord.model_validate(broken)


def test_the_example_file_holds_the_defaults_and_every_field_is_described():
    example = read_settings(Path(__file__).parents[2] / "examples" / "listener.yaml")
    assert example == ListenerSettings()
    sections = [ListenerSettings, *(field.annotation for field in ListenerSettings.model_fields.values())]
    sections += [ResponderSettings, DecodingSettings, FocusSettings, WeightSettings]
    fields = {
        f"{section.__name__}.{name}": field
        for section in sections
        if isinstance(section, type) and issubclass(section, BaseModel)
        for name, field in section.model_fields.items()
        if not (isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel))
    }
    assert len(fields) > 50 and [name for name, field in fields.items() if not field.description] == []


def test_a_words_model_explains_the_emotion_that_is_given(listener, tmp_path):
    """A given emotion, or one carried over, is handed to the model of words with the call; nothing of it stays."""
    words = tiny_focus.estimator("own")
    words.model.save_pretrained(tmp_path)
    words.reader.save(tmp_path)
    own = FocusedListener(
        {"explain": {"model": str(tmp_path)}}, components={"emotion": FakeEmotion()}, voices=[listener],
        reasoner=listener,
    )  # fmt: skip
    inputs = [prepare(TALK)]
    (free,) = own.steps.understand(inputs, Steering())
    for given in ("proud", "lonely"):
        (found,) = own.steps.understand(inputs, Steering(emotion=given))
        assert found.newest.emotion.label == given and found.targets and found.by["targets"] == free.by["targets"]
    (again,) = own.steps.understand(inputs, Steering())
    assert again == free


def test_an_estimator_finds_the_words_and_what_they_are_told_from(listener, monkeypatch):
    """``auto`` takes it for both as soon as it is there; only target words differ between the worlds."""
    pool = SimpleNamespace(words=tiny_focus.WORDS)
    monkeypatch.setattr("empatheia_research.decoding.estimator_distractors.turn_pool", lambda: pool)
    own = FocusedListener(
        {"express": SHORT, "explain": {"most": 2}},
        components={"words": tiny_focus.words_component()},
        voices=[listener],
        reasoner=listener,
    )
    text = "My dog ate the cake for the party."
    why = own.respond(text, explain=True)
    targets = {span.of(why.analysis.dialogue.turns) for span in why.analysis.targets}
    assert len(targets) == 2 and why.distractors.startswith("gee clean") and len(why.worlds) == 3
    words = text.rstrip(".").split()
    for world in why.worlds[1:]:
        changed = {old for old, new in zip(words, world.rstrip(".").split(), strict=True) if old != new}
        assert changed == targets
    random = own.respond(text, distractors="gee", worlds=2, explain=True)
    assert random.worlds == why.worlds[:2]


def test_as_many_words_as_are_asked_for(tiny_copy):
    record = json.loads((tiny_copy / "empatheia.json").read_text())
    (tiny_copy / "empatheia.json").write_text(json.dumps(record | {"cause_threshold": 0.0}))
    marks_all = Listener.load(tiny_copy)
    asked = {"focus": "auto", "max_new_tokens": 2, "explain": True}
    found = [make(marks_all, settings={"explain": {"most": n}}).respond(TEXT, **asked) for n in (1, 2, 9)]
    assert [len(reply.analysis.targets) for reply in found] == [
        1,
        2,
        4,
    ]  # of causes of five words at most: lost, grandmother, last, week
    assert all(reply.analysis.newest.causes == marks_all.analyze(TEXT).newest.causes for reply in found)


def test_ties_go_to_the_first_and_duplicates_are_one(listener):
    zero = dict.fromkeys(WeightSettings.model_fields, 0)
    own = make(listener, settings={"express": {"weights": zero}}, voices=[listener, listener])
    why = own.respond(TEXT, focus="off", explain=True)
    first = listener.respond(TEXT, max_new_tokens=8).text
    assert {c.score for c in why.candidates} == {0.0} and why.candidates[0].text == first
    assert any(how.startswith("tiny: strategy greedy") for how in why.candidates[0].also)
    assert [c.decoding.get("rank", 0) for c in why.candidates[1:]] == sorted(
        c.decoding.get("rank", 0) for c in why.candidates[1:]
    )


def test_a_wanted_label_goes_to_systems_that_take_one():
    """Row by row; where none is wanted the system's own prediction stays."""
    rows = {"input_ids": torch.zeros(2, 3, dtype=torch.long), "reply_label_ids": torch.tensor([4, 5])}
    reader = SimpleNamespace(encode=list, tensors=lambda inputs: dict(rows))
    network = SimpleNamespace(takes_label=True, device="cpu")
    voice = ResponderVoice(SimpleNamespace(network=network, name="labelled", reader=reader))  # pyright: ignore
    consoling = Analysis(Dialogue.of("Hi."), (TurnAnalysis(0, reaction=Labels({"consoling": 1.0})),))
    asked = [Request(Dialogue.of("Hi."), analysis=consoling), Request(Dialogue.of("Hi."))]
    assert voice.tensors(asked)["reply_label_ids"].tolist() == [LABELS_41.index("consoling"), 5]
    network.takes_label = False
    assert ResponderVoice(voice.listener).tensors(asked)["reply_label_ids"].tolist() == [4, 5]


def test_a_reasoner_must_name_emotions():
    mute = SimpleNamespace(name="mute", reader=SimpleNamespace(analyzes=False))
    own = FocusedListener(reasoner=mute)  # pyright: ignore
    with pytest.raises(ConfigError, match="reasoner: 'mute' names no emotion"):
        own.analyze(TEXT)


def test_without_any_model_of_emotion_nothing_is_named(listener, monkeypatch, tmp_path):
    monkeypatch.setattr("empatheia.resources.lookup._bundled", lambda name: None)
    monkeypatch.setattr("empatheia.resources.catalogue.bundled_root", lambda: tmp_path)
    own = FocusedListener(
        {"express": SHORT, "reasoner": "gao2021-small"}, voices=[listener], distractors={"given": OTHERS}
    )
    reply = own.respond(TEXT, explain=True)
    why = reply
    assert {"perceive", "explain", "term coverage"} <= set(
        why.analysis.missing
    ) and "gao2021-small" in why.analysis.missing["perceive"]
    assert why.analysis.newest.emotion is None and why.worlds == (TEXT, *OTHERS.texts)
    assert own.respond(TEXT, emotion="sad", explain=True).analysis.newest.emotion.label == "sad"
    ReplyRecord.model_validate(reply.to_dict())
