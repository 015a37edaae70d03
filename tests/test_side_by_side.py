"""Replies of several systems brought to the same contexts."""

from __future__ import annotations

import json

import pytest

from empatheia.errors import DataError
from empatheia.replies.alignment import align, find_runs, read_answers, text_key
from empatheia_research.corpora.loading import sample_root

REPLIES = sample_root() / "replies"


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_text_key():
    assert text_key("I don\u2019t know, it's 5!") == text_key("i do not know , it is 5 !")
    assert text_key("a", "b") == text_key("ab") != text_key("a")


def test_items_meet_by_context_and_reference(tmp_path):
    turns = ["Hi.", "Yes?"]
    two = [{"context": turns, "ref": "One", "hyp": "a1"}, {"context": turns, "ref": "Two", "hyp": "a2"}]
    a = write(tmp_path / "a.jsonl", two)
    b = write(tmp_path / "b.jsonl", [{"context": ["hi .", "yes ?"], "ref": "two", "hyp": "b2"}])
    c = write(tmp_path / "c.jsonl", [{"context": ["Hi.", "Yes?"], "hyp": "c"}])
    items = align([read_answers(path) for path in (a, b, c)])
    assert [[answer.reply for answer in item.answers.values()] for item in items] == [["a1"], ["a2", "b2"], ["c"]]
    assert items[1].context == ("Hi.", "Yes?") and items[2].reference is None
    assert len({item.id for item in items}) == 3


def test_an_item_without_reference_joins_the_only_one_of_its_context(tmp_path):
    a = write(tmp_path / "a.jsonl", [{"context": ["Hi."], "ref": "One", "hyp": "a"}])
    b = write(tmp_path / "b.jsonl", [{"context": ["hi"], "hyp": "b"}, {"context": ["hi"], "hyp": "again"}])
    items = align([read_answers(a), read_answers(b)])
    assert [list(item.answers) for item in items] == [["a.jsonl", "b.jsonl"], ["b.jsonl"]]


def test_outputs_of_a_run_bring_ids_and_raw_text(tmp_path):
    from empatheia_research.corpora import sample

    dialogue = next(iter(sample.load("test")))
    run = tmp_path / "run"
    run.mkdir()
    (run / "recipe.yaml").write_text("data: {corpus: sample}\n")
    row = {"id": dialogue.id, "turn": 1, "hyp": "mine", "ref": dialogue.turns[1].text}
    write(run / "outputs.jsonl", [row, {**row, "id": "unknown", "ref": "other"}])
    theirs = {"context": [dialogue.turns[0].text.upper()], "ref": dialogue.turns[1].text.lower(), "hyp": "theirs"}
    other = write(tmp_path / "other.jsonl", [theirs])
    items = align([read_answers(other), read_answers(run)])
    assert items[0].id == f"{dialogue.id}/1" and items[0].context == (dialogue.turns[0].text,)
    assert items[0].emotion == dialogue.emotion
    assert [answer.reply for answer in items[0].answers.values()] == ["mine", "theirs"]
    assert items[1].id == "unknown/1" and items[1].context == ()
    assert find_runs(tmp_path) == [run]


def test_a_corpus_that_is_not_here_is_told(tmp_path):
    path = write(tmp_path / "outputs.jsonl", [{"id": "x", "turn": 1, "hyp": "hi", "ref": "hello"}])
    file = read_answers(path, data=tmp_path / "nowhere")
    assert file.answers[tmp_path.name][0].context == () and "contexts are missing: no file" in file.notes[0]


def test_spans_count_for_their_own_text_only(tmp_path):
    a = write(tmp_path / "a.jsonl", [{"context": ["Hi, I fell."], "ref": "Oh", "hyp": "a"}])
    causes = [{"turn": 0, "start": 5, "end": 11}]
    b = write(tmp_path / "b.jsonl", [{"context": ["hi , i fell ."], "ref": "oh", "hyp": "b", "causes": causes}])
    (alone,) = align([read_answers(b)])
    (item,) = align([read_answers(a), read_answers(b)])
    assert len(alone.answers["b.jsonl"].causes) == 1 and item.answers["b.jsonl"].causes == ()


def test_what_cannot_be_read(tmp_path):
    with pytest.raises(DataError, match=r"has no outputs.jsonl: the run is not finished"):
        read_answers(tmp_path)
    with pytest.raises(DataError, match="no folder"):
        find_runs(tmp_path / "none")
    with pytest.raises(DataError, match="two files name a system"):
        align([read_answers(REPLIES / "moel.txt"), read_answers(REPLIES / "moel.txt")])
