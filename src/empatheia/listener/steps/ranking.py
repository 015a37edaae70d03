"""Replies of anybody's, weighed as a listener of five steps weighs its own candidates.

>>> Ranker().rank("My dog ran away.", ["Oh no, where did you lose your dog?", "Great!"]).candidates  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from empatheia.errors import DataError
from empatheia.listener.listener import Listener
from empatheia.listener.protocol import Input
from empatheia.listener.steps.express import reply_key
from empatheia.listener.steps.focused import FocusedListener
from empatheia.listener.steps.steering import Steering
from empatheia.records.reply import Candidate, Reply
from empatheia.resources.catalogue import SMALL, is_here
from empatheia.text.inputs import as_dialogue
from empatheia.voices.given import GivenVoice
from empatheia.voices.voice import VOICES


class Ranker:
    """Weighs given replies by every term that can be computed; see docs/howto/listener.md.

    Args:
        scorer: A responder whose probabilities are the terms ``likelihood`` and ``listener``, e.g.
            ``Listener.load("gao2021-small")``; None = without one, these are None and ``missing`` says why.

    Usually made by :meth:`load`.
    """

    def __init__(self, scorer: Listener | None = None) -> None:
        self._voice: Any = GivenVoice() if scorer is None else VOICES.get("scored")(scorer)
        self._listener = FocusedListener(voices=[self._voice])

    @classmethod
    def load(cls) -> Ranker:
        """With the small responder as its scorer where that is on this machine, else without one."""
        return cls(Listener.load(SMALL) if is_here(SMALL) else None)

    def rank(self, item: Input, replies: Sequence[str], steering: Steering | None = None) -> Reply:
        """The best reply, with all as its candidates and what is felt, and should be answered, as its analysis.

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
        dialogue = as_dialogue(item)
        self._voice.replies = {dialogue.id: tuple(replies)}
        reply = self._listener.respond(dialogue, steering=steering or Steering(), explain=True, care=False)
        found = {reply_key(one.text): one for one in reply.candidates}
        ranked = [replace(found[reply_key(text)], text=text, also=()) for text in replies]
        candidates = tuple(sorted(ranked, key=_minus_score))
        return replace(reply, text=candidates[0].text, candidates=candidates)


def _minus_score(one: Candidate) -> float:
    return -one.score
