"""Answers on their way: what of a text can be sent already, whatever the route calls its events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from empatheia.records.analysis import Analysis
from empatheia.serve.asking import Asked
from empatheia.serve.replies import Said, cut_at
from empatheia.serve.service import Count, Service, said_of


async def written(service: Service, asked: Asked, index: int, count: Count) -> AsyncIterator[Analysis | str | Said]:
    """One choice: what was perceived, then texts to be sent, at the end the whole.

    Args:
        service: Who answers.
        asked: The question.
        index: Of the choice.
        count: Counts tokens.
    """
    writer = Writer(asked, index)
    async for part in service.stream(asked.entry, asked.conversation.dialogue, asked.wishes[index]):
        if part.analysis is not None:
            yield part.analysis
        elif part.reply is None:
            if text := writer.next(part.text):
                yield text
        else:
            said = said_of(part.reply, count, asked.stops, asked.most)
            if text := writer.rest(said):
                yield text
            yield said


class Writer:
    """What of a text on its way can be sent: a part that may begin a stop is held back.

    Args:
        asked: Says where the reply ends.
        index: Of the choice.

    Attributes:
        sent: What was.
    """

    def __init__(self, asked: Asked, index: int) -> None:
        self.sent = ""
        self._heard = ""
        self._stops: Sequence[str] = asked.stops
        self._waits = asked.entry.is_whole(asked.wishes[index]) or (asked.most is not None and asked.entry.is_upstream)
        self._hold = max((len(stop) for stop in asked.stops), default=1) - 1

    def next(self, text: str) -> str:
        """What can be sent after more text has come."""
        self._heard += text
        if self._waits:  # it is cut as a whole
            return ""
        whole, was_stopped = cut_at(self._heard, self._stops)
        ready = whole if was_stopped else whole[: len(whole) - self._hold]
        return self._send(ready[len(self.sent) :])

    def rest(self, said: Said) -> str:
        """What is left when the reply is there."""
        return self._send(said.text[len(self.sent) :] if said.text.startswith(self.sent) else "")

    def _send(self, text: str) -> str:
        self.sent += text
        return text
