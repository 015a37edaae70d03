"""Checks 10 to 14 of the baselines' specification, and the mixture against one decoder after the other."""

import math

import pytest
import torch
from transformers.cache_utils import DynamicCache, EncoderDecoderCache

from empatheia_research.layers.convolutional import ConvolutionalDecoder, ConvolutionalDecoderLayer, UnbiasedLayerNorm
from empatheia_research.layers.experts import ExpertDecoderLayer, ExpertLinear, ExpertNorm, Routing
from empatheia_research.responders.moel import ListenerDecoder, MoEL, MoELConfig, Teacher

SIZES = {"vocab_size": 60, "width": 12, "attention_width": 8, "ffn_width": 6}
E, D = 4, 12


def config(**fields):
    return MoELConfig(**{**SIZES, **fields})


@pytest.fixture
def inputs():
    torch.manual_seed(0)
    states, memory = torch.randn(3, 5, D), torch.randn(3, 7, D)
    mask = torch.ones(3, 7, dtype=torch.bool)
    mask[0, 4:] = False
    return states, memory, mask


@torch.no_grad()
def listener(experts, i):
    """Expert ``i`` of a stack as a layer of its own."""
    n_heads, inner = experts.n_heads, experts.self_out.weight.shape[1]
    layer = ConvolutionalDecoderLayer(D, n_heads, inner, experts.ffn.second.weight.shape[1] // 3, 0.0, 0, 1)
    for name in ("self_norm", "cross_norm", "ffn_norm"):
        getattr(layer, name).weight.copy_(getattr(experts, name).weight[i])
        getattr(layer, name).bias.copy_(getattr(experts, name).bias[i])
    query, key, value = experts.self_projection.weight[i].chunk(3, dim=-1)
    for part, weight in zip(("query", "key", "value"), (query, key, value), strict=True):
        getattr(layer.self_attention, part).weight.copy_(weight.T)
    layer.self_attention.out.weight.copy_(experts.self_out.weight[i].T)
    key, value = experts.cross_projection.weight[i].chunk(2, dim=-1)
    for part, weight in zip(("query", "key", "value"), (experts.cross_query.weight[i], key, value), strict=True):
        getattr(layer.cross_attention, part).weight.copy_(weight.T)
    layer.cross_attention.out.weight.copy_(experts.cross_out.weight[i].T)
    for conv, linear in ((layer.ffn.first, experts.ffn.first), (layer.ffn.second, experts.ffn.second)):
        n_out, n_in, _ = conv.weight.shape
        conv.weight.copy_(linear.weight[i].view(3, n_in, n_out).permute(2, 1, 0))
        conv.bias.copy_(linear.bias[i, 0])
    return layer


@torch.no_grad()
def scatter(module):
    """Random values everywhere, so that equal outputs mean equal formulas."""
    for parameter in module.parameters():
        parameter.normal_(std=0.3)
    return module


def make_experts(n=E):
    torch.manual_seed(1)
    return scatter(ExpertDecoderLayer(n, D, 2, 8, 6, 0.0, 0, 1))


@pytest.mark.parametrize("ids", [[[0, 1, 2, 3]] * 3, [[2, 0], [2, 3], [1, 2]], [[1], [1], [1]]])
def test_the_stack_is_its_listeners_one_after_the_other(inputs, ids):
    states, memory, mask = inputs
    experts, keep, ids = make_experts(), mask[:, None, None, :], torch.tensor(ids)
    together = experts(states, memory, keep, Routing.of(ids, E))
    for i in range(E):
        alone = listener(experts, i)(states, memory, keep)
        for row, slot in (ids == i).nonzero().tolist():
            torch.testing.assert_close(together[row, slot], alone[row], atol=1e-5, rtol=1e-4)


def test_listeners_nobody_hears_get_no_gradient(inputs):
    experts = make_experts()
    experts(*inputs[:2], None, Routing.of(torch.tensor([[2, 0], [2, 3], [0, 2]]), E)).sum().backward()
    for name, parameter in experts.named_parameters():
        assert [bool(parameter.grad[i].abs().sum() > 0) for i in range(E)] == [True, False, True, True], name


def test_a_cached_step_is_the_whole_sequence(inputs):
    states, memory, mask = inputs
    experts, keep, routing = (
        make_experts(),
        mask[:, None, None, :],
        Routing.of(torch.tensor([[2, 0], [2, 3], [1, 2]]), E),
    )
    whole = experts(states, memory, keep, routing)
    cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
    parts = [experts(part, memory, keep, routing, cache) for part in (states[:, :1], states[:, 1:3], states[:, 3:])]
    torch.testing.assert_close(torch.cat(parts, dim=2), whole, atol=1e-5, rtol=1e-4)


def test_norm_and_linear_of_an_expert_are_the_plain_ones():
    torch.manual_seed(0)
    norm, linear, states = scatter(ExpertNorm(3, D)), scatter(ExpertLinear(3, D, 5, bias=True)), torch.randn(2, 4, D)
    ids = torch.tensor([[2, 1], [0, 2]])
    normed, mapped = norm(states[:, None], ids), linear(states, Routing.of(ids, 3))
    for row, slot in ((0, 0), (0, 1), (1, 0), (1, 1)):
        i = ids[row, slot]
        plain = UnbiasedLayerNorm(D)
        plain.weight.data, plain.bias.data = norm.weight[i].data, norm.bias[i].data
        torch.testing.assert_close(normed[row, slot], plain(states[row]))
        torch.testing.assert_close(mapped[row, slot], states[row] @ linear.weight[i] + linear.bias[i])


@torch.no_grad()
def two_layers(decoder, first):
    """A plain decoder of ``first`` and a mixture's meta listener."""
    plain = ConvolutionalDecoder(2, D, 2, 8, 6)
    plain.layers[0].load_state_dict(first.state_dict())
    plain.layers[1].load_state_dict(decoder.layers[0].state_dict())
    plain.norm.load_state_dict(decoder.norm.state_dict())
    return plain


def mixture(**fields):
    torch.manual_seed(2)
    return scatter(ListenerDecoder(config(**fields)))


def test_one_listener_alone_is_a_plain_two_layer_decoder(inputs):  # check 10
    states, memory, mask = inputs
    decoder = mixture(n_emotions=1, topk=0, shared_listener=False)
    ids, weights = torch.zeros(3, 1, dtype=torch.long), torch.ones(3, 1)
    heard = decoder(decoder.mix(states, memory, mask, ids, weights), memory, mask)
    plain = two_layers(decoder, listener(decoder.listeners, 0))
    torch.testing.assert_close(heard, plain(states, memory, mask), atol=1e-5, rtol=1e-4)


def test_equal_listeners_make_the_weights_idle(inputs):  # check 11
    decoder = mixture(shared_listener=False)
    for parameter in decoder.listeners.parameters():
        parameter.data.copy_(parameter.data[:1].expand_as(parameter))
    ids = torch.tensor([[3, 1, 7], [9, 30, 2], [0, 1, 2]])
    one = decoder.mix(*inputs, ids, torch.tensor([[0.2, 0.3, 0.5]] * 3))
    other = decoder.mix(*inputs, ids.flip(0), torch.tensor([[0.9, 0.1, 0.0]] * 3))
    torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_gates_of_the_five_highest_of_all_and_of_the_teacher():  # check 12
    torch.manual_seed(0)
    scores = torch.randn(6, 32)
    ids, weights = MoEL(config()).encoder.gates(scores)
    dense = torch.zeros(6, 32).scatter(1, ids, weights)
    assert dense.gt(0).sum(-1).tolist() == [5] * 6
    torch.testing.assert_close(dense.sum(-1), torch.ones(6))
    highest = scores >= scores.topk(5).values[:, -1:]
    torch.testing.assert_close(dense, scores.masked_fill(~highest, float("-inf")).softmax(-1))
    ids, weights = MoEL(config(topk=32)).encoder.gates(scores)
    torch.testing.assert_close(torch.zeros(6, 32).scatter(1, ids, weights), scores.softmax(-1))
    ids, weights = MoEL(config(softmax=False, topk=0)).encoder.gates(scores)
    torch.testing.assert_close(torch.zeros(6, 32).scatter(1, ids, weights), scores.sigmoid())
    model = MoEL(config()).train()
    model.teacher.speaks.fill_(True)
    ids, gold = torch.randint(6, 60, (3, 4)), torch.tensor([7, -100, 31])
    taught = model.encode(ids, None, emotion_labels=gold)
    dense = torch.zeros(3, 32).scatter_add(1, taught.listener_ids, taught.listener_weights)
    oracle = torch.nn.functional.one_hot(gold.clamp_min(0), 32).float().mul(1000).softmax(-1)  # released form
    torch.testing.assert_close(dense[[0, 2]], oracle[[0, 2]], atol=1e-6, rtol=0)
    assert dense[1].gt(0).sum() == 5  # no label: its own five


def test_nobody_but_the_shared_listener(inputs):  # check 13
    states, memory, mask = inputs
    decoder = mixture()
    ids, weights = torch.tensor([[3, 1], [9, 30], [0, 1]]), torch.zeros(3, 2)
    heard = decoder(decoder.mix(states, memory, mask, ids, weights), memory, mask)
    plain = two_layers(decoder, decoder.shared)
    torch.testing.assert_close(heard, plain(states, memory, mask), atol=1e-5, rtol=1e-4)


def test_the_teacher_speaks_ever_less_and_never_in_evaluation():  # check 14
    teacher = Teacher(10_000)
    assert teacher.chance(0) == 1.0
    assert teacher.chance(10_000) == pytest.approx(1e-4 + (1 - 1e-4) * math.exp(-1)) == pytest.approx(0.3679, abs=1e-4)
    chances = [teacher.chance(step) for step in range(0, 100_000, 1000)]
    assert chances == sorted(chances, reverse=True) and chances[-1] >= 1e-4
    torch.manual_seed(0)
    teacher = Teacher(50.0)
    spoken = [teacher() for _ in range(400)]
    assert not spoken[0] and all(spoken[1:4])  # decided at one step, in force at the next
    assert 35 <= sum(spoken) <= 70 and int(teacher.step) == 400  # the sum of P(t) is about 50

    model = MoEL(config())
    ids, gold = torch.randint(6, 60, (3, 4)), torch.tensor([3, 9, 27])
    model.teacher.speaks.fill_(True)
    model.eval()
    assert model.encode(ids, None, emotion_labels=gold).listener_ids.shape == (3, 5)
    assert int(model.teacher.step) == 0  # evaluation is no step
    model.train()
    assert model.encode(ids, None, emotion_labels=gold).listener_ids.tolist() == [[3], [9], [27]]
    assert int(model.teacher.step) == 1 and bool(model.teacher.speaks)


def test_the_teachers_place_is_saved(tmp_path):
    model = MoEL(config())
    model.teacher.step.fill_(1234)
    model.teacher.speaks.fill_(True)
    model.save_pretrained(tmp_path)
    loaded = MoEL.from_pretrained(tmp_path)
    assert int(loaded.teacher.step) == 1234 and bool(loaded.teacher.speaks)
    assert not any("teacher" in name for name, _ in MoEL(config(teacher_steps=0)).named_buffers())


def test_sigmoid_scores_learn_by_binary_cross_entropy():
    model = MoEL(config(softmax=False))
    torch.nn.init.zeros_(model.encoder.keys.weight)
    ids, labels = torch.randint(6, 60, (3, 4)), torch.randint(6, 60, (3, 5))
    out = model(input_ids=ids, labels=labels, emotion_labels=torch.tensor([3, -100, 4]))
    assert out.losses["emotion"].item() == pytest.approx(math.log(2))
    assert out.counts["emotion"] == 2


def test_mean_pooling_leaves_padding_out_but_in_the_released_code():
    ids = torch.randint(6, 60, (2, 6))
    mask = torch.ones(2, 6, dtype=torch.bool)
    mask[0, 4:] = False
    for variant, is_same in (("paper", True), ("repo", False)):
        torch.manual_seed(0)
        model = MoEL(config(pooling="mean", variant=variant)).eval()
        with torch.no_grad():
            padded = model(input_ids=ids, attention_mask=mask).emotion_logits[0]
            alone = model(input_ids=ids[:1, :4], attention_mask=mask[:1, :4]).emotion_logits[0]
        assert torch.allclose(padded, alone, atol=1e-5) is is_same


def test_listeners_get_the_range_of_a_plain_layer():
    torch.manual_seed(0)
    model = MoEL(config(width=48, attention_width=48, ffn_width=48))
    plain, experts = model.decoder.shared, model.decoder.listeners
    for conv, linear in ((plain.ffn.first, experts.ffn.first), (plain.ffn.second, experts.ffn.second)):
        assert linear.weight.std().item() == pytest.approx(conv.weight.std().item(), rel=0.1)
    for part, linear in (
        (plain.self_attention.key, experts.self_projection),
        (plain.cross_attention.out, experts.cross_out),
    ):
        assert linear.weight.std().item() == pytest.approx(part.weight.std().item(), rel=0.1)


def test_bad_fields_are_named():
    with pytest.raises(ValueError, match=r"topk is 33; accepted: 0 \(all\) to 32"):
        config(topk=33)
    with pytest.raises(ValueError, match="pooling is 'max'; accepted: cls, mean"):
        config(pooling="max")
