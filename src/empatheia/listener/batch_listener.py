"""What listeners share that answer in batches: a responder with a decoder, a language model, ready replies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Unpack, overload

from empatheia.care.checking import Care
from empatheia.care.guard import guarded
from empatheia.errors import CheckpointError, DataError, DecodingError
from empatheia.listener.conversation import Conversation
from empatheia.listener.given import refuse
from empatheia.listener.listener import Listener
from empatheia.listener.protocol import Input, Inputs
from empatheia.listener.streaming import ReplyStream
from empatheia.records.analysis import Analysis
from empatheia.records.dialogue import Dialogue, Turn
from empatheia.records.reply import Reply
from empatheia.registry import nearest
from empatheia.resources.manifest import Manifest
from empatheia.text.inputs import ReadyInput, prepare
from empatheia.voices.decoding import Decoding, DecodingFields

INPUTS_PER_CHUNK = 4096
REPLIES_PER_BATCH = 64


class BatchListener(Listener, ABC):
    """Analyses and answers batches of conversations, as a reader cuts them.

    Attributes:
        reader: Conversations to what the model reads (``encode``, ``batches``, ``understand``, ``analyzes``).
        manifest: Of its folder.
    """

    reader: Any
    manifest: Manifest

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.manifest.system})"

    @property
    def name(self) -> str:
        """What the model calls itself."""
        return self.manifest.name

    @overload
    def analyze(self, item: Input, batch_size: int = ..., progress: Callable[[int], None] | None = ...) -> Analysis: ...

    @overload
    def analyze(
        self, item: Inputs, batch_size: int = ..., progress: Callable[[int], None] | None = ...
    ) -> list[Analysis]: ...

    def analyze(
        self, item: Input | Inputs, batch_size: int = 1, progress: Callable[[int], None] | None = None
    ) -> Analysis | list[Analysis]:
        """Says what the speaker feels and which words caused it.

        Args:
            item: A text (one speaker turn), a conversation ending with a speaker turn, or a list of these.
            batch_size: Most inputs that are read together. 1 = each by itself, so that its answer is the same to the
                last digit whatever is analysed beside it; 64 is two to three times as fast.
            progress: Called with the number of inputs just finished.

        Returns:
            One analysis, or a list in the order of the inputs.

        Raises:
            DataError: An input is empty or ends with a listener turn; in a list, the message has its number.
            CheckpointError: The model cannot analyse.
        """
        if not self.reader.analyzes:
            raise CheckpointError(
                f"the model {self.name!r} ({self.manifest.system}) only answers: it has no emotion head."
                " Choose another from 'empatheia models list'."
            )
        if isinstance(item, str | Dialogue):
            return self._understood([prepare(item)], 1, progress)[0]
        results: list[Analysis] = []
        for chunk in chunks(item):
            results += each_once(chunk, lambda new: self._understood(new, batch_size, progress), progress)
        return results

    @overload
    def respond(
        self,
        item: Input,
        *,
        decoding: Decoding | None = ...,
        care: Care | bool = ...,
        **settings: Unpack[DecodingFields],
    ) -> Reply: ...

    @overload
    def respond(
        self,
        item: Inputs,
        *,
        decoding: Decoding | None = ...,
        care: Care | bool = ...,
        **settings: Unpack[DecodingFields],
    ) -> list[Reply]: ...

    @guarded
    def respond(
        self, item: Input | Inputs, *, decoding: Decoding | None = None, **settings: Unpack[DecodingFields]
    ) -> Reply | list[Reply]:
        """Answers, behind the check of :mod:`empatheia.care`; a conversation gets the same reply alone or in a list.

        Args:
            item: As for :meth:`analyze`.
            decoding: How replies are chosen.
            **settings: Fields of :class:`Decoding` in its place: ``strategy``, ``num_beams``, ``top_k``,
                ``top_p``, ``temperature``, ``max_new_tokens``, ``no_repeat_ngram_size``,
                ``repetition_penalty``, ``seed``, ``label``. And ``care``: True, a
                :class:`~empatheia.care.Care`, or False = nobody checks for danger.

        Returns:
            One reply, or a list in the order of the inputs.

        Raises:
            DataError: As for :meth:`analyze`.
            DecodingError: A setting is unknown or out of range.
        """
        decoding = decoding_of(decoding, settings)
        if isinstance(item, str | Dialogue):
            return self._respond_batch(self.reader.encode([prepare(item)]), decoding)[0]
        results: list[Reply] = []
        for chunk in chunks(item):
            encoded = self.reader.encode(chunk)
            replies: dict[int, Reply] = {}
            for batch in self.reader.batches(encoded, REPLIES_PER_BATCH, self._batch_cost):
                replies.update(zip(batch, self._respond_batch([encoded[i] for i in batch], decoding), strict=True))
            results += [replies[i] for i in range(len(encoded))]
        return results

    def converse(
        self,
        dialogue: Dialogue | None = None,
        *,
        decoding: Decoding | None = None,
        care: Care | bool = True,
        **settings: Unpack[DecodingFields],
    ) -> Conversation:
        """Begins a conversation that remembers its turns.

        Args:
            dialogue: One to go on with.
            decoding: How replies are chosen.
            care: As for :meth:`respond`.
            **settings: Fields of :class:`Decoding` in its place.
        """
        return Conversation(self, decoding_of(decoding, settings), dialogue, care)

    @property
    def _batch_cost(self) -> int:
        """Of a batch of replies by itself, in pieces; for readers that cut batches by their pieces."""
        return 0

    def _understood(
        self, inputs: Sequence[ReadyInput], batch_size: int, progress: Callable[[int], None] | None
    ) -> list[Analysis]:
        return self.reader.understand(self.reader.encode(inputs), max(1, batch_size), progress)

    @abstractmethod
    def stream(
        self,
        item: Input,
        *,
        decoding: Decoding | None = None,
        care: Care | bool = True,
        **settings: Unpack[DecodingFields],
    ) -> ReplyStream:
        """One reply piece by piece: iterate over the result for pieces of text; ``reply`` is there at the end."""

    @abstractmethod
    def _respond_batch(self, inputs: Sequence[Any], decoding: Decoding) -> list[Reply]:
        """Replies to what ``reader.encode`` gave, in order."""


def decoding_of(decoding: Decoding | None, settings: DecodingFields) -> Decoding:
    """How to decode, given whole or by fields.

    Raises:
        DecodingError: A setting is unknown or out of range, or both are given.
    """
    known = list(Decoding.__dataclass_fields__)
    for name in settings:
        if name not in known:
            raise DecodingError(f"unknown setting {name!r}.{nearest(name, known)} Accepted: {', '.join(known)}.")
    if decoding is None:
        return Decoding(**settings)
    if settings:
        raise DecodingError(f"give decoding= or {', '.join(settings)}, not both.")
    return decoding


def each_once(
    inputs: Sequence[ReadyInput],
    read: Callable[[list[ReadyInput]], list[Analysis]],
    progress: Callable[[int], None] | None = None,
) -> list[Analysis]:
    """What is read of inputs, in order; of several with the same turns only the first is read.

    Args:
        inputs: Prepared.
        read: Inputs to what is understood of each.
        progress: Called with the number of those that need not be read.
    """
    first: dict[tuple[Turn, ...], ReadyInput] = {}
    for ready in inputs:
        first.setdefault(ready.turns, ready)
    if progress is not None and len(first) < len(inputs):
        progress(len(inputs) - len(first))
    found = dict(zip(first, read(list(first.values())), strict=True))
    return [_of(found[ready.turns], ready) for ready in inputs]


def _of(analysis: Analysis, ready: ReadyInput) -> Analysis:
    """The analysis of a conversation with the same turns as one of this."""
    if analysis.dialogue.id == ready.example.dialogue_id:
        return analysis
    return replace(analysis, dialogue=Dialogue(ready.example.dialogue_id, ready.turns))


def chunks(items: Inputs) -> Iterator[list[ReadyInput]]:
    """Prepared inputs, a bounded number at a time.

    Raises:
        DataError: An input cannot be used; the message gives its number.
    """
    refuse(items)
    ready: list[ReadyInput] = []
    for number, item in enumerate(items, 1):
        try:
            ready.append(prepare(item))
        except DataError as error:
            raise DataError(f"input {number}: {error}") from error
        if len(ready) == INPUTS_PER_CHUNK:
            yield ready
            ready = []
    if ready:
        yield ready
