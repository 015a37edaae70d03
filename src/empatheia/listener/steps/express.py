"""Express: every voice writes candidates in every way, plain and focused; one sum of terms says which is given."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from empatheia.analysis import Inference
from empatheia.decoding.distractors import Contrast
from empatheia.dialogue import Candidate
from empatheia.errors import ConfigError, DecodingError, EndpointError
from empatheia.listener.steps import terms
from empatheia.listener.steps.answering import each_alone
from empatheia.listener.steps.contrast import Contrasts, moved, read_by_responders
from empatheia.listener.steps.settings import DecodingSettings, ExpressSettings, FocusSettings, MemorySettings
from empatheia.listener.steps.understand import Steps
from empatheia.listener.steps.understood import GIVEN, Understood
from empatheia.listener.steps.voices import Asked, Heard, Voice
from empatheia.registry import nearest
from empatheia.taxonomy import RELATION_TITLES
from empatheia.text.prompts import Hints

REPLIES_OF = "replies of "
"""Begins the entries of ``missing`` that say why a responder gave none."""
_BLANKS = re.compile(r"\s+")
_UNFOCUSED = {
    False: "it gives no probabilities, so it answers without focus.",
    True: "it gives no probabilities; it says back what holds the words in place of that.",
}


@dataclass(slots=True)
class Expressed:
    """Candidates of one conversation.

    Attributes:
        candidates: Best first; at least one.
        weights: Of the terms, 0 where a term is missing.
        contrast: What the turn was told from; None without focus.
        belief: Piece by piece in the first candidate.
        missing: What could not be done, to the reason.
    """

    candidates: tuple[Candidate, ...]
    weights: Mapping[str, float]
    contrast: Contrast | None
    belief: tuple[tuple[str, float], ...]
    missing: Mapping[str, str]


@dataclass(slots=True)
class _Draft:
    """A text on its way to a candidate."""

    text: str
    responder: str
    decoding: dict[str, Any]
    also: list[str] = field(default_factory=list)
    terms: dict[str, float | None] = field(default_factory=dict)
    heard: Heard | None = None


class Expression:
    """The fifth step.

    Args:
        settings: What to write and how to rank.
        memory: What responders read.
        voices: Who writes, in the order of the settings.
        steps: Whose intent and mechanism models rank.
        contrasts: Makes distractors.

    Raises:
        ConfigError: ``settings.scorer`` is no voice.
    """

    def __init__(
        self,
        settings: ExpressSettings,
        memory: MemorySettings,
        voices: Sequence[Voice],
        steps: Steps,
        contrasts: Contrasts,
    ) -> None:
        self.settings, self.memory, self.voices = settings, memory, list(voices)
        self.steps, self.contrasts = steps, contrasts
        self.scorer = self._scorer()

    def express(
        self, understood: Sequence[Understood], ways: Sequence[DecodingSettings], focus: FocusSettings
    ) -> list[Expressed]:
        """Ranked candidates for each conversation; the same alone or among others.

        Args:
            understood: What the steps before found.
            ways: Of writing.
            focus: Whether and how to focus.

        Raises:
            DecodingError: ``focus.strict`` and no distractor is possible; or no voice can write in any of the ways.
            EndpointError: Every responder is far away, and none gave an answer.
            EmpatheiaError: A model the settings name cannot be used.
        """
        can_focus = any(voice.can_focus for voice in self.voices)
        takes_up = any(voice.takes_up_targets for voice in self.voices)
        if focus.use == "on" and not can_focus and not takes_up:
            names = ", ".join(repr(voice.name) for voice in self.voices)
            raise DecodingError(
                f"focus needs probabilities, and {names} gives none. Answer without focus, or by a local model."
            )
        missing: list[dict[str, str]] = [dict(one.missing) for one in understood]
        contrasts: list[Contrast | None] = [None] * len(understood)
        if focus.use != "off" and can_focus:
            contrasts, reasons = self.contrasts.make(understood, focus)
            for own, reason in zip(missing, reasons, strict=True):
                own |= {"focus": reason} if reason else {}
        asked = [self._asked(*pair) for pair in zip(understood, contrasts, strict=True)]
        drafts = self._written(asked, ways, focus, missing)
        weights = self._measured(understood, asked, drafts, focus, missing)
        out = []
        for one, rows, counted, said in zip(asked, drafts, weights, missing, strict=True):
            if not rows:
                reasons = [reason for what, reason in said.items() if what.startswith(REPLIES_OF)]
                if reasons:
                    raise EndpointError(f"there is no reply: {' '.join(reasons)}")
                raise DecodingError(
                    "no responder can write in any of the ways; a served model accepts greedy and sample."
                )
            order = sorted(
                range(len(rows)), key=lambda i: (not rows[i].text.strip(), -terms.total(rows[i].terms, counted), i)
            )
            best = rows[order[0]]
            out.append(
                Expressed(
                    candidates=tuple(_candidate(rows[i], counted) for i in order),
                    weights=counted,
                    contrast=one.contrast,
                    belief=_belief(best.heard),
                    missing=said,
                )
            )
        return out

    # -- writing -----------------------------------------------------------------------------------------------

    def _asked(self, one: Understood, contrast: Contrast | None) -> Asked:
        dialogue = read_by_responders(one.dialogue, self.memory)
        words = () if one.targets is None else one.targets.words
        return Asked(
            dialogue,
            moved(contrast, len(dialogue.turns) - 1),
            Hints(one.emotion, tuple(words), one.intent, inferred(one.inferences)),
            one.intent,
            one.perceived(len(one.dialogue.turns) - len(dialogue.turns)),
        )

    def _written(
        self,
        asked: Sequence[Asked],
        ways: Sequence[DecodingSettings],
        focus: FocusSettings,
        missing: Sequence[dict[str, str]],
    ) -> list[list[_Draft]]:
        """Different texts of each conversation, in the order of voices, ways, plain before focused."""
        drafts: list[dict[str, _Draft]] = [{} for _ in asked]
        for voice in self.voices:
            usable = voice.ways(ways)
            if len(usable) < len(ways):
                for own in missing:
                    own[f"ways of {voice.name}"] = f"it writes in {len(usable)} of the {len(ways)} ways."
            for way in usable:
                for is_focused in (False, True):
                    chosen = [i for i, one in enumerate(asked) if self._wants(voice, one, focus, is_focused)]
                    if not chosen:
                        continue
                    speak = partial(voice.speak, way=way, focus=focus if is_focused else None)
                    found = each_alone(speak, [asked[i] for i in chosen])
                    for i, (replies, reason) in zip(chosen, found, strict=True):
                        if reason:
                            missing[i][REPLIES_OF + voice.name] = reason
                        for rank, (text, decoding) in enumerate(replies or ()):
                            contrast = asked[i].contrast if is_focused else None
                            _keep(drafts[i], text, voice.name, _told(decoding, rank, way, focus, contrast))
            if not voice.can_focus and focus.use != "off":
                for own in missing:
                    own.setdefault(f"focus of {voice.name}", _UNFOCUSED[voice.takes_up_targets])
        return [list(own.values()) for own in drafts]

    @staticmethod
    def _wants(voice: Voice, one: Asked, focus: FocusSettings, is_focused: bool) -> bool:
        if voice.takes_up_targets:
            return not is_focused
        can = voice.can_focus and one.contrast is not None
        if is_focused:
            return can and focus.use != "off"
        return not can or focus.use != "on"

    # -- ranking -----------------------------------------------------------------------------------------------

    def _measured(
        self,
        understood: Sequence[Understood],
        asked: Sequence[Asked],
        drafts: Sequence[Sequence[_Draft]],
        focus: FocusSettings,
        missing: Sequence[dict[str, str]],
    ) -> list[dict[str, float]]:
        """Computes the terms of every draft; the weights that count in each conversation."""
        rows = [(i, draft) for i, own in enumerate(drafts) for draft in own]
        reasons: dict[str, str] = {}
        weights = self.settings.weights.model_dump()
        predicted = {"intent": weights.pop("predicted_intent")}
        counted = [weights | ({} if one.intent_from == GIVEN else predicted) for one in understood]
        if self.scorer is None:
            reasons |= dict.fromkeys(("likelihood", "listener"), "no responder in this process gives probabilities.")
        else:
            heard = self.scorer.score([asked[i] for i, _ in rows], [draft.text for _, draft in rows], focus)
            for (_, draft), own in zip(rows, heard, strict=True):
                draft.heard = own
        self._by_models(understood, rows, counted, reasons)
        self._by_side(understood, rows, counted)
        for i, draft in rows:
            one = understood[i]
            words = one.targets.words if one.targets else ()
            earlier = [turn.text for turn in one.dialogue.turns if turn.role == "listener"]
            draft.terms["coverage"] = terms.coverage(draft.text, words)
            draft.terms["knowledge"] = terms.knowledge(draft.text, one.inferences)
            draft.terms["diversity"] = terms.diversity(draft.text, earlier)
            draft.terms["length"] = terms.length(draft.text, self.settings.min_words, self.settings.max_words)
            if draft.heard is not None:
                draft.terms["likelihood"] = draft.heard.likelihood
                if draft.heard.belief:
                    draft.terms["listener"] = _log(draft.heard.belief[-1])
            draft.terms = {name: terms.rounded(draft.terms.get(name)) for name in terms.TERMS}
        out = []
        for one, own_asked, own, said, weighed in zip(understood, asked, drafts, missing, counted, strict=True):
            why = reasons | _uncounted(one, own_asked, weighed, reasons)
            for name in terms.TERMS:
                if all(draft.terms[name] is None for draft in own):
                    said[f"term {name}"] = f"{why.get(name, 'no candidate has a word.')} It counts 0."
            wants = one.intent if one.intent_from == GIVEN else ""
            if wants and "term intent" in said and not any(voice.reads_intent for voice in self.voices):
                said["intent"] = f"{wants!r} changes nothing: no responder is told, and term `intent` counts 0."
            out.append({n: 0.0 if f"term {n}" in said else float(weighed[n]) for n in terms.TERMS})
        return out

    def _by_models(
        self,
        understood: Sequence[Understood],
        rows: Sequence[tuple[int, _Draft]],
        weights: Sequence[Mapping[str, float]],
        reasons: dict[str, str],
    ) -> None:
        """The terms ``mechanism`` and ``intent`` of replies that have a word; no model is loaded for a weight of 0."""
        spoken = [(understood[i], draft) for i, draft in rows if draft.text.strip() and weights[i]["mechanism"]]
        levels = self._by_component("mechanism", "mechanisms", spoken, reasons)
        if levels is not None:
            found = terms.mechanisms(levels, [o.dialogue.turns[-1] for o, _ in spoken], [d.text for _, d in spoken])
            for (_, draft), value in zip(spoken, found, strict=True):
                draft.terms["mechanism"] = value
        wanting = [(i, draft) for i, draft in rows if understood[i].intent and weights[i]["intent"]]
        spoken = [(understood[i], draft) for i, draft in wanting if draft.text.strip()]
        labels = self._by_component("intent", "intent", spoken, reasons)
        if labels is not None:
            turns, wanted = [one.dialogue.turns[-1] for one, _ in spoken], [one.intent for one, _ in spoken]
            found = terms.intents(labels, turns, [draft.text for _, draft in spoken], wanted)
            for (_, draft), value in zip(spoken, found, strict=True):
                draft.terms["intent"] = value

    def _by_side(
        self,
        understood: Sequence[Understood],
        rows: Sequence[tuple[int, _Draft]],
        weights: Sequence[Mapping[str, float]],
    ) -> None:
        """The term ``side``: whether a reply is glad or grave where the speaker is; one that is alone needs none."""
        several = {i for i, n in Counter(i for i, _ in rows).items() if n > 1}
        chosen = [(i, d) for i, d in rows if i in several and d.text.strip() and weights[i]["side"]]
        said = self.steps.sides_of([draft.text for _, draft in chosen]) if chosen else []
        for (i, draft), sides in zip(chosen, said or (), strict=said is not None):
            draft.terms["side"] = terms.side(understood[i].sides, sides)

    def _by_component(self, term: str, part: str, measured: Sequence[Any], reasons: dict[str, str]) -> Any:
        """The model a term needs; None where nothing is measured by it or it is not here."""
        if not measured:
            return None
        component = self.steps.component(part)
        if component is None:
            reasons[term] = self.steps.reason(part)
        return component

    def _scorer(self) -> Voice | None:
        able = [voice for voice in self.voices if voice.can_focus]
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


def _uncounted(one: Understood, asked: Asked, weights: Mapping[str, float], known: Mapping[str, str]) -> dict[str, str]:
    """Term to the reason why it counts nothing in this conversation; what is ``known`` of all comes first."""
    why = {}
    if asked.contrast is None:
        why["listener"] = known.get("listener", "there are no distractors to tell the true context from.")
    if not (one.targets and one.targets.words):
        why["coverage"] = "there is no target word."
    if not any(inference.tails for inference in one.inferences):
        why["knowledge"] = "nothing was inferred."
    if not weights["mechanism"]:
        why["mechanism"] = "its weight is 0."
    if not one.sides:
        why["side"] = "no perception says how pleasant it is (empatheia models get listener)."
    else:
        why["side"] = "there is one candidate." if weights["side"] else "its weight is 0."
    if not one.intent:
        why["intent"] = "no intent is wanted of the reply."
    elif not weights["intent"]:
        is_given = one.intent_from == GIVEN
        why["intent"] = "its weight is 0." if is_given else "`predicted_intent`, its weight for a predicted one, is 0."
    return why


def inferred(inferences: Sequence[Inference]) -> tuple[str, ...]:
    """Inferences as a language model is told of them.

    >>> inferred([Inference(0, "xReact", ("sad", "lonely")), Inference(0, "xWant", (), absent="no near event")])
    ('feels sad, lonely',)
    """
    return tuple(f"{RELATION_TITLES[one.relation]} {', '.join(one.tails)}" for one in inferences if one.tails)


def _keep(drafts: dict[str, _Draft], text: str, responder: str, decoding: dict[str, Any]) -> None:
    """A text that is there already keeps its first writer; upper case and blanks make no difference."""
    key = _BLANKS.sub(" ", text).strip().lower()
    if key not in drafts:
        drafts[key] = _Draft(text, responder, decoding)
        return
    how = ", ".join(f"{name} {value}" for name, value in decoding.items() if name != "focus")
    drafts[key].also.append(f"{responder}: {how}" + (", focused" if "focus" in decoding else ""))


def _told(
    decoding: Mapping[str, Any], rank: int, way: DecodingSettings, focus: FocusSettings, contrast: Contrast | None
) -> dict[str, Any]:
    told = {**decoding, **({"rank": rank + 1} if way.strategy == "beam" and way.n > 1 else {})}
    if contrast is not None:
        told["focus"] = {
            "alpha": focus.alpha,
            "beta": focus.beta,
            "prior": focus.prior,
            "worlds": len(contrast.texts),
            "distractors": contrast.kind,
        }
    return told


def _candidate(draft: _Draft, weights: Mapping[str, float]) -> Candidate:
    score = terms.total(draft.terms, weights)
    return Candidate(draft.text, draft.responder, draft.decoding, draft.terms, score, tuple(draft.also))


def _belief(heard: Heard | None) -> tuple[tuple[str, float], ...]:
    if heard is None or not heard.belief:
        return ()
    return tuple(zip(("", *heard.pieces), (round(value, 6) for value in heard.belief), strict=True))


def _log(value: float) -> float:
    return math.log(max(value, 1e-12))
