"""Subtitle files as players read them: ``.srt``, ``.vtt``, ``.ass``, through pysubs2.

What is no speech is left out and counted: names of cues, comments and styles, drawings, lines that captions repeat
while they roll, marks of direction. Of scanned subtitles, ``l`` for ``I`` is mended.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from empatheia.errors import MissingDependencyError
from empatheia.files.transcripts import DIRECTION_MARKS
from empatheia.reading import UnreadableError
from empatheia_people.curation.opus import parse_time
from empatheia_people.curation.records import Script, Sentence

FORMATS = {".srt": "srt", ".vtt": "vtt", ".ass": "ass", ".ssa": "ssa"}
_ARROW = re.compile(r"^[ \t]*(\S(?:(?!-->).)*)-->[ \t]*(-?[\d:., ]*\d)(.*)$", re.MULTILINE)
_VTT_TIME = re.compile(r"^\s*\d{1,2}:\d{2}[,.]\d{1,3}\s*$")
_MISSING_MS = 359_999_999
"""How a missing time travels through the library: 99:59:59,999."""
_VOICE = re.compile(r"<v(?:\.[\w.]+)?[ \t]+([^<>]{1,80})>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,80}>|\{[^{}]{0,80}\}")
_OPENED_TWICE = re.compile(r"\{(?=[^{}]*\{)")
"""A brace that is opened again before it is closed: the library would look for its end from each to the last."""
_BREAK = re.compile(r"(?<=[.!?\u2026])[\"')\]]*\s+(?=[\"'(\[]?(?:[A-Z0-9\u00c0-\u00de]|\.\.\.))")
_DASH = re.compile(r"^\s*[-\u2010-\u2015]\s*")
_ABBREVIATION = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|St|Prof|Sgt|Lt|Capt|vs|etc|[A-Z])\.$")
_LONGEST_ABBREVIATION = 6
_CLOSED = re.compile(r"[.!?:\u2026][\"')\]]*$")
_SHORT_MS, _LONG_MS = 1000, 3000
_LEAST_MARKED = 0.2
_LEAST_ROLLING = 0.2
"""Share of cues that repeat the end of the one before and go on, from which captions roll."""
_VTT_BLOCKS = ("NOTE", "STYLE", "REGION")
_TIME_TAG = re.compile(r"<\d[\d:.]{3,15}>")
_SCANNED = re.compile(
    r"(?<![\w'\u2019])(?<!\d )l(?=['\u2019](?:m|ll|ve|d)\b|[ ,.!?\u2026]|$)|\bl(?=[tfn]\b)|(?<=[A-Z])l(?=[A-Z])"
    r"|(?:^|(?<=[.!?\u2026:\"\u201d>-] )|(?<=[\"'\u201c(\[-]))l(?=s\b)"
)
"""``l`` where English has ``I`` only; ``ls`` is ``Is`` where a sentence begins."""

Cue = tuple[int | None, int | None, str]


def decode(raw: bytes) -> tuple[str, tuple[tuple[str, int], ...]]:
    """A subtitle's text, and a note if it is not in UTF-8: by its mark in UTF-16, else read as cp1252."""
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return raw.decode("utf-16", "replace"), (("encoding is utf-16", 1),)
    try:
        return raw.decode("utf-8-sig"), ()
    except UnicodeDecodeError:
        return raw.decode("cp1252", "replace"), (("encoding is not utf-8: read as cp1252", 1),)


def read_subtitles(raw: bytes, suffix: str, movie: str = "", subtitle: str = "") -> Script:
    """The sentences of a subtitle file.

    A cue is a block. A dash at the beginning of a line begins a sentence; a sentence that is not closed goes on in the
    next cue where it begins with a small letter and the pause is short, as OPUS's converter has it.

    Args:
        raw: The file.
        suffix: One of ``FORMATS``.
        movie: See :class:`Script`.
        subtitle: See :class:`Script`.

    Raises:
        UnreadableError: It holds no cue.
        MissingDependencyError: pysubs2 is not installed.
    """
    text, notes = decode(raw)
    counts: Counter[str] = Counter()
    text = DIRECTION_MARKS.sub("", text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", ""))
    cues = _unrolled(list(_cues(text, suffix, counts)), counts)
    if not cues:
        raise UnreadableError(f"holds no subtitle in the form of {suffix}")
    sentences = [part for number, cue in enumerate(cues, 1) for part in _parts(number, *cue, counts)]
    marked = sum(bool(_CLOSED.search(one.text)) for one in sentences)
    joined = _joined(sentences) if marked > _LEAST_MARKED * len(sentences) else sentences
    return Script(movie, subtitle, "subtitle", tuple(joined), (*notes, *(+counts).items()))


def _cues(text: str, suffix: str, counts: Counter[str]) -> Iterator[Cue]:
    try:
        import pysubs2
    except ImportError:
        raise MissingDependencyError(
            "reading .srt, .vtt and .ass needs the package pysubs2: pip install 'empatheia[people]'"
        ) from None
    options: dict[str, Any] = {} if suffix in (".ass", ".ssa") else {"keep_unknown_html_tags": True}
    if suffix in (".srt", ".vtt"):
        text = "\n".join(_said_lines(text.split("\n"), suffix == ".vtt", counts))
        text = _ARROW.sub(lambda found: _canonical(found, "." if suffix == ".vtt" else ","), text)
    text = _OPENED_TWICE.sub("", text)
    try:
        file = pysubs2.SSAFile.from_string(text, format_=FORMATS[suffix], **options)
    except Exception as error:  # files of other kinds raise errors of all kinds
        raise UnreadableError(f"not readable as {suffix}: {' '.join(str(error).split())[:200]}") from None
    for event in file:
        if event.type != "Comment":
            if not options and event.is_drawing:
                from pysubs2.formats.substation import parse_tags

                event.text = "".join(text for text, style in parse_tags(event.text) if not style.drawing)
                counts["drawings"] += 1
            said = event.plaintext if not event.name else f"<v {event.name}>{event.plaintext}"
            yield _known(event.start), _known(event.end), said


def _said_lines(lines: Iterable[str], is_vtt: bool, counts: Counter[str]) -> Iterator[str]:
    """Without the names of cues, which stand between a blank line and the times, and VTT's comments and styles."""
    before: list[str] = []  # at most two lines that are not given yet
    is_block = False
    for line in lines:
        is_first = not before or not before[-1].strip()
        is_block = bool(line.strip()) and (is_block or (is_vtt and is_first and line.startswith(_VTT_BLOCKS)))
        if is_block:
            counts["lines of comments and styles"] += 1
            continue
        if "-->" in line and before and before[-1].strip() and (len(before) < 2 or not before[-2].strip()):
            counts["names of cues"] += not before.pop().strip().isdecimal()
        before.append(_TIME_TAG.sub("", line) if is_vtt else line)
        if len(before) > 2:
            yield before.pop(0)
    yield from before


def _unrolled(cues: list[Cue], counts: Counter[str]) -> list[Cue]:
    """Without the lines that captions repeat from the cue before while they roll, where a file does so often."""
    lines = [
        [plain for line in said.split("\n") if (plain := " ".join(_TAG.sub("", line).split()))] for _, _, said in cues
    ]
    shared = [0, *(_overlap(one, after) for one, after in pairwise(lines))][: len(cues)]
    n_rolling = sum(0 < n < len(own) for n, own in zip(shared, lines, strict=True))
    if n_rolling < 2 or n_rolling < _LEAST_ROLLING * len(cues):
        return cues
    out: list[Cue] = []
    for (start, end, said), n, own in zip(cues, shared, lines, strict=True):
        counts["lines that captions repeat"] += n
        if n == len(own) and out:
            out[-1] = (out[-1][0], end, out[-1][2])
        else:
            out.append((start, end, "\n".join(own[n:]) if n else said))
    return out


def _overlap(one: list[str], after: list[str]) -> int:
    """How many lines at the beginning of a cue are the last ones of the cue before."""
    return next((n for n in range(min(len(one), len(after)), 0, -1) if one[-n:] == after[:n]), 0)


def _canonical(found: re.Match[str], mark: str) -> str:
    start, end = (_ms(found[number].strip()) for number in (1, 2))
    return f"{_stamp(start, mark)} --> {_stamp(end, mark)}"


def _ms(value: str) -> int:
    time = parse_time(f"00:{value.strip()}" if _VTT_TIME.match(value) else value)
    return _MISSING_MS if time is None else min(time, _MISSING_MS)


def _stamp(ms: int, mark: str) -> str:
    seconds, thousandths = divmod(ms, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{seconds:02}{mark}{thousandths:03}"


def _known(ms: int) -> int | None:
    return None if ms >= _MISSING_MS or ms < 0 else int(ms)


def _parts(number: int, start: int | None, end: int | None, said: str, counts: Counter[str]) -> Iterator[Sentence]:
    """Sentences of a cue: the first has its start, the last its end."""
    pieces: list[tuple[str, str]] = []  # speaker, text
    speaker = ""
    for line in said.split("\n"):
        if voice := _VOICE.search(line):
            speaker = " ".join(voice[1].split())
        plain, n_scanned = _SCANNED.subn("I", " ".join(html.unescape(_TAG.sub("", line)).split()))
        counts["l of a scanned subtitle read as I"] += n_scanned
        if not plain:
            continue
        if pieces and not _DASH.match(plain) and not voice:
            pieces[-1] = (pieces[-1][0], f"{pieces[-1][1]} {plain}")
        else:
            pieces.append((speaker, plain))
    sentences = [(who, one) for who, text in pieces for one in split_sentences(text)]
    for place, (who, text) in enumerate(sentences):
        first, last = place == 0, place == len(sentences) - 1
        yield Sentence(text, start if first else None, end if last else None, number, number, who)


def split_sentences(text: str) -> list[str]:
    """Sentences of a line, cut after ``.``, ``!``, ``?`` before a capital, a digit or ``...``.

    >>> split_sentences("Mr. Holm is here. Come in! no, wait")
    ['Mr. Holm is here.', 'Come in! no, wait']
    """
    out: list[str] = []
    at = 0
    for found in _BREAK.finditer(text):
        marks = found.group().rstrip()
        if marks or not _ABBREVIATION.search(text, max(at, found.start() - _LONGEST_ABBREVIATION), found.start()):
            out.append((text[at : found.start()] + marks).strip())
            at = found.end()
    out.append(text[at:].strip())
    return [one for one in out if one]


def _joined(sentences: Iterable[Sentence]) -> list[Sentence]:
    out: list[Sentence] = []
    for one in sentences:
        if out and _goes_on(out[-1], one):
            last = out[-1]
            out[-1] = last._replace(text=f"{last.text} {one.text}", end=one.end, last_block=one.last_block)
        else:
            out.append(one)
    return out


def _goes_on(last: Sentence, after: Sentence) -> bool:
    if last.last_block == after.first_block or last.speaker != after.speaker or _CLOSED.search(last.text):
        return False
    gap = None if last.end is None or after.start is None else after.start - last.end
    starts_small = after.text[:1].islower()
    return (starts_small and (gap is None or gap < _LONG_MS)) or (last.text[-1:] == "," and (gap or 0) < _SHORT_MS)
