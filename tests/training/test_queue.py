"""A queue of runs: in order, resumed after a kill with equal weights, nothing done twice, bad files told."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from empatheia.config.queue import QueueEntry, read_queue
from empatheia.config.recipe import recipe_files, recipes_root
from empatheia.errors import ConfigError
from empatheia.resources import load_weights
from empatheia.training.queue import QueuedRun, hours_left, standing, work

ROOT = Path(__file__).resolve().parents[2]
TEXT = """
runs:
  - {recipe: gao2021/transformer, size: smoke, hours: 0.01}
  - {recipe: moel/trs, size: smoke, seed: 3, hours: 0.02}
"""


@pytest.fixture
def queue_file(tmp_path):
    path = tmp_path / "q.yaml"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.fixture
def queue(queue_file):
    return read_queue(queue_file)


def states(queue, folder):
    return [run.state for run in standing(queue, folder / "results", folder / "runs")]


def test_all_are_made_in_order_recorded_and_not_made_again(queue, tmp_path):
    told = []
    assert states(queue, tmp_path) == ["waiting", "waiting"]
    work(queue, tmp_path / "results", tmp_path / "runs", tell=lambda s: told.append(s.recipe), show_progress=False)
    assert told == ["gao2021/transformer", "moel/trs"] and states(queue, tmp_path) == ["done", "done"]
    kept = {str(path): path.stat().st_mtime_ns for path in (tmp_path / "results").rglob("*-seed*.json")}
    assert len(kept) == 2
    assert work(queue, tmp_path / "results", tmp_path / "runs") == []
    assert kept == {str(path): path.stat().st_mtime_ns for path in (tmp_path / "results").rglob("*-seed*.json")}


def test_no_time_left_changes_nothing(queue, tmp_path):
    assert work(queue, tmp_path / "results", tmp_path / "runs", budget_minutes=0) == []
    assert states(queue, tmp_path) == ["waiting", "waiting"] and not (tmp_path / "runs").exists()


def test_a_finished_run_that_a_stop_kept_from_its_record_is_recorded(queue, tmp_path):
    work(queue, tmp_path / "results", tmp_path / "runs", show_progress=False)
    (tmp_path / "results" / "moel" / "trs" / "smoke-seed3.json").unlink()
    assert states(queue, tmp_path) == ["done", "begun"]
    (status,) = work(queue, tmp_path / "results", tmp_path / "runs")
    assert status.state == "already finished" and states(queue, tmp_path) == ["done", "done"]


def test_a_record_of_an_older_recipe_does_not_count(queue, tmp_path):
    work(queue, tmp_path / "results", tmp_path / "runs", show_progress=False)
    path = tmp_path / "results" / "moel" / "trs" / "smoke-seed3.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    record["environment"]["commit"] = "abc1234def"
    path.write_text(json.dumps(record), encoding="utf-8")
    older = queue.model_copy(update={"runs": (queue.runs[0], queue.runs[1].model_copy(update={"older": ("abc1234",)}))})
    assert states(older, tmp_path) == ["done", "begun"] and states(queue, tmp_path) == ["done", "done"]


def test_one_that_fails_does_not_stop_the_others(queue, tmp_path):
    place = tmp_path / "runs" / "gao2021" / "transformer"
    place.mkdir(parents=True)
    (place / "smoke-seed1024").write_text("a file where the run folder belongs", encoding="utf-8")
    statuses = work(queue, tmp_path / "results", tmp_path / "runs", show_progress=False)
    assert [status.state for status in statuses] == ["failed", "finished"]


def test_killed_and_called_again_it_ends_at_the_same_weights(queue_file, queue, tmp_path):
    whole = tmp_path / "whole"
    work(queue, whole / "results", whole / "runs", show_progress=False)
    folder = tmp_path / "killed"
    command = [sys.executable, "-m", "empatheia", "queue", "run", str(queue_file), "--quiet", "--threads", "1"]
    command += ["--results", str(folder / "results"), "--out", str(folder / "runs")]
    begun = folder / "runs" / "gao2021" / "transformer" / "smoke-seed1024" / "curves.jsonl"
    process = subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"})
    while process.poll() is None and not begun.is_file():
        time.sleep(0.02)
    if process.poll() is None:
        os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not list(folder.glob("results/**/*-seed3.json")), "the kill came too late to mean anything"
    assert subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False).returncode == 0
    for name in ("gao2021/transformer/smoke-seed1024", "moel/trs/smoke-seed3"):
        one, other = (load_weights(p / "runs" / name / "checkpoint" / "model.safetensors") for p in (whole, folder))
        assert one.keys() == other.keys() and all(one[key].equal(other[key]) for key in one)
    assert states(queue, folder) == ["done", "done"]


def test_hours_left_follow_the_measured_rate(queue):
    first, second = queue.runs
    runs = [QueuedRun(first, first.load(), "done", 72.0), QueuedRun(second, second.load(), "waiting")]
    assert hours_left(runs) == pytest.approx(0.04)  # twice as slow as thought
    assert hours_left([QueuedRun(second, second.load(), "begun")]) == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("runs: [{recipe: gao2021/sofd, hours: 1}]", r"q\.yaml, run 1: no recipe at 'gao2021/sofd'.*gao2021/soft"),
        ("runs: [{recipe: gao2021/soft, size: cpus, hours: 1}]", r"unknown size.*Did you mean 'cpu'"),
        ("runs: [{recipe: gao2021/soft, hours: 0}]", r"runs.*hours"),
        ("runs: [{recipe: gao2021/soft, hour: 1}]", r"hour"),
        ("runs: []", r"runs"),
        ("[1]", r"q\.yaml"),
    ],
)
def test_a_bad_queue_is_told(tmp_path, text, message):
    path = tmp_path / "q.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        read_queue(path)


def test_a_damaged_record_is_told_and_its_run_made_again(queue, tmp_path):
    work(queue, tmp_path / "results", tmp_path / "runs", show_progress=False)
    (tmp_path / "results" / "moel" / "trs" / "smoke-seed3.json").write_text('{"recipe": "moel/trs"', encoding="utf-8")
    assert states(queue, tmp_path) == ["done", "begun"]


def test_the_shipped_queue_holds_no_run_twice_and_is_no_recipe():
    queue = read_queue(ROOT / "recipes" / "queue.yaml")
    keys = [(entry.recipe, entry.size, entry.load().seed) for entry in queue.runs]
    assert len(keys) == len(set(keys)) > 60
    assert all(path.name != "queue.yaml" for path in recipe_files(recipes_root()))
    assert isinstance(queue.runs[0], QueueEntry)


def test_the_command_says_where_it_stands(cli, queue_file, tmp_path):
    folders = ["--results", str(tmp_path / "results"), "--out", str(tmp_path / "runs")]
    shown = cli("queue", "status", str(queue_file), *folders)
    assert "waiting gao2021/transformer smoke, seed 1024: about 0.01 h" in " ".join(shown.out.split())
    assert "0 done, 0 begun, 2 waiting; 0.0 hours left" in shown.out
    record = json.loads(cli("queue", "status", str(queue_file), *folders, "--json").out)
    assert record["hours_left"] == 0.03 and [run["state"] for run in record["runs"]] == ["waiting", "waiting"]
    assert cli("queue", "run", str(queue_file), *folders, "--budget", "0").code == 0
