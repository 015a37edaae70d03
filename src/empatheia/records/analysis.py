"""What the understanding components say of a conversation: frozen records, one kind per question, no tensors.

Each record names the turn it is about (0-based), and the model that made it stands once in
:class:`Analysis`.models. A component that gave nothing is absent and says why in :class:`Analysis`.missing;
gold and predicted annotations never share a record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

from empatheia.reading import Json
from empatheia.records.dialogue import (
    CauseAnnotation,
    Dialogue,
    Span,
    Turn,
    html_table,
    marked_html,
    span_dict,
    strongest,
    turn_dicts,
)

PARTS: tuple[str, ...] = ("emotion", "intent", "causes", "words", "mechanisms", "inferences", "reaction")
"""The questions a conversation can be asked, in the order of the five steps (perceive ... react)."""
LEVELS = ("none", "weak", "strong")
"""What the levels of a :class:`Mechanism` are called."""
_SHOWN = 80  # characters of a turn where a record is shown


@dataclass(frozen=True, slots=True)
class TurnLabels:
    """A distribution over labels for one turn.

    Attributes:
        turn: 0-based index of the turn.
        probabilities: Label to probability, in the model's label order; sums to 1.
        sides: Of an emotion: probability of pleasant, unpleasant and mixed; empty where the model does not say.
    """

    turn: int
    probabilities: Mapping[str, float]
    sides: Mapping[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"TurnLabels(turn {self.turn}: {strongest(self.probabilities)})"

    @property
    def label(self) -> str:
        """The most probable label."""
        return max(self.probabilities, key=lambda name: self.probabilities[name])


@dataclass(frozen=True, slots=True)
class WordScores:
    """How much each word of a turn carries its emotion, with no word labels behind it.

    Attributes:
        turn: 0-based index of the turn.
        emotion: The emotion explained.
        words: Every word as a span with its score, in reading order; higher = more causal. Scores compare
            within a turn only.
    """

    turn: int
    emotion: str
    words: tuple[Span, ...]

    def top(self, k: int) -> tuple[Span, ...]:
        """The ``k`` words with the highest scores, best first; ties go to the earlier word."""
        return tuple(sorted(self.words, key=lambda w: (-(w.score or 0.0), w.start))[:k])


@dataclass(frozen=True, slots=True)
class Mechanism:
    """One of EPITOME's communication mechanisms in one turn (Sharma et al. 2020).

    Attributes:
        turn: 0-based index of the response turn.
        name: ``emotional reaction``, ``interpretation`` or ``exploration``.
        level: 0 none, 1 weak, 2 strong.
        probabilities: Of the levels 0, 1, 2.
        rationales: The parts of the turn that show it; empty at level 0.
    """

    turn: int
    name: str
    level: int
    probabilities: tuple[float, float, float]
    rationales: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Inference:
    """What is plausibly true besides what a turn says: one commonsense relation and its tails.

    Attributes:
        turn: 0-based index of the turn.
        relation: One of :data:`empatheia.taxonomy.RELATIONS`.
        tails: Texts, best first.
        scores: One score a tail, in the provider's own unit; empty if it gives none.
        head: The knowledge-base head the tails belong to (look-up), else None.
        absent: Why there are no tails, in a few words; empty if there are.
    """

    turn: int
    relation: str
    tails: tuple[str, ...]
    scores: tuple[float, ...] = ()
    head: str | None = None
    absent: str = ""


@dataclass(frozen=True, slots=True)
class Analysis:
    """Everything asked about one conversation.

    Attributes:
        dialogue: The conversation the turn indices and offsets point into.
        emotion: One distribution over the 32 emotions a speaker turn.
        intent: One distribution over the 41 emotions and intents a turn.
        causes: One annotation (turns, spans, probabilities) an emotional turn.
        words: One set of word scores a speaker turn.
        mechanisms: Three records a listener turn that answers a speaker turn.
        inferences: Records a speaker turn, one a relation asked for, with tails or the reason why there are none.
        reaction: One distribution over the 41 labels for the reply that should come next.
        models: Part to the name of the model or provider that answered.
        missing: Part that was asked for to the reason why there is no answer and what to do.
        uncertain: Reasons to distrust the answer; empty if none.
    """

    dialogue: Dialogue
    emotion: tuple[TurnLabels, ...] = ()
    intent: tuple[TurnLabels, ...] = ()
    causes: tuple[CauseAnnotation, ...] = ()
    words: tuple[WordScores, ...] = ()
    mechanisms: tuple[Mechanism, ...] = ()
    inferences: tuple[Inference, ...] = ()
    reaction: tuple[TurnLabels, ...] = ()
    models: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    uncertain: tuple[str, ...] = ()

    def __repr__(self) -> str:
        turns = self.dialogue.turns
        told = [f"{name}: {text}" for name, text in self._told(len(turns) - 1)]
        said = f"{turns[-1].text[:_SHOWN]!r}" if turns else "no turn"
        more = [f"{len(turns)} turns, the last"] if len(turns) > 1 else []
        without = [f"without {', '.join(self.missing)}"] if self.missing else []
        return f"Analysis({'; '.join([' '.join([*more, said]), *told, *without])})"

    def _repr_html_(self) -> str:
        """A notebook's view: turn by turn with the causes marked, then what is doubtful or was not answered."""
        spans = [span for note in self.causes for span in note.spans]
        rows = []
        for index, turn in enumerate(self.dialogue.turns):
            rows.append((turn.role, marked_html(turn.text, index, spans)))
            rows += [(name, escape(text)) for name, text in self._told(index)]
        rows += [("uncertain", escape("; ".join(self.uncertain)))] if self.uncertain else []
        rows += [("without", escape(", ".join(self.missing)))] if self.missing else []
        return html_table(rows)

    def _told(self, index: int) -> Iterator[tuple[str, str]]:
        """What was found in a turn, in words: a name, and a text."""
        turns = self.dialogue.turns
        yield from self._labels("feels", self.emotion, index)
        yield from self._labels("intent", self.intent, index)
        causes = [note.turns for note in self.causes if note.target == index]
        yield from (("because of", ", ".join(f"turn {i + 1}" for i in own) or "nothing found") for own in causes)
        words = [scores.top(3) for scores in self.words if scores.turn == index]
        yield from (("words", ", ".join(word.of(turns) for word in own)) for own in words)
        shown = [f"{own.name} {LEVELS[own.level]}" for own in self.mechanisms if own.turn == index]
        yield from [("shows", ", ".join(shown))][: len(shown)]
        yield from self._likely(index)
        yield from self._labels("reply", self.reaction, index)

    @staticmethod
    def _labels(name: str, records: Sequence[TurnLabels], index: int) -> Iterator[tuple[str, str]]:
        yield from ((name, strongest(own.probabilities)) for own in records if own.turn == index)

    def _likely(self, index: int) -> Iterator[tuple[str, str]]:
        tails = [
            f"{own.relation} {', '.join(own.tails[:2])}" for own in self.inferences if own.turn == index and own.tails
        ]
        if tails:
            yield "likely", "; ".join(tails)

    def about(self, turn: int) -> Analysis:
        """The same with the records of one turn alone.

        Args:
            turn: Its index.
        """
        found = {part: getattr(self, part) for part in PARTS}
        kept = {part: tuple(one for one in own if _turn_of(one) == turn) for part, own in found.items()}
        return replace(self, **kept)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready data: only the parts that were asked for, every span with its text."""
        turns = self.dialogue.turns
        out: dict[str, Any] = {
            "id": self.dialogue.id,
            "turns": turn_dicts(turns),
        }
        for part, as_dict in _AS_DICT.items():
            if part in self.models:
                out[part] = [as_dict(record, turns) for record in getattr(self, part)]
        out["models"] = dict(self.models)
        out["missing"] = dict(self.missing)
        out["uncertain"] = list(self.uncertain)
        return out


def _turn_of(record: TurnLabels | CauseAnnotation | WordScores | Mechanism | Inference) -> int:
    return record.target if isinstance(record, CauseAnnotation) else record.turn


def _labels_dict(labels: TurnLabels, turns: Sequence[Turn]) -> dict[str, Json]:
    sides: dict[str, Json] = {"sides": dict(labels.sides)} if labels.sides else {}
    return {"turn": labels.turn, "label": labels.label, "probabilities": dict(labels.probabilities), **sides}


def _causes_dict(note: CauseAnnotation, turns: Sequence[Turn]) -> dict[str, Json]:
    return {
        "target": note.target,
        "turns": list(note.turns),
        "spans": [span_dict(span, turns) for span in note.spans],
        "probabilities": list(note.probabilities),
        "emotion": note.emotion,
        **({"first_read": note.first_read} if note.first_read else {}),
    }


def _words_dict(scores: WordScores, turns: Sequence[Turn]) -> dict[str, Json]:
    return {
        "turn": scores.turn,
        "emotion": scores.emotion,
        "words": [span_dict(span, turns) for span in scores.words],
    }


def _mechanism_dict(mechanism: Mechanism, turns: Sequence[Turn]) -> dict[str, Json]:
    return {
        "turn": mechanism.turn,
        "mechanism": mechanism.name,
        "level": mechanism.level,
        "probabilities": list(mechanism.probabilities),
        "rationales": [span_dict(span, turns) for span in mechanism.rationales],
    }


def _inference_dict(inference: Inference, turns: Sequence[Turn]) -> dict[str, Json]:
    return {
        "turn": inference.turn,
        "relation": inference.relation,
        "tails": list(inference.tails),
        "scores": list(inference.scores),
        "head": inference.head,
        **({"absent": inference.absent} if inference.absent else {}),
    }


_AS_DICT: Mapping[str, Callable[[Any, Sequence[Turn]], dict[str, Json]]] = {
    "emotion": _labels_dict,
    "intent": _labels_dict,
    "reaction": _labels_dict,
    "causes": _causes_dict,
    "words": _words_dict,
    "mechanisms": _mechanism_dict,
    "inferences": _inference_dict,
}
"""How a record of each part is written, in the order in which the parts are."""
