"""What a listener answers, what it rests on, and what might have been said instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

from empatheia.reading import Json
from empatheia.records.analysis import EVEN, GIVEN, Analysis, Inference
from empatheia.records.dialogue import html_table, span_dict


def inference_dict(one: Inference) -> dict[str, Json]:
    """What else is plausibly true, as beside a reply: JSON-ready, without scores."""
    return {"relation": one.relation, "tails": list(one.tails), "absent": one.absent}


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
        facts: ``worlds``: the newest turn as said, then the distractors it was told from, whose kind is
            ``distractors``; ``belief``: pieces of the reply, each with the listener's belief in the true world after
            it, in [0, 1]; it begins with an empty piece and the belief before anything is said. Empty without
            distractors.
    """

    text: str
    responder: str
    decoding: Mapping[str, Any]
    terms: Mapping[str, float | None]
    score: float
    also: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

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
class Reply:
    """A listener's answer and what it rests on.

    Attributes:
        text: The reply, detokenised.
        analysis: What was perceived before it was written.
        model: Name of the model.
        decoding: The generation settings that made it (strategy, seed, limits).
        candidates: Best first, the first is the reply; empty where nobody asked for them, or none were compared.
        weights: Of the terms of a score, those of missing terms 0.
        care: What the check in front of the answer found and did, see :mod:`empatheia.care`; None = there was none.
    """

    text: str
    analysis: Analysis
    model: str = ""
    decoding: Mapping[str, Json] = field(default_factory=dict)
    candidates: tuple[Candidate, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    care: Mapping[str, Json] | None = None

    def __repr__(self) -> str:
        return f"Reply({self.text!r}; by {self.model or 'no model'}; to {self.analysis!r})"

    def _repr_html_(self) -> str:
        """A notebook's view: what was perceived, then the reply."""
        return html_table([*self.analysis.html_rows(), ("reply", f"<b>{escape(self.text)}</b>")])

    @property
    def worlds(self) -> tuple[str, ...]:
        """The newest turn as said, and the distractors it was to be told from; empty without focus."""
        return self._facts.get("worlds", ())

    @property
    def distractors(self) -> str:
        """What made the distractors."""
        return self._facts.get("distractors", "")

    @property
    def belief(self) -> tuple[tuple[str, float], ...]:
        """Pieces of the reply with the belief in the true world; see :class:`Candidate`."""
        return self._facts.get("belief", ())

    @property
    def _facts(self) -> Mapping[str, Any]:
        return self.candidates[0].facts if self.candidates else {}

    def to_dict(self) -> dict[str, Json]:
        """Plain JSON-ready data, as ``reply.schema.json`` says; ``explanation`` and ``care`` if there."""
        out: dict[str, Json] = {
            "reply": self.text,
            "understanding": self.analysis.to_dict(),
            "model": self.model,
            "decoding": dict(self.decoding),
        }
        if self.candidates:
            out["explanation"] = self._reasons()
        return out if self.care is None else {**out, "care": dict(self.care)}

    def _reasons(self) -> dict[str, Json]:
        analysis, newest = self.analysis, self.analysis.newest
        reaction = newest.reaction
        return {
            "emotion": None if newest.emotion is None else newest.emotion.label,
            "emotion_from": analysis.by.get("emotion", ""),
            "emotions": dict(newest.emotions),
            "prior": dict(analysis.prior or EVEN),
            "targets": [span_dict(span, analysis.dialogue.turns) for span in analysis.targets],
            "targets_from": analysis.by.get("targets", ""),
            "worlds": list(self.worlds),
            "distractors_from": self.distractors,
            "inferences": [inference_dict(one) for one in newest.inferences],
            "intent": None if reaction is None else reaction.label,
            "intent_from": analysis.by.get("reaction", ""),
            "intents": {} if reaction is None or reaction.by == GIVEN else dict(reaction.probabilities),
            "candidates": [candidate.to_dict() for candidate in self.candidates],
            "weights": dict(self.weights),
            "belief": [{"piece": piece, "true_world": value} for piece, value in self.belief],
            "missing": dict(analysis.missing),
        }
