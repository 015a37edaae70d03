"""Rules by which the check reads: how far a negation reaches, which stretches of a long text are read as one."""

from __future__ import annotations

import pytest

from empatheia.care.context import is_denied
from empatheia.care.detector import LONGEST, WINDOW, windows
from empatheia.care.normalising import tokens_of

WISH = ["want", "to", "die"]


@pytest.mark.parametrize(
    ("before", "is_no"),
    [
        ("i do not", True),
        ("i never", True),
        ("i am not joking", False),
        ("i did not call but i", False),
        ("he is not here and i", False),
        ("i was not there because i", False),
        ("not one of all those many people here ever noticed how i", False),
    ],
)
def test_a_negation_reaches_its_own_clause(before: str, is_no: bool):
    assert is_denied(before.split(), WISH) is is_no


@pytest.mark.parametrize("mark", ["", "."])
def test_windows_of_a_long_text_hold_all_of_it_and_overlap(mark: str):
    words = [f"word{mark if place % 7 == 6 else ''}" for place in range(5 * LONGEST)]
    tokens = tokens_of(" ".join(words))
    found = windows(tokens)
    assert {place for first, last in found for place in range(first, last)} == set(range(len(tokens)))
    assert all(0 < last - first <= WINDOW for first, last in found)
    ends = [last for _, last in found][:-1]
    assert all(any(first < end < last for first, last in found) for end in ends if end < len(tokens))


def test_a_short_text_is_one_window():
    tokens = tokens_of("I am fine. Really. Thank you.")
    assert windows(tokens) == [(0, len(tokens))] and windows(()) == []
