"""Everything that a reply is made from: what was told, how it is seen, what was said before."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from empatheia.records.dialogue import Turn
from empatheia.taxonomy import EMOTIONS
from empatheia.voices.reflection.clauses import Said, echo_of, sayable
from empatheia.voices.reflection.families import PLEASANT, UNPLEASANT, View, sides_of, view
from empatheia.voices.reflection.feelings import heeded, told_feeling
from empatheia.voices.reflection.forms import flat
from empatheia.voices.reflection.lexicon import lexicon
from empatheia.voices.reflection.perceived import Perceived
from empatheia.voices.reflection.refusals import tells_something
from empatheia.voices.reflection.talk import is_ironic, is_mocking, talk_moment, wants_no_question
from empatheia.voices.reflection.topics import Topic, topics_of, weighed
from empatheia.voices.reflection.turning import clean, is_word, words_of

_SHORT_TURN, _BRIEF_TURN, _REMEMBERED = 4, 2, 12
_SURELY_HARD, _LIKELY, _HARDLY_DOUBTED = 0.76, 0.6, 0.9
# Chosen on the valid part of the everyday corpus: gladness is shown at 39 of 114 glad texts, at 31 without; as rarely
# at others.
_SURELY_GLAD = 0.8
BAD = re.compile(
    r"n't\b|\b(?:not|no|never|nobody|nothing|cannot|without|died?|dead|dying|deaths?|los[et]|losing"
    r"|left|leav(?:e|es|ing)"
    r"|br[eo]ke|broken|break(?:s|ing)?|split|hurts?|sick|ill|unwell|cancer|stroke|dementia|fail(?:s|ed"
    r"|ing)?|fell|falling"
    r"|st[eo]le|stolen|cancel\w*|reject\w*|refus\w*|cri?e[ds]|crying|fired|sacked|redundant|laid off|hospital|hospice"
    r"|pain|wors[et]|bad|badly|wrong|hates?|forgot\w*|ignor\w*|cut|thr[eo]w\w*|shout\w*|yell\w*|scream\w*|hits?|beats?"
    r"|kick\w*|miss(?:es|ed|ing)?|alone|lonel\w+|sell(?:s|ing)?|stop(?:s|ped)?|ghosted|dumped|cheat\w*|lie[ds]|lying"
    r"|laugh(?:s|ed)? (?:at|when)|depress\w*|grie[fv]\w*|funeral|crash\w*|late|stuck|struggl\w+"
    r"|divorce\w*|separat\w+|argu\w+|fight\w*|fought|row|debt|evict\w*"
    r"|leak\w*|flood\w*|burn\w*|bull\w+|ruin\w*|damag\w*|scratch\w*|kill\w*|attack\w*|robbed|nicked|poor|tired"
    r"|exhaust\w*|negative|wreck\w*|last|apart|away|gone|ex|moving|moved|too|instead|only|anymore"
    r"|scared?|afraid|worr\w+"
    r"|spelled|slapped|threat\w*|blam\w+|accus\w+|insult\w*|mean|rude|horrible|awful|terrible|cold"
    r"|quiet|empty|picked)\b",
    re.IGNORECASE,
)
"""What a clause must hold for one to be sorry about it."""
_STOP = lexicon().lists["english"] | lexicon().lists["asking"]
_SAME = {"hardest": "most", "worst": "most", "hits": "hurts", "weighs": "hurts", "stings": "hurts"}
_TALK = ("foreign", "opening", "notext", "greeting", "smalltalk", "closing")
_PAST_TIME = re.compile(
    r"\b(?:ago|yesterday|last\s+\w+|this\s+morning|back\s+then|years?\s+later|used\s+to)\b", re.IGNORECASE
)
_PAST_VERB = re.compile(r"(?:was|were|did|didn'?t|wasn'?t|weren'?t|had|[a-z]{2,}(?<!ne)ed)\Z")
_NOT_SO_FAR = re.compile(
    r"\b(?:never|(?:haven|hasn)'?t|(?:have|has) not)(?: \w+ly| even| once| yet)* \w+", re.IGNORECASE
)
_LASTS = re.compile(
    r"\b(?:always|again|keeps?|every|each|since|still|lately|constantly|never|ever|days|weeks|months|years|anymore"
    r"|for (?:a (?:week|month|year|while)|ages)|all the time|used to)\b|\w(?<!th)(?<!morn)(?<!even)(?<!dur)ing me\b",
    re.IGNORECASE,
)
_OWN = re.compile(r"(?:you|we)(?:'ve|'d)? (?!are\b|were\b)", re.IGNORECASE)
_I = re.compile(r"\b(?:I|i|we|We)(?:'ve|'d)?\b(?!'m| am| was)")
_SUFFERED = (
    "left_out",
    "stolen",
    "accident",
    "bullied",
    "cancelled",
    "behind_back",
    "broken_thing",
    "lost_thing",
    "cheated",
)
_CONTRAST = re.compile(
    r"\b(?:though|although|but|however|except|only|unfortunately|sadly|wish|should(?:'ve| have)?)\b", re.IGNORECASE
)
_DENIAL = re.compile(
    r"\b(?!(?:can|could)n?'?t (?:wait|believe|stop (?:smiling|laughing|grinning)|have|be (?:happier|prouder|better)))"
    r"(?:\w+n't|cannot|(?:should|ought to|supposed to) (?:be|feel|have)|not|no|never|nobody|none"
    r"|nothing|without|sad|hard|miss(?:ed|es|ing)?|died?|alone|late)\b"
    r"(?! (?:bad|regrets|problem|idea|one else|only|expect\w*|mind|matter|know they|thought|been (?:so|this|happier)"
    r"|seen|spoken|take a penny|lie\b))",
    re.IGNORECASE,
)
_PRAISE = re.compile(r"\b(?:great|lovely|nice|brilliant|joy|perfect|wonderful|love)\b")


@dataclass(frozen=True)
class Scene:
    """Everything that a reply is made from.

    Attributes:
        turns: The conversation.
        seen: How the feeling of the newest turn is seen.
        moment: What is answered: a moment of ``seen``, or a kind of talk.
        said: What can be said back, best first.
        echo: All that a short turn said, where no clause of it can be said back; or "".
        topics: What is told of and fits how it is seen; of earlier turns only if the newest tells of nothing.
        is_news: Whether ``topics`` are of the newest turn.
        used: What the listener said, for :meth:`Form.is_in`.
        asked: The content words of the listener's last questions.
        may_ask: Whether a question may be asked.
        only_stay: Whether the speaker is about to tell and only needs a word of welcome.
        has_happened: Whether something is told that is over, so that one may ask how it was.
        is_lasting: Whether it goes on, so that one may ask how long it has been so.
        is_own: Whether it is the speaker's own doing that is told.
        in_danger: Whether the newest turn speaks of harming oneself.
        key: Of this conversation alone.
    """

    turns: tuple[Turn, ...]
    seen: View
    moment: str
    said: tuple[Said, ...]
    echo: str
    topics: tuple[Topic, ...]
    is_news: bool
    used: str
    asked: tuple[frozenset[str], ...]
    may_ask: bool
    only_stay: bool
    has_happened: bool
    is_lasting: bool
    is_own: bool
    in_danger: bool
    key: bytes


def scene_of(turns: tuple[Turn, ...], perceived: Perceived, seed: int) -> Scene:
    """Reads the newest turn and what was said before it."""
    newest = _newest(turns, perceived)
    text, seen = turns[-1].text, newest.seen
    listener = [turn.text for turn in turns if turn.role == "listener"]
    used = flat(listener)
    kind, said = _to_say_back(turns, newest, perceived, used)
    news = tuple(topic for topic in newest.topics if _fits(topic, seen))
    earlier = () if newest.topics or kind or newest.in_danger else _earlier(turns, seen)
    return Scene(
        turns=turns,
        seen=seen,
        moment="unclear" if kind in ("foreign", "opening") else kind or seen.moment,
        said=said,
        echo=_echo(turns, seen, kind, bool(said or news), perceived, used),
        topics=news or earlier,
        is_news=bool(news),
        used=used,
        asked=_asked(listener),
        may_ask=not (newest.in_danger or _only_asked(listener) or wants_no_question(text)),
        only_stay=kind == "opening",
        has_happened=_has_happened(text),
        is_lasting=_is_lasting(text),
        is_own=bool(_OWN.match(said[0].text) if said else _I.search(text)),
        in_danger=newest.in_danger,
        key=_key(turns, seed),
    )


@dataclass(frozen=True)
class _Newest:
    """The newest turn by itself: the kind of talk ("" where something is told), what it tells of, and the feeling."""

    kind: str
    topics: tuple[Topic, ...]
    seen: View
    in_danger: bool = False


def _newest(turns: Sequence[Turn], perceived: Perceived) -> _Newest:
    text = turns[-1].text
    if lexicon().self_harm.search(text):
        return _Newest("", (), View("unclear_unpleasant", "side", unpleasant=1.0), in_danger=True)
    kind = talk_moment(turns)
    topics = () if kind in _TALK else _topics(turns, perceived)
    seen = View("unclear", "none") if kind in ("foreign", "notext", "opening") else _seen(turns, perceived, topics)
    return _Newest(kind, topics, seen)


def _to_say_back(
    turns: Sequence[Turn], newest: _Newest, perceived: Perceived, used: str
) -> tuple[str, tuple[Said, ...]]:
    """The kind of talk once it is known what can be said back, and that; best first."""
    kind = newest.kind
    said = () if kind in _TALK else _new(turns, len(turns) - 1, perceived, used)
    if is_ironic(turns[-1].text, newest.seen.unpleasant):
        said = _without_praise(said)
        kind = kind or ("" if said or newest.topics else "irony")
    has_nothing = not (kind or said or newest.in_danger)
    if has_nothing and _is_short_answer(turns, newest.seen.sureness != "none"):
        return "short", _remembered(turns, perceived, used)
    if has_nothing and not newest.topics and newest.seen.sureness != "name":
        kind = "brief" if _is_brief(turns) else ""
    return kind, said


def _echo(turns: Sequence[Turn], seen: View, kind: str, is_told: bool, perceived: Perceived, used: str) -> str:
    """The newest turn as an echo: one that no clause or topic is found in, or a short one that is lively or clear."""
    text, unclear = turns[-1].text, seen.sureness == "none"
    is_lively = kind == "short" and ("!" in text or not unclear) and tells_something(text)
    if not is_lively and (is_told or kind or not unclear):
        return ""
    found = echo_of(turns, len(turns) - 1, perceived.causes, fewest=2 if is_lively else 3)
    return found if found.lower() not in used else ""


def _without_praise(said: Sequence[Said]) -> tuple[Said, ...]:
    return tuple(part for part in said if not _PRAISE.search(part.text))


def _is_brief(turns: Sequence[Turn]) -> bool:
    """Whether a few words are all that was ever said."""
    return len(turns) == 1 and _n_words(turns[-1].text) <= _BRIEF_TURN


def _topics(turns: Sequence[Turn], perceived: Perceived) -> tuple[Topic, ...]:
    """What the newest turn tells of; nothing gloomy where gladness is likely, no joke where something bad is told."""
    text = turns[-1].text
    found = topics_of(text, [span for span in perceived.causes if span.turn == len(turns) - 1])
    is_glad = perceived.sides.get("pleasant", 0.0) >= _LIKELY
    return tuple(
        topic
        for topic in found
        if not (topic.is_light and topic.side == "unpleasant" and is_glad)
        and not (topic.name == "laughing" and (BAD.search(clean(text)) or told_feeling(text)))
    )


def _is_short_answer(turns: Sequence[Turn], is_felt: bool) -> bool:
    """Whether the newest turn says next to nothing, and the conversation did not begin with it."""
    return len(turns) > 1 and _n_words(turns[-1].text) <= (_BRIEF_TURN if is_felt else _SHORT_TURN)


def _asked(listener: Sequence[str]) -> tuple[frozenset[str], ...]:
    """The content words of each question in the listener's last turns."""
    return tuple(content_of(question) for text in listener[-2:] for question in _questions(text))


def _questions(text: str) -> list[str]:
    return [part for part in re.findall(r"[^.!?]+[.!?]?", text) if part.endswith("?")]


def _only_asked(listener: Sequence[str]) -> bool:
    """Whether the listener's last turns both ended with a question."""
    return len(listener) > 1 and all(text.rstrip().endswith("?") for text in listener[-2:])


def _key(turns: Sequence[Turn], seed: int) -> bytes:
    told = repr((seed, [(turn.role, turn.text) for turn in turns[-_REMEMBERED:]], len(turns)))
    return told.encode("utf-8", "surrogatepass")


def content_of(sentence: str) -> frozenset[str]:
    """The words of a question by which it is known again."""
    words = (str(_SAME.get(word, word)) for word in re.findall(r"[a-z']+", sentence.lower()))
    return frozenset(word for word in words if word not in _STOP)


def _seen(turns: Sequence[Turn], perceived: Perceived, topics: tuple[Topic, ...]) -> View:
    """How the feeling of the newest turn is seen: what was perceived, with what the words say outright."""
    newest = turns[-1].text
    if is_mocking(newest):
        return view(Perceived({}, {"unpleasant": 0.8, "pleasant": 0.1, "mixed": 0.1}))
    told = told_feeling(newest)
    perceived = heeded(perceived, told) if told else perceived
    if topics and topics[0].is_light:
        return View("unclear", "none")
    seen = _viewed(perceived, topics)
    if not told and _is_contradicted(seen, topics):
        return View("unclear", "none")
    if any(topic.is_mixed for topic in topics) and not (seen.moment in UNPLEASANT or seen.unpleasant >= _SURELY_HARD):
        return View("mixed", "side")
    if not told and _is_doubtful(seen, turns, topics):
        return View("unclear", "none", unpleasant=seen.unpleasant)
    return seen


def _viewed(perceived: Perceived, topics: tuple[Topic, ...]) -> View:
    """What was perceived, with what the topics say of its side."""
    if not topics:
        return view(perceived)
    emotions = {name: max(0.0, float(perceived.emotions.get(name, 0.0))) for name in EMOTIONS}
    return view(weighed(perceived, topics, perceived.sides or sides_of({}, emotions)))


def _is_doubtful(seen: View, turns: Sequence[Turn], topics: Sequence[Topic]) -> bool:
    """Whether the words of the newest turn do not bear out the side that was perceived.

    What was felt before may colour a later turn, so that there less is doubt enough.
    """
    newest = clean(turns[-1].text[-1000:])
    is_bad = bool(BAD.search(newest))
    if seen.moment == "unclear_unpleasant":
        is_weak = len(turns) > 1 or seen.unpleasant < _HARDLY_DOUBTED
        return is_weak and not is_bad and not any(topic.side for topic in topics)
    is_glad = seen.moment in PLEASANT or seen.moment == "unclear_pleasant"
    if not is_glad or any(topic.is_strong for topic in topics):
        return False
    return _is_doubtful_gladness(seen, newest, len(turns), is_bad, any(topic.side == "pleasant" for topic in topics))


def _is_doubtful_gladness(seen: View, newest: str, n_turns: int, is_bad: bool, is_good: bool) -> bool:
    """Whether the words of a turn that seems glad speak against it; little does where it is named and sure."""
    if seen.moment in PLEASANT and seen.pleasant >= _SURELY_GLAD:
        return bool(_DENIAL.search(newest) and _CONTRAST.search(newest))
    if n_turns == 1 and is_good:
        return False
    return _is_hardly_glad(newest, n_turns, seen.moment == "unclear_pleasant" and is_bad, is_bad, is_good)


def _is_hardly_glad(newest: str, n_turns: int, is_unclear: bool, is_bad: bool, is_good: bool) -> bool:
    """Whether the words of a turn that seems glad deny it, or set something bad against it."""
    denies = bool(_DENIAL.search(newest))
    if is_unclear and (denies or "!" not in newest):
        return not is_good
    return (denies and n_turns > 1) or ((denies or is_bad) and bool(_CONTRAST.search(newest)))


def _is_contradicted(seen: View, topics: Sequence[Topic]) -> bool:
    """Whether something that leaves little doubt is told, and the opposite seems likelier: nothing is named then."""
    told = {topic.side for topic in topics if topic.is_sure and topic.side}
    if len(told) != 1:
        return False
    return seen.unpleasant >= seen.pleasant if "pleasant" in told else seen.pleasant >= seen.unpleasant


def _fits(topic: Topic, seen: View) -> bool:
    """Whether a topic may be answered to: nothing sad where gladness is likely, nor the reverse.

    Where the speaker is ashamed it was rather their own doing than what was done to them.
    """
    if seen.moment == "shame" and topic.name in _SUFFERED:
        return False
    if topic.side == "unpleasant":
        return seen.pleasant < 0.5
    return topic.side != "pleasant" or seen.unpleasant < 0.4


def _has_happened(newest: str) -> bool:
    """Whether a verb in the past, or a word for a past time, is in the newest turn; not in "I've never lived alone"."""
    known = lexicon()
    finished = (known.pasts | known.lists["finished"]) - known.bases
    told = _NOT_SO_FAR.sub(" ", newest.lower())
    words = [word for word in re.findall(r"[a-z']+", told) if word not in known.lists["feelings"]]
    return bool(_PAST_TIME.search(newest)) or any(word in finished or _PAST_VERB.match(word) for word in words)


def _is_lasting(newest: str) -> bool:
    """Whether the newest turn tells of what goes on, or comes again; what is told in the past alone is over."""
    return bool(_LASTS.search(clean(newest[-2000:]))) or not _has_happened(newest)


def _n_words(text: str) -> int:
    return sum(is_word(token) for token in words_of(text[:200]))


def _new(turns: Sequence[Turn], index: int, perceived: Perceived, used: str) -> tuple[Said, ...]:
    """What can be said back of a turn and was not said back before."""
    found = sayable(turns, index, perceived.causes, perceived.words)
    return tuple(said for said in found if said.text.lower() not in used)


def _remembered(turns: Sequence[Turn], perceived: Perceived, used: str) -> tuple[Said, ...]:
    """What an earlier turn told, where the newest says next to nothing and the listener has not taken it up."""
    for index in range(len(turns) - 3, max(-1, len(turns) - 6), -1):
        if turns[index].role == "speaker":
            found = [said for said in _new(turns, index, perceived, used) if said.kind == "clause" and said.score > 0.3]
            if found:
                return (found[0],)
    return ()


def _earlier(turns: Sequence[Turn], seen: View) -> tuple[Topic, ...]:
    """What the last turns before told of."""
    for turn in turns[-3:-6:-2]:
        found = tuple(topic for topic in topics_of(turn.text) if topic.side and _fits(topic, seen))
        if turn.role == "speaker" and found:
            return found
    return ()
