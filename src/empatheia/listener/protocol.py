"""What a listener is: whatever analyses a conversation, answers it, and goes on with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, overload

from empatheia.care.checking import Care
from empatheia.care.guard import ReplyPieces
from empatheia.listener.conversation import Conversation
from empatheia.listener.progress import Told
from empatheia.records.analysis import Analysis
from empatheia.records.dialogue import Dialogue
from empatheia.records.reply import Reply
from empatheia.resources.manifest import Manifest
from empatheia.voices.decoding import Decoding

Input = str | Dialogue
Inputs = Sequence[Input]


class AnyListener(Protocol):
    """What is asked of any listener: a responder, a language model, ready replies, or five steps.

    Attributes:
        manifest: System, licence, and what else its folder says.
    """

    manifest: Manifest

    @property
    def name(self) -> str:
        """For records."""
        ...

    @overload
    def analyze(self, item: Input, batch_size: int = ..., progress: Told = ...) -> Analysis: ...

    @overload
    def analyze(self, item: Inputs, batch_size: int = ..., progress: Told = ...) -> list[Analysis]: ...

    def analyze(self, item: Input | Inputs, batch_size: int = 1, progress: Told = None) -> Analysis | list[Analysis]:
        """What the speaker feels and which words caused it; one analysis, or a list in the order of the inputs."""
        ...

    @overload
    def respond(
        self,
        item: Input,
        *,
        decoding: Decoding | None = ...,
        care: Care | bool = ...,
        **settings: Any,
    ) -> Reply: ...

    @overload
    def respond(
        self,
        item: Inputs,
        *,
        decoding: Decoding | None = ...,
        care: Care | bool = ...,
        **settings: Any,
    ) -> list[Reply]: ...

    def respond(
        self,
        item: Input | Inputs,
        *,
        decoding: Decoding | None = None,
        care: Care | bool = True,
        **settings: Any,
    ) -> Reply | list[Reply]:
        """One reply, or a list in the order of the inputs."""
        ...

    @property
    def stream(self) -> Callable[..., ReplyPieces]:
        """``stream(item, *, decoding=None, care=True, **settings)``: one reply, piece by piece."""
        ...

    def converse(
        self,
        dialogue: Dialogue | None = None,
        *,
        decoding: Decoding | None = None,
        care: Care | bool = True,
        **settings: Any,
    ) -> Conversation:
        """Begins a conversation that remembers its turns."""
        ...
