"""Batch samplers that keep sequences of like length together: a fixed number of examples, or of tokens.

The token rule is Gao et al.'s released code: a batch of n takes another example while
``(n + 1) * max(source, target length) <= limit`` (specification, check 22).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from empatheia.errors import ConfigError


class _LengthSampler:
    """Shuffles into pools, sorts each pool by length, cuts it into batches, shuffles the batches.

    Deterministic for a seed and an epoch; every example comes exactly once an epoch.
    """

    def __init__(self, lengths: Sequence[int], *, shuffle: bool, seed: int, pool_size: int) -> None:
        self.lengths = list(lengths)
        self.shuffle = shuffle
        self.seed = seed
        self.pool_size = max(1, pool_size)
        self.epoch = 0
        self._made: tuple[int, list[list[int]]] | None = None

    def set_epoch(self, epoch: int) -> None:
        """Chooses the epoch whose batches the next iteration gives."""
        self.epoch = epoch

    def _cut(self, indices: list[int]) -> list[list[int]]:
        raise TypeError("a sampler must say how it cuts a pool into batches.")

    def batches(self) -> list[list[int]]:
        """The batches of the current epoch, in order."""
        if self._made is None or self._made[0] != self.epoch:
            self._made = (self.epoch, self._make())
        return self._made[1]

    def _make(self) -> list[list[int]]:
        indices = list(range(len(self.lengths)))
        if not self.shuffle:
            return self._cut(sorted(indices, key=lambda i: (self.lengths[i], i)))
        rng = random.Random(f"{self.seed}/{self.epoch}")
        rng.shuffle(indices)
        out: list[list[int]] = []
        for start in range(0, len(indices), self.pool_size):
            out += self._cut(sorted(indices[start : start + self.pool_size], key=lambda i: self.lengths[i]))
        rng.shuffle(out)
        return out

    def __iter__(self) -> Iterator[list[int]]:
        return iter([list(batch) for batch in self.batches()])

    def __len__(self) -> int:
        return len(self.batches())


class TokenBatchSampler(_LengthSampler):
    """Batches of at most ``max_tokens`` padded tokens.

    Args:
        lengths: Tokens of each example (the longer of source and target).
        max_tokens: Limit; an example longer than it gets a batch of its own.
        shuffle: Random order; False sorts all by length.
        seed: Of the order.
        bucket: How many average batches a pool holds.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        max_tokens: int,
        *,
        shuffle: bool = True,
        seed: int = 0,
        bucket: int = 50,
    ) -> None:
        if max_tokens < 1:
            raise ConfigError(f"max_tokens is {max_tokens}; accepted: at least 1.")
        mean = max(1.0, sum(lengths) / max(1, len(lengths)))
        pool_size = int(bucket * max(1.0, max_tokens / mean))
        super().__init__(lengths, shuffle=shuffle, seed=seed, pool_size=pool_size)
        self.max_tokens = max_tokens

    def _cut(self, indices: list[int]) -> list[list[int]]:
        out: list[list[int]] = []
        batch: list[int] = []
        longest = 0
        for i in indices:
            longest = max(longest, self.lengths[i])
            if batch and (len(batch) + 1) * longest > self.max_tokens:
                out.append(batch)
                batch, longest = [], self.lengths[i]
            batch.append(i)
        if batch:
            out.append(batch)
        return out


class BucketBatchSampler(_LengthSampler):
    """Batches of ``batch_size`` examples of like length.

    Args:
        lengths: Tokens of each example.
        batch_size: Examples a batch; the last of a pool may be smaller.
        shuffle: Random order; False sorts all by length.
        seed: Of the order.
        bucket: How many batches a pool holds.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        batch_size: int,
        *,
        shuffle: bool = True,
        seed: int = 0,
        bucket: int = 50,
    ) -> None:
        if batch_size < 1:
            raise ConfigError(f"batch_size is {batch_size}; accepted: at least 1.")
        super().__init__(lengths, shuffle=shuffle, seed=seed, pool_size=bucket * batch_size)
        self.batch_size = batch_size

    def _cut(self, indices: list[int]) -> list[list[int]]:
        return [indices[i : i + self.batch_size] for i in range(0, len(indices), self.batch_size)]


def cut_by_length(lengths: Sequence[int], cost: int) -> list[int]:
    """Where a batch sorted by length is cut so that the least is computed in vain.

    A part of n sequences costs what it costs by itself and n times its longest sequence: padding is computed, too.

    Args:
        lengths: Tokens of each sequence, ascending.
        cost: Of a part by itself, in tokens.

    Returns:
        The ends of the parts; the last one is the number of sequences.

    >>> cut_by_length([10, 11, 12, 90], 30), cut_by_length([10, 11, 12, 90], 1000)
    ([3, 4], [4])
    """
    least, first = [0], [0]  # the cost of the first n sequences, and where their last part begins
    for end in range(1, len(lengths) + 1):
        costs = [least[start] + cost + (end - start) * lengths[end - 1] for start in range(end)]
        first.append(min(range(end), key=costs.__getitem__))
        least.append(costs[first[-1]])
    ends: list[int] = []
    end = len(lengths)
    while end:
        ends.append(end)
        end = first[end]
    return ends[::-1]
