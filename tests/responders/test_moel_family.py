"""Checks 1 to 9 and 15 of the baselines' specification: what all of MoEL's family stands on."""

import math

import pytest
import torch
from transformers import get_scheduler

from empatheia.metrics import METRICS
from empatheia.records.dialogue import Example, Turn
from empatheia.text.words import tokenize_words
from empatheia_research.layers.convolutional import (
    ConvolutionalDecoder,
    ConvolutionalDecoderLayer,
    ConvolutionalEncoder,
    ConvolutionalEncoderLayer,
    ConvolutionalFeedForward,
    UnbiasedLayerNorm,
    timing_signal,
)
from empatheia_research.responders.moel import MoEL, MoELConfig
from empatheia_research.responders.moel_family import FamilyConfig, FamilyEncoder
from empatheia_research.responders.multi_trs import MultiTRS, MultiTRSConfig
from empatheia_research.responders.seq2seq import smoothed_target, word_loss
from empatheia_research.text.collation import Layout, encode_examples
from empatheia_research.text.tokenizer import DialogueTokenizer

RELEASED = (300, 2, 40, 50)  # width, heads, their total width, channels
N_WORDS = 1000


def n_parameters(module):
    return sum(parameter.numel() for parameter in module.parameters())


def test_cleaning():  # check 1
    words = [word.text for word in tokenize_words("I don't think that's OK, shouldn't we?")]
    assert words == ["i", "do", "not", "think", "that", "is", "ok", ",", "should", "n't", "we", "?"]


def test_roles():  # check 2
    turns = (Turn("speaker", "hello"), Turn("listener", "oh no"), Turn("speaker", "yes"))
    tokenizer = DialogueTokenizer.train_words(turn.text for turn in turns)
    item = encode_examples([Example(turns, "ok", "d", 3)], tokenizer, Layout(separators=False))[0]
    assert item.role_ids == [0, 1, 2, 2, 1]
    assert item.input_ids[0] == tokenizer.cls_id and tokenizer.sep_id not in item.input_ids


def test_noam_is_the_librarys_inverse_square_root():  # check 3
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.AdamW([parameter], lr=6.455e-4)
    rate = get_scheduler("inverse_sqrt", optimizer, num_warmup_steps=8000).lr_lambdas[0]
    noam = {t: 300**-0.5 * min(t**-0.5, t * 8000**-1.5) for t in (1, 500, 8000, 32000)}
    for t, expected in noam.items():
        assert 6.455e-4 * rate(t) == pytest.approx(expected, rel=1e-3)
    assert noam[8000] == pytest.approx(6.455e-4, rel=1e-3) and noam[1] == pytest.approx(8.07e-8, rel=1e-3)
    assert rate(32000) == pytest.approx(0.5)


def test_a_changed_word_leaves_what_comes_before():  # check 4
    torch.manual_seed(0)
    model = MultiTRS(MultiTRSConfig(vocab_size=60, width=24, attention_width=24, ffn_width=24)).eval()
    context, reply = torch.randint(6, 60, (1, 5)), torch.randint(6, 60, (1, 7))
    changed = reply.clone()
    changed[0, 4] = reply[0, 4] % 50 + 7
    with torch.no_grad():
        plain, other = (model(input_ids=context, decoder_input_ids=ids).logits for ids in (reply, changed))
    assert torch.equal(plain[:, :4], other[:, :4])
    assert not torch.equal(plain[:, 4], other[:, 4])


def test_feed_forward_is_not_negative_and_a_constant_is_normed_to_the_shift():  # check 5
    torch.manual_seed(0)
    for is_causal in (True, False):
        out = ConvolutionalFeedForward(12, 6, is_causal=is_causal)(torch.randn(4, 9, 12) * 3)
        assert (out >= 0).all() and out.max() > 0
    norm = UnbiasedLayerNorm(6)
    torch.nn.init.normal_(norm.bias)
    constant = torch.full((2, 6), 3.7, requires_grad=True)
    torch.testing.assert_close(norm(constant), norm.bias.expand(2, 6))
    norm(constant).sum().backward()
    assert torch.isfinite(constant.grad).all()
    states = torch.randn(5, 6)
    expected = (
        norm.weight * (states - states.mean(-1, keepdim=True)) / (states.std(-1, keepdim=True) + 1e-6) + norm.bias
    )
    torch.testing.assert_close(norm(states), expected)


def test_smoothed_kl_is_zero_at_its_own_target():  # check 6
    labels = torch.tensor([3, 7, 5])
    target = smoothed_target(labels, 10, pad_id=0, smoothing=0.1)
    logits = target.clamp_min(1e-30).log()
    entropy = -(target * target.clamp_min(1e-30).log()).sum(-1)
    kl = word_loss(logits[None], labels[None], 0, 0.1)[0] - entropy
    torch.testing.assert_close(kl, torch.zeros(3), atol=1e-5, rtol=0)
    assert (word_loss(torch.randn(1, 3, 10), labels[None], 0, 0.1)[0] > entropy).all()
    assert word_loss(torch.randn(1, 1, 10), torch.tensor([[-100]]), 0, 0.1).item() == 0.0


ROLES = 3 * 300  # ours: a table of its own; released: rows of the word table
POINTER = 300 + 1  # released: the copy gate is built even where nothing copies
IDLE_HEAD = 32 * 300  # released: TRS owns the emotion head it does not use
IDLE_TABLE = 64 * 300  # released: MoEL's "emoji" map


def test_parameter_counts():  # check 7
    assert n_parameters(ConvolutionalDecoderLayer(*RELEASED, 0.0, 0, 1)) == 188_150
    assert n_parameters(ConvolutionalEncoderLayer(*RELEASED, 0.0)) == 139_550
    released = 601 * N_WORDS + 846_501
    trs = MultiTRS(MultiTRSConfig(vocab_size=N_WORDS, emotion_head=False))
    assert n_parameters(trs) == released - POINTER - IDLE_HEAD + ROLES
    assert n_parameters(MultiTRS(MultiTRSConfig(vocab_size=N_WORDS))) == released - POINTER + ROLES
    moel = MoEL(MoELConfig(vocab_size=N_WORDS))
    assert n_parameters(moel.decoder.listeners) == 32 * 188_150
    assert n_parameters(moel) == 601 * N_WORDS + 6_746_951 - POINTER - IDLE_TABLE + ROLES


def likelihood(name, nll, n_tokens):
    metric = METRICS.get(name)(tokenizer="t", words="w", gold_labels=False)
    metric.update(nll, n_tokens, n_words=n_tokens, references=["r"] * len(nll))
    return metric.compute(n_resamples=0).value


def test_item_and_token_perplexity():  # check 8
    assert likelihood("ppl_item", [2.0, 3.0], [2, 1]) == pytest.approx(math.exp(2), abs=1e-3)
    assert likelihood("ppl_token", [2.0, 3.0], [2, 1]) == pytest.approx(5.294, abs=1e-3)


def test_a_uniform_model_has_the_perplexity_of_its_vocabulary():  # check 9
    model = MultiTRS(MultiTRSConfig(vocab_size=60, width=24, attention_width=24, ffn_width=24)).eval()
    for parameter in model.word_head.parameters():
        torch.nn.init.zeros_(parameter)
    labels = torch.tensor([[7, 8, 5], [9, 5, -100]])
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([[2, 7], [2, 8]]), labels=labels).logits
    nll = word_loss(logits, labels, 0).sum(-1).tolist()
    for name in ("ppl_item", "ppl_token"):
        assert likelihood(name, nll, [3, 2]) == pytest.approx(60, rel=1e-4)


def test_multi_trs_with_an_idle_head_is_trs():  # check 15
    sizes = {"vocab_size": 60, "width": 24, "attention_width": 24, "ffn_width": 24}
    torch.manual_seed(0)
    multi, trs = MultiTRS(MultiTRSConfig(**sizes)), MultiTRS(MultiTRSConfig(**sizes, emotion_head=False))
    trs.load_state_dict({name: value for name, value in multi.state_dict().items() if "emotion" not in name})
    batch = {"input_ids": torch.randint(6, 60, (2, 5)), "labels": torch.randint(6, 60, (2, 4))}
    optimizers = [torch.optim.Adam(model.parameters(), lr=1e-3) for model in (multi, trs)]
    for _ in range(3):
        seen = []
        for model, optimizer in zip((multi, trs), optimizers, strict=True):
            out = model(**batch, emotion_labels=torch.tensor([3, 9]))
            loss = out.losses["words"] + 0.0 * out.losses.get("emotion", 0.0)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen.append(loss.item())
        assert seen[0] == seen[1]
    states = multi.state_dict()
    assert all(torch.equal(value, states[name]) for name, value in trs.state_dict().items())


def test_timing_is_sines_then_cosines_on_geometric_scales():
    signal = timing_signal(torch.arange(4), 6)
    rates = [1.0, 1e-2, 1e-4]
    for t in range(4):
        expected = [math.sin(t * r) for r in rates] + [math.cos(t * r) for r in rates]
        assert signal[t].tolist() == pytest.approx(expected, abs=1e-6)


def test_source_vectors_are_words_plus_roles_times_the_root_of_the_width():
    encoder = FamilyEncoder(FamilyConfig(vocab_size=60, width=24, attention_width=24, ffn_width=24))
    ids, roles = torch.tensor([[2, 9, 8]]), torch.tensor([[0, 1, 2]])
    expected = 24**0.5 * (encoder.words.weight[ids] + encoder.roles.weight[roles])
    torch.testing.assert_close(encoder.embed(ids, roles), expected)


def test_stacks_open_with_projection_and_timing_and_close_with_a_norm():
    torch.manual_seed(0)
    states = torch.randn(2, 5, 12)
    for stack in (ConvolutionalEncoder(0, 12, 2, 8, 6), ConvolutionalDecoder(0, 12, 2, 8, 6)):
        opened = states @ stack.projection.weight.T + timing_signal(torch.arange(5), 12)
        closed = (
            stack(states) if isinstance(stack, ConvolutionalEncoder) else stack(stack.open(states, 0), states, None)
        )
        torch.testing.assert_close(closed, stack.norm(opened))
