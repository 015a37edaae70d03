"""CEM; numbers in the docstrings are the checks of the specification of IMAGINE, section 10."""

import pytest
import torch
from contract import SIZES, all_cases
from knowing import LEARNING, overfit, sample_batch, tokenizer
from transformers import get_inverse_sqrt_schedule

from empatheia.metrics import METRICS
from empatheia_research.responders.cem import CEM, CEMConfig, affect_vector

CASES = all_cases()
SMALL = {"vocab_size": 60, "width": 24, "attention_width": 24, "ffn_width": 24}


def test_size_is_the_released_one():
    """Check 26: 17,440,430 at V = 23,629. The code has an unused gate of 301 numbers for copying, and keeps its three
    vectors for who speaks in the word table."""
    with torch.device("meta"):
        n = sum(parameter.numel() for parameter in CEM(CEMConfig(vocab_size=23_629)).parameters())
    assert n - 3 * 300 + 301 == 17_440_430


@pytest.mark.parametrize(("sizes", "rate", "n"), LEARNING)
def test_overfits(sizes, rate, n):
    """Check 27: sixteen examples at a fifth of the size, four as printed."""
    torch.manual_seed(0)
    model = CEM(CEMConfig(vocab_size=len(tokenizer()), n_emotions=32, **sizes))
    batch = sample_batch("cem", n, knowledge_of_relations={"provider": "sample", "options": {"minimum": 0.15}})
    assert batch["knowledge_mask"][:, 4].any()
    assert overfit(model, batch, 150, rate) is not None


def test_affect_is_the_mean_of_what_is_there():
    """Check 12: (a + b) / 2 whatever stands at padding; the released code averages that, too."""
    a, b = torch.ones(3), 3 * torch.ones(3)
    states = torch.stack((a, b, 100 * a, 100 * a))[None].repeat(2, 1, 1)
    mask = torch.tensor([[True, True, False, False], [True, True, True, False]])
    assert affect_vector(states, mask, False)[0].tolist() == [2, 2, 2]
    assert affect_vector(states, mask, True)[0].tolist() == pytest.approx([104 / 3] * 3)
    assert affect_vector(states, torch.zeros_like(mask), False).tolist() == [[0, 0, 0]] * 2


@pytest.mark.parametrize(("name", "differs"), [("cem", False), ("cem repo", True)])
def test_padding_of_the_batch(name, differs):
    """Checks 12 and 13: an example alone and beside a longer one; the released code sees the padding."""
    case = CASES[name]
    model, batch = case.build().eval(), case.batch()
    with torch.no_grad():
        together, alone = model(**batch).logits[:1], model(**case.first_alone(batch)).logits
    assert ((together - alone).abs().max() > 1e-4) == differs


def test_emotion_comes_from_affect_alone():
    """Changing what the speaker intends changes words, not the emotion; changing the reaction changes both."""
    case = CASES["cem"]
    model, batch = case.build().eval(), case.batch()
    with torch.no_grad():
        plain = model(**batch)
        for place, changes in ((0, False), (4, True)):
            ids = batch["knowledge_ids"].clone()
            ids[:, place] = (ids[:, place] + 7) % 60 * batch["knowledge_mask"][:, place]
            other = model(**{**batch, "knowledge_ids": ids})
            assert (other.logits - plain.logits)[1:].abs().amax((1, 2)).gt(1e-6).all()
            assert (other.emotion_logits - plain.emotion_logits)[1:].abs().amax(1).gt(1e-6).all() == changes
            read = model.understand(**{k: v for k, v in case.inputs(batch).items()})
            torch.testing.assert_close(read.emotion_logits, plain.emotion_logits)


def test_counts_of_predictions_live_with_the_model(tmp_path):
    """Check 7 and trap 9.1.3: validation leaves them, a checkpoint keeps them, with or without a weight on the loss."""
    case = CASES["cem"]
    model, batch = case.build(), case.batch()
    model.train()
    model(**batch)
    seen = model.frequencies.counts.clone()
    assert 0 < seen.sum() <= batch["labels"].ge(0).sum()
    model.eval()
    model(**batch)
    assert torch.equal(model.frequencies.counts, seen)
    model.save_pretrained(tmp_path)
    assert torch.equal(CEM.from_pretrained(tmp_path).frequencies.counts, seen)


def test_variants():
    paper, repo = CEM(CEMConfig(**SMALL)), CEM(CEMConfig(**SMALL, variant="repo"))
    assert paper.frequencies.source == repo.frequencies.source == "predictions"
    assert (paper.scores_padding, repo.scores_padding) == (False, True)
    assert paper.state_dict().keys() == repo.state_dict().keys()
    words = CEM(CEMConfig(**SMALL, frequencies="corpus"))
    for model, counts in ((words, [2, 1]), (paper, [0, 0])):
        model.see_corpus(torch.tensor([7, 7, 8]))
        assert model.frequencies.counts[7:9].tolist() == counts
    with pytest.raises(ValueError, match="multi_trs"):
        CEMConfig(affection=False, cognition=False)


@pytest.mark.parametrize(("reduction", "n"), [("mean", 3), ("sum", 1)])
def test_both_word_losses_of_a_uniform_model_are_over_the_same_number(reduction, n):
    """Check 5: L_gen = ln 4, L_div = (1.5 + 0.5 + 0) / 3 ln 4: the divisor has no weights; or both are sums (2.7)."""
    model = CEM(CEMConfig(**{**SMALL, "vocab_size": 4, "loss_reduction": reduction})).eval()
    model.frequencies.counts.copy_(torch.tensor([0, 1, 3, 4]))
    labels = torch.tensor([[1, 2, 3, -100]])
    counts = CEM.count_items({"labels": labels}, model.config)
    assert counts["words"] == counts["diversity"] == n
    losses = model.reply_losses(torch.zeros(1, 4, 4), labels, None, None, counts["words"])
    found = torch.stack((losses["words"], losses["diversity"], losses["words"] + 1.5 * losses["diversity"]))
    torch.testing.assert_close(found, torch.tensor([1.386294, 0.924196, 2.772589]) * 3 / n, atol=1e-5, rtol=0)


def test_published_rate():
    """Check 19: the library's schedule is the Noam rate."""
    optimizer = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))], lr=(300 * 8000) ** -0.5)
    rate = get_inverse_sqrt_schedule(optimizer, 8000).lr_lambdas[0]
    peak = (300 * 8000) ** -0.5
    assert peak == pytest.approx(6.4550e-4, rel=1e-4)
    assert peak * rate(1) == pytest.approx(300**-0.5 * 8000**-1.5)
    assert peak * rate(8000) == pytest.approx(peak) and peak * rate(20_000) == pytest.approx(4.0825e-4, rel=1e-4)


def test_likelihood_and_diversity_metrics():
    """Checks 17 and 18."""
    found = {}
    for name in ("ppl_item", "ppl_token", "ppl_item_mean"):
        metric = METRICS.get(name)(tokenizer="t", words="w", gold_labels=False)
        metric.update([2.0, 24.0], [2, 8], n_words=[2, 8], references=["a", "b"])
        found[name] = metric.compute(n_resamples=0).value
    assert found == pytest.approx({"ppl_item": 7.389, "ppl_token": 13.464, "ppl_item_mean": 11.402}, abs=1e-3)
    for n, expected in ((1, 200 / 5), (2, 200 / 3)):
        metric = METRICS.get(f"dist_corpus_{n}")()
        metric.update([["a", "b", "a"], ["a", "b"]])
        assert metric.compute(n_resamples=0).value == pytest.approx(expected)


@pytest.mark.parametrize("parts", [{}, {"affection": False}, {"cognition": False}])
def test_memory_and_emotion_are_those_of_the_equations(parts):
    """Section 4, items 1 to 6 and 9, written out for one example at a time, without padding."""
    case = CASES["cem"]
    model = CEM(CEMConfig(**{**SIZES, **case.fields, **parts})).eval()
    batch, encoder, width = case.batch(), model.encoder, SIZES["width"]
    with torch.no_grad():
        together = model.encode(**case.inputs(batch))
        for i in range(3):
            n = int(batch["attention_mask"][i].sum())
            vectors = encoder.words(batch["input_ids"][i, :n]) + encoder.roles(batch["role_ids"][i, :n])
            context = encoder.stack(width**0.5 * vectors[None])  # (1, n, d)
            refined = []
            for j in range(5):
                is_affect = j == 4
                if ("affection" in parts and is_affect) or ("cognition" in parts and not is_affect):
                    continue
                kept = batch["knowledge_ids"][i, j][batch["knowledge_mask"][i, j]]
                reader = encoder.affection if is_affect else encoder.cognition
                states = reader(width**0.5 * encoder.words(kept)[None])[0] if len(kept) else torch.zeros(1, width)
                vector = states.mean(0) if is_affect else states[0]
                refiner = encoder.affection_refiner if is_affect else encoder.cognition_refiner
                refined.append(refiner(torch.cat((context, vector.expand(1, n, width)), dim=-1)))
            read = context if "affection" in parts else refined[-1]
            logits = read[0, 0] @ encoder.emotion.weight.T
            memory = refined[-1]
            if "cognition" not in parts:
                z = torch.cat(refined, dim=-1)
                memory = ((torch.sigmoid(z) * z) @ encoder.mixer.first.weight.T).relu() @ encoder.mixer.second.weight.T
            torch.testing.assert_close(together.emotion_logits[i], logits, atol=1e-5, rtol=1e-4)
            torch.testing.assert_close(together.last_hidden_state[i : i + 1, :n], memory, atol=1e-5, rtol=1e-4)
