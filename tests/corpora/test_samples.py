"""The bundled sample is whole, in the official formats, and covers what tests and demos lean on."""

from __future__ import annotations

from collections import Counter

import pytest

from empatheia.taxonomy import EMOTIONS, RECCON_EMOTIONS
from empatheia_research.corpora import empathetic_dialogues, reccon, recec, sample
from empatheia_research.corpora.statistics import corpus_statistics

SPLITS = ("train", "valid", "test")


@pytest.mark.parametrize(("split", "least"), [("train", 32), ("valid", 8), ("test", 8)])
def test_dialogues(split, least):
    corpus = sample.load(split, strict=True)
    assert len(corpus) >= least
    assert all(4 <= len(d.turns) <= 6 for d in corpus)
    assert all(d.situation and d.emotion in EMOTIONS for d in corpus)
    assert all(turn.role == ("speaker", "listener")[i % 2] for d in corpus for i, turn in enumerate(d.turns))


def test_train_covers_all_emotions():
    assert {d.emotion for d in sample.load("train")} == set(EMOTIONS)


def test_nothing_is_in_two_splits():
    texts = Counter(turn.text for split in SPLITS for d in sample.load(split) for turn in d.turns)
    ids = Counter(d.id for split in SPLITS for d in sample.load(split))
    assert max(texts.values()) == max(ids.values()) == 1


@pytest.mark.parametrize("split", ["valid", "test"])
def test_candidates_hold_the_gold_reply(split):
    corpus = sample.load(split)
    by_id = corpus.by_id()
    replies = sum(len(d.examples()) for d in corpus)
    assert len(corpus.candidates) == replies
    for (id, turn), candidates in corpus.candidates.items():
        assert by_id[id].turns[turn].text in candidates
        assert len(set(candidates)) == len(candidates) == 10


def test_file_bytes_are_the_official_format():
    for split, fields in (("train", 8), ("valid", 9), ("test", 9)):
        lines = (sample.root() / "empatheticdialogues" / f"{split}.csv").read_text(encoding="utf-8").splitlines()
        assert {line.count(",") + 1 for line in lines[1:]} == {fields}
        assert lines[0].count(",") == 7
    assert "_pipe_" in (sample.root() / "empatheticdialogues" / "valid.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize("split", SPLITS)
def test_causes_fit_the_dialogues(split):
    dialogues = sample.load(split).by_id()
    corpus = recec.load(split, root=sample.root(), strict=True)
    assert {d.id for d in corpus} == set(dialogues)
    for note in corpus.annotations:
        assert note.annotator == "recec/sample"
        assert note.turns and all(turn <= note.target and turn % 2 == 0 for turn in note.turns)
        assert len(corpus.by_id()[note.dialogue_id].turns) == len(dialogues[note.dialogue_id].turns)


@pytest.mark.parametrize(("split", "least"), [("train", 12), ("valid", 4), ("test", 4)])
def test_reccon_form(split, least):
    corpus = reccon.load(split, root=reccon.sample_root(), strict=True)
    assert len(corpus) >= least
    assert corpus.latent
    assert any("neutral" in labels for labels in corpus.turn_labels.values())
    assert {p.label for p in reccon.pairs(corpus)} == {0, 1}


def test_reccon_sample_has_all_emotions():
    labels = set().union(*reccon.load("train", root=sample.root()).turn_labels.values())
    assert labels == {*RECCON_EMOTIONS, "neutral"}


@pytest.mark.real_data
def test_sample_is_not_taken_from_the_corpus(data_folder):
    real = {
        turn.text.lower()
        for split in SPLITS
        for d in empathetic_dialogues.load(split, root=data_folder)
        for turn in d.turns
    }
    own = {turn.text.lower() for split in SPLITS for d in sample.load(split) for turn in d.turns}
    assert not own & real


def test_statistics():
    corpus = reccon.load("valid", root=sample.root())
    counts = corpus_statistics(corpus)
    assert counts["dialogues"] == len(corpus)
    assert counts["turns"] == sum(n * k for n, k in counts["lengths"].items())
    assert counts["cause_spans"] == sum(p.label for p in reccon.pairs(corpus))
    assert counts["words"] == len(" ".join(t.text for d in corpus for t in d.turns).split())
    assert counts["replies"] == sum(len(d.examples()) for d in corpus)
