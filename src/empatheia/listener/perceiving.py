"""The :class:`PerceivingListener`: perception by an :class:`AffectReader`, answers by reflection.

>>> listener = Listener.load("listener")  # doctest: +SKIP
>>> listener.analyze("I finally passed my driving test after three tries!").emotion  # doctest: +SKIP
'proud'
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, overload

from empatheia.care.checking import Care
from empatheia.care.guard import guarded, guarded_stream
from empatheia.checkpoints.catalogue import LISTENER, find_model
from empatheia.checkpoints.inputs import ReadyInput, prepare, unread
from empatheia.checkpoints.manifest import Manifest, read_manifest
from empatheia.decoding.strategies import Decoding
from empatheia.dialogue import Dialogue, Reply, Understanding
from empatheia.listener.batch_listener import chunks, decoding_of
from empatheia.listener.conversation import Conversation
from empatheia.listener.protocol import Input, Inputs, whole_reply
from empatheia.listener.streaming import ReplyStream
from empatheia.perceive.affect import Affect, named
from empatheia.perceive.model_file import is_perception
from empatheia.perceive.perception import Perception
from empatheia.resources import installed_model
from empatheia.responders.reflection import Perceived, reflect
from empatheia.taxonomy import SIDES
from empatheia.text.uncertainty import doubts
from empatheia.understanding.affect.states import JoinedAffect
from empatheia.understanding.affect.turns import AffectOfTurns

_CUT = "long text: of the newest turn only the beginning and the end were read"


class _Reads:
    """What this listener can do, as :class:`empatheia.checkpoints.reader.Reader` says it."""

    analyzes = True


class PerceivingListener:
    """Perceives what is felt, its side and the cause words, and answers by reflection.

    Args:
        affect: The loaded perception.
        manifest: Its ``empatheia.json``.
    """

    def __init__(self, affect: AffectOfTurns | Perception, manifest: Manifest) -> None:
        self.affect = affect
        self.manifest = manifest
        self.reader: Any = _Reads()

    @classmethod
    def load(cls, name_or_path: str | Path = LISTENER, device: str = "cpu") -> PerceivingListener:
        """From a folder or name; the bundled one is joined by the second look where its language model is at hand.

        Raises:
            MissingResourceError: The folder or its base encoder is not here.
            CheckpointError: The folder is incomplete, or belongs to another base.
        """
        folder = find_model(name_or_path)
        if is_perception(folder):
            return cls(Perception.open(folder), read_manifest(folder))
        affect = AffectOfTurns.load(folder, device)
        own = installed_model(LISTENER)
        is_own = own is not None and own.resolve() == folder.resolve()
        return cls(JoinedAffect.where_at_hand(affect) if is_own else affect, read_manifest(folder))

    @property
    def name(self) -> str:
        """What the model calls itself."""
        return self.manifest.name

    @overload
    def analyze(
        self, item: Input, batch_size: int = ..., progress: Callable[[int], None] | None = ...
    ) -> Understanding: ...

    @overload
    def analyze(
        self, item: Inputs, batch_size: int = ..., progress: Callable[[int], None] | None = ...
    ) -> list[Understanding]: ...

    def analyze(
        self, item: Input | Inputs, batch_size: int = 64, progress: Callable[[int], None] | None = None
    ) -> Understanding | list[Understanding]:
        """As :meth:`Listener.analyze`; the causes are phrases of at most five words in the speaker's turns."""
        if isinstance(item, str | Dialogue):
            return self._understood([prepare(item)], progress)[0]
        out: list[Understanding] = []
        for chunk in chunks(item):
            out += self._understood(chunk, progress)
        return out

    @overload
    def respond(self, item: Input, *, decoding: Decoding | None = ..., **settings: Any) -> Reply: ...

    @overload
    def respond(self, item: Inputs, *, decoding: Decoding | None = ..., **settings: Any) -> list[Reply]: ...

    @guarded
    def respond(
        self, item: Input | Inputs, *, decoding: Decoding | None = None, **settings: Any
    ) -> Reply | list[Reply]:
        """Answers by reflection; of the settings only ``seed`` has a say.

        Args:
            item: As for :meth:`analyze`.
            decoding: Its ``seed`` chooses among equally fitting forms.
            **settings: Fields of :class:`Decoding` in its place, and ``care`` as for :meth:`Listener.respond`.

        Raises:
            DataError: As for :meth:`analyze`.
            DecodingError: A setting is unknown or out of range.
        """
        seed = decoding_of(decoding, settings).seed
        if isinstance(item, str | Dialogue):
            return self._replies([prepare(item)], seed)[0]
        return [reply for chunk in chunks(item) for reply in self._replies(chunk, seed)]

    @guarded_stream
    def stream(self, item: Input, *, decoding: Decoding | None = None, **settings: Any) -> ReplyStream:
        """As :meth:`respond`; the reply comes as one piece."""
        return whole_reply(self.respond(item, decoding=decoding, care=False, **settings))

    def converse(
        self,
        dialogue: Dialogue | None = None,
        *,
        decoding: Decoding | None = None,
        care: Care | bool = True,
        **settings: Any,
    ) -> Conversation:
        """Begins a conversation that remembers its turns; see :meth:`respond`."""
        return Conversation(self, decoding_of(decoding, settings), dialogue, care)

    def _replies(self, inputs: Sequence[ReadyInput], seed: int) -> list[Reply]:
        out = []
        for understanding in self._understood(inputs, None):
            said = reflect(understanding.turns, perceived_of(understanding), seed=seed)[0]
            told = {"strategy": "reflection", "seed": seed, "forms": list(said.parts), "sureness": said.sureness}
            out.append(Reply(said.text, understanding, self.name, told))
        return out

    def _understood(self, inputs: Sequence[ReadyInput], progress: Callable[[int], None] | None) -> list[Understanding]:
        found = self.affect.read([ready.example.context for ready in inputs], progress)
        return [self._understanding(ready, one) for ready, one in zip(inputs, found, strict=True)]

    def _understanding(self, ready: ReadyInput, found: Affect) -> Understanding:
        text = " ".join(turn.text for turn in ready.example.context)
        reasons = [*ready.doubts, *unread(ready.n_skipped + found.first_turn, ready.shift, ready.turns)]
        reasons += [_CUT] if found.is_cut else []
        return Understanding(
            named(found.emotions),
            tuple(ready.located(span) for span in found.causes),
            tuple(ready.located(span) for span in found.words),
            ready.turns,
            tuple(dict.fromkeys((*reasons, *doubts(text)))),
            self.name,
            dict(zip(SIDES, map(float, found.sides), strict=True)),
        )


def perceived_of(understanding: Understanding) -> Perceived:
    """What the reflection is told of an understanding."""
    return Perceived(understanding.emotions, understanding.sides, understanding.causes, understanding.words)
