"""Configuration of the models that find the words behind an emotion; the models are in ``spans``."""

from __future__ import annotations

from typing import Any

from transformers import PreTrainedConfig

from empatheia.errors import ConfigError
from empatheia.reading import Json
from empatheia.understanding.encoders import encoder_settings

LEAST_CONTEXT = 64  # pieces of context every window has room for, however long the question

LENGTHS = {True: (512, 512, 200), False: (400, 400, 160)}
"""Pieces in a sequence, a question and an answer, with context and without (Poria et al.'s scripts)."""


class CauseSpansConfig(PreTrainedConfig):
    """What the reader sees and how it answers; the defaults are the published form.

    Args:
        encoder_config: The encoder's own configuration as a dict with its ``model_type``; None only for the empty
            configuration that transformers builds internally.
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
        encoder_dropout: Replaces every dropout rate in ``encoder_config``; None = as the encoder has them.
        positive_weight: Joint form: weight of causal turns in the entailment loss relative to the others.

    Raises:
        ConfigError: A value is not accepted.
    """

    model_type = "cause_spans"

    def __init__(
        self,
        encoder_config: dict[str, Json] | PreTrainedConfig | None = None,
        form: str = "paper",
        context: bool = True,
        max_pieces: int | None = None,
        max_question: int | None = None,
        max_answer: int | None = None,
        overlap: int = 0,
        n_best: int = 20,
        answers: str = "context",
        decoding: str = "argmax",
        null_threshold: float = 0.0,
        head_width: int = 256,
        max_distance: int = 15,
        dropout: float = 0.1,
        encoder_dropout: float | None = None,
        positive_weight: float = 1.0,
        **kwargs: Any,
    ) -> None:
        for name, value, accepted in (
            ("form", form, ("paper", "joint")),
            ("answers", answers, ("context", "evidence")),
            ("decoding", decoding, ("argmax", "overlap") if form == "joint" else ("argmax",)),
        ):
            if value not in accepted:
                raise ConfigError(f"cause_spans: {name} is {value!r}; accepted: {', '.join(accepted)}.")
        if not 0 <= overlap < LEAST_CONTEXT:
            raise ConfigError(f"cause_spans: overlap is {overlap}; accepted: 0 to {LEAST_CONTEXT - 1} pieces.")
        self.encoder_config = None if encoder_config is None else encoder_settings(encoder_config, encoder_dropout)
        self.encoder_dropout = encoder_dropout
        self.form = form
        self.context = context
        self.max_pieces = max_pieces or LENGTHS[context][0]
        self.max_question = max_question or LENGTHS[context][1]
        self.max_answer = max_answer or LENGTHS[context][2]
        self.overlap = overlap
        self.n_best = n_best
        self.answers = answers
        self.decoding = decoding
        self.null_threshold = null_threshold
        self.head_width = head_width
        self.max_distance = max_distance
        self.dropout = dropout
        self.positive_weight = positive_weight
        super().__init__(**kwargs)
