"""Multi-TRS, MIME, EmpDG and KEMP against slow references written from the specification's equations (3, 4, 6 to 8).

One example without padding, loops over heads, steps, nodes; only the weights are the models' own.
"""

import math

import contract
import pytest
import torch

CASES = contract.all_cases()
N_HEADS = 2


def row(case):
    """The last example of a case's batch, which has no padding, as vectors."""
    return {name: value if name == "emotion_vocabulary" else value[2] for name, value in CASES[case].batch().items()}


def steady(case):
    """A model whose every parameter is random, shifts and scales of the norms included."""
    model = CASES[case].build_steady()
    for parameter in model.parameters():
        parameter.data.normal_(std=0.2)
    return model


def linear(layer, x):
    return x @ layer.weight.T + (0.0 if layer.bias is None else layer.bias)


def norm(layer, x):
    mean = x.mean(-1, keepdim=True)
    std = ((x - mean) ** 2).sum(-1, keepdim=True).div(x.shape[-1] - 1).sqrt()
    return layer.weight * (x - mean) / (std + 1e-6) + layer.bias


def attend(layer, x, memory, is_causal=False):
    """Mixed values, and the weights averaged over the heads."""
    q, k, v = linear(layer.query, x), linear(layer.key, memory), linear(layer.value, memory)
    size = q.shape[-1] // N_HEADS
    mixed, looks = [], []
    for head in range(N_HEADS):
        part = slice(head * size, (head + 1) * size)
        scores = q[:, part] @ k[:, part].T * size**-0.5
        if is_causal:
            scores = scores - 1e18 * (torch.arange(len(memory)) > torch.arange(len(x))[:, None])
        looks.append(scores.exp() / scores.exp().sum(-1, keepdim=True))
        mixed.append(looks[-1] @ v[:, part])
    return linear(layer.out, torch.cat(mixed, -1)), sum(looks) / N_HEADS


def feed(layer, x, is_causal):
    """Two convolutions of width 3, a ReLU behind each."""
    for conv in (layer.first, layer.second):
        width = x.shape[-1]
        before, behind = (2, 0) if is_causal else (1, 1)
        padded = torch.cat((torch.zeros(before, width), x, torch.zeros(behind, width)))
        steps = [
            sum(conv.weight[:, :, k] @ padded[t + k] for k in range(3)) + conv.bias for t in range(len(padded) - 2)
        ]
        x = torch.stack(steps).clamp_min(0.0)
    return x


def timing(length, width):
    rates = [math.exp(-i * math.log(1e4) / (width // 2 - 1)) for i in range(width // 2)]
    return torch.tensor([[f(t * r) for f in (math.sin, math.cos) for r in rates] for t in range(length)])


def encode(stack, x):
    h = linear(stack.projection, x) + timing(len(x), stack.projection.weight.shape[0])
    for layer in stack.layers:
        normed = norm(layer.attention_norm, h)
        h = h + attend(layer.attention, normed, normed)[0]
        h = h + feed(layer.ffn, norm(layer.ffn_norm, h), is_causal=False)
    return norm(stack.norm, h)


def decode(stack, x, memory, signal=None):
    """States, and where the last block looked."""
    x, looks = linear(stack.projection, x) + timing(len(x), x.shape[-1]), None
    for layer in stack.layers:
        normed = norm(layer.self_norm, x)
        x = x + attend(layer.self_attention, normed, normed, is_causal=True)[0]
        found, looks = attend(layer.cross_attention, norm(layer.cross_norm, x), memory)
        if signal is not None:
            found = torch.stack([layer.fusion.weight @ torch.cat((o, signal)) for o in found])
        x = x + found
        x = x + feed(layer.ffn, norm(layer.ffn_norm, x), is_causal=True)
    return norm(stack.norm, x), looks


def source(model, example):
    encoder = model.encoder
    roles = encoder.roles.weight[example["role_ids"]]
    return (encoder.words.weight[example["input_ids"]] + roles) * model.config.width**0.5


def said(model, example, first=None):
    """Decoder inputs: BOS, or another first vector, and the reply without its last piece."""
    begin = torch.tensor([model.config.bos_token_id])
    words = model.encoder.words.weight[torch.cat((begin, example["labels"][:-1]))] * model.config.width**0.5
    return words if first is None else torch.cat((first[None], words[1:]))


def copied(model, states, looks, ids):
    """Probabilities of the pointer mixture."""
    words = linear(model.word_head, states).softmax(-1)
    out = []
    for y, p, weights in zip(states, words, looks, strict=True):
        alpha = torch.sigmoid(model.copy.share.weight[0] @ y + model.copy.share.bias[0])
        p = alpha * p
        for i, weight in zip(ids.tolist(), weights, strict=True):
            p = p + (1 - alpha) * weight * torch.nn.functional.one_hot(torch.tensor(i), len(p))
        out.append(p)
    return torch.stack(out)


@torch.no_grad()
def compare(model, example, probabilities, emotion):
    """Our batch of one against a reference."""
    batch = {name: value if name == "emotion_vocabulary" else value[None] for name, value in example.items()}
    output = model(**batch)
    torch.testing.assert_close(output.logits[0].softmax(-1), probabilities, atol=1e-5, rtol=1e-3)
    torch.testing.assert_close(output.emotion_logits[0], emotion, atol=1e-4, rtol=1e-3)


@torch.no_grad()
def test_multi_trs():
    model, example = steady("multi_trs"), row("multi_trs")
    memory = encode(model.encoder.stack, source(model, example))
    states, _ = decode(model.decoder, said(model, example), memory)
    compare(model, example, linear(model.word_head, states).softmax(-1), model.encoder.emotion.weight @ memory[0])


@torch.no_grad()
def test_mime():
    """At evaluation: the latents' means, the predicted polarity, the gate."""
    from empatheia.taxonomy import EMOTIONS
    from empatheia_research.responders.mime import POSITIVE

    model, example = steady("mime"), row("mime")
    encoder = model.encoder
    memory = encode(encoder.stack, source(model, example))
    scores = encoder.emotions.weight @ (encoder.emotion_query.weight @ memory[0])
    hidden = linear(encoder.prior.hidden[0], memory[0]).clamp_min(0)
    mixed = []
    for is_positive, mean, head in zip((True, False), encoder.prior.mean, encoder.mixtures, strict=True):
        group = [i for i, name in enumerate(EMOTIONS) if (name in POSITIVE) is is_positive]
        among = linear(head, linear(mean, hidden)).softmax(-1)
        mixed.append(sum(p * encoder.emotions.weight[i] for p, i in zip(among, group, strict=True)))
    if EMOTIONS[scores.argmax()] not in POSITIVE:
        mixed = mixed[::-1]
    m, other = (
        encode(stack, torch.stack([torch.cat((h, e)) for h in memory]))
        for stack, e in zip((encoder.mimicking, encoder.other), mixed, strict=True)
    )
    u = torch.cat((m, other), -1)
    fused = linear(encoder.fusion.out, torch.sigmoid(linear(encoder.fusion.gate, u)) * u)
    states, _ = decode(model.decoder, said(model, example), fused)
    compare(model, example, linear(model.word_head, states).softmax(-1), scores)


@torch.no_grad()
def test_empdg():
    model, example = steady("empdg"), row("empdg")
    encoder = model.encoder
    meaning = encode(encoder.stack, source(model, example))
    words = encoder.words.weight[example["emotion_word_ids"]] * model.config.width**0.5  # no roles
    felt = encode(encoder.emotion_stack, words)
    emotion = encoder.emotion.weight @ torch.cat((felt[0], meaning[0]))
    first = linear(model.emotion_input, emotion)
    states, looks = decode(model.decoder, said(model, example, first), torch.cat((meaning, felt)))
    ids = torch.cat((example["input_ids"], example["emotion_word_ids"]))
    compare(model, example, copied(model, states, looks, ids), emotion)


@pytest.mark.parametrize("case", ["kemp", "kemp w/o EDD"])
@torch.no_grad()
def test_kemp(case):
    model, example = steady(case), row(case)
    encoder, graph = model.encoder, model.encoder.graph
    for parameter in graph.query.parameters():
        parameter.mul_(0.02)  # else a few nodes get all weight, and a missing edge would not show
    tokens = source(model, example)
    concepts = (encoder.words.weight[example["concept_ids"]] + encoder.knowledge.weight[0]) * model.config.width**0.5
    nodes = torch.cat((tokens, concepts))
    seen = []
    for i, token in enumerate(tokens):
        heads = example["concept_heads"].tolist()
        own = [len(tokens) + j for j, head in enumerate(heads) if (head == i if i else head >= 0)]
        around = {*own, *(range(1, len(tokens)) if i == 0 else (0, i - 1))}
        query = linear(graph.query, token)
        weights = torch.stack([query @ linear(graph.key, nodes[j]) for j in sorted(around)]).softmax(-1)
        mixed = sum(a * linear(graph.value, nodes[j]) for a, j in zip(weights, sorted(around), strict=True))
        seen.append(norm(graph.norm, token + linear(graph.out, mixed)))
    memory = encode(encoder.stack, torch.cat((torch.stack(seen), concepts)))
    eta = torch.cat((example["token_intensities"], example["concept_intensities"])).softmax(-1)
    signal = sum(a * h for a, h in zip(eta, memory, strict=True))
    emotion = encoder.emotion.weight @ signal
    first = linear(model.emotion_input, emotion)
    fused = signal if model.config.signal else None
    states, looks = decode(model.decoder, said(model, example, first), memory, fused)
    ids = torch.cat((example["input_ids"], example["concept_ids"]))
    compare(model, example, copied(model, states, looks, ids), emotion)
    if model.config.signal:
        batch = {name: value[None] for name, value in example.items()}
        expected = (looks.mean(0) - eta).square().mean().item()
        assert model(**batch).losses["attention"].item() == pytest.approx(expected, rel=1e-4)
