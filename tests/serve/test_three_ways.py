"""Python, the command line and HTTP say the same, to the last digit."""

from __future__ import annotations

import json

import pytest
from loopback import DOG, THREE_TURNS

import empatheia
from empatheia.listener import Listener, Steering
from empatheia.listener.steps.ranking import Ranker
from empatheia_research.corpora.loading import sample_root

TEXTS = ["I finally passed my driving test after three tries!", "My grandmother died last week.", "ok", "😀 we won!!"]


@pytest.mark.parametrize("text", TEXTS)
def test_an_analysis(client, cli, text):
    over_http = client.post("/v1/analyze", json={"input": text}).json()
    assert over_http["data"][0]["understanding"] == empatheia.analyze(text).to_dict()
    printed = cli("analyze", "--json", "--model", over_http["model"], text)
    assert json.loads(printed.out) == over_http["data"][0]["understanding"]


def test_a_conversation_and_a_list(client):
    turns = [one["content"] for one in THREE_TURNS]
    expected = empatheia.analyze(empatheia.Dialogue.of(*turns)).to_dict()
    assert client.post("/v1/analyze", json={"input": THREE_TURNS}).json()["data"][0]["understanding"] == expected
    listed = client.post("/v1/analyze", json={"input": [THREE_TURNS, *TEXTS, "", [DOG[0], THREE_TURNS[1]]]}).json()
    together = empatheia.analyze([empatheia.Dialogue.of(*turns), *TEXTS])
    assert [one["understanding"] for one in listed["data"][:-2]] == [one.to_dict() for one in together]
    assert [one["error"]["code"] for one in listed["data"][-2:]] == ["invalid_value", "ends_with_assistant"]


def test_another_model_analyses(client, tiny_model):
    found = client.post("/v1/analyze", json={"input": TEXTS[1], "model": "tiny"}).json()
    assert found["data"][0]["understanding"] == Listener.load(tiny_model).analyze(TEXTS[1]).to_dict()


def test_a_reply(client, cli):
    fields = {"messages": [{"role": "user", "content": TEXTS[1]}], "empathy": {"explain": True}}
    told = client.post("/v1/chat/completions", json=fields).json()
    printed = json.loads(cli("respond", "--json", "--explain", TEXTS[1]).out)
    assert printed["reply"] == told["choices"][0]["message"]["content"]
    assert printed["understanding"]["emotions"] == told["empathy"]["emotions"]
    assert printed["explanation"]["candidates"] == told["empathy"]["candidates"]
    assert printed["explanation"]["weights"] == told["empathy"]["weights"]


@pytest.fixture(scope="module")
def ranked(client):
    candidates = ["Great!", "Oh no, where did you lose your dog?", "great!"]
    fields = {"messages": DOG, "candidates": candidates, "empathy": {"distractors": "random"}}
    return candidates, client.post("/v1/rank", json=fields).json()


def test_a_ranking(ranked):
    candidates, answer = ranked
    why = Ranker.load().rank(DOG[0]["content"], candidates, Steering(distractors="random"))
    assert [(one["text"], one["score"]) for one in answer["data"]] == [(one.text, one.score) for one in why.candidates]
    assert [one["terms"] for one in answer["data"]] == [dict(one.terms) for one in why.candidates]
    assert answer["weights"] == dict(why.weights)


def test_a_ranking_is_by_every_term_and_names_the_places(ranked):
    _, answer = ranked
    assert [one["index"] for one in answer["data"]] == [1, 0, 2]
    for term in ("likelihood", "listener", "coverage", "diversity", "length"):
        assert all(one["terms"][term] is not None for one in answer["data"])
    weighed = answer["data"][0]["terms"].items()
    total = sum(answer["weights"][name] * value for name, value in weighed if value is not None)
    assert answer["data"][0]["score"] == pytest.approx(total)


@pytest.mark.parametrize("name", ["kemp.txt", "cem.txt"])
def test_scores_of_a_file(client, cli, name):
    path = sample_root() / "replies" / name
    profile = name.partition(".")[0]
    printed = json.loads(cli("score", str(path), "--profile", profile, "--bootstrap", "50", "--json").out)
    fields = {"content": path.read_text(encoding="utf-8"), "profile": profile, "bootstrap": 50}
    answer = client.post("/v1/score", json=fields).json()
    for key in ("format", "profile", "reported", "notes", "systems"):
        assert answer[key] == printed[key]


def test_scores_of_lists(client, cli, tmp_path):
    replies, references = ["I am so sorry.", "Great news!"], ["I am sorry to hear that.", "That is great news!"]
    (tmp_path / "hyp.txt").write_text("\n".join(replies) + "\n")
    (tmp_path / "ref.txt").write_text("\n".join(references) + "\n")
    where = ["--hyp", str(tmp_path / "hyp.txt"), "--ref", str(tmp_path / "ref.txt")]
    printed = json.loads(cli("score", *where, "--bootstrap", "0", "--json").out)["systems"][0]
    fields = {"replies": replies, "references": references, "bootstrap": 0}
    (answer,) = client.post("/v1/score", json=fields).json()["systems"]
    assert answer["scores"] == printed["scores"]


@pytest.mark.parametrize(
    ("route", "fields", "param"),
    [
        ("analyze", {"input": ""}, None),
        ("analyze", {"input": []}, "input"),
        ("analyze", {"input": 5}, "input"),
        ("analyze", {"input": [5]}, None),
        ("analyze", {"input": [DOG[0], THREE_TURNS[1]]}, None),
        ("rank", {"messages": DOG, "candidates": []}, "candidates"),
        ("rank", {"messages": DOG, "candidates": ["a", " "]}, "candidates[1]"),
        ("rank", {"messages": DOG, "candidates": "a"}, "candidates"),
        ("rank", {"messages": DOG, "candidates": ["a"], "empathy": {"emotion": "x"}}, "empathy"),
        ("score", {}, "content"),
        ("score", {"content": "a", "replies": ["a"]}, "content"),
        ("score", {"content": ""}, None),
        ("score", {"content": "{}"}, None),
        ("score", {"replies": []}, "replies"),
        ("score", {"replies": ["a"], "references": ["a", "b"]}, "references"),
        ("score", {"replies": ["a"], "bootstrap": 10**9}, "bootstrap"),
        ("score", {"replies": ["a"], "bootstrap": 1}, "bootstrap"),
        ("score", {"replies": ["a"], "metrics": ["nope"]}, None),
        ("score", {"replies": ["a"], "profile": "nope"}, None),
        ("score", {"replies": ["a"], "words": "nope"}, None),
        ("score", {"content": "a", "format": "../../etc"}, None),
    ],
)
def test_what_cannot_be_analysed(client, route, fields, param):
    answer = client.post(f"/v1/{route}", json=fields)
    assert answer.status_code == 400, answer.text
    assert param is None or answer.json()["error"]["param"] == param
    assert "/tmp" not in answer.text
