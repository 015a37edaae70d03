"""What a training says before it begins: the size that is taken, the time of it, what is lacking, where it works."""

from __future__ import annotations

import json
import os
import shutil
from types import SimpleNamespace

import pytest
import tiny_training as bench
import torch

from empatheia.errors import ConfigError, MissingResourceError
from empatheia_research.devices import choose_device
from empatheia_research.recipes.recipe import load_recipe
from empatheia_research.training import stages, tracking
from empatheia_research.training.hours import passes, recorded_hours
from empatheia_research.training.prerequisites import check_before

SOFT = "gao2021/soft"


@pytest.fixture
def nothing_here(tmp_path, monkeypatch):
    for name in ("DATA", "CACHE", "MODELS"):
        monkeypatch.setenv(f"EMPATHEIA_{name}", str(tmp_path / name.lower()))
    monkeypatch.chdir(tmp_path)


def kept(folder, recipe, size, seconds, seed=1024):
    """A record that took so many seconds in each stage."""
    stages = {name: {"steps": 1, "seconds": {"total": value}} for name, value in seconds.items()}
    record = {"recipe": recipe, "size": size, "seed": seed, "metrics": {}, "stages": stages}
    (folder / recipe).mkdir(parents=True)
    (folder / recipe / f"{size}-seed{seed}.json").write_text(json.dumps(record))


def test_without_a_size_the_small_one_is_taken_and_the_published_one_told(cli, nothing_here):
    done = cli("train", SOFT)
    first, second = done.err.splitlines()
    assert first.startswith(f"{SOFT}: taking size cpu (4 + 4 passes, about ")
    assert "the published size, --size full: 25 + 80 passes, at least " in first and first.endswith(" h on one core.")
    assert done.code == 3 and second.startswith(f"error: {SOFT} at size cpu needs what is not here: corpus ")


def test_a_recipe_that_says_its_size_or_has_only_one_keeps_it(cli, nothing_here, tmp_path):
    (tmp_path / "mine.yaml").write_text(load_recipe(SOFT, size="full").dump())  # as in a run folder: size: full
    done = cli("train", "mine.yaml")
    assert "taking size" not in done.err and "at size full needs" in done.err


def test_hours_are_those_of_the_record_times_the_passes(tmp_path):
    kept(tmp_path, SOFT, "cpu", {"reasoner": 400.0, "joint": 800.0})
    full = load_recipe(SOFT, size="full")  # 25 and 80 passes, 4 and 4 in the record
    assert recorded_hours(full, SOFT, tmp_path) == pytest.approx((400 * 25 / 4 + 800 * 80 / 4) / 3600)
    assert recorded_hours(load_recipe(SOFT, size="cpu"), SOFT, tmp_path) == pytest.approx(1200 / 3600)
    like = load_recipe("gao2021/hard", size="cpu")  # the same system with the same stages
    assert recorded_hours(like, "gao2021/hard", tmp_path) == pytest.approx(1200 / 3600)
    other = load_recipe("cem/cem", size="cpu")
    assert recorded_hours(other, "cem/cem", tmp_path) is None
    assert passes(full) == "25 + 80 passes" and passes(load_recipe("kim2021/focus_soft")) == "no training"


def test_what_an_earlier_recipe_of_the_list_makes_is_not_lacking(nothing_here, tmp_path, monkeypatch):
    first = load_recipe("rashkin2018/fasttext", "smoke", seed=1024)
    change = [f"data.prepend.classifier=runs/{first.name}/smoke-seed1024/checkpoint"]
    second = load_recipe("rashkin2018/retrieval_emoprepend1", "smoke", change)
    assert check_before([first, second], tmp_path / "runs") == {}
    assert set(check_before([second, first], tmp_path / "runs")) == {0}
    assert set(check_before([first, second], tmp_path / "elsewhere")) == {1}  # nobody looks there
    with pytest.raises(MissingResourceError, match="get it: empatheia train rashkin2018/fasttext --size smoke --seed"):
        check_before([second], tmp_path / "runs")


def test_a_full_disk_is_told_and_a_finished_run_needs_nothing(nothing_here, tmp_path, monkeypatch):
    recipe = load_recipe(SOFT, size="smoke")
    monkeypatch.setattr(shutil, "disk_usage", lambda place: SimpleNamespace(free=3_000_000))
    with pytest.raises(MissingResourceError, match=r"3 MB are free, a run of size smoke may write 64 MB; get it: free"):
        check_before([recipe], tmp_path / "runs")
    (done := tmp_path / "runs" / SOFT / "smoke-seed1024").mkdir(parents=True)
    (done / "metrics.json").write_text("{}")
    assert check_before([recipe], tmp_path / "runs") == {}


def test_a_list_trains_what_can_be_trained(cli, nothing_here, tmp_path):
    (tmp_path / "lacks.yaml").write_text(load_recipe("cem/cem", "smoke", ["tokenizer.vectors=none.txt"]).dump())
    done = cli("train", "lacks.yaml", "rashkin2018/fasttext", "--size", "smoke", "--no-evaluate", "--quiet", "--json")
    rows = json.loads(done.out)
    assert [(row["recipe"], row["state"]) for row in rows] == [
        ("cem/cem", "failed"),
        ("rashkin2018/fasttext", "finished"),
    ]
    assert "file none.txt; get it: put it there" in rows[0]["error"] and done.code == 1
    assert done.err.startswith("left out: cem/cem at size smoke needs what is not here: ")


@pytest.mark.parametrize(("name", "told"), [
    ("gpu", "unknown device 'gpu'; accepted: cpu, cuda, cuda:N"),
    ("cuda:9", r"device 'cuda:9': torch .* sees 2 CUDA cards here; accepted here: cpu, cuda:0, cuda:1, auto"),
    ("mps", "device 'mps': torch sees no Apple GPU"),
])  # fmt: skip
def test_devices_that_are_not_there(name, told, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(ConfigError, match=told):
        choose_device(name)


@pytest.mark.parametrize(("name", "seen", "processes", "chosen", "visible"), [
    ("auto", "0,1", "1", "auto", "0,1"), ("cpu", "0,1", "1", "cpu", ""), ("cuda", None, "1", "cuda", "0"),
    ("cuda:1", None, "1", "cuda", "1"), ("cuda:1", "4,7", "1", "cuda", "7"), ("cuda", "4,7", "2", "cuda", "4,7"),
])  # fmt: skip
def test_other_cards_are_hidden(name, seen, processes, chosen, visible, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv("WORLD_SIZE", processes)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", seen or "")
    assert choose_device(name) == chosen and os.environ["CUDA_VISIBLE_DEVICES"] == visible


def test_a_tracker_gets_every_stage(tmp_path, monkeypatch):
    """The callback that a tracker stands for is told what curves.jsonl is told."""
    from transformers import TrainerCallback

    seen = []

    class Board(TrainerCallback):
        def on_log(self, args, state, control, logs=None, **_):
            seen.append((state.global_step, logs))

    asked = []
    monkeypatch.setattr(stages, "tracker", lambda *words: asked.append(words) or [Board()])
    bench.train(tmp_path, track="tensorboard")
    assert asked == [("tensorboard", tmp_path, "train")]
    values = [(step, logs["loss"]) for step, logs in seen if "loss" in logs]
    assert values == bench.curve(tmp_path, "loss")


def test_no_tracker_is_no_callback(tmp_path):
    assert tracking.tracker("none", tmp_path, "joint") == []
