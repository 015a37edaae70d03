"""Checks of the Gao et al. specification that concern the reasoner, the losses and the ablations (section 9)."""

import math

import pytest
import torch

from empatheia.responders.cause_gated import CauseGated, CauseGatedConfig, EmotionReasoner
from empatheia.responders.seq2seq import smoothed_target, word_loss

SIZES = {"vocab_size": 60, "width": 24, "n_encoder_layers": 1, "n_decoder_layers": 2, "n_heads": 2, "ffn_width": 48}


def config(**fields):
    return CauseGatedConfig(**{**SIZES, **fields})


@pytest.mark.parametrize("variant", ["paper", "repo"])
def test_reasoner_without_positions_sees_a_bag_of_words(variant):  # check 10
    torch.manual_seed(0)
    reasoner = EmotionReasoner(config(variant=variant)).eval()
    ids = torch.tensor([[2, 11, 12, 13, 14, 15]])
    order = torch.tensor([0, 3, 5, 1, 2, 4])
    with torch.no_grad():
        plain, permuted = reasoner(ids), reasoner(ids[:, order])
    torch.testing.assert_close(permuted.emotion_logits, plain.emotion_logits, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(permuted.cause_logits, plain.cause_logits[:, order], atol=1e-5, rtol=1e-4)


def test_repo_reasoner_has_no_feed_forward_and_no_residual():
    reasoner = EmotionReasoner(config(variant="repo"))
    assert not any("ffn" in name for name, _ in reasoner.named_parameters())


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_uniform_logits_cost_ln_32_and_ln_2_a_word(smoothing, reduction):  # check 11
    model = CauseGated(config(emotion_smoothing=smoothing, loss_reduction=reduction))
    for head in (model.encoder.reasoner.emotion, model.encoder.reasoner.cause):
        torch.nn.init.zeros_(head.weight)
        torch.nn.init.zeros_(head.bias)
    labels = torch.tensor([[-100, 1, 0, 1, 1], [-100, 0, 1, -100, -100]])
    out = model(input_ids=torch.randint(6, 60, (2, 5)), emotion_labels=torch.tensor([3, 9]), cause_labels=labels)
    assert out.losses["emotion"].item() == pytest.approx(math.log(32), abs=1e-5)
    per_item = math.log(2) * (6 / 2 if reduction == "sum" else 1)  # equation 4 sums over an example's words
    assert out.losses["cause"].item() == pytest.approx(per_item, abs=1e-5)


def test_smoothed_target_sums_to_one_without_pad():  # check 12
    target = smoothed_target(torch.tensor([3, 0, 7]), 10, pad_id=0, smoothing=0.1)
    torch.testing.assert_close(target.sum(-1), torch.tensor([1.0, 0.0, 1.0]))
    assert (target[:, 0] == 0).all() and target[0, 3].item() == pytest.approx(0.9)


def test_word_loss_is_cross_entropy_against_the_smoothed_target():
    torch.manual_seed(0)
    logits, labels = torch.randn(2, 4, 10), torch.randint(1, 10, (2, 4))
    target = smoothed_target(labels.flatten(), 10, pad_id=0, smoothing=0.1).view(2, 4, 10)
    expected = -(target * logits.log_softmax(-1)).sum(-1)
    torch.testing.assert_close(word_loss(logits, labels, 0, 0.1), expected, atol=1e-6, rtol=1e-5)
    labels[0, 2] = -100
    assert word_loss(logits, labels, 0, 0.1)[0, 2].item() == 0.0


def test_ablations_leave_parts_out():  # check 13
    without_ec = [n for n, _ in CauseGated(config(gate="none")).named_parameters()]
    assert not any("gated" in n or "reasoner.cause" in n for n in without_ec)
    without_el = CauseGated(config(emotion_embedding=False))
    assert not any(p.shape == (32, 24) for n, p in without_el.named_parameters() if "reasoner" not in n)
    assert any(p.shape == (32, 24) for n, p in CauseGated(config()).named_parameters() if "reasoner" not in n)


@pytest.mark.parametrize("frozen", [True, False])
def test_without_ml_the_reasoner_stays_bit_identical(frozen):  # check 13
    from empatheia.training.stages import choose_parameters

    torch.manual_seed(0)
    model = CauseGated(config())
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    choose_parameters(model, [""], ["encoder.reasoner"] if frozen else [])
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    ids, labels = torch.randint(6, 60, (2, 5)), torch.randint(6, 60, (2, 4))
    model(input_ids=ids, labels=labels, emotion_labels=torch.tensor([1, 2])).loss.backward()
    optimizer.step()
    changed = [n for n, p in model.named_parameters() if "reasoner" in n and not torch.equal(p, before[n])]
    assert bool(changed) is not frozen


def test_the_generator_loss_trains_the_reasoner_through_soft_and_hard_gates():
    for gate in ("soft", "hard"):
        torch.manual_seed(0)
        model = CauseGated(config(gate=gate))
        model(input_ids=torch.randint(6, 60, (2, 5)), labels=torch.randint(6, 60, (2, 4))).loss.backward()
        gradient = model.encoder.reasoner.cause.weight.grad
        assert gradient is not None and torch.isfinite(gradient).all() and gradient.abs().sum() > 0


def test_variants_differ_as_listed():
    paper, repo = CauseGatedConfig(), CauseGatedConfig(variant="repo")
    assert (paper.n_encoder_layers, paper.n_heads, paper.gated_attention) == (6, 8, "weights")
    assert (repo.n_encoder_layers, repo.n_heads, repo.attention_width) == (2, 2, 512)
    assert repo.label_smoothing == 0.1 and repo.emotion_smoothing == 0.1 and not repo.open_cls
    assert CauseGatedConfig(variant="repo", n_heads=4).n_heads == 4
    with pytest.raises(ValueError, match="unknown variant 'rep'; accepted: paper, repo"):
        CauseGatedConfig(variant="rep")


def test_config_survives_a_round_trip(tmp_path):
    made = config(variant="repo", gate="hard", emotion_smoothing=0.2)
    made.save_pretrained(tmp_path)
    assert CauseGatedConfig.from_pretrained(tmp_path).to_dict() == made.to_dict() | {"transformers_version": None} or (
        {k: v for k, v in CauseGatedConfig.from_pretrained(tmp_path).to_dict().items() if "version" not in k}
        == {k: v for k, v in made.to_dict().items() if "version" not in k}
    )
