"""Frequency-aware weights; numbers in the docstrings are the checks of the specification of IMAGINE, section 10."""

import math

import pytest
import torch

from empatheia_research.layers.face import WordFrequencies, count_replies, frequency_weights
from empatheia_research.layers.refinement import GatedMLP, beside

EOS, BOS = 2, 1


def frequencies(size=4, source="predictions", **settings):
    return WordFrequencies(size, source, eos_id=EOS, bos_id=BOS, pad_id=0, **settings)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [([0, 1, 3, 4], [2, 1.5, 0.5, 0]), ([2, 5, 3, 10], [1.6, 1, 1.4, 0]), ([0, 5, 3, 4], [2.5, 0, 1, 0.5])],
)
def test_printed_weights(counts, expected):
    """Checks 1, 2 and 3."""
    torch.testing.assert_close(frequency_weights(torch.tensor(counts)), torch.tensor(expected, dtype=torch.float))


def test_running_update():
    """Check 3: from check 1, a batch predicts word 1 four times."""
    own = frequencies()
    own.bos_id = own.eos_id = 9
    own.counts.copy_(torch.tensor([0, 1, 3, 4]))
    logits = torch.nn.functional.one_hot(torch.ones(1, 4, dtype=torch.long), 4).float()
    own.see(logits, torch.tensor([[1, 2, 3, 3]]))
    assert own.counts.tolist() == [0, 5, 3, 4]
    torch.testing.assert_close(own(torch.tensor([[0, 1, 2, 3, -100]])), torch.tensor([[2.5, 0, 1, 0.5, 0]]))


def test_closed_form_is_the_stepwise_one():
    """Check 4."""
    counts = torch.randint(0, 50, (30,), generator=torch.Generator().manual_seed(1))
    share = counts.double() / counts.sum()
    raw = -share / share.max() + 1
    expected = raw * 30 / raw.sum()
    weights = frequency_weights(counts)
    torch.testing.assert_close(weights, expected.float())
    assert weights.sum() == pytest.approx(30, abs=1e-4) and weights.min() == 0


@pytest.mark.parametrize("counts", [[0, 0, 0], [7, 7, 7], [1]])
def test_equal_counts_give_ones(counts):
    """Check 4 and trap 9.1.2: nothing is divided by 0."""
    assert frequency_weights(torch.tensor(counts)).tolist() == [1.0] * len(counts)


def test_a_uniform_model():
    """Check 5: L_gen = ln 4, L_div = (1.5 + 0.5 + 0) / 3 ln 4, together ln 16."""
    own = frequencies().eval()
    own.counts.copy_(torch.tensor([0, 1, 3, 4]))
    labels = torch.tensor([[1, 2, 3, -100]])
    nll = torch.full(labels.shape, math.log(4)) * labels.ge(0)
    diversity = (own(labels) * nll).sum() / 3
    assert diversity.item() == pytest.approx(0.924196, abs=1e-6)
    assert (nll.sum() / 3 + 1.5 * diversity).item() == pytest.approx(2.772589, abs=1e-6)


def test_what_counts_of_predictions():
    """Check 6: a leading BOS, EOS and what follows do not; each reply anew."""
    words = torch.tensor([BOS, 7, 9, EOS, 7, 7, 8, BOS, EOS, 3])
    starts = torch.tensor([1, 0, 0, 0, 0, 0, 1, 0, 0, 0]).bool()
    assert words[count_replies(words, starts, EOS, BOS)].tolist() == [7, 9, 8, BOS]


def test_replies_on_one_row_are_counted_apart():
    logits = torch.nn.functional.one_hot(torch.tensor([[3, EOS, 4, 5, 5, 4]]), 6).float()
    own = frequencies(6)
    own.see(logits, torch.tensor([[4, 4, EOS, 5, 5, EOS]]))  # two replies of three words
    assert own.counts.tolist() == [0, 0, 0, 1, 1, 2]


def test_padding_and_evaluation():
    """Check 7; the released code counts in both."""
    logits = torch.nn.functional.one_hot(torch.tensor([[3, 3, 4, 5]]), 6).float()
    labels = torch.tensor([[4, EOS, -100, -100]])
    for always, expected in ((False, [0, 0, 0, 2, 0, 0]), (True, [0, 0, 0, 2, 1, 1])):
        own = frequencies(6, counts_always=always)
        own.see(logits, labels)
        assert own.counts.tolist() == expected
        own.eval().see(logits, labels)
        assert own.counts.tolist() == [count * (1 + always) for count in expected]


def test_the_corpus_is_counted_once_without_end_marks():
    own = frequencies(5, "corpus")
    for _ in range(2):
        own.set_corpus(torch.tensor([3, 4, 3, EOS, 4, 3, EOS]))
    own.see(torch.rand(1, 4, 5), torch.tensor([[3, 3, 3, 3]]))
    assert own.counts.tolist() == [0, 0, 0, 3, 2]
    other = frequencies(5)
    other.set_corpus(torch.tensor([3, 4]))
    assert other.counts.sum() == 0
    with pytest.raises(ValueError, match="accepted: corpus, predictions"):
        frequencies(5, "book")


def test_gated_mlp():
    """Check 8: sigmoid(x) x is SiLU, and 0 gives 0."""
    mlp, x = GatedMLP(4, 6, 3), torch.randn(2, 4)
    by_hand = ((torch.sigmoid(x) * x) @ mlp.first.weight.T).relu() @ mlp.second.weight.T
    torch.testing.assert_close(mlp(x), by_hand)
    assert mlp(torch.zeros(2, 4)).abs().sum() == 0
    assert beside(torch.ones(2, 3, 4), torch.zeros(2, 5)).sum(-1).eq(4).all()
