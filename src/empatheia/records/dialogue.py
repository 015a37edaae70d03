"""Frozen records of what is said: turns, conversations, examples, and stretches of them.

Spans are character offsets into a turn's text. Gold and predicted annotations are separate
records and never share a field with the dialogue they describe.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

from empatheia.errors import DataError
from empatheia.reading import Json

Role = Literal["speaker", "listener"]
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
