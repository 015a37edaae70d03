"""What stands around words of danger and changes what they mean: who, when, in whose mouth, and whether denied.

Rules over the tokens of :mod:`empatheia.care.normalising`; each finding comes with a reason in words.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from empatheia.care.lexicon import Hit, sentences
from empatheia.care.normalising import LAUGH, WORDS, Token
from empatheia.records.danger import About

_SELF, _YOU, _KIN = frozenset(WORDS["self"]), frozenset(WORDS["you"]), frozenset(WORDS["others"])
_OTHER = _KIN.union(WORDS["third_person"])
_THEMSELVES = frozenset(["himself", "herself", "themselves", "themself"])
_NOT = frozenset(["not", "never", "without", "nobody", "neither", "nor", "hardly", "stopped"])
_NOT_REALLY = frozenset(["only", "just", "joking", "kidding", "even", "sure", "lie", "know"])
_BEFORE, _FARTHEST = 5, 12
"""Words in front of a hit that are looked through for a negation, and for a person."""
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
    r" (?:no longer|not anymore|do not feel suicidal anymore|recovered|in recovery|recovery|glad i (?:stayed|lived"
    r"|did)"
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
_REAL = re.compile(
    r" (?:(?:real|actual|own) (?:\S+ ){0,2}(?:pills?|tablets|meds|medication|gun|pistol|rope|noose|razor|blade|knife"
    r"|drawer|bridge|roof|balcony|garage|house|room|bathroom|life)|(?:really|seriously) mean it|for real|irl"
    r"|no game|not a (?:game|joke|story))(?= |$)"
)
"""Says of what a story, a game or a song seems to tell that it is meant."""
_PLANS = frozenset(WORDS["plans"])
_SAYING = frozenset(WORDS["saying"])
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
        sentence: Words of its sentence.
    """

    hit: Hit
    about: About
    is_negated: bool = False
    is_past: bool = False
    is_quoted: bool = False
    is_playful: bool = False
    sentence: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the whole text says beside the hits.

    Attributes:
        joined: Tokens as " a b c".
        quotes: Quoted stretches of the text as written.
        is_resolved: It tells that it is over.
        is_over: It says that just what the words name is over.
        is_fiction: It speaks of a story, a song or a game.
        is_past: It tells of the past.
        is_now: It tells of the present.
        is_playful: It laughs, or speaks of a trifle.
        is_for_a_friend: It asks "for a friend".
    """

    joined: str
    quotes: tuple[tuple[int, int], ...]
    is_resolved: bool
    is_over: bool
    is_fiction: bool
    is_past: bool
    is_now: bool
    is_playful: bool
    is_for_a_friend: bool


def surroundings(text: str, tokens: Sequence[Token]) -> Surroundings:
    """What a text says beside its words of danger."""
    joined = "".join(" " + token.text for token in tokens)
    longest = max(4, len(text.strip()) - 6)
    return Surroundings(
        joined,
        tuple(match.span() for match in _QUOTED.finditer(text) if match.end() - match.start() < longest),
        bool(_RESOLVED.search(joined)),
        bool(_OVER.search(joined)),
        bool(_FICTION.search(joined)),
        bool(_PAST.search(joined) or _DID.search(joined)),
        bool(_NOW.search(joined)),
        any(token.text == LAUGH for token in tokens) or bool(_HYPERBOLE.search(joined)),
        is_for_a_friend(joined),
    )


@dataclass(frozen=True, slots=True)
class _Sentence:
    """What the sentence of a hit says: that it was, that it is a story, that the speaker only quotes a song."""

    first: int
    words: frozenset[str]
    is_past: bool
    is_now: bool
    is_fiction: bool
    is_real: bool
    says_lyrics: bool


def read_hits(hits: Sequence[Hit], tokens: Sequence[Token], around: Surroundings) -> tuple[Reading, ...]:
    """Who, when and in whose mouth; each sentence is read once, however many hits it has."""
    starts = {tokens[first].sentence: (first, last) for first, last in sentences(tokens)} if hits else {}
    known: dict[int, _Sentence] = {}
    begins, own_voices = [start for start, _ in around.quotes], _own_voices(around, tokens) if hits else ()
    out = []
    for hit in hits:
        number = tokens[hit.first].sentence
        if number not in known:
            first, last = starts[number]
            known[number] = _sentence(first, "".join(" " + token.text for token in tokens[first:last]), around)
        at = bisect_right(begins, tokens[hit.first].start) - 1
        is_quoted = at >= 0 and tokens[hit.first].start < around.quotes[at][1]
        out.append(_read(hit, tokens, known[number], around, is_quoted, is_quoted and own_voices[at]))
    return tuple(out)


def _sentence(first: int, joined: str, around: Surroundings) -> _Sentence:
    return _Sentence(
        first,
        frozenset(joined.split()),
        _is_past(joined, around),
        bool(_NOW.search(joined)),
        bool(_FICTION.search(joined)),
        bool(_REAL.search(joined)),
        bool(_SAYS_LYRICS.search(joined)),
    )


def _read(
    hit: Hit, tokens: Sequence[Token], sentence: _Sentence, around: Surroundings, is_quoted: bool, is_own_voice: bool
) -> Reading:
    before = [token.text for token in tokens[max(sentence.first, hit.first - _FARTHEST) : hit.first]]
    inside = [token.text for token in tokens[hit.first : hit.last + 1]]
    about = _about(hit, before, inside)
    if about == "other" and around.is_for_a_friend:
        about = "unclear"
    if is_quoted and not is_own_voice:
        about = _about_quoted(around)
    elif around.is_fiction:
        about = _about_in_fiction(about, before, sentence, around)
    return Reading(
        hit,
        "past" if sentence.is_past and about == "self" else about,
        is_negated=is_denied(before, inside, hit.line.pattern),
        is_past=sentence.is_past,
        is_quoted=is_quoted,
        is_playful=around.is_playful,
        sentence=sentence.words,
    )


def _about_in_fiction(about: About, before: Sequence[str], sentence: _Sentence, around: Surroundings) -> About:
    """Of whom a hit is where a story, a game or a dream is told: fiction, but for the speaker's own real danger."""
    if about != "other" and not sentence.is_fiction:
        return about
    is_own = about == "self" and (sentence.is_real or (around.is_now and _says_it(before, sentence)))
    return "self" if is_own else "fiction"


def _says_it(before: Sequence[str], sentence: _Sentence) -> bool:
    """Whether "I", or "I" with words that tell of a plan, stands right in front of a hit, said by no one else."""
    if sentence.says_lyrics:
        return False
    place = len(before)
    while place and before[place - 1] in _PLANS:
        place -= 1
    is_planned = place < len(before)
    if not place or before[place - 1] not in _SELF or (is_planned and not sentence.is_now):
        return False
    return not (is_planned and _SAYING.intersection(before[max(0, place - 4) : place]))


def _own_voices(around: Surroundings, tokens: Sequence[Token]) -> tuple[bool, ...]:
    """For every quotation, whether the words in front of it say that it is the speaker's own head or note."""
    ends = [token.end for token in tokens]
    said_by = (
        "".join(" " + token.text for token in tokens[bisect_right(ends, start - 60) : bisect_right(ends, start)])
        for start, _ in around.quotes
    )
    return tuple(bool(_OWN_VOICE.search(said)) for said in said_by)


def _about_quoted(around: Surroundings) -> About:
    """Of whom words are that somebody else says."""
    if around.is_fiction:
        return "fiction"
    return "other" if _KIN.intersection(around.joined.split()) else "unclear"


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
    in_front = _nearest(before[::-1], _YOU, frozenset() if is_abuse else _OTHER)
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
