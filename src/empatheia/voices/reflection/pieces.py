"""Cuts a turn into the pieces that may be said back: its sentences, and parts of long ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from empatheia.records.dialogue import Span
from empatheia.voices.reflection import patterns
from empatheia.voices.reflection.turning import lower_words
from empatheia.voices.reflection.verbs import ARTICLES, finite_place

LONGEST_READ = 6000
"""Characters of a turn that are read; the last ones count."""
_MOST_SENTENCES, _MOST_CUTS, _MOST_JOINED = 24, 12, 3

_Sentence = tuple[int, int, str]
"""Start and end in the text, and the mark behind it."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A sentence or a part of one.

    Attributes:
        text: In the speaker's own words, without the mark at its end.
        start: Where it begins in the turn, in characters.
        end: Where it ends.
        mark: What stands at its end: a full stop, a question mark, "" ...
        whole: Whether it is a sentence, no part of one.
        first: Whether the conversation begins with it.
        lead: What stands before a part in its sentence.
        next: The first characters of what follows a part, in small letters.
        alone: Whether the turn is this one sentence.
    """

    text: str
    start: int
    end: int
    mark: str
    whole: bool
    first: bool
    lead: str = ""
    next: str = ""
    alone: bool = False


def pieces_of(text: str, first: bool, spans: Sequence[Span] = ()) -> Iterator[Piece]:
    """The sentences of a text, and what is left of long ones where they may be cut.

    Args:
        text: A turn.
        first: Whether it is the first of the conversation.
        spans: Cause phrases and words in it; of very many sentences those are kept that carry them.
    """
    sentences = [found for found in _sentences(text, _read_from(text)) if re.search(r"\w", text[found[0] : found[1]])]
    alone = len(sentences) == 1
    if len(sentences) > _MOST_SENTENCES:
        kept = _telling(sentences, spans)
        sentences, first = [sentences[i] for i in kept], first and 0 in kept
    for start, end, mark in sentences:
        sentence = Piece(text[start:end], start, end, mark, True, first, alone=alone)
        yield sentence
        yield from _parts(sentence)
        first = False


def _read_from(text: str) -> int:
    """Where reading begins: behind the first sentence of the last characters, or at a word."""
    offset = max(0, len(text) - LONGEST_READ)
    if not offset:
        return 0
    end = patterns.END.search(text, offset)
    return end.end() if end else text.find(" ", offset) + 1 or offset


def _sentences(text: str, offset: int) -> Iterator[_Sentence]:
    start = offset
    for match in patterns.END.finditer(text, offset):
        if match[0] == "." and patterns.ABBREVIATION.search(text[max(0, match.start() - 8) : match.end()]):
            continue
        if match.start() > start:
            yield start, match.start(), match[0]
        start = match.end()
    if start < len(text):
        yield start, len(text), ""


def _telling(sentences: Sequence[_Sentence], spans: Sequence[Span]) -> list[int]:
    """Places of the sentences that carry the cause, or else of the last."""
    heat = [sum((s.score or 0.5) for s in spans if a <= s.start < b) for a, b, _ in sentences]
    return sorted(sorted(range(len(sentences)), key=lambda i: (-heat[i], -i))[:_MOST_SENTENCES])


def _parts(sentence: Piece) -> Iterator[Piece]:
    """One, two or three neighbouring clauses of a sentence that has several."""
    text = sentence.text
    cuts = [match.span() for match in patterns.CUT.finditer(text) if _starts_clause(text[match.end() :])][:_MOST_CUTS]
    begins = [0, *(b for _, b in cuts)]
    ends = [*(a for a, _ in cuts), len(text)]
    for i, begin in enumerate(begins):
        for end in ends[i : i + _MOST_JOINED]:
            if (begin, end) != (0, len(text)):
                yield _part(sentence, begin, end)


def _part(sentence: Piece, begin: int, end: int) -> Piece:
    text = sentence.text
    mark = sentence.mark if end == len(text) or "?" in sentence.mark else "."
    return Piece(
        text[begin:end],
        sentence.start + begin,
        sentence.start + end,
        mark,
        whole=False,
        first=sentence.first and not begin,
        lead=text[:begin],
        next=text[end : end + 12].lower(),
    )


def _starts_clause(rest: str) -> bool:
    """Whether a clause begins here, no further thing of a list: "and my boss laughed", not "and the pillow"."""
    words = lower_words(rest[:120].split(",")[0])[:10]
    return not words or words[0] not in ARTICLES or bool(finite_place(words))
