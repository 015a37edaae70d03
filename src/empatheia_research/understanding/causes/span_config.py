"""Configuration of the models that find the words behind an emotion; the models are in ``spans``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from empatheia.errors import ConfigError
from empatheia_research.understanding.heads import Check, HeadsConfig

LEAST_CONTEXT = 64  # pieces of context every window has room for, however long the question

LENGTHS = {True: (512, 512, 200), False: (400, 400, 160)}
"""Pieces in a sequence, a question and an answer, with context and without (Poria et al.'s scripts)."""


class CauseSpansConfig(HeadsConfig):
    """What the reader sees and how it answers; the defaults are the published form.

    Attributes:
        form: ``paper`` (one question for each candidate turn) or ``joint`` (one pass for each target).
        context: Read the history of the target; without it the candidate is read alone.
        max_pieces: Most pieces in a sequence; None = 512, without context 400.
        max_question: Paper form: most pieces in a question; None = as ``max_pieces``. It always leaves 64 for context.
        max_answer: Most pieces in an answer; None = 200, without context 160.
        overlap: Paper form: pieces that neighbouring windows of a long context share, below 64. 0 as published: a
            stride of 512 never lets windows of 512 overlap.
        n_best: Paper form: how many starts and ends are combined.
        answers: Paper form: where answers may lie, anywhere in the ``context`` (as published) or in the ``evidence``
            turn the question names.
        decoding: ``argmax`` (largest start + end) or ``overlap`` (largest expected F1, joint form only). Training
            chooses the better one on validation data unless the recipe names one.
        null_threshold: An answer is given from this log-odds on, against CLS (paper) or "not causal" (joint).
        head_width: Inner width of the joint form's heads.
        max_distance: Joint form: distances between turn and target from here on share one embedding.
        dropout: Joint form: on the heads' inputs, in [0, 1).
        positive_weight: Joint form: weight of causal turns in the entailment loss relative to the others.

    Raises:
        ConfigError: A value is not accepted.
    """

    model_type = "cause_spans"
    form: str = "paper"
    context: bool = True
    max_pieces: Any = None
    max_question: Any = None
    max_answer: Any = None
    overlap: int = 0
    n_best: int = 20
    answers: str = "context"
    decoding: str = "argmax"
    null_threshold: float = 0.0
    head_width: int = 256
    max_distance: int = 15
    dropout: float = 0.1
    positive_weight: float = 1.0
    choices: ClassVar[Mapping[str, Sequence[str]]] = {"form": ("paper", "joint"), "answers": ("context", "evidence")}
    checks: ClassVar[Mapping[str, Check]] = {
        "overlap": (lambda pieces: 0 <= pieces < LEAST_CONTEXT, f"0 to {LEAST_CONTEXT - 1} pieces")
    }

    def __post_init__(self, labels: Sequence[str] | None = None, **kwargs: Any) -> None:
        super().__post_init__(labels, **kwargs)
        ways = ("argmax", "overlap") if self.form == "joint" else ("argmax",)
        if self.decoding not in ways:
            raise ConfigError(f"cause_spans: decoding is {self.decoding!r}; accepted: {', '.join(ways)}.")
        pieces, question, answer = LENGTHS[self.context]
        self.max_pieces = self.max_pieces or pieces
        self.max_question = self.max_question or question
        self.max_answer = self.max_answer or answer
