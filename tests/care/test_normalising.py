"""Spellings are undone, and every token knows where it stood."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from empatheia.care.normalising import LAUGH, tokens_of


def words(text: str) -> list[str]:
    return [token.text for token in tokens_of(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I don't", ["i", "do", "not"]),
        ("I don\u2019t", ["i", "do", "not"]),
        ("I don\u02bct", ["i", "do", "not"]),
        ("I dont", ["i", "do", "not"]),
        ("CAN'T", ["can", "not"]),
        ("wanna", ["want", "to"]),
        ("k.m.s", ["kms"]),
        ("s-u-i-c-i-d-e", ["suicide"]),
        ("iwanttodie", ["i", "want", "to", "die"]),
        ("killlll", ["kill"]),
        ("suicde", ["suicide"]),
        ("d*e", ["die"]),
        ("no one", ["nobody"]),
        ("my self", ["myself"]),
        ("lol", [LAUGH]),
        ("😂", [LAUGH]),
        ("skilled", ["skilled"]),
        ("b4 2nite", ["b4", "tonight"]),
        ("himself", ["himself"]),
        ("a b c", ["a", "b", "c"]),
        ("kıll", ["kill"]),
    ],
)
def test_spellings(text: str, expected: list[str]):
    assert words(text) == expected


@given(st.text(max_size=200))
def test_every_token_lies_in_the_text(text: str):
    tokens = tokens_of(text)
    assert all(0 <= token.start < token.end <= len(text) for token in tokens)
    assert [token.start for token in tokens] == sorted(token.start for token in tokens)
    assert [token.sentence for token in tokens] == sorted(token.sentence for token in tokens)
