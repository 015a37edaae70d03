"""Language models in the listener's place: served and local, zero-shot and shown our analysis, in conversation."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from empatheia.errors import DataError, DecodingError, EndpointError, MissingResourceError
from empatheia.listener import LanguageListener, Listener
from empatheia.records.dialogue import Dialogue, Example
from empatheia.resources.chat_endpoint import Prices
from empatheia.taxonomy import EMOTIONS
from empatheia.text.prompts import Wording
from empatheia_research.voices.hints import Conditioner
from empatheia_research.voices.language_models import LocalLanguageListener
from tiny_language_models import make_folder

sys.path.insert(0, str(Path(__file__).parents[1] / "judging"))
from chat_server import ChatServer

TEXTS = ["I lost my grandmother last week.", "I am very proud of my daughter!", "The dog ate my dinner."]
SHORT = {"instruction": "Listen."}


@pytest.fixture
def server(monkeypatch):
    monkeypatch.delenv("EMPATHEIA_API_KEY", raising=False)
    with ChatServer(lambda body: f"Reply {len(body['messages'])}") as running:
        yield running


@pytest.fixture(scope="module")
def local(tmp_path_factory) -> Path:
    return make_folder(tmp_path_factory.mktemp("llm") / "tiny-llama")


@pytest.fixture(scope="module")
def analyst(tiny_model, tmp_path_factory) -> Path:
    """The tiny model with a threshold that some words of the first text reach and others do not."""
    folder = Path(shutil.copytree(tiny_model, tmp_path_factory.mktemp("analyst") / "tiny"))
    scores = sorted(word.score for word in Listener.load(folder).analyze(TEXTS[0]).newest.words)
    record = json.loads((folder / "empatheia.json").read_text())
    (folder / "empatheia.json").write_text(json.dumps(record | {"cause_threshold": scores[len(scores) // 2]}))
    return folder


def test_a_served_model_answers_zero_shot(server):
    listener = LanguageListener.of_endpoint("llm", server.url, prices=Prices(1.0, 1.0))
    reply = listener.respond(Dialogue.of("Hi.", "Hello.", "I am sad.", id="talk"), max_new_tokens=9)
    assert (reply.text, reply.model) == ("Reply 4", "llm") and reply.decoding["usage"]["cost"] == pytest.approx(1.1e-4)
    assert [m["role"] for m in server.requests[0]["messages"]] == ["system", "user", "assistant", "user"]
    assert server.requests[0]["messages"][0]["content"] == Wording().instruction
    assert server.requests[0]["max_tokens"] == 9
    assert any("nothing was analysed" in reason for reason in reply.analysis.unsure)
    many = listener.respond(TEXTS, strategy="sample", temperature=0.5, seed=3)
    assert len(many) == 3 and listener.usage.answers == 4 and listener.usage.cost == pytest.approx(4.4e-4)
    assert server.requests[-1]["temperature"] == 0.5 and server.requests[-1]["seed"] == 3
    assert listener.usage_by_conversation["talk"].answers == 1
    json.dumps(reply.to_dict())


def test_a_served_model_is_shown_our_analysis_and_no_gold_label(server, analyst):
    listener = Listener.load(analyst)
    conditioned = LanguageListener.of_endpoint("llm", server.url, shown="emotion,causes", analyst=listener)
    labelled = Dialogue("x", Dialogue.of(TEXTS[0]).turns, emotion="furious", situation="My cat ran away.")
    reply = conditioned.respond(labelled)
    found = listener.analyze(TEXTS[0])
    system = server.requests[0]["messages"][0]["content"]
    assert f"feels {found.newest.emotion.label}." in system and "furious" not in json.dumps(server.requests)
    assert found.newest.causes and all(cause.of(found.dialogue.turns) in system for cause in found.newest.causes[:5])
    assert reply.analysis.turns == found.turns and reply.decoding["shown"]["emotion"] == found.newest.emotion.label
    only = LanguageListener.of_endpoint("llm", server.url, shown=["emotion"], analyst=listener)
    only.respond(TEXTS[0])
    assert "caused" not in server.requests[1]["messages"][0]["content"]
    assert only.analyze(TEXTS[0]) == found


def test_the_reply_s_intent_needs_its_model_and_says_so(server, listener, monkeypatch, tmp_path):
    monkeypatch.setenv("EMPATHEIA_MODELS", str(tmp_path))
    monkeypatch.setenv("EMPATHEIA_CACHE", str(tmp_path))
    asked = LanguageListener.of_endpoint("llm", server.url, shown="all", analyst=listener)
    with pytest.raises(MissingResourceError, match="empatheia models train intent,reaction"):
        asked.respond("Hi.")
    assert server.requests == []


def test_training_and_answering_show_the_same(analyst):
    listener = Listener.load(analyst)
    examples = [Example(Dialogue.of(*texts).turns, None) for texts in (TEXTS[:1], TEXTS, TEXTS[1:2])]
    conditioner = Conditioner(("emotion", "causes"), analyst=analyst)
    asked = LanguageListener.__new__(LanguageListener)
    asked.shown = ("emotion", "causes")
    found = [asked._hints(listener.analyze(Dialogue("", e.context)), "") for e in examples]
    assert conditioner.hints(examples) == found and all(hints.emotion and hints.causes for hints in found)
    labelled = [Example(e.context, "A gold reply.", emotion="furious", situation="s") for e in examples]
    assert conditioner.hints(labelled) == found
    assert conditioner.names == {"emotion": "tiny", "causes": "tiny"}


def test_a_conversation_streams_and_remembers(server, local):
    for asked in (
        LanguageListener.of_endpoint("llm", server.url),
        LocalLanguageListener.of_model(local, wording=SHORT),
    ):
        talk = asked.converse(max_new_tokens=12)
        said = talk.stream("I am sad.")
        text = "".join(said)
        assert said.reply is not None and said.reply.text == text
        second = talk.say("He was old.")
        assert len(talk.dialogue.turns) == (4 if text else 3)
        assert second.model == asked.name
    assert [m["role"] for m in server.requests[1]["messages"]] == ["system", "user", "assistant", "user"]
    assert server.requests[1]["messages"][2]["content"] == "Reply 2"


@pytest.mark.parametrize("kind", ["llama", "t5"])
def test_a_local_model_answers_alike_alone_in_a_list_and_streamed(tmp_path, kind):
    asked = LocalLanguageListener.of_model(make_folder(tmp_path / kind, kind, None), wording=SHORT)
    for settings in (
        {"max_new_tokens": 10},
        {"strategy": "beam", "num_beams": 3, "max_new_tokens": 8},
        {"strategy": "sample", "seed": 4, "max_new_tokens": 10},
    ):
        together = [reply.text for reply in asked.respond(TEXTS, **settings)]
        assert together == [asked.respond(text, **settings).text for text in TEXTS]
        stream = asked.stream(TEXTS[0], **settings)
        assert "".join(stream) == together[0] == stream.reply.text
    other = [asked.respond(TEXTS[0], strategy="sample", seed=seed, max_new_tokens=10).text for seed in range(4)]
    assert len(set(other)) > 1
    assert asked.manifest.licence == f"that of {kind}" and asked.usage is None
    assert TEXTS[0] in asked.prompt(TEXTS[0]) and "Listen." in asked.prompt(TEXTS[0])


def test_a_local_model_does_not_go_round_in_circles_unless_it_is_let(server, local):
    from empatheia.listener.steps.settings import DecodingSettings

    asked = LocalLanguageListener.of_model(local, wording=SHORT)
    assert asked.respond("I am sad.", max_new_tokens=8).decoding["no_repeat_ngram_size"] == 4
    assert asked.respond("I am sad.", max_new_tokens=8, no_repeat_ngram_size=2).decoding["no_repeat_ngram_size"] == 2
    assert "no_repeat_ngram_size" not in asked.respond("Hi.", max_new_tokens=8, no_repeat_ngram_size=0).decoding
    ways = [DecodingSettings(), DecodingSettings(no_repeat_ngram_size=0)]  # pyright: ignore[reportCallIssue]
    assert [way.no_repeat_ngram_size for way in asked.as_voice().ways(ways)] == [4, 0]
    served = LanguageListener.of_endpoint("llm", server.url)
    served.respond("I am sad.", strategy="sample", top_p=0.5)
    assert server.requests[-1]["top_p"] == 0.5 and "no_repeat_ngram_size" not in server.requests[-1]
    with pytest.raises(DecodingError, match="takes no no_repeat_ngram_size and no repetition_penalty; accepted"):
        served.respond("I am sad.", no_repeat_ngram_size=3)
    (way,) = served.as_voice().ways([DecodingSettings(no_repeat_ngram_size=3)])  # pyright: ignore[reportCallIssue]
    assert way.strategy == "greedy"


def test_what_cannot_be_done_is_said(server, local):
    asked = LanguageListener.of_endpoint("llm", server.url, retries=0)
    with pytest.raises(DecodingError, match="a model behind an endpoint accepts greedy and sample"):
        asked.respond("Hi.", strategy="beam")
    with pytest.raises(DecodingError, match="takes no label"):
        LocalLanguageListener.of_model(local).respond("Hi.", label="sad")
    with pytest.raises(DataError, match="ends with a listener turn"):
        asked.respond(Dialogue.of("Hi.", "Hello."))
    assert server.requests == []
    server.failures = [401]
    with pytest.raises(EndpointError, match="Set the key in EMPATHEIA_API_KEY"):
        asked.respond("Hi.")
    server.failures = [401]
    stream = asked.stream("Hi.")
    with pytest.raises(EndpointError, match="refused with 401"):
        list(stream)
    with pytest.raises(MissingResourceError):
        LocalLanguageListener.of_model("./nowhere")


def test_a_zero_shot_folder_is_loaded_by_any_listener(tmp_path, server, local):
    from empatheia_research.responders.language_model import LanguageModel, LanguageModelConfig, load_tokenizer

    manifest = {"format": 1, "system": "language_model", "name": "mine", "weights": "", "emotions": list(EMOTIONS)}
    served = tmp_path / "served"
    LanguageModel(LanguageModelConfig(form="endpoint", llm="llm", endpoint=server.url)).save_pretrained(served)
    (served / "empatheia.json").write_text(json.dumps(manifest))
    listener = Listener.load(served)
    assert isinstance(listener, LanguageListener) and listener.respond("Hi.").text == "Reply 2"
    place = tmp_path / "local"
    LanguageModel.build(LanguageModelConfig(base=str(local), wording=SHORT)).save_pretrained(place)
    load_tokenizer(local).save_pretrained(place)
    (place / "empatheia.json").write_text(json.dumps(manifest))
    same = LocalLanguageListener.of_model(local, wording=SHORT).respond(TEXTS[0], max_new_tokens=8).text
    assert Listener.load(place).respond(TEXTS[0], max_new_tokens=8).text == same
