"""How far a stage is: one line on stderr, drawn anew on a terminal, else told now and then."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.utils import logging as transformers_logging

SECONDS_BETWEEN = 30.0
"""Seconds between two lines where none can be drawn anew."""
_SECONDS_BETWEEN_DRAWN = 0.2


class ProgressLine(TrainerCallback):
    """Tells step, rate, losses and time left.

    Args:
        stage: Name of the stage.
    """

    def __init__(self, stage: str) -> None:
        self.stage = stage
        self._is_drawn = sys.stderr.isatty()
        self._seconds = _SECONDS_BETWEEN_DRAWN if self._is_drawn else SECONDS_BETWEEN
        self._first = self._width = 0
        self._begun = self._told = 0.0
        self._losses: dict[str, float] = {}

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Starts the clock."""
        self._first, self._begun = state.global_step, time.monotonic()
        self._told = self._begun

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **_: object,
    ) -> None:
        """Keeps the newest losses of training and validation."""
        for name, shown in (("loss", "loss"), ("eval_loss", "valid")):
            if logs and name in logs:
                self._losses[shown] = float(logs[name])

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object) -> None:
        """Tells, if it is time to."""
        now = time.monotonic()
        if state.is_world_process_zero and now - self._told >= self._seconds:
            self._told = now
            self._write(self._line(state, now))

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object) -> None:
        """Leaves the last line."""
        if state.is_world_process_zero:
            self._write(self._line(state, time.monotonic()), is_last=True)

    def _line(self, state: TrainerState, now: float) -> str:
        done, seconds = state.global_step - self._first, max(1e-9, now - self._begun)
        parts = [f"{self.stage}: step {state.global_step:,} of {state.max_steps:,}"]
        parts += [f"{name} {value:.4g}" for name, value in self._losses.items()]
        left = state.max_steps - state.global_step
        if done:
            parts.append(f"{done / seconds:.3g} steps/s")
            parts += [f"{_duration(left * seconds / done)} left"] if left > 0 else []
        return ", ".join(parts)

    def _write(self, line: str, is_last: bool = False) -> None:
        if not self._is_drawn:
            sys.stderr.write(line + "\n")
        else:
            sys.stderr.write("\r" + line.ljust(self._width) + ("\n" if is_last else ""))
            self._width = len(line)
        sys.stderr.flush()


@contextlib.contextmanager
def without_foreign_bars() -> Iterator[None]:
    """Keeps transformers from drawing bars of its own, e.g. for writing a checkpoint."""
    was_on = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_on:
            transformers_logging.enable_progress_bar()


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if seconds < 60:
        return f"{max(0.0, seconds):.0f} s"
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"
