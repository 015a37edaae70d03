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
from empatheia.taxonomy import EMOTIONS

PARTS: tuple[str, ...] = ("emotion", "intent", "causes", "words", "mechanisms", "inferences", "reaction")
"""The questions a conversation can be asked, in the order of the five steps (perceive ... react)."""
GIVEN = "given"
"""In the place of who found something: the caller said so."""
FROM_SIDE = "side"
"""Likewise: it follows from the side of what is felt."""
LEVELS = ("none", "weak", "strong")
"""What the levels of a :class:`Mechanism` are called."""
EVEN: Mapping[str, float] = dict.fromkeys(EMOTIONS, 1 / len(EMOTIONS))
"""Probability of each emotion where nothing is known."""
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
class Labels:
    """A distribution over labels.

    Attributes:
        probabilities: Label to probability; sums to 1.
        by: Name of the model that says so; ``given`` = the caller does.
    """

    probabilities: Mapping[str, float]
    by: str = ""

    def __repr__(self) -> str:
        return f"Labels({strongest(self.probabilities)})"

    @property
    def label(self) -> str:
        """The most probable label."""
        return max(self.probabilities, key=lambda name: self.probabilities[name])


@dataclass(frozen=True, slots=True)
class TurnAnalysis:
    """What is said of one turn; what was not asked, or has no answer, is None or empty.

    Attributes:
        turn: 0-based index of the turn.
        emotion: Over the 32 emotions; with memory, the posterior.
        side: Over pleasant, unpleasant and mixed.
        causes: What caused the emotion: spans in this turn or in earlier ones, best first.
        words: Words of the speaker with their score, in reading order.
        evidence: The causes as RECCON has them: causal turns with their probabilities.
        scores: The words as scorers without word labels rank them, with the emotion they explain.
        intent: What the turn expresses or intends, over the 41 emotions and intents.
        mechanisms: How empathic a listener's turn is.
        inferences: What else is plausibly true, one a relation asked for, with tails or the reason why there are none.
        reaction: What the reply to it should express or do, over the 41.
    """

    turn: int
    emotion: Labels | None = None
    side: Labels | None = None
    causes: tuple[Span, ...] = ()
    words: tuple[Span, ...] = ()
    evidence: CauseAnnotation | None = None
    scores: WordScores | None = None
    intent: Labels | None = None
    mechanisms: tuple[Mechanism, ...] = ()
    inferences: tuple[Inference, ...] = ()
    reaction: Labels | None = None

    @property
    def emotions(self) -> Mapping[str, float]:
        """Probability of each of the 32, in taxonomy order; all equal where none is named."""
        return EVEN if self.emotion is None else self.emotion.probabilities

    @property
    def sides(self) -> Mapping[str, float]:
        """Probability of each side; empty where nothing says."""
        return {} if self.side is None else self.side.probabilities


@dataclass(frozen=True, slots=True)
class Analysis:
    """Everything that was found in one conversation.

    Attributes:
        dialogue: The conversation the turn indices and offsets point into.
        turns: What was asked of its turns, in order: of the newest one, or of all.
        targets: Words of the newest speaker turn that the reply should be about, best first.
        prior: Probability of each emotion that earlier turns left behind; empty if nothing is carried.
        by: Part (:data:`PARTS`) or ``targets`` to the name of the model or provider that answered; ``given`` = the
            caller; ``listener`` to who is asked for the whole, where that is another.
        missing: Part or step that has no answer to the reason and what to do.
        unsure: Reasons to distrust the answer; empty if none.
        parts: That an analyzer was asked for, of all turns; empty = what a listener perceives at the newest turn.
    """

    dialogue: Dialogue
    turns: tuple[TurnAnalysis, ...] = ()
    targets: tuple[Span, ...] = ()
    prior: Mapping[str, float] = field(default_factory=dict)
    by: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    unsure: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()

    @property
    def is_felt(self) -> bool:
        """Whether an emotion is named at the newest turn."""
        return self.newest.emotion is not None

    @property
    def newest(self) -> TurnAnalysis:
        """Of the newest speaker turn that was asked about; without any, of the newest turn."""
        said = self.dialogue.turns
        last = self.turns[-1] if self.turns else TurnAnalysis(max(0, len(said) - 1))
        return next((one for one in reversed(self.turns) if said[one.turn].role == "speaker"), last)

    def __repr__(self) -> str:
        turns = self.dialogue.turns
        shown = [f"{name}: {text}" for one in self.turns[-1:] for name, text in _shown(one, turns)]
        said = f"{turns[-1].text[:_SHOWN]!r}" if turns else "no turn"
        more = [f"{len(turns)} turns, the last"] if len(turns) > 1 else []
        without = [f"without {', '.join(self.missing)}"] if self.missing else []
        without += [f"uncertain: {'; '.join(self.unsure)}"] if self.unsure else []
        return f"Analysis({'; '.join([' '.join([*more, said]), *shown, *without])})"

    def _repr_html_(self) -> str:
        """A notebook's view: turn by turn with the causes marked, then what is doubtful or was not answered."""
        return html_table(self.html_rows())

    def html_rows(self) -> list[tuple[str, str]]:
        """Rows of that view: a name, and HTML."""
        spans = [span for one in self.turns for span in one.causes]
        found = {one.turn: one for one in self.turns}
        rows = []
        for index, turn in enumerate(self.dialogue.turns):
            rows.append((turn.role, marked_html(turn.text, index, spans)))
            if index in found:
                rows += [(name, escape(text)) for name, text in _shown(found[index], self.dialogue.turns)]
        rows += [("uncertain", escape("; ".join(self.unsure)))] if self.unsure else []
        rows += [("without", escape(", ".join(self.missing)))] if self.missing else []
        return rows

    def about(self, turn: int) -> Analysis:
        """The same with what is said of one turn alone.

        Args:
            turn: Its index.
        """
        return replace(self, turns=tuple(one for one in self.turns if one.turn == turn))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready data: the parts that were asked for, or the newest turn; every span with its text."""
        turns = self.dialogue.turns
        if not self.parts:
            return newest_dict(self)
        out: dict[str, Any] = {"id": self.dialogue.id, "turns": turn_dicts(turns)}
        for part, dicts_of in _DICTS.items():
            if part in self.by:
                out[part] = [record for one in self.turns for record in dicts_of(one, turns)]
        out["models"] = dict(self.by)
        out["missing"] = dict(self.missing)
        out["uncertain"] = list(self.unsure)
        return out


def newest_dict(analysis: Analysis) -> dict[str, Any]:
    """What is felt at the newest turn, and why, as plain JSON-ready data; ``emotion`` is null if none is named."""
    newest, turns = analysis.newest, analysis.dialogue.turns
    return {
        "emotion": None if newest.emotion is None else newest.emotion.label,
        "emotions": dict(newest.emotions),
        **({"sides": dict(newest.sides)} if newest.sides else {}),
        "causes": [span_dict(span, turns) for span in newest.causes],
        "words": [span_dict(span, turns) for span in newest.words],
        "turns": turn_dicts(turns),
        "uncertain": list(analysis.unsure),
        "model": analysis.by.get("listener", analysis.by.get("emotion", "")),
    }


def _shown(one: TurnAnalysis, turns: Sequence[Turn]) -> Iterator[tuple[str, str]]:
    """What was found in a turn, in words: a name, and a text."""
    yield from _best("feels", one.emotion)
    yield from _best("intent", one.intent)
    if one.evidence is not None:
        yield "because of", ", ".join(f"turn {i + 1}" for i in one.evidence.turns) or "nothing found"
    elif one.causes:
        yield "because of", ", ".join(repr(span.of(turns)[:_SHOWN]) for span in one.causes[:3])
    if one.scores is not None:
        yield "words", ", ".join(word.of(turns) for word in one.scores.top(3))
    if one.mechanisms:
        yield "shows", ", ".join(f"{own.name} {LEVELS[own.level]}" for own in one.mechanisms)
    if tails := [f"{own.relation} {', '.join(own.tails[:2])}" for own in one.inferences if own.tails]:
        yield "likely", "; ".join(tails)
    yield from _best("reply", one.reaction)


def _best(name: str, labels: Labels | None) -> Iterator[tuple[str, str]]:
    if labels is not None:
        yield name, strongest(labels.probabilities)


def _emotion_dicts(one: TurnAnalysis, turns: Sequence[Turn]) -> Iterator[dict[str, Json]]:
    sides: dict[str, Json] = {"sides": dict(one.sides)} if one.sides else {}
    yield from ({**record, **sides} for record in _label_dicts(one.turn, one.emotion))


def _label_dicts(turn: int, labels: Labels | None) -> Iterator[dict[str, Json]]:
    if labels is not None:
        yield {"turn": turn, "label": labels.label, "probabilities": dict(labels.probabilities)}


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


_DICTS: Mapping[str, Callable[[TurnAnalysis, Sequence[Turn]], Iterator[dict[str, Json]]]] = {
    "emotion": _emotion_dicts,
    "intent": lambda one, turns: _label_dicts(one.turn, one.intent),
    "reaction": lambda one, turns: _label_dicts(one.turn, one.reaction),
    "causes": lambda one, turns: iter(() if one.evidence is None else (_causes_dict(one.evidence, turns),)),
    "words": lambda one, turns: iter(() if one.scores is None else (_words_dict(one.scores, turns),)),
    "mechanisms": lambda one, turns: (_mechanism_dict(own, turns) for own in one.mechanisms),
    "inferences": lambda one, turns: (_inference_dict(own, turns) for own in one.inferences),
}
"""How what is said of a turn is written, part by part."""
