"""Choosing the gold reply among candidates: P@1,100 (Rashkin et al. 2018, section 5) and hits@k.

Three protocols print the same name. The released code of Rashkin et al. (function ``validate``) cuts the pairs of a
split into blocks of 100, in file order or shuffled, ranks the gold replies of a block for each of its contexts, and
never evaluates the last block, even a full one. The paper describes the shuffled form. The corpus also has 100
candidates in each row (``inline``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Literal, get_args

import numpy as np

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.base import Metric, check_same_length

Protocol = Literal["blocks-shuffled", "blocks-ordered", "inline"]
BlockProtocol = Literal["blocks-shuffled", "blocks-ordered"]
"""Of these, the two in which replies of a block are each other's candidates."""
Ties = Literal["mean", "worst", "first"]


def candidate_blocks(
    n_pairs: int,
    size: int = 100,
    protocol: BlockProtocol = "blocks-shuffled",
    seed: int = 0,
) -> np.ndarray:
    """Which pairs stand in one block; the last block, whole or not, is left out.

    Args:
        n_pairs: Pairs of context and gold reply in the split.
        size: Candidates.
        protocol: ``blocks-shuffled`` or ``blocks-ordered`` (file order: several replies of one conversation fall
            into a block, which makes the choice harder).
        seed: Of the shuffle.

    Returns:
        int64 indices of pairs. Shape: (n_blocks, size).

    Raises:
        ConfigError: Unknown protocol.
        DataError: There is no block but the last.

    Example:
        >>> candidate_blocks(5, size=2, protocol="blocks-ordered").tolist()
        [[0, 1], [2, 3]]
        >>> candidate_blocks(5259).shape
        (52, 100)
    """
    if protocol not in ("blocks-shuffled", "blocks-ordered"):
        raise ConfigError(f"unknown protocol {protocol!r}; accepted: blocks-shuffled, blocks-ordered.")
    n_blocks = max(0, -(-n_pairs // size) - 1)
    if not n_blocks:
        raise DataError(
            f"{n_pairs} pairs give no block of {size} but the last, which this protocol leaves out; give at least"
            f" {size + 1} pairs."
        )
    order = np.arange(n_pairs)
    if protocol == "blocks-shuffled":
        order = np.random.default_rng(seed).permutation(n_pairs)
    return order[: n_blocks * size].reshape(n_blocks, size)


def block_scores(
    contexts: np.ndarray, candidates: np.ndarray, blocks: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Dot products of each block, ready for :meth:`HitsAtK.update`.

    Args:
        contexts: Vectors of the contexts. Shape: (n_pairs, width).
        candidates: Vectors of the gold replies, in the same order. Shape: (n_pairs, width).
        blocks: Of :func:`candidate_blocks`.

    Yields:
        Scores, shape (size, size), and the gold column of each row, shape (size,).
    """
    check_same_length("block_scores", contexts=contexts, candidates=candidates)
    for block in blocks:
        yield np.asarray(contexts)[block] @ np.asarray(candidates)[block].T, np.arange(len(block))


class HitsAtK(Metric):
    """Share of items whose gold candidate is among the k best of n: 0 to 100 percent, higher is better.

    Args:
        k: How many may be returned; 1 gives precision at 1.
        n_candidates: Candidates of each item.
        protocol: Where they come from, see the module.
        seed: Of the shuffle, for the signature of ``blocks-shuffled``.
        ties: What candidates that score as the gold one do: ``mean`` counts the chance of a hit under a random order,
            ``worst`` puts them before it, ``first`` puts those with a lower index before it. A block often holds the
            same reply twice ("I am sorry to hear that .").

    Raises:
        ConfigError: A setting is out of range.

    Example:
        >>> metric = HitsAtK(k=1, n_candidates=3, protocol="inline")
        >>> metric.update([[0.9, 0.1, 0.3], [0.2, 0.5, 0.5]], gold=[0, 1])
        >>> metric.compute().value
        75.0
    """

    unit = "percent"
    columns = ("hit", "hit_at_1", "hit_at_3", "hit_at_10", "reciprocal_rank", "n_tied", "n_items")

    def __init__(
        self,
        k: int = 1,
        n_candidates: int = 100,
        protocol: Protocol = "blocks-shuffled",
        seed: int = 0,
        ties: Ties = "mean",
    ) -> None:
        super().__init__()
        if not 1 <= k <= n_candidates:
            raise ConfigError(f"k is {k} of {n_candidates} candidates; accepted: 1 to {n_candidates}.")
        if protocol not in get_args(Protocol) or ties not in get_args(Ties):
            raise ConfigError(
                f"protocol is {protocol!r}, ties {ties!r}; accepted: {', '.join(get_args(Protocol))};"
                f" {', '.join(get_args(Ties))}."
            )
        self.k, self.n_candidates, self.protocol, self.seed, self.ties = k, n_candidates, protocol, seed, ties
        self.name = f"p_at_{k}_{n_candidates}"

    def update(
        self, scores: Sequence[Sequence[float]] | np.ndarray, gold: Sequence[int] | np.ndarray | None = None
    ) -> None:
        """Adds items.

        Args:
            scores: Higher is better. Shape: (n_items, n_candidates).
            gold: Column of the gold candidate of each item; None = the diagonal (a block). Shape: (n_items,).

        Raises:
            DataError: The shape is wrong, a score is NaN, or a gold column does not exist.
        """
        table = np.asarray(scores, dtype=np.float64)
        if table.size == 0 and (gold is None or not len(gold)):
            return
        if table.ndim != 2 or table.shape[1] != self.n_candidates:
            raise DataError(f"{self.name}: scores have shape {table.shape}; accepted: (n_items, {self.n_candidates}).")
        truth = np.arange(len(table)) if gold is None else np.asarray(gold, dtype=np.int64)
        check_same_length(self.name, scores=table, gold=truth)
        wrong = np.flatnonzero((truth < 0) | (truth >= self.n_candidates))
        if len(wrong) or np.isnan(table).any():
            what = f"item {wrong[0]} has gold column {truth[wrong[0]]}" if len(wrong) else "a score is NaN"
            raise DataError(f"{self.name}: {what}; accepted: numbers, and columns 0 to {self.n_candidates - 1}.")
        of_gold = table[np.arange(len(table)), truth][:, None]
        better = (table > of_gold).sum(axis=1)
        tied = (table == of_gold).sum(axis=1) - 1
        before = better + {"mean": 0, "worst": tied, "first": self._tied_before(table, of_gold, truth)}[self.ties]
        places = tied + 1 if self.ties == "mean" else np.ones_like(tied)  # equally likely places from `before` on
        hits = [np.clip((k - before) / places, 0, 1) for k in (self.k, 1, 3, 10)]
        harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, self.n_candidates + 1))])
        reciprocal = (harmonic[before + places] - harmonic[before]) / places
        self._append(np.stack([*hits, reciprocal, tied > 0, np.ones(len(table))], axis=1))

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """Percent."""
        return 100 * sums[..., 0] / sums[..., -1]

    def settings(self) -> Mapping[str, object]:
        """Protocol, candidates, ties; the seed where there is a shuffle."""
        seed = {"seed": self.seed} if self.protocol == "blocks-shuffled" else {}
        return {"k": self.k, "candidates": self.n_candidates, "protocol": self.protocol, "ties": self.ties, **seed}

    def parts_of(self, sums: np.ndarray) -> dict[str, float]:
        """Hits at 1, 3 and 10 in percent, mean reciprocal rank (a fraction), items with a tie."""
        hits = {f"hits_at_{k}": float(100 * sums[i] / sums[-1]) for i, k in ((1, 1), (2, 3), (3, 10))}
        return {**hits, "mean_reciprocal_rank": float(sums[4] / sums[-1]), "n_tied": int(sums[5])}

    @staticmethod
    def _tied_before(table: np.ndarray, of_gold: np.ndarray, truth: np.ndarray) -> np.ndarray:
        return ((table == of_gold) & (np.arange(table.shape[1]) < truth[:, None])).sum(axis=1)


p_at_1_100, p_at_3_100, p_at_10_100 = partial(HitsAtK, 1), partial(HitsAtK, 3), partial(HitsAtK, 10)
