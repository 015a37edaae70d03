"""Replies as a server handles them: how one is wished for, the parts it comes in, how it is cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from empatheia.listener import Steering
from empatheia.records.analysis import Analysis
from empatheia.records.reply import Reply

CARE = "care"
"""Who answers in the place of a model: the check for danger."""
TOOL_CALLS = "tool_calls"
"""Where a reply's settings hold what a language model asks its caller to do."""


@dataclass(frozen=True, slots=True)
class Wish:
    """How a reply is to be made; equal wishes can be answered together.

    Attributes:
        writing: Fields of :class:`~empatheia.listener.Decoding`, as pairs.
        steering: What the caller decides.
        explain: Whether candidates are wanted.
        request: Fields for a language model behind an endpoint, its messages among them, as JSON.
        guidance: What system messages say, for the same.
        plain: The answer where no person is to be answered, see :mod:`empatheia.serve.tasks`; None = one is.
    """

    writing: tuple[tuple[str, Any], ...] = ()
    steering: Steering = field(default_factory=Steering)
    explain: bool = False
    request: str = "{}"
    guidance: tuple[str, ...] = ()
    plain: str | None = None

    @property
    def in_steps(self) -> bool:
        """Whether it takes a listener of five steps: for candidates, or for what the caller decides."""
        return self.explain or self.steering != Steering()


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a reply that is on its way; one of the three is there.

    Attributes:
        analysis: What was perceived: the first part.
        text: The next words.
        reply: The whole: the last part.
    """

    analysis: Analysis | None = None
    text: str = ""
    reply: Reply | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """A reply as it is sent.

    Attributes:
        reply: As it was made.
        text: Cut as the request asks.
        finish: ``stop``, ``length``, or what a language model says.
    """

    reply: Reply
    text: str
    finish: str


def is_safe_reply(reply: Reply) -> bool:
    """Whether it tells of help: such a reply is sent whole."""
    care = reply.care or {}
    is_grave = care.get("level") in ("crisis", "concern")
    done = care.get("done")
    tells_of_help = isinstance(done, list) and ("preceded" in done or "followed" in done)
    return reply.model == CARE or is_grave or tells_of_help


def cut_at(text: str, stops: Sequence[str]) -> tuple[str, bool]:
    """The text before the first of the stops, and whether there was one.

    >>> cut_at("One. Two.", ["Two", "."])
    ('One', True)
    """
    places = [place for stop in stops if stop and (place := text.find(stop)) >= 0]
    return (text[: min(places)], True) if places else (text, False)
