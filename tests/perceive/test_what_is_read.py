"""What the bundled perception reads of texts: pieces and their places, alone and in company, and its own limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from empatheia.perceive.perception import Perception, bundled_perception
from empatheia.perceive.pieces import collate
from empatheia.records.dialogue import Turn

TALKS = [
    (Turn("speaker", "I got the job!"),),
    (Turn("speaker", "My dog died yesterday, and the house is so very quiet without him since then."),),
    (
        Turn("speaker", "I don't know\u2019s what to say."),
        Turn("listener", "Tell me more about the exam."),
        Turn("speaker", "I failed the exam again and my parents are disappointed."),
    ),
]


@pytest.fixture(scope="module")
def perception() -> Perception:
    return bundled_perception()


def test_the_same_alone_and_in_company(perception):
    together = perception.read(TALKS)
    for talk, own in zip(TALKS, together, strict=True):
        (alone,) = perception.read([talk])
        assert own.emotions.sum() == pytest.approx(1, abs=1e-5) and own.sides.sum() == pytest.approx(1, abs=1e-5)
        np.testing.assert_allclose(own.emotions, alone.emotions, atol=1e-6)
        np.testing.assert_allclose([word.score for word in own.words], [w.score for w in alone.words], atol=1e-6)
        assert own.causes == alone.causes or [c.start for c in own.causes] == [c.start for c in alone.causes]


def test_what_is_plain_is_read_right(perception):
    glad, grave, _ = perception.read(TALKS)
    assert (glad.pole, grave.pole) == ("pleasant", "unpleasant")
    assert {own.of(TALKS[1]) for own in grave.causes} & {"dog died", "My dog died", "dog died yesterday"}
    risks = perception.danger(["i want to kill myself", "i want to buy a new car"])[:, 0]
    assert risks[0] > 0.9 and risks[1] < 0.1


def test_places_of_pieces_are_their_characters(perception):
    """By the tokenizer's own vocabulary: a piece is what stands at its place, in small letters."""
    tokenizer = perception.pieces._tokenizer
    for talk, row in zip(TALKS, perception.pieces.rows(TALKS, 96), strict=True):
        for piece, (turn, start, end) in zip(row["input_ids"], row["places"], strict=True):
            if turn >= 0:
                text = talk[turn].text[start:end].lower().replace("\u2019", "'")
                assert tokenizer.id_to_token(piece).removeprefix("##") == text
        assert {t for t, _, _ in row["places"]} == {-1, *range(len(talk))}


def test_pieces_say_whose_turn_and_which_is_the_newest(perception):
    (row,) = perception.pieces.rows(TALKS[2:], 96)
    turns = [turn for turn, _, _ in row["places"]]
    own = [(turn, kind, newest) for turn, kind, newest in zip(turns, row["token_type_ids"], row["newest"], strict=True)]
    assert {one for one in own if one[0] >= 0} == {(0, 0, False), (1, 1, False), (2, 0, True)}


def test_typed_marks_are_text(perception):
    opening, closing = perception.pieces.marks
    (row,) = perception.pieces.rows([(Turn("speaker", "A [SEP] and a [CLS] are words."),)], 96)
    assert (row["input_ids"].count(opening), row["input_ids"].count(closing)) == (1, 1)


def test_what_is_padded_is_masked(perception):
    rows = perception.pieces.rows(TALKS, 96)
    batch = collate(rows)
    assert batch["attention_mask"].sum(1).tolist() == [len(row["input_ids"]) for row in rows]


def test_words_count_from_the_files_own_threshold(perception):
    file = perception.file
    facts = file.facts
    try:
        file.facts = replace(facts, word_threshold=0.0)
        (many,) = perception.read(TALKS[1:2])
        file.facts = replace(facts, word_threshold=1.0)
        (few,) = perception.read(TALKS[1:2])
    finally:
        file.facts = facts
    assert (many.threshold, few.threshold) == (0.0, 1.0)
    assert sum(s.end - s.start for s in many.causes) > sum(s.end - s.start for s in few.causes)
