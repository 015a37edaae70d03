"""What steps 1 to 4 found in one conversation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from empatheia.analysis.targets import Targets
from empatheia.records.analysis import Inference
from empatheia.records.dialogue import Dialogue, Span, Understanding
from empatheia.text.inputs import ReadyInput
from empatheia.voices.reflection.perceived import Perceived

GIVEN = "given"
"""In the place of who found something: the caller said so."""


@dataclass(frozen=True, slots=True)
class Understood:
    """What steps 1 to 4 found in one conversation.

    Attributes:
        ready: The conversation, prepared.
        dialogue: What was read of it; ``targets`` index its turns.
        emotions: Posterior of the 32 at the newest turn; all equal if nothing named an emotion.
        prior: Belief carried over from earlier turns.
        emotion_from: What found it, or ``given``; "" if nothing did.
        targets: Words the reply should be about; None if that step is off or has nothing that answers.
        inferences: What else is plausibly true of the newest turn.
        intent: Wanted of the reply; "" if nothing named one.
        intents: Its distribution.
        intent_from: What found it, or ``given``.
        missing: Step to the reason why it has no answer.
        uncertain: Reasons to distrust all this.
        marked: What the reasoner takes for causes in all turns, where the targets are words of these; else None.
        felt: What the perception understood (emotion, side, causes, words), where the reasoner is one; else None.
    """

    ready: ReadyInput
    dialogue: Dialogue
    emotions: Mapping[str, float]
    prior: Mapping[str, float]
    emotion_from: str
    targets: Targets | None
    inferences: tuple[Inference, ...]
    intent: str
    intents: Mapping[str, float]
    intent_from: str
    missing: Mapping[str, str] = field(default_factory=dict)
    uncertain: tuple[str, ...] = ()
    marked: Understanding | None = None
    felt: Understanding | None = None

    @property
    def emotion(self) -> str:
        """The most probable emotion; "" if nothing named one."""
        return max(self.emotions, key=lambda name: self.emotions[name]) if self.emotion_from else ""

    def spans(self) -> tuple[Span, ...]:
        """The targets as spans of the conversation as it was given."""
        return () if self.targets is None else tuple(self.ready.located(span) for span in self.targets.spans)

    def perceived(self, n_left_out: int = 0) -> Perceived:
        """What the reflection is told, with the first ``n_left_out`` turns of :attr:`dialogue` left out."""
        read = self.felt or self.marked
        words = () if read is None else read.words
        causes = () if read is None else read.causes
        if self.targets is not None and (read is None or self.targets.source == GIVEN):
            causes = self.targets.spans
            words = words if read is not None else causes
        kept = (
            tuple(replace(span, turn=span.turn - n_left_out) for span in spans if span.turn >= n_left_out)
            for spans in (causes, words)
        )
        emotions = self.emotions if self.emotion_from else {}
        return Perceived(emotions, self.sides, *kept)

    def understanding(self, model: str) -> Understanding:
        """The same as the record of every listener: the causes are the targets, or what the reasoner marked."""
        targets = [Span(s.turn, s.start, s.end, None if s.score is None else float(s.score)) for s in self.spans()]
        causes, words = targets, sorted(targets, key=lambda span: span.start)
        if self.marked is not None:
            causes, words = ([self.ready.located(s) for s in own] for own in (self.marked.causes, self.marked.words))
        return Understanding(
            self.emotions, tuple(causes), tuple(words), self.ready.turns, self.uncertain, model, dict(self.sides)
        )

    @property
    def sides(self) -> Mapping[str, float]:
        """Probability of pleasant, unpleasant, mixed where the perception says; nothing where the emotion is given."""
        return {} if self.felt is None or self.emotion_from == GIVEN else self.felt.sides
