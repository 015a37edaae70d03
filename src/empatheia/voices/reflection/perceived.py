"""What the reflection responder is told of a conversation, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from empatheia.records.dialogue import Span

Sureness = Literal["name", "side", "none"]


@dataclass(frozen=True, slots=True)
class Perceived:
    """How the newest speaker turn was understood.

    Attributes:
        emotions: Calibrated probability of each of the 32 emotions; empty or all equal if nothing is known.
        sides: Calibrated probability of ``pleasant``, ``unpleasant`` and ``mixed``; empty = derived from ``emotions``.
        causes: Cause phrases in speaker turns, best first.
        words: Every word of the speaker's turns with its cause score.
    """

    emotions: Mapping[str, float] = field(default_factory=dict)
    sides: Mapping[str, float] = field(default_factory=dict)
    causes: tuple[Span, ...] = ()
    words: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Reflected:
    """One answer and what it was made of.

    Attributes:
        text: The answer.
        parts: Ids of the forms it was put together from, in order.
        said_back: What the speaker said, turned to "you", as it stands in ``text``; empty if nothing was said back.
        sureness: Whether a feeling was named (``name``), only pleasant or unpleasant known (``side``), or neither.
        moment: The kind of moment it answers: ``loss``, ``worry``, ``joy``, ``question``, ``short`` ...
    """

    text: str
    parts: tuple[str, ...]
    said_back: str
    sureness: Sureness
    moment: str
