"""Voices that generate nothing: replies that are given, and those of a listener that only answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from empatheia.records.dialogue import Dialogue
from empatheia.records.reply import Reply
from empatheia.voices.decoding import Decoding, DecodingSettings, FocusSettings
from empatheia.voices.voice import Draft, Request, Traits, Voice

GIVEN = "given"


class GivenVoice(Voice):
    """Gives the replies of each conversation, whatever is asked, and scores nothing.

    Args:
        replies: Id of a conversation to its replies.
    """

    name = place = GIVEN
    traits = Traits(takes_targets=True, unfocused="its replies are given, whatever they are about.")

    def __init__(self, replies: Mapping[str, Sequence[str]] | None = None) -> None:
        self.replies: Mapping[str, Sequence[str]] = replies or {}

    def ways(self, ways: Sequence[DecodingSettings]) -> list[DecodingSettings]:
        """One: nothing is written."""
        return list(ways[:1])

    def propose(
        self, requests: Sequence[Request], way: DecodingSettings, focus: FocusSettings | None
    ) -> list[list[Draft]]:
        """See :class:`Voice`."""
        return [[Draft(text, {"strategy": GIVEN}) for text in self.replies[one.dialogue.id]] for one in requests]


class Answering(Protocol):
    """A listener, as far as :class:`ListenerVoice` asks it."""

    @property
    def name(self) -> str:
        """For records."""
        ...

    @property
    def respond(self) -> Any:
        """``respond(dialogues, decoding=..., care=False)``: a reply to each."""
        ...


class ListenerVoice(Voice):
    """Any listener that only answers, e.g. one of ready replies.

    Args:
        listener: Who answers.
        shown: Not read.
    """

    def __init__(self, listener: Answering, shown: Sequence[str] | None = None) -> None:
        self.listener = listener
        self.name = self.place = listener.name
        self.host = getattr(listener, "host", "")

    def ways(self, ways: Sequence[DecodingSettings]) -> list[DecodingSettings]:
        """It knows one."""
        return list(ways[:1])

    def propose(
        self, requests: Sequence[Request], way: DecodingSettings, focus: FocusSettings | None
    ) -> list[list[Draft]]:
        """See :class:`Voice`."""
        dialogues: list[Dialogue] = [one.dialogue for one in requests]
        decoding: Decoding = way.decoding()
        replies: list[Reply] = self.listener.respond(dialogues, decoding=decoding, care=False)
        return [[Draft(reply.text, {"strategy": "own", **reply.decoding})] for reply in replies]
