"""A reply piece by piece, as its writer gives it out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import cast

from empatheia.records.analysis import Analysis
from empatheia.records.reply import Reply

Write = Callable[[threading.Event], Iterator[str]]
"""Gives the pieces of a text; stops soon after the event is set."""


class ReplyStream:
    """Iterate for pieces of text; :attr:`reply` is there when they end.

    Args:
        analysis: What was perceived; known before the first word.
        write: Gives the pieces; told by an event that the reader has left.
        finish: The whole text to a reply.
    """

    def __init__(self, analysis: Analysis, write: Write, finish: Callable[[str], Reply]) -> None:
        self.analysis = analysis
        self.reply: Reply | None = None
        self._write = write
        self._finish = finish

    def __iter__(self) -> Iterator[str]:
        stop = threading.Event()
        text = ""
        with closing(cast("Generator[str]", self._pieces(stop))) as pieces:
            try:
                for piece in pieces:
                    text += piece
                    yield piece
            finally:
                stop.set()
        self.reply = self._finish(text)

    def _pieces(self, stop: threading.Event) -> Iterator[str]:
        yield from self._write(stop)


def whole_reply(reply: Reply) -> ReplyStream:
    """A reply that is there already, as a stream of one piece."""
    return ReplyStream(reply.analysis, lambda _: iter([reply.text] if reply.text else []), lambda _: reply)
