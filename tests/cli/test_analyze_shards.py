"""``analyze --engine dask``: the rows of the plain command, as Parquet, with the caller's columns; resumable."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet
import pytest

from empatheia.errors import DataError
from empatheia_people.cli import analyze_shards
from empatheia_people.cli.analyze_shards import _names, files_of

TEXTS = ("I lost my keys again.", "We won the final!", "", "My cat is ill and I am afraid.", "Nobody called me today.")


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """A CSV, JSON lines and Parquet file."""
    place = tmp_path / "in"
    place.mkdir()
    lines = [f'{i},"{text}",{i * 2}' for i, text in enumerate(TEXTS)]
    (place / "posts.csv").write_text("id,body,emotion\n" + "\n".join(lines) + "\n")
    records = [{"id": f"j{i}", "text": text, "likes": i, "tags": ["a"]} for i, text in enumerate(TEXTS)]
    records.append({"id": "talk", "turns": ["I failed.", "Oh no.", "I am so sad."]})
    (place / "more.jsonl").write_text("\n".join(map(json.dumps, records)) + "\nnot json\n")
    table = pyarrow.table({"text": list(TEXTS), "when": [1.5] * len(TEXTS)})
    pyarrow.parquet.write_table(table, place / "big.parquet")
    return place


def rows(out: Path, name: str) -> list[dict]:
    paths = sorted(out.glob(f"{name}-?????.parquet"))
    return [row for path in paths for row in pyarrow.parquet.read_table(path).to_pylist()]


def test_rows_are_those_of_the_plain_command(cli, inputs, tiny_model, tmp_path, monkeypatch):
    monkeypatch.setattr(analyze_shards, "ROWS_PER_CHUNK", 2)
    out = tmp_path / "out"
    words = ("--model", str(tiny_model), "--engine", "dask", "--workers", "0", "--batch-size", "1")
    done = cli("analyze", str(inputs), *words, "--column", "body", "--out", str(out))
    assert done.code == 0, done.err
    assert "17 rows of 3 files, 13 bad" in done.err  # the other files have no column of that name
    plain = cli("analyze", str(inputs / "posts.csv"), "--model", str(tiny_model), "--json", "--column", "body")
    wanted = [json.loads(line) for line in plain.out.splitlines()]
    found = rows(out, "posts")
    assert len(found) == 5 and len(list(out.glob("posts-*.parquet"))) == 3
    for row, want in zip(found, wanted, strict=True):
        given = json.loads(row["analysis"])
        assert given["row"] == want["row"] == row["row"] and given.get("error") == want.get("error") == row["error"]
        if "error" not in want:
            assert given["emotion"] == want["emotion"] == row["empatheia_emotion"]
            assert [c["text"] for c in given["causes"]] == [c["text"] for c in want["causes"]]
            assert given["emotions"] == pytest.approx(want["emotions"], abs=1e-5)
    assert [row["emotion"] for row in found] == ["0", "2", "4", "6", "8"], "the caller's own column"


def test_in_shards_of_the_usual_size_the_rows_are_equal_to_the_last_digit(cli, inputs, tiny_model, tmp_path):
    place = inputs / "posts.csv"
    words = ("--model", str(tiny_model), "--column", "body")
    assert (
        cli("analyze", str(place), *words, "--engine", "dask", "--workers", "0", "--out", str(tmp_path / "o")).code == 0
    )
    plain = [json.loads(line) for line in cli("analyze", str(place), *words, "--json").out.splitlines()]
    assert [json.loads(row["analysis"]) for row in rows(tmp_path / "o", "posts")] == plain


def test_columns_of_every_kind_are_kept(cli, inputs, tiny_model, tmp_path):
    out = tmp_path / "out"
    (inputs / "posts.csv").unlink()
    words = ("--model", str(tiny_model), "--engine", "dask", "--workers", "0", "--out", str(out))
    done = cli("analyze", str(inputs), *words)
    assert done.code == 0 and "12 rows of 2 files, 3 bad" in done.err
    more = rows(out, "more")
    assert more[1]["likes"] == 1 and more[1]["emotion"] and 0 < more[1]["probability"] <= 1
    assert more[5]["turns"] and more[6]["error"].startswith("not valid JSON")
    assert rows(out, "big")[0]["when"] == 1.5
    states = {path: path.stat().st_mtime_ns for path in out.glob("*.parquet")}
    (out / "analysis.json").unlink()
    (out / "big-00000.parquet").unlink()
    assert cli("analyze", str(inputs), *words).code == 0
    again = {path: path.stat().st_mtime_ns for path in out.glob("*.parquet")}
    assert {path.name for path, time in again.items() if states[path] != time} == {"big-00000.parquet"}
    assert cli("analyze", str(inputs), *words).code == 0 and not (out / "rows").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--engine", "ray", "--out", "o"), "accepted: plain, dask"),
        (("--scheduler", "tcp://x:1"), "needs --engine dask"),
        (("--engine", "dask"), "needs --out FOLDER"),
        (("--engine", "dask", "--out", "in/o"), "lies in"),
        (("--engine", "dask", "--out", "o", "--with", "emotion"), "has no --with"),
    ],
)
def test_what_does_not_go_together(cli, inputs, words, told, monkeypatch):
    monkeypatch.chdir(inputs.parent)
    done = cli("analyze", "in", *words)
    assert done.code == 2 and told in done.err


def test_nothing_to_analyse(cli, tmp_path, tiny_model):
    (tmp_path / "in").mkdir()
    words = ("--engine", "dask", "--workers", "0", "--model", str(tiny_model), "--out", str(tmp_path / "o"))
    assert "nothing to analyse" in cli("analyze", str(tmp_path / "in"), *words).err
    (tmp_path / "in" / "a.csv").write_text("text\n\n")
    (tmp_path / "in" / "b.parquet").write_bytes(b"PAR1")
    done = cli("analyze", str(tmp_path / "in"), *words)
    assert done.code == 1 and "no row of" in done.err and "not a complete Parquet file" in done.err


def test_files_of_a_folder_have_names_of_their_own(tmp_path):
    for name in ("a.csv", "a.jsonl", "sub/a.csv", ".hidden.csv", "notes.pdf"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    files = files_of(tmp_path)
    assert [path.relative_to(tmp_path).as_posix() for path in files] == ["a.csv", "a.jsonl", "sub/a.csv"]
    names = _names(files, tmp_path)
    assert len(set(names)) == 3 and names[0] == "a" and names[2] == "sub-a"
    with pytest.raises(DataError, match=r"nothing to analyse in .*accepted: files with a suffix of"):
        files_of(tmp_path / "notes.pdf")
