"""Requests by a proxy or without one, redirects, bounds, and what is never sent; servers on the loopback address."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from empatheia.resources.http import StatusError, UnreachedError, opened


class Server(ThreadingHTTPServer):
    """Answers each path by what ``answers`` holds for it: status, headers, body."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        status, headers, body = self.server.answers.get(self.path, (200, {}, b"fine"))
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def servers(monkeypatch) -> Iterator[tuple[Server, Server]]:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    both = Server(), Server()
    for one in both:
        threading.Thread(target=one.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield both
    for one in both:
        one.shutdown()
        one.server_close()


def get(url: str, **options) -> bytes:
    with opened("GET", url, timeout=5, total=5, **options) as answer:
        return answer.read(1 << 20)


def test_the_proxy_of_the_environment_is_asked_except_for_what_it_leaves_out(servers, monkeypatch):
    there, proxy = servers
    monkeypatch.setenv("http_proxy", proxy.url.removeprefix("http://"))
    monkeypatch.setenv("all_proxy", "socks5://127.0.0.1:9")  # not asked, and no reason to fail
    get("http://nowhere.invalid/a")
    assert [path for path, _ in proxy.requests] == ["http://nowhere.invalid/a"]
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    get(f"{there.url}/b")
    assert [path for path, _ in there.requests] == ["/b"] and len(proxy.requests) == 1


def test_nothing_of_the_users_files_is_sent(servers, monkeypatch, tmp_path):
    there, _ = servers
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.setenv("HOME", str(tmp_path))
    get(there.url)
    ((_, headers),) = there.requests
    assert "authorization" not in headers and headers["accept-encoding"] == "identity"


def test_a_key_is_not_taken_to_another_host(servers):
    there, other = servers
    there.answers["/a"] = (302, {"Location": f"{other.url}/b"}, b"")
    key = {"Authorization": "Bearer secret"}
    assert get(f"{there.url}/a", headers=key) == b"fine"
    assert "authorization" in there.requests[0][1] and "authorization" not in other.requests[0][1]
    with pytest.raises(StatusError, match="the server answers 302 Found"):
        get(f"{there.url}/a", headers=key, follows=False)
    assert len(other.requests) == 1


@pytest.mark.parametrize("place", ["file:///etc/hostname", "ftp://127.0.0.1/x", "data:text/plain,x"])
def test_a_redirect_to_another_kind_of_address_is_an_error(servers, place):
    there, _ = servers
    there.answers["/a"] = (302, {"Location": place}, b"gone")
    with pytest.raises(StatusError, match="answers 302") as caught:
        get(f"{there.url}/a")
    assert caught.value.body == b"gone"


def test_redirects_end(servers):
    there, _ = servers
    there.answers["/a"] = (302, {"Location": "/a"}, b"")
    with pytest.raises(StatusError, match="answers 302"):
        get(f"{there.url}/a")
    assert len(there.requests) == 11


def test_what_is_packed_stays_packed_so_that_bounds_hold(servers):
    there, _ = servers
    there.answers["/a"] = (200, {"Content-Encoding": "gzip"}, b"\x1f\x8b not unpacked")
    assert get(f"{there.url}/a") == b"\x1f\x8b not unpacked"


def test_a_body_and_its_lines_are_bounded(servers):
    there, _ = servers
    there.answers["/a"] = (200, {}, b"one\n" + b"x" * 300_000 + b"\ntwo")
    with opened("GET", f"{there.url}/a", timeout=5, total=5) as answer:
        assert len(answer.read(1000)) == 1000
    with opened("GET", f"{there.url}/a", timeout=5, total=5) as answer:
        first, *parts, last = answer.lines(100_000)
    assert (first, last) == (b"one", b"two")
    assert b"".join(parts) == b"x" * 300_000 and max(map(len, parts)) <= 100_000 + (1 << 16)


def test_an_address_that_is_none():
    with pytest.raises(UnreachedError, match="protocol"):
        get("ftp://127.0.0.1/x")
    with pytest.raises(ValueError, match=r"port|URL"):
        get("http://127.0.0.1:port/x")
