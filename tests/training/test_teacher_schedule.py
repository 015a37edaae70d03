"""MoEL's teacher under the trainer: a step an update, whatever the accumulation, and the same after a pause."""

import time

import tiny_training as bench
import torch

from empatheia_research.responders.moel import MoEL, MoELConfig, Teacher
from empatheia_research.text.collation import Collator
from empatheia_research.training import trainer as trainer_module


def make_model():
    torch.manual_seed(3)
    return MoEL(MoELConfig(vocab_size=bench.VOCABULARY, width=16, attention_width=8, ffn_width=8, teacher_steps=4.0))


def train(folder, **fields):
    data = bench.make_data(n=24, n_valid=4)
    collate = Collator(("input_ids", "attention_mask", "role_ids", "labels"), 0)

    def with_emotions(items):
        return {**collate(items), "emotion_labels": torch.tensor([item.input_ids[1] % 32 for item in items])}

    data.collator = with_emotions
    settings = {"losses": {"words": 1.0, "emotion": 1.0}, "evaluations": 0, "learning_rate": 1e-3}
    return bench.train(folder, make_model(), data, **(settings | fields))


def test_a_step_of_the_schedule_is_an_update(tmp_path, monkeypatch):
    """Two batches an update hear the same decision, and count once."""
    said = []
    original = Teacher.forward
    monkeypatch.setattr(Teacher, "forward", lambda self, *a: said.append(original(self, *a)) or said[-1])
    plain, result, _ = train(tmp_path / "plain", batch_examples=8, max_steps=6)
    assert int(plain.teacher.step) == result.steps == len(said) == 6
    by_update, said[:] = list(said), []
    model, result, _ = train(tmp_path / "two", batch_examples=4, accumulate=2, max_steps=6)
    assert int(model.teacher.step) == result.steps == 6 and len(said) == 12
    assert said[::2] == said[1::2] == by_update and 0 < sum(by_update) < 6
    assert not model.continues_update


def test_a_paused_run_goes_on_in_the_schedule(tmp_path, monkeypatch):
    fields = {"batch_examples": 8, "max_steps": 8}
    whole, _, values = train(tmp_path / "whole", **fields)
    original = trainer_module.RunClock.on_step_end

    def on_step_end(self, args, state, control, **kwargs):
        self.deadline = 0.0 if state.global_step == 3 else None
        return original(self, args, state, control, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(trainer_module.RunClock, "on_step_end", on_step_end)
        paused, result, _ = train(tmp_path / "cut", deadline=time.monotonic() + 1e6, **fields)
    assert not result.finished and int(paused.teacher.step) == 3
    model, _, resumed = train(tmp_path / "cut", **fields)
    assert resumed == values and int(model.teacher.step) == int(whole.teacher.step) == 8
    assert bool(model.teacher.speaks) == bool(whole.teacher.speaks)
    for (name, left), right in zip(whole.named_parameters(), model.parameters(), strict=True):
        assert torch.equal(left, right), name
