"""Frozen records that flow through the package: a ``Dialogue`` goes in, a ``Reply`` comes out.

No tensors here. Spans are character offsets into a turn's text. Gold and predicted annotations are separate
records and never share a field with the dialogue they describe.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal

from empatheia.errors import DataError
from empatheia.reading import Json

Role = Literal["speaker", "listener"]
_SHOWN = 80  # characters of a text where a record is shown
ROLES: tuple[Role, Role] = ("speaker", "listener")


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance.

    Attributes:
        role: ``speaker`` (tells what happened to them) or ``listener`` (answers).
        text: The utterance as written; nothing is lower-cased or normalised.
    """

    role: Role
    text: str

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise DataError(f"unknown role {self.role!r}; accepted: speaker, listener.")


@dataclass(frozen=True, slots=True)
class Example:
    """What a response model sees and must say: a context that ends with a speaker turn, and the reply.

    Attributes:
        context: Turns 0..2i of the dialogue.
        response: The listener's turn 2i+1; None when there is none to learn from.
        dialogue_id: Id of the dialogue it was cut from.
        turn_index: Index of the response turn in that dialogue (= number of context turns).
        emotion: The conversation's label (gold), or None.
        situation: The speaker's description of the situation (gold), or None.
    """

    context: tuple[Turn, ...]
    response: str | None
    dialogue_id: str = ""
    turn_index: int = -1
    emotion: str | None = None
    situation: str | None = None


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A conversation.

    Attributes:
        id: Unique within its source.
        turns: In order; in EmpatheticDialogues the speaker opens and roles alternate.
        emotion: Conversation label out of the source's label set, or None.
        situation: The situation described before the conversation, or None.
        source: Name and split of the corpus, e.g. ``empathetic_dialogues/test``.
    """

    id: str
    turns: tuple[Turn, ...]
    emotion: str | None = None
    situation: str | None = None
    source: str = ""

    @staticmethod
    def of(*texts: str, id: str = "", emotion: str | None = None) -> Dialogue:
        """A dialogue whose turns alternate, speaker first: ``Dialogue.of("I lost my job.", "Oh no!", ...)``."""
        turns = tuple(Turn(ROLES[i % 2], text) for i, text in enumerate(texts))
        return Dialogue(id=id, turns=turns, emotion=emotion)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Dialogue:
        """What :meth:`to_dict` gave.

        Raises:
            DataError: A field is missing or of another kind.
        """
        turns = record.get("turns")
        if not isinstance(turns, list) or not all(isinstance(turn, Mapping) for turn in turns):
            raise DataError("a dialogue needs turns: [{'role': 'speaker', 'text': '...'}, ...].")
        for number, turn in enumerate(turns, 1):
            if not isinstance(turn.get("text"), str):
                raise DataError(f"turn {number} has no text; accepted: {{'role': 'speaker', 'text': '...'}}.")
        own = {name: record[name] for name in ("emotion", "situation", "source") if record.get(name) is not None}
        return cls(str(record.get("id", "")), tuple(Turn(turn.get("role"), turn["text"]) for turn in turns), **own)

    def to_dict(self) -> dict[str, Json]:
        """Plain JSON-ready data, which :meth:`from_dict` reads; what is not known is left out."""
        facts = {"emotion": self.emotion, "situation": self.situation, "source": self.source or None}
        known = {name: value for name, value in facts.items() if value is not None}
        return {"id": self.id, "turns": turn_dicts(self.turns), **known}

    def examples(
        self, respond_as: Iterable[Role] = ("listener",), max_context_words: int | None = None
    ) -> list[Example]:
        """One example for each turn after the first whose role is in ``respond_as`` (Gao et al. 2021, 2.1).

        Args:
            respond_as: Roles whose turns are targets.
            max_context_words: Examples whose context has more white-space words are left out (Gao: 512).
        """
        wanted = set(respond_as)
        out = []
        for i in range(1, len(self.turns)):
            if self.turns[i].role not in wanted:
                continue
            context = self.turns[:i]
            if max_context_words and sum(len(t.text.split()) for t in context) > max_context_words:
                continue
            out.append(Example(context, self.turns[i].text, self.id, i, self.emotion, self.situation))
        return out


@dataclass(frozen=True, slots=True)
class Span:
    """Characters ``[start, end)`` of turn number ``turn`` (0-based), with a score in [0, 1] if a model made it."""

    turn: int
    start: int
    end: int
    score: float | None = None

    def of(self, turns: Sequence[Turn]) -> str:
        """The text it covers."""
        return turns[self.turn].text[self.start : self.end]


@dataclass(frozen=True, slots=True)
class CauseAnnotation:
    """What caused the emotion of one turn.

    Attributes:
        dialogue_id: The dialogue it belongs to.
        target: 0-based index of the turn whose emotion is explained.
        turns: 0-based indices of the causal turns (all <= target unless the source breaks its own rule).
        spans: Causal spans inside those turns; empty when the source labels whole turns only.
        annotator: Name and version of what made it, e.g. ``recec/released`` or ``reccon/gold``.
        probabilities: One causal probability for each turn 0..target when a model made it, else empty.
        emotion: The target turn's emotion in the source's own labels, or None.
        first_read: 0-based index of the first turn the model read; the ones before did not fit into its length, and
            their probability of 0 says nothing.
    """

    dialogue_id: str
    target: int
    turns: tuple[int, ...]
    spans: tuple[Span, ...] = ()
    annotator: str = ""
    probabilities: tuple[float, ...] = ()
    emotion: str | None = None
    first_read: int = 0


@dataclass(frozen=True, slots=True)
class Understanding:
    """What the speaker feels and why, as a model sees it.

    Attributes:
        emotions: Probability of each of the 32 emotions, in taxonomy order; sums to 1.
        causes: Cause spans (character offsets into ``turns``), best first.
        words: Every word of the context as a span with its cause probability, in reading order.
        turns: The turns the offsets index.
        uncertain: Reasons to distrust this answer (unknown words, another language, emoji ...); empty if none.
        model: Name of the model that made it.
        sides: Probability that it feels pleasant, unpleasant or mixed; empty where the model does not say.
    """

    emotions: Mapping[str, float]
    causes: tuple[Span, ...]
    words: tuple[Span, ...]
    turns: tuple[Turn, ...]
    uncertain: tuple[str, ...] = ()
    model: str = ""
    sides: Mapping[str, float] = field(default_factory=dict)

    @property
    def emotion(self) -> str:
        """The most probable emotion; the first of the taxonomy if the model names none, see :attr:`names_emotion`."""
        return max(self.emotions, key=lambda name: self.emotions[name])

    @property
    def names_emotion(self) -> bool:
        """Whether the model says anything of the emotion: not all are equal."""
        return len(set(self.emotions.values())) > 1

    def __repr__(self) -> str:
        causes = ", ".join(repr(text) for text in self._shown_causes())
        said = [f"{self.turns[-1].text[:_SHOWN]!r}" if self.turns else "no turn", *self._shown_emotions()]
        said += [f"causes: {causes}"] if causes else []
        said += [f"uncertain: {'; '.join(self.uncertain)}"] if self.uncertain else []
        return f"Understanding({'; '.join(said)})"

    def _repr_html_(self) -> str:
        """A notebook's view: the turns with the causes marked, the strongest emotions, doubts."""
        return html_table(self.html_rows())

    def html_rows(self) -> list[tuple[str, str]]:
        """Rows of that view: a name, and HTML."""
        rows = [(turn.role, marked_html(turn.text, index, self.causes)) for index, turn in enumerate(self.turns)]
        rows.append(("feels", escape("; ".join(self._shown_emotions()))))
        return rows + ([("uncertain", escape("; ".join(self.uncertain)))] if self.uncertain else [])

    def _shown_emotions(self) -> list[str]:
        return [strongest(self.emotions) if self.emotions and self.names_emotion else "names no emotion"]

    def _shown_causes(self) -> list[str]:
        return [span.of(self.turns)[:_SHOWN] for span in self.causes[:3]]

    def to_dict(self) -> dict[str, Json]:
        """Plain JSON-ready data; a cause carries its text beside its offsets, ``emotion`` is null if none is named."""
        return {
            "emotion": self.emotion if self.names_emotion else None,
            "emotions": dict(self.emotions),
            **({"sides": dict(self.sides)} if self.sides else {}),
            "causes": [span_dict(span, self.turns) for span in self.causes],
            "words": [span_dict(span, self.turns) for span in self.words],
            "turns": turn_dicts(self.turns),
            "uncertain": list(self.uncertain),
            "model": self.model,
        }


@dataclass(frozen=True, slots=True)
class Candidate:
    """A reply that might have been given.

    Attributes:
        text: The reply, detokenised.
        responder: Who wrote it.
        decoding: The generation settings, with ``focus`` where it was focused.
        terms: What it is ranked by, by name; None where the term could not be computed.
        score: Sum of the terms times their weights; higher = better.
        also: Other ways that gave the same text, as ``responder: settings``.
    """

    text: str
    responder: str
    decoding: Mapping[str, Any]
    terms: Mapping[str, float | None]
    score: float
    also: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Json]:
        """Plain JSON-ready data."""
        return {
            "text": self.text,
            "responder": self.responder,
            "decoding": dict(self.decoding),
            "terms": dict(self.terms),
            "score": self.score,
            "also": list(self.also),
        }


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a listener gave this reply.

    Attributes:
        emotion: What it took the speaker to feel; "" if nothing named an emotion.
        emotion_from: What found it, or ``given``.
        emotions: Probability of each emotion at the newest speaker turn.
        prior: Probability of each that earlier turns left behind; all equal if nothing is carried.
        turns: The turns that spans index.
        targets: Words the reply should be about, best first.
        targets_from: What found them.
        worlds: The last speaker turn as said, and the distractors it was to be told from; empty without focus.
        distractors_from: What made them.
        inferences: What else is plausibly true: ``relation``, ``tails``, ``absent``.
        intent: Emotion or intent wanted of the reply; "" if nothing named one.
        intent_from: What found it, or ``given``.
        intents: Probability of each of the 41, empty if ``intent`` was given or nothing named one.
        candidates: Best first; the first is the reply.
        weights: Of the terms of a score, those of missing terms 0.
        belief: Pieces of the reply with the listener's belief in the true world after each, in [0, 1]; it begins with
            an empty piece and the belief before anything is said. Empty without distractors.
        missing: What had no model or could not be done, to the reason and the remedy.
    """

    emotion: str
    emotion_from: str
    emotions: Mapping[str, float]
    prior: Mapping[str, float]
    turns: tuple[Turn, ...]
    targets: tuple[Span, ...]
    targets_from: str
    worlds: tuple[str, ...]
    distractors_from: str
    inferences: tuple[Mapping[str, Any], ...]
    intent: str
    intent_from: str
    intents: Mapping[str, float]
    candidates: tuple[Candidate, ...]
    weights: Mapping[str, float]
    belief: tuple[tuple[str, float], ...]
    missing: Mapping[str, str]

    def to_dict(self) -> dict[str, Json]:
        """Plain JSON-ready data; each target carries its text."""
        return {
            "emotion": self.emotion or None,
            "emotion_from": self.emotion_from,
            "emotions": dict(self.emotions),
            "prior": dict(self.prior),
            "targets": [span_dict(span, self.turns) for span in self.targets],
            "targets_from": self.targets_from,
            "worlds": list(self.worlds),
            "distractors_from": self.distractors_from,
            "inferences": [dict(record) for record in self.inferences],
            "intent": self.intent or None,
            "intent_from": self.intent_from,
            "intents": dict(self.intents),
            "candidates": [candidate.to_dict() for candidate in self.candidates],
            "weights": dict(self.weights),
            "belief": [{"piece": piece, "true_world": value} for piece, value in self.belief],
            "missing": dict(self.missing),
        }


@dataclass(frozen=True, slots=True)
class Reply:
    """A listener's answer and what it rests on.

    Attributes:
        text: The reply, detokenised.
        understanding: What the model perceived before it answered.
        model: Name of the model.
        decoding: The generation settings that made it (strategy, seed, limits).
        explanation: Why this reply, from a listener of five steps that was asked; else None.
        care: What the check in front of the answer found and did, see :mod:`empatheia.care`; None = there was none.
    """

    text: str
    understanding: Understanding
    model: str = ""
    decoding: Mapping[str, Json] = field(default_factory=dict)
    explanation: Explanation | None = None
    care: Mapping[str, Json] | None = None

    def __repr__(self) -> str:
        return f"Reply({self.text!r}; by {self.model or 'no model'}; to {self.understanding!r})"

    def _repr_html_(self) -> str:
        """A notebook's view: what was understood, then the reply."""
        return html_table([*self.understanding.html_rows(), ("reply", f"<b>{escape(self.text)}</b>")])

    def to_dict(self) -> dict[str, Json]:
        """Plain JSON-ready data, as ``listener/reply.schema.json`` says; ``explanation`` and ``care`` if there."""
        out: dict[str, Json] = {
            "reply": self.text,
            "understanding": self.understanding.to_dict(),
            "model": self.model,
            "decoding": dict(self.decoding),
        }
        if self.explanation is not None:
            out["explanation"] = self.explanation.to_dict()
        return out if self.care is None else {**out, "care": dict(self.care)}


def strongest(probabilities: Mapping[str, float], n: int = 3) -> str:
    """The most probable labels, as a person reads them.

    >>> strongest({"sad": 0.7, "angry": 0.2, "proud": 0.1}, 2)
    'sad 70%, angry 20%'
    """
    ranked = sorted(probabilities.items(), key=lambda item: -item[1])[:n]
    return ", ".join(f"{name} {probability:.0%}" for name, probability in ranked)


def marked_html(text: str, index: int, spans: Iterable[Span]) -> str:
    """A turn's text as HTML with the spans that lie in it marked; of two that overlap, the earlier."""
    out, end = "", 0
    for span in sorted((own for own in spans if own.turn == index), key=lambda own: own.start):
        if span.start >= end:
            out += f"{escape(text[end : span.start])}<mark>{escape(text[span.start : span.end])}</mark>"
            end = span.end
    return out + escape(text[end:])


def html_table(rows: Iterable[tuple[str, str]]) -> str:
    """A table of names, which are escaped, and HTML."""
    return f"<table>{''.join(f'<tr><th>{escape(name)}</th><td>{told}</td></tr>' for name, told in rows)}</table>"


def turn_dicts(turns: Iterable[Turn]) -> list[Json]:
    """Turns as plain JSON-ready data."""
    return [{"role": turn.role, "text": turn.text} for turn in turns]


def span_dict(span: Span, turns: Sequence[Turn]) -> dict[str, Json]:
    """A span with its text, JSON-ready."""
    return {"turn": span.turn, "start": span.start, "end": span.end, "text": span.of(turns), "score": span.score}
