"""What stands around words of danger and changes what they mean: who, when, in whose mouth, and whether denied.

Rules over the tokens of :mod:`empatheia.care.normalising`; each finding comes with a reason in words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from empatheia.care.assessment import About
from empatheia.care.lexicon import Hit
from empatheia.care.normalising import LAUGH, Token
from empatheia.config.recipe import read_yaml

_WORDS = read_yaml(Path(__file__).parent / "data" / "words.yaml")
_SELF, _YOU, _KIN = frozenset(_WORDS["self"]), frozenset(_WORDS["you"]), frozenset(_WORDS["others"])
_OTHER = _KIN.union(_WORDS["third_person"])
_NOT = frozenset(["not", "never", "without", "nobody", "neither", "nor", "hardly", "stopped"])
_NOT_REALLY = frozenset(["only", "just", "joking", "kidding", "even", "sure", "lie", "know"])
_BEFORE = 5
_PAST = re.compile(
    r" (?:used to|(?:years?|months?|decades?) ago|last (?:year|spring|summer|autumn|fall|winter|month|november"
    r"|december)"
    r"|back then|back when|when i was|as a (?:teen|teenager|kid|child|student|girl|boy)|in college|in high school"
    r"|at (?:uni|university|school)|in (?:19|20)\d\d|once upon|years later|since then|anniversary of my"
    r"|i survived)(?= |$)"
)
_DID = re.compile(r" (?:i|have|had|i have|ve) (?:once |nearly |almost )?(?:tried|attempted|overdosed|survived)(?= |$)")
_NOW = re.compile(
    r" (?:again|now|tonight|today|still|lately|these days|this week|recently|every (?:day|night)|right now|currently"
    r"|back again|coming back|close again|feels close)(?= |$)"
)
_RESOLVED = re.compile(
    r" (?:no longer|not anymore|do not feel suicidal anymore|recovered|in recovery|recovery|glad i (?:stayed|lived|did)"
    r"|happy now|happier now|better now|doing (?:well|great|better|fine)|at peace|so glad|grateful|life is good"
    r"|celebrating"
    r"|(?:am|is|are|feel) (?:genuinely|really|truly)? ?(?:happy|fine|well|alive|free)|got me out"
    r"|have not (?:\S+ ){1,6}(?:years|decade)"
    r"|thoughts are gone|stopped wanting|what a relief|volunteer|thankful|years clean|long ago|safe now"
    r"|do not think of it)(?= |$)"
)
_FICTION = re.compile(
    r" (?:character|characters|protagonist|villain|novel|screenplay|script|poem|poems|poetry|lyric|lyrics|song"
    r"|songs|sings"
    r"|singing|film|movie|anime|episode|comic|chapter|chapters|fanfic|fanfiction|roleplay|role play|plot|dnd"
    r"|act (?:one|two|three"
    r"|four|five)|shakespeare|hamlet|juliet|plath|short story|my story|a story|the story|theatre|drama|playwright"
    r"|detective"
    r"|in the (?:game|book|play|film|movie|show|story|novel|series)|translate|stephen king|tv show|netflix)(?= |$)"
)
_SAYS_LYRICS = re.compile(
    r" (?:goes|lyric|lyrics|sings|singing|titled|called|translate|line|chorus|quote|quoted|mean|means)(?= |$)"
)
_HYPERBOLE = re.compile(
    r" (?:traffic|homework|meeting|meetings|maths|math|exam|queue|cramps|hangover|monday|mondays|printer|wifi"
    r"|spreadsheet|lecture"
    r"|commute|cringe|embarrassing|karaoke|so cute|concert|heat|weather|broccoli|burpees|gym|boss fight|meme)(?= |$)"
)
_OVER = re.compile(
    r" (?:no longer|stopped) (?:feel |feeling |am |being |be |think of |think about |thinking of |thinking about "
    r"|want to |wanting to |having )?"
    r"(?:suicidal|die|suicide|kill myself|dying|dead)(?= |$)"
    r"| not (?:feel |feeling |am |been |want to |think of |think about )?(?:suicidal|die|suicide|kill myself"
    r"|dying) anymore(?= |$)"
    r"| thoughts are gone(?= |$)"
)
_FOR_A_FRIEND = re.compile(r" asking for a friend(?= |$)")
_QUOTED = re.compile('"[^"\n]{2,400}"|“[^”\n]{2,400}”|«[^»\n]{2,400}»|„[^“”\n]{2,400}[“”]')
_OWN_VOICE = re.compile(
    r" (?:i|head|voice|voices|brain|mind|note|it) (?:\S+ ){0,2}(?:say|says|said|think|thinking|tells|tell"
    r"|keeps?|wrote|write|read|reads|saying|whispers)"
)


@dataclass(frozen=True, slots=True)
class Reading:
    """How one hit is to be read.

    Attributes:
        hit: Which.
        about: Whose danger.
        is_negated: Denied: "I don't want to die".
        is_past: It was.
        is_quoted: In somebody's mouth.
        is_playful: Beside laughter or a trifle.
    """

    hit: Hit
    about: About
    is_negated: bool = False
    is_past: bool = False
    is_quoted: bool = False
    is_playful: bool = False


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the whole text says beside the hits.

    Attributes:
        joined: Tokens as " a b c".
        starts: Offset of every token in ``joined``.
        quotes: Quoted stretches of the text as written.
        is_resolved: It tells that it is over.
        is_over: It says that just what the words name is over.
        is_fiction: It speaks of a story, a song or a game.
        is_past: It tells of the past.
        is_now: It tells of the present.
        text: As written.
    """

    joined: str
    starts: tuple[int, ...]
    quotes: tuple[tuple[int, int], ...]
    is_resolved: bool
    is_over: bool
    is_fiction: bool
    is_past: bool
    is_now: bool
    text: str


def surroundings(text: str, tokens: Sequence[Token]) -> Surroundings:
    """What a text says beside its words of danger."""
    joined, starts = "", []
    pieces: list[str] = []
    length = 0
    for token in tokens:
        starts.append(length)
        pieces.append(" " + token.text)
        length += len(token.text) + 1
    joined = "".join(pieces)
    whole = text.strip()
    quotes = tuple(
        match.span() for match in _QUOTED.finditer(text) if match.end() - match.start() < max(4, len(whole) - 6)
    )
    return Surroundings(
        joined,
        tuple(starts),
        quotes,
        bool(_RESOLVED.search(joined)),
        bool(_OVER.search(joined)),
        bool(_FICTION.search(joined)),
        bool(_PAST.search(joined) or _DID.search(joined)),
        bool(_NOW.search(joined)),
        text,
    )


def read_hit(hit: Hit, tokens: Sequence[Token], around: Surroundings) -> Reading:
    """Who, when and in whose mouth."""
    first_of_sentence = hit.first
    while first_of_sentence and tokens[first_of_sentence - 1].sentence == tokens[hit.first].sentence:
        first_of_sentence -= 1
    behind = hit.last + 1
    while behind < len(tokens) and tokens[behind].sentence == tokens[hit.first].sentence:
        behind += 1
    before = [token.text for token in tokens[first_of_sentence : hit.first]]
    inside = [token.text for token in tokens[hit.first : hit.last + 1]]
    sentence = "".join(" " + token.text for token in tokens[first_of_sentence:behind])
    place = tokens[hit.first].start
    quoted = next((span for span in around.quotes if span[0] <= place < span[1]), None)
    about = _about(hit, before, inside)
    if about == "other" and is_for_a_friend(around.joined):
        about = "unclear"
    said_by = ""
    if quoted is not None:
        said_by = "".join(" " + token.text for token in tokens if quoted[0] - 60 < token.end <= quoted[0])
    if quoted is not None and not _OWN_VOICE.search(said_by):
        about = "fiction" if around.is_fiction else "other" if _KIN.intersection(around.joined.split()) else "unclear"
    elif around.is_fiction and (about == "other" or _FICTION.search(sentence)):
        has_own = about == "self" and before and before[-1] in _SELF and not _SAYS_LYRICS.search(sentence)
        about = "self" if has_own and around.is_now else "fiction"
    is_past = bool(
        _PAST.search(sentence) or _DID.search(sentence) or (around.is_past and around.is_resolved)
    ) and not _NOW.search(sentence)
    if is_past and about == "self":
        about = "past"
    return Reading(
        hit,
        about,
        is_negated=is_denied(before, inside, hit.line.pattern),
        is_past=is_past,
        is_quoted=quoted is not None,
        is_playful=LAUGH in {token.text for token in tokens} or bool(_HYPERBOLE.search(around.joined)),
    )


def is_for_a_friend(joined: str) -> bool:
    """Whether somebody asks "for a friend" of whom nothing else is said.

    >>> is_for_a_friend(" asking for a friend how deep is it")
    True
    """
    words = joined.split()
    return bool(_FOR_A_FRIEND.search(joined)) and not {"he", "she", "they", "her", "him", "herself"}.intersection(words)


def is_denied(before: Sequence[str], inside: Sequence[str], pattern: str = "not") -> bool:
    """Whether a negation stands close in front of a hit, or inside it where its line has none of its own.

    >>> is_denied(["i", "do", "not"], ["want", "to", "die"])
    True
    >>> is_denied(["i", "am", "not", "joking"], ["want", "to", "die"])
    False
    """
    own = set(pattern.replace("|", " ").replace("?", " ").split())
    if not own & _NOT and any(word in _NOT for word in inside):
        return not {"only", "joking", "kidding"}.intersection(inside)
    near = list(before[-_BEFORE:])
    for place in range(len(near) - 1, -1, -1):
        word = near[place]
        if word in ("but", "and", "because", "so", LAUGH):
            return False
        if word in _NOT:
            following = near[place + 1] if place + 1 < len(near) else (inside[0] if inside else "")
            if word == "not" and place and near[place - 1] in ("can", "could") and following in ("stop", "help"):
                return False
            return following not in _NOT_REALLY and following not in ("stop", "see", "want" if "live" in inside else "")
    return False


def _about(hit: Hit, before: Sequence[str], inside: Sequence[str]) -> About:
    """The nearest person in front, else one inside, else whoever speaks."""
    if "himself" in inside or "herself" in inside or "themselves" in inside or "themself" in inside:
        return "other"
    if "myself" in inside:
        return "self"
    is_first_kin = bool(inside) and inside[0] in _OTHER and hit.line.kind != "abuse"
    if hit.line.kind != "third_party" and not is_first_kin and _SELF.intersection(inside):
        return "self"
    if is_first_kin and not _SELF.intersection(inside):
        return "other"
    for word in reversed(before[-12:]):
        if word in _SELF:
            return "self"
        if word in _YOU:
            return "unclear"
        if word in _OTHER and hit.line.kind != "abuse":
            return "other"
    if hit.line.kind == "abuse":
        return "self"
    for word in inside:
        if word in _SELF:
            return "self"
        if word in _OTHER:
            return "other"
    return "self"
