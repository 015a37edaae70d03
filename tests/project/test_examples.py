"""The examples run offline with the bundled model and print something worth reading."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples"
EXAMPLES = sorted(FOLDER.glob("[0-9]*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [path.name])
    runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) >= 3
    assert len(path.read_text(encoding="utf-8").splitlines()) < 80


def test_there_are_examples():
    assert len(EXAMPLES) >= 3


@pytest.mark.parametrize("name", ["generation_speed", "analyze_speed", "training_overhead"])
def test_benchmark_runs(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture):
    folder = FOLDER.parent / "benchmarks"
    monkeypatch.delenv("EMPATHEIA_DATA", raising=False)
    monkeypatch.syspath_prepend(str(folder))
    size = ["--size", "smoke"] if name == "training_overhead" else []
    monkeypatch.setattr("sys.argv", [name, "--n", "3", "--naive-n", "2", "--threads", "1", "--json", *size])
    runpy.run_path(str(folder / f"{name}.py"), run_name="__main__")
    report = json.loads(capsys.readouterr().out)
    assert report["ways"][-1]["way"].startswith("naive") and report["ways"][-1]["n"] == 2
    assert all(way["per_second"] > 0 for way in report["ways"])


@pytest.mark.parametrize("kind", ["bart", "t5", "blenderbot-small", "gpt2", "llama"])
def test_focus_example(kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture):
    path = FOLDER / "focus_any_model.py"
    monkeypatch.setattr("sys.argv", [path.name, "--tiny", kind, "--pieces", "6"])
    runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr().out
    plain, focused = printed.split("S1, focused: ")
    assert plain.startswith("true : ") and "S0, as it is: " in plain
    for part in (plain, focused):
        assert part.count(" gives it ") == 2
        rows = [line.split()[-3:] for line in part.splitlines() if line.startswith(" ") and "log S0" not in line]
        assert rows and all(abs(sum(map(float, row)) - 1) < 0.02 for row in rows), "a belief sums to 1"
    assert plain.split("S0, as it is: ")[1].splitlines()[0] != focused.splitlines()[0], "focus changed nothing"
    assert len(path.read_text(encoding="utf-8").splitlines()) < 120


def test_focus_example_with_texts_of_its_own(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture):
    path = FOLDER / "focus_any_model.py"
    words = ["--text", "My dog died.", "--distractors", "My car died.", "--alpha", "0", "--pieces", "4"]
    monkeypatch.setattr("sys.argv", [path.name, "--tiny", "gpt2", *words])
    runpy.run_path(str(path), run_name="__main__")
    assert "not 1: My car died." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--focus", "cat"), "the word 'cat' does not stand in 'My dog died.'"),
        (("--focus", "dog", "--alpha", "-1"), "alpha is -1.0; accepted: 0 or more"),
        (("--distractors", "My dog died."), "two of the texts are the same"),
    ],
)
def test_focus_example_tells_what_is_wrong(arguments, told, monkeypatch: pytest.MonkeyPatch, capsys):
    path = FOLDER / "focus_any_model.py"
    monkeypatch.setattr("sys.argv", [path.name, "--tiny", "gpt2", "--text", "My dog died.", *arguments])
    with pytest.raises(SystemExit):
        runpy.run_path(str(path), run_name="__main__")
    assert told in capsys.readouterr().err


def test_focus_benchmark_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture):
    folder = FOLDER.parent / "benchmarks"
    monkeypatch.delenv("EMPATHEIA_DATA", raising=False)
    monkeypatch.syspath_prepend(str(folder))
    small = ["--n", "3", "--batches", "2", "--length", "3", "--words", "300", "--rounds", "1", "--threads", "1"]
    monkeypatch.setattr("sys.argv", ["focus_speed", *small, "--json"])
    runpy.run_path(str(folder / "focus_speed.py"), run_name="__main__")
    rows = json.loads(capsys.readouterr().out)["ways"]
    assert [(row["model"], row["way"]) for row in rows] == [
        (model, way) for model in ("responder", "bart") for way in ("greedy", "beam 5")
    ]
    assert all(row["ratio"] > 0 for row in rows)
