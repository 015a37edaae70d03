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
