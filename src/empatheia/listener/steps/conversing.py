"""A conversation with a listener of five steps: it remembers the turns, and the speaker's friend may steer it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, Unpack

from empatheia.care.checking import Care
from empatheia.care.guard import ReplyPieces
from empatheia.listener.conversation import Conversation, ConversationStream
from empatheia.listener.steps.steering import SteeredFields, Steering
from empatheia.records.dialogue import Dialogue
from empatheia.records.reply import Reply
from empatheia.voices.decoding import Decoding, DecodingFields


class Steered(Protocol):
    """A listener that may be steered, e.g. :class:`~empatheia.listener.steps.focused.FocusedListener`."""

    @property
    def name(self) -> str:
        """For people."""
        ...

    def respond(
        self,
        item: Dialogue,
        /,
        *,
        decoding: Decoding | None,
        steering: Steering = ...,
        explain: bool = ...,
        care: Care | bool,
        **settings: Unpack[SteeredFields],
    ) -> Reply:
        """One reply to a conversation that ends with the speaker."""
        ...

    def stream(
        self,
        item: Dialogue,
        /,
        *,
        decoding: Decoding | None,
        steering: Steering = ...,
        explain: bool = ...,
        care: Care | bool,
        **settings: Unpack[SteeredFields],
    ) -> ReplyPieces:
        """The same reply as one piece."""
        ...


class SteeredConversation(Conversation):
    """Turns so far, the listener that answers them, and what is decided from now on.

    Args:
        listener: A :class:`~empatheia.listener.steps.focused.FocusedListener`.
        decoding: One way of writing; None = those in its settings.
        dialogue: A conversation to go on with.
        steering: What is decided; may be set anew between turns.
        care: As for :meth:`Listener.respond`.
        **settings: Fields of :class:`Decoding` that change those ways, or are one, if ``strategy`` is among them.

    Attributes:
        last: The newest reply with its explanation; None before the first.
    """

    listener: Steered

    def __init__(
        self,
        listener: Steered,
        decoding: Decoding | None,
        dialogue: Dialogue | None = None,
        steering: Steering | None = None,
        care: Care | bool = True,
        **settings: Unpack[DecodingFields],
    ) -> None:
        super().__init__(listener, decoding, dialogue, care)
        self.steering = steering or Steering()
        self.settings = settings
        self.last: Reply | None = None

    def say(self, text: str) -> Reply:
        """Adds what the speaker says and the listener's reply; a text that is refused changes nothing."""
        reply = self.listener.respond(
            self._with(text),
            decoding=self.decoding,
            steering=self.steering,
            explain=True,
            care=self.care,
            **self.settings,
        )
        self._remember(text, reply.text)
        self.last = reply
        return reply

    def stream(self, text: str) -> ConversationStream:
        """As :meth:`say`; the reply comes as one piece."""
        stream = self.listener.stream(
            self._with(text),
            decoding=self.decoding,
            steering=self.steering,
            explain=True,
            care=self.care,
            **self.settings,
        )
        return _Remembering(self, text, stream)

    def reset(self) -> None:
        """Forgets all turns; what is decided stays."""
        super().reset()
        self.last = None


class _Remembering(ConversationStream):
    def __init__(self, conversation: SteeredConversation, text: str, stream: ReplyPieces) -> None:
        super().__init__(conversation, text, stream)
        self._steered = conversation

    def __iter__(self) -> Iterator[str]:
        yield from super().__iter__()
        if self.reply is not None:
            self._steered.last = self.reply
