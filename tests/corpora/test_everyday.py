"""The everyday corpus: its reader, and what its data card promises of the texts."""

import json
import re
from collections import Counter

import pytest

from empatheia.errors import DataError
from empatheia.taxonomy import EMOTIONS
from empatheia_research.corpora import CORPORA, everyday

LINE = {
    "turns": ["Third try.", "And?", "Passed!! My hands still shake."],
    "emotion": "proud",
    "acceptable": ["joyful"],
    "side": "pleasant",
    "causes": [[0, 0, 9], [2, 0, 6]],
    "reply": "Third time, and it is yours.",
    "avoid": "Better luck next time.",
    "intent": "acknowledging",
    "style": ["fragment"],
    "topic": "driving",
    "writer": "x_1",
}


def test_a_line_gives_its_fields():
    item = everyday.parse(LINE, "train/1")
    assert [turn.role for turn in item.dialogue.turns] == ["speaker", "listener", "speaker"]
    assert [span.of(item.dialogue.turns) for span in item.causes] == ["Third try", "Passed"]
    assert item.accepted == {"proud", "joyful"} and item.side == "pleasant" and not item.names_feeling


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"turns": ["a", "b"]}, "odd number"),
        ({"turns": []}, "one or more texts"),
        ({"turns": "a text"}, "one or more texts"),
        ({"emotion": "happy"}, "emotion is 'happy'"),
        ({"acceptable": ["glad"]}, "acceptable is 'glad'"),
        ({"side": "good"}, "pleasant, unpleasant, mixed"),
        ({"causes": [[1, 0, 2]]}, "turn of the speaker"),
        ({"causes": [[0, 5, 99]]}, "inside that turn"),
        ({"causes": [[True, 0, 1]]}, "turn of the speaker"),
        ({"intent": "hugging"}, "intent is 'hugging'"),
        ({"style": "irony"}, "a list of texts"),
    ],
)
def test_a_bad_field_is_named(change, words):
    with pytest.raises(DataError, match=re.escape(words)):
        everyday.parse(LINE | change)


def test_bad_lines_are_left_out_with_their_numbers(tmp_path):
    lines = [json.dumps(LINE), "{", json.dumps([1]), "[" * 100_000, json.dumps(LINE | {"emotion": "x"})]
    (tmp_path / "train.jsonl").write_text("\n".join(lines))
    corpus = everyday.load("train", tmp_path)
    assert len(corpus) == 1 and [problem.line for problem in corpus.problems] == [2, 3, 4, 5]
    with pytest.raises(DataError, match=r"train.jsonl:2"):
        everyday.load("train", tmp_path, strict=True)
    with pytest.raises(DataError, match="no file"):
        everyday.load("test", tmp_path)


def test_as_a_corpus_a_written_reply_ends_the_conversation():
    corpus = CORPORA.get("everyday")("valid")
    by_id = corpus.by_id()
    item = next(item for item in everyday.items("valid") if item.reply)
    assert by_id[item.dialogue.id].turns[:-1] == item.dialogue.turns
    assert by_id[item.dialogue.id].turns[-1].text == item.reply
    note = next(note for note in corpus.annotations if note.dialogue_id == item.dialogue.id)
    assert note.target == len(item.dialogue.turns) - 1 and note.spans == item.causes


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_every_line_of_the_shipped_texts_is_good(split):
    items = everyday.items(split, strict=True)
    assert len({item.dialogue.id for item in items}) == len(items) >= 200
    assert {str(item.dialogue.emotion) for item in items} == set(EMOTIONS)
    for item in items:
        assert item.dialogue.emotion not in item.acceptable
        for span in item.causes:
            assert span.of(item.dialogue.turns).strip() and len(span.of(item.dialogue.turns).split()) <= 8


def test_no_writer_is_in_two_splits_and_no_text_is_there_twice():
    texts, writers = Counter(), {}
    for split in ("train", "valid", "test"):
        for item in everyday.items(split):
            texts["\n".join(turn.text.lower() for turn in item.dialogue.turns)] += 1
            writers.setdefault(item.writer.split("_")[0], set()).add(split)
    assert max(texts.values()) == 1
    assert all(len(splits) == 1 for splits in writers.values())


def test_items_of_two_splits_share_no_wording():
    """No template: an item shares at most four runs of five words with all that is learnt from."""

    def runs(item):
        for turn in item.dialogue.turns[::2]:
            words = re.findall(r"[\w']+", turn.text.lower())
            yield from (" ".join(words[i : i + 5]) for i in range(len(words) - 4))

    learnt = {run for item in everyday.items("train") for run in set(runs(item))}
    for split in ("valid", "test"):
        for item in everyday.items(split):
            assert len(set(runs(item)) & learnt) <= 4, item.dialogue.id
