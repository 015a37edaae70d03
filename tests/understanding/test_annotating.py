"""Causes found without reading a label."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest
import tiny_causes as bench
import typer

from empatheia.records.dialogue import CauseAnnotation, Dialogue
from empatheia_research.cli.annotate import _checked_splits
from empatheia_research.corpora import sample
from empatheia_research.corpora.annotations import read_annotations
from empatheia_research.training import corpus_labels
from empatheia_research.training.corpus_labels import detect_causes

DIALOGUES = [
    Dialogue.of("a b c .", "d ?", "e f g h , a b", "b", id="four", emotion="furious"),
    Dialogue.of("c", "a", id="two", emotion="joyful"),
]


@pytest.fixture
def detector(tmp_path):
    folder = tmp_path / "detector"
    bench.entailment_model(threshold=0.1).save_pretrained(folder)
    bench.tokenizer().save_pretrained(folder)
    return folder


def test_detections_do_not_read_the_conversations_emotion(detector):
    notes = detect_causes(detector, None, DIALOGUES)
    assert [(note.dialogue_id, note.target) for note in notes] == [("four", 0), ("four", 2), ("two", 0)]
    assert {note.annotator.rpartition("+emotion:")[2] for note in notes} == {"unknown"}
    relabelled = [replace(dialogue, emotion="grateful", situation="h h h") for dialogue in DIALOGUES]
    assert detect_causes(detector, None, relabelled) == notes


def test_the_command_writes_detections(detector, cli, tmp_path, monkeypatch):
    monkeypatch.setattr(corpus_labels, "load_splits", lambda splits, corpus: dict.fromkeys(splits, DIALOGUES))
    monkeypatch.setattr(corpus_labels, "agreement_with_released", lambda notes, split: {"conversations": len(notes)})
    out = tmp_path / "detected.jsonl.gz"
    ended = cli("annotate", str(detector), "--emotion", "none", "--splits", "test", "--out", str(out))
    assert ended.code == 0, ended
    told = json.loads(ended.out)
    assert told["annotations"] == 3 and told["agreement_with_recec"] == {"test": {"conversations": 3}}
    kept = read_annotations(out)
    assert [note.target for note in kept] == [0, 2, 0] and all("+emotion:unknown" in note.annotator for note in kept)


@pytest.mark.parametrize("has_recec", [True, False])
def test_conversations_of_ones_own_are_annotated_where_nothing_compares(
    detector, cli, tmp_path, monkeypatch, has_recec
):
    """RecEC is not here, or knows none of the conversations: the work is kept all the same."""
    root = tmp_path / "corpora"
    root.mkdir()
    if has_recec:
        shutil.copytree(sample.root() / "recec", root / "recec")
    monkeypatch.setenv("EMPATHEIA_DATA", str(root))
    monkeypatch.setattr(corpus_labels, "load_splits", lambda splits, corpus: dict.fromkeys(splits, DIALOGUES))
    out = tmp_path / "own.jsonl.gz"
    ended = cli("annotate", str(detector), "--emotion", "none", "--splits", "train,valid,test", "--out", str(out))
    assert ended.code == 0, ended.err
    told = json.loads(ended.out)
    assert told["annotations"] == 9 and len(read_annotations(out)) == 9
    if has_recec:
        assert told["agreement_with_recec"] == {"valid": {"conversations": 0}, "test": {"conversations": 0}}
    else:
        assert told["agreement_with_recec"] == {} and "test: not compared with the released labels" in ended.err


def test_an_emotion_is_for_causes_alone(detector, cli, tmp_path):
    ended = cli(
        "annotate", str(detector), "--what", "mechanisms", "--emotion", "none", "--out", str(tmp_path / "x.jsonl")
    )
    assert ended.code == 2 and "--emotion is for --what causes" in ended.err


def test_splits_that_are_none_are_named():
    assert _checked_splits("train, test,") == ["train", "test"]
    with pytest.raises(typer.BadParameter, match="unknown split 'trian'; accepted: train, valid, test"):
        _checked_splits("test,trian")


def test_agreement_by_chance_counts_both_answers(monkeypatch):
    """Cohen's kappa by hand: 3 of 4 turns the same; chance 1/4 * 1/2 + 3/4 * 1/2 = 1/2, kappa (3/4 - 1/2) / (1/2)."""
    released = SimpleNamespace(annotations=[CauseAnnotation("a", 3, (0, 1))])
    monkeypatch.setattr(corpus_labels.recec, "load", lambda split: released)
    found = corpus_labels.agreement_with_released([CauseAnnotation("a", 3, (0,))], "test")
    assert (found["raw_agreement"], found["cohen_kappa"]) == (75.0, 0.5)
    assert corpus_labels.agreement_with_released([CauseAnnotation("a", 1, (0,))], "test") == {"conversations": 0}
