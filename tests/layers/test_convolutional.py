import pytest
import torch

from empatheia_research.layers.convolutional import UnbiasedLayerNorm, standardised


def written_out(states, eps):
    centred = states - states.mean(-1, keepdim=True)
    return centred / (states.std(-1, correction=1, keepdim=True) + eps)


@pytest.mark.parametrize("eps", [1e-6, 0.3])
def test_the_norm_divides_by_the_unbiased_deviation_plus_eps(eps):
    torch.manual_seed(0)
    states = (3 * torch.randn(2, 4, 7, dtype=torch.double) + 1).requires_grad_(True)
    torch.testing.assert_close(standardised(states, eps), written_out(states, eps))
    upper = torch.randn(2, 4, 7, dtype=torch.double)
    ours, theirs = (torch.autograd.grad(norm(states, eps), states, upper)[0] for norm in (standardised, written_out))
    torch.testing.assert_close(ours, theirs)
    assert torch.autograd.gradcheck(lambda x: standardised(x, eps), (states,))


def test_a_row_of_one_value_is_the_shift_and_has_a_finite_gradient():
    norm = UnbiasedLayerNorm(6)
    torch.nn.init.normal_(norm.bias)
    states = torch.stack((torch.zeros(6), torch.full((6,), 3.25), torch.arange(6.0))).requires_grad_(True)
    result = norm(states)
    torch.testing.assert_close(result[:2], norm.bias.expand(2, 6))
    result.square().sum().backward()
    assert states.grad.isfinite().all() and norm.weight.grad.isfinite().all()


def test_small_deviations_are_told_from_eps():
    states = 1e-6 * torch.randn(3, 5, dtype=torch.double)
    torch.testing.assert_close(standardised(states, 1e-6), written_out(states, 1e-6))
