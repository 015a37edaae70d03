"""A long ``analyze`` that is killed and resumed: no row lost, none doubled, none computed twice, nothing mixed."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import pytest

import fresh
from empatheia.files.result_file import ResultFile, model_mark
from empatheia.listener import progress
from empatheia.taxonomy import EMOTIONS

N_ROWS, CHUNK = 90, 16
KILLED = """
import os, signal, sys
import empatheia.cli.asking as asking
from empatheia.cli import main
from empatheia.files.result_file import ResultFile

asking.ROWS_PER_CHUNK = asking.TURNS_PER_CHUNK = 16
n, how, write, written = int(sys.argv[1]), sys.argv[2], ResultFile.write, []

def killed(file, record):
    written.append(record)
    if len(written) < n:
        return write(file, record)
    if how == "in a line":
        file._stream.write(b'{"row": %d, "id": "u' % record["row"])
        file._stream.flush()
    os.kill(os.getpid(), signal.SIGKILL)

ResultFile.write = killed
main(sys.argv[3:])
"""


def text_of(number: int) -> str:
    if number % 17 == 0:
        return ""  # a bad row
    return f"She passed exam {number}." if number % 5 else "I was so happy when she called me!"


def records(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def save_classifier(folder: Path, seed: int) -> Path:
    """A classifier of the 32 emotions with random weights."""
    import torch

    from empatheia_research.understanding.labels.utterance_classifier import (
        PieceReader,
        UtteranceClassifier,
        UtteranceClassifierConfig,
        train_pieces,
    )

    pieces = train_pieces([text_of(number) for number in range(1, 40)], 120, 64)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    torch.manual_seed(seed)
    encoder = {"model_type": "bert", **sizes, "vocab_size": len(pieces), "max_position_embeddings": 64}
    config = UtteranceClassifierConfig(encoder_config=encoder, labels=EMOTIONS, max_pieces=64)
    model = UtteranceClassifier(config)
    with torch.no_grad():
        model.head[-1].weight.mul_(8)  # spread the answers of random weights
    model.save_pretrained(folder)
    PieceReader(pieces, config).save(folder)
    (folder / "empatheia.json").write_text(json.dumps({"format": 1, "name": "tiny emotions"}))
    return folder


@pytest.fixture(scope="module")
def classifier(tmp_path_factory) -> Path:
    return save_classifier(tmp_path_factory.mktemp("models") / "emotion", 0)


@pytest.fixture
def command(classifier, tmp_path, monkeypatch):
    """The command on ``u.jsonl``, in small chunks, without other models."""
    source = tmp_path / "u.jsonl"
    source.write_text("".join(f'{{"id": "u{i}", "text": "{text_of(i)}"}}\n' for i in range(1, N_ROWS + 1)))
    for name, value in (("MODELS", tmp_path / "models"), ("CACHE", tmp_path / "cache"), ("OFFLINE", "1")):
        monkeypatch.setenv(f"EMPATHEIA_{name}", str(value))
    monkeypatch.setattr("empatheia.cli.asking.ROWS_PER_CHUNK", CHUNK)
    monkeypatch.setattr("empatheia.cli.asking.TURNS_PER_CHUNK", CHUNK)
    return ("analyze", str(source), "--with", "emotion", "--model-for", f"emotion={classifier}")


def kill_at(n: int, how: str, arguments: tuple[str, ...]) -> None:
    ended = fresh.run(["-c", KILLED, str(n), how, *arguments])
    assert ended.returncode == -signal.SIGKILL, ended.stderr


@pytest.mark.slow
def test_killed_twice_and_resumed_the_rows_are_those_of_one_run(cli, command, tmp_path, monkeypatch):
    """Killed with rows that never left the process, then in the middle of a line (SIGKILL both times)."""
    from empatheia.listener.analyzer import Analyzer

    whole, out, partial = tmp_path / "whole.jsonl", tmp_path / "r.jsonl", tmp_path / "r.jsonl.partial"
    assert cli(*command, "--out", str(whole)).code == 0
    asked = (*command, "--out", str(out), "--resume")
    kill_at(36, "with rows in memory", asked)
    left = partial.read_bytes()
    n_first = left.count(b"\n")
    assert 2 * CHUNK <= n_first < 36 and not out.exists(), "finished chunks are in the file"
    kill_at(20, "in a line", asked)
    left = partial.read_bytes()
    n_done = left.count(b"\n")
    assert n_done == n_first + 19 and left.endswith(b'"id": "u') and not out.exists()

    analyze, n_read = Analyzer.analyze, []

    def counted(self, items, *arguments, **options):
        n_read.append(len(items))
        return analyze(self, items, *arguments, **options)

    monkeypatch.setattr(Analyzer, "analyze", counted)
    done = cli(*asked)
    assert done.code == 0 and f"continuing after row {n_done} of" in done.err and "90 rows, 5 bad" in done.err
    assert sum(n_read) == sum(bool(text_of(number)) for number in range(n_done + 1, N_ROWS + 1)), "done rows are kept"
    assert not list(tmp_path.glob("r.jsonl.*"))
    resumed, expected = records(out), records(whole)
    assert [row["id"] for row in resumed] == [f"u{number}" for number in range(1, N_ROWS + 1)]
    for row, own in zip(resumed, expected, strict=True):
        assert row.keys() == own.keys() and row.get("error") == own.get("error")
        if "emotion" in own:
            assert row["emotion"][0]["label"] == own["emotion"][0]["label"]
            chances = own["emotion"][0]["probabilities"]
            assert row["emotion"][0]["probabilities"] == pytest.approx(chances, abs=1e-6)


@pytest.fixture
def stopped(cli, command, tmp_path):
    """A run that ended after 36 rows; gives the command that resumes it, and its partial file."""
    out = tmp_path / "r.jsonl"
    write, written = ResultFile.write, []

    class Stopped(BaseException):
        """Stands for a kill: nothing of ours catches it."""

    def stop(file, record):
        if len(written) == 36:
            raise Stopped
        written.append(record)
        write(file, record)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ResultFile, "write", stop)
        with pytest.raises(Stopped):
            from empatheia.cli.asking import ask
            from empatheia.cli.options import AnalyzeOptions

            folder = command[-1].removeprefix("emotion=")
            options = AnalyzeOptions(parts="emotion", model_for=[f"emotion={folder}"], out=out, resume=True)
            ask([command[1]], options)
    assert len(records(tmp_path / "r.jsonl.partial")) == 36
    return (*command, "--out", str(out), "--resume"), tmp_path / "r.jsonl.partial"


@pytest.mark.parametrize(
    ("number", "line"),
    [
        (2, '{"id": "u2", "text": "Another text."}'),
        (3, '{"id": "other", "text": "She passed exam 3."}'),
        (17, '{"id": "u17", "text": "It was empty when it was read."}'),
        (18, '{"id": "u18", "text": ""}'),
        (36, '{"id": "u36", "turns": ["She passed exam 36.", "Well done."]}'),
    ],
)
def test_a_finished_row_that_has_changed_is_refused(cli, stopped, number, line):
    command, partial = stopped
    source = Path(command[1])
    lines = source.read_text().splitlines()
    source.write_text("\n".join([*lines[: number - 1], line, *lines[number:]]) + "\n")
    done = cli(*command)
    assert done.code == 1 and f"has 36 rows of another input (row {number} differs). Delete {partial}" in done.err
    assert len(records(partial)) == 36
    source.write_text("\n".join(lines) + "\n")
    assert cli(*command).code == 0


def test_an_input_that_has_become_shorter_is_refused(cli, stopped):
    command, _ = stopped
    source = Path(command[1])
    source.write_text("".join(f"{line}\n" for line in source.read_text().splitlines()[:30]))
    assert "has 36 rows of another input (row 31 differs)" in cli(*command).err


def test_a_doubled_row_is_refused(cli, stopped):
    command, partial = stopped
    lines = partial.read_text().splitlines()
    partial.write_text("".join(f"{line}\n" for line in [*lines[:20], *lines[19:]]))
    assert "(row 20 differs)" in cli(*command).err


def test_another_model_of_the_same_name_is_refused(cli, stopped, classifier, tmp_path):
    command, partial = stopped
    other = save_classifier(tmp_path / "other", 1)
    swapped = [word.replace(str(classifier), str(other)) for word in command]
    done = cli(*swapped)
    assert done.code == 1 and "made with other model files for emotion under the same name. Delete" in done.err
    assert len(records(partial)) == 36 and cli(*command).code == 0


def test_without_resume_it_starts_anew(cli, stopped):
    command, partial = stopped
    partial.write_text("nothing that can be read\n")
    done = cli(*command[:-1])
    assert done.code == 0 and "going on" not in done.err and "90 rows, 5 bad" in done.err
    assert not partial.exists() and not partial.with_name("r.jsonl.partial.models").exists()


def test_two_processes_do_not_write_to_one_file(cli, stopped):
    pytest.importorskip("fcntl")
    command, partial = stopped
    with ResultFile(Path(command[-2]), resume=True):
        for arguments in (command, command[:-1]):
            done = cli(*arguments)
            assert done.code == 1 and f"another process is writing to {partial}. Wait" in done.err
        assert len(records(partial)) == 36


def test_a_mark_tells_models_apart_and_copies_together(classifier, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        (folder / "config.json").write_text("{}")
        (folder / "model.safetensors").write_bytes(bytes(3_000_000))
        (folder / "README.md").write_text(f"in {folder.name}")
    assert model_mark(first) == model_mark(second) != model_mark(classifier)
    for start in (0, 1_400_000, 2_700_000):  # where a retrained tensor may lie
        changed = bytearray(3_000_000)
        changed[start : start + 300_000] = b"x" * 300_000
        (second / "model.safetensors").write_bytes(changed)
        assert model_mark(second) != model_mark(first)
    assert model_mark("no such model, only a name") == "no such model, only a name"


def test_progress_without_a_terminal_is_a_line_now_and_then(capsys, monkeypatch):
    clock = iter([0.0, 10.0, 40.0, 45.0, 3640.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with progress.progress_bar(100_000, 50_000) as advance:
        for n in (1000, 3000, 500, 1500):
            advance(n)
    assert capsys.readouterr().err.splitlines() == [
        "54,000 of 100,000 rows, 100 rows/s, 8 min left",
        "56,000 of 100,000 rows, 1.6 rows/s, 7 h 25 min left",
    ]
    for total, told in ((None, "62 rows, 2 rows/s\n"), (124, "62 of 124 rows, 2 rows/s, 31 s left\n")):
        clock = iter([0.0, 31.0])
        with progress.progress_bar(total, 0) as advance:
            advance(62)
        assert capsys.readouterr().err == told


def test_progress_on_a_terminal_shows_rate_and_time_left(monkeypatch):
    import io

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with progress.progress_bar(100, 40) as advance:
        for _ in range(4):
            advance(10)
    shown = terminal.getvalue()
    assert "40/100" in shown and "80/100" in shown and "rows/s" in shown
