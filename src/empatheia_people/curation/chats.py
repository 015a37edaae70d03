"""Conversations whose speakers are known: chats of every form that :mod:`empatheia.files` reads, Cornell and MELD."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from empatheia.errors import DataError
from empatheia.files.forms import json_form, text_form
from empatheia.files.json_forms import message_of, turn_talk, turns_in
from empatheia.files.talks import Talk
from empatheia.files.transcripts import PROBE_LINES
from empatheia.reading import CsvRows, UnreadableError, parse_json
from empatheia_people.curation.opus import parse_time
from empatheia_people.curation.records import Script, Sentence
from empatheia_people.curation.subtitles import decode

_CORNELL = " +++$+++ "
_NO_MESSAGE = "line that is no message"


def read_chats(raw: bytes, suffix: str, movie: str = "", subtitle: str = "") -> Script:
    """The messages of a chat, or of several in one file.

    Args:
        raw: The file.
        suffix: ``.txt``; ``.json``; ``.jsonl`` or ``.ndjson``, with a message or a conversation a line.
        movie: See :class:`Script`.
        subtitle: See :class:`Script`.

    Raises:
        UnreadableError: It holds no message.
    """
    text, notes = decode(raw)
    left: Counter[str] = Counter()
    sentences: list[Sentence] = []
    numbers = {True: 0, False: 0}
    for talk, is_whole in _talks(text, suffix, left):
        left.update(talk.left)
        number = numbers[is_whole]
        numbers[is_whole] += 1
        place = number if is_whole else -1 - number
        for parity, message in enumerate(talk.messages):
            if said := " ".join(message.text.split()):
                who = message.who or (f"speaker {parity % 2 + 1}" if is_whole else "")
                sentences.append(Sentence(said, message.time, message.time, speaker=who, dialogue=place))
    if not sentences:
        raise UnreadableError("holds no message of a chat; docs/howto/conversations.md lists what is read")
    return _script(sentences, movie, subtitle, (*notes, *(+left).items()))


def _talks(text: str, suffix: str, left: Counter[str]) -> Iterator[tuple[Talk, bool]]:
    """Each conversation, and whether it is whole as the file has it: lists of turns are, what people chatted is not."""
    if suffix == ".txt":
        lines = text.splitlines()
        form = text_form(lines[:PROBE_LINES])
        for talk in form.read(lines) if form is not None else ():
            yield talk, form is not None and form.name == "parlai"
        return
    try:
        whole = parse_json(text) if suffix == ".json" else None
    except UnreadableError:
        whole = None  # JSON lines with the wrong suffix, or no JSON: then no line is a message
    if whole is not None and (form := json_form(whole)) is not None:
        for talk in form.read(whole):
            yield talk, form.name in ("chatgpt", "array")
        return
    loose = Talk()
    values = _parsed_lines(text, left) if whole is None else whole if isinstance(whole, list) else [whole]
    for one in values:
        try:
            if turns_in(one):
                yield turn_talk(one), True
            else:
                message_of(one, loose)
        except DataError:
            left[_NO_MESSAGE] += 1
    yield loose, False


def _parsed_lines(text: str, left: Counter[str]) -> Iterator[Any]:
    for line in text.split("\n"):
        if line.strip():
            try:
                yield parse_json(line)
            except UnreadableError:
                left[_NO_MESSAGE] += 1


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
