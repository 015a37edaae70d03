"""Configuration of the models that find mechanisms of empathy; the models are in ``identifier``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from transformers import PreTrainedConfig

from empatheia.errors import ConfigError
from empatheia.reading import Json
from empatheia.taxonomy import MECHANISMS
from empatheia.understanding.encoders import encoder_settings

N_LEVELS = 3

NO_RATIONALE = ("whole", "ignored", "nothing")
PADDINGS = ("masked", "repo")


LevelWeights = Sequence[float] | Mapping[str, Sequence[float]]
"""Factor of each level, the same for every mechanism or by mechanism."""


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
        encoder_config: dict[str, Json] | PreTrainedConfig | None = None,
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
        level_weights: LevelWeights | None = None,
        **kwargs: Any,
    ) -> None:
        _check_choice("no_rationale", no_rationale, NO_RATIONALE)
        _check_choice("padding", padding, PADDINGS)
        if isinstance(mechanisms, str) or not mechanisms or not set(mechanisms) <= set(MECHANISMS):
            raise ConfigError(
                f"mechanism_identifier: mechanisms is {mechanisms!r}; accepted: a list of {', '.join(MECHANISMS)}."
            )
        if tie_encoders and freeze_seeker:
            raise ConfigError(
                "mechanism_identifier: tie_encoders=true with freeze_seeker=true; one encoder cannot both learn and"
                " stay fixed. Set freeze_seeker=false."
            )
        _check_rate("dropout", dropout)
        _check_rate("attention_dropout", attention_dropout)
        _check_least("n_heads", n_heads, 1)
        _check_least("max_pieces", max_pieces, 4)
        _check_weights(level_weights, mechanisms)
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
        self.level_weights = _plain_weights(level_weights)
        super().__init__(**kwargs)


def _check_choice(name: str, value: str, accepted: Sequence[str]) -> None:
    if value not in accepted:
        raise ConfigError(f"mechanism_identifier: {name} is {value!r}; accepted: {', '.join(accepted)}.")


def _check_rate(name: str, rate: float) -> None:
    if not 0 <= rate < 1:
        raise ConfigError(f"mechanism_identifier: {name} is {rate}; accepted: from 0 to below 1.")


def _check_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise ConfigError(f"mechanism_identifier: {name} is {value}; accepted: {least} or more.")


def _check_weights(weights: LevelWeights | None, mechanisms: Sequence[str]) -> None:
    rows = weights.items() if isinstance(weights, Mapping) else [("", weights or (1,) * N_LEVELS)]
    for name, row in rows:
        if (name and name not in mechanisms) or len(row) != N_LEVELS or min(row) < 0:
            raise ConfigError(
                f"mechanism_identifier: level_weights is {weights!r}; accepted: {N_LEVELS} numbers from 0, or"
                f" such a list by mechanism ({', '.join(mechanisms)})."
            )


def _plain_weights(weights: LevelWeights | None) -> list[float] | dict[str, list[float]] | None:
    """Weights as JSON has them."""
    if isinstance(weights, Mapping):
        return {name: [float(weight) for weight in row] for name, row in weights.items()}
    return None if weights is None else [float(weight) for weight in weights]
