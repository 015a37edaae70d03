"""The rational speaker's equations: the worked numbers of the specification, and what must always hold."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from empatheia.errors import DecodingError
from empatheia.voices.decoding import check_rationality
from empatheia_research.decoding.pragmatics import log_listener, log_speaker, log_true_world, next_prior, priors_along

TWO = torch.tensor([[0.6, 0.4], [0.2, 0.8]], dtype=torch.float64).log()
EVEN = torch.tensor([0.5, 0.5], dtype=torch.float64).log()


def speaker(log_s0, prior, alpha, beta):
    return log_speaker(log_s0, prior, alpha, beta).exp().tolist()


def near(values, expected):
    return values == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("alpha", "beta", "expected"),
    [
        (1.0, 1.0, (27 / 35, 8 / 35)),
        (2.0, 1.0, (0.883636, 0.116364)),
        (0.0, 1.0, (0.6, 0.4)),
        (6.0, 0.9, (0.992040, 0.007960)),
        (1.0, 0.5, (0.696586, 0.303414)),
        (1.0, 0.0, (0.6, 0.4)),
    ],
)
def test_two_pieces_two_worlds(alpha, beta, expected):
    assert near(speaker(TWO, EVEN, alpha, beta), expected)


def test_the_listener():
    assert near(log_true_world(TWO, EVEN, 1.0).exp().tolist(), (0.75, 1 / 3))
    assert near(log_true_world(TWO, EVEN, 0.9).exp().tolist(), (0.728841, 0.348910))
    assert near(log_true_world(TWO, EVEN, 0.5).exp().tolist(), (0.633975, 0.414214))


def test_the_second_step():
    after_a = next_prior(EVEN, TWO[:, 0], 1.0, "L0")
    assert near(after_a.exp().tolist(), (0.75, 0.25))
    second = torch.tensor([[0.3, 0.7], [0.6, 0.4]], dtype=torch.float64).log()
    assert near(log_true_world(second, after_a, 1.0).exp().tolist(), (0.6, 0.84))
    assert near(speaker(second, after_a, 1.0, 1.0), (0.234375, 0.765625))
    stays = next_prior(EVEN, TWO[:, 0], 1.0, "uniform")
    assert near(log_true_world(second, stays, 1.0).exp().tolist(), (1 / 3, 0.636364))
    assert near(speaker(second, stays, 1.0, 1.0), (0.183333, 0.816667))


def test_a_sequence_and_the_closed_form_of_the_belief():
    second = torch.tensor([[0.3, 0.7], [0.6, 0.4]], dtype=torch.float64).log()
    said = torch.stack((TWO[:, 0], second[:, 1]))[None]  # "a b"
    belief = priors_along(said, 1.0, "L0")
    assert near(belief[0, 2].exp().tolist(), (0.84, 0.16))
    s1 = log_speaker(TWO, belief[0, 0], 1.0, 1.0)[0] + log_speaker(second, belief[0, 1], 1.0, 1.0)[1]
    assert near(math.exp(-float(s1) / 2), 1.301200)
    assert near(math.exp(-float(said[0, :, 0].sum()) / 2), 1.543033)


def test_the_best_piece_may_change():
    worlds = torch.tensor([[0.45, 0.55], [0.05, 0.95]], dtype=torch.float64).log()
    assert near(log_true_world(worlds, EVEN, 1.0).exp().tolist(), (0.9, 0.366667))
    assert near(speaker(worlds, EVEN, 1.0, 1.0), (0.667582, 0.332418))


def test_three_worlds():
    worlds = torch.tensor([[0.5, 0.3, 0.2], [0.5, 0.1, 0.4], [0.5, 0.2, 0.3]], dtype=torch.float64).log()
    even = torch.full((3,), -math.log(3), dtype=torch.float64)
    assert near(log_true_world(worlds, even, 1.0).exp().tolist(), (1 / 3, 1 / 2, 2 / 9))
    assert near(speaker(worlds, even, 1.0, 1.0), (0.461538, 0.415385, 0.123077))
    assert near(speaker(worlds, even, 2.0, 1.0), (0.395604, 0.534066, 0.070330))
    assert near(next_prior(even, worlds[:, 1], 1.0, "L0").exp().tolist(), (0.5, 0.166667, 0.333333))
    assert near(next_prior(even, worlds[:, 0], 1.0, "L0").tolist(), even.tolist())


def test_the_released_belief_goes_by_each_worlds_favourite():
    # world 0 would say a (.6; L0 .75), world 1 would say b (.8; L0 of world 1 at b is 2/3)
    expected = torch.tensor([0.6 * 0.75, 0.8 * 2 / 3], dtype=torch.float64)
    found = next_prior(EVEN, TWO[:, 1], 1.0, "L1", TWO).exp()
    assert near(found.tolist(), (expected / expected.sum()).tolist())
    with pytest.raises(DecodingError, match="all pieces"):
        next_prior(EVEN, TWO[:, 1], 1.0, "L1")


worlds_of = st.tuples(st.integers(2, 5), st.integers(2, 7), st.integers(0, 10**6))
rates = st.floats(0.0, 8.0)


@given(worlds_of, rates, st.floats(0.0, 2.0))
def test_probabilities_sum_to_one_and_order_of_distractors_is_nothing(shape, alpha, beta):
    n_worlds, n_pieces, seed = shape
    g = torch.Generator().manual_seed(seed)
    worlds = (torch.randn(n_worlds, n_pieces, generator=g, dtype=torch.float64) * 3).log_softmax(-1)
    prior = torch.randn(n_worlds, generator=g, dtype=torch.float64).log_softmax(-1)
    listener = log_listener(worlds, prior, beta)
    torch.testing.assert_close(listener.exp().sum(0), torch.ones(n_pieces, dtype=torch.float64))
    torch.testing.assert_close(listener[0], log_true_world(worlds, prior, beta))
    s1 = log_speaker(worlds, prior, alpha, beta)
    assert float(s1.exp().sum()) == pytest.approx(1.0)
    by_hand = (alpha * listener[0] + worlds[0]).log_softmax(-1)
    torch.testing.assert_close(s1, by_hand)
    order = torch.cat((torch.zeros(1, dtype=torch.long), 1 + torch.randperm(n_worlds - 1, generator=g)))
    torch.testing.assert_close(s1, log_speaker(worlds[order], prior[order], alpha, beta))


@given(worlds_of, rates)
def test_what_tells_nothing_changes_nothing(shape, alpha):
    n_worlds, n_pieces, seed = shape
    g = torch.Generator().manual_seed(seed)
    worlds = torch.randn(n_worlds, n_pieces, generator=g, dtype=torch.float64).log_softmax(-1)
    even = torch.zeros(n_worlds, dtype=torch.float64).log_softmax(-1)
    torch.testing.assert_close(log_speaker(worlds, even, alpha, 0.0), worlds[0])
    same = worlds[:1].expand(n_worlds, -1)
    torch.testing.assert_close(log_speaker(same, even, alpha, 0.9), worlds[0])
    twin = torch.cat((worlds[:1], worlds))
    even = torch.zeros(n_worlds + 1, dtype=torch.float64).log_softmax(-1)
    assert bool((log_true_world(twin, even, 1.0).exp() <= 0.5 + 1e-12).all())


@given(worlds_of, st.floats(0.1, 2.0), st.integers(1, 6))
def test_the_belief_is_the_product_of_what_was_said(shape, beta, n_steps):
    n_worlds, n_pieces, seed = shape
    g = torch.Generator().manual_seed(seed)
    steps = torch.randn(n_steps, n_worlds, n_pieces, generator=g, dtype=torch.float64).log_softmax(-1)
    pieces = torch.randint(n_pieces, (n_steps,), generator=g)
    belief = torch.zeros(n_worlds, dtype=torch.float64).log_softmax(-1)
    for step, piece in zip(steps, pieces, strict=True):
        belief = next_prior(belief, step[:, piece], beta, "L0")
    said = steps.gather(-1, pieces[:, None, None].expand(-1, n_worlds, 1)).squeeze(-1)
    torch.testing.assert_close(belief, (beta * said.sum(0)).log_softmax(-1))
    torch.testing.assert_close(belief, priors_along(said[None], beta, "L0")[0, -1])


def test_forbidden_pieces_stay_forbidden_and_nothing_is_nan():
    worlds = torch.tensor([[0.5, 0.5, 0.0, 0.0], [0.5, 0.0, 0.5, 0.0]], dtype=torch.float64).log()
    s1 = log_speaker(worlds, EVEN, 6.0, 0.9)
    assert s1[2] == s1[3] == -torch.inf and not s1.isnan().any()
    assert float(s1.exp().sum()) == pytest.approx(1.0) and s1[1] > s1[0]  # only the true world would say it
    assert not log_listener(worlds, EVEN, 0.9).isnan().any()
    kept = next_prior(EVEN, torch.tensor([-torch.inf, -torch.inf], dtype=torch.float64), 0.9, "L0")
    torch.testing.assert_close(kept, EVEN)


@pytest.mark.parametrize(
    ("alpha", "beta", "prior", "n_worlds", "said"),
    [
        (-1.0, 0.9, "L0", 3, "alpha is -1.0; accepted: 0 or more"),
        (float("nan"), 0.9, "L0", 3, "alpha is nan"),
        (6.0, -0.1, "L0", 3, "beta is -0.1"),
        (6.0, 0.9, "l0", 3, "Accepted: L0, uniform, L1"),
        (6.0, 0.9, "L0", 1, "nothing to be told from"),
    ],
)
def test_wrong_values_are_told(alpha, beta, prior, n_worlds, said):
    with pytest.raises(DecodingError, match=said.replace("(", r"\(")):
        check_rationality(alpha, beta, prior, n_worlds)
