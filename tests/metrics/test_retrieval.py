"""P@1,100: the three protocols of the specification (rashkin2018, section 2.4), ties, checks U and 15."""

import numpy as np
import pytest

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.retrieval import HitsAtK, block_scores, candidate_blocks


def perfect(n_pairs, protocol="blocks-shuffled"):
    vectors = np.random.default_rng(0).normal(size=(n_pairs, 16))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    metric = HitsAtK(protocol=protocol)
    for scores, gold in block_scores(vectors, vectors, candidate_blocks(n_pairs, protocol=protocol)):
        metric.update(scores, gold)
    return metric


@pytest.mark.parametrize("protocol", ["blocks-shuffled", "blocks-ordered"])
def test_check_u_perfect_pairs(protocol):
    """Check U: 5,259 perfect pairs evaluate 5,200 and give 100; 100 pairs evaluate none, which is no 0."""
    score = perfect(5259, protocol).compute()
    assert (score.value, score.n) == (100, 5200)
    with pytest.raises(DataError, match="100 pairs give no block of 100 but the last"):
        candidate_blocks(100, protocol=protocol)


def test_blocks():
    assert candidate_blocks(5738).shape == (57, 100)
    assert candidate_blocks(201, protocol="blocks-ordered")[1].tolist() == list(range(100, 200))
    assert candidate_blocks(200).shape == (1, 100)  # a full last block is left out, too
    shuffled = candidate_blocks(5259, seed=3)
    assert len(np.unique(shuffled)) == shuffled.size and not (shuffled.ravel() == np.arange(5200)).all()
    assert (shuffled == candidate_blocks(5259, seed=3)).all()
    assert (shuffled != candidate_blocks(5259, seed=4)).any()


def test_ranks_by_hand():
    table = [[3.0, 2.0, 1.0], [3.0, 2.0, 1.0], [3.0, 2.0, 1.0]]
    values = {}
    for k in (1, 2, 3):
        metric = HitsAtK(k, 3, "inline")
        metric.update(table, [0, 1, 2])
        values[k] = metric.compute()
    assert [values[k].value for k in (1, 2, 3)] == pytest.approx([100 / 3, 200 / 3, 100])
    assert values[1].parts["mean_reciprocal_rank"] == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert values[1].name == "p_at_1_3" and "protocol:inline" in values[1].signature


@pytest.mark.parametrize("ties, hits", [("mean", 50), ("worst", 0), ("first", 0)])
def test_equal_candidates(ties, hits):
    """Check 15: a block may hold the gold reply twice."""
    metric = HitsAtK(1, 3, "inline", ties=ties)
    metric.update([[5.0, 5.0, 1.0]], [1])
    assert metric.compute().value == hits
    assert metric.compute().parts["n_tied"] == 1


def test_mean_of_ties_is_the_mean_over_random_orders():
    rng = np.random.default_rng(1)
    scores = rng.integers(0, 3, size=(1, 6)).astype(float)
    metric = HitsAtK(2, 6, "inline")
    metric.update(scores, [4])
    hits, reciprocal = [], []
    for _ in range(4000):
        order = np.lexsort((rng.random(6), -scores[0]))
        rank = int(np.flatnonzero(order == 4)[0]) + 1
        hits.append(rank <= 2)
        reciprocal.append(1 / rank)
    assert metric.compute().value == pytest.approx(100 * np.mean(hits), abs=3)
    assert metric.compute().parts["mean_reciprocal_rank"] == pytest.approx(np.mean(reciprocal), abs=0.02)


def test_bad_input():
    with pytest.raises(ConfigError, match="k is 101 of 100"):
        HitsAtK(101)
    with pytest.raises(ConfigError, match="protocol is 'batches'"):
        HitsAtK(protocol="batches")
    with pytest.raises(ConfigError, match="unknown protocol 'inline'"):
        candidate_blocks(500, protocol="inline")
    metric = HitsAtK(1, 2, "inline")
    with pytest.raises(DataError, match=r"scores have shape \(1, 3\); accepted: \(n_items, 2\)"):
        metric.update([[1.0, 2.0, 3.0]], [0])
    with pytest.raises(DataError, match="item 0 has gold column 2"):
        metric.update([[1.0, 2.0]], [2])
    with pytest.raises(DataError, match="a score is NaN"):
        metric.update([[1.0, float("nan")]], [0])
