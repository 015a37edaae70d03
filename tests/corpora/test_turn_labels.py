"""Labels of turns: the released table, one's own files, and what is wrong with either."""

from __future__ import annotations

from collections import Counter

import pytest

from empatheia.errors import DataError, MissingResourceError
from empatheia.records.dialogue import Dialogue
from empatheia.taxonomy import INTENTS
from empatheia_research.corpora import empathetic_dialogues, sample
from empatheia_research.corpora.turn_labels import (
    RELEASED,
    SAMPLE,
    LabelledTurns,
    load_released,
    read_turn_labels,
    write_turn_labels,
)


def released(tmp_path, text):
    (tmp_path / "empathetic_intents").mkdir(exist_ok=True)
    (tmp_path / "empathetic_intents" / "annotated_labels.tsv").write_text(text, encoding="utf-8")
    return tmp_path


def test_released_table(tmp_path):
    rows = "conv_id\tutterance_idx\tlabel\nc1\t0\tguilty\nc1\t1\tsad\nc1\t2\tWishing\nc1\t4\tsad\nc2\t1\tneutral\n"
    labels = load_released(released(tmp_path, rows))
    assert labels.turns == {"c1": ("sad", "wishing", None, "sad"), "c2": ("neutral",)}
    assert labels.model == RELEASED


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("c1 1 sad", r"2: 'c1 1 sad' is not conv_id, utterance_idx \(0 to 999\), label, tab-separated"),
        ("c1\tx\tsad", "2: .* is not conv_id"),
        ("c1\t1\tgloomy", "2: unknown emotion or intent 'gloomy'"),
        ("c1\t1\tsad\nc1\t1\tangry", "3: utterance 1 of 'c1' has two labels"),
    ],
)
def test_faulty_table(tmp_path, row, message):
    with pytest.raises(DataError, match=message):
        load_released(released(tmp_path, f"conv_id\tutterance_idx\tlabel\n{row}\n"))


def test_own_file(tmp_path):
    for name in ("own.jsonl", "own.jsonl.gz"):
        path = tmp_path / name
        assert write_turn_labels(path, "my classifier 2", [("d1", ["sad", None]), ("d2", ["Question"])]) == 2
        labels = read_turn_labels(path)
        assert labels.model == "my classifier 2"
        assert labels.turns == {"d1": ("sad", None), "d2": ("questioning",)}
    first = (tmp_path / "own.jsonl.gz").read_bytes()
    write_turn_labels(tmp_path / "own.jsonl.gz", "my classifier 2", [("d1", ["sad", None]), ("d2", ["questioning"])])
    assert (tmp_path / "own.jsonl.gz").read_bytes() == first
    with pytest.raises(DataError, match="need the name of the model"):
        write_turn_labels(tmp_path / "x.jsonl", " ", [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty; the first line names the model"),
        ('{"id": "d1", "turns": ["sad"]}\n', r":1: not of the form \{\"model\""),
        ('{"model": ""}\n', ":1: .*name is empty"),
        ('{"model": "m"}\n{"id": "d1", "turns": ["gloom"]}\n', ":2: unknown emotion"),
        ('{"model": "m"}\n{"id": "d1"}\n', r":2: not of the form \{\"id\""),
        ('{"model": "m"}\nnonsense\n', r":2: not of the form"),
        ('{"model": "m"}\n{"id": "d", "turns": []}\n{"id": "d", "turns": []}\n', ":3: .*'d' again"),
    ],
)
def test_faulty_file(tmp_path, text, message):
    path = tmp_path / "own.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_turn_labels(path)
    with pytest.raises(MissingResourceError, match="no turn labels at"):
        read_turn_labels(tmp_path / "none.jsonl")


def test_labels_of_another_version(tmp_path):
    labels = LabelledTurns("m", {"d": ("sad",)}, tmp_path)
    assert labels.of(Dialogue.of("a", id="d")) == ("sad",)
    assert labels.of(Dialogue.of("a", id="e")) is None
    with pytest.raises(DataError, match="dialogue 'd' has 1 labels, but 2 turns"):
        labels.of(Dialogue.of("a", "b", id="d"))


def test_sample_has_a_label_for_every_turn():
    labels = load_released(sample.root())
    assert labels.model == SAMPLE
    seen = Counter()
    for split in ("train", "valid", "test"):
        for dialogue in sample.load(split):
            own = labels.of(dialogue)
            assert own is not None and None not in own
            seen.update(own[1::2])
    assert set(seen) <= set(INTENTS) and len(seen) >= 8


@pytest.mark.real_data
def test_released_labels_fit_the_corpus(data_folder):
    labels = load_released(data_folder)
    assert len(labels.turns) == 24_847
    missing = 0
    listener = Counter()
    for split in ("train", "valid", "test"):
        for dialogue in empathetic_dialogues.load(split, root=data_folder):
            own = labels.of(dialogue)
            missing += own is None
            listener.update((own or ())[1::2])
    assert missing == 2  # the last conversation of valid and of test
    assert [listener[name] for name in ("questioning", "acknowledging", "neutral", "wishing")] == [
        16_433,
        9_576,
        3_415,
        1_248,
    ]


def test_a_wrong_label_leaves_nothing_behind(tmp_path):
    path = tmp_path / "own.jsonl"
    write_turn_labels(path, "my classifier", [("d1", ["sad"])])
    before = path.read_bytes()
    with pytest.raises(DataError, match="furious"):
        write_turn_labels(path, "my classifier", [("d1", ["sad"]), ("d2", ["furious-ish"])])
    assert path.read_bytes() == before and [found.name for found in tmp_path.iterdir()] == ["own.jsonl"]
