"""``empatheia infer``: an index, a cache, and what a person gets wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

TALKS = (
    {"id": "a", "turns": [("speaker", "My dog dies."), ("listener", "Oh no."), ("speaker", "I lose my job.")]},
    {"id": "b", "turns": [("listener", "Hello?")]},
    {"id": "c", "turns": [("speaker", "My dog dies.")]},
)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with three conversations and an index of the sample that needs no weights."""
    from empatheia_research.corpora import atomic
    from empatheia_research.understanding.inferences.index import build_index

    folder = tmp_path_factory.mktemp("infer")
    lines = [{**talk, "turns": [{"role": role, "text": text} for role, text in talk["turns"]]} for talk in TALKS]
    (folder / "d.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    build_index(atomic.load("all", root=atomic.sample_root()), "words", folder / "index")
    return folder


def lines_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.usefixtures("research")
def test_build_an_index(cli, tmp_path, monkeypatch, caplog):
    """From the sample, a file and the data folder; where nothing is named it goes where analyze looks."""
    monkeypatch.setenv("EMPATHEIA_MODELS", str(tmp_path / "models"))
    made = cli("infer", "--build-index", "sample", "--encoder", "words")
    assert made.code == 0 and made.err == "", made.err
    record = json.loads(made.out)
    assert record["index"] == str(tmp_path / "models" / "inferences") and record["encoder"] == "words"
    assert record["counts"]["heads"] == 51 and record["source"] == "self-written sample of empatheia, MIT"
    assert record["left_out"] == {"rows of other relations": 2, "none tails": 6, "duplicate rows": 1}
    told = cli("analyze", "My dog dies.", "--with", "inferences", "--json")
    assert told.code == 0, told.err
    found = json.loads(told.out)
    assert found["inferences"][0]["tails"][0] == "heartbroken" and "small self-written sample" in found["uncertain"][0]

    table = tmp_path / "atomic" / "train.tsv"
    table.parent.mkdir()
    table.write_text("PersonX naps\txReact\trested\nPersonX naps\txReact\nPersonX naps\txReact\tNone\n")
    monkeypatch.setenv("EMPATHEIA_DATA", str(tmp_path))
    for tuples in ("atomic", str(table), str(table.parent)):
        made = cli("infer", "--build-index", tuples, "--encoder", "words", "--index", str(tmp_path / "own"))
        assert made.code == 0, made.err
        assert json.loads(made.out)["counts"]["tuples"] == 1
        assert made.err.endswith("rows that cannot be read, left out: 1\n") and "no tuple of" not in made.err
        assert "train.tsv:2: 2 tab-separated fields, expected 3" in caplog.text and "no tuple of" in caplog.text
        caplog.clear()


def test_ask_write_and_go_on(cli, place, tmp_path):
    out = tmp_path / "c.jsonl"
    line = ("infer", str(place / "d.jsonl"), "--provider", str(place / "index"), "--out", str(out))
    done = cli(*line)
    assert done.code == 0 and done.err == "", done.err
    report = json.loads(done.out)
    assert (report["turns"], report["already_there"], report["same_text"]) == (3, 0, 1)
    assert report["provider"] == "atomic-sample by words" and report["answered"]["xReact"] == 3
    header, *rows = lines_of(out)
    assert header["kind"] == "inferences" and header["source"].endswith("MIT") and header["n"] == 5
    assert [(row["row"], row["id"], row["turn"]) for row in rows] == [(1, "a", 0), (1, "a", 2), (3, "c", 0)]
    assert rows[0]["inferences"] == rows[2]["inferences"]
    assert rows[0]["inferences"]["xReact"]["tails"][0] == "heartbroken"

    whole = out.read_bytes()
    again = cli(*line)
    assert again.code == 1 and "already exists" in again.err and out.read_bytes() == whole
    out.write_bytes(whole[: len(whole) - 700])  # killed in the last line
    done = cli(*line, "--resume")
    assert json.loads(done.out)["already_there"] == 2 and out.read_bytes() == whole
    refused = cli(*line, "--resume", "--minimum", "0.2")
    assert refused.code == 1 and "with fingerprint" in refused.err and out.read_bytes() == whole


def test_the_cache_is_a_provider(cli, place, tmp_path):
    out = tmp_path / "c.jsonl"
    cli("infer", str(place / "d.jsonl"), "--provider", str(place / "index"), "--out", str(out))
    answers = [
        cli("analyze", str(place / "d.jsonl"), "--with", "inferences", "--json", "--model-for", f"inferences={given}")
        for given in (out, place / "index")
    ]
    read, looked_up = ([json.loads(row) for row in answer.out.splitlines()] for answer in answers)
    assert [row.get("inferences") for row in read] == [row.get("inferences") for row in looked_up]
    assert read[0]["models"]["inferences"] == "atomic-sample by words (cache)"


def test_options(cli, place, tmp_path):
    """Relations and groups, n, limit, and a column of a CSV file."""
    (tmp_path / "t.csv").write_text("number,said\n1,My dog dies.\n2,I lose my job.\n")
    out = tmp_path / "c.jsonl"
    index = ("--provider", str(place / "index"), "--out", str(out))
    chosen = ("--relations", "affect,xwant", "-n", "1", "--limit", "1", "--column", "said")
    done = cli("infer", str(tmp_path / "t.csv"), *index, *chosen)
    assert done.code == 0, done.err
    header, row = lines_of(out)
    assert header["relations"] == ["xReact", "xWant"] and header["n"] == 1
    assert {name: len(tails["tails"]) for name, tails in row["inferences"].items()} == {"xReact": 1, "xWant": 1}


def test_stdin(cli, place, tmp_path):
    done = cli(
        "infer", "-", "--provider", str(place / "index"), "--out", str(tmp_path / "c.jsonl"), stdin="My dog dies."
    )
    assert done.code == 0 and json.loads(done.out)["answered"]["xReact"] == 1, done.err


@pytest.mark.parametrize(
    ("line", "code", "match"),
    [
        ("", 2, "give FILE and --out"),
        ("d.jsonl", 2, "give FILE and --out"),
        ("d.jsonl --build-index sample", 2, "makes an index only"),
        ("nowhere.jsonl --out c.jsonl --provider index", 1, "no such file"),
        ("folder --out c.jsonl --provider index", 1, "or a corpus: "),
        ("empty.jsonl --out c.jsonl --provider index", 1, "holds no conversation"),
        ("d.jsonl --out c.jsonl --provider nowhere", 3, "--build-index atomic"),
        ("d.jsonl --out c.jsonl --provider d.jsonl", 1, "is not a cache"),
        ("d.jsonl --out no/c.jsonl --provider index", 1, "its folder does not exist"),
        ("d.jsonl --out c.jsonl --provider index --relations xReacts", 2, "Did you mean 'xReact'"),
        ("d.jsonl --out c.jsonl --provider index --head causes", 2, "--causes"),
        ("d.jsonl --out c.jsonl --provider index --head cause", 2, "head is 'cause'"),
        ("d.jsonl --out c.jsonl --provider index --minimum 2", 2, "minimum is 2"),
        ("d.jsonl --out c.jsonl --provider index --prompt x", 2, "no setting 'prompt'"),
        ("d.jsonl --out c.jsonl --provider index -n 0", 2, "-n"),
        ("--build-index nowhere.tsv --index i", 3, "no file nowhere.tsv"),
        ("--build-index d.jsonl --index i --encoder words", 1, "no tuple"),
        ("--build-index sample --index i --encoder nowhere", 3, "'words', which needs no weights"),
        ("--build-index sample --index d.jsonl --encoder words", 1, "is not an index"),
    ],
)
def test_wrong_lines(cli, place, monkeypatch, line, code, match):
    """One line each, and nothing is left behind."""
    monkeypatch.chdir(place)
    (place / "empty.jsonl").write_text("")
    before = sorted(path.name for path in place.iterdir())
    done = cli("infer", *line.split())
    assert done.code == code and match in done.err, done.err
    assert "Traceback" not in done.err and done.out == ""
    assert sorted(path.name for path in place.iterdir()) == before


def test_approximate_search_without_its_library(cli, place, tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "faiss", None)
    done = cli(
        "infer", "--build-index", "sample", "--encoder", "words", "--approximate", "--index", str(tmp_path / "i")
    )
    assert done.code == 3 and "pip install 'empatheia[search]'" in done.err and done.err.count("\n") == 1
    wanted = ("--provider", str(place / "index"), "--search", "approximate", "--out", str(tmp_path / "c.jsonl"))
    done = cli("infer", str(place / "d.jsonl"), *wanted)
    assert done.code == 3 and "pip install 'empatheia[search]'" in done.err and done.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
