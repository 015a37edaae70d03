"""A reply word by word while ``generate()`` runs in a thread of its own.

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

from empatheia.dialogue import Reply, Understanding


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
    """Stops ``generate()`` when the reader has left."""

    def __init__(self) -> None:
        self.event = threading.Event()

    def __call__(self, input_ids: Tensor, scores: object, **kwargs: Any) -> Tensor:
        """All rows at once. Shape: ``(batch,)``, bool."""
        return torch.full((input_ids.shape[0],), self.event.is_set(), dtype=torch.bool, device=input_ids.device)


class ReplyStream:
    """Iterate for pieces of text; :attr:`reply` is there when they end.

    Args:
        understanding: What was perceived; known before the first word.
        start: Runs ``generate()`` with a streamer and a stopping criterion; returns when it is done.
        decode: Pieces so far to text.
        finish: The whole text to a reply.
        is_whole: Give the text as one piece at the end.
    """

    def __init__(
        self,
        understanding: Understanding,
        start: Callable[[PieceQueue, Cancelled], None],
        decode: Callable[[list[int]], str],
        finish: Callable[[str], Reply],
        is_whole: bool = False,
    ) -> None:
        self.understanding = understanding
        self.reply: Reply | None = None
        self._start = start
        self._decode = decode
        self._finish = finish
        self._is_whole = is_whole

    def __iter__(self) -> Iterator[str]:
        source, cancelled = PieceQueue(), Cancelled()
        thread = threading.Thread(target=self._run, args=(source, cancelled), daemon=True)
        thread.start()
        pieces: list[int] = []
        said = ""
        try:
            while (piece := source.pieces.get()) is not None:
                if isinstance(piece, BaseException):
                    raise piece
                pieces.append(piece)
                if self._is_whole:
                    continue
                stable = self._decode(pieces).rpartition(" ")[0].rstrip("\ufffd")  # half a character is not told
                if stable.startswith(said) and len(stable) > len(said):
                    yield stable[len(said) :]
                    said = stable
        finally:
            cancelled.event.set()
            thread.join()
        text = self._decode(pieces)
        if len(text) > len(said):
            yield text[len(said) :]
        self.reply = self._finish(text)

    def _run(self, source: PieceQueue, cancelled: Cancelled) -> None:
        try:
            self._start(source, cancelled)
        except BaseException as error:  # handed to the reader's thread, which raises it
            source.pieces.put(error)
        source.pieces.put(None)
