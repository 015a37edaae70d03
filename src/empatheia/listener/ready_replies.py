"""A retrieval system in the listener's place: it answers with the best of its ready replies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from empatheia.dialogue import Dialogue, Reply
from empatheia.errors import CheckpointError
from empatheia.listener.catalogue import DEFAULT
from empatheia.listener.listener import Input, Inputs, Listener, _decoding
from empatheia.listener.retriever import Retriever
from empatheia.listener.strategies import Decoding
from empatheia.listener.streaming import Cancelled, PieceQueue, ReplyStream


class ReadyReplies(Listener):
    """Answers as its retriever does; the settings of decoding have no say.

    Args:
        retriever: Who finds the reply.
    """

    def __init__(self, retriever: Retriever) -> None:
        self.retriever = retriever
        self.manifest = retriever.manifest
        self.network: Any = retriever.network

    @classmethod
    def load(cls, name_or_path: str | Path = DEFAULT, device: str = "cpu") -> ReadyReplies:
        """Loads a model folder of a retrieval system; see :meth:`Retriever.load`."""
        return cls(Retriever.load(name_or_path, device))

    def analyze(  # pyright: ignore
        self, item: Input | Inputs, batch_size: int = 64, progress: Callable[[int], None] | None = None
    ) -> Any:
        """As :meth:`Listener.analyze`, for a system that also says the emotion.

        Raises:
            CheckpointError: It only answers.
        """
        if self.network.emotion is None:
            raise CheckpointError(
                f"the model {self.name!r} ({self.manifest.system}) only answers: it has no emotion head."
                " Choose another from 'empatheia models list'."
            )
        replies = self.retriever.respond(item)
        if progress is not None:
            progress(len(replies) if isinstance(replies, list) else 1)
        return [reply.understanding for reply in replies] if isinstance(replies, list) else replies.understanding

    def respond(  # pyright: ignore
        self, item: Input | Sequence[Input], *, decoding: Decoding | None = None, **settings: Any
    ) -> Reply | list[Reply]:
        """The best candidate for a text or conversation, or for each of a list."""
        _decoding(decoding, settings)
        return self.retriever.respond(item if isinstance(item, str | Dialogue) else list(item))  # pyright: ignore

    def stream(self, item: Input, *, decoding: Decoding | None = None, **settings: Any) -> ReplyStream:
        """The reply as one piece."""
        reply = self.respond(item, decoding=decoding, **settings)
        assert isinstance(reply, Reply)  # of one input

        def start(source: PieceQueue, cancelled: Cancelled) -> None:
            """There is nothing left to do."""

        return ReplyStream(reply.understanding, start, lambda pieces: reply.text, lambda text: reply, is_whole=True)
