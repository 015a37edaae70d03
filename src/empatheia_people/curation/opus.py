"""OpenSubtitles as OPUS distributes it (Lison and Tiedemann 2016): one XML file a subtitle, tokenised or raw.

``<s>`` holds ``<w>`` tokens or plain text and ``<time id="T1S" value="00:00:02,000"/>`` marks, which are not one pair a
sentence: several sentences of a block share its marks, and a sentence may go over several blocks. No document type and
no entity of the file's own is accepted, so that nothing is expanded or fetched.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from xml.parsers import expat

from empatheia.reading import UnreadableError
from empatheia_people.curation.records import Script, Sentence

_TIME = re.compile(r"\s*(\d{1,4})\s*:\s*(\d{1,2})\s*:\s*(\d{1,2})\s*(?:[,.]\s*(\d{1,3})\d*)?\s*")
_TOKEN_TAGS = re.compile(rb"</w>|<w(?:\s[^<>]*)?>")
_TAIL = 1 << 14
_META = re.compile(rb"<(confidence|sentences)>\s*([^<]{0,40}?)\s*</")
_DECLARED = re.compile(rb'<\?xml[^>]*encoding\s*=\s*["\']([\w.-]{1,40})')
MOST_UPPER = 0.8
"""Share of upper-case letters of a file above which the re-cased forms are taken where they are asked for."""


@dataclass(frozen=True, slots=True)
class OpusFacts:
    """What a file's ``meta`` block says of it.

    Attributes:
        confidence: That the subtitle fits its film, in [0, 1]; 0 if it does not say.
        n_sentences: How many sentences; 0 if it does not say.
    """

    confidence: float = 0.0
    n_sentences: int = 0


def parse_time(value: str) -> int | None:
    """Milliseconds of ``HH:MM:SS,mmm``; None if it is missing, negative or none.

    >>> parse_time("01:00:00,001"), parse_time("00:00:05.250"), parse_time("-0:00:01,000"), parse_time("abc")
    (3600001, 5250, None, None)
    """
    found = _TIME.fullmatch(value)
    if found is None:
        return None
    hours, minutes, seconds, thousandths = found.groups()
    if int(minutes) > 59 or int(seconds) > 59:
        return None
    return ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 1000 + int((thousandths or "0").ljust(3, "0"))


def read_facts(raw: bytes) -> OpusFacts:
    """The facts in the last part of a file, which is not parsed; what is not there counts as 0."""
    found = {name: value for name, value in _META.findall(raw[-_TAIL:])}
    try:
        confidence = float(found.get(b"confidence", b"0"))
    except ValueError:
        confidence = 0.0
    digits = found.get(b"sentences", b"0")
    is_number = confidence == confidence and abs(confidence) != float("inf")
    return OpusFacts(confidence if is_number else 0.0, int(digits) if digits.isdigit() else 0)


def read_opus(raw: bytes, movie: str = "", subtitle: str = "", recase: bool = False) -> Script:
    """The sentences of a file.

    Args:
        raw: The XML, unpacked.
        movie: See :class:`Script`.
        subtitle: See :class:`Script`.
        recase: Take the re-cased forms of tokens where most of the file is in upper case.

    Raises:
        UnreadableError: It is not well-formed, or declares a document type or entities.
    """
    notes: list[tuple[str, int]] = []
    try:
        sentences = _parsed(raw, None, recase)
    except expat.ExpatError as error:
        if error.code not in (_INVALID_TOKEN, _UNKNOWN_ENCODING) or _is_utf8(raw):
            raise UnreadableError(f"not well-formed XML ({expat.ErrorString(error.code)})", error.lineno) from None
        declared = _DECLARED.search(raw[:200])
        try:
            sentences = _parsed(_DECLARED.sub(b"<?xml", raw, count=1), "windows-1252", recase)
        except (expat.ExpatError, LookupError) as second:
            raise UnreadableError(f"not well-formed XML ({second})") from None
        notes.append((f"encoding is not {(declared[1].decode() if declared else 'utf-8').lower()}: read as cp1252", 1))
    except (LookupError, ValueError) as error:
        if isinstance(error, UnreadableError):
            raise
        raise UnreadableError(f"not well-formed XML ({error})") from None
    return Script(movie, subtitle, "subtitle", tuple(sentences), tuple(notes))


_INVALID_TOKEN, _UNKNOWN_ENCODING = 4, 18


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _refused(*_: object) -> None:
    raise UnreadableError("declares a document type or entities of its own, which are not read; OPUS files have none")


def _parsed(raw: bytes, encoding: str | None, recase: bool) -> list[Sentence]:
    """Sentences of a file.

    The tags of tokens, nine of ten elements, become blanks before the parser sees them; their attributes are needed for
    re-casing alone.
    """
    collector = _Collector(recase)
    parser = expat.ParserCreate(encoding)
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = collector.start, collector.end
    parser.CharacterDataHandler = collector.text
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = _refused
    parser.Parse(raw if recase else _TOKEN_TAGS.sub(b" ", raw), True)
    if recase and _share_upper(collector.sentences) > MOST_UPPER:
        return [one._replace(text=text) for one, text in zip(collector.sentences, collector.recased, strict=True)]
    return collector.sentences


class _Collector:
    """What the parser tells, token by token, as sentences.

    Args:
        recase: Keep the re-cased forms, too.
    """

    def __init__(self, recase: bool) -> None:
        self.sentences: list[Sentence] = []
        self.recased: list[str] = []
        self._recase = recase
        self._pieces: list[str] = []
        self._forms: list[tuple[int, str]] = []
        self._add = self._pieces.append
        self._is_inside = self._has_root = self._is_emphasised = False
        self._start: int | None = None
        self._end: int | None = None
        self._block = self._opened = self._first = -1  # now, when the sentence began, of its first time mark

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        if name == "w":
            self._add(" ")
            if self._recase and (form := attributes.get("alternative")) is not None:
                self._forms.append((len(self._pieces), form))
        elif name == "time":
            self._time(attributes.get("id", ""), attributes.get("value", ""))
        elif name == "s":
            self._pieces.clear()
            self._forms.clear()
            self._is_inside, self._is_emphasised = True, attributes.get("emphasis") == "true"
            self._start = self._end = None
            self._opened, self._first = self._block, -1
        elif not self._has_root:
            self._has_root = True
            if name != "document":
                raise UnreadableError(f"the root is <{name[:40]}>; accepted: <document>, as OPUS has it")

    def _time(self, mark: str, value: str) -> None:
        number = mark[1:-1]
        if number.isdecimal() and len(number) < 10:
            self._block = int(number)
            if self._first < 0:
                self._first = self._block
        if mark[-1:] == "S":
            if self._start is None:
                self._start = parse_time(value)
        elif mark[-1:] == "E":
            self._end = parse_time(value)

    def end(self, name: str) -> None:
        """An element ends."""
        if name != "s" or not self._is_inside:
            return
        self._is_inside = False
        if text := " ".join("".join(self._pieces).split()):
            first = self._first if self._start is not None or self._opened < 0 else self._opened
            last = self._block if self._block >= 0 else first
            emphasis = self._is_emphasised
            self.sentences.append(Sentence(text, self._start, self._end, first, last, "", -1, emphasis))
            if self._recase:
                for place, form in self._forms:
                    self._pieces[place] = form
                self.recased.append(" ".join("".join(self._pieces).split()))

    def text(self, data: str) -> None:
        """Characters, blanks between tokens too."""
        if self._is_inside:
            self._add(data)


def _share_upper(sentences: list[Sentence]) -> float:
    letters = upper = 0
    for one in sentences:
        letters += sum(map(str.isalpha, one.text))
        upper += sum(map(str.isupper, one.text))
    return upper / letters if letters else 0.0
