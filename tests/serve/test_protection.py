"""What stands in front: ids, headers, hosts, keys, origins, patience; and what logs hold."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import time

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from loopback import running
from pydantic import SecretStr

from empatheia.serve import ServerSettings, WebSettings, create_app
from empatheia.serve.listening import address_of
from empatheia.serve.pages import page_routes
from empatheia.serve.run import Launch, PatientProtocol, keys_of
from empatheia.serve.settings import Limits
from empatheia.serve.web import Patience, protect

CHAT = "/v1/chat/completions"


def small(settings: WebSettings, **options) -> TestClient:
    """Another server of ours than that of listeners."""
    app = FastAPI()

    @app.get("/v1/open")
    async def answer() -> dict[str, str]:
        return {"said": "yes"}

    @app.get("/v1/broken")
    async def broken() -> None:
        raise ValueError("a secret text")

    protect(app, settings, **options)
    return TestClient(app, raise_server_exceptions=False)


def test_every_answer_has_an_id_and_the_headers(client):
    for answer in (client.get("/"), client.get("/healthz"), client.get("/nowhere"), client.post(CHAT, json={})):
        assert re.fullmatch(r"req-[0-9a-f]{16}", answer.headers["x-request-id"])
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "no-referrer"
    assert client.get("/healthz", headers={"x-request-id": "mine-1"}).headers["x-request-id"] == "mine-1"
    assert client.get("/healthz", headers={"x-request-id": "a b"}).headers["x-request-id"] != "a b"


def test_keys_lock_the_routes_named_and_nothing_else():
    asking = small(WebSettings(keys=(SecretStr("right"),)), locked=("/v1",))
    assert asking.get("/v1/open").status_code == 401
    assert asking.get("/v1/open").headers["www-authenticate"] == "Bearer"
    assert (
        asking.get("/v1/open", headers={"authorization": "Bearer wrong"}).json()["error"]["code"] == "invalid_api_key"
    )
    assert asking.get("/v1/open", headers={"authorization": "Basic right"}).status_code == 401
    assert asking.get("/v1/open", headers={"authorization": b"Bearer \xff\xfe"}).status_code == 401
    assert asking.get("/v1/open", headers={"authorization": "Bearer right"}).json() == {"said": "yes"}
    assert asking.get("/v10").status_code == 404
    assert asking.get("/docs").status_code == 200


def test_keys_hold_behind_a_proxy_too(tiny_model):
    settings = ServerSettings(models=(str(tiny_model),), default="tiny", keys=(SecretStr("k"),))
    asking = TestClient(create_app(settings), root_path="/deep")
    for place in ("/v1/models", "/deep/v1/models", "/metrics"):
        assert asking.get(place).status_code == 401
        assert asking.get(place, headers={"authorization": "Bearer k"}).status_code == 200
    for place in ("/", "/deep/", "/healthz", "/openapi.json"):
        assert asking.get(place).status_code == 200


def test_keys_are_read_from_the_environment_and_never_missing(monkeypatch):
    from empatheia.errors import ConfigError

    monkeypatch.setenv("KEYS_HERE", " one,,two ")
    assert [key.get_secret_value() for key in keys_of("KEYS_HERE")] == ["one", "two"]
    assert "one" not in repr(keys_of("KEYS_HERE"))
    assert keys_of(None) == ()
    monkeypatch.setenv("KEYS_HERE", " , ")
    for name in ("KEYS_HERE", "KEYS_NOT_HERE"):
        with pytest.raises(ConfigError, match=name):
            keys_of(name)


def test_origins_are_closed_unless_named():
    origin = {"origin": "https://example.org", "access-control-request-method": "POST"}
    closed, opened = small(WebSettings()), small(WebSettings(cors=("https://example.org",), keys=(SecretStr("k"),)))
    assert "access-control-allow-origin" not in closed.get("/v1/open", headers=origin).headers
    asked = opened.options("/v1/open", headers=origin)
    assert asked.status_code == 200 and asked.headers["access-control-allow-origin"] == "https://example.org"
    other = opened.options("/v1/open", headers={**origin, "origin": "https://evil.example"})
    assert "access-control-allow-origin" not in other.headers


@pytest.mark.parametrize(
    ("host", "is_ours"),
    [
        ("localhost", True),
        ("LOCALHOST:8321", True),
        ("127.0.0.1:1", True),
        ("[::1]:8321", True),
        ("a.example.org", True),
        ("example.org", False),
        ("evil.example", False),
        ("localhost.evil.example", False),
        ("", False),
        ("::1", False),
    ],
)
def test_host_names(host, is_ours):
    asking = small(WebSettings(hosts=("localhost", "127.0.0.1", "::1", "*.example.org")))
    answer = asking.get("/v1/open", headers={"host": host})
    assert answer.status_code == (200 if is_ours else 400)
    if not is_ours:
        assert answer.json()["error"]["code"] == "wrong_host"
        assert "accepted: localhost, 127.0.0.1" in answer.json()["error"]["message"]


def test_a_host_that_is_refused_is_told_how_to_be_accepted():
    asking = small(WebSettings(hosts=("localhost",)))
    for host, shown in (("chat.example.org:80", "chat.example.org"), ('<b>x"', "?b?x?")):
        message = asking.get("/v1/open", headers={"host": host}).json()["error"]["message"]
        assert message.endswith(f"--allowed-host {shown}.") and message.startswith(f"{shown} is not served here")


def test_a_fault_is_told_by_its_kind_and_place_only(caplog):
    with caplog.at_level(logging.INFO, "empatheia.serve"):
        answer = small(WebSettings()).get("/v1/broken")
    assert answer.status_code == 500 and "secret" not in answer.text
    assert "ValueError" in caplog.text and "secret" not in caplog.text and answer.headers["x-request-id"] in caplog.text


def test_logs_hold_no_text_unless_asked(tiny_model, caplog):
    message = [{"role": "user", "content": "My zebra ran away."}]
    for logs in (False, True):
        caplog.clear()
        settings = ServerSettings(models=(str(tiny_model),), default="tiny", log_text=logs)
        with caplog.at_level(logging.INFO, "empatheia"), TestClient(create_app(settings)) as asking:
            for route, body in ((CHAT, {"messages": message}), ("/v1/responses", {"input": message})):
                for fields in ({}, {"stream": True}):
                    assert asking.post(route, json={**body, **fields}).status_code == 200
            asking.post("/v1/analyze", json={"input": message})
            asking.post(CHAT, json={"messages": message, "empathy": {"focus": ["lion"]}})
        assert ("zebra" in caplog.text) is logs
        assert f"POST {CHAT} 200" in caplog.text


async def _through(middleware, received, sends=None) -> list[dict]:
    """What a middleware sends, given what it receives."""
    left = list(received)
    out: list[dict] = []

    async def receive():
        if not left:
            await asyncio.sleep(60)
        return left.pop(0)

    async def send(message):
        if sends is not None:
            await sends()
        out.append(message)

    scope = {"type": "http", "headers": [], "method": "POST", "path": "/"}
    await middleware(scope, receive, send)
    return out


def test_a_body_that_drips_in_is_given_up():
    async def reads(scope, receive, send):
        while (await receive()).get("more_body"):
            pass

    from empatheia.serve.faults import ApiError

    patience = Patience(reads, Limits(body_seconds=0.1))
    with pytest.raises(ApiError) as error:
        asyncio.run(_through(patience, [{"type": "http.request", "body": b"{", "more_body": True}]))
    assert error.value.status_code == 408


def test_a_client_that_does_not_read_is_given_up():
    async def speaks(scope, receive, send):
        await send({"type": "http.response.body", "body": b"x"})

    patience = Patience(speaks, Limits(send_seconds=0.05))
    with pytest.raises(OSError, match="does not read"):
        asyncio.run(_through(patience, [], lambda: asyncio.sleep(60)))


def test_a_head_that_drips_in_is_cut_off(tiny_model, monkeypatch):
    monkeypatch.setattr(PatientProtocol, "HEAD_SECONDS", 0.3)
    settings = ServerSettings(models=(str(tiny_model),), default="tiny")
    with running(Launch(server=settings), create_app(settings)) as where:
        port = int(where.rpartition(":")[2])
        for said in (b"", b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Slow: "):
            with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
                connection.sendall(said)
                begun = time.monotonic()
                with _quiet():
                    assert connection.recv(100) == b""
                assert time.monotonic() - begun < 19
        with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:  # between requests, too
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = b""
            while b"}" not in answer:
                answer += connection.recv(4000)
            time.sleep(0.05)
            connection.sendall(b"GET /heal")
            with _quiet():
                while connection.recv(4000):
                    pass


class _quiet:
    """A connection that was cut may end in a reset."""

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        return kind is not None and issubclass(kind, ConnectionError)


def test_pages_are_a_fixed_list(tmp_path):
    (tmp_path / "index.html").write_text("<h1>hello</h1>")
    (tmp_path / "analyze.html").write_text("<h1>analyse</h1>")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "app.js").write_text("export const a = 1;")
    (tmp_path / "code.py").write_text("secret")
    app = FastAPI(docs_url=None)
    app.include_router(page_routes(tmp_path))
    protect(app, WebSettings())
    asking = TestClient(app)
    assert asking.get("/").text == "<h1>hello</h1>"
    assert asking.get("/analyze").headers["content-type"] == "text/html; charset=utf-8"
    script = asking.get("/sub/app.js")
    assert script.headers["content-type"].startswith("text/javascript")
    assert asking.get("/sub/app.js", headers={"if-none-match": script.headers["etag"]}).status_code == 304
    assert asking.head("/").status_code == 200
    for place in ("/code.py", "/sub", "/sub/", "/sub/../code.py", "/analyze.html"):
        assert asking.get(place).status_code == 404


def test_addresses():
    assert address_of("0.0.0.0", 80) == "http://127.0.0.1:80"
