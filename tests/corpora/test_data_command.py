"""``empatheia data``: results on stdout, remarks on stderr, exit codes."""

from __future__ import annotations

import hashlib
import json
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from empatheia.cli import main
from empatheia.errors import DataError
from empatheia_research.corpora import CORPORA, empathetic_dialogues, sample
from empatheia_research.corpora.fetching import fetch_empathetic_dialogues


@pytest.fixture
def run(capsys, no_data):
    def call(*args):
        with pytest.raises(SystemExit) as stop:
            main(["data", *args])
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    return call


def test_list(run):
    code, out, err = run("list")
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in lines[1:]] == CORPORA.names()
    assert "MIT" in next(line for line in lines if line.startswith("sample"))


def test_list_json(run):
    entries = {e["name"]: e for e in json.loads(run("list", "--json")[1])}
    assert entries["sample"]["present"]
    assert not entries["dream"]["present"]
    assert entries["dailydialog"]["share_alike"]
    assert not entries["mutual"]["released_weights"]


def test_show(run):
    code, out, _ = run("show", "sample", "-n", "2", "--split", "valid")
    assert code == 0
    first, second = sample.load("valid")[0], sample.load("valid")[1]
    assert out.count("\n\n") == 1
    assert out.startswith(f"{first.id}  {first.emotion}\n  situation  {first.situation}\n")
    assert second.turns[-1].text in out
    assert "because of turns 1, 3" in out


def test_show_json(run):
    id = sample.load("test")[3].id
    record = json.loads(run("show", "sample", "--split", "test", "--id", id, "--json")[1])
    assert record["id"] == id
    assert [t["role"] for t in record["turns"][:2]] == ["speaker", "listener"]
    assert record["causes"][0]["annotator"] == "recec/sample"


def test_show_spans_and_latent_causes(run, monkeypatch):
    monkeypatch.setenv("EMPATHEIA_DATA", str(sample.root()))
    out = run("show", "reccon", "-n", "20")[1]
    assert 'because of 2: "They stopped me after ten seconds"' in out
    assert "because of something outside the conversation" in out
    assert "(happiness)" in out


def test_stats(run, monkeypatch):
    monkeypatch.setenv("EMPATHEIA_DATA", str(sample.root()))
    code, out, _ = run("stats", "sample", "reccon")
    assert code == 0
    assert [line.split()[:3] for line in out.splitlines()[1:]] == [
        ["sample", "train", "40"],
        ["sample", "valid", "8"],
        ["sample", "test", "8"],
        ["reccon", "train", "12"],
        ["reccon", "valid", "4"],
        ["reccon", "test", "4"],
    ]
    (counts,) = json.loads(run("stats", "sample", "--split", "train", "--json")[1])
    assert counts["dialogues"] == 40
    assert len(counts["emotions"]) == 32


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("show", "smaple"), 2, "no corpus is called 'smaple'. Did you mean 'sample'?"),
        (("show", "dream"), 3, "dream.jsonl"),
        (("show", "sample", "--split", "x"), 1, "unknown split 'x'"),
        (("show", "sample", "--id", "hit:450000_conv:900001x"), 1, "Did you mean 'hit:450000_conv:900001'?"),
        (
            ("get", "dream"),
            3,
            "dream cannot be fetched by this command (licence: non-commercial research; from: Sun et al. 2019)",
        ),
        (("get", "nothing"), 2, "no corpus is called 'nothing'"),
        (("show", "sample", "-n", "0"), 2, "--n"),
    ],
)
def test_errors(run, args, code, message):
    found, out, err = run(*args)
    assert (found, out) == (code, "")
    assert message in err
    assert err.count("\n") == 1


def test_get_what_is_here(run):
    code, out, err = run("get", "sample")
    assert (code, err) == (0, "sample is already here.\n")
    assert out.strip().endswith("train.csv")


@pytest.fixture
def official_archive(tmp_path, monkeypatch):
    """The sample served as if it were the official archive: address and checksum."""
    import tarfile

    for name in ("EMPATHEIA_OFFLINE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    folder = tmp_path / "served"
    folder.mkdir()
    archive = folder / "empatheticdialogues.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(sample.root() / "empatheticdialogues", "empatheticdialogues")
    quiet = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *args: None})
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", hashlib.sha256(archive.read_bytes()).hexdigest()
    server.shutdown()
    server.server_close()


def test_get_empathetic_dialogues(run, no_data, official_archive, monkeypatch):
    base, digest = official_archive
    urls = (f"{base}/moved.tar.gz", f"{base}/empatheticdialogues.tar.gz")
    monkeypatch.setattr(fetch_empathetic_dialogues, "__defaults__", (None, urls, digest, lambda message: None, None))
    code, out, err = run("get", "empathetic_dialogues")
    assert code == 0
    assert "answers 404" in err
    assert "CC BY-NC 4.0" in err
    assert "40 conversations and" in err
    assert len(out.splitlines()) == 3
    assert len(empathetic_dialogues.load("train")) == 40  # found in the cache
    assert not list((no_data / "downloads").iterdir())


def test_get_wrong_checksum(no_data, official_archive):
    base, _ = official_archive
    with pytest.raises(DataError, match="SHA-256 is"):
        fetch_empathetic_dialogues(urls=[f"{base}/empatheticdialogues.tar.gz"], sha256="0" * 64)
    assert not (no_data / "data").exists()
