"""Given replies, scored by a responder in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from empatheia.voices.decoding import DecodingSettings, FocusSettings
from empatheia.voices.given import GIVEN, GivenVoice
from empatheia.voices.voice import Draft, Request
from empatheia_research.voices.responder import ResponderVoice
from empatheia_research.voices.responder_listener import ResponderListener


class ScoredVoice(ResponderVoice):
    """Gives the replies of each conversation, as :class:`~empatheia.voices.given.GivenVoice`, and scores any reply.

    Args:
        listener: Whose probabilities score.
    """

    def __init__(self, listener: ResponderListener) -> None:
        super().__init__(listener)
        self.name = self.place = GIVEN
        self.given = GivenVoice()

    @property
    def replies(self) -> Mapping[str, Sequence[str]]:
        """Id of a conversation to its replies."""
        return self.given.replies

    @replies.setter
    def replies(self, replies: Mapping[str, Sequence[str]]) -> None:
        self.given.replies = replies

    def ways(self, ways: Sequence[DecodingSettings]) -> list[DecodingSettings]:
        """One: nothing is written."""
        return self.given.ways(ways)

    def propose(
        self, requests: Sequence[Request], way: DecodingSettings, focus: FocusSettings | None
    ) -> list[list[Draft]]:
        """The replies, whatever is asked."""
        return self.given.propose(requests, way, focus)
