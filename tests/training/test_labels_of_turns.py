"""Labels of one's own, one a turn: ESConv's strategies and any file of conversations, beside the commonest label."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from empatheia.errors import ConfigError, DataError
from empatheia.records.dialogue import Dialogue
from empatheia_research.corpora import CORPORA
from empatheia_research.recipes.recipe import load_recipe
from empatheia_research.training.tasks import make_task

OWN = [
    {"id": f"d{i}", "turns": [
        {"speaker": "Ana", "text": f"I lost key number {i}."},
        {"speaker": "Ben", "text": "Where was it?", "label": "ask"},
        {"speaker": "Ana", "text": f"In drawer {i}."},
        {"speaker": "Ben", "text": "You will find it.", "label": "soothe"},
        {"speaker": "Ben", "text": "Look again.", "label": "soothe"},
    ]}
    for i in range(40)
]  # fmt: skip


@pytest.fixture
def own(tmp_path):
    def write(rows):
        (file := tmp_path / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return file

    return write


def task_of(folder, *changes, name="esconv/next_strategy", size="smoke"):
    return make_task(load_recipe(name, size, changes), folder)


def of_file(file):
    return "data.corpus=labelled_turns", f"data.path={file}"


def test_a_file_of_ones_own_without_splits_is_cut_and_learnt(cli, own, tmp_path):
    changes = of_file(own(OWN))
    task = task_of(tmp_path / "run", *changes)
    items = {split: task.items(split) for split in ("train", "valid", "test")}
    assert task.labels == ("ask", "soothe")
    assert sum(map(len, items.values())) == 120 and all(len(found) >= 3 for found in items.values())
    first = items["train"][0]
    assert first.words.startswith("I lost key number") and task.labels[first.label] == "ask"
    ids = [{item.id.partition("/")[0] for item in found} for found in items.values()]
    assert not (ids[0] & ids[1] | ids[0] & ids[2] | ids[1] & ids[2])
    alone = task_of(tmp_path / "alone", *changes, "data.text=utterance")
    assert {item.words for item in alone.items("test")} == {"Where was it?", "You will find it.", "Look again."}


def test_a_run_is_measured_beside_the_commonest_label(cli, own, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sets = [word for change in of_file(own(OWN)) for word in ("--set", change)]
    done = cli("train", "esconv/next_strategy", "--size", "smoke", "--quiet", *sets)
    assert done.code == 0, done.err
    told = cli("evaluate", "runs/esconv/next_strategy/smoke-seed1024").out
    values = {line.split("  ")[1].strip(): line.split() for line in told.splitlines() if line.startswith("  ")}
    assert float(values["majority: accuracy"][2]) == pytest.approx(66.67)  # two of three turns soothe
    assert float(values["accuracy"][1]) > 90  # after one turn Ben asks, after more he soothes
    refused = cli("evaluate", "runs/esconv/next_strategy/smoke-seed1024", "--split", "valid")
    assert refused.code == 2 and "measured on test when it ended" in refused.err


@pytest.mark.parametrize(("changes", "error", "told"), [
    (["data.text=situation"], ConfigError, "data.text=situation with data.labels=turns; accepted: utterance"),
    (["data.corpus=labelled_turns"], ConfigError, "the path goes with labels=file or corpus=labelled_turns"),
    (["data.corpus=labelled_texts", "data.path=x"], ConfigError, "a corpus with labels of turns"),
])  # fmt: skip
def test_what_does_not_go_together(changes, error, told, tmp_path):
    with pytest.raises(error, match=told):
        task_of(tmp_path, *changes)


def test_files_that_hold_too_little(own, tmp_path):
    bare = [{**row, "turns": [{**turn, "label": ""} for turn in row["turns"]]} for row in OWN]
    with pytest.raises(DataError, match=r"too few labels \(none\); give two or more, each as \"label\" of its turn"):
        task_of(tmp_path / "a", *of_file(own(bare)))
    with pytest.raises(DataError, match="names no splits, and none of its 1 dialogues falls into"):
        task_of(tmp_path / "b", *of_file(own(OWN[:1])))
    marked = [{**row, "split": "valid" if i % 2 else "test"} for i, row in enumerate(OWN)]
    with pytest.raises(DataError, match=r"no dialogue of split 'train'; accepted: all, test, valid. Learn from one of"):
        task_of(tmp_path / "c", *of_file(own(marked)))


def test_an_emotion_that_is_none_of_the_32(tmp_path, monkeypatch):
    odd = replace(CORPORA.get("sample")("train"), dialogues=(Dialogue.of("I fell.", "Oh.", emotion="grumpy"),))
    monkeypatch.setattr("empatheia_research.corpora.sample.load", lambda split, root=None, strict=False: odd)
    with pytest.raises(DataError, match=r"emotion 'grumpy' of .* is none of the 32.* data.labels=turns"):
        task_of(tmp_path, "data.text=utterance", name="rashkin2018/fasttext").items("train")
