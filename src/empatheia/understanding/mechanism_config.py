"""Configuration of the models that find mechanisms of empathy; the models are in ``mechanisms``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from transformers import PreTrainedConfig

from empatheia.errors import ConfigError
from empatheia.taxonomy import MECHANISMS
from empatheia.understanding.encoders import encoder_settings

N_LEVELS = 3

NO_RATIONALE = ("whole", "ignored", "nothing")
PADDINGS = ("masked", "repo")


class MechanismIdentifierConfig(PreTrainedConfig):
    """What the identifier reads and how it scores; the defaults are the published form without its faults.

    Args:
        encoder_config: Configuration of both encoders as a dict with its ``model_type``; None only for the empty
            configuration that transformers builds internally.
        mechanisms: One mechanism (as published) or several, which then share the encoders.
        tie_encoders: One encoder reads both texts; it learns from both, so ``freeze_seeker`` must be false.
        freeze_seeker: The seeker encoder stays as it was loaded.
        n_heads: Attention heads; a divisor of the encoder's width.
        max_pieces: Most pieces of each text, special ones included; what is longer is cut on the right.
        dropout: On attention output and heads, in [0, 1).
        attention_dropout: On the attention weights, in [0, 1).
        encoder_dropout: Replaces every dropout rate in ``encoder_config``; None = as the encoder has them.
        lowercase: Lower-case both texts, as the released code does.
        no_rationale: What the rationale head learns where the file names none: the ``whole`` response is the
            rationale (published), the response is ``ignored``, or ``nothing`` is one.
        padding: ``masked``, or ``repo``: every text is padded to ``max_pieces`` and the response attends to the
            seeker's padding too, as in the released code.
        level_weights: Factor of each level in the loss, the same for every mechanism or by mechanism; None = all 1.
            Levels are uneven (1 in 20 responses explores weakly), and macro F1 counts them alike.
    """

    model_type = "mechanism_identifier"

    def __init__(
        self,
        encoder_config: dict[str, Any] | PreTrainedConfig | None = None,
        mechanisms: Sequence[str] = MECHANISMS,
        tie_encoders: bool = False,
        freeze_seeker: bool = True,
        n_heads: int = 1,
        max_pieces: int = 64,
        dropout: float = 0.1,
        attention_dropout: float = 0.1,
        encoder_dropout: float | None = None,
        lowercase: bool = True,
        no_rationale: str = "whole",
        padding: str = "masked",
        level_weights: Sequence[float] | Mapping[str, Sequence[float]] | None = None,
        **kwargs: Any,
    ) -> None:
        for name, value, accepted in (
            ("no_rationale", no_rationale, NO_RATIONALE),
            ("padding", padding, PADDINGS),
        ):
            if value not in accepted:
                raise ConfigError(f"mechanism_identifier: {name} is {value!r}; accepted: {', '.join(accepted)}.")
        if isinstance(mechanisms, str) or not mechanisms or not set(mechanisms) <= set(MECHANISMS):
            raise ConfigError(
                f"mechanism_identifier: mechanisms is {mechanisms!r}; accepted: a list of {', '.join(MECHANISMS)}."
            )
        if tie_encoders and freeze_seeker:
            raise ConfigError(
                "mechanism_identifier: tie_encoders=true with freeze_seeker=true; one encoder cannot both learn and"
                " stay fixed. Set freeze_seeker=false."
            )
        for name, rate in (("dropout", dropout), ("attention_dropout", attention_dropout)):
            if not 0 <= rate < 1:
                raise ConfigError(f"mechanism_identifier: {name} is {rate}; accepted: from 0 to below 1.")
        if n_heads < 1:
            raise ConfigError(f"mechanism_identifier: n_heads is {n_heads}; accepted: 1 or more.")
        if max_pieces < 4:
            raise ConfigError(f"mechanism_identifier: max_pieces is {max_pieces}; accepted: 4 or more.")
        rows = level_weights.items() if isinstance(level_weights, Mapping) else [("", level_weights or (1,) * N_LEVELS)]
        for name, row in rows:
            if (name and name not in mechanisms) or len(row) != N_LEVELS or min(row) < 0:
                raise ConfigError(
                    f"mechanism_identifier: level_weights is {level_weights!r}; accepted: {N_LEVELS} numbers from 0, or"
                    f" such a list by mechanism ({', '.join(mechanisms)})."
                )
        self.encoder_config = None if encoder_config is None else encoder_settings(encoder_config, encoder_dropout)
        self.encoder_dropout = encoder_dropout
        self.mechanisms = [name for name in MECHANISMS if name in set(mechanisms)]
        self.tie_encoders = tie_encoders
        self.freeze_seeker = freeze_seeker
        self.n_heads = n_heads
        self.max_pieces = max_pieces
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.lowercase = lowercase
        self.no_rationale = no_rationale
        self.padding = padding
        self.level_weights: list[float] | dict[str, list[float]] | None
        if isinstance(level_weights, Mapping):
            self.level_weights = {name: [float(w) for w in row] for name, row in level_weights.items()}
        else:
            self.level_weights = None if level_weights is None else [float(w) for w in level_weights]
        super().__init__(**kwargs)
