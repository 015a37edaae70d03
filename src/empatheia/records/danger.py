"""What :func:`~empatheia.care.assess` answers: how grave, about whom, of what kind, where it says so, and why.

>>> Assessment("none", "unclear").is_flagged
False
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

from empatheia.errors import DataError
from empatheia.reading import Json
from empatheia.records.dialogue import Span, Turn, span_dict
from empatheia.registry import nearest

Level = Literal["none", "concern", "crisis"]
About = Literal["self", "other", "past", "fiction", "unclear"]
Kind = Literal[
    "ideation",
    "intent",
    "means",
    "self_injury",
    "hopelessness",
    "farewell",
    "third_party",
    "abuse",
    "emergency",
    "eating_disorder",
]
LEVELS: tuple[Level, ...] = get_args(Level)
"""From nothing to the gravest: the order compares."""
ABOUT: tuple[About, ...] = get_args(About)
"""Whose danger it is."""
KINDS: tuple[Kind, ...] = get_args(Kind)
"""Of what kind; ``third_party`` goes beside another one, ``abuse`` is violence of any sort, ``emergency`` medical."""


def graver(one: Level, other: Level) -> Level:
    """The graver of two levels.

    >>> graver("none", "concern")
    'concern'
    """
    return one if LEVELS.index(one) >= LEVELS.index(other) else other


def check_name(value: object, known: Sequence[str], what: str) -> str:
    """The name itself.

    Raises:
        DataError: It is none of ``known``; names the nearest.
    """
    if value not in known:
        raise DataError(f"{what} is {value!r}.{nearest(str(value), list(known))} Accepted: {', '.join(known)}.")
    return str(value)


@dataclass(frozen=True, slots=True)
class Assessment:
    """How grave what a speaker says is.

    Attributes:
        level: ``crisis``: act now; ``concern``: ask gently; ``none``.
        about: Whose danger it is; ``unclear`` where nothing is flagged, too.
        kinds: Of what kind, the surest first.
        spans: Words that say so, as offsets into ``turns`` as they were written.
        reasons: In words, for whoever reviews it.
        score: Probability of a risk by the classifier, in [0, 1]; 1 where the detector failed.
        turns: The turns that spans index.
        uncertain: Why the answer deserves little trust, e.g. another language.
        failed: The detector raised: nothing is known, so the safe reply is due.
        worsened: It is graver than at the speaker's turn before.
        is_suspicion: A concern that the classifier alone finds, and not surely: a softer question is asked.
    """

    level: Level
    about: About
    kinds: tuple[Kind, ...] = ()
    spans: tuple[Span, ...] = ()
    reasons: tuple[str, ...] = ()
    score: float = 0.0
    turns: tuple[Turn, ...] = ()
    uncertain: tuple[str, ...] = ()
    failed: bool = False
    worsened: bool = False
    is_suspicion: bool = False

    @property
    def is_flagged(self) -> bool:
        """Whether anything is to be done."""
        return self.level != "none"

    @property
    def is_crisis(self) -> bool:
        """Whether to act now."""
        return self.level == "crisis"

    def to_dict(self) -> dict[str, Json]:
        """Plain JSON-ready data; each span carries its text."""
        return {
            "level": self.level,
            "about": self.about,
            "kinds": list(self.kinds),
            "spans": [span_dict(span, self.turns) for span in self.spans],
            "reasons": list(self.reasons),
            "score": round(self.score, 4),
            "uncertain": list(self.uncertain),
            "failed": self.failed,
            "worsened": self.worsened,
            "is_suspicion": self.is_suspicion,
        }


class Assessor(Protocol):
    """Whoever says how grave a conversation is, e.g. :class:`~empatheia.care.Detector`."""

    def assess(self, item: object) -> Assessment:
        """How grave a text or a conversation is at its last speaker turn."""
        ...
