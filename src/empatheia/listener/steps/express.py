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
from empatheia.dialogue import Candidate, Dialogue, Turn
from empatheia.errors import ConfigError, DecodingError, EndpointError
from empatheia.giving_way import give_way
from empatheia.listener.steps import terms
from empatheia.listener.steps.answering import each_alone
from empatheia.listener.steps.contrast import Contrasts, moved, read_by_responders
from empatheia.listener.steps.settings import DecodingSettings, ExpressSettings, FocusSettings, MemorySettings
from empatheia.listener.steps.understand import Steps
from empatheia.listener.steps.understood import GIVEN, Understood
from empatheia.listener.steps.voices import Asked, Heard, Voice
from empatheia.registry import nearest
from empatheia.taxonomy import RELATION_TITLES
from empatheia.text.prompts import Hints, cause_texts

REPLIES_OF = "replies of "
"""Begins the entries of ``missing`` that say why a responder gave none."""
_GREETED = Asked(Dialogue("", (Turn("speaker", "Hello."),)))
"""What says nothing: the term ``information`` compares with it."""
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


class _Writing:
    """Collects what the voices write of several conversations.

    Args:
        asked: The conversations as voices read them.
        focus: Whether and how to focus.
        missing: Of each conversation: what could not be done, to the reason; filled.
    """

    def __init__(self, asked: Sequence[Asked], focus: FocusSettings, missing: Sequence[dict[str, str]]) -> None:
        self.asked, self.focus, self.missing = asked, focus, missing
        self.drafts: list[dict[str, _Draft]] = [{} for _ in asked]

    def write(self, voice: Voice, way: DecodingSettings, is_focused: bool) -> None:
        """Has a voice write in one way, of those conversations where that is wanted."""
        chosen = [i for i, one in enumerate(self.asked) if self._wants(voice, one, is_focused)]
        if not chosen:
            return
        speak = partial(voice.speak, way=way, focus=self.focus if is_focused else None)
        found = each_alone(speak, [self.asked[i] for i in chosen])
        for i, (replies, reason) in zip(chosen, found, strict=True):
            if reason:
                self.missing[i][REPLIES_OF + voice.name] = reason
            contrast = self.asked[i].contrast if is_focused else None
            for rank, (text, decoding) in enumerate(replies or ()):
                _keep(self.drafts[i], text, voice.name, _told(decoding, rank, way, self.focus, contrast))

    def _wants(self, voice: Voice, one: Asked, is_focused: bool) -> bool:
        if voice.takes_up_targets:
            return not is_focused
        can = voice.can_focus and one.contrast is not None
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
        self._check_focus(focus)
        missing: list[dict[str, str]] = [dict(one.missing) for one in understood]
        contrasts = self._contrasts(understood, focus, missing)
        asked = [self._asked(*pair) for pair in zip(understood, contrasts, strict=True)]
        drafts = self._written(asked, ways, focus, missing)
        weights = self._measured(understood, asked, drafts, focus, missing)
        return [
            _ranked(rows, counted, one.contrast, said)
            for one, rows, counted, said in zip(asked, drafts, weights, missing, strict=True)
        ]

    def _check_focus(self, focus: FocusSettings) -> None:
        """Raises DecodingError where focus is demanded and no voice can give it."""
        if focus.use == "on" and not any(voice.can_focus or voice.takes_up_targets for voice in self.voices):
            names = ", ".join(repr(voice.name) for voice in self.voices)
            raise DecodingError(
                f"focus needs probabilities, and {names} gives none. Answer without focus, or by a local model."
            )

    def _contrasts(
        self, understood: Sequence[Understood], focus: FocusSettings, missing: Sequence[dict[str, str]]
    ) -> Sequence[Contrast | None]:
        """What each conversation is told from; None where there is no focus, with the reason in ``missing``."""
        if focus.use == "off" or not any(voice.can_focus for voice in self.voices):
            return [None] * len(understood)
        contrasts, reasons = self.contrasts.make(understood, focus)
        for own, reason in zip(missing, reasons, strict=True):
            own |= {"focus": reason} if reason else {}
        return contrasts

    # -- writing -----------------------------------------------------------------------------------------------

    def _asked(self, one: Understood, contrast: Contrast | None) -> Asked:
        dialogue = read_by_responders(one.dialogue, self.memory)
        return Asked(
            dialogue,
            moved(contrast, len(dialogue.turns) - 1),
            hints_of(one),
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
        writing = _Writing(asked, focus, missing)
        for voice in self.voices:
            usable = voice.ways(ways)
            if len(usable) < len(ways):
                for own in missing:
                    own[f"ways of {voice.name}"] = f"it writes in {len(usable)} of the {len(ways)} ways."
            for way in usable:
                for is_focused in (False, True):
                    writing.write(voice, way, is_focused)
            if not voice.can_focus and focus.use != "off":
                for own in missing:
                    own.setdefault(f"focus of {voice.name}", _UNFOCUSED[voice.takes_up_targets])
        return [list(own.values()) for own in writing.drafts]

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
            reasons |= dict.fromkeys(
                ("likelihood", "listener", "information"), "no responder in this process gives probabilities."
            )
        else:
            heard = self.scorer.score([asked[i] for i, _ in rows], [draft.text for _, draft in rows], focus)
            for (_, draft), own in zip(rows, heard, strict=True):
                draft.heard = own
        self._by_mechanism(understood, rows, counted, reasons)
        self._by_intent(understood, rows, counted, reasons)
        self._by_side(understood, rows, counted)
        self._by_information(asked, rows, counted)
        for i, draft in rows:
            give_way()
            self._by_words(draft, understood[i])
        return [
            self._counting(one, weighed, own, said, reasons | _uncounted(one, own_asked, weighed, reasons))
            for one, own_asked, own, said, weighed in zip(understood, asked, drafts, missing, counted, strict=True)
        ]

    def _by_words(self, draft: _Draft, one: Understood) -> None:
        """The terms that need no model, and those of what was heard; then all of them, rounded."""
        words = one.targets.words if one.targets else ()
        earlier = [turn.text for turn in one.dialogue.turns if turn.role == "listener"]
        draft.terms["coverage"] = terms.coverage(draft.text, words)
        draft.terms["knowledge"] = terms.knowledge(draft.text, one.inferences)
        draft.terms["contradiction"] = terms.contradiction(draft.text, one.dialogue.turns)
        draft.terms["diversity"] = terms.diversity(draft.text, earlier)
        draft.terms["length"] = terms.length(draft.text, self.settings.min_words, self.settings.max_words)
        if draft.heard is not None:
            draft.terms["likelihood"] = draft.heard.likelihood
            if draft.heard.belief:
                draft.terms["listener"] = _log(draft.heard.belief[-1])
        draft.terms = {name: terms.rounded(draft.terms.get(name)) for name in terms.TERMS}

    def _counting(
        self,
        one: Understood,
        weights: Mapping[str, float],
        drafts: Sequence[_Draft],
        missing: dict[str, str],
        why: Mapping[str, str],
    ) -> dict[str, float]:
        """The weights in one conversation: 0 where no draft has the term, with the reason in ``missing``."""
        for name in terms.TERMS:
            if all(draft.terms[name] is None for draft in drafts):
                missing[f"term {name}"] = f"{why.get(name, 'no candidate has a word.')} It counts 0."
        wants = one.intent if one.intent_from == GIVEN else ""
        if wants and "term intent" in missing and not any(voice.reads_intent for voice in self.voices):
            missing["intent"] = f"{wants!r} changes nothing: no responder is told, and term `intent` counts 0."
        return {name: 0.0 if f"term {name}" in missing else float(weights[name]) for name in terms.TERMS}

    def _by_mechanism(
        self,
        understood: Sequence[Understood],
        rows: Sequence[tuple[int, _Draft]],
        weights: Sequence[Mapping[str, float]],
        reasons: dict[str, str],
    ) -> None:
        """The term ``mechanism`` of replies that have a word; no model is loaded for a weight of 0."""
        spoken = [(understood[i], draft) for i, draft in rows if draft.text.strip() and weights[i]["mechanism"]]
        levels = self._by_component("mechanism", "mechanisms", spoken, reasons)
        if levels is None:
            return
        found = terms.mechanisms(levels, [o.dialogue.turns[-1] for o, _ in spoken], [d.text for _, d in spoken])
        for (_, draft), value in zip(spoken, found, strict=True):
            draft.terms["mechanism"] = value

    def _by_intent(
        self,
        understood: Sequence[Understood],
        rows: Sequence[tuple[int, _Draft]],
        weights: Sequence[Mapping[str, float]],
        reasons: dict[str, str],
    ) -> None:
        """The term ``intent`` of replies that have a word, where one is wanted; as :meth:`_by_mechanism`."""
        wanting = [(i, draft) for i, draft in rows if understood[i].intent and weights[i]["intent"]]
        spoken = [(understood[i], draft) for i, draft in wanting if draft.text.strip()]
        labels = self._by_component("intent", "intent", spoken, reasons)
        if labels is None:
            return
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

    def _by_information(
        self, asked: Sequence[Asked], rows: Sequence[tuple[int, _Draft]], weights: Sequence[Mapping[str, float]]
    ) -> None:
        """The term ``information``: the likelihood that was heard, less that of the same reply to a mere greeting."""
        chosen = [(i, d) for i, d in rows if weights[i]["information"] and d.text.strip() and d.heard is not None]
        if not chosen or self.scorer is None:
            return
        alone = self.scorer.likelihoods([_GREETED] * len(chosen), [draft.text for _, draft in chosen])
        for (_, draft), value in zip(chosen, alone, strict=True):
            draft.terms["information"] = terms.information(draft.heard.likelihood, value) if draft.heard else None

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


def _ranked(
    drafts: Sequence[_Draft], weights: Mapping[str, float], contrast: Contrast | None, missing: Mapping[str, str]
) -> Expressed:
    """The drafts of one conversation in order, empty ones last; raises where there is none."""
    if not drafts:
        reasons = [reason for what, reason in missing.items() if what.startswith(REPLIES_OF)]
        if reasons:
            raise EndpointError(f"there is no reply: {' '.join(reasons)}")
        raise DecodingError("no responder can write in any of the ways; a served model accepts greedy and sample.")
    places = range(len(drafts))
    order = sorted(places, key=lambda i: (not drafts[i].text.strip(), -terms.total(drafts[i].terms, weights), i))
    return Expressed(
        candidates=tuple(_candidate(drafts[i], weights) for i in order),
        weights=weights,
        contrast=contrast,
        belief=_belief(drafts[order[0]].heard),
        missing=missing,
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
    if not weights["information"]:
        why["information"] = known.get("information", "its weight is 0.")
    if not one.intent:
        why["intent"] = "no intent is wanted of the reply."
    elif not weights["intent"]:
        is_given = one.intent_from == GIVEN
        why["intent"] = "its weight is 0." if is_given else "`predicted_intent`, its weight for a predicted one, is 0."
    return why


def hints_of(one: Understood) -> Hints:
    """What a language model may be shown: the cause phrases as they were perceived, or the words that were named."""
    words: Sequence[str] = () if one.targets is None else one.targets.words
    if one.felt is not None and not (one.targets is not None and one.targets.source == GIVEN):
        words = cause_texts(one.felt.causes, one.felt.turns)
    side = max(one.sides, key=lambda name: one.sides[name]) if one.sides else ""
    return Hints(one.emotion, tuple(words), one.intent, inferred(one.inferences), side)


def inferred(inferences: Sequence[Inference]) -> tuple[str, ...]:
    """Inferences as a language model is told of them.

    >>> inferred([Inference(0, "xReact", ("sad", "lonely")), Inference(0, "xWant", (), absent="no near event")])
    ('feels sad, lonely',)
    """
    return tuple(f"{RELATION_TITLES[one.relation]} {', '.join(one.tails)}" for one in inferences if one.tails)


def reply_key(text: str) -> str:
    """What two replies that differ in letter case and blanks alone have in common."""
    return _BLANKS.sub(" ", text).strip().lower()


def _keep(drafts: dict[str, _Draft], text: str, responder: str, decoding: dict[str, Any]) -> None:
    """A text that is there already keeps its first writer; upper case and blanks make no difference."""
    key = reply_key(text)
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
