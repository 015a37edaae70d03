"""The :class:`PerceivingListener`: perception by one model, answered by the default listener.

>>> listener = Listener.load("listener")  # doctest: +SKIP
>>> listener.analyze("I finally passed my driving test after three tries!").newest.emotion.label  # doctest: +SKIP
'proud'
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

from empatheia.analysis.perceptions import open_perception
from empatheia.care.checking import Care
from empatheia.care.guard import guarded_stream
from empatheia.giving_way import give_way
from empatheia.listener.batch_listener import BatchListener, decoding_of
from empatheia.listener.protocol import Input
from empatheia.listener.steps.focused import FocusedListener
from empatheia.listener.streaming import ReplyStream, whole_reply
from empatheia.perceive.affect import Affect, Perceiving, named
from empatheia.records.analysis import Analysis, Labels, TurnAnalysis
from empatheia.records.dialogue import Dialogue
from empatheia.records.reply import Reply
from empatheia.resources.catalogue import LISTENER, find_model
from empatheia.resources.manifest import Manifest, read_manifest
from empatheia.taxonomy import SIDES
from empatheia.text.inputs import ReadyInput, unread
from empatheia.text.uncertainty import doubts
from empatheia.voices.decoding import Decoding, DecodingFields

_CUT = "long text: of the newest turn only the beginning and the end were read"


class _Reads:
    """What this listener reads, as :class:`empatheia_research.checkpoints.reader.Reader` says it.

    Args:
        affect: The loaded perception.
        name: For records.
    """

    analyzes = True

    def __init__(self, affect: Perceiving, name: str) -> None:
        self.affect, self.name = affect, name

    def encode(self, inputs: Sequence[ReadyInput]) -> list[ReadyInput]:
        """The inputs; the perception cuts them itself."""
        return list(inputs)

    def batches(self, inputs: Sequence[ReadyInput], batch_size: int, cost: int) -> list[list[int]]:
        """All at once."""
        return [list(range(len(inputs)))]

    def understand(
        self, inputs: Sequence[ReadyInput], batch_size: int, progress: Callable[[int], None] | None = None
    ) -> list[Analysis]:
        """What is felt, its side and why; at most ``batch_size`` are read together."""
        found: list[Affect] = []
        for start in range(0, len(inputs), batch_size):
            part = [ready.example.context for ready in inputs[start : start + batch_size]]
            found += self.affect.read(part, progress)
        return [self._analysis(ready, one) for ready, one in zip(inputs, found, strict=True)]

    def _analysis(self, ready: ReadyInput, found: Affect) -> Analysis:
        give_way()
        text = " ".join(turn.text for turn in ready.example.context)
        reasons = [*ready.doubts, *unread(ready.n_skipped + found.first_turn, ready.shift, ready.turns)]
        reasons += [_CUT] if found.is_cut else []
        newest = TurnAnalysis(
            len(ready.turns) - 1,
            Labels(named(found.emotions), self.name),
            Labels(dict(zip(SIDES, map(float, found.sides), strict=True)), self.name),
            tuple(ready.located(span) for span in found.causes),
            tuple(ready.located(span) for span in found.words),
        )
        return Analysis(
            Dialogue(ready.example.dialogue_id, ready.turns),
            (newest,),
            by=dict.fromkeys(("emotion", "causes", "words"), self.name),
            unsure=tuple(dict.fromkeys((*reasons, *doubts(text)))),
        )


class PerceivingListener(BatchListener):
    """Perceives what is felt, its side and the cause phrases; answers as the default listener does, by reflection.

    Args:
        affect: The loaded perception.
        manifest: Its ``empatheia.json``.
    """

    def __init__(self, affect: Perceiving, manifest: Manifest) -> None:
        self.affect = affect
        self.manifest = manifest
        self.reader: Any = _Reads(affect, manifest.name)

    @classmethod
    def load(
        cls, name_or_path: str | Path = LISTENER, device: str = "cpu", *, joined: bool = False
    ) -> PerceivingListener:
        """From a folder or name.

        Args:
            name_or_path: A file for ONNX Runtime in its folder, or a perception as it was trained, which needs torch.
            device: Of torch, for the latter.
            joined: Whether the second look, a small language model, is mixed in; it needs torch.

        Raises:
            MissingResourceError: The folder, its base encoder, or the second look's model is not here.
            MissingDependencyError: What reads it is not installed.
            CheckpointError: The folder is incomplete, damaged, or belongs to another base.
        """
        folder = find_model(name_or_path)
        manifest = read_manifest(folder)
        return cls(open_perception(folder, device, joined=joined), manifest)

    @guarded_stream
    def stream(
        self,
        item: Input,
        *,
        decoding: Decoding | None = None,
        care: Care | bool = True,
        **settings: Unpack[DecodingFields],
    ) -> ReplyStream:
        """As :meth:`respond`; the reply comes as one piece."""
        return whole_reply(self.respond(item, decoding=decoding_of(decoding, settings), care=False))

    @cached_property
    def in_steps(self) -> FocusedListener:
        """The listener of five steps that answers with this perception."""
        return FocusedListener({"name": self.name}, reasoner=self)

    def _respond_batch(self, inputs: Sequence[Any], decoding: Decoding) -> list[Reply]:
        dialogues = [Dialogue(ready.example.dialogue_id, ready.turns) for ready in inputs]
        return self.in_steps.respond(dialogues, decoding=decoding, care=False)
