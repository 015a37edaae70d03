"""Pooling: the worked example of the specification (MEED2, section 13, "Pooling"), padding, weights."""

from __future__ import annotations

from math import log

import pytest
import torch

from empatheia.errors import ConfigError
from empatheia_research.layers.pooling import POOLINGS, Pooling, mean_pool

STATES = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [2.0, 2.0]]])
ALL = torch.tensor([[True, True, True]])
FIRST_TWO = torch.tensor([[True, True, False]])


def pooling(form: str, query: tuple[float, float]) -> Pooling:
    torch.manual_seed(0)
    layer = Pooling(form, 2)
    layer.query.weight.data = torch.tensor([query])
    return layer


@pytest.mark.parametrize("form", ["dot", "additive"])
def test_a_zero_query_is_the_mean(form):
    """MEED2 checks, pooling: v = 0 gives the mean, for any W and b."""
    layer = pooling(form, (0.0, 0.0))
    assert torch.allclose(layer(STATES, ALL), torch.tensor([[1.0, 1.0]]))
    assert torch.allclose(layer(STATES, FIRST_TWO), torch.tensor([[0.5, 0.5]]))


def test_dot_form_of_the_paper():
    """MEED2 checks, pooling: v = (ln 2, 0) with the third state masked gives weights 2/3 and 1/3."""
    layer = pooling("dot", (log(2.0), 0.0))
    assert torch.allclose(layer.weights(STATES, FIRST_TWO), torch.tensor([[2 / 3, 1 / 3, 0.0]]))
    assert torch.allclose(layer(STATES, FIRST_TWO), torch.tensor([[2 / 3, 1 / 3]]))


def test_additive_form_scores_the_transformed_state_and_averages_the_state():
    layer = pooling("additive", (0.5, -1.0))
    scores = torch.tanh(STATES @ layer.transform.weight.T + layer.transform.bias) @ layer.query.weight[0]
    expected = (scores.softmax(-1).unsqueeze(-1) * STATES).sum(1)
    assert torch.allclose(layer(STATES, ALL), expected)
    assert not torch.allclose(expected, STATES.mean(1))


@pytest.mark.parametrize("form", POOLINGS)
def test_padding_changes_nothing_and_weights_sum_to_one(form):
    """MEED2 checks, pooling: padding positions never change the result."""
    torch.manual_seed(1)
    layer = Pooling(form, 4)
    states, keep = torch.randn(3, 5, 4), torch.arange(5) < torch.tensor([[5], [3], [1]])
    junk = torch.where(keep.unsqueeze(-1), states, torch.full_like(states, 1e6))
    assert torch.allclose(layer(states, keep), layer(junk, keep))
    for row, n in enumerate((5, 3, 1)):
        assert torch.allclose(layer(states, keep)[row], layer(states[row : row + 1, :n], keep[row : row + 1, :n])[0])
    assert torch.allclose(layer.weights(states, keep).sum(1), torch.ones(3))
    assert torch.allclose(torch.einsum("bs,bsw->bw", layer.weights(states, keep), states), layer(states, keep))


def test_a_row_without_states_is_zero():
    assert mean_pool(STATES, torch.zeros(1, 3, dtype=torch.bool)).tolist() == [[0.0, 0.0]]


def test_unknown_form():
    with pytest.raises(ConfigError, match="pooling is 'max'; accepted: cls, mean, dot, additive"):
        Pooling("max", 2)
