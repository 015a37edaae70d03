"""Conversations whose speakers are known: JSON lines, WhatsApp and Telegram exports, Cornell and MELD."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from empatheia.curation.opus import parse_time
from empatheia.curation.records import Script, Sentence
from empatheia.curation.subtitles import decode
from empatheia.reading import CsvRows, UnreadableError, parse_json

_WHATSAPP = re.compile(
    r"^[\u200e\u200f]?\[?(\d{1,4})[./-](\d{1,2})[./-](\d{1,4}),?\s+(\d{1,2})[:.](\d{2})(?:[:.](\d{2}))?"
    r"[\s\u202f]*([APap]\.?[Mm]\.?)?\]?\s*(?:[-\u2013]\s+)?([^:]{1,100}?):\s(.*)$"
)
_WHATSAPP_NOTE = re.compile(r"^[\u200e\u200f]?\[?\d{1,4}[./-]\d{1,2}[./-]\d{1,4},?\s+\d{1,2}[:.]\d{2}")
_LEFT_OUT = re.compile(r"^\u200e?<[^<>]{0,60}(?:omitted|ausgelassen)[^<>]{0,60}>$|^\u200e?\w+ omitted$", re.IGNORECASE)
_CORNELL = " +++$+++ "
_WHO = ("speaker", "author", "from", "sender", "name", "user", "role")
_SAID = ("text", "utterance", "message", "content", "body")
_WHEN = ("time", "timestamp", "date_unixtime", "ts", "date", "created_at")
_MILLISECONDS_FROM = 10**11
"""A number of this size is one of milliseconds, not seconds, since 1970."""


def read_json_lines(raw: bytes, movie: str = "", subtitle: str = "") -> Script:
    """One message a line (``text``, ``speaker``, ``time``), or one conversation a line (``turns``).

    Raises:
        UnreadableError: No line can be used.
    """
    text, notes = decode(raw)
    sentences: list[Sentence] = []
    n_bad = number = 0
    for line in text.splitlines():
        if not line.strip():
            continue
        try:
            record = parse_json(line)
        except UnreadableError:
            n_bad += 1
            continue
        if isinstance(record, dict) and isinstance(record.get("turns"), list):
            turns = [_message(turn, index % 2) for index, turn in enumerate(record["turns"])]
            sentences += [one._replace(dialogue=number) for one in turns if one is not None]
            number += 1
        elif (one := _message(record)) is not None:
            sentences.append(one)
        else:
            n_bad += 1
    if not sentences:
        raise UnreadableError("holds no message; accepted: objects with text and speaker, or with turns, one a line")
    return _script(sentences, movie, subtitle, (*notes, *((("line that is no message", n_bad),) if n_bad else ())))


def _message(record: Any, parity: int | None = None) -> Sentence | None:
    """A message of an object or a text; who takes turns is called by parity where nobody is named."""
    if isinstance(record, str):
        record = {"text": record}
    if not isinstance(record, dict):
        return None
    said = next((record[name] for name in _SAID if isinstance(record.get(name), str)), None)
    if said is None or not said.strip():
        return None
    who = next((str(record[name]) for name in _WHO if isinstance(record.get(name), str | int)), "")
    if not who and parity is not None:
        who = f"speaker {parity + 1}"
    when = next((_moment(record[name]) for name in _WHEN if name in record), None)
    return Sentence(" ".join(said.split()), when, when, speaker=who)


def _moment(value: Any) -> int | None:
    """Milliseconds since 1970 of a number or an ISO date."""
    if isinstance(value, str):
        if value.strip().isdecimal() and len(value) < 20:
            return _moment(int(value))
        try:
            date = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
        return _since(date)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 10**15:
        return None
    return int(value) if abs(value) >= _MILLISECONDS_FROM else int(value * 1000)


def _since(date: datetime) -> int:
    return int((date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() * 1000)


def read_whatsapp(raw: bytes, movie: str = "", subtitle: str = "") -> Script:
    """A chat exported as text: ``[31/12/2020, 22:15:03] Ann: Hello`` or ``31.12.20, 22:15 - Ann: Hello``.

    Lines without a date belong to the message before; left-out media and the program's own notes are dropped. Whether
    the day or the month comes first is told by the numbers of the file.

    Raises:
        UnreadableError: It holds no message.
    """
    text, notes = decode(raw)
    found: list[tuple[re.Match[str] | None, list[str]]] = []
    for line in text.splitlines():
        if match := _WHATSAPP.match(line):
            found.append((match, [match[9]]))
        elif _WHATSAPP_NOTE.match(line):
            found.append((None, []))
        elif found:
            found[-1][1].append(line)
    kept = [(match, lines) for match, lines in found if match is not None and not _LEFT_OUT.match(lines[0].strip())]
    if not kept:
        raise UnreadableError("holds no message of a WhatsApp export")
    month_first = any(int(m[2]) > 12 for m, _ in kept) and not any(int(m[1]) > 12 for m, _ in kept)
    sentences = []
    for match, lines in kept:
        said = " ".join(" ".join(lines).split())
        if said:
            when = _whatsapp_time(match, month_first)
            sentences.append(Sentence(said, when, when, speaker=match[8].strip()))
    return _script(sentences, movie, subtitle, notes)


def _whatsapp_time(match: re.Match[str], month_first: bool) -> int | None:
    first, second, third, hour, minute, second_of = (int(value or 0) for value in match.group(1, 2, 3, 4, 5, 6))
    if len(match[1]) == 4:
        year, month, day = first, second, third
    else:
        day, month = (second, first) if month_first else (first, second)
        year = third if third > 99 else 2000 + third
    half = (match[7] or "").lower()[:1]
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    try:
        return _since(datetime(year, month, day, hour, minute, second_of, tzinfo=UTC))
    except ValueError:
        return None


def read_telegram(raw: bytes, movie: str = "", subtitle: str = "") -> Script:
    """``result.json`` of Telegram's export: one chat, or ``chats.list`` of several.

    Raises:
        UnreadableError: It holds no chat.
    """
    record = parse_json(raw)
    chats = record.get("chats", {}).get("list") if isinstance(record, dict) and "chats" in record else [record]
    sentences: list[Sentence] = []
    for number, chat in enumerate(chats if isinstance(chats, list) else []):
        messages = chat.get("messages") if isinstance(chat, dict) else None
        for message in messages if isinstance(messages, list) else []:
            if isinstance(message, dict) and message.get("type", "message") == "message":
                said = _telegram_text(message.get("text"))
                one = _message({**message, "text": said, "speaker": message.get("from") or ""})
                if one is not None:
                    sentences.append(one._replace(dialogue=number if len(chats) > 1 else -1))
    if not sentences:
        raise UnreadableError("holds no message of a Telegram export; accepted: result.json with messages")
    return _script(sentences, movie, subtitle, ())


def _telegram_text(text: Any) -> str:
    """A text, or a list of texts and marked parts."""
    if isinstance(text, str):
        return text
    parts = text if isinstance(text, list) else []
    return "".join(part if isinstance(part, str) else str(part.get("text", "")) for part in parts if part)


def read_meld(raw: bytes, movie: str = "", subtitle: str = "") -> Script:
    """MELD's CSV: ``Utterance``, ``Speaker``, ``Dialogue_ID``, and ``StartTime`` and ``EndTime`` where they are.

    Raises:
        UnreadableError: A column is missing.
    """
    text, notes = decode(raw)
    rows = CsvRows(text, subtitle)
    if missing := {"Utterance", "Speaker", "Dialogue_ID"} - set(rows.fieldnames):
        raise UnreadableError(f"no column {', '.join(sorted(missing))}; accepted: MELD's CSV files")
    sentences, numbers = [], {}
    for row in rows:
        if said := " ".join(row["Utterance"].split()):
            number = numbers.setdefault(row["Dialogue_ID"], len(numbers))
            start, end = (parse_time(row.get(name, "")) for name in ("StartTime", "EndTime"))
            sentences.append(Sentence(said, start, end, speaker=row["Speaker"].strip(), dialogue=number))
    if not sentences:
        raise UnreadableError("holds no utterance")
    return _script(sentences, movie, subtitle, notes)


def read_cornell(lines: bytes, conversations: bytes, subtitle: str = "") -> Iterator[Script]:
    """The Cornell movie dialogues: ``movie_lines.txt`` and ``movie_conversations.txt``, one script a movie.

    Raises:
        UnreadableError: No conversation can be put together.
    """
    said: dict[str, tuple[str, str]] = {}
    for line in decode(lines)[0].split("\n"):
        cells = line.rstrip("\r").split(_CORNELL)
        if len(cells) == 5 and cells[4].strip():
            said[cells[0].strip()] = (cells[1].strip(), " ".join(cells[4].split()))
    found: dict[str, list[Sentence]] = {}
    numbers: dict[str, int] = {}
    for line in decode(conversations)[0].split("\n"):
        cells = line.split(_CORNELL)
        if len(cells) != 4:
            continue
        movie = cells[2].strip()
        number = numbers[movie] = numbers.get(movie, -1) + 1
        for name in re.findall(r"L\d+", cells[3]):
            if name in said:
                speaker, text = said[name]
                found.setdefault(movie, []).append(Sentence(text, speaker=speaker, dialogue=number))
    if not found:
        raise UnreadableError("holds no conversation of the Cornell movie dialogues")
    for movie, sentences in sorted(found.items()):
        yield _script(sentences, f"cornell-{movie}", subtitle, ())


def cornell_companion(path: Path) -> Path:
    """The file of conversations that belongs to a file of lines."""
    return path.with_name(path.name.replace("movie_lines", "movie_conversations"))


def _script(sentences: Iterable[Sentence], movie: str, subtitle: str, notes: tuple[tuple[str, int], ...]) -> Script:
    return Script(movie, subtitle, "chat", tuple(sentences), notes)
