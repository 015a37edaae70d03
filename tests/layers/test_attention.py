"""Attention against torch, and the gated forms against the worked checks of Gao et al.'s specification (section 9)."""

import math

import pytest
import torch
from torch import nn

from empatheia_research.layers.attention import Attention, gated_weights
from empatheia_research.layers.gates import hard_gates, soft_gates
from empatheia_research.layers.positions import sinusoidal_positions


def attend(attention, queries, memory, keep=None, gates=None):
    keys, values = attention.project(memory, gates)
    mask = None if keep is None else keep[:, None, None, :]
    return attention(queries, keys, values, mask, gates)


@pytest.fixture
def parts():
    torch.manual_seed(0)
    queries, memory = torch.randn(2, 3, 12), torch.randn(2, 5, 12)
    keep = torch.tensor([[True] * 5, [True, True, True, False, False]])
    return queries, memory, keep


def forms(width=12, heads=3):
    torch.manual_seed(1)
    first = Attention(width, heads, gate_form="weights")
    others = [Attention(width, heads, gate_form=form) for form in ("memory", "bias")]
    for other in others:
        other.load_state_dict(first.state_dict())
    return first, *others


def test_plain_attention_equals_torch_multihead_attention():
    # torch.nn.MultiheadAttention is the independent source
    torch.manual_seed(0)
    ours = Attention(12, 3)
    theirs = nn.MultiheadAttention(12, 3, bias=False, batch_first=True)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.key.weight, ours.value.weight]))
        theirs.out_proj.weight.copy_(ours.out.weight)
    queries, memory = torch.randn(2, 3, 12), torch.randn(2, 5, 12)
    keep = torch.tensor([[True] * 5, [True, True, False, False, False]])
    expected, looks = theirs(queries, memory, memory, key_padding_mask=~keep, average_attn_weights=False)
    torch.testing.assert_close(attend(ours, queries, memory, keep), expected, atol=1e-6, rtol=1e-5)
    keys, _ = ours.project(memory)
    torch.testing.assert_close(ours.weights(queries, keys, keep[:, None, None]), looks, atol=1e-6, rtol=1e-5)


def test_all_gates_open_equals_plain_attention_in_every_form(parts):  # check 3
    queries, memory, keep = parts
    ones = torch.ones(2, 5)
    for attention in forms():
        plain = attend(attention, queries, memory, keep)
        torch.testing.assert_close(attend(attention, queries, memory, keep, ones), plain, atol=1e-6, rtol=1e-5)


def test_scaling_gates_changes_the_repo_soft_form_only(parts):  # check 4
    queries, memory, keep = parts
    gates = torch.rand(2, 5) * 0.5 + 0.2
    paper, repo, _ = forms()
    torch.testing.assert_close(
        attend(paper, queries, memory, keep, gates),
        attend(paper, queries, memory, keep, 1.7 * gates),
        atol=1e-6,
        rtol=1e-5,
    )
    assert not torch.allclose(
        attend(repo, queries, memory, keep, gates), attend(repo, queries, memory, keep, 1.7 * gates), atol=1e-4
    )


def test_binary_gates_give_zero_weight_where_closed_and_sum_to_one(parts):  # check 5
    torch.manual_seed(2)
    scores = torch.randn(2, 3, 4, 5) * 5
    gates = torch.tensor([[1.0, 0, 1, 0, 1], [1.0, 1, 0, 1, 1]])
    keep = parts[2][:, None, None, :]
    weights = gated_weights(scores, keep, gates)
    closed = (gates == 0)[:, None, None, :].expand_as(weights)
    assert (weights[closed] == 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 4))
    # the hard (bias) form agrees on open positions
    paper, _, bias = forms()
    queries, memory, mask = parts
    torch.testing.assert_close(
        attend(paper, queries, memory, mask, gates), attend(bias, queries, memory, mask, gates), atol=1e-6, rtol=1e-5
    )


def test_only_cls_open_returns_its_value_for_every_query(parts):  # check 6
    queries, memory, keep = parts
    gates = torch.zeros(2, 5)
    gates[:, 0] = 1
    paper = forms()[0]
    value = paper.out(paper.value(memory[:, :1])).expand(-1, 3, -1)
    torch.testing.assert_close(attend(paper, queries, memory, keep, gates), value, atol=1e-6, rtol=1e-5)


def test_repo_soft_closed_position_keeps_softmax_mass():  # check 7
    attention = Attention(1, 1, gate_form="memory")
    with torch.no_grad():
        for part in (attention.query, attention.key, attention.value, attention.out):
            part.weight.fill_(1.0)
    memory = torch.tensor([[[1.5], [0.7]]])
    score = 1.0 * 1.5
    expected = math.exp(score) / (math.exp(score) + 1) * 1.5
    mixed = attend(attention, torch.ones(1, 1, 1), memory, None, torch.tensor([[1.0, 0.0]]))
    assert mixed.item() == pytest.approx(expected, abs=1e-6)


def test_padding_never_gets_weight_whatever_its_gate(parts):  # check 8
    queries, memory, keep = parts
    changed = memory.clone()
    changed[1, 3:] = 1e3
    gates = torch.rand(2, 5)
    gates[1, 3:] = 1.0
    other = gates.clone()
    other[1, 3:] = 0.0
    for attention in forms():
        torch.testing.assert_close(
            attend(attention, queries, memory, keep, gates), attend(attention, queries, changed, keep, other)
        )


def test_hard_gate_frequency_and_gradient():  # check 9
    torch.manual_seed(0)
    logits = torch.tensor([[[0.3, 0.9]]]).expand(1, 10_000, 2).clone().requires_grad_()
    gates = hard_gates(logits, sample=True, open_first=False)
    assert set(gates.unique().tolist()) <= {0.0, 1.0}
    probability = soft_gates(logits)[0, 0].item()
    assert gates.mean().item() == pytest.approx(probability, abs=0.02)
    few = torch.randn(2, 4, 2, requires_grad=True)
    scores = torch.randn(2, 1, 3, 4)
    weights = gated_weights(scores, None, hard_gates(few, sample=True))
    (weights * torch.randn(2, 1, 3, 4)).sum().backward()
    assert few.grad is not None and torch.isfinite(few.grad).all() and few.grad.abs().sum() > 0


def test_hard_gate_at_evaluation_is_the_more_probable_class_and_cls_is_open():
    logits = torch.tensor([[[2.0, -1.0], [0.0, 1.0], [1.0, 0.0]]])
    assert hard_gates(logits, sample=False).tolist() == [[1.0, 1.0, 0.0]]
    assert hard_gates(logits, sample=False, open_first=False).tolist() == [[0.0, 1.0, 0.0]]


@pytest.mark.parametrize("form", ["weights", "memory"])
def test_what_is_kept_is_projected_alike_and_the_rest_is_zero(form):
    torch.manual_seed(0)
    attention, memory, gates = Attention(8, 2, gate_form=form), torch.randn(3, 5, 8), torch.rand(3, 5)
    keep = torch.arange(5) < torch.tensor([[5], [2], [3]])
    for whole, kept in zip(attention.project(memory, gates), attention.project(memory, gates, keep), strict=True):
        torch.testing.assert_close(kept, whole * keep[:, None, :, None])


def test_positions_follow_the_formula():
    table = sinusoidal_positions(torch.arange(7), 10)
    assert table[3, 4].item() == pytest.approx(math.sin(3 / 10000 ** (4 / 10)), abs=1e-6)
    assert table[3, 5].item() == pytest.approx(math.cos(3 / 10000 ** (4 / 10)), abs=1e-6)
    torch.testing.assert_close(sinusoidal_positions(torch.tensor([5]), 10)[0], table[5])


def test_attention_width_must_divide():
    with pytest.raises(ValueError, match="not a multiple of 8 heads"):
        Attention(300, 8)
