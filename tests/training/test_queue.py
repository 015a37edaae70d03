"""A queue of runs: in order, resumed after a kill with equal weights, nothing done twice, bad files told."""

import json
import shutil
import time
from pathlib import Path

import pytest

import fresh
from empatheia.errors import CheckpointError, ConfigError
from empatheia_research.pretrained import load_weights
from empatheia_research.recipes.queue import QueueEntry, queued_anew, read_queue
from empatheia_research.recipes.recipe import recipe_files
from empatheia_research.shipped import recipes_root
from empatheia_research.training.queue import QueuedRun, hours_left, standing, work

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


@pytest.fixture(scope="module")
def made_once(tmp_path_factory):
    """Folder in which all runs of the queue are made and recorded, and ``told.json``, the order they were told in."""
    folder, told = tmp_path_factory.mktemp("queue"), []
    (folder / "q.yaml").write_text(TEXT, encoding="utf-8")
    queue = read_queue(folder / "q.yaml")
    work(queue, folder / "results", folder / "runs", tell=lambda s: told.append(s.recipe), show_progress=False)
    (folder / "told.json").write_text(json.dumps(told), encoding="utf-8")
    return folder


@pytest.fixture
def made(made_once, tmp_path):
    """A copy of it that a test may break."""
    return Path(shutil.copytree(made_once, tmp_path / "made"))


def states(queue, folder):
    return [run.state for run in standing(queue, folder / "results", folder / "runs")]


def test_all_are_made_in_order_recorded_and_not_made_again(queue, made, tmp_path):
    assert states(queue, tmp_path / "nowhere") == ["waiting", "waiting"]
    assert json.loads((made / "told.json").read_text()) == ["gao2021/transformer", "moel/trs"]
    assert states(queue, made) == ["done", "done"]
    kept = {str(path): path.stat().st_mtime_ns for path in (made / "results").rglob("*-seed*.json")}
    assert len(kept) == 2
    assert work(queue, made / "results", made / "runs") == []
    assert kept == {str(path): path.stat().st_mtime_ns for path in (made / "results").rglob("*-seed*.json")}


def test_no_time_left_changes_nothing(queue, tmp_path):
    assert work(queue, tmp_path / "results", tmp_path / "runs", budget_minutes=0) == []
    assert states(queue, tmp_path) == ["waiting", "waiting"] and not (tmp_path / "runs").exists()


def test_a_finished_run_that_a_stop_kept_from_its_record_is_recorded(queue, made):
    (made / "results" / "moel" / "trs" / "smoke-seed3.json").unlink()
    assert states(queue, made) == ["done", "begun"]
    (status,) = work(queue, made / "results", made / "runs")
    assert status.state == "already finished" and states(queue, made) == ["done", "done"]


def test_a_record_of_an_older_recipe_does_not_count(queue, made):
    path = made / "results" / "moel" / "trs" / "smoke-seed3.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    record["environment"]["commit"] = "abc1234def"
    path.write_text(json.dumps(record), encoding="utf-8")
    older = queue.model_copy(update={"runs": (queue.runs[0], queue.runs[1].model_copy(update={"older": ("abc1234",)}))})
    assert states(older, made) == ["done", "begun"] and states(queue, made) == ["done", "done"]


def test_records_of_earlier_recipes_that_our_queue_makes_anew_are_known_as_such():
    """The estimator's p-values were one-sided, and soft gates were chosen by a summed cause loss."""
    record = {"recipe": "kim2021/estimator", "size": "cpu", "seed": 15, "environment": {"commit": "265ece70aa"}}
    assert queued_anew(record) and not queued_anew(record | {"environment": {"commit": "f" * 40}})
    assert not queued_anew(record | {"size": "full"}) and not queued_anew(record | {"recipe": "moel/trs"})
    assert queued_anew({**record, "recipe": "gao2021/soft", "seed": 1024, "environment": {"commit": "36a0e699"}})


def test_one_that_fails_does_not_stop_the_others(queue, tmp_path):
    place = tmp_path / "runs" / "gao2021" / "transformer"
    place.mkdir(parents=True)
    (place / "smoke-seed1024").write_text("a file where the run folder belongs", encoding="utf-8")
    statuses = work(queue, tmp_path / "results", tmp_path / "runs", show_progress=False)
    assert [status.state for status in statuses] == ["failed", "finished"]


def test_a_full_disk_while_a_record_is_kept_loses_nothing_and_doubles_nothing(queue, tmp_path, cli, monkeypatch):
    """What was trained stays, what is kept is whole, and the next call keeps the record."""
    results, runs = tmp_path / "results", tmp_path / "runs"
    one = queue.model_copy(update={"runs": queue.runs[:1]})

    def copied(source, target):
        Path(target).write_text("half", encoding="utf-8")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr("empatheia.writing.shutil.copyfile", copied)
        with pytest.raises(CheckpointError, match=r"cannot write .*curves.jsonl: No space left on device. Free some"):
            work(one, results, runs, show_progress=False)
    assert [path for path in results.rglob("*") if path.is_file()] == [] and states(one, tmp_path) == ["begun"]
    (status,) = work(one, results, runs, show_progress=False)
    assert status.state == "already finished" and states(one, tmp_path) == ["done"]
    assert len(list(results.rglob("*-seed*.json"))) == len(list(results.rglob("*.curves.jsonl"))) == 1


def test_a_run_that_lacks_something_is_skipped_with_one_line_and_the_others_go_on(tmp_path, cli, monkeypatch):
    monkeypatch.setenv("EMPATHEIA_DATA", str(tmp_path / "no data"))
    monkeypatch.setenv("EMPATHEIA_CACHE", str(tmp_path / "no cache"))
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "q.yaml"
    file.write_text(
        "runs:\n"
        "  - {recipe: cem/cem, size: cpu, hours: 1}\n"
        "  - {recipe: gao2021/moel, size: cpu, hours: 0.1}\n"  # reads imagine/moel, which lacks the corpus
        "  - {recipe: moel/trs, size: smoke, hours: 0.01}\n",
        encoding="utf-8",
    )
    done = cli("queue", "run", str(file), "--quiet")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0].startswith(
        "cem/cem cpu-seed42: skipped (needs corpus empathetic_dialogues; get it: empatheia data get"
    )
    assert "cache of inferences runs/knowledge/empathetic_dialogues.jsonl; get it: empatheia infer" in lines[0]
    assert lines[1].startswith("gao2021/moel cpu-seed1024: skipped (needs corpus empathetic_dialogues")
    assert lines[2].startswith("moel/trs smoke-seed") and "finished" in lines[2] and len(lines) == 3
    assert "1 of 3 runs are done; repeat the command to continue." in done.err
    assert "2 runs wait for corpus empathetic_dialogues: cem/cem cpu-seed42, gao2021/moel cpu-seed1024" in done.err
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["moel"]  # nothing of the others was tried
    shown = cli("queue", "status", str(file))
    assert "cem/cem cpu, seed 42: about 1 h; needs corpus empathetic_dialogues" in " ".join(shown.out.split())
    assert "1 done, 0 begun, 2 waiting; 2 of them cannot begin yet" in shown.out
    found = json.loads(cli("queue", "status", str(file), "--json").out)["runs"]
    assert {"what": "corpus empathetic_dialogues", "command": "empatheia data get empathetic_dialogues"} in found[0][
        "missing"
    ]
    assert found[2]["missing"] == []


def test_killed_and_called_again_it_ends_at_the_same_weights(queue_file, queue, made, tmp_path):
    folder = tmp_path / "killed"
    command = ["-m", "empatheia", "queue", "run", str(queue_file), "--quiet", "--threads", "1"]
    command += ["--results", str(folder / "results"), "--out", str(folder / "runs")]
    begun = folder / "runs" / "gao2021" / "transformer" / "smoke-seed1024" / "curves.jsonl"
    process = fresh.Fresh(command)
    while process.poll() is None and not begun.is_file():
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert not (begun.parent / "metrics.json").exists(), "the run ended before it was killed"
    assert not list(folder.glob("results/**/*-seed3.json")), "the kill came too late to mean anything"
    assert fresh.run(command).returncode == 0
    for name in ("gao2021/transformer/smoke-seed1024", "moel/trs/smoke-seed3"):
        one, other = (load_weights(p / "runs" / name / "checkpoint" / "model.safetensors") for p in (made, folder))
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


def test_a_damaged_record_is_told_and_its_run_made_again(queue, made):
    (made / "results" / "moel" / "trs" / "smoke-seed3.json").write_text('{"recipe": "moel/trs"', encoding="utf-8")
    assert states(queue, made) == ["done", "begun"]


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


def test_a_record_of_an_older_commit_does_not_count():
    entry = QueueEntry(recipe="gao2021/soft", hours=1, older=("abc12", "9f"))
    assert entry.is_older({"environment": {"commit": "abc1234567"}})
    assert not any(map(entry.is_older, ({"environment": {"commit": "bc12"}}, {"environment": None}, {})))
