"""A teacher's emotion distributions: written from a run, read back by the collator, learnt from."""

import json

import pytest
import tiny_training as bench
import torch
from safetensors import safe_open

from empatheia.errors import CheckpointError
from empatheia_research.recipes.recipe import load_recipe
from empatheia_research.training.runner import run
from empatheia_research.training.teacher_labels import (
    emotion_distributions,
    load_run,
    teacher_items,
    teacher_key,
    write_teacher,
)


@pytest.fixture(scope="module")
def taught(tmp_path_factory):
    """A finished tiny run."""
    return run(bench.tiny_recipe(), tmp_path_factory.mktemp("teacher"), show_progress=False)


@pytest.fixture(scope="module")
def file(taught, tmp_path_factory):
    task = load_run(taught.folder)
    items = teacher_items(task, ["train"])
    path = tmp_path_factory.mktemp("file") / "deep" / "teacher.safetensors"
    report = write_teacher(path, items, emotion_distributions(task, items, chunk=7), "tiny")
    assert report["distributions"] == len(items)
    return path


def test_every_context_and_situation_has_a_distribution(taught, file):
    task = load_run(taught.folder)
    items = teacher_items(task, ["train"])
    with safe_open(file, "pt") as opened:
        table = opened.get_tensor("probabilities").float()
        keys = json.loads(opened.metadata()["keys"])
    assert keys == [teacher_key(item) for item in items]
    assert len(set(keys)) == len(keys)
    assert any(key.endswith("#-1") for key in keys) and any(not key.endswith("#-1") for key in keys)
    torch.testing.assert_close(table.sum(-1), torch.ones(len(keys)), atol=2e-3, rtol=0)
    alone = emotion_distributions(task, items[-1:])
    torch.testing.assert_close(table[-1:], alone, atol=1e-3, rtol=0)


def test_no_reply_reaches_the_teacher(taught):
    items = teacher_items(load_run(taught.folder), ["train"])
    assert all(item.labels is None and item.cause_labels is None for item in items)


def test_a_student_learns_what_the_teacher_says(taught, tmp_path):
    items = teacher_items(load_run(taught.folder), ["train"])
    sure = torch.full((len(items), 32), 0.001)
    sure[:, 5] = 0.969  # the same for all: no gold label says so
    report = write_teacher(tmp_path / "teacher.safetensors", items, sure, "made up")
    losses = "stages.reasoner.losses={emotion_teacher: 1.0, emotion: 0.0}"
    overrides = [f"data.emotion_teacher={report['file']}", losses, "stages.reasoner.epochs=4"]
    recipe = load_recipe("recipes/default/listener.yaml", "smoke", overrides)
    recipe = recipe.model_copy(update={"stages": recipe.stages[:1]})
    status = run(recipe, tmp_path / "runs", show_progress=False, evaluate=False)
    rows = [json.loads(line) for line in (status.folder / "curves.jsonl").read_text().splitlines()]
    seen = [row["loss_emotion_teacher"] for row in rows if "loss_emotion_teacher" in row]
    assert seen[0] > 3.0 and seen[-1] < 1.5, seen


def test_a_folder_that_is_no_run_is_told(tmp_path):
    with pytest.raises(CheckpointError, match="is not a run folder with a finished stage"):
        load_run(tmp_path)


def test_the_command_writes_the_file(taught, cli, tmp_path):
    out = tmp_path / "e.safetensors"
    ended = cli(
        "annotate", str(taught.folder), "--what", "emotions", "--splits", "train", "--limit", "5", "--out", str(out)
    )
    assert ended.code == 0, ended
    assert json.loads(ended.out)["distributions"] == 5
    assert out.is_file() and not out.with_name(out.name + ".part").exists()
