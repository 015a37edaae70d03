"""Runs one stage of a recipe: resumes from its last complete checkpoint, stops at a deadline, keeps curves."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import EarlyStoppingCallback, PreTrainedModel, PrinterCallback, TrainingArguments
from transformers.trainer_utils import set_seed

from empatheia.errors import ConfigError
from empatheia.registry import nearest
from empatheia.text.batching import BucketBatchSampler, TokenBatchSampler
from empatheia_research.layers.attention import Attention
from empatheia_research.recipes.recipe import StageConfig
from empatheia_research.training.progress_line import ProgressLine
from empatheia_research.training.tracking import tracker
from empatheia_research.training.trainer import CurveWriter, EmpatheiaTrainer, RunClock, last_checkpoint


@dataclass
class StageData:
    """What a stage learns from.

    Attributes:
        train: Encoded training items.
        train_lengths: Length of each, in pieces (the longer of source and target).
        valid: Encoded validation items (may be empty).
        valid_lengths: Likewise.
        collator: Items to a batch of tensors.
        compares_in_batch: The loss of an item is over its batch (in-batch negatives), so validation too has batches of
            ``batch_examples``, in an order drawn once; else they are as long as memory allows, sorted by length.
    """

    train: Sequence[Any]
    train_lengths: Sequence[int]
    valid: Sequence[Any]
    valid_lengths: Sequence[int]
    collator: Callable[[list[Any]], dict[str, Any]]
    compares_in_batch: bool = False


def validation_batches(data: StageData, stage: StageConfig) -> list[list[int]]:
    """Indices of the validation items, batch by batch; see :class:`StageData`."""
    n = len(data.valid)
    if not n:
        return []
    if data.compares_in_batch:
        order = random.Random(0).sample(range(n), n)
        return [order[i : i + stage.batch_examples] for i in range(0, n, stage.batch_examples)]
    n_tokens = stage.batch_tokens or max(data.valid_lengths, default=1) * stage.batch_examples
    return list(TokenBatchSampler(data.valid_lengths, n_tokens, shuffle=False, seed=0))


@dataclass
class StageResult:
    """How a stage ended: ``finished`` False means the deadline came first and a checkpoint waits."""

    finished: bool
    steps: int
    metrics: dict[str, float]
    seconds: dict[str, float]


def choose_parameters(model: nn.Module, train: Sequence[str], freeze: Sequence[str], rates: Iterable[str] = ()) -> int:
    """Lets the parameters whose names start with a prefix of ``train`` learn, except those of ``freeze``.

    A model that says which of its parameters may learn (``learns(name)``: adapters) keeps the others as they are.

    Args:
        model: Whose parameters.
        train: Prefixes of those that learn.
        freeze: Prefixes of those that do not.
        rates: Prefixes that have a learning rate of their own; they are only checked.

    Returns:
        How many numbers learn.

    Raises:
        ConfigError: A prefix matches no parameter.
    """
    names = [name for name, _ in model.named_parameters()]
    for prefix in (*train, *freeze, *rates):
        if not any(name.startswith(prefix) for name in names):
            tops = sorted({".".join(name.split(".")[:2]) for name in names})
            raise ConfigError(
                f"no parameter starts with {prefix!r}.{nearest(prefix, tops)} There are: {', '.join(tops)}."
            )
    may_learn = getattr(model, "learns", lambda name: True)
    for name, parameter in model.named_parameters():
        learns = (
            may_learn(name) and any(name.startswith(p) for p in train) and not any(name.startswith(p) for p in freeze)
        )
        parameter.requires_grad_(learns)
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def check_groups(model: nn.Module, stage: StageConfig) -> None:
    """Checks that no parameter learns in two groups of a stage that alternates.

    Raises:
        ConfigError: One does; names it.
    """
    for name, _ in model.named_parameters():
        found = [i for i, group in enumerate(stage.alternate) if name.startswith(group.train)]
        if len(found) > 1:
            raise ConfigError(
                f"stages.{stage.name}.alternate: {name!r} belongs to the groups {found[0] + 1} and {found[1] + 1};"
                " accepted: prefixes that share no parameter."
            )


def set_dropout(model: nn.Module, rate: float | None) -> Callable[[], None]:
    """Sets every dropout rate of a model; the returned function puts the old ones back. None changes nothing."""
    old: list[tuple[Any, str, float]] = []
    for module in model.modules() if rate is not None else ():
        if isinstance(module, nn.Dropout):
            old.append((module, "p", module.p))
        elif isinstance(module, Attention):
            old.append((module, "dropout", module.dropout))
    for module, name, _ in old:
        setattr(module, name, rate)

    def restore() -> None:
        for module, name, value in old:
            setattr(module, name, value)

    return restore


def run_stage(
    model: PreTrainedModel,
    stage: StageConfig,
    data: StageData,
    *,
    folder: Path,
    curves: Path,
    seed: int,
    deadline: float | None = None,
    save_seconds: float = 60.0,
    show_progress: bool = True,
    device: str = "auto",
    track: str = "none",
) -> StageResult:
    """Trains ``model`` in place.

    Args:
        model: Learns in place.
        stage: Schedule.
        data: Items.
        folder: Where checkpoints go; delete it once the finished stage's weights are saved elsewhere.
        curves: The run's ``curves.jsonl``.
        seed: Of data order and dropout.
        deadline: ``time.monotonic()`` value at which to save and stop.
        save_seconds: Longest stretch a kill may lose.
        show_progress: A progress line on stderr.
        device: Of :func:`empatheia_research.devices.choose_device`.
        track: Of :mod:`empatheia_research.training.tracking`.

    Raises:
        ConfigError: No training item, or a prefix in the stage matches nothing.
        TrainingError: A loss or a weight became NaN or infinite; the last checkpoint stays.
    """
    if not len(data.train):
        raise ConfigError(f"stage {stage.name!r} has no training item; check the recipe's data block.")
    check_groups(model, stage)
    choose_parameters(
        model, [prefix for group in stage.alternate for prefix in group.train] or stage.train, stage.freeze, stage.rates
    )
    restore_dropout = set_dropout(model, stage.dropout)
    sampler = _sampler(stage, data, seed)
    eval_batches = validation_batches(data, stage)

    evaluates = bool(stage.evaluations and eval_batches)
    arguments = _arguments(stage, folder, len(sampler), seed, evaluates, device)
    clock = RunClock(deadline, save_seconds)
    callbacks: list[Any] = [clock, CurveWriter(curves, stage.name)]
    callbacks += [ProgressLine(stage.name)] if show_progress else []
    callbacks += tracker(track, curves.parent, stage.name)
    if stage.patience and stage.select and evaluates:
        callbacks.append(EarlyStoppingCallback(stage.patience))
    set_seed(seed)
    trainer = EmpatheiaTrainer(
        model=model,
        args=arguments,
        stage=stage,
        sampler=sampler,
        eval_batches=eval_batches,
        train_dataset=data.train,
        eval_dataset=data.valid if eval_batches else None,
        data_collator=data.collator,
        callbacks=callbacks,
    )
    trainer.remove_callback(PrinterCallback)  # stdout belongs to the command's result; curves go to curves.jsonl
    clock.watch(trainer)
    checkpoint = last_checkpoint(folder)
    trainer.train(resume_from_checkpoint=checkpoint)
    trainer.check_weights()
    finished = not clock.was_stopped
    metrics = {}
    if finished and eval_batches:
        trainer.remove_callback(CurveWriter)  # of the chosen weights, which may be older than the last step
        metrics = trainer.evaluate()
    trainer.accelerator.unwrap_model(model, keep_fp32_wrapper=False)  # what follows is in float32 again
    model.__dict__.pop("_is_accelerate_prepared", None)  # else the next stage would be, too, whatever it asks for
    restore_dropout()
    for parameter in model.parameters():
        parameter.requires_grad_(True)
    return StageResult(finished, trainer.state.global_step, metrics, trainer.seconds)


def _sampler(stage: StageConfig, data: StageData, seed: int) -> TokenBatchSampler | BucketBatchSampler:
    """Batches of a stage, all processes' shares together."""
    n_processes = int(os.environ.get("WORLD_SIZE", "1"))  # a batch size is one process's share, as with torchrun usual
    if stage.batch_tokens:
        n_tokens = n_processes * stage.batch_tokens
        return TokenBatchSampler(data.train_lengths, n_tokens, shuffle=True, seed=seed)
    n_examples = n_processes * stage.batch_examples
    return BucketBatchSampler(data.train_lengths, n_examples, shuffle=True, seed=seed)


def _arguments(
    stage: StageConfig, folder: Path, n_batches: int, seed: int, evaluates: bool, device: str
) -> TrainingArguments:
    """A stage's schedule as transformers' trainer takes it."""
    repeats = EmpatheiaTrainer.stage_repeats(stage)
    steps_per_epoch = max(1, math.ceil(n_batches / stage.accumulate)) * repeats
    selects = bool(stage.select and evaluates)
    return TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=stage.epochs,
        max_steps=stage.max_steps or -1,
        per_device_train_batch_size=stage.batch_examples,
        gradient_accumulation_steps=stage.accumulate,
        learning_rate=stage.learning_rate,
        lr_scheduler_type=stage.schedule,
        warmup_steps=stage.warmup_steps,
        max_grad_norm=stage.max_grad_norm,
        logging_steps=max(1, min(50, steps_per_epoch // 20)),
        logging_first_step=True,
        eval_strategy="steps" if evaluates else "no",
        eval_steps=max(1, steps_per_epoch // stage.evaluations) if evaluates else None,
        save_strategy="best" if selects else "no",
        load_best_model_at_end=selects,
        metric_for_best_model=f"eval_{stage.select}" if selects else None,
        greater_is_better=False if selects else None,
        save_total_limit=None,
        remove_unused_columns=False,
        report_to="none",  # a tracker is one of the callbacks: its files must outlive the checkpoints
        seed=seed,
        data_seed=seed,
        disable_tqdm=True,  # it prints raw dictionaries; see ProgressLine
        dataloader_num_workers=0,
        dataloader_pin_memory=False,
        ddp_find_unused_parameters=True,
        restore_callback_states_from_checkpoint=True,  # the patience used up so far
        use_cpu=device == "cpu" or (device == "auto" and not torch.cuda.is_available()),
        bf16=stage.precision == "bfloat16",
    )
