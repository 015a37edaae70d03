"""The turns that caused what the speaker feels, as a sequence of their own: ``[CLS]`` and those turns, in order.

IMAGINE (Chen et al. 2022, 3.1) reads them in place of the whole conversation. In training the recipe's cause labels
(``data.causes``) say which turns these are; when an answer is asked for, a detector does, which reads no label.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from empatheia.errors import ConfigError, EmpatheiaError, MissingResourceError
from empatheia.reading import Json
from empatheia.records.dialogue import Dialogue, Example
from empatheia.resources import resolve_model
from empatheia_research.corpora.annotations import read_annotations
from empatheia_research.text.collation import EncodedExample, pad_rows
from empatheia_research.text.tokenizer import DialogueTokenizer
from empatheia_research.understanding.inferences.heads import NO_CAUSE

logger = logging.getLogger(__name__)
USES = ("found", "whole")
MAKE = "The detector is made with: empatheia models train causes"


def last_speaker_turn(example: Example) -> int:
    """Index of the last turn of a context that is the speaker's; of the last turn if none is."""
    spoken = [i for i, turn in enumerate(example.context) if turn.role == "speaker"]
    return spoken[-1] if spoken else len(example.context) - 1


class CauseTurns:
    """Features ``cause_ids``, ``cause_mask`` and ``cause_role_ids``: the causal turns as a sequence.

    Args:
        tokenizer: The system's pieces.
        detector: Folder or name of a model of part ``causes``, for contexts without labels; None = there is none, and
            every context without labels is one without a cause.
        emotion: Folder or name of a model of part ``emotion`` that tells the detector what the speaker feels; None =
            the detector reads ``neutral``. Never the gold label.
        detections: File of what a detector said before, read in place of asking it again
            (``empatheia annotate DETECTOR --emotion NAME --out FILE``). Made with gold emotions it is refused.
        use: ``found``, or ``whole``: all turns (IMAGINE's ablation w/o cause).
        no_cause: What stands in where no cause was found: ``whole`` context, ``last_speaker`` or ``all_speaker`` turns.
        max_pieces: Longest sequence; CLS and the last pieces are kept.
        must_exist: A detector or file that is not here is an error (with a file, the detector may be missing); False:
            a doubt about each answer.

    Raises:
        ConfigError: A setting is out of range, or the file was made with gold emotions.
        DataError: The file holds no annotations.
        MissingResourceError: The detector or the file is not here.
    """

    features: ClassVar[tuple[str, ...]] = ("cause_ids", "cause_mask", "cause_role_ids")

    def __init__(
        self,
        tokenizer: DialogueTokenizer,
        *,
        detector: str | None = None,
        emotion: str | None = None,
        detections: str | None = None,
        use: str = "found",
        no_cause: str = "whole",
        max_pieces: int = 1024,
        must_exist: bool = True,
    ) -> None:
        for option, value, accepted in (("use", use, USES), ("no_cause", no_cause, NO_CAUSE)):
            if value not in accepted:
                raise ConfigError(f"side input cause_turns: {option} is {value!r}; accepted: {', '.join(accepted)}.")
        if max_pieces < 2:
            raise ConfigError(f"side input cause_turns: max_pieces is {max_pieces}; accepted: 2 or more.")
        self.cls_id = tokenizer.cls_id
        self.detector = detector
        self.emotion = emotion
        self.detections = detections
        self.use = use
        self.no_cause = no_cause
        self.max_pieces = max_pieces
        self.must_exist = must_exist
        self.counts: Counter[str] = Counter()
        self._component: Any = None
        self._problem = "" if detector else "no model that finds causes is set"
        self._said = self._read_detections() if detections and use == "found" else {}
        if must_exist and use == "found" and not self._said:
            for place in filter(None, (detector, emotion)):
                try:
                    resolve_model(place)
                except MissingResourceError as error:
                    raise MissingResourceError(f"side input cause_turns: {error} {MAKE}") from None

    def settings(self) -> dict[str, Json]:
        """See :class:`empatheia_research.side_inputs.SideInput`; in a loaded model the detector may be missing."""
        return {
            "detector": self.detector,
            "emotion": self.emotion,
            "detections": self.detections,
            "use": self.use,
            "no_cause": self.no_cause,
            "max_pieces": self.max_pieces,
            "must_exist": False,
        }

    def add(self, examples: Sequence[Example], items: Sequence[EncodedExample]) -> None:
        """Writes ``cause_turns`` (indices in the context) and ``causes`` (pieces and roles) into ``item.extra``.

        Items with cause labels (training and validation only) take their turns from these.
        """
        found = self._turns(examples, items) if self.use == "found" else [()] * len(items)
        before = Counter(self.counts)
        for example, item, turns in zip(examples, items, found, strict=True):
            if turns is None and len(example.context) > 1:
                why = f"{self._problem}: the whole conversation stands in for what caused the emotion"
                item.extra.setdefault("doubts", []).append(why)
            self._write(example, item, turns or ())
        if self.use == "found" and len(items) > 1:
            new = self.counts - before
            logger.info(
                "causes: %d contexts, %d without a cause (%s stands in)",
                new["contexts"],
                new["without a cause"],
                self.no_cause,
            )

    def _turns(self, examples: Sequence[Example], items: Sequence[EncodedExample]) -> list[tuple[int, ...] | None]:
        """The turns of each item's causes, by its labels or the detector; None where it cannot say."""
        asked = [i for i, item in enumerate(items) if item.cause_labels is None]
        detected = dict(zip(asked, self._detect([examples[i] for i in asked]), strict=True))
        return [detected[i] if i in detected else _labelled(item) for i, item in enumerate(items)]

    def collate(self, items: Sequence[EncodedExample], pad_id: int, width: int) -> dict[str, Tensor]:
        """Pieces, mask (True = keep) and roles (0 CLS, 1 speaker, 2 listener). Shape of each: ``(batch, causes)``."""
        rows = [item.extra.get("causes", ((self.cls_id,), (0,))) for item in items]
        ids = pad_rows([pieces for pieces, _ in rows], pad_id)
        lengths = torch.tensor([len(pieces) for pieces, _ in rows])
        return {
            "cause_ids": ids,
            "cause_mask": torch.arange(ids.shape[1]) < lengths[:, None],
            "cause_role_ids": pad_rows([roles for _, roles in rows], 0),
        }

    def _write(self, example: Example, item: EncodedExample, turns: tuple[int, ...]) -> None:
        self.counts["contexts"] += 1
        if self.use == "found" and not turns:
            self.counts["without a cause"] += 1
        if not turns:
            turns = self._stand_in(example)
        kept = [i for i, turn in enumerate(item.turn_ids) if turn in turns]
        if not kept:  # the causal turns were too long ago to be read
            kept = [i for i, turn in enumerate(item.turn_ids) if turn >= 0]
        kept = kept[-(self.max_pieces - 1) :]
        item.extra["cause_turns"] = turns
        item.extra["causes"] = (
            (self.cls_id, *(item.input_ids[i] for i in kept)),
            (0, *(item.role_ids[i] for i in kept)),
        )

    def _stand_in(self, example: Example) -> tuple[int, ...]:
        if self.use == "whole" or self.no_cause == "whole":
            return tuple(range(len(example.context)))
        if self.no_cause == "last_speaker":
            return (last_speaker_turn(example),)
        spoken = tuple(i for i, turn in enumerate(example.context) if turn.role == "speaker")
        return spoken or tuple(range(len(example.context)))

    def _read_detections(self) -> dict[tuple[str, int], tuple[int, ...]]:
        """Causal turns by dialogue and explained turn."""
        assert self.detections is not None
        try:
            notes = read_annotations(self.detections)
        except MissingResourceError:
            if self.must_exist:
                raise
            return {}
        for note in notes:
            mark, _, source = note.annotator.rpartition("+emotion:")
            if not mark or source in ("conversation", "given"):
                raise ConfigError(
                    f"side input cause_turns: {self.detections} was made with given emotions, such as a corpus's labels"
                    f" ({note.annotator or 'unnamed'}), which a text to answer does not have. Make it with"
                    " `empatheia annotate DETECTOR --emotion NAME --out FILE`."
                )
        return {(note.dialogue_id, note.target): note.turns for note in notes}

    def _detect(self, examples: Sequence[Example]) -> list[tuple[int, ...] | None]:
        """Causal turns of each context's last speaker turn; None where there is no detector."""
        out = [self._said.get((example.dialogue_id, last_speaker_turn(example))) for example in examples]
        asked = [i for i, turns in enumerate(out) if turns is None]
        component = self._opened() if asked else None
        if component is None:
            return out
        notes = component.annotate([Dialogue(examples[i].dialogue_id, examples[i].context) for i in asked])
        for i, own in zip(asked, notes, strict=True):
            target = last_speaker_turn(examples[i])
            out[i] = next((note.turns for note in own if note.target == target), ())
        return out

    def _opened(self) -> Any:
        if self._component is None and self.detector and not self._problem:
            from empatheia.analysis.component import COMPONENTS

            try:
                emotion = COMPONENTS.get("emotion").load(self.emotion) if self.emotion else None
                self._component = COMPONENTS.get("causes").load(self.detector, emotion=emotion)
            except EmpatheiaError as error:
                if self.must_exist and not self._said:
                    raise
                self._problem = f"the model that finds causes cannot be used ({error})"
        return self._component


def _labelled(item: EncodedExample) -> tuple[int, ...]:
    """The turns that an item's labels name."""
    pairs = zip(item.turn_ids, item.cause_labels or (), strict=True)
    return tuple(sorted({turn for turn, label in pairs if label == 1 and turn >= 0}))
