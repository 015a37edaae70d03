"""How a reply is written: the settings of decoding and of focus, for voices of every kind.

What they mean for a model in this process is said where it generates (:mod:`empatheia_research.decoding.strategies`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypedDict, get_args

from pydantic import Field, field_validator, model_validator

from empatheia.errors import DataError, DecodingError
from empatheia.reading import Json
from empatheia.registry import nearest
from empatheia.settings import Strict
from empatheia.taxonomy import canonical_emotion

Strategy = Literal["greedy", "beam", "sample"]
MAX_NEW_TOKENS_LIMIT = 1024
NO_REPEAT = 4
"""What ``no_repeat_ngram_size`` is for a language model where nothing was said: small ones go round in circles."""
ALPHA, BETA = 6.0, 0.9
"""How rational the speaker and the imagined listener are, as published."""
N_WORLDS = 3
"""The true text and two others, as in Kim et al.'s released code."""
Prior = Literal["L0", "uniform", "L1"]
PRIORS: tuple[str, ...] = get_args(Prior)

_WHOLE = {
    "num_beams": (1, 64),
    "top_k": (0, 10**6),
    "max_new_tokens": (1, MAX_NEW_TOKENS_LIMIT),
    "seed": (0, 2**63 - 1),
    "no_repeat_ngram_size": (0, 64),
}
"""Settings that are whole numbers, and the least and most of each."""


def _check_whole(name: str, value: object, lowest: int, highest: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
        raise DecodingError(f"{name} is {value!r}; accepted: a whole number from {lowest} to {highest}.")


def _check_share(name: str, value: object, highest: int) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= highest:
        raise DecodingError(f"{name} is {value!r}; accepted: above 0 up to {highest}; 1 leaves it out.")


class DecodingFields(TypedDict, total=False):
    """Fields of :class:`Decoding` as keywords, in its place."""

    strategy: Strategy
    num_beams: int
    top_k: int
    temperature: float
    max_new_tokens: int
    seed: int
    top_p: float
    no_repeat_ngram_size: int | None
    repetition_penalty: float
    label: str | None


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """How a reply is chosen.

    Args:
        strategy: ``greedy`` (the most probable piece at each step), ``beam`` or ``sample``.
        num_beams: Width of the beam; only ``beam`` reads it.
        top_k: Only the k most probable pieces are drawn from, 0 = all; only ``sample`` reads it.
        top_p: Only the most probable pieces that have this share of the probability together are drawn from, above 0 up
            to 1 = all; only ``sample`` reads it.
        temperature: Above 0; below 1 is more cautious; only ``sample`` reads it.
        max_new_tokens: Longest reply, in pieces.
        no_repeat_ngram_size: No run of so many pieces stands twice in a reply; 0 = no limit, None = :data:`NO_REPEAT`
            for language models in this process and no limit for others. What was said before does not count.
        repetition_penalty: Above 1, pieces that the reply already has become less probable; 1 = no penalty.
        seed: Of the noise; only ``sample`` reads it.
        label: One of the 41 emotions and intents the reply is to express, in place of the predicted one; None = the
            predicted. Only systems that take a label of the reply accept it (MEED2).

    Raises:
        DecodingError: A value is out of its range.
    """

    strategy: Strategy = "greedy"
    num_beams: int = 4
    top_k: int = 20
    temperature: float = 0.9
    max_new_tokens: int = 60
    seed: int = 0
    top_p: float = 1.0
    no_repeat_ngram_size: int | None = None
    repetition_penalty: float = 1.0
    label: str | None = None

    def __post_init__(self) -> None:
        names = list(get_args(Strategy))
        if self.strategy not in names:
            hint = nearest(str(self.strategy), names)
            raise DecodingError(f"unknown strategy {self.strategy!r}.{hint} Accepted: {', '.join(names)}.")
        for name, (lowest, highest) in _WHOLE.items():
            value = getattr(self, name)
            if not (name == "no_repeat_ngram_size" and value is None):
                _check_whole(name, value, lowest, highest)
        if self.label is not None:
            try:
                object.__setattr__(self, "label", canonical_emotion(str(self.label)))
            except DataError as problem:
                raise DecodingError(f"label: {problem}") from None
        if not isinstance(self.temperature, int | float) or not 0 < self.temperature <= 100:
            raise DecodingError(
                f"temperature is {self.temperature!r}; accepted: above 0 up to 100; no randomness: greedy."
            )
        _check_share("top_p", self.top_p, 1)
        _check_share("repetition_penalty", self.repetition_penalty, 10)

    def to_dict(self) -> dict[str, Json]:
        """The settings that had a say in the reply."""
        read = {"greedy": (), "beam": ("num_beams",), "sample": ("top_k", "temperature", "seed")}[self.strategy]
        settings = asdict(self)
        neutral = {"top_p": 1.0, "no_repeat_ngram_size": 0, "repetition_penalty": 1.0}
        chosen = [name for name in (*neutral, "label") if settings[name] not in (None, neutral.get(name))]
        if self.strategy != "sample" and "top_p" in chosen:
            chosen.remove("top_p")
        return {name: settings[name] for name in ("strategy", *read, "max_new_tokens", *chosen)}


def check_rationality(alpha: float, beta: float, prior: str, n_worlds: int) -> None:
    """Whether a speaker can be made of these.

    Args:
        alpha: How rational the speaker is; 0 = the model itself.
        beta: How rational the listener is; 0 = it never learns.
        prior: One of ``PRIORS``.
        n_worlds: The true context and its distractors.

    Raises:
        DecodingError: A value is out of range; says which, and what is accepted.
    """
    for name, value in (("alpha", alpha), ("beta", beta)):
        if not 0.0 <= value < float("inf"):
            hint = "0 is the model itself" if name == "alpha" else "0 is a listener who never learns"
            published = "6.0" if name == "alpha" else "0.9"
            raise DecodingError(f"{name} is {value}; accepted: 0 or more ({hint}; published: {published}).")
    if prior not in PRIORS:
        raise DecodingError(f"prior {prior!r} is unknown.{nearest(prior, list(PRIORS))} Accepted: {', '.join(PRIORS)}.")
    if n_worlds < 2:
        raise DecodingError(
            f"{n_worlds} world(s): the true context alone has nothing to be told from. Give at least one distractor, or"
            " answer without focus."
        )


def on_or_off(value: Any) -> Any:
    """YAML reads ``on`` and ``off`` as truth values."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else value


class DecodingSettings(Strict):
    """One way of writing; fields of :class:`Decoding` and how many replies."""

    strategy: Literal["greedy", "beam", "sample"] = Field("greedy", description="How pieces are chosen.")
    num_beams: int = Field(4, ge=1, le=64, description="Width of `beam`.")
    top_k: int = Field(20, ge=0, description="`sample`: of the k most probable pieces; 0 = all.")
    temperature: float = Field(0.9, gt=0, le=100, description="Of `sample`.")
    top_p: float = Field(1.0, gt=0, le=1, description="`sample`: of the most probable pieces with this share; 1 = all.")
    max_new_tokens: int = Field(60, ge=1, le=1024, description="Longest reply, in pieces.")
    no_repeat_ngram_size: int | None = Field(
        None,
        ge=0,
        le=64,
        description="No n-gram of so many pieces twice in a reply; 0 = no limit, None = 4 for language models in this"
        " process, else no limit.",
    )
    repetition_penalty: float = Field(
        1.0, gt=0, le=10, description="Above 1, pieces the reply already has become less probable."
    )
    seed: int = Field(0, ge=0, description="Of the first reply of `sample`; the next ones count on.")
    n: int = Field(1, ge=1, le=64, description="Replies: best beams, or samples; `greedy` has one.")

    @model_validator(mode="after")
    def _as_many_as_the_strategy_returns(self) -> DecodingSettings:
        if self.strategy == "greedy" and self.n > 1:
            raise ValueError(f"n is {self.n}, but greedy search returns one reply; use beam or sample")
        if self.strategy == "beam" and self.n > self.num_beams:
            raise ValueError(f"n is {self.n}, but beam search returns at most num_beams = {self.num_beams} replies")
        return self

    def decoding(self, number: int = 0) -> Decoding:
        """The ``number``-th reply's settings."""
        fields = self.model_dump(exclude={"n"})
        return Decoding(**{**fields, "seed": self.seed + number})


class FocusSettings(Strict):
    """The rational speaker of Kim et al. (2021); see :mod:`empatheia_research.decoding.focus`."""

    use: Literal["both", "on", "off"] = Field(
        "both", description="Focused and plain candidates, only focused ones, or none."
    )
    alpha: float = Field(ALPHA, ge=0, description="How rational the speaker is; 0 = the responder itself.")
    beta: float = Field(BETA, ge=0, description="How rational the imagined listener is; 0 = it never learns.")
    prior: Literal["L0", "uniform", "L1"] = Field("L0", description="How the imagined listener's belief goes on.")
    worlds: int = Field(N_WORLDS, ge=2, description="The true context and its distractors.")
    distractors: Literal["auto", "gee", "masked", "random", "given"] = Field(
        "auto", description="Of which kind; `auto` = `gee` if the model `words` is installed, else `random`."
    )
    model: str | None = Field(None, description="`masked`: masked language model; `gee`: another estimator.")
    texts: tuple[str, ...] = Field((), description="`given`: other texts for the newest speaker turn.")
    pool: Literal["auto", "empathetic_dialogues", "sample"] = Field(
        "auto", description="`random`: whose turns; `auto` = EmpatheticDialogues where it is here, else the sample."
    )
    seed: int = Field(0, ge=0, description="Of the distractors.")
    strict: bool = Field(
        False, description="If no distractor is possible, raise an error instead of answering without focus."
    )

    @field_validator("use", mode="before")
    @classmethod
    def _on_or_off(cls, value: Any) -> Any:
        return on_or_off(value)

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> FocusSettings:
        if (self.distractors == "given") != bool(self.texts):
            raise ValueError(f"distractors is {self.distractors!r} with {len(self.texts)} texts; texts go with `given`")
        if self.model is not None and self.distractors not in ("gee", "masked"):
            raise ValueError(f"distractors is {self.distractors!r} with a model; model goes with `gee` and `masked`")
        if self.distractors == "masked" and self.model is None:
            raise ValueError("distractors `masked` need model, a masked language model by folder or name")
        return self
