"""Far models that give no answer, several threads at once, long turns: what a listener of five steps says and keeps."""

from __future__ import annotations

import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fake_components import FakeEmotion, FakeIntent, FakeMechanisms, FakeReaction, distribution

from empatheia.errors import ConfigError, DataError, EndpointError
from empatheia.listener import FocusedListener, LanguageListener, Listener
from empatheia.listener.parts import Remembered
from empatheia.listener.reasoner import ReasonerReading
from empatheia.listener.steps.answering import MOST_FAILURES, each_alone
from empatheia.listener.steps.served import SERVED
from empatheia.records.dialogue import Dialogue
from empatheia.records.reply_schema import ReplyRecord
from empatheia.resources.chat_endpoint import ChatEndpoint
from empatheia.taxonomy import EMOTIONS
from empatheia.voices.decoding import Decoding
from empatheia_research.decoding.distractors import GivenDistractors

sys.path.insert(0, str(Path(__file__).parents[1] / "judging"))
from chat_server import ChatServer

TEXT = "I lost my grandmother last week."
TALK = Dialogue.of("We moved to a new town.", "Oh no, I am so sorry to hear that.", "The dog ate my dinner.")
GIVEN = {"given": GivenDistractors(["I am very proud of my daughter.", "My sister passed the exam today."])}
SHORT = {"decoding": [{"max_new_tokens": 6}]}
STEPS = ("perceive", "explain", "project", "react")


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch, tmp_path):
    monkeypatch.setenv("EMPATHEIA_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("EMPATHEIA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("EMPATHEIA_OFFLINE", "1")
    monkeypatch.delenv("EMPATHEIA_API_KEY", raising=False)


def far(url, **limits):
    return {"llm": "big", "endpoint": url, "retries": 0, **limits}


def served(listener, url, **limits):
    return FocusedListener(
        {"express": SHORT, **{step: far(url, **limits) for step in STEPS}},
        voices=[listener],
        reasoner=listener,
        distractors=GIVEN,
    )


@pytest.mark.parametrize("how", ["unreadable", "refused", "late", "nobody"])
def test_a_step_without_an_answer_is_left_out_and_says_why(listener, how):
    told = {
        "unreadable": "no usable answer .* it holds no JSON object",
        "refused": "refused with 401: .* Set the key",
        "late": "no answer within 0.2 s",
        "nobody": "no connection",
    }
    failures = {"unreadable": [], "refused": [401] * 9, "late": [60.0] * 9, "nobody": []}[how]
    with ChatServer(lambda body: "I would rather not say.", failures=failures) as server:
        url = server.url
        if how != "nobody":
            reply = served(listener, url, timeout=0.2 if how == "late" else 30).respond(TEXT, explain=True)
    if how == "nobody":  # the server is gone
        reply = served(listener, url).respond(TEXT, explain=True)
    why = reply
    assert set(STEPS) <= set(why.analysis.missing) and reply.text == why.candidates[0].text
    for step in STEPS:
        assert re.search(told[how], why.analysis.missing[step])
        assert f"step {step} was left out: {why.analysis.missing[step]}" in reply.analysis.unsure
    newest = why.analysis.newest
    assert newest.emotion is newest.reaction is None and why.analysis.targets == newest.inferences == ()
    assert why.analysis.by.get("emotion", "") == why.analysis.by.get("reaction", "") == "" and set(
        why.analysis.prior.values()
    ) == {1 / 32}
    ReplyRecord.model_validate(reply.to_dict())


def test_one_conversation_without_an_answer_costs_the_others_nothing(listener):
    def answer(body):
        asked = body["messages"][1]["content"]
        return "no" if "grandmother" in asked else '{"probabilities": {"proud": 1}}'

    with ChatServer(answer) as server:
        own = FocusedListener(
            {"express": SHORT, "perceive": far(server.url)}, voices=[listener], reasoner=listener, distractors=GIVEN
        )
        items = ["We won the game.", TEXT, "I passed the exam."]
        together = own.respond(items, explain=True)
        alone = [own.respond(item, explain=True) for item in items]
    for one, other in zip(together, alone, strict=True):
        assert one.text == other.text and one.analysis.missing == other.analysis.missing
        assert one.analysis.newest.emotions == other.analysis.newest.emotions
    assert [reply.analysis.newest.emotion is not None for reply in together] == [True, False, True]
    assert ["perceive" in reply.analysis.missing for reply in together] == [False, True, False]


def test_a_responder_without_an_answer_leaves_the_choice_to_the_others(listener):
    def answer(body):
        return "I hear you, that is hard." if "grandmother" in body["messages"][-1]["content"] else ""

    with ChatServer(answer) as server:
        lm = LanguageListener.of_endpoint("big", server.url, retries=0)
        both = FocusedListener({"express": SHORT}, voices=[lm, listener], reasoner=listener, distractors=GIVEN)
        assert {c.responder for c in both.respond(TEXT, explain=True).candidates} == {"big", "tiny"}
        alone = FocusedListener({"express": SHORT}, voices=[lm], reasoner=listener)
        assert alone.respond(TEXT).text == "I hear you, that is hard."
    reply = both.respond(TEXT, explain=True)
    why = reply
    assert any("replies of big are missing" in doubt for doubt in reply.analysis.unsure)
    assert {c.responder for c in why.candidates} == {"tiny"} and "no connection" in why.analysis.missing[
        "replies of big"
    ]
    with pytest.raises(EndpointError, match=r"there is no reply: .*no connection"):
        alone.respond(TEXT)


def test_nobody_is_asked_for_ever():
    asked = []

    def call(items):
        asked.append(list(items))
        raise EndpointError("nobody there")

    assert each_alone(call, list(range(9))) == [(None, "nobody there")] * 9
    assert asked == [list(range(9)), *([i] for i in range(MOST_FAILURES))]
    with pytest.raises(ConfigError):
        each_alone(lambda items: (_ for _ in ()).throw(ConfigError("wrong")), [1, 2])


def test_an_emotion_by_the_caller_spares_the_question(listener):
    with ChatServer(lambda body: "never") as server:
        own = FocusedListener(
            {"express": SHORT, "perceive": far(server.url)}, voices=[listener], reasoner=listener, distractors=GIVEN
        )
        why = own.respond(TALK, emotion="sad", explain=True)
        assert server.requests == [] and (why.analysis.newest.emotion.label, why.analysis.by.get("emotion", "")) == (
            "sad",
            "given",
        )
        assert "perceive" not in why.analysis.missing


def test_served_answers_are_kept_and_bounded(monkeypatch):
    monkeypatch.setattr("empatheia.listener.steps.served.MOST_KEPT", 3)
    with ChatServer(lambda body: '{"probabilities": {"sad": 1}}') as server:
        component = SERVED["emotion"](ChatEndpoint("big", server.url), workers=8)
        talks = [Dialogue.of(f"Text number {i}.") for i in range(40)]
        assert [row[0].label for row in component.annotate(talks)] == ["sad"] * 40
        n = len(server.requests)
        component.annotate(talks[-1:])
        assert n == 40 and len(server.requests) in (40, 41)


# -- threads -------------------------------------------------------------------------------------------------


def test_threads_get_what_they_would_get_alone(listener):
    """Steering, memory of what was read and models stay apart, however the threads take turns."""
    fakes = (FakeEmotion, FakeReaction, FakeIntent, FakeMechanisms)

    def make():
        return FocusedListener(
            {"express": SHORT, "memory": {"carry": 0.5}},
            components={fake.part: fake() for fake in fakes},
            voices=[listener],
            reasoner=listener,
            distractors=GIVEN,
        )

    asked = [(item, {"emotion": e}) for item in (TEXT, TALK, "I am proud of her.") for e in (None, "angry")]
    quiet = make()
    expected = [quiet.respond(item, explain=True, **s).to_dict() for item, s in asked]
    busy = make()
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(6) as pool:
            found = list(pool.map(lambda pair: busy.respond(pair[0], explain=True, **pair[1]).to_dict(), asked * 3))
    finally:
        sys.setswitchinterval(before)
    assert found == expected * 3


def test_while_one_thread_understands_the_others_wait(listener):
    class Watching(FakeEmotion):
        def annotate(self, dialogues, **options):
            other = threading.Thread(target=self.look)
            other.start()
            other.join()
            return super().annotate(dialogues, **options)

        def look(self):
            free.append(own.steps._lock.acquire(blocking=False))
            if free[-1]:
                own.steps._lock.release()

    free: list[bool] = []
    own = FocusedListener(
        {"express": SHORT}, components={"emotion": Watching()}, voices=[listener], reasoner=listener, distractors=GIVEN
    )
    own.respond(TEXT)
    assert free and not any(free)


@pytest.mark.parametrize("make", [Remembered, ReasonerReading])
def test_what_another_thread_forgets_is_still_there(make):
    """The memory is dropped while a second conversation is read, as it is when another thread is done."""

    class Forgetting(FakeEmotion):
        def annotate(self, dialogues, **options):
            if len(self.read) > 0:
                own.forget()
            self.read += dialogues
            return super().annotate(dialogues, **options)

        def analyze(self, dialogues, batch_size):
            return self.annotate(dialogues)

    inner = Forgetting()
    inner.read = []
    own = make(inner)
    ask = own.read if isinstance(own, ReasonerReading) else own.annotate
    talks = [Dialogue.of(TEXT), Dialogue.of("He was old.")]
    (first,) = ask(talks[:1], batch_size=8)
    assert ask(talks, batch_size=8)[0] == first
    assert [talk.turns for talk in inner.read] == [talk.turns for talk in talks]  # each was read once


def test_two_conversations_share_nothing(listener):
    own = FocusedListener({"express": SHORT}, voices=[listener], reasoner=listener, distractors=GIVEN)
    one, other = own.converse(emotion="sad"), own.converse()
    one.say(TEXT)
    one.steering = one.steering.but(intent="consoling", focus="off")
    why = other.say(TEXT)
    assert (
        why.analysis.by["emotion"] == "tiny"
        and why.analysis.newest.reaction is None
        and why.worlds != ()
        and len(other.dialogue.turns) == 2
    )
    assert one.last.analysis.newest.emotion.label == "sad"


# -- the rest ------------------------------------------------------------------------------------------------


def test_what_the_caller_decides_now_beats_the_label_of_the_decoding(listener):
    own = FocusedListener({"express": SHORT}, voices=[listener], reasoner=listener, distractors=GIVEN)
    talk = own.converse(decoding=Decoding(max_new_tokens=6, label="consoling"))
    assert talk.say(TEXT).analysis.newest.reaction.label == "consoling"
    talk.steering = talk.steering.but(intent="questioning")
    assert talk.say("He was old.").analysis.newest.reaction.label == "questioning"


def test_a_word_of_the_part_that_is_not_read_is_named(listener):
    own = FocusedListener({"express": SHORT}, voices=[listener], reasoner=listener, distractors=GIVEN)
    long = "My grandmother died. " + "We moved to a new town and cooked dinner. " * 200
    with pytest.raises(DataError, match=r"'grandmother' occurs only in the first 2,.* characters"):
        own.respond(long, focus="grandmother")
    with pytest.raises(DataError, match="'exam' does not stand in 'My grandmother died"):
        own.respond(long, focus="exam")
    reply = own.respond(long, focus="dinner", explain=True)
    assert {span.of(reply.analysis.dialogue.turns) for span in reply.analysis.targets} == {"dinner"}
    fake = FocusedListener(
        {"express": SHORT}, components={"emotion": FakeEmotion()}, voices=[listener], reasoner=listener,
        distractors=GIVEN,
    )  # fmt: skip
    assert any("only its end was read" in doubt for doubt in fake.respond(long, focus="off").analysis.unsure)


@pytest.mark.parametrize("prior", ["uniform", "L1"])
def test_whoever_ranks_hears_the_reply_whatever_the_speaker_s_prior(listener, prior):
    """With ``uniform`` and ``L1`` the speaker's own listener believes after a reply what it believed before."""
    focused, usual = (
        FocusedListener(
            {"express": {**SHORT, "focus": {"prior": own}}}, voices=[listener], reasoner=listener, distractors=GIVEN
        ).respond(TEXT, focus="auto", explain=True)
        for own in (prior, "L0")
    )
    beliefs = [value for _, value in focused.belief]
    assert len(set(beliefs)) > 1 and focused.candidates[0].decoding["focus"]["prior"] == prior
    plain = FocusedListener(
        {"express": {**SHORT, "focus": {"prior": prior}}}, voices=[listener], reasoner=listener, distractors=GIVEN
    )
    terms = {c.text: c.terms["listener"] for c in plain.respond(TEXT, explain=True).candidates}
    other = FocusedListener({"express": SHORT}, voices=[listener], reasoner=listener, distractors=GIVEN)
    for candidate in other.respond(TEXT, explain=True).candidates:
        if candidate.text in terms:
            assert terms[candidate.text] == candidate.terms["listener"]
    assert usual.belief[0] == focused.belief[0]


def test_belief_shows_the_pieces_as_they_are_read(listener):
    own = FocusedListener({"express": SHORT}, voices=[listener], reasoner=listener, distractors=GIVEN)
    why = own.respond(TEXT, focus="auto", explain=True)
    pieces = [piece for piece, _ in why.belief]
    tokenizer = listener.tokenizer
    said = tokenizer.encode(why.candidates[0].text).ids
    assert pieces[0] == pieces[-1] == "" and len(pieces) == len(said) + 2
    assert [p for p in pieces[1:-1] if p != "[UNK]"] == [tokenizer.decode([i], raw=True) for i in said
                                                         if i != tokenizer.unk_id]  # fmt: skip
    assert all(piece == piece.lower() for piece in pieces if piece != "[UNK]")


def test_a_finished_run_is_a_model(tiny_model, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "checkpoint").symlink_to(tiny_model)
    settings = {"express": {**SHORT, "responders": [str(tmp_path / "run")]}, "reasoner": str(tmp_path / "run")}
    reply = FocusedListener(settings).respond(TEXT, focus="off")
    assert reply.text == Listener.load(tiny_model).respond(TEXT, max_new_tokens=6).text


def test_the_caller_s_emotion_is_no_evidence_for_the_turns_after_it(listener):
    """Carrying is Bayes on the turns alone: what was decided for one reply leaves nothing behind."""
    inner = FakeEmotion()
    own = FocusedListener(
        {"express": SHORT, "memory": {"carry": 1.0}}, components={"emotion": inner}, voices=[listener],
        reasoner=listener, distractors=GIVEN,
    )  # fmt: skip
    why = own.respond(TALK, emotion="sad", explain=True)
    first = distribution(TALK.turns[0].text, EMOTIONS)
    assert why.analysis.prior == pytest.approx(first) and why.analysis.newest.emotions["sad"] == 1.0
    free = own.respond(TALK, explain=True)
    last = distribution(TALK.turns[2].text, EMOTIONS)
    joint = {name: first[name] * last[name] for name in EMOTIONS}
    assert free.analysis.newest.emotions == pytest.approx({name: p / sum(joint.values()) for name, p in joint.items()})
