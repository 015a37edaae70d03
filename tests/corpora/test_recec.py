"""RecEC's cause labels."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from empatheia.errors import DataError, MissingResourceError
from empatheia_research.corpora import empathetic_dialogues, recec

LINE = {
    "conv_id": "c",
    "utters": [["i", "do", "n't", "know", "."], ["why", "?"], ["my", "cat"], ["oh"]],
    "context": "sad",
    "emotion_cause": [2, 0],
}


def write(tmp_path, *lines, name="valid_with_cause.jsonl"):
    (tmp_path / "recec").mkdir(exist_ok=True)
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    (tmp_path / "recec" / name).write_text("\n".join(texts) + "\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("name", ["valid_with_cause.jsonl", "valid_with_cause.json"])
def test_annotation(tmp_path, name):
    corpus = recec.load("valid", root=write(tmp_path, LINE, name=name))
    (note,) = corpus.annotations
    assert (note.dialogue_id, note.target, note.turns, note.emotion) == ("c", 2, (0, 2), "sad")
    assert note.annotator == "recec/released"
    assert note.spans == ()
    assert [turn.text for turn in corpus[0].turns] == ["i do n't know .", "why ?", "my cat", "oh"]


@pytest.mark.parametrize(("turns", "target"), [(1, 0), (2, 0), (3, 2), (4, 2), (5, 4), (8, 6)])
def test_target_is_the_last_speaker_turn(turns, target):
    assert recec.last_speaker_turn(turns) == target


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON"),
        ("[1]", "list, expected an object"),
        ({k: v for k, v in LINE.items() if k != "utters"}, "no 'utters'"),
        (dict(LINE, utters="text"), "not a list of token lists"),
        (dict(LINE, emotion_cause=[4]), r"'emotion_cause' \[4\] is not a list of indices from 0 to 3"),
        (dict(LINE, context="gloomy"), "unknown emotion or intent 'gloomy'"),
        (LINE, "conv_id 'c' was used by an earlier line"),
    ],
)
def test_bad_lines(tmp_path, line, reason):
    root = write(tmp_path, LINE, line)
    assert len(recec.load("valid", root=root).problems) == 1
    with pytest.raises(DataError, match=r"valid_with_cause\.jsonl:2: .*" + reason):
        recec.load("valid", root=root, strict=True)


def test_nothing_usable(tmp_path):
    with pytest.raises(DataError, match=r"no conversation in this file .1 lines could not be used; the first"):
        recec.load("valid", root=write(tmp_path, "{"))


def test_train_is_not_to_be_had(no_data):
    with pytest.raises(MissingResourceError, match=r"train_with_cause\.jsonl.*EmpDialogue_RecEC"):
        recec.load("train")


# Specification section 2: conversations by number of causes, share of speaker and listener turns flagged.
CAUSES = {"valid": [0, 960, 1517, 280, 10, 2], "test": [1, 876, 1425, 239, 5, 0]}
FLAGGED = {"valid": (65.6, 12.6), "test": (67.9, 11.2)}


@pytest.mark.real_data
@pytest.mark.parametrize("split", ["valid", "test"])
def test_released_counts(data_folder, split):
    corpus = recec.load(split, root=data_folder, strict=True)
    numbers = Counter(len(note.turns) for note in corpus.annotations)
    assert [numbers[n] for n in range(6)] == CAUSES[split]
    assert sum(len(d.examples()) for d in corpus) == {"valid": 5_736, "test": 5_257}[split]
    flagged = Counter(turn % 2 for note in corpus.annotations for turn in note.turns)
    speakers = sum((len(d.turns) + 1) // 2 for d in corpus)
    listeners = sum(len(d.turns) // 2 for d in corpus)
    shares = (round(100 * flagged[0] / speakers, 1), round(100 * flagged[1] / listeners, 1))
    assert shares == FLAGGED[split]
    assert all(turn <= note.target for note in corpus.annotations for turn in note.turns)


@pytest.mark.real_data
@pytest.mark.parametrize("split", ["valid", "test"])
def test_fits_empathetic_dialogues(data_folder, split):
    originals = empathetic_dialogues.load(split, root=data_folder).by_id()
    for dialogue in recec.load(split, root=data_folder):
        original = originals.pop(dialogue.id)
        assert (original.emotion, len(original.turns)) == (dialogue.emotion, len(dialogue.turns))
    assert len(originals) == 1  # the last conversation of each split is missing from RecEC
