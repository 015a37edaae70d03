"""Who writes and what it reads in a listener of five steps: MEED2 by intent, ready replies, spans, masked words."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from fake_components import Fake, FakeIntent, FakeReaction, FakeWords
from transformers import GenerationConfig

from empatheia.errors import ConfigError, DecodingError
from empatheia.listener import FocusedListener
from empatheia.listener.steps.history import read_by_responders
from empatheia.listener.steps.settings import FocusSettings, MemorySettings
from empatheia.listener.steps.steering import Steering
from empatheia.records.analysis import WordScores
from empatheia.records.dialogue import CauseAnnotation, Dialogue, Span
from empatheia.records.reply_schema import ReplyRecord
from empatheia.resources.manifest import FORMAT, Manifest
from empatheia.taxonomy import LABELS_41
from empatheia.text.inputs import prepare
from empatheia.voices.decoding import Decoding
from empatheia_research.checkpoints.reader import Reader
from empatheia_research.decoding.distractors import GivenDistractors
from empatheia_research.decoding.focus import focused_generate
from empatheia_research.decoding.masked_distractors import MaskedDistractors
from empatheia_research.decoding.reply_index import ReplyIndex
from empatheia_research.decoding.retrieving import PairReader
from empatheia_research.decoding.world_inputs import worlds_of
from empatheia_research.responders.meed2 import MEED2, MEED2Config
from empatheia_research.responders.rashkin_retrieval import RashkinRetrieval, RetrievalConfig
from empatheia_research.side_inputs.external_vectors import ExternalVectors
from empatheia_research.side_inputs.prepended_labels import PrependedLabels
from empatheia_research.voices.contrast import targets_of
from empatheia_research.voices.responder_listener import ResponderListener
from empatheia_research.voices.retriever import Retriever

sys.path.insert(0, str(Path(__file__).parents[1] / "decoding"))
import tiny_focus

TEXT = "I lost my grandmother last week."
OTHERS = ("I am very proud of my daughter.", "My sister passed the exam today.")
GIVEN = {"given": GivenDistractors(OTHERS)}
TALK = Dialogue.of("We moved to a new town.", "Oh no, I am so sorry to hear that.", "The dog ate my dinner.")
READY = ("I am so sorry to hear that.", "That's great news!", "Did you cook again?", "Were you close?")


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch, tmp_path):
    monkeypatch.setenv("EMPATHEIA_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("EMPATHEIA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("EMPATHEIA_OFFLINE", "1")


@pytest.fixture(scope="module")
def labelled(listener) -> ResponderListener:
    """A MEED2 system: what it writes depends on the label of the reply."""
    tokenizer = listener.tokenizer
    marks = {f"{name}_token_id": getattr(tokenizer, f"{name}_id") for name in ("pad", "bos", "eos")}
    torch.manual_seed(0)
    sizes = {"width": 32, "n_encoder_layers": 1, "n_decoder_layers": 1, "n_heads": 2, "ffn_width": 48}
    network = MEED2(MEED2Config(vocab_size=len(tokenizer), **sizes, **marks)).eval()
    with torch.no_grad():
        network.encoder.labels.weight.mul_(20)
    network.generation_config = GenerationConfig(decoder_start_token_id=tokenizer.bos_id, **marks)
    manifest = Manifest(format=FORMAT, system="meed2", name="labelled", layout={"separators": "double"})
    return ResponderListener(Reader(network, tokenizer, manifest))


@pytest.fixture(scope="module")
def retriever(listener) -> Retriever:
    tokenizer = listener.tokenizer
    torch.manual_seed(0)
    config = RetrievalConfig(vocab_size=len(tokenizer), width=16, n_layers=1, n_heads=2, pad_token_id=tokenizer.pad_id)
    reader = PairReader(tokenizer, config, PrependedLabels(tokenizer), ExternalVectors())
    network = RashkinRetrieval(config).eval()
    own = Retriever(
        network, reader, ReplyIndex([""], [[0.0]]), Manifest(format=FORMAT, system="rashkin_retrieval", name="ready")
    )
    own.use_candidates(READY)
    return own


def five_steps(listener, voices=None, settings=None, **options) -> FocusedListener:
    express = {"decoding": [{"max_new_tokens": 8}], **(settings or {}).pop("express", {})}
    options.setdefault("distractors", GIVEN)
    return FocusedListener(
        {**(settings or {}), "express": express}, voices=voices or [listener], reasoner=listener, **options
    )


# -- MEED2 ---------------------------------------------------------------------------------------------------


def test_a_wanted_intent_steers_what_meed2_writes(listener, labelled):
    """Plain replies are those of the system with this label; the intent that was predicted steers likewise."""
    own = five_steps(listener, [labelled])
    said = {}
    for intent in ("consoling", "questioning", "joyful"):
        why = own.respond(TALK, intent=intent, focus="off", explain=True)
        said[intent] = why.candidates[0].text
        assert why.analysis.newest.reaction.label == intent and "intent" not in why.analysis.missing
        assert said[intent] == labelled.respond(TALK, label=intent, max_new_tokens=8).text
    assert len(set(said.values())) == 3
    predicting = five_steps(listener, [labelled], components={"reaction": FakeReaction()})
    why = predicting.respond(TALK, focus="off", explain=True)
    assert why.analysis.by["reaction"] == "fake reaction"
    assert (
        why.candidates[0].text
        == labelled.respond(TALK, label=why.analysis.newest.reaction.label, max_new_tokens=8).text
    )


def test_meed2_is_focused_with_the_wanted_intent_in_every_world(listener, labelled):
    own = five_steps(listener, [labelled])
    why = own.respond(TEXT, intent="consoling", focus="grandmother", explain=True)
    contrast = GIVEN["given"].make(
        [targets_of(own.steps.understand([prepare(TEXT)], Steering(focus="grandmother"))[0])]
    )

    def encode(dialogues):
        inputs = labelled.reader.tensors(labelled.reader.encode([prepare(d) for d in dialogues]))
        return {**inputs, "reply_label_ids": torch.full((len(dialogues),), LABELS_41.index("consoling"))}

    worlds = worlds_of([Dialogue.of(TEXT)], contrast, encode)
    tokenizer = labelled.tokenizer
    silent = {tokenizer.unk_id, tokenizer.pad_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.bos_id}
    options = {"suppress_tokens": sorted(silent), "begin_suppress_tokens": [tokenizer.eos_id], "max_new_tokens": 8}
    with torch.inference_mode():
        rows = focused_generate(labelled.network, worlds, 6.0, 0.9, "L0", **options, do_sample=False, num_beams=1)
    assert [c.text for c in why.candidates] == [tokenizer.decode(rows[0].tolist())]
    assert "focus" in why.candidates[0].decoding


def test_intents_of_a_batch_stay_with_their_rows(listener, labelled):
    own = five_steps(listener, [labelled, listener], components={"reaction": FakeReaction()})
    items = [TEXT, TALK, "I am proud of my friends, they passed the exam."]
    together = own.respond(items, explain=True)
    assert len({reply.analysis.newest.reaction.label for reply in together}) > 1
    for item, reply in zip(items, together, strict=True):
        alone = own.respond(item, explain=True)
        assert [c.text for c in alone.candidates] == [c.text for c in reply.candidates]


def test_an_intent_that_changes_nothing_is_told(listener, labelled):
    wanted = {"intent": "consoling", "focus": "off", "explain": True}
    for options, told in (
        ({}, True),
        ({"components": {"intent": FakeIntent()}}, False),  # it ranks
        ({"voices": [listener, labelled]}, False),  # it steers
    ):
        missing = five_steps(listener, **options).respond(TEXT, **wanted).analysis.missing
        assert ("changes nothing: no responder is told" in missing.get("intent", "")) is told
    assert "intent" not in five_steps(listener).respond(TEXT, focus="off", explain=True).analysis.missing


# -- ready replies -------------------------------------------------------------------------------------------


def test_ready_replies_compete_and_say_that_they_were_retrieved(listener, retriever):
    settings = {"express": {"decoding": [{"max_new_tokens": 8}, {"strategy": "sample", "n": 3, "max_new_tokens": 8}]}}
    own = five_steps(listener, [retriever, listener], settings)
    items = [TEXT, TALK]
    for item, reply in zip(items, own.respond(items, explain=True), strict=True):
        why = reply
        (ready,) = [c for c in why.candidates if c.responder == "ready"]
        assert ready.text == retriever.respond(item).text and ready.text in READY
        assert ready.decoding["strategy"] == "retrieve" and ready.decoding["candidates"] == len(READY)
        assert ready.terms["likelihood"] < 0 and ready.terms["listener"] < 0  # the other voice hears it
        assert "it writes in 1 of the 2 ways" in why.analysis.missing["ways of ready"]
        assert "no probabilities" in why.analysis.missing["focus of ready"]
        ReplyRecord.model_validate(reply.to_dict())
        assert own.respond(item).text == reply.text


def test_ready_replies_alone_are_no_speaker_to_focus(listener, retriever):
    alone = five_steps(listener, [retriever])
    with pytest.raises(DecodingError, match="focus needs probabilities, and 'ready' gives none"):
        alone.respond(TEXT, focus="grandmother")
    reply = alone.respond(TEXT, explain=True)
    assert reply.decoding["strategy"] == "retrieve" and reply.worlds == ()
    assert "no responder in this process gives probabilities" in reply.analysis.missing["term likelihood"]
    ReplyRecord.model_validate(reply.to_dict())


# -- targets and distractors ---------------------------------------------------------------------------------


class FakeSpans(Fake):
    """``grandmother`` at .4, ``lost my`` at .9, and a span of an earlier turn."""

    part = "causes"

    def records(self, dialogue):
        last = len(dialogue.turns) - 1
        text = dialogue.turns[last].text
        spans = [
            Span(last, text.index(words), text.index(words) + len(words), score)
            for words, score in (("grandmother", 0.4), ("lost my", 0.9))
            if words in text
        ]
        yield CauseAnnotation(dialogue.id, last, (0, last), (Span(0, 0, 2, 0.99), *spans), emotion="sad")


@pytest.mark.parametrize("talk", [Dialogue.of(TEXT), Dialogue.of("Hello.", "Hi!", TEXT)])
def test_targets_are_the_content_words_of_cause_spans(listener, talk):
    own = five_steps(listener, components={"causes": FakeSpans()}, settings={"explain": {"targets": "spans"}})
    why = own.respond(talk, explain=True)
    assert [span.of(why.analysis.dialogue.turns) for span in why.analysis.targets] == [
        "lost",
        "grandmother",
    ]  # the better span first
    assert {span.turn for span in why.analysis.targets} == {len(talk.turns) - 1} and why.analysis.by.get(
        "targets", ""
    ) == "fake causes"
    most = {"explain": {"targets": "spans", "most": 1}}
    why = five_steps(listener, components={"causes": FakeSpans()}, settings=most).respond(talk, explain=True)
    assert [span.of(why.analysis.dialogue.turns) for span in why.analysis.targets] == ["lost"]


def test_without_a_span_model_the_step_says_what_to_do(listener):
    why = five_steps(listener, settings={"explain": {"targets": "spans"}}).respond(TEXT, explain=True)
    assert why.analysis.targets == () and "empatheia models train causes" in why.analysis.missing["explain"]
    assert "`explain.model` in the listener's YAML file" in why.analysis.missing["explain"]
    assert "--model-for" not in " ".join(why.analysis.missing.values())


def test_words_of_score_0_are_no_targets(listener):
    class OneWord(FakeWords):
        def records(self, dialogue):
            for own in super().records(dialogue):
                words = [Span(w.turn, w.start, w.end, 0.8 if w.end - w.start == 11 else 0.0) for w in own.words]
                yield WordScores(own.turn, own.emotion, tuple(words))

    why = five_steps(listener, components={"words": OneWord()}).respond(TEXT, explain=True)
    assert [span.of(why.analysis.dialogue.turns) for span in why.analysis.targets] == ["grandmother"]


def test_masked_distractors_exchange_the_target_words(listener, tmp_path, monkeypatch):
    """By folder, as the settings name it; another kind that the caller asks for does not get its model."""
    from empatheia_research.decoding import masked_distractors
    from empatheia_research.decoding.turn_pool import TurnPool
    from empatheia_research.voices import contrast

    pool = TurnPool.of([*tiny_focus.TURNS, *(f"a {word}" for word in tiny_focus.WORDS.words)])
    monkeypatch.setattr(masked_distractors, "turn_pool", lambda: pool)
    monkeypatch.setattr(contrast, "turn_pool", lambda _: pool)
    model, tokenizer = tiny_focus.masked_model()
    for part in (model, tokenizer):
        part.save_pretrained(tmp_path / "masked")
    focus = {"distractors": "masked", "model": str(tmp_path / "masked"), "seed": 3}
    own = five_steps(listener, settings={"express": {"focus": focus}}, distractors={})
    text = "My dog ate the cake for the party."
    why = own.respond(text, focus="dog,cake", explain=True)
    assert why.distractors.startswith("masked (masked, ") and "seed 3" in why.distractors
    assert len(set(why.worlds)) == 3 and why.worlds[0] == text
    for world in why.worlds[1:]:
        changed = {old for old, new in zip(text[:-1].split(), world[:-1].split(), strict=True) if old != new}
        assert changed == {"dog", "cake"}
    made = MaskedDistractors(model, tokenizer, seed=3).make([targets_of(own.steps.understand(
        [prepare(text)], Steering(focus="dog,cake"))[0])])  # fmt: skip
    assert made[0].texts == why.worlds
    random = own.respond(text, focus="dog", distractors="random", explain=True)
    assert random.distractors.startswith("random") and set(random.worlds[1:]) <= set(pool.texts)
    why = own.respond("It is.", focus="auto", explain=True)
    assert why.worlds == () and "no target word" in why.analysis.missing["focus"]


@pytest.mark.parametrize("distractors", ["auto", "random"])
def test_a_model_that_no_distractor_reads_is_an_error(distractors):
    with pytest.raises(ConfigError, match="model goes with `gee` and `masked`"):
        FocusedListener({"express": {"focus": {"distractors": distractors, "model": "somewhere"}}})
    assert Steering(distractors="gee").focused(FocusSettings(distractors="masked", model="m")).model is None
    assert Steering(distractors="masked").focused(FocusSettings(distractors="masked", model="m")).model == "m"


# -- sampling and memory -------------------------------------------------------------------------------------


def test_samples_are_drawn_as_the_responder_draws_them(listener):
    """``n`` samples have the seeds from the first on, alone and in a list alike; focused ones the same noise."""
    way = {"strategy": "sample", "seed": 5, "max_new_tokens": 8}
    own = five_steps(listener, settings={"express": {"decoding": [{**way, "n": 3}]}})
    plain = [listener.respond(TEXT, strategy="sample", seed=5 + i, max_new_tokens=8).text for i in range(3)]
    why = own.respond(TEXT, focus="off", explain=True)
    assert {(c.text, c.decoding["seed"]) for c in why.candidates} == {(plain[i], 5 + i) for i in range(3)}
    assert len(set(plain)) == 3
    both = [own.respond(item, explain=True) for item in (TEXT, TALK)]
    together = [reply for reply in own.respond([TEXT, TALK], explain=True)]
    for alone, among in zip(both, together, strict=True):
        assert [(c.text, c.decoding) for c in alone.candidates] == [(c.text, c.decoding) for c in among.candidates]
    focused = {c.text for c in both[0].candidates if "focus" in c.decoding}
    assert focused and not focused & set(plain)
    nothing = own.respond(TEXT, focus="grandmother", alpha=0, explain=True)
    assert {c.text for c in nothing.candidates} == set(plain)


TURNS = Dialogue.of("One.", "Two.", "Three.", "Four.", "Five.", id="filed")


@pytest.mark.parametrize(
    ("history", "newest", "read", "id"),
    [
        ("all", 1, "One. Two. Three. Four. Five.", "filed"),
        ("turns", 9, "One. Two. Three. Four. Five.", "filed"),
        ("turns", 4, "Two. Three. Four. Five.", ""),
        ("turns", 1, "Five.", ""),
        ("speaker_turns", 9, "One. Three. Five.", ""),
        ("speaker_turns", 2, "Three. Five.", ""),
    ],
)
def test_what_responders_read_of_a_conversation(listener, history, newest, read, id):
    cut = read_by_responders(TURNS, MemorySettings(history=history, newest=newest))
    assert " ".join(turn.text for turn in cut.turns) == read and cut.turns[-1] == TURNS.turns[-1]
    assert cut.id == id  # what is filed under an id is of the whole conversation
    own = five_steps(listener, settings={"memory": {"history": history, "newest": newest}})
    settings = {"decoding": Decoding(max_new_tokens=8), "focus": "off"}
    assert own.respond(TURNS, **settings).text == listener.respond(cut, max_new_tokens=8).text
    focused = own.respond(TURNS, focus="auto", explain=True)
    assert focused.worlds[0] == "Five." and {span.turn for span in focused.analysis.targets} <= {4}
