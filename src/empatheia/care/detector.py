"""The detector: lexicon, context and classifier on every speaker turn, and what earlier turns leave behind.

>>> assess("I want to kill myself.").level  # doctest: +SKIP
'crisis'
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from empatheia.care.classifier import CRISIS, RISK, LinearClassifier, shipped_classifier
from empatheia.care.context import Reading, Surroundings, read_hits, surroundings
from empatheia.care.danger import DangerReader, bundled_danger_reader
from empatheia.care.earlier_turns import Carried, TurnJudgement, answered, carry, is_safe_now
from empatheia.care.encodings import hidden_in
from empatheia.care.features import feature_row
from empatheia.care.lexicon import MASKED, Hit, Lexicon, sentences, shipped_lexicon
from empatheia.care.normalising import LAUGH, WORDS, Token, tokens_of
from empatheia.care.questions import said_with_yes
from empatheia.care.word_vectors import shipped_word_vectors
from empatheia.errors import DataError
from empatheia.giving_way import give_way
from empatheia.records.danger import KINDS, LEVELS, About, Assessment, Kind, Level, graver
from empatheia.records.dialogue import Dialogue, Span, Turn
from empatheia.text.uncertainty import EMOJI, LANGUAGE, SCRIPT, doubts

LONGEST = 60
"""Tokens of a text that is read as one window; longer ones are read sentence by sentence, too."""
WINDOW = 40
MOST_WINDOWS = 64
"""Of one text that the encoder reads: those that the small classifier finds gravest."""
DOUBT = 0.02
"""From which probability of a risk by the small classifier on the encoder is asked, which takes twenty times as long.

Of the held-out risks that both find, all have more; two thirds of ordinary turns have less.
"""
SURE = 0.8
"""Below which probability of a risk a concern that no line says is a mere suspicion."""
PART, MOST_PARTS = 4000, 128
"""Characters of a text that are read as one, and of how many such parts of one text: the first, the last, and as many
between them, evenly."""
_SHARED = 200
"""Characters that two parts share where no sentence ends between them."""
NO_WORDS, UNKNOWN = "nothing but emoji", "hardly any known word; perhaps another language, or encoded"
_PLAIN_EMOJI = re.compile(
    "[\U0001f44c\U0001f44d\U0001f44f\U0001f600-\U0001f60d\U0001f642\U0001f970\U0001f389\u2764\U0001f3fb-\U0001f3ff\ufe0f\\s]+"
)
"""Emoji that are understood without words: a smile, a heart, a thumb."""
_SEALED = 16
"""Characters of a piece with figures in it that looks encoded."""
DANGER_TO_OTHERS = "danger to others"
"""Stands in the reasons where a line says so."""
_HAPPENED = frozenset(["killed", "took", "shot", "committed", "hanged", "ended", "taken", "hung"])
_THREAT = frozenset(WORDS["threat"])


@dataclass(frozen=True, slots=True)
class TextRead:
    """A text with everything the rules found in it.

    Attributes:
        text: As written.
        tokens: Of it.
        words: The same, masked words as one mark each.
        readings: Lexicon hits with what stands around them; no masks.
        around: What the text says beside them.
    """

    text: str
    tokens: tuple[Token, ...]
    words: tuple[str, ...]
    readings: tuple[Reading, ...]
    around: Surroundings

    def row(self, first: int = 0, last: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Features of some of its tokens; see :func:`~empatheia.care.features.feature_row`."""
        last = len(self.tokens) if last is None else last
        names = []
        for place in range(bisect_left(self.readings, first, key=_begin), len(self.readings)):
            reading = self.readings[place]
            if reading.hit.first >= last:
                break
            if reading.hit.last < last:
                names += _names(reading)
        return feature_row(self.words[first:last], names)


def _begin(reading: Reading) -> int:
    return reading.hit.first


def _names(reading: Reading) -> Iterator[str]:
    line = reading.hit.line
    yield f"{line.force}:{line.kind}:{line.level}"
    yield f"{line.force}:{line.level}:{reading.about}"
    yield f"line:{line.pattern}"
    for name in ("is_negated", "is_past", "is_quoted", "is_playful"):
        if getattr(reading, name):
            yield f"{line.force}:{name}"


@dataclass(slots=True)
class _Found:
    """What is gathered while a text is judged."""

    level: Level = "none"
    about: About | None = None
    kinds: list[Kind] = field(default_factory=list)
    tokens: list[tuple[int, int]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    is_denied: bool = False
    is_plain: bool = False
    is_past: bool = False
    is_over: bool = False
    is_fiction: bool = False

    def add(self, level: Level, reading: Reading, about: About, reason: str) -> None:
        if self.about is None or LEVELS.index(level) > LEVELS.index(self.level):
            self.about = about
        self.level = graver(self.level, level)
        kind = reading.hit.line.kind
        if kind is not None and kind not in self.kinds:
            self.kinds.append(kind)
        self.tokens.append((reading.hit.first, reading.hit.last))
        self.reasons.append(reason)


class Detector:
    """Finds danger in what speakers say.

    Args:
        lexicon: Words; None = the shipped ones.
        classifier: Weights; None = the shipped ones.
        thresholds: In place of the classifier's own.
        encoder: The better classifier; True = that of the bundled perception, False = none.
    """

    def __init__(
        self,
        lexicon: Lexicon | None = None,
        classifier: LinearClassifier | None = None,
        thresholds: dict[str, float] | None = None,
        encoder: bool | DangerReader = True,
    ) -> None:
        self.lexicon = lexicon or shipped_lexicon()
        self.classifier = classifier or shipped_classifier()
        self.encoder = _chosen(encoder and classifier is None, encoder)
        judge = self.classifier if self.encoder is None else self.encoder
        self.thresholds = {**judge.thresholds, **(thresholds or {})}

    def assess(self, item: object) -> Assessment:
        """How grave a conversation is at its last speaker turn.

        Args:
            item: A text or a conversation; empty texts are no danger.

        Raises:
            DataError: It is something else.
        """
        turns = turns_of(item)
        speakers = [place for place, turn in enumerate(turns) if turn.role == "speaker"]
        if not speakers:
            return Assessment("none", "unclear", turns=turns)
        if len(speakers) > 1:
            self.read_ahead([item])
        judged = {place: self._answered(turns, place) for place in speakers[-12:]}
        newest = speakers[-1]
        own = self._of_newest(turns, speakers, judged)
        carried = carry(_lasting(judged, speakers[-12:-1]))
        if carried is not None and own.denies and carried.level == "concern":
            carried = None
        told = own if carried is None else _with_earlier(own, carried, turns[newest].text)
        before = max((LEVELS.index(judged[place].level) for place in speakers[-4:-1]), default=0)
        return Assessment(
            told.level,
            told.about if told.level != "none" or told.about in ("past", "fiction", "other") else "unclear",
            told.kinds,
            _spans(newest, own, carried),
            told.reasons,
            own.score,
            turns,
            language_doubts(turns[newest].text),
            worsened=LEVELS.index(own.level) > before,
            is_suspicion=told is own and _is_suspicion(own),
        )

    def read_ahead(self, items: Iterable[object]) -> None:
        """Has the encoder read what :meth:`assess` will ask it of several inputs, all together, which is faster.

        Args:
            items: Texts and conversations.
        """
        if self.encoder is None:
            return
        asked: list[list[str]] = []
        for item in items:
            speakers = [turn.text for turn in turns_of(item) if turn.role == "speaker"]
            for text in speakers[-12:]:
                judged = self._by_small([self.read(text[start:end]) for start, end in parts_of(text)])
                asked += [judged[i].words for i in _doubtful(judged)]
        if asked:
            self.encoder.probabilities(asked)

    def judge(self, text: str) -> TurnJudgement:
        """What one text says by itself; a long one is read in parts, from its beginning to its end."""
        parts = parts_of(text)
        reads = [self.read(text[start:end]) for start, end in parts]
        chances = self._by_classifier(reads)
        pairs = zip(parts, reads, strict=True)
        judged = [
            self._judged(read, start, *chances[number])
            for number, ((start, _), read) in enumerate(pairs)
            if read.tokens
        ]
        judged += self._hidden(parts, reads)
        return _gravest(judged) if judged else TurnJudgement("none", "unclear")

    def _hidden(self, parts: Sequence[tuple[int, int]], reads: Sequence[TextRead]) -> list[TurnJudgement]:
        """What the parts of a text say where they are written backwards, in base64 and the like, if it is grave."""
        found = [(start, one) for (start, _), read in zip(parts, reads, strict=True) for one in hidden_in(read.text)]
        plain = [self.read(hidden.text) for _, hidden in found]
        chances = self._by_classifier(plain)
        out = []
        for (shift, hidden), read, (seen, window) in zip(found, plain, chances, strict=True):
            judged = self._judged(read, 0, seen, window) if read.tokens else None
            if judged is not None and judged.level != "none":
                place = (hidden.start + shift, hidden.end + shift)
                reasons = (f"written {hidden.how}", *judged.reasons)
                out.append(replace(judged, spans=(place,), reasons=reasons))
        return out

    def _judged(self, read: TextRead, shift: int, chances: dict[str, float], window: tuple[int, int]) -> TurnJudgement:
        """What a part of a text says that begins ``shift`` characters behind the beginning."""
        give_way()
        found = self.by_lines(read)
        score, crisis = chances[RISK], chances[CRISIS]
        by_lines = found.level
        self._add_classifier(found, read, chances, window)
        if found.level == "none":
            about: About = "fiction" if found.is_fiction else "past" if found.is_over or found.is_past else "unclear"
            return TurnJudgement("none", about, tuple(found.kinds), (), tuple(found.reasons), score, crisis)
        spans = _merged([(read.tokens[a].start, read.tokens[b].end) for a, b in found.tokens if b < len(read.tokens)])
        about = found.about or self._about(chances)
        return TurnJudgement(
            found.level,
            about,
            _kinds(found.kinds, about, chances),
            tuple((start + shift, end + shift) for start, end in spans),
            tuple(dict.fromkeys(found.reasons)),
            score,
            crisis,
            has_lines=by_lines != "none",
        )

    def read(self, text: str) -> TextRead:
        """Tokens, hits and surroundings of a text."""
        give_way()
        tokens = tokens_of(text)
        around = surroundings(text, tokens)
        hits = self.lexicon.hits(tokens)
        words = [token.text for token in tokens]
        for hit in hits:
            if hit.line.force == "mask":
                for place in range(hit.first, hit.last + 1):
                    words[place] = LAUGH if words[place] == LAUGH else MASKED
        readings = read_hits([hit for hit in hits if hit.line.force != "mask"], tokens, around)
        return TextRead(text, tokens, tuple(words), readings, around)

    # -- parts -------------------------------------------------------------------------------------------------

    def _answered(self, turns: Sequence[Turn], place: int) -> TurnJudgement:
        """What a turn says, also as an answer to the listener; after a yes, what the listener told of the speaker."""
        own = answered(self.judge(turns[place].text), turns, place)
        if own.level != "none" or own.denies or not place or turns[place - 1].role != "listener":
            return own
        told = said_with_yes(turns[place - 1].text, turns[place].text)
        meant = self.judge(told) if told else own
        if meant.level == "none" or _is_suspicion(meant):
            return own
        level: Level = meant.level if meant.has_lines else "concern"
        reasons = (f'says yes to "{told}"', *meant.reasons)
        return replace(meant, level=level, spans=((0, len(turns[place].text)),), reasons=reasons)

    def _of_newest(
        self, turns: Sequence[Turn], speakers: Sequence[int], judged: dict[int, TurnJudgement]
    ) -> TurnJudgement:
        """The newest turn's judgement after its answer to the listener, or with the turn before it."""
        own = judged[speakers[-1]]
        if own.denies:
            return _cleared(own)
        if len(speakers) < 2 or judged[speakers[-2]].level == "none":
            return self._together(turns, speakers, own)
        return own

    def _together(self, turns: Sequence[Turn], speakers: Sequence[int], own: TurnJudgement) -> TurnJudgement:
        """The newest two speaker turns read as one text, where neither says it alone."""
        if own.level != "none" or len(speakers) < 2 or own.about in ("fiction", "past"):
            return own
        texts = [turns[place].text for place in speakers[-2:]]
        if any(len(text) > 400 for text in texts):
            return own
        both = self.judge("\n".join(texts))
        if both.level == "none" or _is_suspicion(both) or both.score < own.score + 0.05:
            return own
        reasons = (*both.reasons, "read together with the turn before")
        return replace(both, level="concern", reasons=reasons, spans=((0, len(texts[-1])),))

    def by_lines(self, read: TextRead) -> _Found:
        """What the lines that flag by themselves say."""
        found = _Found(is_over=read.around.is_over)
        for reading in read.readings:
            line = reading.hit.line
            words = _quoted(read, reading.hit)
            aside = _set_aside(found, reading, read.around)
            if aside:
                found.reasons.append(f"{words} {aside}")
            elif _flags(reading) and reading.is_negated and (read.around.is_resolved or read.around.is_over):
                found.is_over = True
                found.reasons.append(f"{words} is said not to be so any more")
            elif _flags(reading):
                level, why = self._level(reading, read)
                danger = f", {DANGER_TO_OTHERS}" if line.provenance.startswith(DANGER_TO_OTHERS) else ""
                kind = str(line.kind).replace("_", " ")
                found.add(level, reading, reading.about, f"{words}: {kind}{danger}{why}")
        return found

    def _level(self, reading: Reading, read: TextRead) -> tuple[Level, str]:
        """Of a hard line, after its context."""
        line = reading.hit.line
        if reading.is_negated:
            return "concern", ", denied"
        if reading.is_past and reading.about in ("past", "self"):
            return "concern", ", in the past"
        if reading.about == "unclear":
            return "concern", ", in somebody else's words" if reading.is_quoted else ", of nobody in particular"
        if reading.about == "other":
            hit = reading.hit
            inside = {token.text for token in read.tokens[hit.first : hit.last + 1]}
            if (inside & _HAPPENED and not reading.sentence & _THREAT) or reading.is_past:
                return "concern", ", of somebody else, and it has happened"
            return line.level, ", of somebody else"
        return line.level, ""

    def _by_classifier(self, reads: Sequence[TextRead]) -> list[tuple[dict[str, float], tuple[int, int]]]:
        """For each part, probabilities of the window with the highest risk, and its tokens."""
        seen = self._by_small(reads)
        asked = [] if self.encoder is None else _doubtful(seen)
        if self.encoder is not None and asked:
            small, words = [seen[i].chances for i in asked], [seen[i].words for i in asked]
            for i, both in zip(asked, self.encoder.refined(small, words), strict=True):
                seen[i] = replace(seen[i], chances=both)
        by_part: list[list[_Seen]] = [[] for _ in reads]
        for one in seen:
            by_part[one.part].append(one)
        out: list[tuple[dict[str, float], tuple[int, int]]] = []
        for own in by_part:
            top = max(own, key=lambda one: one.chances[RISK], default=None)
            crisis = max((one.chances[CRISIS] for one in own), default=0.0)
            out.append(({}, (0, 0)) if top is None else ({**top.chances, CRISIS: crisis}, top.place))
        return out

    def _by_small(self, reads: Sequence[TextRead]) -> list[_Seen]:
        """Windows of all parts of a text, and what the small classifier says of each; equal ones are read once."""
        known: dict[tuple[str, ...], dict[str, float]] = {}
        out = []
        for part, read in enumerate(reads):
            for place in windows(read.tokens):
                give_way()
                words = tuple(read.words[slice(*place)])
                if words not in known:
                    known[words] = self.classifier.probabilities(*read.row(*place))
                out.append(_Seen(part, place, [token.text for token in read.tokens[slice(*place)]], known[words]))
        return out

    def _add_classifier(
        self, found: _Found, read: TextRead, chances: dict[str, float], window: tuple[int, int]
    ) -> None:
        """What the classifier adds to the lines."""
        limit = self.thresholds[RISK]
        if chances[RISK] < limit:
            return
        is_story = read.around.is_fiction and chances["fiction"] >= 0.4
        if found.level == "none" and (is_story or found.is_over):
            return
        level: Level = "crisis" if chances[CRISIS] >= self.thresholds[CRISIS] else "concern"
        if (found.is_denied or found.is_past) and not found.is_plain:
            level = "concern"
        level = graver(found.level, level)
        if found.about is None:
            found.about = self._about(chances, read)
        if not found.tokens:
            _add_soft(found, read, chances, window)
        found.level = level
        found.reasons.append(f"the classifier finds a risk, probability {chances[RISK]:.2f}, limit {limit:.2f}")

    def _about(self, chances: dict[str, float], read: TextRead | None = None) -> About:
        names: list[About] = ["self", "other", "past"]
        if read is not None:
            said = {reading.about for reading in read.readings}
            agreed: list[About] = [name for name in names if said.intersection(names) == {name}]
            if agreed:
                return agreed[0]
            if read.around.is_for_a_friend:
                return "unclear"
        names.sort(key=lambda name: -chances[name])
        return names[0]


def assess(item: object) -> Assessment:
    """How grave a conversation is at its last speaker turn, by the shipped detector.

    Args:
        item: A text or a :class:`~empatheia.records.dialogue.Dialogue`.

    Raises:
        DataError: It is something else.
    """
    return shipped_detector().assess(item)


@lru_cache(maxsize=1)
def shipped_detector() -> Detector:
    """The detector as it is shipped, made once."""
    return Detector()


def _chosen(is_wanted: bool, encoder: bool | DangerReader) -> DangerReader | None:
    if not isinstance(encoder, bool):
        return encoder
    return bundled_danger_reader() if is_wanted else None


def turns_of(item: object) -> tuple[Turn, ...]:
    """The turns of a text or a conversation.

    Raises:
        DataError: It is neither.
    """
    if isinstance(item, str):
        return (Turn("speaker", item),)
    if isinstance(item, Dialogue):
        for number, turn in enumerate(item.turns, 1):
            if not isinstance(turn.text, str):
                raise DataError(f"turn {number} holds a {type(turn.text).__name__}; its text must be a string.")
        return item.turns
    raise DataError(f"cannot assess a {type(item).__name__}; accepted: a text or a Dialogue.")


def parts_of(text: str) -> list[tuple[int, int]]:
    """Stretches of a text that are read as one each: the whole if it is short; a long one is cut behind sentences.

    Of a text that is longer than ``MOST_PARTS`` of them the first, the last, and evenly spread ones between are kept.

    >>> parts_of("No. " * 1500)
    [(0, 3999), (3999, 6000)]
    """
    out, start = [], 0
    while len(text) - start > PART:
        half, end = start + PART // 2, start + PART
        behind = max(text.rfind(mark, half, end) for mark in ".!?\n") + 1
        out.append((start, behind or end))
        start = behind or end - _SHARED
    out.append((start, len(text)))
    if len(out) > MOST_PARTS:
        out = [out[round(i * (len(out) - 1) / (MOST_PARTS - 1))] for i in range(MOST_PARTS)]
    return out


def windows(tokens: Sequence[Token]) -> list[tuple[int, int]]:
    """Token ranges the classifier reads: the whole if it is short, else runs of sentences that overlap by one."""
    if not tokens:
        return []
    if len(tokens) <= LONGEST:
        return [(0, len(tokens))]
    pieces: list[tuple[int, int]] = []
    for first, last in sentences(tokens):
        pieces += [(start, min(start + WINDOW, last)) for start in range(first, last, WINDOW // 2)]
    out: list[tuple[int, int]] = []
    for place, (first, last) in enumerate(pieces):
        out.append((first, last))
        behind = place + 1
        while behind < len(pieces) and pieces[behind][1] - first <= WINDOW:
            behind += 1
        if pieces[behind - 1][1] > last:
            out.append((first, pieces[behind - 1][1]))
    return out


@dataclass(frozen=True, slots=True)
class _Seen:
    """A window of a part of a text: its tokens, their words, and what the classifier says of them."""

    part: int
    place: tuple[int, int]
    words: list[str]
    chances: dict[str, float]


def _doubtful(seen: Sequence[_Seen]) -> list[int]:
    """Places of the windows that the encoder is asked about, the gravest first."""
    asked = [i for i, one in enumerate(seen) if one.chances[RISK] >= DOUBT]
    return sorted(asked, key=lambda i: -seen[i].chances[RISK])[:MOST_WINDOWS]


def language_doubts(text: str) -> tuple[str, ...]:
    """Why a text may not be understood, e.g. another language than English; empty if it is.

    >>> language_doubts("I lost my job."), language_doubts("\U0001f52a\U0001f62d")
    ((), ('nothing but emoji',))
    """
    found = tuple(doubt for doubt in doubts(text) if doubt in (LANGUAGE, SCRIPT))
    words = [token.text for token in tokens_of(text[:PART])]
    if not words and EMOJI in doubts(_PLAIN_EMOJI.sub("", text[:PART])):
        return (*found, NO_WORDS)
    return found or ((UNKNOWN,) if _are_unknown(words) else ())


def _are_unknown(words: Sequence[str]) -> bool:
    """Whether most words of a text are none that the vectors know, or look like something encoded."""
    known = shipped_word_vectors().places
    long = [word for word in words if word.isalpha() and len(word) > 2]
    n_known = sum(word in known or word == LAUGH for word in long)
    n_sealed = sum(len(word) >= _SEALED and not word.isalpha() for word in words)
    return n_sealed > n_known or (len(long) >= 3 and 2 * n_known < len(long))


def _gravest(judged: Sequence[TurnJudgement]) -> TurnJudgement:
    """What the parts of a text say together: the gravest part, with what the others of its level add."""
    top = max(judged, key=lambda one: (LEVELS.index(one.level), one.score))
    if len(judged) == 1:
        return top
    same = [top, *(one for one in judged if one.level == top.level and one is not top)]
    return replace(
        top,
        kinds=tuple(dict.fromkeys(kind for one in same for kind in one.kinds)),
        spans=tuple(_merged([span for one in same for span in one.spans])),
        reasons=tuple(dict.fromkeys(reason for one in same for reason in one.reasons)),
        score=max(one.score for one in judged),
        crisis=max(one.crisis for one in judged),
        has_lines=any(one.has_lines for one in same),
    )


def _cleared(judged: TurnJudgement) -> TurnJudgement:
    """What a plain no to the question about danger leaves: what lines say of it, no mere suspicion."""
    if judged.level != "concern" or judged.has_lines:
        return judged
    return replace(judged, level="none", about="unclear", kinds=(), spans=(), reasons=())


def _lasting(judged: Mapping[int, TurnJudgement], places: Sequence[int]) -> list[tuple[int, TurnJudgement]]:
    """Earlier turns with their judgements, without mere suspicions."""
    return [(place, judged[place]) for place in places if not _is_suspicion(judged[place])]


def _is_suspicion(judged: TurnJudgement) -> bool:
    """Whether the classifier alone flags a turn, and not surely; nothing of it is left at the next turn."""
    return judged.level == "concern" and not judged.has_lines and judged.score < SURE


def _spans(newest: int, own: TurnJudgement, carried: Carried | None) -> tuple[Span, ...]:
    """Where the words of danger stand, the newest turn first."""
    found = [Span(newest, start, end, None) for start, end in own.spans]
    found += [] if carried is None else [Span(place, start, end, None) for place, start, end in carried.places]
    return tuple(sorted(found, key=lambda span: (-span.turn, span.start)))


def _with_earlier(own: TurnJudgement, carried: Carried, text: str) -> TurnJudgement:
    """The newest turn's judgement, or what an earlier turn leaves behind where that is graver."""
    if LEVELS.index(carried.level) <= LEVELS.index(own.level):
        return own
    level: Level = "concern" if is_safe_now(text) else carried.level
    reasons = (*carried.reasons, *own.reasons)
    return replace(own, level=level, about=carried.about, kinds=carried.kinds, reasons=reasons)


def _kinds(by_lines: Sequence[Kind], about: About, chances: dict[str, float]) -> tuple[Kind, ...]:
    """Kinds of danger that lines name, or else the likeliest; with the likely ones, and as the person asks for."""
    kinds: list[Kind] = [*by_lines] or [max(KINDS, key=lambda kind: chances[kind])]
    kinds.extend(kind for kind in KINDS if chances[kind] >= 0.5 and kind not in kinds)
    if about == "other" and "third_party" not in kinds:
        kinds.append("third_party")
    if about == "self" and "third_party" in kinds:
        kinds.remove("third_party")
    return tuple(kinds)


def _add_soft(found: _Found, read: TextRead, chances: dict[str, float], window: tuple[int, int]) -> None:
    """Where lines that do not flag by themselves stand in a window, or else all of it; and their kinds if likely."""
    soft = [(r.hit.first, r.hit.last) for r in read.readings if window[0] <= r.hit.first < window[1]]
    found.tokens = soft or [(window[0], window[1] - 1)]
    for reading in read.readings:
        kind = reading.hit.line.kind
        if kind is not None and chances[kind] >= 0.3 and kind not in found.kinds:
            found.kinds.append(kind)


def _set_aside(found: _Found, reading: Reading, around: Surroundings) -> str:
    """Notes what a line says of the whole text; why the line itself counts nothing, "" if it may."""
    line = reading.hit.line
    if reading.about == "fiction":
        found.is_fiction = True
        return "is said in a story, a song or a game"
    if reading.is_negated:
        found.is_denied = True
    elif line.force == "hard" and line.level == "crisis" and not reading.is_past:
        found.is_plain = True
    if reading.is_past and around.is_resolved:
        found.is_over = True
        return "is told as over"
    found.is_past = found.is_past or reading.is_past
    return ""


def _flags(reading: Reading) -> bool:
    """Whether a line flags by itself here: not beside laughter, unless it tells of the past."""
    return reading.hit.line.force == "hard" and (reading.is_past or not reading.is_playful)


def _quoted(read: TextRead, hit: Hit) -> str:
    said = read.text[read.tokens[hit.first].start : read.tokens[hit.last].end]
    return '"' + " ".join(said.split())[:80] + '"'


def _merged(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if out and start <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((start, end))
    return out
