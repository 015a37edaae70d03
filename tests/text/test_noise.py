"""Careless typing: what is lost, and that marks follow their characters."""

import random

from hypothesis import given
from hypothesis import strategies as st

from empatheia.text.noise import noisy, straight


def test_curly_marks_become_straight_one_for_one():
    text = "I\u2019m \u201cfine\u201d, don\u02bct worry"
    assert straight(text) == "I'm \"fine\", don't worry" and len(straight(text)) == len(text)


@given(st.text(max_size=80), st.integers(0, 1000))
def test_marks_stay_with_their_characters(text, seed):
    marks = [c in "aeiou" for c in text]
    found, kept = noisy(text, marks, random.Random(seed))
    assert len(found) == len(kept)
    if not any(c.isupper() for c in text):
        assert all((c in "aeiou") is m for c, m in zip(found, kept, strict=True))


@given(st.text(min_size=1, max_size=80), st.integers(0, 1000))
def test_a_letter_is_always_left(text, seed):
    found, _ = noisy(text, [False] * len(text), random.Random(seed))
    assert any(c.isalpha() for c in found) or not any(c.isalpha() for c in text)


def test_it_changes_texts_and_repeats_itself():
    text = "I'm really happy. We finally moved into the new house, didn't we?"
    made = {noisy(text, [False] * len(text), random.Random(seed))[0] for seed in range(40)}
    again = {noisy(text, [False] * len(text), random.Random(seed))[0] for seed in range(40)}
    assert len(made) > 10 and made == again
