"""Perceive: what does each turn express? The emotion of what the speaker says, the intent of every turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from empatheia.errors import CheckpointError
from empatheia.records.analysis import TurnLabels
from empatheia.records.dialogue import Dialogue, Turn
from empatheia.taxonomy import EMOTIONS, LABELS_41
from empatheia_research.understanding.labels.classifier import Text, TextClassifier, groups_of_turns

WINDOW_TURNS = 4096


class TurnClassifier:
    """A text classifier put to the turns of conversations.

    Args:
        classifier: Trained on this part's labels.

    Raises:
        CheckpointError: Its labels are others.
    """

    part: str
    expected: ClassVar[tuple[str, ...]]

    def __init__(self, classifier: TextClassifier) -> None:
        found = classifier.labels
        if set(found) != set(self.expected):
            strange = sorted(set(found) - set(self.expected))
            missing = sorted(set(self.expected) - set(found))
            detail = "; ".join(
                f"{word} {', '.join(names[:3])}" + (" ..." if len(names) > 3 else "")
                for word, names in (("unknown", strange), ("missing", missing))
                if names
            )
            raise CheckpointError(
                f"{classifier.name!r} has {len(found)} labels ({detail}); part {self.part!r} needs a classifier of the"
                f" {len(self.expected)} labels {', '.join(self.expected[:3])} ..."
            )
        self.classifier = classifier
        self.name = classifier.name

    @classmethod
    def load(cls, folder: str | Path, **options: Any) -> Self:
        """From a model folder or name; see :meth:`TextClassifier.load` for options and errors."""
        return cls(TextClassifier.load(folder, **options))

    def wants(self, turn: Turn) -> bool:
        """Whether a turn gets a label."""
        raise NotImplementedError

    def annotate(
        self, dialogues: Sequence[Dialogue], *, batch_size: int = 32, progress: Callable[[int], None] | None = None
    ) -> list[tuple[TurnLabels, ...]]:
        """One distribution for each turn that gets a label, in the order of the turns.

        A model that ``reads`` contexts sees the turns up to the one it labels, never later ones; gold labels of the
        conversations are not read.

        Args:
            dialogues: Conversations; roles matter.
            batch_size: Most turns in one forward pass.
            progress: Called with the number of conversations just finished.
        """
        out: list[tuple[TurnLabels, ...]] = []
        for group in groups_of_turns(dialogues, WINDOW_TURNS):
            places = [[i for i, turn in enumerate(d.turns) if self.wants(turn)] for d in group]
            texts = [self._text(d, i) for d, indices in zip(group, places, strict=True) for i in indices]
            found = iter(self.classifier.classify_texts(texts, batch_size=batch_size).astype(float).tolist())
            labels = self.classifier.labels
            out += [tuple(TurnLabels(i, dict(zip(labels, next(found), strict=True))) for i in row) for row in places]
            if progress is not None:
                progress(len(group))
        return out

    def _text(self, dialogue: Dialogue, turn: int) -> Text:
        if self.classifier.model.config.reads == "context":
            return dialogue.turns[: turn + 1]
        return dialogue.turns[turn].text


class EmotionOfTurns(TurnClassifier):
    """Which of the 32 emotions each speaker turn expresses."""

    part = "emotion"
    expected = EMOTIONS

    def wants(self, turn: Turn) -> bool:
        """Speaker turns."""
        return turn.role == "speaker"


class IntentOfTurns(TurnClassifier):
    """Which of the 41 emotions and intents each turn expresses (Welivita and Pu 2020)."""

    part = "intent"
    expected = LABELS_41

    def wants(self, turn: Turn) -> bool:
        """Every turn."""
        return True
