"""Checks of the Gao et al. specification that concern the reasoner, the losses and the ablations (section 9)."""

import math

import pytest
import torch

from empatheia.records.dialogue import Dialogue
from empatheia_research.corpora import recec, sample
from empatheia_research.recipes.recipe import load_recipe
from empatheia_research.responders.cause_gated import CauseGated, CauseGatedConfig, EmotionReasoner, Reasoning
from empatheia_research.responders.seq2seq import smoothed_target, word_loss
from empatheia_research.training.stages import choose_parameters
from empatheia_research.training.tasks.respond import RespondTask

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


@pytest.mark.parametrize(
    ("name", "frozen"), [("soft", False), ("hard", False), ("soft_without_ml", True), ("hard_without_ml", True)]
)
def test_without_ml_the_reasoner_stays_bit_identical(name, frozen):  # check 13, with the recipes' own stage
    recipe = load_recipe(f"recipes/gao2021/{name}.yaml", "full")
    torch.manual_seed(0)
    model = CauseGated(config(gate=recipe.model["gate"]))
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    choose_parameters(model, recipe.stages[1].train, recipe.stages[1].freeze)
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


# -- paper and released code -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variant", "gate", "form"),
    [("paper", "soft", "weights"), ("paper", "hard", "weights"), ("repo", "soft", "memory"), ("repo", "hard", "bias")],
)
def test_the_gated_attention_of_each_variant_and_gate(variant, gate, form):  # sections 5.1 and 5.2
    model = CauseGated(config(variant=variant, gate=gate))
    assert {layer.gated_attention.gate_form for layer in model.decoder.layers} == {form}


def test_only_the_released_code_draws_hard_gates_when_it_answers_and_may_close_cls():  # sections 5.1 and 8
    torch.manual_seed(0)
    logits = torch.zeros(1, 200, 2)
    logits[..., 0] = 0.1  # a little more probably no cause
    paper, repo = (CauseGated(config(variant=variant, gate="hard")).encoder for variant in ("paper", "repo"))
    assert paper.eval().gates(Reasoning(cause_logits=logits)).tolist() == [[1.0] + [0.0] * 199]
    drawn = torch.cat([repo.eval().gates(Reasoning(cause_logits=logits)) for _ in range(20)])
    assert set(drawn.unique().tolist()) == {0.0, 1.0} and not torch.equal(drawn[0], drawn[1])
    assert set(drawn[:, 0].tolist()) == {0.0, 1.0}
    trained = torch.cat([paper.train().gates(Reasoning(cause_logits=logits)) for _ in range(20)])
    assert not torch.equal(trained[0], trained[1]) and set(trained[:, 0].tolist()) == {1.0}


@pytest.mark.parametrize("gate", ["soft", "hard"])
def test_gates_and_emotion_are_the_reasoners_own_in_training_too(gate):  # section 5.1
    model = CauseGated(config(gate=gate, dropout=0.0)).train()
    batch = {"input_ids": torch.randint(6, 60, (2, 5)), "labels": torch.randint(6, 60, (2, 4))}
    losses = []
    for cause, emotions in ((0, [1, 2]), (1, [30, 31])):
        torch.manual_seed(1)  # of the gates' draw
        gold = {"cause_labels": torch.full((2, 5), cause), "emotion_labels": torch.tensor(emotions)}
        losses.append(model(**batch, **gold).losses["words"])
    assert torch.equal(*losses)


def test_the_predicted_emotions_vector_is_added_to_every_input_of_encoder_and_decoder():  # section 5
    model = CauseGated(config()).eval()
    ids, pieces = torch.randint(6, 60, (2, 5)), torch.randint(6, 60, (2, 3))
    seen = []
    model.encoder.stack.register_forward_pre_hook(lambda module, args: seen.append(args[0]))
    with torch.no_grad():
        encoding = model.encoder(ids)
        read = model.decoder_inputs(pieces, encoding, 0)
        predicted = model.encoder.reasoner(ids).emotion_logits.argmax(-1)
        vectors = model.encoder.emotions(predicted)[:, None]
        model.encoder.emotions.weight.zero_()
        model.encoder(ids)
        plain = model.decoder_inputs(pieces, encoding, 0)
    torch.testing.assert_close(seen[0] - seen[1], vectors.expand(2, 5, -1), atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(read - plain, vectors.expand(2, 3, -1), atol=1e-6, rtol=1e-5)


def test_the_released_reasoner_has_no_dropout_before_its_heads():
    for variant, drops in (("repo", False), ("paper", True)):
        reasoner = EmotionReasoner(config(variant=variant, dropout=0.5)).train()
        reasoner.stack.forward = lambda states, mask: torch.ones_like(states)
        torch.manual_seed(0)
        found = [reasoner(torch.randint(6, 60, (1, 5))).emotion_logits for _ in range(4)]
        assert all(torch.equal(found[0], other) for other in found) is not drops


def test_every_listener_turn_but_the_opening_one_is_an_example():  # check 2
    for n_turns, targets in ((5, [1, 3]), (4, [1, 3]), (2, [1]), (1, [])):
        examples = Dialogue.of(*"abcde"[:n_turns]).examples(max_context_words=512)
        assert [example.turn_index for example in examples] == targets
        assert [len(example.context) for example in examples] == targets
    long = Dialogue.of("a " * 512, "b", "c", "d").examples(max_context_words=512)
    assert [example.turn_index for example in long] == [1]  # 514 words are too many


def smoke(name, *overrides):
    return load_recipe(f"recipes/gao2021/{name}.yaml", "smoke", overrides)


@pytest.mark.parametrize(("name", "forced"), [("soft", False), ("soft_repo", True)])
def test_the_last_turn_counts_as_a_cause_in_the_released_generator_stage_alone(name, forced, tmp_path):  # section 8, 12
    task = RespondTask(smoke(name), tmp_path)
    annotated = {note.dialogue_id: note.turns for note in recec.load("train", root=sample.root()).annotations}
    reasoner, joint = (task.stage_data(stage).train for stage in task.recipe.stages)
    marked = 0
    for learnt, last_is_forced in ((reasoner, False), (joint, forced)):
        for item in (item for item in learnt if item.cause_labels is not None):
            causal = set(annotated[item.dialogue_id])
            marked += max(item.turn_ids) not in causal
            causal |= {max(item.turn_ids)} if last_is_forced else set()
            assert item.cause_labels[1:] == [int(turn in causal) for turn in item.turn_ids[1:]]
    assert marked  # there are contexts whose last turn is no cause


@pytest.mark.parametrize("gate", ["soft", "hard"])
def test_stages_and_decoding_are_those_of_paper_and_released_code(gate):  # sections 4 and 5.3
    paper, repo = (load_recipe(f"recipes/gao2021/{gate}{end}.yaml", "full") for end in ("", "_repo"))
    for recipe in (paper, repo):
        assert recipe.model["gate"] == gate and recipe.seed == 1024
        reasoner, joint = recipe.stages
        assert reasoner.train == ("encoder.reasoner",) and reasoner.losses == {"emotion": 1.0, "cause": 1.0}
        assert (reasoner.learning_rate, reasoner.epochs, reasoner.batch_tokens) == (1e-5, 25, 8192)
        assert (joint.learning_rate, joint.epochs, joint.schedule) == (5e-4, 80, "constant")
        assert {(stage.betas, stage.eps) for stage in recipe.stages} == {((0.9, 0.997), 1e-9)}
        assert (recipe.decoding.strategy, recipe.decoding.top_k) == ("sample", 3)
    learns, frozen = paper.stages[1], repo.stages[1]
    assert learns.losses == {"words": 1.0, "emotion": 1.0, "cause": 1.0} and learns.freeze == ()
    assert (learns.batch_tokens, learns.patience, paper.decoding.temperature) == (8192, 3, 1.0)
    assert frozen.losses == {"words": 1.0, "emotion": 0.0, "cause": 0.0} and frozen.freeze == ("encoder.reasoner",)
    assert (frozen.batch_tokens, frozen.patience, repo.decoding.temperature) == (4096, None, 0.6)
    assert (paper.data.causes_scope, repo.data.causes_scope) == ("prefix", "dialogue")


def test_ablation_recipes_leave_out_what_their_names_say():  # section 6
    def built(name):
        return CauseGatedConfig(vocab_size=60, **load_recipe(f"recipes/gao2021/{name}.yaml", "full").model)

    assert built("without_ec").gate == "none"
    assert all(load_recipe("recipes/gao2021/without_ec.yaml", "full").stages[i].losses["cause"] == 0 for i in (0, 1))
    for gate in ("soft", "hard"):
        without_el = built(f"{gate}_without_el")
        assert not without_el.emotion_embedding and without_el.gate == gate
        data = load_recipe(f"recipes/gao2021/{gate}_elex.yaml", "full").data
        assert (data.causes, built(f"{gate}_elex").gate) == ("lexicon", gate)


@pytest.mark.parametrize("gate", ["soft", "hard", "none"])
@pytest.mark.parametrize("num_beams", [1, 3])
def test_a_reply_from_what_was_reasoned_already_is_the_same_reply(gate, num_beams):
    torch.manual_seed(0)
    model = CauseGated(config(gate=gate)).eval()
    context = {"input_ids": torch.randint(6, 60, (3, 9)), "attention_mask": torch.ones(3, 9, dtype=torch.bool)}
    context["attention_mask"][1, 5:] = False
    asked = {"max_new_tokens": 8, "do_sample": False, "num_beams": num_beams}
    n_reasoned = []
    model.encoder.reasoner.register_forward_hook(lambda *_: n_reasoned.append(1))
    reasoning = model.understand(**context)
    replies = model.generate(**context, **asked, reasoning=reasoning)
    assert len(n_reasoned) == 1
    assert torch.equal(replies, model.generate(**context, **asked))


def test_soft_gates_are_the_cause_probabilities_and_closed_at_padding():
    torch.manual_seed(0)
    model = CauseGated(config(gate="soft")).eval()
    ids = torch.randint(6, 60, (2, 9))
    mask = torch.ones(2, 9, dtype=torch.bool)
    mask[1, 5:] = False
    reasoning = model.understand(input_ids=ids, attention_mask=mask)
    assert reasoning.cause_probs[1, 5:].eq(0).all(), "cause_probs at padding: the mask of the reasoner is gone"
    assert reasoning.cause_probs[mask].gt(0).all()
    assert torch.equal(model.encoder(ids, mask).gates, reasoning.cause_probs)


def test_the_reasoner_of_size_cpu_is_chosen_by_emotions_and_then_learns_slowly():
    for name in ("soft", "hard", "soft_without_el", "hard_elex", "without_ec"):
        recipe = load_recipe(f"recipes/gao2021/{name}.yaml", "cpu")
        reasoner, joint = recipe.stages
        assert (reasoner.select, reasoner.schedule, reasoner.warmup_steps, reasoner.max_grad_norm) == (
            "emotion", "cosine", 100, 5.0,
        )  # fmt: skip
        assert joint.rates == {"encoder.reasoner": 1e-4}
        built = CauseGatedConfig(vocab_size=60, **recipe.model)
        assert (built.loss_reduction, built.emotion_smoothing) == ("mean", 0.1)
    assert (
        CauseGatedConfig(vocab_size=60, **load_recipe("recipes/gao2021/soft.yaml", "full").model).loss_reduction
        == "sum"
    )
    kept = load_recipe("recipes/gao2021/soft_pretrained.yaml", "cpu")
    assert CauseGatedConfig(vocab_size=60, **kept.model).emotion_smoothing == 0.0
