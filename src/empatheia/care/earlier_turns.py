"""What a conversation adds to its newest turn: the listener's own question answered, and what earlier turns leave."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from empatheia.care.normalising import tokens_of
from empatheia.care.questions import read_answer
from empatheia.records.danger import About, Kind, Level, graver
from empatheia.records.dialogue import Turn

DECAY = 0.8
"""Left of an earlier turn's weight at each speaker turn after it."""
CARRIED_CRISIS, CARRIED_CONCERN = 0.6, 0.3
"""Down to which weight an earlier crisis stays one, and down to which anything earlier is a concern."""
_WEIGHTS = {"none": 0.0, "concern": 0.5, "crisis": 1.0}
_SAFE_NOW = re.compile(
    r" (?:i am|feel|feeling|am) (?:\S+ ){0,2}(?:safe|safer|better)(?: |$)| (?:called|phoned|rang|with) (?:\S+ ){0,2}"
    r"(?:helpline|doctor|sister|friend|mother|father|brother|hospital|ambulance)(?= |$)"
)


@dataclass(frozen=True, slots=True)
class TurnJudgement:
    """What one text says by itself.

    Attributes:
        level: How grave.
        about: Whose danger.
        kinds: Of what kind.
        spans: Offsets, start and behind the end.
        reasons: In words.
        score: Highest probability of a risk among its windows.
        crisis: Highest probability of a crisis.
        denies: It answers a question about danger with a plain no.
        has_lines: A line of the lexicon or an answer flags it, not the classifier alone.
    """

    level: Level
    about: About
    kinds: tuple[Kind, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()
    reasons: tuple[str, ...] = ()
    score: float = 0.0
    crisis: float = 0.0
    denies: bool = False
    has_lines: bool = False


@dataclass(frozen=True, slots=True)
class Carried:
    """What an earlier turn leaves behind: a judgement of it, and where its words stand (turn, start, end)."""

    level: Level
    about: About
    kinds: tuple[Kind, ...]
    reasons: tuple[str, ...]
    places: tuple[tuple[int, int, int], ...]


def carry(earlier: Sequence[tuple[int, TurnJudgement]]) -> Carried | None:
    """What earlier turns leave behind, each the less the longer ago."""
    best: tuple[float, int, int, TurnJudgement] | None = None
    for age, (place, judged) in enumerate(reversed(earlier), 1):
        weight = _WEIGHTS[judged.level] * DECAY**age
        if judged.level != "none" and (best is None or weight > best[0]):
            best = (weight, age, place, judged)
    if best is None or best[0] < CARRIED_CONCERN:
        return None
    weight, age, place, judged = best
    level: Level = "crisis" if weight >= CARRIED_CRISIS else "concern"
    ago = "one speaker turn" if age == 1 else f"{age} speaker turns"
    reasons = tuple(f"{reason} ({ago} ago)" for reason in judged.reasons)
    return Carried(level, judged.about, judged.kinds, reasons, tuple((place, s, e) for s, e in judged.spans))


def answered(judged: TurnJudgement, turns: Sequence[Turn], place: int) -> TurnJudgement:
    """A turn's judgement with the listener's question in front of it.

    Args:
        judged: Of the turn by itself.
        turns: Of the conversation.
        place: Of the turn.
    """
    if not place or turns[place - 1].role != "listener":
        return judged
    answer = read_answer(turns[place - 1].text, turns[place].text)
    if answer is None:
        return judged
    if answer.is_denial:
        return replace(judged, denies=True)
    level, kind, why = answer.level, answer.kind, answer.reason
    kinds: tuple[Kind, ...] = judged.kinds if kind in judged.kinds else (*judged.kinds, kind)
    return replace(
        judged,
        level=graver(level, judged.level),
        about="other" if kind == "third_party" else "self",
        kinds=kinds,
        spans=judged.spans or ((0, len(turns[place].text)),),
        reasons=(why, *judged.reasons),
        has_lines=True,
    )


def is_safe_now(text: str) -> bool:
    """Whether somebody says that they are safe, or with somebody.

    >>> is_safe_now("I called my sister, I feel better.")
    True
    """
    return bool(_SAFE_NOW.search(_joined(text)))


def _joined(text: str) -> str:
    return "".join(" " + token.text for token in tokens_of(text[:400]))
