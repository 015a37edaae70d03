"""A text word by word while ``generate()`` runs in a thread of its own.

A word is given out when the next one has begun, because what follows may still attach to it ("do" + "n't").
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from transformers import StoppingCriteria


class PieceQueue:
    """What ``generate(streamer=...)`` hands pieces to."""

    def __init__(self) -> None:
        self.pieces: queue.Queue[int | BaseException | None] = queue.Queue()

    def put(self, value: Tensor) -> None:
        """Takes new pieces. Shape: ``(1,)``, or ``(1, n)`` for what the decoder starts from."""
        for piece in value.flatten().tolist():
            self.pieces.put(piece)

    def end(self) -> None:
        """``generate()`` calls it last; the end is told by the thread itself, after errors."""


class Cancelled(StoppingCriteria):
    """Stops ``generate()`` when the reader has left.

    Args:
        event: Set when that is so.
    """

    def __init__(self, event: threading.Event) -> None:
        self.event = event

    def __call__(self, input_ids: Tensor, scores: object, **kwargs: Any) -> Tensor:
        """All rows at once. Shape: ``(batch,)``, bool."""
        return torch.full((input_ids.shape[0],), self.event.is_set(), dtype=torch.bool, device=input_ids.device)


class Generation:
    """Calls ``generate()`` and gives its text out in pieces.

    Args:
        start: Runs ``generate()`` with a streamer and a stopping criterion; returns when it is done.
        decode: Pieces so far to text.
        is_whole: Give the text as one piece at the end.

    Attributes:
        text: All of it, once the pieces have ended.
    """

    def __init__(
        self,
        start: Callable[[PieceQueue, Cancelled], None],
        decode: Callable[[list[int]], str],
        is_whole: bool = False,
    ) -> None:
        self.text = ""
        self._start = start
        self._decode = decode
        self._is_whole = is_whole

    def __call__(self, stop: threading.Event) -> Iterator[str]:
        """Pieces of text; ends early, and ``generate()`` with it, once ``stop`` is set."""
        source = PieceQueue()
        thread = threading.Thread(target=self._run, args=(source, Cancelled(stop)), daemon=True)
        thread.start()
        pieces: list[int] = []
        given = ""
        try:
            while (piece := source.pieces.get()) is not None:
                if isinstance(piece, BaseException):
                    raise piece
                pieces.append(piece)
                if self._is_whole:
                    continue
                stable = self._decode(pieces).rpartition(" ")[0].rstrip("\ufffd")  # never half a character
                if stable.startswith(given) and len(stable) > len(given):
                    yield stable[len(given) :]
                    given = stable
        finally:
            stop.set()
            thread.join()
        self.text = self._decode(pieces)
        if len(self.text) > len(given):
            yield self.text[len(given) :]

    def _run(self, source: PieceQueue, cancelled: Cancelled) -> None:
        try:
            self._start(source, cancelled)
        except BaseException as error:  # handed to the reader's thread, which raises it
            source.pieces.put(error)
        source.pieces.put(None)
