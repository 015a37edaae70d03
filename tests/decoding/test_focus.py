"""Focused replies of any model: equal to a slow reference written from the equations, under every way of decoding."""

import pytest
import torch
from slow_speaker import Reference, reference
from tiny_models import make_model, make_worlds, pad

from empatheia.errors import DecodingError
from empatheia_research.decoding.focus import FocusProcessor, focused_generate
from empatheia_research.decoding.given_replies import focused_score
from empatheia_research.decoding.worlds import Worlds

SEQ2SEQ, CAUSAL = ("bart", "t5", "blenderbot-small"), ("gpt2", "llama")
WAYS = {
    "greedy": {"do_sample": False, "num_beams": 1},
    "beam": {"do_sample": False, "num_beams": 4, "num_return_sequences": 2},
    "sampling": {"do_sample": True, "top_k": 12, "top_p": 0.95, "num_return_sequences": 2},
}
COMMON = {"max_new_tokens": 9, "alpha": 3.0, "beta": 0.9}


@pytest.fixture(scope="module")
def models():
    return {name: make_model(name) for name in SEQ2SEQ + CAUSAL}


@pytest.mark.parametrize("n_examples", [1, 4], ids=["alone", "padded batch"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", SEQ2SEQ + CAUSAL)
def test_as_the_slow_reference(models, name, way, n_examples):
    model = models[name]
    worlds = make_worlds(model, n_examples)
    options = WAYS[way] | COMMON | {"return_dict_in_generate": True, "output_scores": True}
    torch.manual_seed(0)
    theirs = reference(model, worlds, **options)
    for use_cache in (True, False):
        torch.manual_seed(0)
        ours = focused_generate(model, worlds, use_cache=use_cache, **options)
        assert torch.equal(ours.sequences, theirs.sequences), use_cache
        if way == "beam":
            torch.testing.assert_close(ours.sequences_scores, theirs.sequences_scores, atol=1e-4, rtol=1e-4)
        else:  # S1 itself; under beams finished hypotheses' rows mean nothing
            first = torch.stack(ours.scores[:3]), torch.stack(theirs.scores[:3])
            torch.testing.assert_close(*first, atol=1e-4, rtol=1e-4)
    torch.manual_seed(0)
    plain = model.generate(**worlds.true(), **WAYS[way], max_new_tokens=9)
    assert n_examples == 1 or not torch.equal(plain, ours.sequences), "focus changed nothing: the test shows nothing"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", SEQ2SEQ + CAUSAL)
@pytest.mark.parametrize("off", [{"alpha": 0.0}, {"beta": 0.0}], ids=["alpha", "beta"])
def test_no_rationality_is_plain_decoding(models, name, way, off):
    model = models[name]
    worlds = make_worlds(model, 5)
    torch.manual_seed(0)
    ours = focused_generate(model, worlds, **{**COMMON, **off}, **WAYS[way])
    torch.manual_seed(0)
    assert torch.equal(ours, model.generate(**worlds.true(), **WAYS[way], max_new_tokens=9))


@pytest.mark.parametrize("name", ["bart", "gpt2"])
def test_identical_worlds_are_plain_decoding(models, name):
    model = models[name]
    worlds = make_worlds(model, 4, n_worlds=1)
    same = Worlds({k: v.repeat_interleave(3, 0) for k, v in worlds.inputs.items()}, 3)
    for way in WAYS.values():
        torch.manual_seed(0)
        ours = focused_generate(model, same, **COMMON, **way)
        torch.manual_seed(0)
        assert torch.equal(ours, model.generate(**worlds.true(), **way, max_new_tokens=9))


@pytest.mark.parametrize("name", SEQ2SEQ + CAUSAL)
def test_alone_as_in_a_batch_and_with_more_padding(models, name):
    model = models[name]
    worlds = make_worlds(model, 6)
    options = COMMON | WAYS["beam"]
    together = focused_generate(model, worlds, **options)
    left = not model.config.is_encoder_decoder
    for i in range(6):
        rows = slice(3 * i, 3 * i + 3)
        keep = worlds.inputs["attention_mask"][rows].bool()
        texts = [ids[mask].tolist() for ids, mask in zip(worlds.inputs["input_ids"][rows], keep, strict=True)]
        alone = focused_generate(model, Worlds(pad(texts, left, extra=5), 3), **options)
        start = 1 if model.config.is_encoder_decoder else len(texts[0])
        whole = 1 if model.config.is_encoder_decoder else worlds.true()["input_ids"].shape[1]
        own = together[2 * i : 2 * i + 2, whole:]
        for a, b in zip(alone[:, start:].tolist(), own.tolist(), strict=True):
            n = max(len(a), len(b))
            assert a + [0] * (n - len(a)) == b + [0] * (n - len(b))


@pytest.mark.parametrize("prior", ["L0", "uniform"])
@pytest.mark.parametrize("name", SEQ2SEQ + CAUSAL)
def test_hypotheses_scored_anew_have_the_scores_of_the_search(models, name, prior):
    """Catches a cache or a belief that was not moved with the beams."""
    model = models[name]
    worlds = make_worlds(model, 3, seed=4)
    found = focused_generate(
        model, worlds, 3.0, 0.9, prior, num_beams=5, num_return_sequences=5, max_new_tokens=8, length_penalty=0.0,
        return_dict_in_generate=True, output_scores=True,
    )  # fmt: skip
    start = 1 if model.config.is_encoder_decoder else worlds.true()["input_ids"].shape[1]
    for i, score in enumerate(found.sequences_scores):
        reply = found.sequences[i, start:]
        ends = (reply == 2).nonzero().flatten()
        reply = reply[: int(ends[0]) + 1] if len(ends) else reply[:8]
        rows = slice(3 * (i // 5), 3 * (i // 5) + 3)
        own = Worlds({k: v[rows] for k, v in worlds.inputs.items()}, 3)
        scored = focused_score(model, own, reply[None], 3.0, 0.9, prior)
        assert float(scored.log_s1.sum()) == pytest.approx(float(score), abs=1e-4)


@pytest.mark.parametrize("prior", ["L0", "uniform", "L1"])
def test_scores_of_a_batch_with_padding(models, prior):
    model = models["gpt2"]
    worlds = make_worlds(model, 4)
    replies = [[5, 6, 7, 2], [9, 2], [4, 4, 4, 4, 4, 2], [30]]
    labels = torch.full((4, 6), -100)
    for i, reply in enumerate(replies):
        labels[i, : len(reply)] = torch.tensor(reply)
    together = focused_score(model, worlds, labels, 2.0, 0.7, prior)
    assert together.n_pieces.tolist() == [4, 2, 6, 1]
    total = 0.0
    for i, reply in enumerate(replies):
        own = Worlds({k: v[3 * i : 3 * i + 3] for k, v in worlds.inputs.items()}, 3)
        alone = focused_score(model, own, torch.tensor([reply]), 2.0, 0.7, prior)
        torch.testing.assert_close(alone.log_s1[0], together.log_s1[i, : len(reply)], atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(alone.log_belief[0, -1], together.log_belief[i, -1], atol=1e-5, rtol=1e-4)
        total += float(alone.log_s1.sum())
    assert together.perplexity() == pytest.approx(float(torch.tensor(-total / 13).exp()), rel=1e-4)
    favourites = [b.argmax().item() == 0 for b in together.log_belief[:, -1]]
    assert together.tells_true().tolist() == ([False] * 4 if prior == "uniform" else favourites)  # a tie tells nothing


@pytest.mark.parametrize("prior", ["L0", "uniform"])
def test_entropy_and_score_of_each_piece_are_the_slow_speakers(models, prior):
    model = models["gpt2"]
    worlds, reply = make_worlds(model, 1), torch.tensor([5, 6, 7, 2])
    scored = focused_score(model, worlds, torch.cat((reply, torch.full((2,), -100)))[None], 3.0, 0.9, prior)
    slow, prompt = Reference(model, worlds, 3.0, 0.9, prior), worlds.true()["input_ids"]
    for t, piece in enumerate(reply):
        ids = torch.cat((prompt, reply[None, :t]), 1)
        with torch.no_grad():
            log_s1 = slow(ids, model(ids, attention_mask=torch.ones_like(ids)).logits[:, -1])[0]
        assert float(scored.log_s1[0, t]) == pytest.approx(float(log_s1[piece]), abs=1e-4)
        assert float(scored.entropy[0, t]) == pytest.approx(float(-(log_s1.exp() * log_s1).sum()), abs=1e-4)
    assert scored.entropy[0, 4:].tolist() == [0, 0]


@pytest.mark.parametrize("name", ["bart", "llama"])
def test_what_others_forbid_stays_forbidden_and_the_listener_hears_the_model(models, name):
    model = models[name]
    worlds = make_worlds(model, 3)
    options = {"max_new_tokens": 8, "min_new_tokens": 4, "no_repeat_ngram_size": 2, "num_beams": 3}
    ours = focused_generate(model, worlds, 3.0, 0.9, **options)
    assert torch.equal(ours, reference(model, worlds, 3.0, 0.9, **options))
    start = 1 if model.config.is_encoder_decoder else worlds.true()["input_ids"].shape[1]
    assert not (ours[:, start : start + 4] == 2).any()


@pytest.mark.parametrize("name", ["t5", "gpt2"])
def test_half_precision_is_widened(models, name):
    model = make_model(name).to(torch.bfloat16)
    worlds = make_worlds(model, 3)
    out = focused_generate(model, worlds, **COMMON, do_sample=False, output_scores=True, return_dict_in_generate=True)
    scores = torch.stack(out.scores)
    assert scores.dtype == torch.float32 and not scores.isnan().any()
    torch.testing.assert_close(scores.exp().sum(-1), torch.ones(scores.shape[:2]))


def test_a_belief_that_never_changes_never_fades(models):
    model = models["bart"]
    worlds = make_worlds(model, 3)
    for prior in ("uniform", "L0"):
        ours = focused_generate(model, worlds, 3.0, 0.9, prior, do_sample=False, max_new_tokens=9)
        assert torch.equal(ours, reference(model, worlds, 3.0, 0.9, prior, do_sample=False, max_new_tokens=9))


def test_the_processor_alone(models):
    model = models["gpt2"]
    worlds = make_worlds(model, 2)
    with FocusProcessor(model, worlds, 3.0, 0.9) as focus:
        ours = model.generate(**worlds.true(), logits_processor=[focus], max_new_tokens=6, do_sample=False)
    assert torch.equal(ours, focused_generate(model, worlds, 3.0, 0.9, max_new_tokens=6, do_sample=False))
    assert not model._forward_hooks
    with pytest.raises(DecodingError, match="as focus"):
        FocusProcessor(model, worlds)(worlds.true()["input_ids"], torch.zeros(2, 40))


def test_wrong_use_is_told(models):
    model = models["gpt2"]
    worlds = make_worlds(model, 2)
    with pytest.raises(DecodingError, match="one piece at a time"):
        focused_generate(model, worlds, prompt_lookup_num_tokens=3)
    with pytest.raises(DecodingError, match="nothing to be told from"):
        focused_generate(model, make_worlds(model, 2, n_worlds=1))
    with pytest.raises(DecodingError, match="a multiple of the worlds"):
        Worlds(worlds.inputs, 4)
    right = Worlds(pad([[5, 6, 7], [5, 6], [5, 9, 9]], left=False), 3)
    with pytest.raises(DecodingError, match="padding_side = 'left'"):
        focused_generate(model, right)
    with pytest.raises(DecodingError, match="2 contexts"):
        focused_score(model, worlds, torch.tensor([[5]]))
    with pytest.raises(DecodingError, match="at least one piece"):
        focused_score(model, worlds, torch.tensor([[5], [-100]]))
    model.train()
    with pytest.raises(DecodingError, match=r"model.eval\(\)"):
        focused_generate(model, worlds)
    model.eval()
