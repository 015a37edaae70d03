"""Plain chat transcripts: ``A: ...`` and ``B: ...``, one turn a line, with names and time stamps as chats export them.

A line without a name, or one that begins with a blank, continues the turn before it. Blank lines are skipped; a line
of three or more ``-``, ``=``, ``*``, ``#`` or ``_`` ends a conversation. A line with a time stamp and no name is a
message of the chat program and left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from empatheia.dialogue import ROLES, Dialogue, Role, Turn
from empatheia.errors import DataError
from empatheia.registry import nearest

MAX_NAME_WORDS = 4
MAX_TURNS = 100_000
PROBE_LINES = 60
_MAX_NAME_CHARACTERS = 80

_CLOCK = r"\d{1,2}[:.]\d{2}(?:[:.]\d{2}(?:[.,]\d+)?)?(?:\s?[AaPp]\.?[Mm]\.?)?"
_DATE = r"(?:\d{4}[-./]\d{1,2}[-./]\d{1,2}|\d{1,2}[-./]\d{1,2}[-./]\d{2,4})"
_STAMP_TEXT = rf"(?:{_DATE}(?:[,T]?\s*{_CLOCK}Z?)?|{_CLOCK})"
_STAMP = re.compile(rf"(?:\[\s*{_STAMP_TEXT}\s*\]|\(\s*{_STAMP_TEXT}\s*\)|{_STAMP_TEXT})\s*(?:[-–—|]\s*)?")
_NAME = re.compile(
    rf"([^\W_][\w.'’&-]*(?: [\w.'’&()-]+)*?)\s*(?:[\[(]\s*{_STAMP_TEXT}\s*[\])])?\s*[:：](?!//)(?:\s+|$|(?=\D))"
)
_RULE = re.compile(r"\s*([-=*#_])\1{2,}\s*$")


@dataclass(slots=True)
class _Heard:
    """One conversation while it is read."""

    line: int
    said: list[tuple[str, list[str]]] = field(default_factory=list)
    n_notices: int = 0


@dataclass(frozen=True, slots=True)
class Transcript:
    """One conversation of a transcript.

    Attributes:
        dialogue: The conversation, or None when it cannot be used.
        line: 1-based number of its first line.
        roles: Each name as written to its role, in order of appearance.
        n_notices: Lines of the chat program that were left out.
        error: Why it cannot be used, or None.
    """

    dialogue: Dialogue | None
    line: int
    roles: Mapping[str, Role]
    n_notices: int = 0
    error: str | None = None


def is_transcript(lines: Iterable[str]) -> bool:
    """Whether lines look like a chat rather than one text a line: each begins with a name, or most do and names recur.

    Args:
        lines: The first lines of a text; ``PROBE_LINES`` are looked at.

    >>> is_transcript(["A: I lost my job.", "B: Oh no!"])
    True
    >>> is_transcript(["Note: this is sad.", "I lost my job."])
    False
    """
    n_lines, names = 0, []
    for number, line in enumerate(lines):
        if number == PROBE_LINES:
            break
        if not line.strip() or _RULE.match(line) or line[0].isspace():
            continue
        found = _said(line)
        if found is None and not n_lines and not _stamp_length(line):
            return False
        n_lines += 1
        if found is not None:
            names.append(found[0])
    different = len(set(names))
    if different < 2 or len(names) < 2:
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
    heard = _Heard(1)
    for number, raw in enumerate(lines, 1):
        line = raw.rstrip("\r\n").removeprefix("\ufeff")
        if _RULE.match(line):
            if heard.said:
                yield _transcript(heard, speaker)
            heard = _Heard(number + 1)
            continue
        if not line.strip():
            continue
        _hear(heard, line, number)
        if len(heard.said) > MAX_TURNS:
            reason = f"has over {MAX_TURNS:,} turns, the rest is not read; part conversations by a line of '---'."
            yield Transcript(None, heard.line, {}, 0, reason)
            return
    if heard.said or heard.n_notices:
        yield _transcript(heard, speaker)


def dialogue_roles(names: Iterable[str], speaker: str | None = None) -> dict[str, Role]:
    """A role for each name.

    Args:
        names: In order of appearance; repeats do no harm.
        speaker: Name of the speaker; case does not matter.

    Raises:
        DataError: More than two people and no ``speaker``, or nobody of that name.

    >>> dialogue_roles(["Ann", "Ben", "Ann"])
    {'Ann': 'speaker', 'Ben': 'listener'}
    """
    people = list(dict.fromkeys(names))
    if speaker is not None:
        wanted = speaker.strip().lower()
        if wanted not in [name.lower() for name in people]:
            raise DataError(f"nobody is called {speaker!r}.{nearest(speaker, people)} Found: {', '.join(people)}.")
        return {name: "speaker" if name.lower() == wanted else "listener" for name in people}
    if all(name.lower() in ROLES for name in people):
        return {name: "speaker" if name.lower() == "speaker" else "listener" for name in people}
    if len(people) > 2:
        listed = ", ".join(people[:6]) + (" ..." if len(people) > 6 else "")
        raise DataError(
            f"{len(people)} people speak ({listed}); accepted: two. With --speaker NAME that one is the speaker and all"
            " others listen; a line that begins with a blank continues the turn before."
        )
    return {name: ROLES[i] for i, name in enumerate(people)}


def _hear(heard: _Heard, line: str, number: int) -> None:
    found = None if line[0].isspace() and heard.said else _said(line.lstrip())
    if found is not None:
        if not heard.said:
            heard.line = number
        heard.said.append((found[0], [found[1]] if found[1] else []))
    elif not line[0].isspace() and _stamp_length(line):
        heard.n_notices += 1
    elif heard.said:
        heard.said[-1][1].append(line.strip())
    else:
        heard.n_notices += 1


def _said(line: str) -> tuple[str, str] | None:
    """Name and text of a line that begins a turn."""
    rest = line[_stamp_length(line) :]
    match = _NAME.match(rest[:_MAX_NAME_CHARACTERS])
    if match is None or len(match.group(1).split()) > MAX_NAME_WORDS:
        return None
    return match.group(1), rest[match.end() :].strip()


def _stamp_length(line: str) -> int:
    match = _STAMP.match(line[:_MAX_NAME_CHARACTERS])
    return match.end() if match else 0


def _transcript(heard: _Heard, speaker: str | None) -> Transcript:
    said = [(name, "\n".join(parts)) for name, parts in heard.said]
    try:
        if not said:
            raise DataError("has no line of the form NAME: text.")
        roles = dialogue_roles([name for name, _ in said], speaker)
    except DataError as error:
        return Transcript(None, heard.line, {}, heard.n_notices, str(error))
    turns = tuple(Turn(roles[name], text) for name, text in said)
    return Transcript(Dialogue("", turns), heard.line, roles, heard.n_notices)
