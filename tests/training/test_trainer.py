"""The trainer: accumulation means a larger batch, epochs are whole, and what a stage names is checked."""

import json
import time

import pytest
import tiny_training as bench
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from empatheia.errors import CheckpointError, ConfigError, TrainingError
from empatheia.text.batching import BucketBatchSampler, TokenBatchSampler
from empatheia_research.responders.transformer import Transformer
from empatheia_research.training import trainer as trainer_module
from empatheia_research.training.stages import choose_parameters
from empatheia_research.training.trainer import MARKER, EpochBatches, last_checkpoint


class FixedBatches:
    """A sampler with the same batches in each epoch."""

    def __init__(self, batches):
        self.batches = batches

    def set_epoch(self, epoch):
        pass

    def __iter__(self):
        return iter([list(batch) for batch in self.batches])

    def __len__(self):
        return len(self.batches)


# -- accumulation --------------------------------------------------------------------------------------------


def test_accumulating_one_and_four_batches_log_and_learn_the_same(tmp_path, monkeypatch):
    """The same 48 examples an epoch, 8 an update: once as one batch, once as four of two (of unlike lengths)."""
    order = list(range(48))
    wide = [order[i : i + 8] for i in range(0, 48, 8)]
    narrow = [order[i : i + 2] for i in range(0, 48, 2)]
    results = []
    for accumulate, batches in ((1, wide), (4, narrow)):
        monkeypatch.setattr(
            "empatheia_research.training.stages.BucketBatchSampler", lambda *a, b=batches, **k: FixedBatches(b)
        )
        results.append(bench.train(tmp_path / str(accumulate), accumulate=accumulate, max_grad_norm=1.0))
    (one, done_one, curve_one), (four, done_four, curve_four) = results
    assert done_one.steps == done_four.steps == 12
    assert [step for step, _ in curve_one] == [step for step, _ in curve_four] == list(range(1, 13))
    assert [v for _, v in curve_one] == pytest.approx([v for _, v in curve_four], abs=2e-5)
    assert curve_one[-1][1] < 0.9 * curve_one[0][1]
    assert done_one.metrics == pytest.approx(done_four.metrics, abs=2e-5)
    for (name, left), right in zip(one.named_parameters(), four.parameters(), strict=True):
        torch.testing.assert_close(left, right, atol=2e-4, rtol=2e-3, msg=name)
    plain = [value for _, value in bench.curve(tmp_path / "4", "loss")]
    assert plain == pytest.approx([value for _, value in curve_four], abs=1e-5)


def test_validation_weighs_batches_by_their_items(tmp_path):
    """Oracle: one forward pass over the whole validation set."""
    data = bench.make_data(n_valid=13)
    model, result, _ = bench.train(tmp_path, data=data, epochs=1)
    with torch.no_grad():
        whole = model.eval()(**data.collator(data.valid)).losses["words"].item()
    assert result.metrics["eval_words"] == pytest.approx(whole, abs=1e-5)
    assert result.metrics["eval_loss"] == result.metrics["eval_words"]


# -- epochs --------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@example(lengths=[1] * 10 + [13, 38, 60, 20], limit=60, world_size=3, by_tokens=True)
@given(
    lengths=st.lists(st.integers(1, 60), min_size=4, max_size=40),
    limit=st.integers(60, 200),
    world_size=st.integers(1, 3),
    by_tokens=st.booleans(),
)
def test_every_example_comes_once_an_epoch_and_ranks_stay_in_step(lengths, limit, world_size, by_tokens):
    n_epochs = 3
    ranks = []
    for rank in range(world_size):
        if by_tokens:
            sampler = TokenBatchSampler(lengths, limit, bucket=1)
        else:
            sampler = BucketBatchSampler(lengths, limit // 20, bucket=1)
        ranks.append(EpochBatches(sampler, n_epochs, rank, world_size))
    assert len({len(batches) for batches in ranks}) == 1
    for epoch in range(n_epochs + 1):  # one more than was foreseen
        seen = []
        for batches in ranks:
            batches.set_epoch(epoch)
            mine = list(batches)
            assert len(mine) == len(batches) and all(mine)
            seen += [i for batch in mine for i in batch]
        if len(lengths) >= len(ranks[0]) * world_size:
            assert sorted(seen) == list(range(len(lengths)))
        else:
            assert set(seen) == set(range(len(lengths)))


def test_processes_share_each_batch_evenly():
    batches = [[0, 1, 2, 3], [4, 5, 6, 7, 8]]
    shares = [list(EpochBatches(FixedBatches(batches), 1, rank, 2)) for rank in (0, 1)]
    assert shares == [[[0, 2], [4, 6, 8]], [[1, 3], [5, 7]]]


def test_one_process_gets_the_samplers_batches():
    sampler = TokenBatchSampler([5 + i % 9 for i in range(100)], 64)
    assert list(EpochBatches(sampler, 1)) == list(sampler)


def test_more_processes_than_examples():
    shares = [list(EpochBatches(FixedBatches([[0]]), 1, rank, 2)) for rank in (0, 1)]
    assert shares == [[[0]], [[0]]]


def test_max_steps_may_run_over_many_epochs(tmp_path):
    _, result, curve = bench.train(tmp_path, data=bench.make_data(n=10), epochs=1, max_steps=7, batch_examples=4)
    assert result.steps == 7 and curve[-1][0] == 7


# -- stages --------------------------------------------------------------------------------------------------


def test_a_loss_the_model_does_not_give_is_told(tmp_path):
    with pytest.raises(ConfigError, match=r"stage 'train': the model gives no loss 'word'. Did you mean 'words'"):
        bench.train(tmp_path, losses={"word": 1.0})


def test_a_loss_of_weight_zero_may_be_missing(tmp_path):
    _, result, _ = bench.train(tmp_path, losses={"words": 1.0, "cause": 0.0}, epochs=1)
    assert result.finished


def test_a_stage_without_items_is_told(tmp_path):
    data = bench.make_data()
    data.train = []
    with pytest.raises(ConfigError, match="stage 'train' has no training item"):
        bench.train(tmp_path, data=data)


def test_only_the_named_parameters_learn(tmp_path):
    before = {name: p.detach().clone() for name, p in bench.make_model().named_parameters()}
    model, _, _ = bench.train(tmp_path, train=("decoder",), freeze=("decoder.norm",), epochs=1)
    changed = {name for name, p in model.named_parameters() if not torch.equal(p, before[name])}
    assert changed and all(name.startswith("decoder.") for name in changed)
    assert not any(name.startswith("decoder.norm") for name in changed)
    assert all(p.requires_grad for p in model.parameters())


def test_a_prefix_of_no_parameter_is_told():
    with pytest.raises(ConfigError, match=r"no parameter starts with 'encodr'. Did you mean 'encoder"):
        choose_parameters(bench.make_model(), ["encodr"], [])


def test_parameters_outside_the_encoder_may_have_their_own_rate(tmp_path, monkeypatch):
    seen = []
    original = trainer_module.EmpatheiaTrainer.create_optimizer

    def spy(self, model=None):
        made = original(self, model)
        seen.append([(group["lr"], len(group["params"])) for group in made.param_groups])
        return made

    monkeypatch.setattr(trainer_module.EmpatheiaTrainer, "create_optimizer", spy)
    bench.train(tmp_path, learning_rate=1e-3, head_learning_rate=1e-2, epochs=1)
    n_encoder = sum(name.startswith("encoder.") for name, _ in bench.make_model().named_parameters())
    assert (1e-3, n_encoder) in seen[0] and len(seen[0]) == 2


def test_a_part_may_have_its_own_rate(tmp_path, monkeypatch):
    seen = []
    original = trainer_module.EmpatheiaTrainer.create_optimizer

    def spy(self, model=None):
        made = original(self, model)
        names = {id(p): name for name, p in self.accelerator.unwrap_model(self.model).named_parameters()}
        seen.append({names[id(p)]: group["lr"] for group in made.param_groups for p in group["params"]})
        return made

    monkeypatch.setattr(trainer_module.EmpatheiaTrainer, "create_optimizer", spy)
    bench.train(tmp_path, learning_rate=1e-3, rates={"encoder": 1e-4, "encoder.words": 1e-5}, epochs=1)
    for name, rate in seen[0].items():
        wanted = 1e-5 if name.startswith("encoder.words") else 1e-4 if name.startswith("encoder") else 1e-3
        assert rate == wanted, name
    with pytest.raises(ConfigError, match=r"no parameter starts with 'encodr'. Did you mean 'encoder"):
        bench.train(tmp_path / "b", rates={"encodr": 1e-4})


# -- checkpoints ---------------------------------------------------------------------------------------------


def interrupted(folder, stop_at, monkeypatch, **fields):
    """Trains to step ``stop_at``, pauses as at a deadline, and goes on with a fresh model."""
    original = trainer_module.RunClock.on_step_end

    def on_step_end(self, args, state, control, **kwargs):
        self.deadline = 0.0 if state.global_step == stop_at else None
        return original(self, args, state, control, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(trainer_module.RunClock, "on_step_end", on_step_end)
        _, paused, _ = bench.train(folder, deadline=time.monotonic() + 1e6, **fields)
    assert not paused.finished and paused.steps == stop_at
    return bench.train(folder, **fields)


@pytest.mark.parametrize(
    ("stop_at", "fields"),
    [
        (6, {"select": "words"}),  # the last step of the first epoch; validation comes at the same step
        (9, {"select": "words"}),
        (5, {"schedule": "cosine", "warmup_steps": 3, "accumulate": 2}),
    ],
)
def test_a_paused_stage_ends_as_if_it_had_not_been(tmp_path, monkeypatch, stop_at, fields):
    fields = {"batch_examples": 4 if "accumulate" in fields else 8, **fields}
    monkeypatch.setattr(bench, "make_model", lambda make=bench.make_model: make(dropout=0.2))
    whole, result, values = bench.train(tmp_path / "whole", **fields)
    model, again, resumed = interrupted(tmp_path / "cut", stop_at, monkeypatch, **fields)
    assert resumed == values and again.metrics == result.metrics and again.steps == result.steps
    for (name, left), right in zip(whole.named_parameters(), model.parameters(), strict=True):
        assert torch.equal(left, right), name


def test_values_logged_after_a_resume_include_the_steps_before_it(tmp_path, monkeypatch):
    """48 updates an epoch are logged every second step; the pause falls between two logs."""
    data = bench.make_data(n=96)
    fields = {"data": data, "batch_examples": 2, "epochs": 0.25, "evaluations": 0}
    _, _, values = bench.train(tmp_path / "whole", **fields)
    _, _, resumed = interrupted(tmp_path / "cut", 7, monkeypatch, **fields)
    assert values == resumed and [step for step, _ in values] == [1, 2, 4, 6, 8, 10, 12]
    assert bench.curve(tmp_path / "whole", "loss") == bench.curve(tmp_path / "cut", "loss")


def test_used_up_patience_survives_a_pause(tmp_path, monkeypatch):
    fields = {"epochs": 20, "select": "words", "patience": 2, "learning_rate": 0.2, "evaluations": 3}
    _, result, _ = bench.train(tmp_path / "whole", **fields)
    assert result.steps < 100, "the stage should stop early"
    _, again, _ = interrupted(tmp_path / "cut", result.steps - 1, monkeypatch, **fields)
    assert again.steps == result.steps and again.metrics == result.metrics


def test_the_best_weights_are_kept_wherever_the_run_folder_moves(tmp_path, monkeypatch):
    fields = {"epochs": 8, "select": "words", "learning_rate": 0.1, "evaluations": 2}
    whole, result, _ = bench.train(tmp_path / "whole", **fields)
    best = min(bench.curve(tmp_path / "whole", "eval_words"), key=lambda row: row[1])
    assert result.metrics["eval_words"] == pytest.approx(best[1]) and best[0] < result.steps
    original = bench.train

    def moved(folder, **options):
        if (folder / "curves.jsonl").is_file():
            folder = folder.rename(tmp_path / "elsewhere")
        return original(folder, **options)

    monkeypatch.setattr(bench, "train", moved)
    model, again, _ = interrupted(tmp_path / "cut", result.steps - 1, monkeypatch, **fields)
    assert again.metrics == result.metrics
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), model.parameters(), strict=True))


def test_a_checkpoint_without_its_marker_is_removed(tmp_path):
    bench.train(tmp_path, save_seconds=0.0, epochs=1)
    folder = tmp_path / "checkpoints"
    (kept,) = folder.glob("checkpoint-*")
    broken = folder / "checkpoint-99"
    broken.mkdir()
    (broken / "model.safetensors").write_bytes(b"half")
    assert last_checkpoint(folder) == str(kept) and not broken.exists()
    (kept / MARKER).unlink()
    assert last_checkpoint(folder) is None and not kept.exists()


def test_seconds_add_up_over_a_pause(tmp_path, monkeypatch):
    _, result, _ = interrupted(tmp_path, 6, monkeypatch)
    (folder,) = (tmp_path / "checkpoints").glob("checkpoint-6")
    saved = json.loads((folder / MARKER).read_text())["seconds"]
    assert all(0 < saved[key] < result.seconds[key] for key in ("total", "forward_backward", "update"))
    assert result.seconds["forward_backward"] + result.seconds["update"] < result.seconds["total"]


def test_a_full_disk_while_saving_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    bench.train(tmp_path, deadline=0.0)
    folder = tmp_path / "checkpoints"
    assert last_checkpoint(folder) == str(folder / "checkpoint-1")

    def save_half(state, path, *_, **__):
        with open(path, "wb") as file:  # noqa: PTH123
            file.write(b"half")
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(torch, "save", save_half)
    with pytest.raises(CheckpointError, match=r"cannot write .*checkpoint-2: No space left on device. Free") as caught:
        bench.train(tmp_path, save_seconds=0.0)
    assert "\n" not in str(caught.value)
    assert [path.name for path in folder.iterdir()] == ["checkpoint-1"]
    monkeypatch.undo()
    _, result, _ = bench.train(tmp_path)
    assert result.finished and result.steps == 12


# -- numbers that are none ----------------------------------------------------------------------------------


def test_a_loss_that_is_no_number_stops_the_stage_and_keeps_the_last_checkpoint(tmp_path, monkeypatch):
    whole, _, _ = bench.train(tmp_path / "whole")
    forward, calls = Transformer.forward, []

    def broken(self, *arguments, **features):
        outputs = forward(self, *arguments, **features)
        calls.append(self.training)
        if sum(calls) == 5:
            outputs.losses["words"] = outputs.losses["words"] * float("nan")
        return outputs

    monkeypatch.setattr(Transformer, "forward", broken)
    message = (
        r"stage 'train' stopped: NaN or infinite loss words at step 4; the last checkpoint is kept in .*"
        r"checkpoints\. Train in another --out with a lower learning_rate"
    )
    with pytest.raises(TrainingError, match=message) as caught:
        bench.train(tmp_path / "cut", save_seconds=0.0)
    assert "\n" not in str(caught.value)
    monkeypatch.undo()
    kept = last_checkpoint(tmp_path / "cut" / "checkpoints")
    assert kept is not None and kept.endswith("checkpoint-4")
    model, result, _ = bench.train(tmp_path / "cut")
    assert result.finished and result.steps == 12
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), model.parameters(), strict=True))


@pytest.mark.parametrize("save_seconds", [0.0, 60.0])
def test_weights_that_are_no_numbers_are_not_kept(tmp_path, save_seconds):
    """The only update overflows: no loss is computed with what it left."""
    with pytest.raises(
        TrainingError, match=r"NaN or infinite weights at step 1; there was no checkpoint yet\. Train in"
    ):
        bench.train(tmp_path, save_seconds=save_seconds, learning_rate=1e39, max_steps=1, evaluations=0)
    assert not list((tmp_path / "checkpoints").glob("*"))


# -- precision -----------------------------------------------------------------------------------------------


def test_a_stage_in_bfloat16_computes_in_it_and_leaves_the_model_in_float32(tmp_path):
    """Two stages in one process: the first multiplies in bfloat16, the second and what follows do not."""
    seen: set[torch.dtype] = set()
    model = bench.make_model()
    model.encoder.stack.layers[0].ffn[0].register_forward_hook(lambda *a: seen.add(a[-1].dtype))
    _, result, half = bench.train(tmp_path / "half", model=model, precision="bfloat16", max_steps=3, evaluations=0)
    assert seen == {torch.bfloat16} and result.steps == 3
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    seen.clear()
    bench.train(tmp_path / "whole", model=model, max_steps=3, evaluations=0)
    assert seen == {torch.float32}
    seen.clear()
    bench.train(tmp_path / "again", model=model, precision="bfloat16", max_steps=3, evaluations=0)
    assert seen == {torch.bfloat16}  # a later stage in the same process gets what it asks for, too
    _, _, whole = bench.train(tmp_path / "fresh", max_steps=3, evaluations=0)
    assert half != whole
    torch.testing.assert_close(torch.tensor(half), torch.tensor(whole), rtol=0.02, atol=0.02)


def test_a_stage_in_float32_says_nothing_of_precision_in_the_recipe():
    assert "precision" not in bench.make_stage().model_dump()
    assert bench.make_stage(precision="bfloat16").model_dump()["precision"] == "bfloat16"
