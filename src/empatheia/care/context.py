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
_THEMSELVES = frozenset(["himself", "herself", "themselves", "themself"])
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


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a hit stands: the words of its sentence in front of it and its own, all of the sentence, and the quotation.

    ``quote`` is None outside of quotations.
    """

    before: list[str]
    inside: list[str]
    sentence: str
    quote: tuple[int, int] | None


def read_hit(hit: Hit, tokens: Sequence[Token], around: Surroundings) -> Reading:
    """Who, when and in whose mouth."""
    place = _place_of(hit, tokens, around)
    is_past = _is_past(place.sentence, around)
    about = _about(hit, place.before, place.inside)
    if about == "other" and is_for_a_friend(around.joined):
        about = "unclear"
    if place.quote is not None and not _is_own_voice(place.quote, tokens):
        about = _about_quoted(around)
    elif around.is_fiction and (about == "other" or _FICTION.search(place.sentence)):
        about = "self" if around.is_now and _says_it(about, place) else "fiction"
    return Reading(
        hit,
        "past" if is_past and about == "self" else about,
        is_negated=is_denied(place.before, place.inside, hit.line.pattern),
        is_past=is_past,
        is_quoted=place.quote is not None,
        is_playful=LAUGH in {token.text for token in tokens} or bool(_HYPERBOLE.search(around.joined)),
    )


def _place_of(hit: Hit, tokens: Sequence[Token], around: Surroundings) -> _Place:
    own = tokens[hit.first].sentence
    first, behind = hit.first, hit.last + 1
    while first and tokens[first - 1].sentence == own:
        first -= 1
    while behind < len(tokens) and tokens[behind].sentence == own:
        behind += 1
    start = tokens[hit.first].start
    return _Place(
        [token.text for token in tokens[first : hit.first]],
        [token.text for token in tokens[hit.first : hit.last + 1]],
        "".join(" " + token.text for token in tokens[first:behind]),
        next((span for span in around.quotes if span[0] <= start < span[1]), None),
    )


def _is_own_voice(quote: tuple[int, int], tokens: Sequence[Token]) -> bool:
    """Whether the words in front of a quotation say that it is the speaker's own head or note that speaks."""
    said_by = "".join(" " + token.text for token in tokens if quote[0] - 60 < token.end <= quote[0])
    return bool(_OWN_VOICE.search(said_by))


def _about_quoted(around: Surroundings) -> About:
    """Of whom words are that somebody else says."""
    if around.is_fiction:
        return "fiction"
    return "other" if _KIN.intersection(around.joined.split()) else "unclear"


def _says_it(about: About, place: _Place) -> bool:
    """Whether "I" stands right in front of the hit, and the sentence quotes no lyrics."""
    is_own = about == "self" and bool(_SELF.intersection(place.before[-1:]))
    return is_own and not _SAYS_LYRICS.search(place.sentence)


def _is_past(sentence: str, around: Surroundings) -> bool:
    """Whether a sentence tells of the past, or the whole does and says that it is over."""
    told = _PAST.search(sentence) or _DID.search(sentence) or (around.is_past and around.is_resolved)
    return bool(told) and not _NOW.search(sentence)


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
    if _THEMSELVES.intersection(inside):
        return "other"
    if "myself" in inside:
        return "self"
    is_abuse = hit.line.kind == "abuse"
    is_own = bool(_SELF.intersection(inside))
    is_first_kin = not is_abuse and bool(_OTHER.intersection(inside[:1]))
    if is_own and not is_first_kin and hit.line.kind != "third_party":
        return "self"
    if is_first_kin and not is_own:
        return "other"
    in_front = _nearest(before[-12:][::-1], _YOU, frozenset() if is_abuse else _OTHER)
    if in_front is not None or is_abuse:
        return in_front or "self"
    return _nearest(inside, frozenset(), _OTHER) or "self"


def _nearest(words: Sequence[str], you: frozenset[str], others: frozenset[str]) -> About | None:
    """Whom the first person among these words stands for; None if there is none."""
    for word in words:
        if word in _SELF:
            return "self"
        if word in you:
            return "unclear"
        if word in others:
            return "other"
    return None
