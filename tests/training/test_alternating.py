"""Groups that learn by turns: who learns when, what is logged, resuming, accumulation, one batch a round."""

import time

import pytest
import tiny_adversarial as adversarial
import tiny_training as bench
import torch

from empatheia.errors import ConfigError
from empatheia_research.recipes.recipe import StageConfig
from empatheia_research.responders import empdg
from empatheia_research.training import trainer as trainer_module
from empatheia_research.training.trainer import EmpatheiaTrainer, EpochBatches


class Batches:
    """A sampler with the same batches in each epoch."""

    def __init__(self, batches):
        self.batches = batches

    def set_epoch(self, epoch):
        pass

    def __iter__(self):
        return iter([list(batch) for batch in self.batches])

    def __len__(self):
        return len(self.batches)


def test_groups_learn_by_turns_and_nobody_else(tmp_path, monkeypatch):
    seen = []
    original = EmpatheiaTrainer._drop_idle_gradients

    def spy(self):
        original(self)
        named = self.accelerator.unwrap_model(self.model).named_parameters()
        seen.append({name.startswith("discriminators") for name, p in named if p.grad is not None})

    monkeypatch.setattr(EmpatheiaTrainer, "_drop_idle_gradients", spy)
    model, result, _ = adversarial.train(tmp_path, epochs=2)
    assert result.steps == 6
    assert seen == [{True}, {False}, {False}, {True}, {False}, {False}]
    start = dict(adversarial.make_model().named_parameters())
    assert all(not torch.equal(p, start[name]) for name, p in model.named_parameters() if "words" not in name)


def test_weights_and_moments_of_an_idle_group_stay(tmp_path):
    """Oracle: one update of the discriminators alone."""
    model, _, _ = adversarial.train(tmp_path / "a", max_steps=1, evaluations=0)
    start = adversarial.make_model()
    for (name, now), before in zip(model.named_parameters(), start.parameters(), strict=True):
        learns = name.startswith("discriminators.") and "bias" not in name  # a shift may cancel at first
        assert torch.equal(now, before) != learns or "words" in name or "bias" in name, name
    twice, _, _ = adversarial.train(tmp_path / "b", max_steps=2, evaluations=0)
    for (name, one), two in zip(model.named_parameters(), twice.parameters(), strict=True):
        if name.startswith("discriminators."):
            assert torch.equal(one, two), name


def test_each_loss_is_logged_by_name_as_a_mean_over_its_own_updates(tmp_path, monkeypatch):
    """Logged once a step, a loss shows only where its group learnt; over a longer stretch, as the mean of those."""
    adversarial.train(tmp_path / "steps", epochs=2, evaluations=0)
    steps = {name: bench.curve(tmp_path / "steps", f"loss_{name}") for name in ("critic_semantic", "words")}
    assert [step for step, _ in steps["critic_semantic"]] == [1, 4]
    assert [step for step, _ in steps["words"]] == [2, 3, 5, 6]
    assert bench.curve(tmp_path / "steps", "loss_adversarial_emotion")
    make = trainer_module.TrainingArguments
    monkeypatch.setattr(
        "empatheia_research.training.stages.TrainingArguments",
        lambda **kw: make(**{**kw, "logging_steps": 6, "logging_first_step": False}),
    )
    adversarial.train(tmp_path / "once", epochs=2, evaluations=0)
    for name, values in steps.items():
        ((step, value),) = bench.curve(tmp_path / "once", f"loss_{name}")
        assert step == 6 and value == pytest.approx(sum(v for _, v in values) / len(values), abs=1e-5)


def test_groups_have_their_rates(tmp_path, monkeypatch):
    rates = []
    original = EmpatheiaTrainer.create_optimizer

    def spy(self, model=None):
        made = original(self, model)
        rates.extend((group["lr"], len(group["params"])) for group in made.param_groups)
        return made

    monkeypatch.setattr(EmpatheiaTrainer, "create_optimizer", spy)
    model, _, _ = adversarial.train(tmp_path, max_steps=1, evaluations=0)
    n_critics = sum(name.startswith("discriminators.") for name, _ in model.named_parameters())
    assert (3e-3, n_critics) in rates and len(rates) == 2


@pytest.mark.parametrize(("stop_at", "fields"), [(1, {}), (5, {"same_batch": True, "accumulate": 2})])
def test_a_paused_stage_ends_as_if_it_had_not_been(tmp_path, monkeypatch, stop_at, fields):
    """Draws included: bit-equal weights and the same curves, wherever in a round the pause falls."""
    fields = {"batch_examples": 4, "max_steps": 8, "evaluations": 0, **fields}
    whole, result, values = adversarial.train(tmp_path / "whole", **fields)
    original = trainer_module.RunClock.on_step_end

    def on_step_end(self, args, state, control, **kwargs):
        self.deadline = 0.0 if state.global_step == stop_at else None
        return original(self, args, state, control, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(trainer_module.RunClock, "on_step_end", on_step_end)
        _, paused, _ = adversarial.train(tmp_path / "cut", deadline=time.monotonic() + 1e6, **fields)
    assert not paused.finished and paused.steps == stop_at
    model, again, resumed = adversarial.train(tmp_path / "cut", **fields)
    assert resumed == values and again.steps == result.steps == 8
    for name in ("critic_semantic", "adversarial_emotion"):
        assert bench.curve(tmp_path / "cut", f"loss_{name}") == bench.curve(tmp_path / "whole", f"loss_{name}")
    for (name, left), right in zip(whole.named_parameters(), model.parameters(), strict=True):
        assert torch.equal(left, right), name


def test_accumulating_is_one_large_batch(tmp_path, monkeypatch):
    """The same 8 examples an update, once as one batch and once as two of four; without chance."""
    monkeypatch.setattr(empdg, "gumbel_noise", torch.zeros_like)
    monkeypatch.setattr(empdg, "mixing_shares", lambda states: states.new_full((len(states), 1, 1), 0.5))
    curves = []
    for accumulate, size in ((1, 8), (2, 4)):
        batches = [list(range(i, i + size)) for i in range(0, 24, size)]
        monkeypatch.setattr(
            "empatheia_research.training.stages.BucketBatchSampler", lambda *a, b=batches, **k: Batches(b)
        )
        adversarial.train(tmp_path / str(accumulate), accumulate=accumulate, evaluations=0)
        names = (*adversarial.CRITICS, *adversarial.GENERATOR)
        curves.append({name: bench.curve(tmp_path / str(accumulate), f"loss_{name}") for name in names})
    for name, values in curves[0].items():
        assert values and [v for _, v in values] == pytest.approx([v for _, v in curves[1][name]], abs=1e-4), name


def test_all_updates_of_a_round_may_see_one_batch():
    found = EpochBatches(Batches([[0, 1], [2, 3], [4, 5], [6, 7]]), 1, repeats=3, window=2)
    assert len(found) == 12
    assert list(found) == [[0, 1], [2, 3]] * 3 + [[4, 5], [6, 7]] * 3
    odd = EpochBatches(Batches([[0, 1], [2, 3], [4, 5]]), 1, repeats=2, window=2)
    seen = list(odd)
    assert len(seen) == len(odd) == 8 and seen[:2] == seen[2:4] and seen[4:6] == seen[6:]
    assert sorted(i for batch in (*seen[:2], *seen[4:6]) for i in batch) == list(range(6))


def test_a_parameter_of_two_groups_is_told(tmp_path):
    groups = [adversarial.GROUPS[0], {"train": [""], "losses": {"words": 1.0}}]
    with pytest.raises(ConfigError, match=r"stages.train.alternate: 'discriminators.* belongs to the groups 1 and 2"):
        adversarial.train(tmp_path, alternate=groups)


def test_stages_without_groups_are_written_as_before():
    plain = StageConfig(losses={"words": 1.0})
    assert not {"alternate", "same_batch"} & set(plain.model_dump())
    stage = StageConfig(losses={"words": 1.0}, alternate=adversarial.GROUPS, same_batch=True)
    assert StageConfig.model_validate(stage.model_dump(mode="json")) == stage
    assert stage.loss_names == ["words", *adversarial.CRITICS, "emotion", "adversarial_semantic", "adversarial_emotion"]
