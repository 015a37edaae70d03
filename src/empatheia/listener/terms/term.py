"""What candidates are ranked by: ``score = sum of weight * term`` over the terms that have what they need.

| term | value | range | needs |
|---|---|---|---|
| ``likelihood`` | mean log-probability of its pieces and end, by the scorer | nats, <= 0 | a local responder |
| ``listener`` | log belief in the true context after it, of a listener who hears it all | nats, <= 0 | distractors |
| ``coverage`` | share of the target words whose base form is in it | 0 to 1 | target words |
| ``knowledge`` | share of the inferred relations with a content word of theirs in it | 0 to 1 | inferences |
| ``intent`` | log-probability of the wanted intent given it | nats, <= 0 | model ``intent``, an intent |
| ``mechanism`` | expected level of EPITOME's mechanisms, mean over them | 0 to 2 | model ``mechanisms`` |
| ``side`` | log-probability that it feels as pleasant or unpleasant as the speaker does | nats, <= 0 | perception |
| ``information`` | what the conversation adds to the log-probability of a piece | nats | a local responder |
| ``contradiction`` | minus the share of its statements that say the opposite of the speaker's | -1 to 0 | nothing |
| ``diversity`` | minus the largest share of its word pairs that an earlier reply has | -1 to 0 | nothing |
| ``length`` | minus the share by which it is shorter or longer than the bounds | <= 0 | nothing |

A term without what it needs is None, counts 0, and ``missing`` says why. Values are rounded to four decimals, so that a
batch's last bits change no order. Ties go to the candidate that was written first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from empatheia.records.analysis import GIVEN, Analysis, TurnAnalysis
from empatheia.registry import Registry
from empatheia.voices.voice import Likelihood, Scorer

TERMS = Registry(
    "terms",
    {
        "likelihood": "empatheia.listener.terms.scored:LikelihoodTerm",
        "listener": "empatheia.listener.terms.scored:ListenerTerm",
        "coverage": "empatheia.listener.terms.wording:Coverage",
        "knowledge": "empatheia.listener.terms.wording:Knowledge",
        "intent": "empatheia.listener.terms.modelled:IntentTerm",
        "mechanism": "empatheia.listener.terms.modelled:MechanismTerm",
        "side": "empatheia.listener.terms.modelled:SideTerm",
        "information": "empatheia.listener.terms.scored:Information",
        "contradiction": "empatheia.listener.terms.statements:Contradiction",
        "diversity": "empatheia.listener.terms.wording:Diversity",
        "length": "empatheia.listener.terms.wording:Length",
    },
)
"""Name of a term to its class, in the order of records."""
DECIMALS = 4
LEAST = 1e-12
"""A probability below it is taken for it, before its logarithm."""
UNWEIGHTED = "its weight is 0."


class Reading(Protocol):
    """The steps that read a conversation, as far as terms ask them."""

    def component(self, part: Any) -> Any:
        """What answers a part of the analysis, or None."""
        ...

    def reason(self, part: str) -> str:
        """Why nothing answers it."""
        ...

    def sides_of(self, texts: Sequence[str]) -> list[Mapping[str, float]] | None:
        """How pleasant each text is to read; None where nothing says so."""
        ...


@dataclass(slots=True)
class Tools:
    """What terms may ask.

    Attributes:
        reading: The steps.
        scorer: A voice that gives probabilities; None = no term that needs them.
        min_words: Of a reply that is not too short.
        max_words: Of one that is not too long.
        lacking: Parts that were asked for and are not here, to the reason; filled by :meth:`part`.
    """

    reading: Reading
    scorer: Scorer | None = None
    min_words: int = 3
    max_words: int = 40
    lacking: dict[str, str] = field(default_factory=dict)

    def part(self, name: str) -> Any:
        """What answers a part of the analysis, or None."""
        component = self.reading.component(name)
        if component is None:
            self.lacking[name] = self.reading.reason(name)
        return component


@dataclass(frozen=True, slots=True)
class Case:
    """A conversation whose candidates are ranked.

    Attributes:
        analysis: What was found in it.
        weights: Name of a term to what it counts here.
        has_contrast: Whether there are distractors.
        n_candidates: How many are ranked.
    """

    analysis: Analysis
    weights: Mapping[str, float]
    has_contrast: bool
    n_candidates: int

    @property
    def newest(self) -> TurnAnalysis:
        """What is said of the turn that is answered."""
        return self.analysis.newest

    @property
    def intent(self) -> str:
        """That is wanted of the reply; "" if nothing named one."""
        return "" if self.newest.reaction is None else self.newest.reaction.label

    @property
    def is_intent_given(self) -> bool:
        """Whether the caller named the intent."""
        return self.newest.reaction is not None and self.newest.reaction.by == GIVEN


@dataclass(frozen=True, slots=True)
class Row:
    """A candidate of a case.

    Attributes:
        case: Its conversation.
        text: The reply.
        scored: By the scorer; None without one.
    """

    case: Case
    text: str
    scored: Likelihood | None = None

    @property
    def is_blank(self) -> bool:
        """Whether it has no word."""
        return not self.text.strip()


class RankingTerm(Protocol):
    """One of :data:`TERMS`. To be subclassed.

    Attributes:
        name: In records and settings.
        unit: Of its values.
        default: What it counts where the settings say nothing.
        example: A better and a worse reply to the conversation of the tests, which hold its sign.
    """

    name: ClassVar[str]
    unit: ClassVar[str]
    default: ClassVar[float]
    example: ClassVar[tuple[str, str]]

    def values(self, rows: Sequence[Row], tools: Tools) -> Sequence[float | None]:
        """Higher = better; None where a candidate has not what it takes. The same alone or among others."""
        ...

    def missing(self, case: Case, tools: Tools) -> str:
        """Why no candidate of a case has it, asked after :meth:`values`; "" = they have no word."""
        return ""


def all_terms() -> list[RankingTerm]:
    """Every term, in the order of records."""
    return [TERMS.get(name)() for name in TERMS.names()]


def total(terms: Mapping[str, float | None], weights: Mapping[str, float]) -> float:
    """The score: terms that are None count nothing."""
    return round(sum(weights[name] * value for name, value in terms.items() if value is not None), DECIMALS)


def rounded(value: float | None) -> float | None:
    """To four decimals, without a negative zero."""
    return None if value is None else round(value, DECIMALS) + 0.0


def placed(rows: Sequence[Row], chosen: Sequence[int], values: Sequence[float | None]) -> list[float | None]:
    """The values of the chosen rows in their places, None elsewhere."""
    found = dict(zip(chosen, values, strict=True))
    return [found.get(i) for i in range(len(rows))]
