"""From start and end scores to answers, against brute force; characters to words and turns."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from empatheia_research.understanding.causes.span_answers import best_overlap, n_best, place_of, whole_words


def spans_of(n, longest):
    return [(s, e) for s in range(n) for e in range(s, min(n, s + longest))]


def f1(a, b):
    shared = max(0, min(a[1], b[1]) - max(a[0], b[0]) + 1)
    return 2 * shared / (a[1] - a[0] + 1 + b[1] - b[0] + 1)


@pytest.mark.parametrize("longest", [1, 3, 9])
def test_n_best_against_brute_force(longest):
    rng = np.random.default_rng(0)
    for n in range(1, 8):
        start, end, allowed = rng.normal(size=n), rng.normal(size=n), rng.random(n) < 0.8
        every = [
            (start[s] + end[e], s, e) for s, e in spans_of(n, longest) if allowed[s] and allowed[e]
        ]  # ends inside, as SQuAD's
        found = n_best(start, end, allowed, n * n, longest)
        assert [span[1:] for span in found] == [(s, e) for _, s, e in sorted(every, key=lambda x: -x[0])]


def test_n_best_combines_only_the_best_starts_and_ends():
    start, end = np.array([3.0, 2.0, 1.0]), np.array([0.0, 1.0, 2.0])
    assert n_best(start, end, np.ones(3, bool), 1) == [(5.0, 0, 2)]
    assert n_best(start, end, np.zeros(3, bool)) == []


@pytest.mark.parametrize("longest", [2, 9])
def test_best_overlap_against_brute_force(longest):
    rng = np.random.default_rng(1)
    for n in range(1, 8):  # at most 28 spans: the expectation runs over all
        start, end = 2 * rng.normal(size=n), 2 * rng.normal(size=n)
        spans = spans_of(n, longest)
        weights = np.exp([start[s] + end[e] for s, e in spans])
        weights /= weights.sum()
        expected = {a: sum(w * f1(a, b) for b, w in zip(spans, weights, strict=True)) for a in spans}
        s, e, value = best_overlap(start, end, longest)
        assert value == pytest.approx(max(expected.values()))
        assert expected[s, e] == pytest.approx(value)


def test_best_overlap_hedges_where_argmax_bets():
    """The last word alone is the most probable span, yet the last two share more with all three (.807 against .75)."""
    start, end = np.log([0.3, 0.3, 0.4]), np.log([1e-6, 1e-6, 1.0])
    assert n_best(start, end, np.ones(3, bool))[0][1:] == (2, 2)
    assert best_overlap(start, end) == (1, 2, pytest.approx(0.3 * 0.8 + 0.3 + 0.4 * 2 / 3, abs=1e-4))


@given(st.text("ab .", max_size=12), st.integers(0, 12), st.integers(0, 12))
def test_whole_words(text, start, end):
    start, end = min(start, len(text)), min(end, len(text))
    s, e = whole_words(text, start, end)
    assert 0 <= s <= e <= len(text)
    found = text[s:e]
    assert found == found.strip()
    if text[start:end].strip():
        assert s <= start + len(text[start:end]) - len(text[start:end].lstrip()) and found
        assert (s == 0 or text[s - 1].isspace()) and (e == len(text) or text[e].isspace())
    else:
        assert (s, e) == (0, 0)


@given(st.lists(st.text("ab", max_size=4), min_size=1, max_size=5))
def test_place_of_is_the_inverse_of_joining(texts):
    whole = " ".join(texts)
    begin = 0
    for turn, text in enumerate(texts):
        for i in range(len(text)):
            assert place_of(begin + i, texts) == (turn, i)
            assert whole[begin + i] == text[i]
        begin += len(text) + 1
