"""What a turn tells of: a death, an exam passed, a noisy neighbour. Found by its words, so that a reply can fit it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import Literal

from empatheia.records.dialogue import Span
from empatheia.settings import read_package_yaml
from empatheia.voices.reflection.patterns import QUOTED
from empatheia.voices.reflection.perceived import Perceived
from empatheia.voices.reflection.turning import clean

AGREES, DISAGREES, STRONG = 0.25, 0.20, 0.40
"""How much the side of a topic counts: where perception leans the same way, where not, and where it says enough."""
GENERAL = ("at_work", "at_school", "pet", "relative", "food", "nature")
"""Topics that tell little by themselves; of a long turn they are not looked at."""
_SHORT, _LONGEST_READ, _HOPELESS = 30, 2000, 0.12
_UNREAL = re.compile(
    r"(?:\b(?:not|never|if|wish|might|would|could|hop(?:e|es|ed|ing)|want(?:s|ed)?\s+to|almost|nearly|unless|until"
    r"|before|dreamt|dreamed|imagine|think|thought|said|movie|film|book|show|game)\b|n't\b)[\s,]*(?:[\w']+\s+){0,2}\Z"
)
_SUPPOSED = re.compile(r"\bwhat\s+if\b[^.!?\n]*", re.IGNORECASE)
_LAUGHS = re.compile(r"\b(?:lo+l+|lmf?ao+|haha\w*|hehe\w*|rofl)\b|[\U0001f602\U0001f923]", re.IGNORECASE)
_LAUGHED = "laughed0q"
"""Stands for a laugh behind the text that is searched, which is cleaned of such."""
_LIGHT_WORDS = 20
_THE_SPEAKERS = frozenset(
    ["passed", "new_job", "got_in", "won", "new_home", "new_thing", "trip", "thing_done", "learnt"]
)
"""Good things that gladden the speaker only if they are their own, or of people of theirs."""
_SOMEBODY = re.compile(
    r"\b(?:he|she|they|his|her|their|he's|she's|they've|they're|someone|somebody|[a-z]{3,}'s)\b", re.IGNORECASE
)
_SPEAKER = re.compile(r"\b(?:i|i've|i'm|we|we've|we're|my|our|me|us|(?:kin|pet)\d+q)\b", re.IGNORECASE)
_OF_OTHERS = re.compile(
    r"\b(?:a|the|some|any|every|other|another|his|her|their|your|whose|this|that|[\w]+'s)\s+\Z", re.IGNORECASE
)
_OWN = (
    r"(?:(?:own|dear|late|old|older|little|younger|big|poor|lovely|only|first|new|youngest|oldest|eldest|beautiful"
    r"|elderly|great|family|childhood|\d+[-\s]?(?:year|yr)[-\s]old)\s+)*"
)

Side = Literal["pleasant", "unpleasant", ""]


@dataclass(frozen=True, slots=True)
class Topic:
    """What a turn tells of.

    Attributes:
        name: A key of ``topics.yaml``.
        side: ``pleasant`` or ``unpleasant``; "" where it may be either.
        is_strong: Whether it leaves little doubt how that feels: a death, an exam passed.
        who: Whom it is about, turned to the listener: ``your dad``; "" if nobody is named.
        is_light: Whether it weighs so little that no feeling is named for it: boredom.
        is_sure: Whether the words outweigh whatever else is perceived.
        is_mixed: Whether there is a hard side to it whatever else is told: a birthday without who is missed.
    """

    name: str
    side: Side
    is_strong: bool = False
    who: str = ""
    is_light: bool = False
    is_mixed: bool = False
    is_sure: bool = False


@dataclass(frozen=True, slots=True)
class _Rule:
    name: str
    side: Side
    is_strong: bool
    is_light: bool
    is_mixed: bool
    is_sure: bool
    says: str
    never: str


@dataclass(frozen=True, slots=True)
class _Rules:
    people: re.Pattern[str]
    pets: re.Pattern[str]
    topics: tuple[_Rule, ...]


@lru_cache(maxsize=1)
def _rules() -> _Rules:
    data = read_package_yaml(__file__, "topics.yaml")
    macros: Mapping[str, str] = {name: re.sub(r"\|\s+", "|", text.strip()) for name, text in data["macros"].items()}
    stands = {"LAUGH": _LAUGHED, "KIN": r"kin\d+q", "PET": r"pet\d+q", "MY": macros["MY"], "PETS": macros["PETS"]}

    def whole(pattern: str) -> str:
        pattern = re.sub(r"\b(?:KIN|PET|MY|PETS|LAUGH)\b", lambda match: f"(?:{stands[match[0]]})", pattern)
        return r"\b(?:" + pattern.replace(" ", r"\s+") + ")"

    topics = tuple(
        _Rule(
            name,
            entry["side"],
            entry.get("strong", False),
            entry.get("light", False),
            entry.get("mixed", False),
            entry.get("sure", False),
            whole("|".join(entry["says"])),
            whole(entry["never"]) if "never" in entry else "",
        )
        for name, entry in data["topics"].items()
    )
    people = rf"\b(?:(?:my|our|me)\s+{_OWN}({macros['PEOPLE']})|({macros['NAMED']}))\b(?:\s(?-i:[A-Z][a-z]+)\b)?"
    pets = rf"\b(?:my|our)\s+{_OWN}({macros['PETS']})\b"
    return _Rules(re.compile(people, re.IGNORECASE), re.compile(pets, re.IGNORECASE), topics)


def names() -> tuple[str, ...]:
    """All topics, the most telling first."""
    return tuple(rule.name for rule in _rules().topics)


def topics_of(text: str, causes: Sequence[Span] = ()) -> tuple[Topic, ...]:
    """What a turn tells of, the most telling first; nothing that is denied, wished or only imagined.

    Args:
        text: The turn.
        causes: Cause phrases in it; of a long turn only their sentences are looked at.

    >>> [topic.name for topic in topics_of("my dad lost his job")], topics_of("I didn't pass my exam")[0].side
    (['job_loss', 'relative'], 'unpleasant')
    """
    is_long = len(text.split()) > _SHORT
    if is_long and causes:
        edges = [0, *(match.end() for match in re.finditer(r"[.!?\n]+(?=\s|\Z)", text)), len(text)]
        kept = [text[a:b] for a, b in pairwise(edges) if any(span.start < b and span.end > a for span in causes[:2])]
        text = " ".join(kept)
    found = _topics_of(text[-_LONGEST_READ:])
    return tuple(topic for topic in found if topic.name not in GENERAL) if is_long else found


@lru_cache(maxsize=64)
def _topics_of(text: str) -> tuple[Topic, ...]:
    rules = _rules()
    people: list[str] = []

    def kept(match: re.Match[str], kind: str) -> str:
        if _OF_OTHERS.search(text[: match.start()]) and not re.match(r"(?:my|our|me)\b", match[0], re.IGNORECASE):
            return match[0]
        people.append("your " + " ".join(next(group for group in match.groups() if group).lower().split()))
        return f"{kind}{len(people) - 1}q"

    laughs = _LAUGHS.search(text)
    text = clean(_SUPPOSED.sub(" ", QUOTED.sub(" ", text))) + (f" {_LAUGHED}" if laughs else "")
    text = rules.people.sub(lambda match: kept(match, "kin"), text)
    text = rules.pets.sub(lambda match: kept(match, "pet"), text)
    found = []
    n_words = len(text.split())
    for rule in rules.topics:
        if rule.is_light and n_words > _LIGHT_WORDS:
            continue
        if (match := _first_said(rule, text)) is not None:
            who = re.search(r"(?:kin|pet)(\d+)q", match[0])
            whom = people[int(who[1])] if who else ""
            found.append(Topic(rule.name, rule.side, rule.is_strong, whom, rule.is_light, rule.is_mixed, rule.is_sure))
    return tuple(found)


def _first_said(rule: _Rule, text: str) -> re.Match[str] | None:
    """Where a text first tells of a topic, as something real and the speaker's; None if it does not."""
    says = _compiled(rule.says).finditer(text)
    real = next((m for m in says if not _is_unreal(text, m) and not _is_of_others(rule, text, m)), None)
    return None if real is not None and rule.never and _compiled(rule.never).search(text) else real


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiled when a text first needs it: long texts have no light topics, and few have what speaks against one."""
    return re.compile(pattern, re.IGNORECASE)


def _is_of_others(rule: _Rule, text: str, match: re.Match[str]) -> bool:
    """Whether a good thing is somebody's of whom the speaker does not say that they are theirs: "she got the flat"."""
    if rule.name not in _THE_SPEAKERS:
        return False
    clause = re.split(r"[.!?;,\n]", text[max(0, match.start() - 50) : match.start()])[-1]
    return bool(_SOMEBODY.search(clause)) and not _SPEAKER.search(clause)


def _is_unreal(text: str, match: re.Match[str]) -> bool:
    return bool(_UNREAL.search(text[max(0, match.start() - 40) : match.start()].lower()))


def weighed(perceived: Perceived, topics: tuple[Topic, ...], sides: Mapping[str, float]) -> Perceived:
    """What was perceived, its sides pulled toward that of the topics, where these agree on one.

    Args:
        perceived: Of the newest turn.
        topics: Of the same turn.
        sides: The perceived sides, or what was derived in their place.
    """
    told = {topic.side for topic in topics if topic.side}
    if len(told) != 1:
        return perceived
    (side,) = told
    total = sum(sides.values()) or 1.0
    known = {name: sides.get(name, 0.0) / total for name in ("pleasant", "unpleasant", "mixed")}
    if known[side] < _HOPELESS:
        return perceived
    weight = STRONG if any(t.is_strong for t in topics) else AGREES if known[side] >= 0.45 else DISAGREES
    pulled = {name: (1 - weight) * p + weight * (name == side) for name, p in known.items()}
    return Perceived(perceived.emotions, pulled, perceived.causes, perceived.words)
