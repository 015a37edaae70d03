"""Steps and responders behind an endpoint, local language models, and all of them in one listener."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from empatheia.errors import ConfigError, DecodingError, EndpointError
from empatheia.listener import FocusedListener
from empatheia.listener.steps.served import SERVED, served_component
from empatheia.listener.steps.steering import Steering
from empatheia.records.dialogue import Dialogue
from empatheia.resources.chat_endpoint import ChatEndpoint
from empatheia.taxonomy import EMOTIONS
from empatheia.text.inputs import prepare
from empatheia_research.decoding.distractors import GivenDistractors, RandomDistractors
from empatheia_research.decoding.turn_pool import TurnPool
from empatheia_research.voices.contrast import targets_of
from empatheia_research.voices.language_models import LocalLanguageListener
from empatheia_research.voices.local import in_worlds
from tiny_language_models import make_folder

sys.path.insert(0, str(Path(__file__).parents[1] / "judging"))
from chat_server import ChatServer

TALK = Dialogue.of("We moved to a new town.", "Oh no!", "I lost my grandmother last week.")
POOL = {"random": RandomDistractors(TurnPool.of(["We lost the game.", "My car broke down.", "I am proud."]))}
SHORT = {"instruction": "Listen."}
GOOD = {
    "emotion": '{"probabilities": {"Sad": 0.6, "lonely": 0.2}}',
    "words": 'Sure: {"emotion": "sad", "words": ["grandmother", "lost", "my"]}',
    "inferences": '{"xReact": ["very sad", " "], "xWant": ["to be held", "to rest", "to talk", "to sleep"]}',
    "reaction": '{"probabilities": {"consoling": 0.75, "questioning": 0.25}}',
}
MARKS = {
    "emotion": "does the speaker feel?",
    "words": "single words",
    "inferences": "plausibly",
    "reaction": "good reply",
}


def answer(body):
    asked = body["messages"][1]["content"] if len(body["messages"]) > 1 else ""
    return next((GOOD[part] for part, mark in MARKS.items() if mark in asked), "I hear you, that is hard.")


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch, tmp_path):
    monkeypatch.setenv("EMPATHEIA_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("EMPATHEIA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("EMPATHEIA_OFFLINE", "1")
    monkeypatch.delenv("EMPATHEIA_API_KEY", raising=False)


def test_every_step_and_the_responder_can_be_served(listener, tmp_path):
    with ChatServer(answer) as server:
        place = f"{{llm: big, endpoint: '{server.url}'}}"
        (tmp_path / "far.yaml").write_text(
            f"perceive: {place}\nexplain: {place}\nproject: {place}\nreact: {place}\n"
            f"express:\n  responders: [{place}]\n  decoding: [{{strategy: greedy}}, {{strategy: beam}}]\n"
        )
        own = FocusedListener.load(tmp_path / "far.yaml", reasoner=listener)
        reply = own.respond(TALK, explain=True)
        n_requests = len(server.requests)
        own.respond(TALK)
        assert len(server.requests) == n_requests + 1  # what was found is known, the reply is asked anew
        assert own.usage is not None and own.usage.answers == own.usage.tries == len(server.requests)
        assert own.usage.prompt_tokens > 0 and own.usage.cost is None
    assert FocusedListener({"express": {"decoding": {"strategy": "greedy"}}}, voices=[listener]).usage is None
    why = reply
    assert reply.text == "I hear you, that is hard." and own.host in server.url
    assert why.analysis.newest.emotions["sad"] == pytest.approx(0.75) and why.analysis.by["emotion"] == "big"
    assert [span.of(why.analysis.dialogue.turns) for span in why.analysis.targets] == [
        "grandmother",
        "lost",
    ] and why.analysis.by["targets"] == "big"
    told = {record.relation: list(record.tails) for record in why.analysis.newest.inferences}
    assert told["xReact"] == ["very sad"] and told["xWant"] == ["to be held", "to rest", "to talk"]
    assert (why.analysis.newest.reaction.label, why.analysis.newest.reaction.probabilities["consoling"]) == (
        "consoling",
        0.75,
    )
    assert "it writes in 1 of the 2 ways" in why.analysis.missing["ways of big"]
    assert "gives no probabilities" in why.analysis.missing["focus of big"] + why.analysis.missing["term likelihood"]
    system = next(body["messages"][0]["content"] for body in server.requests if len(body["messages"]) > 2)
    assert "feels sad" in system and '"grandmother"' in system and "consoling" in system
    assert "feels very sad; wants now to be held, to rest, to talk" in system
    with pytest.raises(DecodingError, match="focus needs probabilities, and 'big' gives none"):
        own.respond(TALK, focus="grandmother")


@pytest.mark.parametrize("part", sorted(SERVED))
def test_an_answer_that_cannot_be_read_is_asked_for_once_more(part):
    said = iter(["I would rather not say.", GOOD[part]])
    with ChatServer(lambda body: next(said)) as server:
        component = served_component(part, "big", server.url)
        records = component.annotate([Dialogue.of("I lost my grandmother last week.")])[0]
        assert records and all(record.turn == 0 for record in records) and component.part == part
        assert len(server.requests) == component.usage.answers == 2  # the one that could not be read took tokens, too
        assert "it holds no JSON object" in server.requests[1]["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("part", "said", "reason"),
    [
        ("emotion", "no", "no JSON object"),
        ("emotion", '{"probabilities": {"blue": 1}}', "'blue' is none of the labels"),
        ("emotion", '{"probabilities": {"sad": 7}}', "must be a number from 0 to 1"),
        ("emotion", '{"probabilities": {"sad": 0}}', "all probabilities are 0"),
        ("emotion", '{"probabilities": {"consoling": 1}}', "none of the labels"),
        ("words", '{"emotion": "sad", "words": ["cat"]}', "'cat' is not a word of the last turn"),
        ("words", '{"emotion": "sad", "words": "lost"}', "must be a list of words"),
        ("words", '{"words": ["lost"]}', "'None' is none of the labels"),
        ("inferences", '{"xFoo": ["sad"]}', "'xFoo' is none of the relations"),
        ("inferences", '{"xReact": "sad"}', "must be a list"),
        ("reaction", "[1]", "no JSON object"),
    ],
)
def test_twice_unreadable_is_an_error(part, said, reason):
    with ChatServer(lambda body: said) as server:
        component = SERVED[part](ChatEndpoint("big", server.url))
        with pytest.raises(EndpointError, match=f"gave no usable answer for '{part}' in 2 tries.*{reason}"):
            component.annotate([TALK])


def test_no_gold_label_and_no_later_turn_is_sent():
    with ChatServer(answer) as server:
        labelled = Dialogue("x", TALK.turns, emotion="furious", situation="My cat ran away.")
        rows = served_component("emotion", "big", server.url).annotate([labelled, Dialogue.of("Hi.")])
    sent = json.dumps(server.requests)
    assert "furious: " not in sent and "cat ran" not in sent
    assert [len(row) for row in rows] == [2, 1] and set(rows[0][0].probabilities) == set(EMOTIONS)
    first = next(b for b in server.requests if "We moved" in json.dumps(b) and "grandmother" not in json.dumps(b))
    assert "Oh no!" not in json.dumps(first)


def test_other_parts_have_no_served_form():
    with pytest.raises(ConfigError, match="no endpoint answers part 'mechanisms'"):
        served_component("mechanisms", "big", "http://localhost:1/v1")


@pytest.mark.parametrize("kind", ["llama", "t5"])
def test_a_local_language_model_is_focused_and_scores(listener, tmp_path, kind):
    """Beside our responder, alone and in a list alike; without rationality it is the model itself."""
    lm = LocalLanguageListener.of_model(make_folder(tmp_path / kind, kind, None), wording=SHORT)
    settings = {"express": {"decoding": [{"max_new_tokens": 6}, {"strategy": "sample", "n": 2, "max_new_tokens": 6}]}}
    own = FocusedListener({**settings}, voices=[lm, listener], reasoner=listener, distractors=POOL)
    items = ["I lost my grandmother last week.", TALK]
    together = own.respond(items, focus="grandmother", distractors="random", explain=True)
    for item, reply in zip(items, together, strict=True):
        alone = own.respond(item, focus="grandmother", distractors="random", explain=True)
        assert {c.responder for c in alone.candidates} == {lm.name, "tiny"}
        assert [c.text for c in alone.candidates] == [c.text for c in reply.candidates]
        assert all("focus" in c.decoding for c in alone.candidates)
        spoken = [c for c in alone.candidates if c.text]
        assert all(c.terms["likelihood"] < 0 and c.terms["listener"] is not None for c in spoken)
    told = FocusedListener(voices=[lm], reasoner=listener, distractors=POOL)
    told.voices[0].shown = ()
    plain = lm.respond(items[0], max_new_tokens=6).text
    way = {"strategy": "greedy", "max_new_tokens": 6}
    assert told.respond(items[0], focus="lost", alpha=0, distractors="random", **way).text == plain


def test_a_language_model_is_told_what_the_steps_found_and_no_true_word_in_another_world(listener, tmp_path):
    lm = LocalLanguageListener.of_model(make_folder(tmp_path / "llama", "llama", None), wording=SHORT)
    own = FocusedListener(voices=[lm], reasoner=listener)
    (found,) = own.steps.understand([prepare("My dog ran away.")], Steering(focus="dog", emotion="sad"))
    contrast = GivenDistractors(words={"dog": ["cat", "cow"]}).make([targets_of(found)])[0]
    asked = own.expression._request(found, contrast)
    texts = [own.voices[0].reader.decode(own.voices[0]._item(one).prompt) for one in in_worlds(asked)]
    assert ["dog" in text for text in texts] == [True, False, False]
    assert all("feels sad" in text for text in texts) and '"cow"' in texts[2]
    assert all(text.startswith("Listen.") for text in texts)
