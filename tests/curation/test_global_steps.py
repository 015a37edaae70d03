"""The steps that see all dialogues: which of equal ones stays, how many of an ending, the most emotional ones."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from empatheia_people.curation.global_steps import keep_some, top_threshold, wanted_number


@pytest.mark.parametrize("memory", [10**9, 400])
@pytest.mark.parametrize("most", [1, 2, 5])
def test_of_each_group_the_first_in_order_stay(most, memory):
    draw = np.random.default_rng(most)
    groups = draw.choice(draw.integers(0, 2**64, 6, dtype=np.uint64), 60)
    order = draw.permutation(60).astype(np.uint64)
    kept = keep_some(groups, order, most, memory)
    sizes = Counter(groups.tolist())
    assert Counter(groups[kept].tolist()) == {group: min(most, n) for group, n in sizes.items()}
    for group in sizes:  # by brute force
        own = sorted(order[groups == group])
        assert sorted(order[kept & (groups == group)]) == own[:most]


def test_only_those_that_are_looked_at_stay():
    groups, order = np.array([7, 7, 9], np.uint64), np.array([1, 2, 0], np.uint64)
    assert keep_some(groups, order, 1, 10**9, np.array([False, True, False])).tolist() == [False, True, False]


@pytest.mark.parametrize("k", range(7))
def test_the_most_emotional_ones(k):
    scores = np.array([0.5, 0.9, 0.5, 0.1, 0.5, 0.9])
    threshold, tied = top_threshold(scores, k)
    assert (scores > threshold).sum() + tied == k
    assert (wanted_number(k, 4), wanted_number(0.5, 6)) == (min(k, 4), 3)
