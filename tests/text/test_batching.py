"""Batches: the token rule of Gao et al., every example once, the same order for the same seed and epoch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from empatheia.errors import ConfigError
from empatheia.text.batching import BucketBatchSampler, TokenBatchSampler, cut_by_length

LENGTHS = st.lists(st.integers(1, 60), max_size=80)


def test_the_fourth_example_opens_a_new_batch():
    # Gao et al., specification section 9, check 22: 4 * 40 > 100
    assert list(TokenBatchSampler([30, 30, 30, 40], 100, shuffle=False)) == [[0, 1, 2], [3]]


@given(LENGTHS, st.integers(1, 100), st.booleans(), st.integers(0, 3))
def test_token_batches_hold_every_example_once_and_keep_the_limit(lengths, limit, shuffle, seed):
    sampler = TokenBatchSampler(lengths, limit, shuffle=shuffle, seed=seed, bucket=2)
    batches = list(sampler)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    assert len(sampler) == len(batches)
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= limit


@given(LENGTHS, st.integers(1, 9), st.booleans())
def test_fixed_batches_hold_every_example_once(lengths, size, shuffle):
    sampler = BucketBatchSampler(lengths, size, shuffle=shuffle, seed=1, bucket=3)
    batches = list(sampler)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    assert len(sampler) == len(batches) == -(-len(lengths) // size)
    assert all(len(batch) <= size for batch in batches)


@pytest.mark.parametrize("make", [TokenBatchSampler, BucketBatchSampler])
def test_order_depends_on_seed_and_epoch_only(make):
    lengths = [5 + i % 17 for i in range(400)]
    first, again, other = (make(lengths, 64, seed=seed) for seed in (3, 3, 4))
    assert list(first) == list(again) == list(first)
    assert list(first) != list(other)
    epoch_0 = list(first)
    first.set_epoch(1)
    again.set_epoch(1)
    assert list(first) == list(again) != epoch_0
    assert len(first) == len(list(first))
    first.set_epoch(0)
    assert list(first) == epoch_0


def test_a_caller_may_change_a_batch_it_was_given():
    sampler = BucketBatchSampler([1, 2, 3], 2, shuffle=False)
    next(iter(sampler)).clear()
    assert list(sampler) == [[0, 1], [2]]


def test_batches_hold_examples_of_like_length():
    lengths = [(i * 37) % 100 + 1 for i in range(1000)]
    spread = [max(lengths[i] for i in b) - min(lengths[i] for i in b) for b in BucketBatchSampler(lengths, 10)]
    assert sum(spread) / len(spread) < 5  # at random it would be about 80


@pytest.mark.parametrize("n_workers", [0, 2])
def test_they_serve_a_data_loader(n_workers):
    sampler = TokenBatchSampler([3, 1, 2, 9], 6, seed=1)
    loader = DataLoader([10, 11, 12, 13], batch_sampler=sampler, num_workers=n_workers)
    assert sorted(int(x) for batch in loader for x in batch) == [10, 11, 12, 13]
    assert len(loader) == len(sampler)


def test_impossible_sizes_are_told():
    with pytest.raises(ConfigError, match="max_tokens is 0; accepted: at least 1"):
        TokenBatchSampler([1], 0)
    with pytest.raises(ConfigError, match="batch_size is -1; accepted: at least 1"):
        BucketBatchSampler([1], -1)


@given(st.lists(st.integers(1, 60), min_size=1, max_size=7).map(sorted), st.integers(0, 200))
def test_no_other_cut_of_a_batch_computes_less(lengths, cost):
    places = range(1, len(lengths))
    cuts = (
        [*(place for place in places if chosen >> place & 1), len(lengths)] for chosen in range(0, 1 << len(lengths), 2)
    )

    def computed(ends):
        return sum(cost + (end - start) * lengths[end - 1] for start, end in zip([0, *ends], ends, strict=False))

    assert computed(cut_by_length(lengths, cost)) == min(map(computed, cuts))


def test_nothing_is_cut_into_nothing():
    assert cut_by_length([], 5) == []
