"""Checks 16 to 19 of the baselines' specification, and what the variants and options change."""

import pytest
import torch
from torch.distributions import Normal, kl_divergence

from empatheia.taxonomy import EMOTIONS
from empatheia_research.responders.mime import IS_POSITIVE, MIME, POSITIVE, GateFusion, Gaussians, MIMEConfig

SIZES = {"vocab_size": 60, "width": 12, "attention_width": 8, "ffn_width": 6}
JOYFUL, SAD = EMOTIONS.index("joyful"), EMOTIONS.index("sad")


def config(**fields):
    return MIMEConfig(**{**SIZES, **fields})


def make(**fields):
    torch.manual_seed(0)
    return MIME(config(**fields))


@pytest.fixture
def context():
    torch.manual_seed(1)
    roles = torch.tensor([[0, 1, 1, 2, 2]] * 3)
    mask = torch.ones(3, 5, dtype=torch.bool)
    return {"input_ids": torch.randint(6, 60, (3, 5)), "attention_mask": mask, "role_ids": roles}


def train_batch(context):
    return {**context, "labels": torch.randint(6, 60, (3, 4)), "emotion_labels": torch.tensor([JOYFUL, SAD, -100])}


def test_polarities_part_the_emotions():  # check 16
    assert len(POSITIVE) == 13 and set(POSITIVE) <= set(EMOTIONS)
    assert IS_POSITIVE.count(False) == 19 and not IS_POSITIVE[EMOTIONS.index("anticipating")]
    positive, negative = make().encoder.groups
    assert sorted(positive + negative) == list(range(32)) and {EMOTIONS[i] for i in positive} == set(POSITIVE)


def test_the_other_polarity_swaps_what_is_mimicked():  # check 16
    encoder = make().encoder
    latents = torch.randn(2, 2, 12)
    joyful, sad = encoder.mix(latents, torch.tensor([True] * 2)), encoder.mix(latents, torch.tensor([False] * 2))
    torch.testing.assert_close(joyful, sad.flip(1))
    assert (joyful[:, 0].gt(0) == torch.tensor(IS_POSITIVE)).all()
    assert encoder.polarity(torch.tensor([JOYFUL, SAD])).tolist() == [True, False]
    assert make(mimicry=False).encoder.polarity(torch.tensor([JOYFUL, SAD])).tolist() == [True, True]
    everyone = make(grouping=False).encoder.mix(latents, torch.tensor([True] * 2))
    assert everyone.gt(0).all()


def test_kl_of_gaussians():  # check 17
    torch.manual_seed(0)
    one, other = (Gaussians(torch.randn(2, 2, 5), torch.randn(2, 2, 5)) for _ in range(2))
    torch.testing.assert_close(one.kl(one), torch.zeros(2))
    unit = Gaussians(torch.zeros(1, 2, 5), torch.zeros(1, 2, 5))
    assert Gaussians(torch.ones(1, 2, 5), torch.zeros(1, 2, 5)).kl(unit).item() == pytest.approx(0.5 * 2 * 5)
    normal = [Normal(g.mean, (0.5 * g.log_variance).exp()) for g in (one, other)]
    torch.testing.assert_close(one.kl(other), kl_divergence(*normal).sum((1, 2)))


def test_each_polarity_has_its_own_variance_but_in_the_released_code(context):  # check 17
    model = make()
    model(**train_batch(context)).loss.backward()
    gradients = [head.weight.grad for head in model.encoder.prior.log_variance]
    assert len(gradients) == 2 and not torch.equal(*gradients)
    assert all(gradient.abs().sum() > 0 for gradient in gradients)
    repo = make(variant="repo")
    assert len(repo.encoder.prior.log_variance) == 1
    drawn = repo.encoder.prior(torch.randn(2, 12), torch.randn(2, 12))
    assert torch.equal(drawn.log_variance[:, 0], drawn.log_variance[:, 1])


def test_mixtures_lie_among_their_polaritys_emotions(context):  # check 18
    model = make().eval()
    with torch.no_grad():
        encoding = model.encode(**context)
    torch.testing.assert_close(encoding.mixture.sum(-1), torch.ones(3, 2))
    assert (encoding.mixture >= 0).all()
    is_positive = torch.tensor(IS_POSITIVE)
    mimicked = is_positive[encoding.emotion_logits.argmax(-1)]
    for row, positive in enumerate(mimicked):
        assert not encoding.mixture[row, 0][is_positive != positive].any()
        assert not encoding.mixture[row, 1][is_positive == positive].any()


def test_gate_without_weights_halves():  # check 19
    fusion = GateFusion(config())
    torch.nn.init.zeros_(fusion.gate.weight)
    torch.nn.init.zeros_(fusion.gate.bias)
    m, other = torch.randn(2, 3, 12), torch.randn(2, 3, 12)
    halved = fusion.out(torch.cat((m, other), -1) / 2)
    torch.testing.assert_close(fusion(m, m, other, None), halved)


def test_evaluation_takes_the_mean_and_the_prediction(context):
    model = make().eval()
    with torch.no_grad():
        first, second = model.encode(**context), model.encode(**context)
        query = model.encoder.states(**context)[:, 0]
        prior = model.encoder.prior(query, query)
    assert torch.equal(first.last_hidden_state, second.last_hidden_state) and first.kl is None
    is_positive = torch.tensor(IS_POSITIVE)[first.emotion_logits.argmax(-1)]
    torch.testing.assert_close(first.mixture, model.encoder.mix(prior.mean, is_positive))
    drawing = make(sample_at_evaluation=True).eval()
    with torch.no_grad():
        assert not torch.equal(drawing.encode(**context).mixture, drawing.encode(**context).mixture)


def test_training_takes_the_gold_polarity(context):
    model = make(stochastic=False).train()
    gold = torch.tensor([JOYFUL, SAD, -100])
    encoding = model.encode(**context, emotion_labels=gold)
    is_positive = torch.tensor(IS_POSITIVE)
    mimicked = [bool(row[0][is_positive].sum() > 0.5) for row in encoding.mixture]
    predicted = bool(is_positive[encoding.emotion_logits[2].argmax()])
    assert mimicked == [True, False, predicted]


def test_the_decoder_sees_the_posterior_but_in_the_released_code(context):
    batch = train_batch(context)
    for variant, is_seen in (("paper", True), ("repo", False)):
        model = make(variant=variant)
        model(**batch).losses["words"].backward()
        gradient = model.encoder.posterior.mean[0].weight.grad
        assert (gradient is not None and bool(gradient.abs().sum() > 0)) is is_seen
        model.zero_grad()
        model(**batch).losses["kl"].backward()
        assert model.encoder.posterior.mean[0].weight.grad.abs().sum() > 0


@pytest.mark.parametrize(("variant", "n_seen"), [("paper", 3), ("repo", 5)])
def test_the_posterior_reads_means_without_padding_but_in_the_released_code(context, variant, n_seen):
    model, refined, read = make(variant=variant).train(), [], []
    refine = model.encoder.refine
    model.encoder.refine = lambda *given: refined.append(refine(*given)) or refined[-1]
    model.encoder.posterior.register_forward_pre_hook(lambda _, given: read.extend(given))
    context["attention_mask"][0, 3:] = False
    model(**train_batch(context))
    for seen, states in zip(read, refined[0], strict=True):  # of a joyful context the positive is the mimicked one
        torch.testing.assert_close(seen[0, 12:], states[0, :n_seen].mean(0))


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_kl_is_over_as_many_items_as_the_words(context, reduction):
    model = make(loss_reduction=reduction)
    batch = train_batch(context)
    torch.manual_seed(0)
    out = model(**batch)
    torch.manual_seed(0)
    encoding = model.encode(**context, emotion_labels=torch.tensor([JOYFUL, SAD, -100]))
    n = 3 if reduction == "sum" else 12
    assert out.counts["kl"] == out.counts["words"] == n
    assert out.losses["kl"].item() == pytest.approx(encoding.kl.sum().item() / n, rel=1e-5)


def test_free_bits_cost_nothing_and_teach_nothing(context):
    losses, gradients = {}, {}
    for free in (0.0, 1e-6, 1e6):
        torch.manual_seed(0)
        model = make(free_bits=free)
        torch.manual_seed(0)
        losses[free] = model(**train_batch(context)).losses["kl"]
        losses[free].backward()
        gradients[free] = model.encoder.posterior.mean[0].weight.grad.abs().sum().item()
    assert losses[1e-6].item() == losses[0.0].item() > 0 and gradients[1e-6] == gradients[0.0] > 0
    assert losses[1e6].item() == pytest.approx(3 * 1e6 / 12) and gradients[1e6] == 0
    with pytest.raises(ValueError, match=r"free_bits is -1; accepted: 0 or more"):
        make(free_bits=-1)


@pytest.mark.parametrize(
    "fields", [{"grouping": False}, {"mimicry": False}, {"stochastic": False}, {"fusion": "attention"}]
)
def test_every_part_can_be_left_out_and_trains(context, fields):
    model = make(**fields)
    out = model(**train_batch(context))
    assert ("kl" in out.losses) is fields.get("stochastic", True)
    out.loss.backward()
    assert [n for n, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0] == []


def test_emotion_scores_are_the_emotion_table_asked(context):
    model = make().eval()
    with torch.no_grad():
        states = model.encoder.states(**context)
        expected = model.encoder.emotion_query(states[:, 0]) @ model.encoder.emotions.weight.T
        torch.testing.assert_close(model.understand(**context).emotion_logits, expected)


def test_bad_fields_are_named():
    with pytest.raises(ValueError, match="unknown fusion 'sum'; accepted: gate, attention"):
        config(fusion="sum")
    with pytest.raises(ValueError, match="n_emotions is 8; accepted: 32"):
        config(n_emotions=8)
