"""Configuration of the models that find mechanisms of empathy; the models are in ``identifier``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from empatheia.errors import ConfigError
from empatheia.taxonomy import MECHANISMS
from empatheia_research.understanding.heads import RATE, Check, HeadsConfig, at_least

N_LEVELS = 3

NO_RATIONALE = ("whole", "ignored", "nothing")
PADDINGS = ("masked", "repo")


LevelWeights = Sequence[float] | Mapping[str, Sequence[float]]
"""Factor of each level, the same for every mechanism or by mechanism."""


class MechanismIdentifierConfig(HeadsConfig):
    """What the identifier reads and how it scores; the defaults are the published form without its faults.

    Attributes:
        mechanisms: One mechanism (as published) or several, which then share the encoders.
        tie_encoders: One encoder reads both texts; it learns from both, so ``freeze_seeker`` must be false.
        freeze_seeker: The seeker encoder stays as it was loaded.
        n_heads: Attention heads; a divisor of the encoder's width.
        max_pieces: Most pieces of each text, special ones included; what is longer is cut on the right.
        dropout: On attention output and heads, in [0, 1).
        attention_dropout: On the attention weights, in [0, 1).
        lowercase: Lower-case both texts, as the released code does.
        no_rationale: What the rationale head learns where the file names none: the ``whole`` response is the
            rationale (published), the response is ``ignored``, or ``nothing`` is one.
        padding: ``masked``, or ``repo``: every text is padded to ``max_pieces`` and the response attends to the
            seeker's padding too, as in the released code.
        level_weights: Factor of each level in the loss, the same for every mechanism or by mechanism; None = all 1.
            Levels are uneven (1 in 20 responses explores weakly), and macro F1 counts them alike.
    """

    model_type = "mechanism_identifier"
    mechanisms: Sequence[str] = MECHANISMS
    tie_encoders: bool = False
    freeze_seeker: bool = True
    n_heads: int = 1
    max_pieces: int = 64
    dropout: float = 0.1
    attention_dropout: float = 0.1
    lowercase: bool = True
    no_rationale: str = "whole"
    padding: str = "masked"
    level_weights: LevelWeights | None = None
    choices: ClassVar[Mapping[str, Sequence[str]]] = {"no_rationale": NO_RATIONALE, "padding": PADDINGS}
    checks: ClassVar[Mapping[str, Check]] = {
        "dropout": RATE,
        "attention_dropout": RATE,
        "n_heads": at_least(1),
        "max_pieces": at_least(4),
    }

    def __post_init__(self, labels: Sequence[str] | None = None, **kwargs: Any) -> None:
        names = self.mechanisms
        if isinstance(names, str) or not names or not set(names) <= set(MECHANISMS):
            raise ConfigError(
                f"mechanism_identifier: mechanisms is {names!r}; accepted: a list of {', '.join(MECHANISMS)}."
            )
        super().__post_init__(labels, **kwargs)
        if self.tie_encoders and self.freeze_seeker:
            raise ConfigError(
                "mechanism_identifier: tie_encoders=true with freeze_seeker=true; one encoder cannot both learn and"
                " stay fixed. Set freeze_seeker=false."
            )
        _check_weights(self.level_weights, names)
        self.mechanisms = [name for name in MECHANISMS if name in set(names)]
        self.level_weights = _plain_weights(self.level_weights)


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
