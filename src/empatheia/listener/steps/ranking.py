"""Replies of anybody's, weighed as a listener of five steps weighs its own candidates.

>>> Ranker().rank("My dog ran away.", ["Oh no, where did you lose your dog?", "Great!"]).candidates  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from empatheia.checkpoints.catalogue import SMALL
from empatheia.dialogue import Candidate, Explanation
from empatheia.errors import DataError
from empatheia.listener.listener import Listener
from empatheia.listener.protocol import Input
from empatheia.listener.steps.express import reply_key
from empatheia.listener.steps.focused import FocusedListener
from empatheia.listener.steps.responders import OwnVoice
from empatheia.listener.steps.settings import DecodingSettings, FocusSettings
from empatheia.listener.steps.steering import Steering
from empatheia.listener.steps.voices import Asked, Voice, Written

NAME = "given"


class Ranker:
    """Weighs given replies by every term that can be computed; see docs/howto/listener.md.

    Args:
        scorer: Whose probabilities are the terms ``likelihood`` and ``listener``; None = the small bundled responder.
    """

    def __init__(self, scorer: Listener | None = None) -> None:
        self._voice = _GivenVoice(scorer or Listener.load(SMALL))
        self._listener = FocusedListener(voices=[self._voice])

    def rank(self, item: Input, replies: Sequence[str], steering: Steering | None = None) -> Explanation:
        """What is felt, what a reply should be about, and the replies with their terms, best first.

        Of replies that differ in case and blanks only, each has the terms of the first. For one thread at a time.

        Args:
            item: A text or a conversation that ends with the speaker.
            replies: At least one, none blank.
            steering: What the caller decides; its emotion, intent and focus words change the terms.

        Raises:
            DataError: A reply is blank, there is none, or the conversation cannot be read.
        """
        if not replies:
            raise DataError("there is no reply to rank; give at least one.")
        for number, text in enumerate(replies, 1):
            if not text.strip():
                raise DataError(f"reply {number} of {len(replies)} is blank; give a text.")
        self._voice.replies = tuple(replies)
        why = self._listener.respond(item, steering=steering or Steering(), explain=True).explanation
        assert why is not None  # it was asked for
        found = {reply_key(one.text): one for one in why.candidates}
        ranked = [replace(found[reply_key(text)], text=text, also=()) for text in replies]
        return replace(why, candidates=tuple(sorted(ranked, key=_minus_score)))


class _GivenVoice(OwnVoice):
    """Says what it is given, and weighs it by its own probabilities."""

    def __init__(self, listener: Listener) -> None:
        super().__init__(listener)
        self.name = self.place = NAME
        self.replies: tuple[str, ...] = ()

    def ways(self, ways: Sequence[DecodingSettings]) -> list[DecodingSettings]:
        """One: nothing is written."""
        return list(ways[:1])

    def speak(self, asked: Sequence[Asked], way: DecodingSettings, focus: FocusSettings | None) -> list[list[Written]]:
        """The replies, whatever is asked."""
        facts: dict[str, Any] = {"strategy": NAME}
        return [[(text, facts) for text in self.replies] for _ in asked]


class GivenReplies(Voice):
    """Says the replies of each conversation, whatever is asked, and weighs nothing.

    Attributes:
        replies: Id of a conversation to its replies.
    """

    name = place = NAME

    def __init__(self) -> None:
        self.replies: Mapping[str, Sequence[str]] = {}

    def ways(self, ways: Sequence[DecodingSettings]) -> list[DecodingSettings]:
        """One: nothing is written."""
        return list(ways[:1])

    def speak(self, asked: Sequence[Asked], way: DecodingSettings, focus: FocusSettings | None) -> list[list[Written]]:
        """See :class:`Voice`."""
        return [[(text, {"strategy": NAME}) for text in self.replies[one.dialogue.id]] for one in asked]


def _minus_score(one: Candidate) -> float:
    return -one.score
