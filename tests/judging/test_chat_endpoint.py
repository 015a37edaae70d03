"""The client of chat endpoints: what it sends, what it retries, what it refuses, and that the key stays hidden."""

from __future__ import annotations

import json
import socket

import pytest
from chat_server import ChatServer

from empatheia.errors import ConfigError, EndpointError
from empatheia.resources.chat_endpoint import LONGEST_WAIT, ChatEndpoint, Prices, _seconds

HELLO = [{"role": "user", "content": "hello"}]


def endpoint(server: ChatServer, **options) -> tuple[ChatEndpoint, list[float]]:
    waits: list[float] = []
    options = {"api_key": "", "timeout": 5.0, "sleep": waits.append, **options}
    return ChatEndpoint("judge", server.url, **options), waits


def test_what_is_sent_and_what_comes_back():
    with ChatServer(lambda body: "hi") as server:
        client, waits = endpoint(server, api_key="secret-key")
        answer = client.ask(HELLO, max_tokens=7)
    assert (answer.text, answer.finish, answer.model, answer.tries) == ("hi", "stop", "served-model", 1)
    assert (answer.prompt_tokens, answer.completion_tokens) == (100, 10)
    assert server.requests == [{"model": "judge", "messages": HELLO, "temperature": 0, "max_tokens": 7}]
    assert server.headers[0]["path"] == "/v1/chat/completions"
    assert server.headers[0]["Authorization"] == "Bearer secret-key" and waits == []


def test_no_key_sends_no_header():
    with ChatServer(lambda body: "hi") as server:
        endpoint(server)[0].ask(HELLO)
    assert "Authorization" not in server.headers[0]


@pytest.mark.parametrize(
    "failure",
    [
        429,
        500,
        503,
        b"<html>busy</html>",
        b"",
        b'{"choices": []}',
        b"[1]",
        b'{"choices": [{"message": {"content": 3}}]}',
        b'{"choices": [{"message": {"content": "hi"}}], "usage": {"prompt_tokens": 1e999}}',
    ],
)
def test_what_may_pass_is_tried_again(failure):
    with ChatServer(lambda body: "hi", [failure, failure]) as server:
        client, waits = endpoint(server)
        answer = client.ask(HELLO)
    assert (answer.text, answer.tries, len(server.requests)) == ("hi", 3, 3)
    assert 1.0 <= waits[0] <= 1.25 and 2.0 <= waits[1] <= 2.5


def test_retry_after_is_obeyed_within_bounds():
    with ChatServer(
        lambda body: "hi", [(429, {"Retry-After": "7"}, b"{}"), (503, {"Retry-After": "9999"}, b"{}")]
    ) as s:
        client, waits = endpoint(s)
        client.ask(HELLO)
    assert 7 <= waits[0] <= 8.75 and waits[1] == LONGEST_WAIT
    assert _seconds("Wed, 21 Oct 2015 07:28:00 GMT") == 0 and _seconds("soon") is None and _seconds(None) is None


def test_a_silent_server_is_given_up():
    with ChatServer(lambda body: "hi", [1.0, 1.0]) as server:
        client, _ = endpoint(server, timeout=0.1, retries=1)
        with pytest.raises(EndpointError, match=r"no answer in 2 tries; last: no answer within 0.1 s"):
            client.ask(HELLO)


def test_nobody_listens():
    with ChatServer(lambda body: "hi") as server:
        pass
    with pytest.raises(EndpointError, match=r"gave no answer in 1 try; last: no connection"):
        endpoint(server, retries=0)[0].ask(HELLO)


def test_where_nobody_listens_one_further_try_is_enough(caplog):
    """Six silent tries took a minute."""
    with ChatServer(lambda body: "hi") as server:
        pass
    client, waits = endpoint(server)
    told = rf"{client.host} cannot be reached: nobody listens there .*Start the server, .*now {client.base_url}\)"
    with pytest.raises(EndpointError, match=told):
        client.ask(HELLO)
    assert len(waits) == 1 and sum(waits) < 5
    assert next(r.message for r in caplog.records).startswith(f"{client.host}: no connection (")
    assert "try 2 of 6 in 1 s" in caplog.text


def test_an_unknown_host_is_told(monkeypatch):
    def unknown(*_, **__):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    for switch in ("EMPATHEIA_OFFLINE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(switch, raising=False)
    waits: list[float] = []
    client = ChatEndpoint("judge", "http://nowhere.invalid/v1", api_key="", sleep=waits.append)
    with pytest.raises(EndpointError, match=r"nowhere\.invalid cannot be reached: its name is not known"):
        client.ask(HELLO)
    assert len(waits) == 1


@pytest.mark.parametrize(
    ("code", "remedy"), [(400, "failure 400"), (401, "EMPATHEIA_API_KEY"), (403, "--key-env"), (404, "--base-url")]
)
def test_what_cannot_pass_is_not_tried_again(code, remedy):
    with ChatServer(lambda body: "hi", [code]) as server:
        client, waits = endpoint(server)
        with pytest.raises(EndpointError, match=f"refused with {code}.*{remedy}"):
            client.ask(HELLO)
    assert len(server.requests) == 1 and waits == []


def test_a_redirect_is_not_followed():
    with ChatServer(lambda body: "hi") as other, ChatServer(lambda body: "hi") as server:
        server.failures.append((307, {"Location": f"{other.url}/chat/completions"}, b""))
        with pytest.raises(EndpointError, match=r"refused with 307.*redirects"):
            endpoint(server, api_key="secret-key")[0].ask(HELLO)
    assert other.requests == []


@pytest.mark.parametrize("code", [401, 500])
def test_the_key_is_never_shown(code):
    echo = json.dumps({"error": {"message": "wrong key: secret-key"}}).encode()
    with ChatServer(lambda body: "hi", [(code, {}, echo)]) as server:
        client, _ = endpoint(server, api_key="secret-key", retries=0)
        with pytest.raises(EndpointError) as caught:
            client.ask(HELLO)
    assert "secret-key" not in f"{caught.value}{client!r}{vars(client).keys()}" and "(key)" in str(caught.value)


def test_a_key_cut_in_two_is_not_shown_either():
    echo = "x" * 195 + "secret-key"
    for failure in ((400, {}, echo.encode()), (200, {}, f"{echo} is what you sent".encode())):
        with ChatServer(lambda body: "hi", [failure]) as server:
            client, _ = endpoint(server, api_key="secret-key", retries=0)
            with pytest.raises(EndpointError) as caught:
                client.ask(HELLO)
        assert "secr" not in str(caught.value)


def test_a_key_that_comes_back_is_taken_out_of_the_answer():
    with ChatServer(lambda body: "your key is secret-key") as server:
        client, _ = endpoint(server, api_key="secret-key")
        assert client.ask(HELLO).text == "your key is (key)"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (None, "give --base-url"),
        ("localhost:8000", "not the address of an endpoint"),
        ("ftp://host/v1", "not the address of an endpoint"),
        ("http://user:pass@host/v1", "without user"),
        ("http://host/v1?key=1", "not the address of an endpoint"),
        ("http://:pass@host/v1", "without user"),
        ("http://[::1", "not the address of an endpoint"),
        ("http://host:port/v1", "not the address of an endpoint"),
        ("http://two words/v1", "not the address of an endpoint"),
    ],
)
def test_bad_addresses(url, message, monkeypatch):
    monkeypatch.delenv("EMPATHEIA_BASE_URL", raising=False)
    with pytest.raises(ConfigError, match=message) as caught:
        ChatEndpoint("judge", url)
    assert "pass" not in str(caught.value).replace("password", "")


def test_settings_from_the_environment(monkeypatch):
    monkeypatch.delenv("EMPATHEIA_OFFLINE", raising=False)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("EMPATHEIA_BASE_URL", "https://example.org/v1/")
    monkeypatch.setenv("OTHER_KEY", "two words")
    assert ChatEndpoint("judge").base_url == "https://example.org/v1"
    with pytest.raises(ConfigError, match="the key in OTHER_KEY holds a blank"):
        ChatEndpoint("judge", key_variable="OTHER_KEY")
    monkeypatch.setenv("EMPATHEIA_OFFLINE", "1")
    with pytest.raises(ConfigError, match="switched off"):
        ChatEndpoint("judge")
    with pytest.raises(ConfigError, match="no model"):
        ChatEndpoint(" ", "http://localhost/v1")
    with pytest.raises(ConfigError, match="timeout is 0"):
        ChatEndpoint("judge", "http://localhost/v1", timeout=0)


def test_what_is_read_and_what_is_written_have_prices_of_their_own():
    """By hand: two million tokens read at 1, one million written at 10 each million."""
    assert Prices(1.0, 10.0).cost(2_000_000, 1_000_000) == 12.0
