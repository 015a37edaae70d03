import pytest
import torch
import torch.nn.functional as F

from empatheia_research.layers.smoothing import smoothed_cross_entropy
from empatheia_research.responders.seq2seq import smoothed_target


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.6])
def test_values_and_gradients_are_those_of_the_table_of_targets(smoothing):
    logits = torch.randn(7, 12, dtype=torch.float64) * 5
    labels = torch.tensor([1, 2, 3, 11, 5, 5, 7])
    q = smoothed_target(labels, 12, pad_id=0, smoothing=smoothing).double()
    ours, theirs = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    loss = smoothed_cross_entropy(ours, labels, 0, smoothing)
    expected = -(q * theirs.log_softmax(-1)).sum(-1)
    torch.testing.assert_close(loss, expected, atol=1e-6, rtol=1e-6)  # the table is in 32 bits
    weights = torch.randn(7, dtype=torch.float64)
    (loss * weights).sum().backward()
    (expected * weights).sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad, atol=1e-6, rtol=1e-6)


def test_gradient_agrees_with_differences():
    logits = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([1, 5, 3, 1])
    assert torch.autograd.gradcheck(lambda x: smoothed_cross_entropy(x, labels, 0, 0.1), (logits,))


def test_the_gradient_may_be_asked_for_twice():
    logits = torch.randn(4, 6, requires_grad=True)
    loss = smoothed_cross_entropy(logits, torch.tensor([1, 5, 3, 1]), 0, 0.1).sum()
    first = torch.autograd.grad(loss, logits, retain_graph=True)[0]
    assert torch.equal(first, torch.autograd.grad(loss, logits)[0])


def test_large_scores_and_half_precision_stay_finite():
    logits = torch.tensor([[300.0, -300.0, 250.0, 0.0]], requires_grad=True)
    loss = smoothed_cross_entropy(logits, torch.tensor([1]), 0, 0.1)
    loss.backward()
    assert loss.isfinite() and logits.grad is not None and logits.grad.isfinite().all()
    half = torch.randn(3, 9).to(torch.bfloat16)
    wide = smoothed_cross_entropy(half, torch.tensor([1, 2, 3]), 0, 0.0)
    assert wide.dtype == torch.float32
    torch.testing.assert_close(wide, F.cross_entropy(half.float(), torch.tensor([1, 2, 3]), reduction="none"))
