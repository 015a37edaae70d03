"""EDOS's four quoted CSV files."""

from __future__ import annotations

from collections import Counter

import pytest

from empatheia.errors import DataError, MissingResourceError
from empatheia.taxonomy import LABELS_41
from empatheia_research.corpora import edos

CROWD = (
    "Count,Index,DialogID,Dialog,Agreed emotion (2/3 vote),Worker 1 answer\n"
    '1,0.9-1,7,"You \'re late , again .\n\nSorry , I am .",Annoyed (Other),Annoyed\n'
    "2,0.9-2,8,Fine .,-,Sad\n"
    "3,0.9-2,8,Again .,Sad,Sad\n"
    "4,0.9-4,9,,Sad,Sad\n"
)
SELF = ",Unnamed: 0,os_dialog_id,emotion,confidence,os_dialog\n"
SELF += '5,5,42,wishing,0.9,"- - Go home .\n- Good luck !"\n'


def write(tmp_path, part, content):
    (tmp_path / "edos").mkdir(exist_ok=True)
    (tmp_path / "edos" / edos.PARTS[part].file).write_text(content, encoding="utf-8", newline="")
    return tmp_path


def test_crowd_part(tmp_path):
    corpus = edos.load("crowd", root=write(tmp_path, "crowd", CROWD))
    first, second = corpus
    assert [turn.text for turn in first.turns] == ["You 're late , again .", "Sorry , I am ."]
    assert (first.id, first.emotion, first.source) == ("crowd/0.9-1", "annoyed", "edos/crowd")
    assert second.emotion is None
    assert corpus.notes == ("crowd: 1 dialogues without an agreed label.",)
    assert [p.reason for p in corpus.problems] == [
        "id 'crowd/0.9-2' was used before; left out",
        "crowd/0.9-4: no text; left out",
    ]


def test_dashes_are_no_text(tmp_path):
    corpus = edos.load("self_labeled", root=write(tmp_path, "self_labeled", SELF))
    assert [(t.role, t.text) for t in corpus[0].turns] == [
        ("speaker", "Go home ."),
        ("listener", "Good luck !"),
    ]


def test_faults(tmp_path, no_data):
    with pytest.raises(DataError, match="EDOS has no part 'train'; accepted: all, crowd"):
        edos.load("train")
    with pytest.raises(MissingResourceError, match="anuradha1992/EDOS"):
        edos.load()
    with pytest.raises(DataError, match=r"1_mturk.*csv:1: no column Agreed emotion.*Dialog.*Index.*found \['a', 'b'\]"):
        edos.load("crowd", root=write(tmp_path, "crowd", "a,b\n1,2\n"))


@pytest.mark.real_data
def test_counts(data_folder):
    corpus = edos.load(root=data_folder, strict=True)
    parts = Counter(d.source.removeprefix("edos/") for d in corpus)
    assert parts == {name: part.rows for name, part in edos.PARTS.items()}
    # specification section 4: 19,659 dialogues and 60,999 utterances in all
    assert (len(corpus), sum(len(d.turns) for d in corpus)) == (19_659, 60_999)
    own = Counter(d.emotion for d in corpus if d.source == "edos/self_labeled")
    assert own == dict.fromkeys(LABELS_41, 100)
    assert sum(d.emotion is None for d in corpus) == 1_332 + 1  # no majority, and "Disagreeing (Other)"
