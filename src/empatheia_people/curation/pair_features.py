"""What the turn segmenter sees of two neighbouring sentences: categories, each hashed to one weight.

The families of features are those of Lison and Meena (2016) as far as a subtitle file alone gives them: timing, what is
seen (case, emphasis, brackets, quotes), punctuation, words at the border, overlap, word classes, questions and answers,
the whole file. Every feature is a category or a number in bins, so a pair is a row of ``len(SLOTS)`` hashes and the
score of a linear model is a sum of as many weights; a file is done at once, in numpy.

What gives a label away has to be kept out: leading dashes and speaker names are cut off before anything is looked at.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from empatheia_people.curation.records import Sentence

_TOKEN = re.compile(r"[^\W_]+|\.\.\.|[^\w\s]|_")
_LEAD = re.compile(r"^\s*(?:[-\u2010-\u2015]+\s*)+")
_DASHES = frozenset("-\u2010\u2011\u2012\u2013\u2014\u2015 \t")
_NAME = re.compile(r"^\s*([A-Z][\w.' ]{0,24}?)\s*:\s+(?=\S)")
_ENDS = {".": 1, "!": 2, "?": 3, "...": 4, ",": 5, ":": 6, ";": 7, "-": 8, "\u2026": 4, "\u2014": 8, "\u2013": 8}
_QUOTES = "\"'\u201c\u201d\u2018\u2019"
GAP_BINS_MS = (-500, -1, 1, 100, 170, 250, 400, 600, 1000, 1500, 2000, 3000, 5000, 10000)
"""Upper borders, exclusive; the bin after the last is longer."""
_LENGTH_MS = (500, 800, 1200, 1800, 2500, 3500, 5000)
_RATE = (6, 9, 12, 15, 18, 22, 28)  # characters a second
_SIZES = (1, 2, 3, 4, 6, 8, 11, 15, 20, 30)  # words
_CLASSES = {
    "I": "i me my mine myself we us our",
    "you": "you your yours yourself ya u",
    "he": "he she him her his hers they them their it its",
    "det": "the a an this that these those some any no every",
    "wh": "who what when where why how which whose",
    "aux": "is are was were am be been do does did have has had can could will would shall should may might must"
    " 'll 're 've ll re ve s d m don doesn didn isn aren wasn won wouldn couldn can't haven hasn",
    "yes": "yes yeah yep yup sure okay ok right exactly absolutely fine uh-huh",
    "no": "no nope nah never not",
    "oh": "oh ah hey hi hello wow hmm um uh well god jesus man dude ooh whoa huh eh aw aww",
    "and": "and but or so because then if though although unless until while",
    "in": "in on at to of for from with by about into over after before up down out off",
    "please": "please thanks thank sorry",
    "now": "now here there just again too very really still",
}
_CLASS_OF = {word: number for number, words in enumerate(_CLASSES.values(), 1) for word in words.split()}
_WH, _AUX, _YES, _NO, _OH = (list(_CLASSES).index(name) + 1 for name in ("wh", "aux", "yes", "no", "oh"))
_ANSWERS = {_YES: 1, _NO: 2, _OH: 3}
_FIRST_PERSON, _SECOND_PERSON = 1, 2
_SUFFIXES = (("ing", 20), ("ed", 21), ("ly", 22), ("s", 23))
_MOST_CACHED = 1 << 19
BITS = 18
"""Buckets are ``2 ** BITS``."""

TIMING = ("gap", "gap_fine", "length", "next_length", "rate", "next_rate", "block", "gap_before", "gap_after")
PUNCTUATION = ("end", "next_start", "end_start", "open", "end_before", "next_end", "end_gap")
SLOTS = (
    *TIMING,
    *PUNCTUATION,
    *("caps", "emphasis"),
    *("first1", "first2", "first3", "last1", "last2", "last3"),
    *("next_first1", "next_first2", "next_first3", "next_last1", "next_last2", "next_last3"),
    *("first12", "last21", "next_first12", "next_first23", "next_last21", "border", "border2"),
    *("size", "next_size", "sizes", "shared", "shared_name"),
    *("classes", "border_classes", "next_classes", "class_border"),
    *("question", "question_first", "question_size", "persons", "vocative", "next_vocative", "answer", "firsts"),
    *("end_first", "gap_first", "gap_sizes", "after_first", "file_rate"),
)
"""Names of the features, in the order of the columns."""
FAMILIES = {"timing": TIMING, "punctuation": PUNCTUATION}

_hashes: dict[str, tuple[int, int]] = {}


def strip_marks(text: str) -> tuple[str, bool, str]:
    """A sentence without leading dashes and speaker's name; whether there was a dash; the name, or "".

    >>> strip_marks("- JOHN : Get out !")
    ('Get out !', True, 'JOHN')
    """
    lead = _LEAD.match(text) if text[:1] in _DASHES else None
    rest = text[lead.end() :] if lead else text
    name = _NAME.match(rest) if ":" in rest[:30] else None
    if name and (name[1].isupper() or all(word[0].isupper() for word in name[1].split())):
        return rest[name.end() :], lead is not None, name[1]
    return rest, lead is not None, ""


def words_of(text: str) -> list[str]:
    """Words and marks: ``You're`` and ``You 're`` give the same."""
    return _TOKEN.findall(text)


def _hash(token: str) -> tuple[int, int]:
    """A word's hash and its class, kept for the next time."""
    found = _hashes.get(token)
    if found is None:
        if len(_hashes) > _MOST_CACHED:
            _hashes.clear()
        lower = token.lower()
        found = _hashes[token] = crc32(lower.encode("utf-8", "replace")) or 1, _class(token, lower)
    return found


def _class(token: str, lower: str) -> int:
    if (known := _CLASS_OF.get(lower)) is not None:
        return known
    if not token[0].isalnum():
        return 30 + _ENDS.get(token, 0)
    if token[0].isdigit():
        return 24
    if token[0].isupper():
        return 25
    return next((number for suffix, number in _SUFFIXES if lower.endswith(suffix)), 26)


@dataclass(frozen=True, slots=True)
class _Columns:
    """Facts of each sentence as arrays of a file's length."""

    words: np.ndarray  # (n, 6) hashes: first three, last three (the last first)
    classes: np.ndarray  # (n, 4) word classes: first two, last two (the last first)
    facts: np.ndarray  # (n, 11) see _facts
    content: list[frozenset[str]]
    names: list[frozenset[str]]


_END, _START, _SIZE, _OPEN, _CAPS, _QUESTION, _PERSON, _VOCATIVE, _EMPHASIS, _CHARACTERS, _YESNO = range(11)


def _columns(sentences: Sequence[Sentence], texts: Sequence[str]) -> _Columns:
    words, classes, facts, content, names = [], [], [], [], []
    for one, text in zip(sentences, texts, strict=True):
        tokens = words_of(text)
        plain = [_hash(token) for token in tokens if token[0].isalnum()]
        kinds = [kind for _, kind in plain]
        own = [value for value, _ in plain]
        words.append((*_three(own[:3]), *_three(own[:-4:-1])))
        classes.append((*_three(kinds[:2])[:2], *_three(kinds[:-3:-1])[:2]))
        facts.append(_facts(text, tokens, kinds, one.is_emphasised))
        content.append(frozenset([token.lower() for token in tokens if len(token) > 3]))
        names.append(frozenset([token for token in tokens[1:] if len(token) > 2 and token[0].isupper()]))
    return _Columns(np.array(words, np.uint64), np.array(classes, np.uint64), np.array(facts, np.int64), content, names)


def _three(values: list[int]) -> tuple[int, int, int]:
    n = len(values)
    return (values[0] if n else 0, values[1] if n > 1 else 0, values[2] if n > 2 else 0)


_NO_FACTS = (0,) * 11


def _facts(text: str, tokens: list[str], classes: list[int], emphasis: bool) -> tuple[int, ...]:
    """Of one sentence, in the order of ``_END`` and so on."""
    if not tokens:
        return (*_NO_FACTS[:_EMPHASIS], int(emphasis), *_NO_FACTS[_EMPHASIS + 1 :])
    n = len(classes)
    end = _end(tokens)
    persons = (_FIRST_PERSON in classes) + 2 * (_SECOND_PERSON in classes)
    vocative = len(tokens) > 3 and tokens[-3] == "," and tokens[-2][:1].isalpha()
    return (
        end,
        _start(text, tokens),
        bisect_left(_SIZES, n),
        _opened(text),
        int(text.isupper() and sum(map(str.isalpha, text)) > 2),
        _question(classes) if end == _ENDS["?"] else 0,
        persons,
        vocative,
        int(emphasis),
        len(text),
        _ANSWERS.get(classes[0], 0) if classes else 0,
    )


def _end(tokens: list[str]) -> int:
    """The mark at the end, behind which a quote or a bracket may stand (9 if nothing is known of it)."""
    last = tokens[-1]
    end = _ENDS.get(last, 9 if last in _QUOTES or last in ")]" else 0)
    return _ENDS.get(tokens[-2], 9) if end == 9 and len(tokens) > 1 else end


def _start(text: str, tokens: list[str]) -> int:
    """How a sentence begins: a capital, a small letter, a digit, a quote, another mark, or dots."""
    if tokens[0] in ("...", "\u2026"):
        return 6
    first = text.lstrip()[:1]
    tests = (first.isupper(), first.islower(), first.isdigit(), first in _QUOTES)
    return next((place for place, holds in enumerate(tests, 1) if holds), 5)


def _opened(text: str) -> int:
    """Which of a bracket (1) and a quotation (2) is left open."""
    return (text.count("(") > text.count(")")) + 2 * (text.count('"') % 2)


def _question(classes: list[int]) -> int:
    """Kind of a question: by a question word, by its verb, a word or two, or another."""
    if _WH in classes[:2]:
        return 2
    return 3 if classes[:1] == [_AUX] else 4 if len(classes) <= 2 else 1


def _mixed(slot: int, code: np.ndarray) -> np.ndarray:
    """Bucket of a category in its slot. Shape: as ``code``."""
    x = code.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64((slot + 1) * 0xC2B2AE3D27D4EB4F & _MASK)
    x ^= x >> np.uint64(31)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    return (x >> np.uint64(64 - BITS)).astype(np.int32)


_MASK = (1 << 64) - 1
_NONE = np.iinfo(np.int64).min


def _times(values: Sequence[int | None]) -> np.ndarray:
    return np.array([_NONE if value is None else value for value in values], np.int64)


def _binned(values: np.ndarray, is_there: np.ndarray, borders: Sequence[float]) -> np.ndarray:
    """1 and up for bins, 0 where there is no value."""
    return np.where(is_there, np.searchsorted(borders, values, side="right") + 1, 0)


def _pair(*codes: np.ndarray) -> np.ndarray:
    """One code for several."""
    out = np.zeros(codes[0].shape, np.uint64)
    for code in codes:
        out = (out ^ code.astype(np.uint64)) * np.uint64(0x100000001B3) + np.uint64(0x9E3779B1)
    return out


def pair_features(sentences: Sequence[Sentence]) -> np.ndarray:
    """Buckets of each pair of neighbours of one file.

    Args:
        sentences: In file order.

    Returns:
        Shape: (n_sentences - 1, ``len(SLOTS)``), int32, each below ``2 ** BITS``.
    """
    if len(sentences) < 2:
        return np.zeros((0, len(SLOTS)), np.int32)
    marked = [strip_marks(one.text) for one in sentences]
    own = _columns(sentences, [text for text, _, _ in marked])
    codes = {**_timing_codes(sentences, own), **_text_codes(own), **_word_codes(own)}
    gap = codes["gap"]
    words, facts = own.words, own.facts
    end, first, size = facts[:-1, _END], words[1:, 0], facts[:, _SIZE]
    codes["end_gap"], codes["gap_first"] = _pair(end, gap), _pair(gap, own.classes[1:, 0])
    codes["gap_sizes"] = _pair(gap, size[:-1], size[1:])
    codes["end_first"] = _pair(end, first)
    return np.stack([_mixed(slot, np.asarray(codes[name])) for slot, name in enumerate(SLOTS)], axis=1)


def _timing_codes(sentences: Sequence[Sentence], own: _Columns) -> dict[str, np.ndarray]:
    starts, ends = _times([one.start for one in sentences]), _times([one.end for one in sentences])
    has_gap = (starts[1:] != _NONE) & (ends[:-1] != _NONE)
    gaps = np.where(has_gap, starts[1:] - np.where(has_gap, ends[:-1], 0), 0)
    lasts = np.array([one.last_block for one in sentences])
    firsts = np.array([one.first_block for one in sentences])
    same_block = (lasts[:-1] >= 0) & (lasts[:-1] == firsts[1:])
    gap = _binned(gaps, has_gap, GAP_BINS_MS)
    has_length = (starts != _NONE) & (ends != _NONE) & (starts < ends)
    length = np.where(has_length, ends - np.where(has_length, starts, 0), 1)
    long, rate = (
        _binned(length, has_length, _LENGTH_MS),
        _binned(own.facts[:, _CHARACTERS] * 1000 / length, has_length, _RATE),
    )
    zero = np.zeros(1, np.int64)
    timed = starts[starts != _NONE]
    minutes = max(1.0, float(timed.max() - timed.min()) / 60_000) if len(timed) else 0.0
    return {
        "gap": gap,
        "gap_fine": np.where(has_gap, np.clip(gaps, -2000, 3000) // 60 + 100, 0),
        "length": long[:-1],
        "next_length": long[1:],
        "rate": rate[:-1],
        "next_rate": rate[1:],
        "block": same_block + 0,
        "gap_before": _pair(np.concatenate([zero, gap[:-1]]), gap),
        "gap_after": _pair(gap, np.concatenate([gap[1:], zero])),
        "file_rate": np.full(len(gap), min(20, int(len(sentences) / minutes / 3)) if minutes else 21),
    }


def _text_codes(own: _Columns) -> dict[str, np.ndarray]:
    facts = own.facts
    this, after = facts[:-1], facts[1:]
    end, start = this[:, _END], after[:, _START]
    zero = np.zeros(1, np.int64)
    shared = [_overlap(a, b) for a, b in zip(own.content[:-1], own.content[1:], strict=True)]
    names = [bool(a & b) for a, b in zip(own.names[:-1], own.names[1:], strict=True)]
    return {
        "end": end,
        "next_start": start,
        "end_start": _pair(end, start),
        "open": this[:, _OPEN],
        "end_before": _pair(np.concatenate([zero, end[:-1]]), end, start),
        "next_end": _pair(end, after[:, _END]),
        "caps": _pair(this[:, _CAPS], after[:, _CAPS]),
        "emphasis": _pair(this[:, _EMPHASIS], after[:, _EMPHASIS]),
        "size": this[:, _SIZE],
        "next_size": after[:, _SIZE],
        "sizes": _pair(this[:, _SIZE], after[:, _SIZE]),
        "shared": np.array(shared),
        "shared_name": np.array(names) + 0,
        "question": _pair(this[:, _QUESTION], after[:, _QUESTION]),
        "question_size": _pair(this[:, _QUESTION], after[:, _SIZE]),
        "persons": _pair(this[:, _PERSON], after[:, _PERSON]),
        "vocative": this[:, _VOCATIVE],
        "next_vocative": after[:, _VOCATIVE],
        "answer": _pair(this[:, _QUESTION], after[:, _YESNO]),
    }


def _overlap(a: frozenset[str], b: frozenset[str]) -> int:
    both = len(a & b)
    return 0 if not both else 1 + min(3, 8 * both // len(a | b))


def _word_codes(own: _Columns) -> dict[str, np.ndarray]:
    words, classes, question = own.words, own.classes, own.facts[:-1, _QUESTION]
    this, after = words[:-1], words[1:]
    codes = {}
    for k in range(3):
        codes[f"first{k + 1}"], codes[f"last{k + 1}"] = this[:, k], this[:, 3 + k]
        codes[f"next_first{k + 1}"], codes[f"next_last{k + 1}"] = after[:, k], after[:, 3 + k]
    return codes | {
        "first12": _pair(this[:, 0], this[:, 1]),
        "last21": _pair(this[:, 4], this[:, 3]),
        "next_first12": _pair(after[:, 0], after[:, 1]),
        "next_first23": _pair(after[:, 1], after[:, 2]),
        "next_last21": _pair(after[:, 4], after[:, 3]),
        "border": _pair(this[:, 3], after[:, 0]),
        "border2": _pair(this[:, 4], this[:, 3], after[:, 0]),
        "classes": _pair(classes[:-1, 2], classes[:-1, 3]),
        "border_classes": _pair(classes[:-1, 2], classes[1:, 0]),
        "next_classes": _pair(classes[1:, 0], classes[1:, 1]),
        "class_border": _pair(classes[:-1, 0], classes[1:, 0], own.facts[:-1, _END]),
        "question_first": _pair(question, after[:, 0]),
        "firsts": _pair(this[:, 0], after[:, 0]),
        "after_first": np.concatenate([words[2:, 0], np.zeros(1, np.uint64)]),
    }
