"""Configuration of the models that say which turns caused an emotion; the models are in ``entailment``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from empatheia.errors import ConfigError
from empatheia_research.understanding.heads import HeadsConfig

PAIR_MAX_PIECES = {True: 512, False: 300}  # with context, without (Poria et al.'s scripts)


class CauseEntailmentConfig(HeadsConfig):
    """What the classifier reads and how it scores; the defaults are the ``joint`` form.

    Attributes:
        form: ``joint`` (one pass for each target, a logit for each turn) or ``pair`` (as published).
        max_pieces: Most pieces in a sequence; None = 512 (300 for pairs without context). The name
            ``max_length`` is reserved: transformers refuses to save a configuration that has it.
        context: Read the history of the target. Without it each candidate is read with the target alone.
        separator: Pair form only: ``literal`` keeps the text ``<SEP>`` as the released data have it,
            ``native`` puts the encoder's own separator piece there.
        head_width: Inner width of the turn and span heads (joint form).
        max_distance: Distances between turn and target from here on share one embedding.
        dropout: On the heads' inputs, in [0, 1).
        spans: Add the head that marks causal pieces (joint form).
        span_supervision: Pieces the span loss sees: of gold-``causal`` turns, or of the whole ``history``.
        positive_weight: Weight of causal turns in the loss relative to the others.
        freeze_word_embeddings: Keep the encoder's word table fixed in training.
        threshold: A turn is called causal from this probability on.
    """

    model_type = "cause_entailment"
    form: str = "joint"
    max_pieces: Any = None
    context: bool = True
    separator: str = "literal"
    head_width: int = 256
    max_distance: int = 15
    dropout: float = 0.1
    spans: bool = False
    span_supervision: str = "causal"
    positive_weight: float = 1.0
    freeze_word_embeddings: bool = False
    threshold: float = 0.5
    choices: ClassVar[Mapping[str, Sequence[str]]] = {
        "form": ("joint", "pair"),
        "separator": ("literal", "native"),
        "span_supervision": ("causal", "history"),
    }

    def __post_init__(self, labels: Sequence[str] | None = None, **kwargs: Any) -> None:
        super().__post_init__(labels, **kwargs)
        if self.spans and self.form == "pair":
            raise ConfigError("cause_entailment: spans=true needs form=joint; the pair form has no span head.")
        self.max_pieces = self.max_pieces or (512 if self.form == "joint" else PAIR_MAX_PIECES[self.context])
