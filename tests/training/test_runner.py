"""The runner: what a run folder holds, and that no kill, pause or full disk changes what a run ends with."""

import json
import os
import resource
import shutil
import signal
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import tiny_training as bench
import torch
from safetensors.torch import load_file

import fresh
from empatheia.errors import CheckpointError, ConfigError
from empatheia.writing import hold_folder, save_folder, write_atomically
from empatheia_research.recipes.recipe import load_recipe
from empatheia_research.reports.results_page import keep
from empatheia_research.responders import RESPONDERS
from empatheia_research.text.tokenizer import DialogueTokenizer
from empatheia_research.training import runner, trainer
from empatheia_research.training.runner import run, run_all, run_folder
from empatheia_research.training.trainer import MARKER


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nobody disturbed."""
    status = run(bench.tiny_recipe(), tmp_path_factory.mktemp("whole"), show_progress=False)
    assert status.state == "finished"
    return status


def results(status):
    """What must not depend on pauses: steps and validation losses by stage, the curves, the data, the scores."""
    rows = [json.loads(line) for line in (status.folder / "curves.jsonl").read_text().splitlines()]
    record = json.loads((status.folder / "metrics.json").read_text())
    stages = {name: (facts["steps"], facts["valid"]) for name, facts in record["stages"].items()}
    record["metrics"].get("decoding", {}).pop("replies_per_second", None)
    return {"rows": rows, "stages": stages, "data": record["data"], "metrics": record["metrics"]}


def checkpoints(folder, stage="joint"):
    return sorted(path.name for path in (folder / "checkpoints" / stage).glob("*"))


@contextmanager
def pause_at(stage_step):
    """The deadline comes at this step of the second stage."""
    original = trainer.RunClock.on_step_end

    def on_step_end(self, args, state, control, **kwargs):
        is_there = args.output_dir.endswith("joint") and state.global_step == stage_step
        self.deadline = 0.0 if is_there else None
        return original(self, args, state, control, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer.RunClock, "on_step_end", on_step_end)
        yield


# -- the run folder ------------------------------------------------------------------------------------------


def test_the_run_folder(whole):
    folder = whole.folder
    assert folder.parts[-2:] == ("tiny", "smoke-seed7")
    assert sorted(path.name for path in folder.iterdir()) == [
        "checkpoint", "checkpoints", "curves.jsonl", "environment.json", "metrics.json", "outputs.jsonl",
        "recipe.yaml", "stages", "state.json", "tokenizer",
    ]  # fmt: skip
    assert list(folder.rglob("*.part")) == [] and list((folder / "checkpoints").iterdir()) == []
    assert [path.name for path in (folder / "stages").iterdir()] == ["joint"]
    assert load_recipe(folder / "recipe.yaml") == bench.tiny_recipe()
    environment = json.loads((folder / "environment.json").read_text())
    assert {"python", "packages", "device", "threads", "commit"} <= set(environment)
    assert environment["processes"] == 1
    assert environment["packages"]["torch"] == torch.__version__


def test_the_record(whole):
    record = json.loads((whole.folder / "metrics.json").read_text())
    assert record == whole.metrics
    assert (record["recipe"], record["size"], record["seed"]) == ("tiny", "smoke", 7)
    assert {name: facts["steps"] for name, facts in record["stages"].items()} == {"reasoner": 6, "joint": 20}
    assert set(record["stages"]["joint"]["valid"]) == {"eval_words", "eval_emotion", "eval_cause", "eval_loss"}
    seconds = [facts["seconds"]["total"] for facts in record["stages"].values()]
    assert record["training_seconds"] == pytest.approx(sum(seconds), abs=0.06) and min(seconds) > 0
    assert record["measuring_seconds"] > 0
    assert set(record["data"]) == {"reasoner", "joint"}
    assert all(facts["train"] > 30 and len(facts["checksum"]) == 16 for facts in record["data"].values())
    assert {"ppl_word", "ppl_token", "accuracy", "decoding"} <= set(record["metrics"])
    outputs = [json.loads(line) for line in (whole.folder / "outputs.jsonl").read_text().splitlines()]
    assert len(outputs) == record["metrics"]["decoding"]["replies"] and set(outputs[0]) >= {"id", "hyp", "ref"}


def test_the_curves(whole):
    rows = results(whole)["rows"]
    steps = {name: [r["step"] for r in rows if r["stage"] == name and "loss" in r] for name in ("reasoner", "joint")}
    assert steps == {"reasoner": list(range(1, 7)), "joint": list(range(1, 21))}
    assert all({"loss_emotion", "loss_cause"} <= set(row) for row in rows if "loss" in row)
    assert sum("eval_words" in row for row in rows) > 2


def test_the_model_folder_loads(whole):
    folder = whole.folder / "checkpoint"
    model = RESPONDERS.get("cause_gated").from_pretrained(folder)
    assert len(DialogueTokenizer.from_pretrained(folder)) <= model.config.vocab_size
    assert json.loads((folder / "empatheia.json").read_text())["system"] == "cause_gated"
    assert sum(p.numel() for p in model.parameters()) == whole.metrics["parameters"]


def test_a_finished_run_is_not_run_again(whole, monkeypatch):
    monkeypatch.setattr(runner, "run_stage", None)
    (status,) = run_all([bench.tiny_recipe()], whole.folder.parents[1])
    assert status.state == "already finished" and status.metrics == whole.metrics


def test_a_misspelt_setting_leaves_no_folder_that_refuses_the_mended_one(tmp_path):
    recipe = bench.tiny_recipe(name="typo", stages=())
    wrong = recipe.model_copy(update={"model": {**recipe.model, "gaet": "hard"}})
    with pytest.raises(ConfigError, match="gaet"):
        run_all([wrong], tmp_path)
    assert not list(tmp_path.glob("typo/*"))
    (status,) = run_all([recipe], tmp_path, evaluate=False)
    assert status.is_finished


def test_the_record_and_the_page_tell_what_was_overridden(whole, tmp_path):
    """Two runs of one name, one of them changed on the command line, must not look alike."""
    recipe = bench.tiny_recipe(name="again", start=str(whole.folder), stages=(), seed=8, note="Small.")
    recipe = recipe.model_copy(update={"overrides": ("decoding.max_new_tokens=5",)})
    (status,) = run_all([recipe], tmp_path / "runs")
    assert status.metrics["overrides"] == ["decoding.max_new_tokens=5"]
    assert status.metrics["note"] == "Small. Changed by --set: decoding.max_new_tokens=5."
    keep(status.folder, tmp_path / "results")
    assert "again/smoke-seed8.json) `decoding.max_new_tokens=5`" in (tmp_path / "results" / "README.md").read_text()
    assert whole.metrics["overrides"] == []
    (status,) = run_all([recipe.model_copy(update={"overrides": ()})], tmp_path / "runs")  # told by the fields alone
    assert status.state == "already finished" and "Changed by --set" in status.metrics["note"]


def test_a_run_that_was_not_measured_is_measured_by_the_next_call(whole, tmp_path, monkeypatch):
    recipe = bench.tiny_recipe()
    shutil.copytree(whole.folder, tmp_path / "runs" / "tiny" / whole.folder.name)
    folder = tmp_path / "runs" / "tiny" / whole.folder.name
    (folder / "metrics.json").unlink()
    monkeypatch.setattr(runner, "run_stage", None)  # nothing is trained
    (status,) = run_all([recipe], tmp_path / "runs", evaluate=False)
    assert (status.state, status.metrics["metrics"]) == ("finished", {})
    (status,) = run_all([recipe], tmp_path / "runs", evaluate=False)
    assert status.state == "already finished"
    monkeypatch.setattr(runner, "environment", lambda: {"device": "another"})
    (status,) = run_all([recipe], tmp_path / "runs")
    assert status.state == "finished" and status.metrics["environment"] == whole.metrics["environment"]
    assert status.metrics["metrics"]["ppl_word"] == whole.metrics["metrics"]["ppl_word"]


def test_the_weights_of_another_run_are_measured_as_they_are(whole, tmp_path):
    """What decodes one system's weights in another way trains nothing, and says whose weights they are."""
    recipe = bench.tiny_recipe(name="again", start=str(whole.folder), stages=(), seed=8)
    (status,) = run_all([recipe], tmp_path)
    ours, theirs = status.metrics, whole.metrics
    assert ours["metrics"]["ppl_token"] == theirs["metrics"]["ppl_token"] and ours["training_seconds"] == 0.0
    assert {key: ours["start"][key] for key in ("recipe", "seed", "training_seconds")} == {
        key: theirs[key] for key in ("recipe", "seed", "training_seconds")
    }
    weights = [load_file(folder / "checkpoint" / "model.safetensors") for folder in (status.folder, whole.folder)]
    assert weights[0].keys() == weights[1].keys() and all(torch.equal(w, weights[1][n]) for n, w in weights[0].items())


def test_note_and_printed_row_may_be_written_after_the_run(whole, monkeypatch):
    monkeypatch.setattr(runner, "run_stage", None)
    row = {"paper": "gao2021", "table": "Table 4", "row": "Ours(Soft) w/o ec"}
    (status,) = run_all([bench.tiny_recipe(published=row, note="other")], whole.folder.parents[1])
    assert status.state == "already finished" and status.metrics["note"] == "other"
    kept = json.loads((whole.folder / "metrics.json").read_text())
    assert kept == {**whole.metrics, "note": "other"}
    run_all([bench.tiny_recipe()], whole.folder.parents[1])


def test_a_changed_recipe_needs_another_folder(whole):
    changed = bench.tiny_recipe(decoding={"strategy": "greedy", "max_new_tokens": 3})
    with pytest.raises(ConfigError, match="holds a run of another version of this recipe; delete it, or choose"):
        run(changed, whole.folder.parents[1])
    assert run_folder(Path("out"), bench.tiny_recipe(seed=8)) == Path("out/tiny/smoke-seed8")


# -- stopped and taken up ------------------------------------------------------------------------------------


def test_no_budget_starts_nothing(tmp_path):
    recipes = [bench.tiny_recipe(), bench.tiny_recipe(seed=8)]
    statuses = run_all(recipes, tmp_path, budget_minutes=0.0)
    assert [status.state for status in statuses] == ["not started"] * 2 and not list(tmp_path.iterdir())


def test_a_paused_run_goes_on(whole, tmp_path):
    recipe = bench.tiny_recipe()
    assert run(recipe, tmp_path, deadline=0.0).state == "paused"  # before its first stage
    with pause_at(10):  # a step that is validated
        status = run(recipe, tmp_path, show_progress=False)
    assert status.state == "paused" and "checkpoint-10" in checkpoints(status.folder)
    assert not (status.folder / "metrics.json").exists()
    status = run(recipe, tmp_path, show_progress=False)
    assert status.state == "finished" and results(status) == results(whole)


def test_a_run_that_another_process_is_at_is_left_alone(whole, tmp_path):
    pytest.importorskip("fcntl")
    assert run(bench.tiny_recipe(), tmp_path, deadline=0.0).state == "paused"
    before = {path.name: path.read_bytes() for path in run_folder(tmp_path, bench.tiny_recipe()).glob("*.*")}
    told = pytest.raises(ConfigError, match=r"another process is at work in .*smoke-seed7\. Wait for it")
    with hold_folder(run_folder(tmp_path, bench.tiny_recipe()), ConfigError("held")), told:
        run(bench.tiny_recipe(), tmp_path)
    assert {path.name: path.read_bytes() for path in run_folder(tmp_path, bench.tiny_recipe()).glob("*.*")} == before
    assert run(bench.tiny_recipe(), tmp_path, deadline=0.0).state == "paused"


KILLED = """
import sys, time
from pathlib import Path
import torch
from safetensors.torch import load_file
import tiny_training as bench
from empatheia_research.training import trainer
from empatheia_research.training.runner import run
torch.set_num_threads(int(sys.argv[2]))
plain = trainer.RunClock.on_save
trainer.RunClock.on_save = lambda *args, **kwargs: (plain(*args, **kwargs), time.sleep(0.05))[0]
run(bench.tiny_recipe(), Path(sys.argv[1]), save_seconds=0.0, show_progress=False)
"""


@pytest.mark.slow
def test_a_killed_run_ends_as_if_it_had_not_been(whole, tmp_path):
    folder = run_folder(tmp_path, bench.tiny_recipe())
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    command = ["-c", KILLED, str(tmp_path), str(torch.get_num_threads())]
    process = fresh.Fresh(command, env=os.environ | {"PYTHONPATH": paths})
    while not any(folder.glob(f"checkpoints/joint/checkpoint-*/{MARKER}")):
        assert process.poll() is None, "the run ended before it could be killed"
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (folder / "metrics.json").exists() and json.loads((folder / "state.json").read_text())["stages"]
    status = run(bench.tiny_recipe(), tmp_path, show_progress=False)
    assert status.state == "finished"
    disturbed, plain = results(status), results(whole)
    assert disturbed == plain
    assert disturbed["stages"]["joint"][1] == plain["stages"]["joint"][1]
    assert [r["loss"] for r in disturbed["rows"] if "loss" in r][-1] == [
        r["loss"] for r in plain["rows"] if "loss" in r
    ][-1]


@pytest.mark.parametrize("has_older", [False, True])
def test_a_kill_while_a_checkpoint_is_written(whole, tmp_path, has_older):
    with pause_at(7):
        status = run(bench.tiny_recipe(), tmp_path, show_progress=False)
    place = status.folder / "checkpoints" / "joint"
    broken = complete = place / "checkpoint-7"
    if has_older:
        broken = Path(shutil.copytree(complete, place / "checkpoint-9"))
    (broken / MARKER).unlink()
    (broken / "optimizer.pt").write_bytes(b"half")
    status = run(bench.tiny_recipe(), tmp_path, show_progress=False, evaluate=False)
    expected = results(whole) | {"metrics": {}}
    assert results(status) == expected


def test_a_kill_before_a_finished_stage_is_recorded(whole, tmp_path, monkeypatch):
    def killed(folder, save):
        if folder.name == "joint":
            raise KeyboardInterrupt
        save_folder(folder, save)

    monkeypatch.setattr(runner, "save_folder", killed)
    with pytest.raises(KeyboardInterrupt):
        run(bench.tiny_recipe(), tmp_path, show_progress=False)
    folder = run_folder(tmp_path, bench.tiny_recipe())
    assert list(json.loads((folder / "state.json").read_text())["stages"]) == ["reasoner"]
    assert checkpoints(folder) != [], "the stage's work must not be lost"
    monkeypatch.undo()
    status = run(bench.tiny_recipe(), tmp_path, show_progress=False, evaluate=False)
    assert results(status)["stages"] == results(whole)["stages"]


@pytest.mark.parametrize("n_recipes", [1, 2])
def test_a_training_that_diverges_fails_the_command(cli, tmp_path, n_recipes):
    files = []
    for number in range(n_recipes):
        files.append(tmp_path / f"{number}.yaml")
        files[-1].write_text(bench.tiny_recipe(name=f"tiny{number}").dump())
    change = ("--set", "stages.reasoner.learning_rate=1e39", "--out", str(tmp_path / "runs"), "--quiet")
    done = cli("train", *map(str, files), *change)
    assert done.code == 1 and "stopped: NaN or infinite" in done.out + done.err
    assert "unexpected" not in done.err and not list(tmp_path.rglob("metrics.json"))


def test_what_a_kill_left_of_finished_stages_is_removed(whole, tmp_path):
    folder = Path(shutil.copytree(whole.folder, run_folder(tmp_path, bench.tiny_recipe())))
    (folder / "metrics.json").unlink()
    for litter in ("checkpoints/joint/checkpoint-7", "checkpoints/reasoner/checkpoint-6", "stages/reasoner"):
        (folder / litter).mkdir(parents=True)
        (folder / litter / "model.safetensors").write_bytes(b"old")
    assert run(bench.tiny_recipe(), tmp_path, show_progress=False, evaluate=False).state == "finished"
    assert list((folder / "checkpoints").iterdir()) == []
    assert [path.name for path in (folder / "stages").iterdir()] == ["joint"]


# -- full disks ----------------------------------------------------------------------------------------------


@contextmanager
def no_file_over(n_bytes):
    """Files cannot grow further, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def leftovers(folder):
    return [path.name for path in folder.rglob("*.part")]


def test_a_full_disk_while_a_checkpoint_is_written(tmp_path):
    with pause_at(1):
        status = run(bench.tiny_recipe(), tmp_path, show_progress=False)
    place = status.folder / "checkpoints" / "joint"
    (before,) = place.glob("*")
    with (
        no_file_over(9000),
        pytest.raises(CheckpointError, match=r"cannot write .*checkpoint-2: .* Free some") as caught,
    ):
        run(bench.tiny_recipe(), tmp_path, save_seconds=0.0, show_progress=False)
    assert "\n" not in str(caught.value) and list(place.glob("*")) == [before]


def test_a_full_disk_before_the_first_step(tmp_path):
    with no_file_over(2000), pytest.raises(CheckpointError, match=r"cannot write .*tokenizer: ") as caught:
        run(bench.tiny_recipe(), tmp_path, show_progress=False)
    assert "\n" not in str(caught.value) and leftovers(tmp_path) == []
    assert not (run_folder(tmp_path, bench.tiny_recipe()) / "tokenizer").exists()


def test_a_full_disk_while_weights_are_saved(tmp_path):
    model = bench.make_model()
    save_folder(tmp_path / "model", model.save_pretrained)
    old = (tmp_path / "model" / "model.safetensors").read_bytes()
    for save in (model.save_pretrained, lambda folder: torch.save(model.state_dict(), folder / "weights.pt")):
        with no_file_over(3000), pytest.raises(CheckpointError, match=r"cannot write .*model: ") as caught:
            save_folder(tmp_path / "model", save)
        assert "\n" not in str(caught.value) and leftovers(tmp_path) == []
        assert (tmp_path / "model" / "model.safetensors").read_bytes() == old


def test_a_full_disk_while_a_text_is_written(tmp_path):
    write_atomically(tmp_path / "a.json", "old")
    with no_file_over(100), pytest.raises(CheckpointError, match=r"cannot write .*a.json: File too large. Free some"):
        write_atomically(tmp_path / "a.json", "x" * 1000)
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"] and (tmp_path / "a.json").read_text() == "old"


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match=r"cannot write .*model: Not a directory"):
        save_folder(tmp_path / "file" / "model", lambda folder: None)


def test_one_recipe_that_fails_does_not_stop_the_others(tmp_path, capsys):
    bad = bench.tiny_recipe(name="tiny/bad", data={"corpus": "sample", "causes": "annotator"})
    statuses = run_all([bad, bench.tiny_recipe()], tmp_path, show_progress=False, evaluate=False)
    assert [status.state for status in statuses] == ["failed", "finished"]
    assert statuses[0].error == "recipe 'tiny/bad': data.causes=annotator needs data.causes_path."
    with pytest.raises(ConfigError, match=r"needs data\.causes_path"):
        run_all([bad], tmp_path, show_progress=False)
