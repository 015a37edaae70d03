"""Configuration of the models that say which turns caused an emotion; the models are in ``entailment``."""

from __future__ import annotations

from typing import Any

from transformers import PreTrainedConfig

from empatheia.errors import ConfigError
from empatheia.reading import Json
from empatheia.understanding.encoders import encoder_settings

PAIR_MAX_PIECES = {True: 512, False: 300}  # with context, without (Poria et al.'s scripts)


class CauseEntailmentConfig(PreTrainedConfig):
    """What the classifier reads and how it scores; the defaults are the ``joint`` form.

    Args:
        encoder_config: The encoder's own configuration as a dict with its ``model_type``; None only for the
            empty configuration that transformers builds internally.
        form: ``joint`` (one pass for each target, a logit for each turn) or ``pair`` (as published).
        max_pieces: Most pieces in a sequence; None = 512 (300 for pairs without context). The name
            ``max_length`` is reserved: transformers refuses to save a configuration that has it.
        context: Read the history of the target. Without it each candidate is read with the target alone.
        separator: Pair form only: ``literal`` keeps the text ``<SEP>`` as the released data have it,
            ``native`` puts the encoder's own separator piece there.
        head_width: Inner width of the turn and span heads (joint form).
        max_distance: Distances between turn and target from here on share one embedding.
        dropout: On the heads' inputs, in [0, 1).
        encoder_dropout: Replaces every dropout rate in ``encoder_config``; None = as the encoder has them.
            On a CPU drawing the masks takes about a sixth of a step, so short trainings may set 0.
        spans: Add the head that marks causal pieces (joint form).
        span_supervision: Pieces the span loss sees: of gold-``causal`` turns, or of the whole ``history``.
        positive_weight: Weight of causal turns in the loss relative to the others.
        freeze_word_embeddings: Keep the encoder's word table fixed in training.
        threshold: A turn is called causal from this probability on.
    """

    model_type = "cause_entailment"

    def __init__(
        self,
        encoder_config: dict[str, Json] | PreTrainedConfig | None = None,
        form: str = "joint",
        max_pieces: int | None = None,
        context: bool = True,
        separator: str = "literal",
        head_width: int = 256,
        max_distance: int = 15,
        dropout: float = 0.1,
        encoder_dropout: float | None = None,
        spans: bool = False,
        span_supervision: str = "causal",
        positive_weight: float = 1.0,
        freeze_word_embeddings: bool = False,
        threshold: float = 0.5,
        **kwargs: Any,
    ) -> None:
        for name, value, accepted in (
            ("form", form, ("joint", "pair")),
            ("separator", separator, ("literal", "native")),
            ("span_supervision", span_supervision, ("causal", "history")),
        ):
            if value not in accepted:
                raise ConfigError(f"cause_entailment: {name} is {value!r}; accepted: {', '.join(accepted)}.")
        if spans and form == "pair":
            raise ConfigError("cause_entailment: spans=true needs form=joint; the pair form has no span head.")
        self.encoder_config = None if encoder_config is None else encoder_settings(encoder_config, encoder_dropout)
        self.encoder_dropout = encoder_dropout
        self.form = form
        self.max_pieces = max_pieces or (512 if form == "joint" else PAIR_MAX_PIECES[context])
        self.context = context
        self.separator = separator
        self.head_width = head_width
        self.max_distance = max_distance
        self.dropout = dropout
        self.spans = spans
        self.span_supervision = span_supervision
        self.positive_weight = positive_weight
        self.freeze_word_embeddings = freeze_word_embeddings
        self.threshold = threshold
        super().__init__(**kwargs)
