"""The ``empathy`` object of an answer: what was perceived, why this reply, who spoke. ``docs/design/0003-serve.md``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Field

from empatheia.records.analysis import FROM_SIDE, GIVEN, Analysis
from empatheia.records.dialogue import Span, Turn, span_dict
from empatheia.records.reply import Reply, inference_dict
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
    analysis: Analysis,
    asked: Conversation,
    replies: Sequence[tuple[Reply, str]] = (),
    ignored: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> dict[str, object]:
    """The object, JSON-ready.

    Args:
        analysis: What was perceived.
        asked: The request's messages.
        replies: Of each choice the reply and the model that was asked; none = nobody has spoken yet.
        ignored: Fields that had no say.
        notes: What was done differently than asked.
    """
    turns = asked.dialogue.turns
    first = replies[0][0] if replies else None
    newest = analysis.newest
    return {
        "version": VERSION,
        "emotion": None if newest.emotion is None else newest.emotion.label,
        "emotion_from": "" if newest.emotion is None else analysis.by.get("emotion", ""),
        "emotions": dict(newest.emotions),
        "side": None if newest.side is None else newest.side.label,
        "sides": dict(newest.sides),
        "causes": _placed(newest.causes, turns, asked),
        "words": _placed(newest.words, turns, asked),
        **_reasons(first, asked),
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
        "uncertain": list(analysis.unsure),
        "missing": {} if first is None else dict(first.analysis.missing),
        "ignored": list(ignored),
        "notes": list(notes),
    }


def _reasons(reply: Reply | None, asked: Conversation) -> dict[str, object]:
    """Why this reply: its targets, what was inferred and intended, the candidates; empty where nothing was compared."""
    if reply is None:
        nothing: dict[str, object] = {"targets": [], "inferences": [], "intent": None, "intent_from": "", "intents": {}}
        return {**nothing, "candidates": [], "weights": None}
    analysis, newest = reply.analysis, reply.analysis.newest
    reaction = newest.reaction
    is_found = reaction is not None and reaction.by not in (GIVEN, FROM_SIDE)
    return {
        "targets": _placed(analysis.targets, asked.dialogue.turns, asked),
        "inferences": [inference_dict(one) for one in newest.inferences],
        "intent": None if reaction is None else reaction.label,
        "intent_from": analysis.by.get("reaction", ""),
        "intents": dict(reaction.probabilities) if reaction is not None and is_found else {},
        "candidates": [one.to_dict() for one in reply.candidates],
        "weights": dict(reply.weights) or None,
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
    elif reply.candidates:
        n, best = len(reply.candidates), reply.candidates[0]
        responder = str(reply.decoding.get("responder", best.responder))
        why = f"best of {n} candidates, score {best.score:.3f}" if n > 1 else "the only candidate"
    else:
        responder = str(reply.decoding.get("responder", reply.model))
        why = "the model's own reply; no candidates were compared"
    is_fallback = bool(reply.decoding.get("fallback", False))
    return {"model": model, "responder": responder, "decoding": decoding, "why": why, "fallback": is_fallback}


def _mark(reply: Reply) -> dict[str, object] | None:
    return None if reply.care is None else dict(reply.care)


def _placed(spans: Sequence[Span], turns: Sequence[Turn], asked: Conversation) -> list[dict[str, object]]:
    return [{**span_dict(span, turns), "message": asked.places[span.turn]} for span in spans]
