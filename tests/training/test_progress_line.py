"""What a training tells on stderr."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

from transformers.utils import logging as transformers_logging

from empatheia_research.training import progress_line
from empatheia_research.training.progress_line import ProgressLine, without_foreign_bars


def told(monkeypatch, is_terminal: bool, seconds: float) -> str:
    stream = io.StringIO()
    stream.isatty = lambda: is_terminal
    monkeypatch.setattr(sys, "stderr", stream)
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr(progress_line.time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(progress_line, "SECONDS_BETWEEN", seconds)
    line = ProgressLine("joint")
    state = SimpleNamespace(global_step=0, max_steps=4, is_world_process_zero=True)
    line.on_train_begin(None, state, None)
    for step in range(1, 5):
        state.global_step = step
        line.on_log(None, state, None, {"loss": 5.0 / step})
        line.on_step_end(None, state, None)
    line.on_log(None, state, None, {"eval_loss": 1.25})
    line.on_train_end(None, state, None)
    return stream.getvalue()


def test_lines_now_and_then(monkeypatch):
    lines = told(monkeypatch, is_terminal=False, seconds=30).splitlines()
    assert lines[0] == "joint: step 3 of 4, loss 1.667, 0.1 steps/s, 10 s left" and len(lines) == 2
    assert lines[1].startswith("joint: step 4 of 4, loss 1.25, valid 1.25, ") and "left" not in lines[1]


def test_one_line_on_a_terminal(monkeypatch):
    text = told(monkeypatch, is_terminal=True, seconds=30)
    assert text.count("\n") == 1 and text.endswith("\n") and text.count("\r") == 5


def test_bars_of_transformers_are_off_and_come_back():
    transformers_logging.enable_progress_bar()
    with without_foreign_bars():
        assert not transformers_logging.is_progress_bar_enabled()
    assert transformers_logging.is_progress_bar_enabled()


def test_a_training_prints_neither_dictionaries_nor_shards(cli, tmp_path, monkeypatch):
    monkeypatch.setattr(progress_line, "SECONDS_BETWEEN", 0.0)
    words = ("gao2021/transformer", "--size", "smoke", "--out", str(tmp_path), "--no-evaluate")
    done = cli("train", *words)
    assert done.code == 0, done.err
    assert "step " in done.err and " loss " in done.err
    everything = done.err + done.out
    assert "{'" not in everything and "shards" not in everything and "%|" not in everything
