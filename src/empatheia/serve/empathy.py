"""The ``empathy`` object of an answer: what was perceived, why this reply, who spoke. ``docs/design/0003-serve.md``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Field

from empatheia.records.dialogue import Explanation, Reply, Span, Turn, Understanding, span_dict
from empatheia.records.reply_schema import CandidateRecord, InferenceRecord, SpanRecord, TurnRecord, WeightsRecord
from empatheia.serve.messages import Conversation
from empatheia.serve.replies import CARE, TOOL_CALLS

VERSION = 1
_TOLD_ELSEWHERE = ("responder", "fallback", "told", TOOL_CALLS)


class PlacedSpan(SpanRecord):
    """Characters [start, end) of a turn, counted in Unicode code points (not in UTF-16 units)."""

    message: int = Field(ge=0, description="Index of the message in the request.")


class PlacedTurn(TurnRecord):
    """One utterance."""

    message: int = Field(ge=0, description="Index of the message in the request.")


class ToldCandidate(CandidateRecord):
    """A reply that might have been given, with the settings of its writing as they are."""

    decoding: dict[str, Any]  # pyright: ignore[reportIncompatibleVariableOverride]


class Spoke(BaseModel):
    """Who wrote the reply, and why that one."""

    model: str = Field(description="Which was asked.")
    responder: str = Field(description="Which of its responders wrote it; `care` for a safe reply, else the model.")
    decoding: dict[str, Any] = Field(description="How it was written.")
    why: str = Field(description="In words.")
    fallback: bool = Field(False, description="The bundled listener answered instead of the upstream model.")


class CareMark(BaseModel):
    """What the safety check found and did."""

    care: str = Field(description="`on` or `off`.")
    level: str | None = Field(None, description="`none`, `concern`, `crisis`; null where it is off.")
    about: str | None = None
    kinds: list[str] = Field(default_factory=list)
    done: list[str] = Field(default_factory=list, description="E.g. `replaced`: no model was asked.")
    uncertain: list[str] = Field(default_factory=list)
    failed: bool = False


class ChoiceMark(BaseModel):
    """Of each of several choices: who wrote it."""

    index: int
    spoke: Spoke
    care: CareMark | None = None


class Empathy(BaseModel):
    """Our side of an answer."""

    version: int = VERSION
    emotion: str | None = Field(description="The most probable of the 32; null if none is named.")
    emotion_from: str = Field(description="What found it; `given` if the caller set it; empty if there is none.")
    emotions: dict[str, float] = Field(description="Probability of each of the 32; all equal if none is named.")
    side: str | None = Field(description="`pleasant`, `unpleasant` or `mixed`; null where the model does not say.")
    sides: dict[str, float] = Field(description="Probability of each; empty where the model does not say.")
    causes: list[PlacedSpan] = Field(description="What caused it, best first.")
    words: list[PlacedSpan] = Field(description="Every word that was read, with its cause probability, in order.")
    targets: list[PlacedSpan] = Field(description="Words the reply should be about, best first.")
    inferences: list[InferenceRecord] = Field(description="What else is probably true.")
    intent: str | None = Field(description="Wanted of the reply, one of the 41; null if nothing named one.")
    intent_from: str
    intents: dict[str, float]
    candidates: list[ToldCandidate] = Field(description="Best first, with their terms; empty without `explain`.")
    weights: WeightsRecord | None = Field(description="Weight of each term; null without `explain`.")
    spoke: Spoke | None = Field(description="Of choice 0; null until there is a reply (first event of a stream).")
    choices: list[ChoiceMark] = Field(description="Of all choices, where there are several.")
    care: CareMark | None = Field(description="Result of the check for danger; null until there is a reply.")
    told: str | None = Field(description="Our analysis in a language model's prompt; null for other models.")
    turns: list[PlacedTurn] = Field(description="The turns that offsets refer to.")
    uncertain: list[str] = Field(description="Reasons to distrust this.")
    missing: dict[str, str] = Field(description="What had no model or could not be done, to the reason.")
    ignored: list[str] = Field(description="Request fields that were ignored.")
    notes: list[str] = Field(description="What was done differently than asked.")


def empathy_of(
    understanding: Understanding,
    asked: Conversation,
    replies: Sequence[tuple[Reply, str]] = (),
    ignored: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> dict[str, object]:
    """The object, JSON-ready.

    Args:
        understanding: What was perceived.
        asked: The request's messages.
        replies: Of each choice the reply and the model that was asked; none = nobody has spoken yet.
        ignored: Fields that had no say.
        notes: What was done differently than asked.
    """
    turns = asked.dialogue.turns
    first = replies[0][0] if replies else None
    why = None if first is None else first.explanation
    emotion_from = understanding.model if why is None else why.emotion_from
    return {
        "version": VERSION,
        "emotion": understanding.emotion if understanding.names_emotion else None,
        "emotion_from": emotion_from if understanding.names_emotion else "",
        "emotions": dict(understanding.emotions),
        "side": _best(understanding.sides),
        "sides": dict(understanding.sides),
        "causes": _placed(understanding.causes, turns, asked),
        "words": _placed(understanding.words, turns, asked),
        **_reasons(why, asked),
        "spoke": None if first is None else spoke(*replies[0]),
        "choices": [
            {"index": index, "spoke": spoke(reply, model), "care": _mark(reply)}
            for index, (reply, model) in enumerate(replies)
            if len(replies) > 1
        ],
        "care": None if first is None else _mark(first),
        "told": None if first is None else first.decoding.get("told"),
        "turns": [
            {"role": turn.role, "text": turn.text, "message": place}
            for turn, place in zip(turns, asked.places, strict=True)
        ],
        "uncertain": list(understanding.uncertain),
        "missing": {} if why is None else dict(why.missing),
        "ignored": list(ignored),
        "notes": list(notes),
    }


def _reasons(why: Explanation | None, asked: Conversation) -> dict[str, object]:
    """Why this reply: its targets, what was inferred and intended, the candidates; empty where nobody explained it."""
    if why is None:
        nothing: dict[str, object] = {"targets": [], "inferences": [], "intent": None, "intent_from": "", "intents": {}}
        return {**nothing, "candidates": [], "weights": None}
    return {
        "targets": _placed(why.targets, asked.dialogue.turns, asked),
        "inferences": [dict(one) for one in why.inferences],
        "intent": why.intent or None,
        "intent_from": why.intent_from,
        "intents": dict(why.intents),
        "candidates": [one.to_dict() for one in why.candidates],
        "weights": dict(why.weights),
    }


def spoke(reply: Reply, model: str) -> dict[str, object]:
    """Who wrote a reply and why that one was given."""
    decoding = {name: value for name, value in reply.decoding.items() if name not in _TOLD_ELSEWHERE}
    care: Mapping[str, Any] = reply.care or {}
    if reply.model == CARE:
        responder, why = CARE, f"the safety check answered ({care.get('level', 'failed')}); no model was asked"
    elif reply.decoding.get("fallback"):
        responder = str(reply.decoding.get("responder", reply.model))
        why = f"the upstream model did not answer: {reply.decoding.get('upstream', '')}"
    elif reply.explanation is not None and reply.explanation.candidates:
        n = len(reply.explanation.candidates)
        best = reply.explanation.candidates[0]
        responder = str(reply.decoding.get("responder", best.responder))
        why = f"best of {n} candidates, score {best.score:.3f}" if n > 1 else "the only candidate"
    else:
        responder = str(reply.decoding.get("responder", reply.model))
        why = "the model's own reply; no candidates were compared"
    is_fallback = bool(reply.decoding.get("fallback", False))
    return {"model": model, "responder": responder, "decoding": decoding, "why": why, "fallback": is_fallback}


def _mark(reply: Reply) -> dict[str, object] | None:
    return None if reply.care is None else dict(reply.care)


def _best(shares: Mapping[str, float]) -> str | None:
    return max(shares, key=lambda name: shares[name]) if shares else None


def _placed(spans: Sequence[Span], turns: Sequence[Turn], asked: Conversation) -> list[dict[str, object]]:
    return [{**span_dict(span, turns), "message": asked.places[span.turn]} for span in spans]
