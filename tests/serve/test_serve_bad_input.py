"""Whatever is sent, the answer is in OpenAI's form, never a 500 and never a stack trace."""

from __future__ import annotations

import json
import logging

import pytest
from loopback import DOG

CHAT = "/v1/chat/completions"
JSON = {"content-type": "application/json"}


def fault(answer, status: int, param: str | None = None, code: str | None = None) -> str:
    """The message of an error that is as it should be."""
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert "Traceback" not in answer.text
    if param is not None:
        assert error["param"] == param
    if code is not None:
        assert error["code"] == code
    return error["message"]


@pytest.mark.parametrize(
    "body", ["", "{", "nonsense", "[" * 5000, '{"messages": ' + "9" * 9000 + "}", "\x00", "\ud800"]
)
@pytest.mark.parametrize("route", [CHAT, "/v1/responses", "/v1/analyze", "/v1/rank", "/v1/score"])
def test_no_json(client, route, body):
    raw = body.encode("utf-8", "surrogatepass")
    assert client.post(route, content=raw, headers=JSON).status_code in (400, 422)
    fault(client.post(route, content=raw, headers=JSON), 400)


@pytest.mark.parametrize("body", [[], 3, "text", None, True, [DOG]])
@pytest.mark.parametrize("route", [CHAT, "/v1/responses", "/v1/analyze", "/v1/rank", "/v1/score"])
def test_no_object(client, route, body):
    fault(client.post(route, json=body), 400)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": "hello"}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": [3]}, "messages[0]"),
        ({"messages": [{}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": ""}]}, "messages[0]"),
        ({"messages": [{"role": "user", "content": " \n\u200b\x00"}]}, "messages[0]"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": []}]}, "messages[0]"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages"),
        ({"messages": [{"role": "system", "content": "x"}]}, "messages"),
        ({"messages": [*DOG, {"role": "assistant", "content": "x"}]}, "messages[1].role"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            "messages[0]",
        ),
        ({"model": 5}, "model"),
        ({"temperature": -1}, "temperature"),
        ({"temperature": 3}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"temperature": "0.5"}, "temperature"),
        ({"top_p": 2}, "top_p"),
        ({"n": 0}, "n"),
        ({"n": 1000}, "n"),
        ({"n": 1.5}, "n"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": -5}, "max_tokens"),
        ({"stop": ["a"] * 100}, "stop"),
        ({"stop": [""]}, None),
        ({"stream": "yes"}, "stream"),
        ({"seed": "x"}, "seed"),
        ({"tools": {"type": "function"}}, "tools"),
        ({"tools": ["x"]}, "tools[0]"),
        ({"tool_choice": 5}, "tool_choice"),
        ({"response_format": "json"}, "response_format"),
        ({"logit_bias": [1]}, "logit_bias"),
        ({"logit_bias": {"5": "x"}}, "logit_bias.5"),
        ({"user": {}}, "user"),
        ({"frequency_penalty": 3}, "frequency_penalty"),
        ({"logprobs": "yes"}, "logprobs"),
        ({"modalities": "audio"}, "modalities"),
        ({"messages": [{"role": "assistant", "content": None, "tool_calls": "x"}]}, "messages[0].tool_calls"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text"),
        ({"empathy": 5}, None),
        ({"empathy": {"emotion": "saad"}}, "empathy"),
        ({"empathy": {"intent": "5"}}, "empathy"),
        ({"empathy": {"focus": ["zebra"]}}, None),
        ({"empathy": {"focus": [" "]}}, "empathy"),
        ({"empathy": {"alpha": -1}}, "empathy.alpha"),
        ({"empathy": {"worlds": 10**6}}, "empathy.worlds"),
        ({"empathy": {"distractors": "x"}}, "empathy"),
    ],
)
def test_wrong_fields(client, fields, param):
    message = fault(client.post(CHAT, json={"messages": DOG, **fields}), 400, param)
    assert len(message) < 1500


def test_not_a_number_is_none(client):
    for number in ("NaN", "Infinity", "-Infinity", "1e999"):
        raw = f'{{"messages": {json.dumps(DOG)}, "temperature": {number}}}'
        fault(client.post(CHAT, content=raw, headers=JSON), 400, "temperature")


def test_an_unknown_model_names_the_nearest(client):
    message = fault(client.post(CHAT, json={"model": "gao2021-smal", "messages": DOG}), 404, "model", "model_not_found")
    assert "Did you mean 'gao2021-small'?" in message
    for name in ("/etc/passwd", "../../tiny", "x" * 100_000):
        fault(client.post(CHAT, json={"model": name, "messages": DOG}), 404, "model", "model_not_found")


def test_too_much(client):
    assert "1,048,576" in fault(client.post(CHAT, content=b"x" * 10_000_000, headers=JSON), 413)
    many = [{"role": "user", "content": "a"}] * 10_000
    fault(client.post(CHAT, json={"messages": many}), 422, "messages", "too_many_messages")
    fault(client.post(CHAT, json={"messages": [{"role": "user", "content": "a " * 150_000}]}), 422, "messages")
    fault(client.post("/v1/analyze", json={"input": ["a"] * 1000}), 422, "input")
    fault(client.post("/v1/rank", json={"messages": DOG, "candidates": ["a"] * 65}), 422, "candidates")


def test_a_body_without_a_length_is_bounded_too(client):
    def parts():
        for _ in range(64):
            yield b" " * 65_536

    fault(client.post(CHAT, content=parts(), headers=JSON), 413)


def test_a_body_that_is_not_marked_as_json(client):
    assert "Content-Type: application/json" in fault(client.post(CHAT, content=json.dumps({"messages": DOG})), 415)


def test_half_characters_and_nul_are_read_as_blanks(client):
    raw = '{"messages": [{"role": "user", "content": "my \\ud800dog\\u0000 died \\udfff"}]}'
    answer = client.post(CHAT, content=raw, headers=JSON)
    assert answer.status_code == 200
    for span in answer.json()["empathy"]["words"]:
        assert span["text"] == answer.json()["empathy"]["turns"][0]["text"][span["start"] : span["end"]]


def test_markup_comes_back_as_text(client):
    text = "<img src=x onerror=alert(1)> my dog <script>alert(2)</script> died"
    answer = client.post(CHAT, json={"messages": [{"role": "user", "content": text}]})
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.json()["empathy"]["turns"][0]["text"] == text


@pytest.mark.parametrize(
    "place",
    ["/../app.py", "/static/../app.py", "/%2e%2e/app.py", "/..%2fapp.py", "/.//app.py", "/%00", "/index.html.py"],
)
def test_no_path_leads_out_of_the_pages(client, place):
    fault(client.get(place), 404, code="not_found")


def test_a_wrong_method(client):
    fault(client.get(CHAT), 405)
    fault(client.delete("/healthz"), 405)


def test_a_fault_of_ours_is_500_without_a_trace(client, monkeypatch, caplog):
    def broken(*_):
        raise RuntimeError("secret of the speaker")

    service = client.app.state.service
    monkeypatch.setattr(service.shelf, "open", broken)
    with caplog.at_level(logging.ERROR, "empatheia.serve"):
        answer = client.post(CHAT, json={"messages": DOG})
    fault(answer, 500, code="internal_error")
    assert "secret" not in answer.text + caplog.text
    assert answer.headers["x-request-id"] in caplog.text and "RuntimeError" in caplog.text
    assert answer.headers["content-security-policy"]
    streamed = client.post(CHAT, json={"messages": DOG, "stream": True})
    fault(streamed, 500)
    monkeypatch.undo()
    assert client.post(CHAT, json={"messages": DOG}).status_code == 200
