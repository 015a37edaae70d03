"""Express: every voice writes candidates in every way, plain and focused; one sum of terms says which is given."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from empatheia.errors import ConfigError, DecodingError, EndpointError
from empatheia.listener.steps.answering import each_alone
from empatheia.listener.steps.history import read_by_responders
from empatheia.listener.steps.settings import ExpressSettings, MemorySettings
from empatheia.listener.steps.understand import Steps
from empatheia.listener.terms.term import Case, Row, Tools, all_terms, rounded, total
from empatheia.records.analysis import GIVEN, Analysis
from empatheia.records.dialogue import Dialogue, Span
from empatheia.records.reply import Candidate
from empatheia.registry import nearest
from empatheia.voices.decoding import DecodingSettings, FocusSettings
from empatheia.voices.voice import Contrast, Kit, Likelihood, Request, Scorer, Voice

REPLIES_OF = "replies of "
"""Begins the entries of ``missing`` that say why a responder gave none."""
_BLANKS = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Expressed:
    """Candidates of one conversation.

    Attributes:
        candidates: Best first; at least one.
        weights: Of the terms, 0 where a term is missing.
        missing: What could not be done, to the reason.
    """

    candidates: tuple[Candidate, ...]
    weights: Mapping[str, float]
    missing: Mapping[str, str]


@dataclass(slots=True)
class _Candidate:
    """A draft on its way to a candidate: every text once, with all who wrote it."""

    text: str
    voice: str
    way: dict[str, Any]
    also: list[str] = field(default_factory=list)
    scored: Likelihood | None = None
    terms: dict[str, float | None] = field(default_factory=dict)


class _Writing:
    """Collects what the voices write of several conversations.

    Args:
        requests: The conversations as voices read them.
        focus: Whether and how to focus.
        missing: Of each conversation: what could not be done, to the reason; filled.
    """

    def __init__(self, requests: Sequence[Request], focus: FocusSettings, missing: Sequence[dict[str, str]]) -> None:
        self.requests, self.focus, self.missing = requests, focus, missing
        self.candidates: list[dict[str, _Candidate]] = [{} for _ in requests]

    def write(self, voice: Voice, way: DecodingSettings, is_focused: bool) -> None:
        """Has a voice write in one way, of those conversations where that is wanted."""
        chosen = [i for i, one in enumerate(self.requests) if self._wants(voice, one, is_focused)]
        if not chosen:
            return
        propose = partial(voice.propose, way=way, focus=self.focus if is_focused else None)
        found = each_alone(propose, [self.requests[i] for i in chosen])
        for i, (replies, reason) in zip(chosen, found, strict=True):
            if reason:
                self.missing[i][REPLIES_OF + voice.name] = reason
            contrast = self.requests[i].contrast if is_focused else None
            for rank, draft in enumerate(replies or ()):
                _keep(self.candidates[i], draft.text, voice.name, _used(draft.way, rank, way, self.focus, contrast))

    def _wants(self, voice: Voice, one: Request, is_focused: bool) -> bool:
        if voice.traits.takes_targets:
            return not is_focused
        can = voice.traits.focusable and one.contrast is not None
        if is_focused:
            return can and self.focus.use != "off"
        return not can or self.focus.use != "on"


class Expression:
    """The fifth step.

    Args:
        settings: What to write and how to rank.
        memory: What responders read.
        voices: Who writes, in the order of the settings.
        steps: Whose intent and mechanism models rank.
        kit: What voices are lent.

    Raises:
        ConfigError: ``settings.scorer`` is no voice.
    """

    def __init__(
        self,
        settings: ExpressSettings,
        memory: MemorySettings,
        voices: Sequence[Voice],
        steps: Steps,
        kit: Kit,
    ) -> None:
        self.settings, self.memory, self.voices = settings, memory, list(voices)
        self.steps, self.kit = steps, kit
        self.scorer = self._scorer()
        self.terms = all_terms()

    def express(
        self, analyses: Sequence[Analysis], ways: Sequence[DecodingSettings], focus: FocusSettings
    ) -> list[Expressed]:
        """Ranked candidates for each conversation; the same alone or among others.

        Args:
            analyses: What was found, of what is read of the conversations.
            ways: Of writing.
            focus: Whether and how to focus.

        Raises:
            DecodingError: ``focus.strict`` and no distractor is possible; or no voice can write in any of the ways.
            EndpointError: Every responder is far away, and none gave an answer.
            EmpatheiaError: A model the settings name cannot be used.
        """
        self._check_focus(focus)
        missing: list[dict[str, str]] = [dict(one.missing) for one in analyses]
        contrasts = self._contrasts(analyses, focus, missing)
        requests = [self._request(*pair) for pair in zip(analyses, contrasts, strict=True)]
        candidates = self._written(requests, ways, focus, missing)
        weights = self._measured(analyses, requests, candidates, focus, missing)
        return [
            _ranked(rows, counted, one.contrast, said)
            for one, rows, counted, said in zip(requests, candidates, weights, missing, strict=True)
        ]

    def _check_focus(self, focus: FocusSettings) -> None:
        """Raises DecodingError where focus is demanded and no voice can give it."""
        if focus.use == "on" and not any(voice.traits.focusable or voice.traits.takes_targets for voice in self.voices):
            names = ", ".join(repr(voice.name) for voice in self.voices)
            raise DecodingError(
                f"focus needs probabilities, and {names} gives none. Answer without focus, or by a local model."
            )

    def _contrasts(
        self, analyses: Sequence[Analysis], focus: FocusSettings, missing: Sequence[dict[str, str]]
    ) -> Sequence[Contrast | None]:
        """What each conversation is told from; None where there is no focus, with the reason in ``missing``."""
        able = scorers(self.voices)
        if focus.use == "off" or not able:
            return [None] * len(analyses)
        contrasts, reasons = able[0].contrasts(analyses, focus, self.kit)
        for own, reason in zip(missing, reasons, strict=True):
            own |= {"focus": reason} if reason else {}
        return contrasts

    # -- writing -----------------------------------------------------------------------------------------------

    def _request(self, one: Analysis, contrast: Contrast | None) -> Request:
        dialogue = read_by_responders(one.dialogue, self.memory)
        contrast = None if contrast is None else contrast.at(len(dialogue.turns) - 1)
        return Request(dialogue, contrast, without(one, dialogue, len(one.dialogue.turns) - len(dialogue.turns)))

    def _written(
        self,
        requests: Sequence[Request],
        ways: Sequence[DecodingSettings],
        focus: FocusSettings,
        missing: Sequence[dict[str, str]],
    ) -> list[list[_Candidate]]:
        """Different texts of each conversation, in the order of voices, ways, plain before focused."""
        writing = _Writing(requests, focus, missing)
        for voice in self.voices:
            usable = voice.ways(ways)
            if len(usable) < len(ways):
                for own in missing:
                    own[f"ways of {voice.name}"] = f"it writes in {len(usable)} of the {len(ways)} ways."
            for way in usable:
                for is_focused in (False, True):
                    writing.write(voice, way, is_focused)
            if not voice.traits.focusable and focus.use != "off":
                for own in missing:
                    own.setdefault(f"focus of {voice.name}", voice.traits.unfocused)
        return [list(own.values()) for own in writing.candidates]

    # -- ranking -----------------------------------------------------------------------------------------------

    def _measured(
        self,
        analyses: Sequence[Analysis],
        requests: Sequence[Request],
        candidates: Sequence[Sequence[_Candidate]],
        focus: FocusSettings,
        missing: Sequence[dict[str, str]],
    ) -> list[dict[str, float]]:
        """Computes the terms of every candidate; the weights that count in each conversation."""
        cases = [
            Case(one, self._weights(one), request.contrast is not None, len(own))
            for one, request, own in zip(analyses, requests, candidates, strict=True)
        ]
        places = [(i, candidate) for i, own in enumerate(candidates) for candidate in own]
        if self.scorer is not None:
            texts = [candidate.text for _, candidate in places]
            scored = self.scorer.score([requests[i] for i, _ in places], texts, focus)
            for (_, candidate), own in zip(places, scored, strict=True):
                candidate.scored = own
        rows = [Row(cases[i], candidate.text, candidate.scored) for i, candidate in places]
        tools = Tools(self.steps, self.scorer, self.settings.min_words, self.settings.max_words)
        for term in self.terms:
            for (_, candidate), value in zip(places, term.values(rows, tools), strict=True):
                candidate.terms[term.name] = rounded(value)
        return [
            self._counting(case, own, reasons, tools)
            for case, own, reasons in zip(cases, candidates, missing, strict=True)
        ]

    def _weights(self, one: Analysis) -> dict[str, float]:
        """What each term counts; the intent by whether it was given or predicted."""
        weights = self.settings.weights.model_dump()
        predicted = weights.pop("predicted_intent")
        own = {term.name: float(weights.get(term.name, term.default)) for term in self.terms}
        return own if one.by.get("reaction") == GIVEN else own | {"intent": float(predicted)}

    def _counting(
        self, case: Case, candidates: Sequence[_Candidate], missing: dict[str, str], tools: Tools
    ) -> dict[str, float]:
        """The weights in one conversation: 0 where no candidate has the term, with the reason in ``missing``."""
        for term in self.terms:
            if all(candidate.terms[term.name] is None for candidate in candidates):
                why = term.missing(case, tools) or "no candidate has a word."
                missing[f"term {term.name}"] = f"{why} It counts 0."
        wanted = case.intent if case.is_intent_given else ""
        if wanted and "term intent" in missing and not any(voice.traits.reads_intent for voice in self.voices):
            missing["intent"] = f"{wanted!r} changes nothing: no responder is told, and term `intent` counts 0."
        return {term.name: 0.0 if f"term {term.name}" in missing else case.weights[term.name] for term in self.terms}

    def _scorer(self) -> Scorer | None:
        able = scorers(self.voices)
        name = self.settings.scorer
        if name is None:
            return able[0] if able else None
        for voice in able:
            if name in (voice.name, voice.place):
                return voice
        known = [voice.place for voice in able]
        raise ConfigError(
            f"express.scorer: no responder {name!r} that gives probabilities.{nearest(name, known)}"
            f" Accepted: {', '.join(known) or 'none of those named can'}."
        )


def scorers(voices: Sequence[Voice]) -> list[Scorer]:
    """The voices that can be focused and score replies."""
    return [voice for voice in voices if voice.traits.focusable and isinstance(voice, Scorer)]


def _ranked(
    candidates: Sequence[_Candidate],
    weights: Mapping[str, float],
    contrast: Contrast | None,
    missing: Mapping[str, str],
) -> Expressed:
    """The candidates of one conversation in order, empty ones last; raises where there is none."""
    if not candidates:
        reasons = [reason for what, reason in missing.items() if what.startswith(REPLIES_OF)]
        if reasons:
            raise EndpointError(f"there is no reply: {' '.join(reasons)}")
        raise DecodingError("no responder can write in any of the ways; a served model accepts greedy and sample.")
    places = range(len(candidates))
    order = sorted(places, key=lambda i: (not candidates[i].text.strip(), -total(candidates[i].terms, weights), i))
    facts = {} if contrast is None else {"worlds": contrast.texts, "distractors": contrast.kind}
    return Expressed(tuple(_candidate(candidates[i], weights, facts) for i in order), weights, missing)


def without(analysis: Analysis, dialogue: Dialogue, n: int) -> Analysis:
    """An analysis in the terms of what is left of its conversation without ``n`` turns in front."""
    if not n:
        return analysis

    def kept(spans: Sequence[Span]) -> tuple[Span, ...]:
        return tuple(replace(span, turn=span.turn - n) for span in spans if span.turn >= n)

    turns = tuple(
        replace(one, turn=one.turn - n, causes=kept(one.causes), words=kept(one.words)) for one in analysis.turns
    )
    return replace(analysis, dialogue=dialogue, turns=turns, targets=kept(analysis.targets))


def reply_key(text: str) -> str:
    """What two replies that differ in letter case and blanks alone have in common."""
    return _BLANKS.sub(" ", text).strip().lower()


def _keep(candidates: dict[str, _Candidate], text: str, voice: str, way: dict[str, Any]) -> None:
    """A text that is there already keeps its first writer; upper case and blanks make no difference."""
    key = reply_key(text)
    if key not in candidates:
        candidates[key] = _Candidate(text, voice, way)
        return
    how = ", ".join(f"{name} {value}" for name, value in way.items() if name != "focus")
    candidates[key].also.append(f"{voice}: {how}" + (", focused" if "focus" in way else ""))


def _used(
    draft_way: Mapping[str, Any], rank: int, way: DecodingSettings, focus: FocusSettings, contrast: Contrast | None
) -> dict[str, Any]:
    used = {**draft_way, **({"rank": rank + 1} if way.strategy == "beam" and way.n > 1 else {})}
    if contrast is not None:
        used["focus"] = {
            "alpha": focus.alpha,
            "beta": focus.beta,
            "prior": focus.prior,
            "worlds": len(contrast.texts),
            "distractors": contrast.kind,
        }
    return used


def _candidate(one: _Candidate, weights: Mapping[str, float], facts: Mapping[str, Any]) -> Candidate:
    facts = {**facts, **({"belief": belief} if (belief := _belief(one.scored)) else {})}
    return Candidate(one.text, one.voice, one.way, one.terms, total(one.terms, weights), tuple(one.also), facts)


def _belief(scored: Likelihood | None) -> tuple[tuple[str, float], ...]:
    if scored is None or not scored.belief:
        return ()
    return tuple(zip(("", *scored.pieces), (round(value, 6) for value in scored.belief), strict=True))
