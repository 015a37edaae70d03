"""The form of ``respond --json``, checked and written as JSON Schema (``reply.schema.json`` beside this file).

``python -m empatheia.records.reply_schema`` writes the file anew after a change here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from empatheia.reading import Json
from empatheia.settings import Strict

SCHEMA = Path(__file__).with_name("reply.schema.json")


class TurnRecord(Strict):
    """One utterance."""

    role: Literal["speaker", "listener"]
    text: str


class SpanRecord(Strict):
    """Characters [start, end) of a turn (0-based)."""

    turn: int = Field(ge=0)
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    text: str = Field(description="What it covers.")
    score: float | None = Field(description="Of the model that found it; null if it gives none.")


class UnderstandingRecord(Strict):
    """What the speaker feels and why."""

    emotion: str | None = Field(description="The most probable of the 32; null if the system names no emotion.")
    emotions: dict[str, float] = Field(description="Probability of each of the 32; all equal if none is named.")
    sides: dict[str, float] = Field(
        default_factory=dict,
        exclude_if=lambda sides: not sides,
        description="Probability of pleasant, unpleasant, mixed; left out where nothing says.",
    )
    causes: list[SpanRecord] = Field(description="Best first.")
    words: list[SpanRecord] = Field(description="Words with their cause probability, in reading order.")
    turns: list[TurnRecord]
    uncertain: list[str] = Field(description="Reasons to distrust this answer.")
    model: str


class FocusRecord(Strict):
    """How a candidate was focused."""

    alpha: float = Field(ge=0)
    beta: float = Field(ge=0)
    prior: Literal["L0", "uniform", "L1"]
    worlds: int = Field(ge=2)
    distractors: str


class WayRecord(BaseModel):
    """How a candidate was written; `focus` where it was focused."""

    model_config = ConfigDict(extra="allow", frozen=True)

    strategy: str = Field(description="`greedy`, `beam`, `sample`, `retrieve`; `own` of other listeners.")
    max_new_tokens: int | None = Field(None, ge=1, description="Null where nothing is generated.")
    rank: int = Field(1, ge=1, description="Among the best beams.")
    focus: FocusRecord | None = None


class InferenceRecord(Strict):
    """What is plausibly true besides what was said; language models are told of it, and candidates are ranked by it."""

    relation: str
    tails: list[str] = Field(description="Best first.")
    absent: str = Field(description="Why there are none, else empty.")


class TermsRecord(Strict):
    """Terms of a score; null where one could not be computed."""

    likelihood: float | None = Field(le=0, description="Mean log-probability of a piece, nats.")
    listener: float | None = Field(le=0, description="Log belief in the true context after the reply, nats.")
    coverage: float | None = Field(ge=0, le=1, description="Share of the target words taken up.")
    knowledge: float | None = Field(ge=0, le=1, description="Share of the inferred relations taken up.")
    intent: float | None = Field(le=0, description="Log-probability of the wanted intent given the reply, nats.")
    mechanism: float | None = Field(ge=0, le=2, description="Expected level of EPITOME's mechanisms.")
    side: float | None = Field(le=0, description="Log-probability that it is on the side of what is felt, nats.")
    information: float | None = Field(description="What the conversation adds to the log-probability of a piece, nats.")
    contradiction: float | None = Field(
        ge=-1, le=0, description="Minus the share of its statements that say the opposite of what the speaker said."
    )
    diversity: float | None = Field(ge=-1, le=0, description="Minus the share that was said before, there or in it.")
    length: float | None = Field(le=0, description="Minus the share by which the bounds are missed.")


class WeightsRecord(Strict):
    """What each term counts; 0 where it is missing."""

    likelihood: float
    listener: float
    coverage: float
    knowledge: float
    intent: float
    mechanism: float
    side: float
    information: float
    contradiction: float
    diversity: float
    length: float


class CandidateRecord(Strict):
    """A reply that might have been given."""

    text: str
    responder: str
    decoding: WayRecord
    terms: TermsRecord
    score: float = Field(description="Sum of weight times term.")
    also: list[str] = Field(description="Other ways that gave the same text.")


class BeliefRecord(Strict):
    """The imagined listener after one piece of the reply."""

    piece: str
    true_world: float = Field(ge=0, le=1, description="Belief in the true context.")


class ExplanationRecord(Strict):
    """Why this reply."""

    emotion: str | None
    emotion_from: str = Field(description="What found it, `given`, or empty.")
    emotions: dict[str, float] = Field(description="Posterior at the newest speaker turn.")
    prior: dict[str, float] = Field(description="Belief carried over from earlier turns.")
    targets: list[SpanRecord] = Field(description="Words the reply should be about, best first.")
    targets_from: str
    worlds: list[str] = Field(description="The newest speaker turn as said, then the distractors.")
    distractors_from: str
    inferences: list[InferenceRecord]
    intent: str | None = Field(description="Wanted of the reply, one of the 41.")
    intent_from: str
    intents: dict[str, float] = Field(description="Empty if given or unknown.")
    candidates: list[CandidateRecord] = Field(min_length=1, description="Best first; the first is the reply.")
    weights: WeightsRecord
    belief: list[BeliefRecord] = Field(description="By piece; begins before the first. Empty without distractors.")
    missing: dict[str, str] = Field(description="What could not be done, to the reason and the remedy.")


class CareRecord(Strict):
    """What the check in front of the answer found and did; only `care` with `--no-care`."""

    care: Literal["on", "off"]
    level: Literal["none", "concern", "crisis"] | None = None
    about: str | None = Field(None, description="`self`, `other`, `past`, `fiction` or `unclear`.")
    kinds: list[str] = Field(default_factory=list, description="Of danger, the surest first.")
    uncertain: list[str] = Field(default_factory=list, description="Why the check may have misread.")
    failed: bool = Field(False, description="The detector failed, so the safe reply was given.")
    done: list[str] = Field(default_factory=list, description="E.g. `replaced`, `followed`.")


class ReplyRecord(Strict):
    """A reply of `empatheia respond --json`; `explanation` is there with `--explain` alone."""

    model_config = ConfigDict(title="empatheia reply")

    reply: str
    understanding: UnderstandingRecord
    model: str
    decoding: dict[str, Any] = Field(description="Settings of the writing, and what the responder adds.")
    explanation: ExplanationRecord | None = None
    care: CareRecord | None = None


def schema() -> dict[str, Json]:
    """The JSON Schema (draft 2020-12)."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **ReplyRecord.model_json_schema()}


if __name__ == "__main__":
    SCHEMA.write_text(json.dumps(schema(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
