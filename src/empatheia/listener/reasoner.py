"""The default listener as components: each speaker turn's emotion, side, cause phrases and words, by one model.

A perception, or a model with an emotion reasoner (Gao et al. 2021, section 3.1), reads the conversation
up to a speaker turn and gives all at once; the components share one loaded model and one reading.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, Protocol

from empatheia.analysis.component import Kind
from empatheia.analysis.questions import WordAnswer, WordQuestion, record
from empatheia.listener.listener import Listener
from empatheia.records.analysis import Analysis, TurnLabels, WordScores
from empatheia.records.dialogue import CauseAnnotation, Dialogue, Turn
from empatheia.resources.catalogue import LISTENER
from empatheia.resources.manifest import Manifest
from empatheia.taxonomy import EMOTIONS


class Reasoner(Protocol):
    """A listener that understands conversations, asked for nothing else."""

    @property
    def name(self) -> str:
        """For records."""
        ...

    @property
    def manifest(self) -> Manifest:
        """Of its folder."""
        ...

    def analyze(self, item: Sequence[str | Dialogue], batch_size: int = 1) -> list[Analysis]:
        """What the speakers feel and why, in the order of the conversations."""
        ...


def analyzes(listener: Reasoner) -> bool:
    """Whether a listener names emotions, as its reader says."""
    reader: Any = getattr(listener, "reader", None)
    return bool(reader.analyzes)


class ReasonerReading:
    """Understandings of every prefix of a conversation that ends with a speaker turn, each made once.

    Args:
        listener: A loaded model with an emotion head.
    """

    def __init__(self, listener: Reasoner) -> None:
        self.listener = listener
        self._known: dict[tuple[Turn, ...], dict[int, Analysis]] = {}

    @classmethod
    def load(cls, folder: str | Path | None = None, device: str = "cpu") -> ReasonerReading:
        """From a listener's folder or name, None = what perceives by default; see :meth:`Listener.load` for errors."""
        return cls(Listener.load(folder or LISTENER, device=device))

    def forget(self) -> None:
        """Drops what was read."""
        self._known = {}  # a new one: another thread may be reading the old one

    def read(self, dialogues: Sequence[Dialogue], batch_size: int = 1) -> list[dict[int, Analysis]]:
        """For each conversation: index of a speaker turn to what was understood up to it."""
        known = self._known
        new = {d.turns: d for d in dialogues if d.turns not in known}
        places = [(key, i) for key in new for i, turn in enumerate(key) if turn.role == "speaker"]
        prefixes = [Dialogue("", key[: i + 1]) for key, i in places]
        rows: dict[tuple[Turn, ...], dict[int, Analysis]] = {key: {} for key in new}
        for (key, i), found in zip(places, self.listener.analyze(prefixes, batch_size=batch_size), strict=True):
            rows[key][i] = found
        known |= rows
        return [known[d.turns] for d in dialogues]


class _FromReasoner(ABC, Generic[Kind]):
    part: str

    def __init__(self, reading: ReasonerReading) -> None:
        self.reading = reading
        self.name = reading.listener.name

    def annotate(
        self, dialogues: Sequence[Dialogue], *, batch_size: int = 1, progress: Callable[[int], None] | None = None
    ) -> list[tuple[Kind, ...]]:
        """One record a speaker turn, in the order of the turns; later turns are never read.

        Args:
            dialogues: Conversations; roles matter.
            batch_size: Most prefixes in one forward pass.
            progress: Called with the number of conversations just finished.
        """
        out = []
        for row in self.reading.read(dialogues, batch_size):
            out.append(tuple(self.record(turn, found) for turn, found in row.items()))
        if progress is not None:
            progress(len(dialogues))
        return out

    @abstractmethod
    def record(self, turn: int, found: Analysis) -> Kind:
        """The part's record of one turn."""


class EmotionByReasoner(_FromReasoner[TurnLabels]):
    """Part ``emotion``: what the speaker feels at each turn, in the light of the turns before it."""

    part = "emotion"

    def record(self, turn: int, found: Analysis) -> TurnLabels:
        """The 32 emotions, calibrated as the model's manifest says, and the side where the model says it."""
        return TurnLabels(turn, dict(found.newest.emotions), dict(found.newest.sides))


class CausesByReasoner(_FromReasoner[CauseAnnotation]):
    """Part ``causes``: the phrases that caused what is felt at a speaker turn, in it or in earlier ones."""

    part = "causes"

    def record(self, turn: int, found: Analysis) -> CauseAnnotation:
        """As the listener marks them, best first."""
        newest = found.newest
        turns = tuple(sorted({span.turn for span in newest.causes}))
        emotion = None if newest.emotion is None else newest.emotion.label
        return CauseAnnotation("", turn, turns, newest.causes, self.name, emotion=emotion)


class WordsByReasoner(_FromReasoner[WordScores]):
    """Part ``words``: the cause probability of each word of a speaker turn."""

    part = "words"

    def record(self, turn: int, found: Analysis) -> WordScores:
        """The turn's own words in the protocol of all word scorers: stop words are left out, the others share 1.

        Words of earlier turns belong to those turns' records.
        """
        own = [span for span in found.newest.words if span.turn == turn]
        emotion = found.newest.emotion
        label = EMOTIONS[0] if emotion is None else emotion.label
        text = found.dialogue.turns[turn].text
        question = WordQuestion(text, label, tuple((span.start, span.end) for span in own))
        return record(turn, question, WordAnswer(label, tuple(span.score or 0.0 for span in own)))


BY_REASONER = {"emotion": EmotionByReasoner, "causes": CausesByReasoner, "words": WordsByReasoner}
"""Part to the component that answers it by the listener."""
