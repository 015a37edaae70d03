"""The voice that says back what was perceived; see :mod:`empatheia.voices.reflection`."""

from __future__ import annotations

from collections.abc import Sequence

from empatheia.giving_way import give_way
from empatheia.voices.decoding import DecodingSettings, FocusSettings
from empatheia.voices.reflection import Perceived, reflect
from empatheia.voices.voice import Draft, Request, Traits, Voice

REFLECTION = "reflection"
"""The responder that says back what it perceived; it needs no weights."""
REFLECTIONS = 3
"""Candidates it gives."""


class ReflectionVoice(Voice):
    """Says back what was perceived; best first, :data:`REFLECTIONS` of each conversation."""

    name = place = REFLECTION
    traits = Traits(
        takes_targets=True,
        needs_no_model=True,
        unfocused="it gives no probabilities; it says back what holds the words in place of that.",
    )

    def ways(self, ways: Sequence[DecodingSettings]) -> list[DecodingSettings]:
        """It writes in one way, whichever is asked for."""
        return list(ways[:1])

    def propose(
        self, requests: Sequence[Request], way: DecodingSettings, focus: FocusSettings | None
    ) -> list[list[Draft]]:
        """See :class:`Voice`."""
        out: list[list[Draft]] = []
        for one in requests:
            give_way()
            newest = one.newest
            emotions = {} if newest.emotion is None else newest.emotion.probabilities
            perceived = Perceived(emotions, newest.sides, newest.causes, newest.words)
            found = reflect(one.dialogue.turns, perceived, REFLECTIONS, seed=way.seed)
            out.append(
                [
                    Draft(own.text, {"strategy": REFLECTION, "forms": list(own.parts), "sureness": own.sureness})
                    for own in found
                ]
            )
        return out
