"""A conversation with a listener: it remembers the turns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from empatheia.care.checking import Care
from empatheia.care.guard import ReplyPieces
from empatheia.records.analysis import Analysis
from empatheia.records.dialogue import Dialogue, Turn
from empatheia.records.reply import Reply
from empatheia.voices.decoding import Decoding


class Answers(Protocol):
    """What a conversation asks of the listener that answers."""

    @property
    def name(self) -> str:
        """For people."""
        ...

    def respond(self, item: Dialogue, /, *, decoding: Decoding | None, care: Care | bool) -> Reply:
        """One reply to a conversation that ends with the speaker."""
        ...

    def stream(self, item: Dialogue, /, *, decoding: Decoding | None, care: Care | bool) -> ReplyPieces:
        """The same reply piece by piece."""
        ...


class Conversation:
    """Turns so far and the listener that answers them.

    Args:
        listener: Who answers.
        decoding: How replies are chosen.
        dialogue: A conversation to go on with; it must end with a listener turn, or be empty.
        care: As for :meth:`Listener.respond`.
    """

    def __init__(
        self, listener: Answers, decoding: Decoding | None, dialogue: Dialogue | None = None, care: Care | bool = True
    ) -> None:
        self.listener = listener
        self.decoding = decoding
        self.care = care
        self.dialogue = dialogue if dialogue is not None else Dialogue("conversation", ())

    def __repr__(self) -> str:
        turns = self.dialogue.turns
        last = f", the last {turns[-1].text[:60]!r}" if turns else ""
        return f"{type(self).__name__}(with {self.listener.name!r}, {len(turns)} turns{last})"

    def say(self, text: str) -> Reply:
        """Adds what the speaker says and the listener's reply; a text that is refused changes nothing."""
        reply = self.listener.respond(self._with(text), decoding=self.decoding, care=self.care)
        self._remember(text, reply.text)
        return reply

    def stream(self, text: str) -> ConversationStream:
        """As :meth:`say`, piece by piece: iterate over the result; the turns are added as far as it is read."""
        return ConversationStream(
            self, text, self.listener.stream(self._with(text), decoding=self.decoding, care=self.care)
        )

    def reset(self) -> None:
        """Forgets all turns."""
        self.dialogue = Dialogue(self.dialogue.id, ())

    def _with(self, text: str) -> Dialogue:
        return Dialogue(self.dialogue.id, (*self.dialogue.turns, Turn("speaker", text)))

    def _remember(self, text: str, answer: str) -> None:
        turns = (*self.dialogue.turns, Turn("speaker", text), Turn("listener", answer))
        self.dialogue = Dialogue(self.dialogue.id, turns)


class ConversationStream:
    """A reply on its way; remembers both turns when it ends or is left."""

    def __init__(self, conversation: Conversation, text: str, stream: ReplyPieces) -> None:
        self._conversation = conversation
        self._text = text
        self._stream = stream

    @property
    def analysis(self) -> Analysis:
        """What was perceived; there before the first word."""
        return self._stream.analysis

    @property
    def reply(self) -> Reply | None:
        """The whole reply once the stream has ended, else None."""
        return getattr(self._stream, "reply", None)

    def __iter__(self) -> Iterator[str]:
        said = ""
        try:
            for piece in self._stream:
                said += piece
                yield piece
        finally:
            if said.strip():
                self._conversation._remember(self._text, self.reply.text if self.reply else said.strip())
