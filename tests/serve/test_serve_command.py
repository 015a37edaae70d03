"""``empatheia serve`` as a process: its start, its end under load, what it refuses."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest
from loopback import DOG

from empatheia.errors import MissingResourceError
from fresh import Fresh


@contextmanager
def serving(*options: str, **variables: str):
    """The command in a process of its own; gives the process, its host and its port."""
    command = ["-m", "empatheia", "serve", "--port", "0", *options]
    process = Fresh(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **variables})
    try:
        address = process.stdout.readline().strip()
        match = re.fullmatch(r"http://(127\.0\.0\.1):(\d+)", address)
        assert match, process.stderr.read()
        yield process, match[1], int(match[2])
    finally:
        process.kill()
        process.wait()


def ask(host: str, port: int, body: dict) -> tuple[int, dict]:
    connection = HTTPConnection(host, port, timeout=120)
    raw = json.dumps(body)
    connection.request("POST", "/v1/chat/completions", raw, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_end_under_load_answers_what_was_accepted(number, tiny_model):
    with serving("--model", str(tiny_model), "--default", "tiny") as (process, host, port):
        ask(host, port, {"messages": DOG, "max_tokens": 5})
        connections = []
        raw = json.dumps({"messages": DOG, "max_tokens": 60})
        for _ in range(12):  # all accepted before the signal: the server has read their heads
            connection = HTTPConnection(host, port, timeout=120)
            connection.request("POST", "/v1/chat/completions", raw, {"Content-Type": "application/json"})
            connections.append(connection)
        metrics = HTTPConnection(host, port, timeout=60)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            metrics.request("GET", "/metrics")
            text = metrics.getresponse().read().decode()
            if _open(text) + _answered(text) >= 14:  # with the first request and this one
                break
        process.send_signal(number)
        statuses = []
        for connection in connections:
            answer = connection.getresponse()
            statuses.append(answer.status)
            assert json.loads(answer.read())["choices"]
        assert statuses == [200] * 12
        assert process.wait(60) == 0
        assert "Traceback" not in process.stderr.read()
    with pytest.raises(OSError):
        socket.create_connection((host, port), timeout=1)


def _open(text: str) -> float:
    return float(re.search(r"^empatheia_open (\S+)$", text, re.MULTILINE)[1])


def _answered(text: str) -> float:
    found = re.findall(r"^empatheia_requests_total\{.*chat/completions.*\} (\S+)$", text, re.MULTILINE)
    return sum(map(float, found))


def test_several_processes(tiny_model):
    options = ("--model", str(tiny_model), "--default", "tiny", "--workers", "2", "--api-key-env", "KEYS_HERE")
    with serving(*options, KEYS_HERE="secret-key") as (process, host, port):
        assert ask(host, port, {"messages": DOG})[0] == 401
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert "secret-key" not in process.stderr.read()


def test_a_port_that_is_taken(cli, tiny_model):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = cli("serve", "--port", str(port), "--model", str(tiny_model))
    assert ended.code == 1 and f"port {port} of 127.0.0.1 is taken" in ended.err
    assert re.search(r"Choose another: empatheia serve --port \d+", ended.err) and "loading" not in ended.err


def test_it_says_where_it_will_be_before_anything_is_loaded(cli, monkeypatch):
    """It spoke after 10 to 28 s of silence."""
    asked = []

    def load(launch):
        address = re.search(r"loading the models; then (http://\S+) answers", sys.stderr.getvalue())[1]
        for path in ("/healthz", "/readyz", "/", "/v1/models"):
            connection = HTTPConnection(address.removeprefix("http://"), timeout=30)
            connection.request("GET", path)
            answer = connection.getresponse()
            record = json.loads(answer.read())
            asked.append(
                (path, answer.status, answer.headers["retry-after"], record.get("status") or record["error"]["code"])
            )
        raise MissingResourceError("the model is not here.")

    monkeypatch.setattr("empatheia.serve.run.application", load)
    ended = cli("serve", "--port", "0")
    assert ended.code == 3 and "the model is not here" in ended.err
    assert asked == [
        ("/healthz", 200, None, "loading"),
        ("/readyz", 503, "2", "loading"),
        ("/", 503, "2", "loading"),
        ("/v1/models", 503, "2", "loading"),
    ]


def test_the_first_line_needs_no_torch():
    code = (
        "import sys, empatheia.serve.listening as module\n"
        "module.bound = lambda *_: sys.exit('torch' in sys.modules or 'uvicorn' in sys.modules)\n"
        "from empatheia.cli import main\nmain(['serve', '--port', '0'])"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0


def test_texts_that_a_kill_left_are_swept(tmp_path, monkeypatch):
    """They stayed in the temporary folder for ever."""
    from empatheia.serve.temporary import PrivateFolder, sweep

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("empatheia.serve.temporary._YOUNG", -1.0)
    left, used = tmp_path / "empatheia-texts-left", PrivateFolder()
    left.mkdir()
    (left / "given.jsonl").write_text("I lost my dog.")
    Path(used.name, "given.jsonl").write_text("I lost my cat.")
    sweep()
    assert not left.exists() and Path(used.name, "given.jsonl").is_file()
    used.cleanup()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        (["--upstream", "http://localhost:9/v1"], 2, "both --upstream URL and --llm NAME"),
        (["--upstream", "nonsense", "--llm", "x", "--port", "0"], 2, "nonsense"),
        (["--fallback"], 2, "--fallback goes with --upstream"),
        (["--api-key-env", "NOT_SET_HERE"], 2, "NOT_SET_HERE holds no key"),
        (["--root-path", "x"], 2, "begins with /"),
        (["--port", "99999"], 2, "port"),
        (["--host", "no.such.host.invalid"], 1, "cannot be used"),
        (["--default", "empathia"], 2, "Did you mean 'empatheia'?"),
        (["--model", "nowhere/at/all"], 3, "nowhere/at/all"),
        (["--no-care", "--country", "GB"], 2, "--no-care"),
    ],
)
def test_what_cannot_be_served(cli, options, code, told):
    ended = cli("serve", *options)
    assert ended.code == code, ended.err
    assert told in ended.err and ended.out == "" and "Traceback" not in ended.err


@pytest.mark.parametrize("command", ["serve", "mcp"])
def test_without_the_extra_the_remedy_is_told(cli, monkeypatch, command):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    ended = cli(command)
    assert ended.code == 3 and f"pip install 'empatheia[{command}]'" in ended.err


def test_another_user_can_run_it(tmp_path):
    """As the container and the service do: not root, home not writable, nothing written."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    import empatheia

    source = Path(empatheia.__file__)
    for folder in [*source.parents, Path(sys.executable), *Path(sys.executable).resolve().parents]:
        if folder.stat().st_mode & 0o005 != 0o005:
            pytest.skip(f"{folder.name or folder} is closed to other users")
    command = [sys.executable, "-m", "empatheia", "serve", "--port", "0"]
    variables = {**os.environ, "HOME": "/nonexistent", "EMPATHEIA_CACHE": "/nonexistent"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables, user=65534, cwd="/"
    )
    watch = threading.Timer(120, process.kill)
    watch.start()
    address = process.stdout.readline().strip()
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    watch.cancel()
    assert address.startswith("http://127.0.0.1:"), errors
    assert process.returncode == 0
