"""Chats as text: ``A: ...`` and ``B: ...``, one turn a line, with names and time stamps as chat programs export them.

A line without a name, or one that begins with a blank, continues the turn before it; where messages have dates, every
line without one does. Blank lines are skipped; a line of three or more ``-``, ``=``, ``*``, ``#`` or ``_`` ends a
conversation. What the program itself says (a line with a time stamp and no name), media that were left out, deleted
messages and missed calls are counted; WhatsApp's words for them, in twelve languages, are in ``whatsapp.yaml``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from empatheia.errors import DataError
from empatheia.files.talks import Message, Talk, mended
from empatheia.records.dialogue import Dialogue, Role

MAX_NAME_WORDS = 4
MAX_TURNS = 100_000
"""Of a conversation; a longer chat goes on in another one."""
PROBE_LINES = 60
_HEAD = 160
"""Characters of a line in which stamp and name must end."""

DIRECTION_MARKS = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
"""Characters nobody sees, which exports put in front of lines, names and dashes."""
_LEFT_TO_RIGHT = "\u200e"
_LATE = ("오후", "下午", "午後", "م", "μ", "p")
_HALF = r"(?:[AaPp]\.?\s?[Mm]\.?|오전|오후|上午|下午|午前|午後|ص|م|[πμ]\.?\s?μ\.?)"
_CLOCK = rf"(?:{_HALF}\s?)?\d{{1,2}}[:.]\d{{2}}(?:[:.]\d{{2}}(?:[.,]\d+)?)?(?:\s?{_HALF}(?![^\W_]))?"
_DATE = (
    r"(?:\d{4}\s?[-./년年]\s?\d{1,2}\s?[-./월月]\s?\d{1,2}[.일日]?"
    r"|\d{1,2}\s?[-./]\s?\d{1,2}\s?[-./]\s?\d{2,4}\.?(?:\s?г\.?)?)"
)
_STAMP_TEXT = rf"(?:{_DATE}(?:(?:[,،T]|,?\s(?:at|um|klo?\.?|à|в|om)\s)?\s*{_CLOCK}Z?)?|{_CLOCK})"
_STAMP = re.compile(rf"(?:\[\s*{_STAMP_TEXT}\s*\]|\(\s*{_STAMP_TEXT}\s*\)|{_STAMP_TEXT})\s*(?:[-–—|]\s*|[:,]\s+)?")
_PARTS = re.compile(
    rf"(\d{{1,4}})\s?[-./년年]\s?(\d{{1,2}})\s?[-./월月]\s?(\d{{1,4}}).*?({_HALF})?\s?(\d{{1,2}})[:.](\d{{2}})"
    rf"(?:[:.](\d{{2}}))?(?:[.,]\d+)?\s?({_HALF})?"
)
_ANY_DATE = re.compile(
    r"[\[(]?\s*(?:\d{1,4}\s?[-./]\s?\d{1,2}\s?[-./]\s?\d{1,4}(?!\d)"
    r"|\d{4}\s?[^\W\d_]{1,3}\s?\d{1,2}\s?[^\W\d_]{1,3}\s?\d{1,2}(?!\d)"
    r"|\d{1,2}\.?\s(?:de\s)?[^\W\d_]{3,12}\.?,?\s(?:de\s)?\d{4}\b)"
)
_TIME_BEHIND = re.compile(r".{0,20}?\b\d{1,2}[:.h]\d{2}\b")
_NAME = re.compile(
    rf"([^\W_][\w.'’&-]*(?: [\w.'’&()-]+)*?)\s*(?:[\[(]\s*{_STAMP_TEXT}\s*[\])])?\s*[:：](?!//)(?:\s+|$|(?=\D))"
)
_ANY_NAME = re.compile(r"([^:\n]{1,100}?)\s*:(?:\s+|$)")
_RULE = re.compile(r"\s*([-=*#_])\1{2,}\s*$")
_ATTACHED = re.compile(r"\S.{0,120}\.\w{2,5} \(\w+(?: \w+){0,3}\)|<[^<>:]{1,40}:\s[^<>]{1,120}\.\w{2,5}>")
_PARLAI = re.compile(r"text:.*?\t(?:labels|eval_labels|episode_done)\b")

Stamp = tuple[int, int, int, int, int, int]
"""Three numbers of a date as they stand there, then hour, minute, second."""


@dataclass(slots=True)
class _Heard:
    """One conversation while it is read."""

    line: int
    said: list[tuple[str, list[str], Stamp | None]] = field(default_factory=list)
    left: Counter[str] = field(default_factory=Counter)
    n_dated: int = 0
    is_mixed: bool = False
    known: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Transcript:
    """One conversation of a transcript.

    Attributes:
        dialogue: The conversation, or None when it cannot be used.
        line: 1-based number of its first line.
        roles: Each name as written to its role, in order of appearance.
        left: What was left out, to how often.
        error: Why it cannot be used, or None.
    """

    dialogue: Dialogue | None
    line: int
    roles: Mapping[str, Role]
    left: Mapping[str, int]
    error: str | None = None

    @classmethod
    def of(cls, talk: Talk, speaker: str | None = None) -> Transcript:
        """A conversation of any form, with its roles decided."""
        try:
            return cls(talk.dialogue(speaker), talk.line, talk.roles(speaker), talk.left)
        except DataError as error:
            return cls(None, talk.line, {}, talk.left, str(error))


def is_transcript(lines: Iterable[str]) -> bool:
    """Whether lines look like a chat rather than one text a line: each begins with a name, or most do and names recur.

    Args:
        lines: The first lines of a text; ``PROBE_LINES`` are looked at.

    >>> is_transcript(["A: I lost my job.", "B: Oh no!"])
    True
    >>> is_transcript(["Note: this is sad.", "I lost my job."])
    False
    """
    n_lines = n_dated = 0
    names: list[str] = []
    for number, raw in enumerate(lines):
        if number == PROBE_LINES:
            break
        line = DIRECTION_MARKS.sub("", raw)
        if not line.strip() or _RULE.match(line) or line[0].isspace():
            continue
        found = _said(line)
        if found is None and not n_lines and not _STAMP.match(line[:_HEAD]):
            return False
        n_lines += 1
        if found is not None:
            names.append(found[0])
            n_dated += found[2] is not None
    return (n_dated > 1 and 2 * n_dated >= n_lines) or _recur(names, n_lines)


def _recur(names: list[str], n_lines: int) -> bool:
    """Whether names at the beginnings of lines are those of people who answer each other."""
    different = len(set(names))
    if different < 2:
        return False
    if len(names) == n_lines:
        return different == 2 or different < len(names)
    return 2 * len(names) >= n_lines and different < len(names)


def read_transcripts(lines: Iterable[str], speaker: str | None = None) -> Iterator[Transcript]:
    """Conversations of a transcript, one at a time.

    The first who says something is the ``speaker``, the other the ``listener``; people called Speaker and Listener are
    what they are called.

    Args:
        lines: Of the text.
        speaker: Name of the person who is the ``speaker``; everyone else listens.
    """
    for talk in read_talk_lines(lines):
        yield Transcript.of(talk, speaker)


def read_talk_lines(lines: Iterable[str]) -> Iterator[Talk]:
    """Conversations of a transcript as :class:`Talk` records, with the times of their messages."""
    heard = _Heard(1)
    for number, raw in enumerate(lines, 1):
        line = raw.rstrip("\r\n")
        if _RULE.match(line):
            if heard.said:
                yield _talk(heard)
            heard = _Heard(number + 1)
        elif line.strip():
            _hear(heard, line, number)
            if len(heard.said) > MAX_TURNS:
                rest = heard.said.pop()
                talk = _talk(heard)
                yield talk
                known = tuple(dict.fromkeys([*talk.known, *(who for who, _, _ in heard.said)]))
                heard = _Heard(number, [rest], n_dated=heard.n_dated, is_mixed=heard.is_mixed, known=known)
    if heard.said or heard.left:
        yield _talk(heard)


def is_parlai(lines: Sequence[str]) -> bool:
    """Whether lines are ParlAI's: ``text:...<tab>labels:...<tab>episode_done:True``."""
    return any(line.strip() for line in lines) and all(_PARLAI.match(line) for line in lines if line.strip())


def read_parlai(lines: Iterable[str]) -> Iterator[Talk]:
    """Episodes of ParlAI's text form: who asks is the speaker, the first label the listener's answer."""
    talk, number = Talk(are_roles=True), 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        cells: dict[str, str] = {}
        for cell in line.rstrip("\r\n").split("\t"):
            name, _, value = cell.partition(":")
            cells[name] = value
        talk.line = talk.line if talk.messages else number
        for role, names in (("speaker", ("text",)), ("listener", ("labels", "eval_labels"))):
            said = next((cells[name] for name in names if cells.get(name)), "").replace("\\n", "\n").strip()
            if said:
                talk.messages.append(Message(role, mended(said)))
        if cells.get("episode_done", "").strip().lower() == "true" or len(talk.messages) >= MAX_TURNS:
            yield talk
            talk = Talk(line=number + 1, are_roles=True)
    if talk.messages:
        yield talk


def _hear(heard: _Heard, line: str, number: int) -> None:
    plain = DIRECTION_MARKS.sub("", line)
    stamp = None if plain[:1].isspace() else _STAMP.match(plain[:_HEAD])
    stamped, is_dated = stamp is not None, _date_in(stamp) is not None
    if heard.n_dated > 1 and not heard.is_mixed and not is_dated:
        found, stamped = None, False  # only what has a date begins a message
    else:
        found = _begun(heard, plain)
    if found is not None:
        if not heard.said:
            heard.line = number
        _begin(heard, line, *found)
    elif heard.said and not stamped:
        heard.said[-1][1].append(plain.strip())
    elif not is_dated and begins_with_unknown_date(plain):
        heard.left["lines with dates of an unknown form"] += 1
    else:
        heard.left["notices"] += 1


def _begun(heard: _Heard, plain: str) -> tuple[str, str, Stamp | None] | None:
    """Name, text and date of a line that begins a message; None if it continues one, or the program says it."""
    if plain[:1].isspace() and heard.said:
        return None
    found = _said(plain.lstrip())
    return None if found is None or _words().notices.search(found[0].lower()) else found


def _begin(heard: _Heard, line: str, name: str, text: str, stamp: Stamp | None) -> None:
    """Begins a message; the mark that programs put in front of their own words stays before its text."""
    heard.n_dated += stamp is not None
    heard.is_mixed = heard.is_mixed or stamp is None
    at = line.rfind(text) if text else -1
    own = f"{_LEFT_TO_RIGHT}{text}" if at > 0 and line[at - 1] == _LEFT_TO_RIGHT else text
    heard.said.append((name, [own] if text else [], stamp))


def begins_with_unknown_date(line: str) -> bool:
    """Whether a line begins with a date and a time that do not stand as any chat is known to write them.

    >>> [begins_with_unknown_date(f"{date} - Ana: Hi") for date in ("12 March 2024 at 14:55", "12.3.2024, 14:55")]
    [True, False]
    """
    head = DIRECTION_MARKS.sub("", line)[:_HEAD]
    date = _ANY_DATE.match(head)
    if date is None or _date_in(_STAMP.match(head)) is not None:
        return False
    return _TIME_BEHIND.match(head, date.end()) is not None


def _date_in(stamp: re.Match[str] | None) -> re.Match[str] | None:
    """Date and time of a stamp that has both."""
    return None if stamp is None else _PARTS.match(stamp[0].lstrip(" [("))


def _said(line: str) -> tuple[str, str, Stamp | None] | None:
    """Name and text of a line that begins a turn, and its date."""
    head = line[:_HEAD]
    stamp = _STAMP.match(head)
    rest = line[stamp.end() if stamp else 0 :]
    dated = _date_in(stamp)
    match = (_ANY_NAME if dated else _NAME).match(rest[:_HEAD])
    if match is None or (not dated and (len(match[1].split()) > MAX_NAME_WORDS or match.end() > _HEAD // 2)):
        return None
    if not dated and _ANY_DATE.match(head) and (stamp is None or any(map(str.isdigit, match[1]))):
        return None  # a date of a form that is not known is nobody's name
    return match[1].strip(), rest[match.end() :].strip(), _stamp_of(dated) if dated else None


def _stamp_of(found: re.Match[str]) -> Stamp:
    first, second, third, hour, minute, seconds = (int(found[i] or 0) for i in (1, 2, 3, 5, 6, 7))
    if half := (found[4] or found[8] or "").lower():
        hour = hour % 12 + (12 if half.startswith(_LATE) else 0)
    return (first, second, third, hour, minute, seconds)


def _talk(heard: _Heard) -> Talk:
    times = _times([stamp for _, _, stamp in heard.said])
    talk = Talk(line=heard.line, left=heard.left, known=heard.known)
    for (name, parts, stamp), time in zip(heard.said, times, strict=True):
        if stamp is not None and parts:
            if what := _left_out(parts[0]):
                parts = parts[1:]  # what follows is its caption
                if not parts:
                    heard.left[what] += 1
                    continue
            else:
                parts = [_without_edited(parts[0]), *parts[1:]]
        text = mended("\n".join(part.strip(_LEFT_TO_RIGHT) for part in parts))
        talk.messages.append(Message(name, text, time))
    if not talk.messages:
        talk.error = "has no line of the form NAME: text."
    return talk


# -- WhatsApp's words ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Words:
    media: frozenset[str]
    deleted: frozenset[str]
    edited: frozenset[str]
    calls: re.Pattern[str]
    notices: re.Pattern[str]


@lru_cache(maxsize=1)
def _words() -> _Words:
    from empatheia.settings import read_yaml

    kinds: dict[str, list[str]] = {}
    for words in read_yaml(Path(__file__).with_name("whatsapp.yaml")).values():
        for kind, phrases in words.items():
            kinds.setdefault(kind, []).extend(phrases)
    ways = {kind: "|".join(map(re.escape, phrases)) for kind, phrases in kinds.items()}
    missed, calls, back = ways["missed"], ways["calls"], ways["call_back"]
    length = rf"\d{{1,3}}(?::\d\d){{1,2}}|\d{{1,3}}\s?(?:{ways['durations']})(?![^\W\d])"
    between = f"[\\s,.•(·{_LEFT_TO_RIGHT}]*"
    behind = rf"(?:{between}(?:{calls}|{back}|{length})){{0,6}}[).\s]*"
    return _Words(
        frozenset(kinds["media"]),
        frozenset(kinds["deleted"]),
        frozenset(kinds["edited"]),
        re.compile(rf"(?:(?:{missed})(?: \D{{0,8}}{_CLOCK})?|{calls}){behind}", re.IGNORECASE),
        re.compile(ways["notices"]),
    )


def _left_out(text: str) -> str | None:
    """What stands in place of a message, in words; None for a message."""
    words, plain = _words(), text.strip(_LEFT_TO_RIGHT + " ")
    low = plain.lower().rstrip(".")
    if low.strip("<>") in words.media or _ATTACHED.fullmatch(plain):
        return "media"
    if low in words.deleted:
        return "deleted messages"
    if words.calls.fullmatch(low):
        return "calls"
    return "notices" if text.startswith(_LEFT_TO_RIGHT) or low == "null" else None


def _without_edited(text: str) -> str:
    at = text.rfind("<", max(0, len(text) - 80))
    is_edited = at >= 0 and text[at:].strip("<>").lower() in _words().edited
    return text[:at].rstrip(_LEFT_TO_RIGHT + " ") if is_edited else text


# -- dates ---------------------------------------------------------------------------------------------------


def _times(stamps: Sequence[Stamp | None]) -> list[int | None]:
    """Milliseconds since 1970 of each; whether the day or the month comes first is what makes the dates rise.

    Of the two orders that one is taken in which fewer dates are impossible, then the one in which fewer go back, then
    the one that ends sooner after it began, then the day first. A date that is impossible in it is read in the other.
    """
    orders = [[_moment(stamp, month_first) for stamp in stamps] for month_first in (False, True)]

    def faults(times: list[int | None]) -> tuple[int, int, int]:
        known = [time for time in times if time is not None]
        return (-len(known), sum(b < a for a, b in pairwise(known)), known[-1] - known[0] if known else 0)

    best, other = sorted(orders, key=faults)
    return [a if a is not None else b for a, b in zip(best, other, strict=True)]


def _moment(stamp: Stamp | None, month_first: bool) -> int | None:
    if stamp is None:
        return None
    first, second, third, *clock = stamp
    if first > 31:
        year, month, day = first, second, third
    else:
        day, month = (second, first) if month_first else (first, second)
        year = third if third > 99 else 2000 + third
    try:
        return int(datetime(year, month, day, *clock, tzinfo=UTC).timestamp() * 1000)
    except ValueError:
        return None
