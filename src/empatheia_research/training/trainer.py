"""The one Trainer subclass: weighted multi-loss training that means the same under accumulation and processes.

Every model's ``forward`` returns unweighted mean losses by name and how many items each is over; this trainer
re-normalises each by its count over all micro-batches of an update and all processes. So accumulating 4 batches,
or two processes with half the batch each, logs and learns the same as one large batch. What a checkpoint holds makes
a killed run end with the same numbers as one that was left alone, the values logged on the way included.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset
from transformers import (
    EarlyStoppingCallback,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from transformers.trainer_utils import TrainOutput
from transformers.utils.generic import ModelOutput

from empatheia.errors import ConfigError, TrainingError
from empatheia.reading import UnreadableError, parse_json, read_record, read_text
from empatheia.registry import nearest
from empatheia.writing import WRITE_PROBLEMS, cannot_write, write_atomically
from empatheia_research.recipes.recipe import AlternateConfig, StageConfig

MARKER = "complete.json"


class EpochSampler(Protocol):
    """Batches of indices that may differ from epoch to epoch."""

    def set_epoch(self, epoch: int) -> None:
        """Chooses the epoch whose batches the next iteration gives."""
        ...

    def __iter__(self) -> Iterator[list[int]]: ...

    def __len__(self) -> int: ...


class EpochBatches:
    """Batches of every epoch, each split evenly over the processes, the same number each epoch.

    The sampler's batch is what all processes see together: each takes every ``world_size``-th example of it, so two
    processes learn what one learns from the same batches. A sampler that packs by length gives slightly different
    numbers of batches each epoch; the Trainer counts steps once. So epochs with fewer batches than the fullest one
    have their largest batches halved. Every example comes exactly once an epoch, unless there are fewer examples than
    processes times batches.

    Args:
        sampler: Yields lists of indices; has ``set_epoch``.
        n_epochs: Epochs the run may see.
        rank: This process.
        world_size: Number of processes.
        repeats: How often each update's batches come, one time behind the other.
        window: Batches an update takes, when they repeat.
    """

    def __init__(
        self,
        sampler: EpochSampler,
        n_epochs: int,
        rank: int = 0,
        world_size: int = 1,
        repeats: int = 1,
        window: int = 1,
    ) -> None:
        self.sampler = sampler
        self.rank = rank
        self.world_size = world_size
        self.repeats = repeats
        self.window = window if repeats > 1 else 1
        self.epoch = 0
        longest = max(len(self._splittable(epoch)) for epoch in range(max(1, n_epochs)))
        self.n_batches = -(-longest // self.window) * self.window

    def set_epoch(self, epoch: int) -> None:
        """Chooses the epoch whose order the next iteration gives."""
        self.epoch = epoch

    def __len__(self) -> int:
        return self.n_batches * self.repeats

    def __iter__(self) -> Iterator[list[int]]:
        batches = self._even()
        for start in range(0, len(batches), self.window):
            for _ in range(self.repeats):
                for batch in batches[start : start + self.window]:
                    yield batch[self.rank :: self.world_size]

    def _even(self) -> list[list[int]]:
        """The epoch's batches, as many as every epoch has."""
        batches = self._splittable(self.epoch)
        while len(batches) < self.n_batches:
            largest = max(range(len(batches)), key=lambda i: len(batches[i]))
            batch = batches[largest]
            if len(batch) < 2 * self.world_size:  # none can be halved and still give each process an example
                spare: list[int] = []
                for other in sorted(batches, key=len, reverse=True):
                    while len(other) > self.world_size and len(spare) < self.world_size:
                        spare.append(other.pop())
                batches.append(spare + batch[: self.world_size - len(spare)])  # too few examples: some twice
                continue
            batches[largest] = batch[::2]
            batches.append(batch[1::2])
        while len(batches) > self.n_batches:  # an epoch nobody foresaw
            batches.sort(key=len, reverse=True)
            batches[-2:] = [batches[-2] + batches[-1]]
        return batches

    def _splittable(self, epoch: int) -> list[list[int]]:
        """The sampler's batches, those with fewer examples than processes joined to the one before."""
        self.sampler.set_epoch(epoch)
        batches: list[list[int]] = []
        for batch in self.sampler:
            if batches and min(len(batch), len(batches[-1])) < self.world_size:
                batches[-1] += batch
            else:
                batches.append(list(batch))
        if batches and len(batches[-1]) < self.world_size:  # fewer examples than processes
            batches[-1] = (batches[-1] * self.world_size)[: self.world_size]
        return batches


class EpochLoader(DataLoader):
    """A DataLoader that tells its batch sampler which epoch it is."""

    def set_epoch(self, epoch: int) -> None:
        """Forwards the epoch to the batch sampler."""
        cast(EpochBatches, self.batch_sampler).set_epoch(epoch)  # the one it is made with below


class EmpatheiaTrainer(Trainer):
    """Trains any model of this package by a recipe's stage.

    A stage that alternates gives each group of parameters its updates by turns: which group an update belongs to
    follows from its number alone, so a resumed run goes on where it was. The other groups keep no gradient, and AdamW
    leaves weights and moments without one as they are.

    Args:
        stage: Loss weights, schedule, optimiser.
        sampler: Batch sampler over the training set (see ``text.batching``).
        eval_batches: Lists of indices that partition the validation set.
        **kwargs: As transformers' Trainer.
    """

    loss_is_scaled_for_ga = True

    def __init__(
        self, *, stage: StageConfig, sampler: EpochSampler, eval_batches: Iterable[list[int]] = (), **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.stage = stage
        self.sampler = sampler
        self.eval_batches = list(eval_batches)
        self._sums: dict[str, Tensor] = {}
        self._n_updates = 0  # since the last log, as the sums
        self._n_of: dict[str, int] = {}  # of them, those that learnt by a loss
        self._n_batches = 0  # of the update so far
        self._turns = [group for group in stage.alternate for _ in range(group.steps)]
        self._idle: dict[int, list[nn.Parameter]] = {}
        self.seconds = {"total": 0.0, "forward_backward": 0.0, "update": 0.0}
        self.clock: RunClock | None = None
        self._resumed_from: Path | None = None

    # -- data ------------------------------------------------------------------------------------------------

    def get_train_dataloader(self) -> DataLoader:
        """Batches by the stage's rule; every process takes its share."""
        n_epochs = math.ceil(self.args.num_train_epochs)
        repeats, window = self.stage_repeats(self.stage), self.args.gradient_accumulation_steps
        if self.args.max_steps > 0:
            n_epochs = math.ceil(self.args.max_steps * window / max(1, len(self.sampler) * repeats))
        rank, world_size = self.args.process_index, self.args.world_size
        batches = EpochBatches(self.sampler, n_epochs, rank, world_size, repeats, window)
        dataset = cast("Dataset[Any]", self.train_dataset)  # a Trainer may be made without; this one is not
        return EpochLoader(dataset, batch_sampler=batches, collate_fn=self.data_collator)

    def get_batch_samples(
        self, epoch_iterator: Iterator, num_batches: int, device: torch.device
    ) -> tuple[list, dict[str, Tensor] | None]:
        """The micro-batches of one update, and the items each loss has over all of them and all processes."""
        batches = []
        if self._is_over():
            return batches, {}
        self._n_updates += 1
        self._n_batches = 0
        for name in self.weights:
            self._n_of[name] = self._n_of.get(name, 0) + 1
        for _ in range(num_batches):
            try:
                batches.append(next(epoch_iterator))
            except StopIteration:
                break
        totals: dict[str, Tensor] = {}
        model = self.accelerator.unwrap_model(self.model)
        for batch in batches:
            for name, count in model.count_items(batch, model.config).items():
                totals[name] = totals.get(name, torch.zeros((), dtype=torch.long)) + count
        if self.args.world_size > 1:
            names = sorted(self.stage.loss_names)
            mine = torch.stack([totals.get(name, torch.zeros((), dtype=torch.long)) for name in names]).to(device)
            summed = self.accelerator.reduce(mine, reduction="sum")
            totals = dict(zip(names, torch.as_tensor(summed).cpu(), strict=True))
        return batches, totals

    def _is_over(self) -> bool:
        """True when resumed from the last step: the Trainer would go on to the end of the epoch."""
        patience = [c for c in self.callback_handler.callbacks if isinstance(c, EarlyStoppingCallback)]
        return self.state.global_step >= self.state.max_steps or any(
            c.early_stopping_patience_counter >= c.early_stopping_patience for c in patience
        )

    # -- loss ------------------------------------------------------------------------------------------------

    @staticmethod
    def stage_repeats(stage: StageConfig) -> int:
        """How often each batch comes: once for each update of a round, where a stage wants that."""
        return sum(group.steps for group in stage.alternate) if stage.same_batch and stage.alternate else 1

    @property
    def group(self) -> AlternateConfig | None:
        """The group whose turn it is; None in a stage that does not alternate."""
        return self._turns[self.state.global_step % len(self._turns)] if self._turns else None

    @property
    def weights(self) -> dict[str, float]:
        """The losses of this update, with weights."""
        return self.stage.losses if self.group is None else self.group.losses

    def _drop_idle_gradients(self) -> None:
        """Frees the gradients of the groups whose turn it is not."""
        if self.group is None:
            return
        turn = self.state.global_step % len(self._turns)
        if turn not in self._idle:
            prefixes = tuple(self.group.train)
            named = self.accelerator.unwrap_model(self.model).named_parameters()
            self._idle[turn] = [parameter for name, parameter in named if not name.startswith(prefixes)]
        for parameter in self._idle[turn]:
            parameter.grad = None

    def compute_loss(
        self,
        model: nn.Module,
        inputs: Mapping[str, object],
        return_outputs: bool = False,
        num_items_in_batch: Mapping[str, Tensor] | None = None,
    ) -> Tensor | tuple[Tensor, ModelOutput]:
        """Weighted sum of the stage's losses, each a mean over the whole update.

        Raises:
            ConfigError: The stage names a loss the model does not give.
        """
        if getattr(self.accelerator.unwrap_model(model), "chooses_losses", False):
            inputs = {**inputs, "wanted_losses": tuple(name for name, weight in self.weights.items() if weight)}
        outputs = model(**inputs)
        losses, counts = outputs.losses or {}, outputs.counts or {}
        loss: Any = 0.0
        for name, weight in self.weights.items():
            if name not in losses:
                if weight:
                    raise ConfigError(
                        f"stage {self.stage.name!r}: the model gives no loss {name!r}.{nearest(name, list(losses))}"
                        f" There are: {', '.join(losses) or 'none'}."
                    )
                continue
            share = 1.0
            if num_items_in_batch is not None:
                total = num_items_in_batch.get(name, counts[name]).to(losses[name].device)
                share = counts[name] / total.clamp_min(1) * self.args.world_size
                self._sums[name] = self._sums.get(name, 0.0) + (losses[name].detach() * share).float()
            loss = loss + weight * share * losses[name]
        return (loss, outputs) if return_outputs else loss

    def training_step(self, model: nn.Module, inputs: dict[str, Any], num_items_in_batch: Any = None) -> Tensor:
        """Forward and backward of one micro-batch, timed.

        A model with an attribute ``continues_update`` sees it True in all but the first micro-batch of an update, so
        that what it counts or decides for an update does not depend on ``accumulate``.
        """
        start = time.perf_counter()
        told: Any = self.accelerator.unwrap_model(model)
        tells = hasattr(told, "continues_update")
        if tells:
            told.continues_update = self._n_batches > 0
        loss = super().training_step(model, inputs, num_items_in_batch)
        self._check_finite(loss)
        if tells:
            told.continues_update = False
        self._n_batches += 1
        self._drop_idle_gradients()
        self.seconds["forward_backward"] += time.perf_counter() - start
        return loss

    def _check_finite(self, *values: Tensor) -> None:
        """Stops a training that learns nothing more.

        Raises:
            TrainingError: A loss or a weight is NaN or infinite; the last checkpoint, if there is one, stays.
        """
        if all(bool(torch.isfinite(value).all()) for value in values):
            return
        odd = [name for name, value in self._sums.items() if not torch.isfinite(value).all()]
        kept = any(Path(str(self.args.output_dir)).glob(f"checkpoint-*/{MARKER}"))
        where = f"the last checkpoint is kept in {self.args.output_dir}" if kept else "there was no checkpoint yet"
        what = f"loss {', '.join(odd)}" if odd else "weights"
        raise TrainingError(
            f"stage {self.stage.name!r} stopped: NaN or infinite {what} at step {self.state.global_step:,};"
            f" {where}. Train in another --out with a lower learning_rate, with max_grad_norm, or without"
            " precision: bfloat16."
        )

    def check_weights(self) -> None:
        """As above for the weights: they are looked at before they are kept.

        Raises:
            TrainingError: One is NaN or infinite.
        """
        self._check_finite(*self.accelerator.unwrap_model(self.model).parameters())

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Adds each loss's mean since the last log, by name."""
        if "loss" in logs and self._sums:
            for name, value in self._sums.items():
                logs[f"loss_{name}"] = round(self._over_processes(value) / max(1, self._n_of.get(name, 0)), 6)
            self._sums, self._n_updates, self._n_of = {}, 0, {}
        super().log(logs, start_time)

    def _over_processes(self, value: Tensor) -> float:
        gathered = cast(Tensor, self.accelerator.gather(value.reshape(1).to(self.args.device)))  # as what was given
        return gathered.mean().item()

    # -- optimiser -------------------------------------------------------------------------------------------

    def create_optimizer(self, model: nn.Module | None = None) -> torch.optim.Optimizer:
        """AdamW over the parameters that learn; those outside the (pretrained) encoder may have their own rate.

        A model whose class says ``optimizer = "sgd"`` (sparse tables, which AdamW cannot take) gets plain descent.
        """
        if self.optimizer is None:
            stage, by_rate = self.stage, self._by_rate()
            if self._is_sparse():
                if stage.max_grad_norm or stage.weight_decay:
                    raise ConfigError(
                        f"stage {stage.name!r}: max_grad_norm={stage.max_grad_norm} and weight_decay="
                        f"{stage.weight_decay} with a model of sparse tables; accepted: 0 for both."
                    )
                self.optimizer = torch.optim.SGD(by_rate, lr=stage.learning_rate)
            elif stage.optimizer == "adamax":
                self.optimizer = torch.optim.Adamax(
                    by_rate, betas=stage.betas, eps=stage.eps, weight_decay=stage.weight_decay
                )
            else:
                self.optimizer = torch.optim.AdamW(
                    by_rate,
                    betas=stage.betas,
                    eps=stage.eps,
                    weight_decay=stage.weight_decay,
                    fused=True,
                )
        return self.optimizer

    def _by_rate(self) -> list[dict[str, Any]]:
        """The parameters that learn, grouped by their learning rate, as an optimiser takes them."""
        groups: dict[float, list[nn.Parameter]] = {}
        named = list(self.accelerator.unwrap_model(self.model).named_parameters())
        mark = ".pretrained." if any(".pretrained." in name for name, _ in named) else "encoder."
        for name, parameter in named:
            if parameter.requires_grad:
                groups.setdefault(self._rate_of(name, is_encoder=mark in name), []).append(parameter)
        return [{"params": params, "lr": rate} for rate, params in groups.items()]

    def _rate_of(self, name: str, *, is_encoder: bool) -> float:
        """A parameter's learning rate: that of ``rates``, else of its alternating group, else of its part."""
        stage = self.stage
        own = max((prefix for prefix in stage.rates if name.startswith(prefix)), key=len, default=None)
        if own is not None:
            return stage.rates[own]
        rate = next((g.learning_rate for g in stage.alternate if name.startswith(g.train)), None)
        return rate or (stage.learning_rate if is_encoder else stage.head_learning_rate or stage.learning_rate)

    def _is_sparse(self) -> bool:
        return getattr(self.accelerator.unwrap_model(self.model), "optimizer", "adamw") == "sgd"

    def _get_grad_norm(self, model: nn.Module, grad_norm: Any = None) -> Any:
        return None if self._is_sparse() else super()._get_grad_norm(model, grad_norm)

    # -- validation ------------------------------------------------------------------------------------------

    def evaluate(
        self,
        eval_dataset: Sequence[object] | None = None,
        ignore_keys: list[str] | None = None,
        metric_key_prefix: str = "eval",
    ) -> dict[str, float]:
        """Item-weighted mean of each of the stage's losses over the validation set."""
        dataset: Any = self.eval_dataset if eval_dataset is None else eval_dataset
        model = self.accelerator.unwrap_model(self.model)
        was_training = model.training
        model.eval()
        sums: dict[str, float] = {}
        n: dict[str, int] = {}
        with torch.inference_mode():
            for indices in self.eval_batches:
                batch = self._prepare_inputs(self.data_collator([dataset[i] for i in indices]))
                outputs = model(**batch)
                for name, value in (outputs.losses or {}).items():
                    count = int(outputs.counts[name])
                    sums[name] = sums.get(name, 0.0) + value.item() * count
                    n[name] = n.get(name, 0) + count
        model.train(was_training)
        metrics = {f"{metric_key_prefix}_{name}": sums[name] / max(1, n[name]) for name in sums}
        metrics[f"{metric_key_prefix}_loss"] = sum(
            weight * metrics.get(f"{metric_key_prefix}_{name}", 0.0) for name, weight in self.stage.losses.items()
        )
        self.log(dict(metrics))  # the Trainer writes the epoch into what it logs
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    # -- checkpoints -----------------------------------------------------------------------------------------

    def train(self, resume_from_checkpoint: str | None = None, **kwargs: Any) -> TrainOutput:
        """Trains, from a checkpoint folder if one is given."""
        self._resumed_from = Path(resume_from_checkpoint) if resume_from_checkpoint else None
        return super().train(resume_from_checkpoint=resume_from_checkpoint, **kwargs)

    def take_up(self) -> None:
        """Puts back what the Trainer forgets on resuming: sums not yet logged, seconds, where the best weights are."""
        if self._resumed_from is None:
            return
        saved = read_record(self._resumed_from / MARKER)
        self._n_updates = saved.get("n_updates", 0)
        self._n_of = saved.get("n_of", dict.fromkeys(saved.get("sums", {}), self._n_updates))
        self._sums = {name: torch.tensor(value) for name, value in saved.get("sums", {}).items()}
        self._tr_loss += saved.get("loss_sum", 0.0)
        self._globalstep_last_logged = self.state.global_step - self._n_updates
        self.seconds |= saved.get("seconds", {})
        best = Path(str(self.args.output_dir)) / f"checkpoint-{self.state.best_global_step}"
        if self.state.best_global_step and best.is_dir():  # the run folder may have been moved
            self.state.best_model_checkpoint = str(best)

    def _determine_best_metric(self, metrics: dict[str, float], trial: Any) -> bool:
        # with save_strategy "best" the Trainer forgets that the clock asked for a checkpoint
        is_asked_for = self.control.should_save
        return super()._determine_best_metric(metrics, trial) or is_asked_for

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        self.check_weights()
        folder = Path(str(self.args.output_dir)) / f"checkpoint-{self.state.global_step}"
        saved = {
            "step": self.state.global_step,
            "n_updates": self._n_updates,
            "n_of": self._n_of,
            "loss_sum": self._over_processes(self._tr_loss),
            "sums": {name: self._over_processes(value) for name, value in self._sums.items()},
            "seconds": self.seconds | {"total": self.clock.elapsed() if self.clock else self.seconds["total"]},
        }
        try:
            super()._save_checkpoint(model, trial)
            if self.args.should_save:
                write_atomically(folder / MARKER, json.dumps(saved))
        except WRITE_PROBLEMS as problem:
            shutil.rmtree(folder, ignore_errors=True)
            raise cannot_write(folder, problem) from None
        if self.args.should_save:
            for other in Path(str(self.args.output_dir)).glob("checkpoint-*"):
                if other != folder and str(other) != self.state.best_model_checkpoint:
                    shutil.rmtree(other, ignore_errors=True)


def last_checkpoint(folder: Path) -> str | None:
    """The newest checkpoint that was written completely; broken ones (killed while saving) are removed."""
    complete = []
    for path in folder.glob("checkpoint-*"):
        if (path / MARKER).is_file():
            complete.append((int(path.name.rsplit("-", 1)[1]), path))
        else:
            shutil.rmtree(path, ignore_errors=True)
    return str(max(complete)[1]) if complete else None


class RunClock(TrainerCallback):
    """Saves once a minute, stops at the deadline, and measures the time outside forward, backward and update.

    Args:
        deadline: ``time.monotonic()`` value at which to save and stop; None = none.
        save_seconds: Longest stretch of work a kill may lose.
    """

    def __init__(self, deadline: float | None = None, save_seconds: float = 60.0) -> None:
        self.deadline = deadline
        self.save_seconds = save_seconds
        self.saved = time.monotonic()
        self.was_stopped = False
        self.trainer: EmpatheiaTrainer | None = None
        self._begun = self._step = 0.0

    def watch(self, trainer: EmpatheiaTrainer) -> None:
        """Measures this trainer."""
        self.trainer, trainer.clock = trainer, self

    def elapsed(self) -> float:
        """Seconds of training so far, those before a kill included."""
        before = self.trainer.seconds["total"] if self.trainer is not None else 0.0
        return before + time.perf_counter() - self._begun

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Starts the clock, where the checkpoint stopped it."""
        self._begun = time.perf_counter()
        if self.trainer is not None:
            self.trainer.take_up()

    def on_pre_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """The update begins."""
        self._step = time.perf_counter()

    def on_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """The update ends."""
        if self.trainer is not None:
            self.trainer.seconds["update"] += time.perf_counter() - self._step

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object) -> None:
        """Stops the clock."""
        if self.trainer is not None:
            self.trainer.seconds["total"] = self.elapsed()

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> TrainerControl:
        """Asks for a checkpoint when one is due, and for a stop at the deadline."""
        now = time.monotonic()
        is_over = self.deadline is not None and now >= self.deadline and state.global_step < state.max_steps
        is_due = now - self.saved >= self.save_seconds
        if args.world_size > 1:  # clocks differ: all follow the first process
            flags = torch.tensor([is_over, is_due], dtype=torch.uint8, device=args.device)
            torch.distributed.broadcast(flags, 0)
            is_over, is_due = map(bool, flags.tolist())
        if is_over:
            self.was_stopped = control.should_training_stop = control.should_save = True
        elif is_due:
            control.should_save = True
        return control

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object) -> None:
        """Remembers when the last checkpoint was written."""
        self.saved = time.monotonic()


class CurveWriter(TrainerCallback):
    """Appends every logged value to ``curves.jsonl`` of the run, without repeating steps after a resume."""

    def __init__(self, path: Path, stage: str) -> None:
        self.path = path
        self.stage = stage

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Drops lines a killed run wrote after its last checkpoint."""
        if not state.is_world_process_zero or not self.path.is_file():
            return
        kept = []
        for line in read_text(self.path).splitlines():
            try:
                row = parse_json(line)
                if row["stage"] != self.stage or row["step"] <= state.global_step:
                    kept.append(line)
            except (UnreadableError, KeyError, TypeError):  # half a line that a kill left
                continue
        write_atomically(self.path, "".join(line + "\n" for line in kept))

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict | None = None,
        **_: object,
    ) -> None:
        """Writes one line."""
        if not state.is_world_process_zero or not logs or "train_runtime" in logs:
            return
        row = {"stage": self.stage, "step": state.global_step, "epoch": round(state.epoch or 0.0, 4), **logs}
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        except OSError as problem:
            raise cannot_write(self.path, problem) from None
