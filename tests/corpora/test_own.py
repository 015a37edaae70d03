"""Conversations of one's own in JSON lines, with labels of one's own."""

from __future__ import annotations

import json

import pytest

from empatheia.errors import ConfigError, DataError, MissingResourceError
from empatheia_research.corpora import CORPORA, own
from empatheia_research.recipes.recipe import load_recipe
from empatheia_research.training import corpus_labels
from empatheia_research.training.runner import run

LINES = [
    {"turns": ["They moved my desk to the basement.", "Why?", "Nobody told me."], "emotion": "annoyed", "id": "desk"},
    {
        "turns": [
            {"speaker": "Ana", "text": "My neighbour fixed my bike."},
            {"speaker": "Ana", "text": "Without my asking!"},
            {"speaker": "Ben", "text": "How kind."},
        ],
        "emotion": "Thankful",
        "situation": "A bike.",
    },
    {"messages": [{"role": "user", "content": "I am tired."}, {"role": "assistant", "content": "Since when?"}]},
]


@pytest.fixture
def write(tmp_path):
    def write(lines, labels="Thankful: grateful\n", split="train"):
        folder = tmp_path / "own"
        folder.mkdir(exist_ok=True)
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        if labels:
            (folder / "labels.yaml").write_text(labels, encoding="utf-8")
        return tmp_path

    return write


def test_three_forms_of_a_line(write):
    corpus = CORPORA.get("own")("train", root=write(LINES))
    assert [d.id for d in corpus] == ["desk", "train/2", "train/3"] and not corpus.problems
    assert [d.emotion for d in corpus] == ["annoyed", "grateful", None]
    assert [[turn.role for turn in d.turns] for d in corpus] == [
        ["speaker", "listener", "speaker"],
        ["speaker", "listener"],
        ["speaker", "listener"],
    ]
    assert corpus[1].turns[0].text == "My neighbour fixed my bike. Without my asking!"
    assert corpus[1].situation == "A bike." and corpus.name == "own" and corpus.split == "train"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ({"turns": ["a", "b"], "emotion": "gratefull"}, r"emotion 'gratefull' is unknown. .*grateful.*labels.yaml"),
        ({"text": "a"}, r"has no turns; accepted: a list with at least one, under turns, messages, "),
        ({"turns": ["a", 3]}, "turn 1 is 3; accepted: a string, or an object with role and text"),
        ({"turns": ["a", " "]}, "turn 2 of 'train/4' has no text"),
        (["a"], "list, expected an object"),
    ],
)
def test_a_bad_line_is_told_and_the_others_are_read(write, line, told):
    root = write([*LINES, line])
    corpus = own.load("train", root)
    assert len(corpus) == 3 and corpus.problems[0].line == 4
    with pytest.raises(DataError, match=told):
        own.load("train", root, strict=True)


def test_labels_that_are_no_emotion(write):
    with pytest.raises(DataError, match=r"maps to unknown emotions \(Thankful: happy\); accepted: .*grateful"):
        own.load("train", write(LINES, "Thankful: happy\n"))


def test_a_split_that_is_not_there(write):
    with pytest.raises(MissingResourceError, match=r"no file valid.jsonl.*valid.json.*own_data.md"):
        own.load("valid", write(LINES))


def test_a_responder_trains_on_them(write, tmp_path, monkeypatch):
    for split in ("train", "valid", "test"):
        root = write(LINES[:2], split=split)
    monkeypatch.setenv("EMPATHEIA_DATA", str(root))
    small = ["data.corpus=own", "stages.joint.epochs=1"]
    status = run(load_recipe("recipes/gao2021/transformer.yaml", "smoke", overrides=small), out=tmp_path / "runs")
    outputs = (status.folder / "outputs.jsonl").read_text(encoding="utf-8")
    assert "train/2" not in outputs and "desk" in outputs


def test_causes_are_annotated_in_them(write, monkeypatch):
    monkeypatch.setenv("EMPATHEIA_DATA", str(write(LINES)))
    found = corpus_labels.load_splits(["train"], "own")["train"]
    assert found[0].id == "desk" and len(found) == 3
    with pytest.raises(ConfigError, match=r"no corpus is called 'owm'.*own"):
        corpus_labels.load_splits(["train"], "owm")
