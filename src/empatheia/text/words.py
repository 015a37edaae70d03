"""Words as the field counts them, each with the characters of the original text it came from.

``family``: lower-case, common contractions expanded, NLTK words (the code line of MoEL, MIME, EmpDG, KEMP and CEM);
``recec``: the same without expansion (Gao et al. 2021's released tokens); ``rashkin``: the cased spacing rules of the
EmpatheticDialogues code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal, NamedTuple

from empatheia.errors import ConfigError

Style = Literal["family", "recec", "rashkin"]

# in the order of the released code; plain substring replacement, so "wit's" is expanded as well
CONTRACTIONS: dict[str, str] = {
    "it's": "it is", "don't": "do not", "doesn't": "does not", "didn't": "did not", "you'd": "you would",
    "you're": "you are", "you'll": "you will", "i'm": "i am", "they're": "they are", "that's": "that is",
    "what's": "what is", "couldn't": "could not", "i've": "i have", "we've": "we have", "can't": "cannot",
    "i'd": "i would", "aren't": "are not", "isn't": "is not", "wasn't": "was not", "weren't": "were not",
    "won't": "will not", "there's": "there is", "there're": "there are",
}  # fmt: skip
_CONTRACTION = re.compile("|".join(map(re.escape, CONTRACTIONS)))
_ABBREVIATIONS = {"mr", "mrs", "ms", "dr", "prof", "st", "vs", "jr", "sr", "e.g", "i.e", "etc", "no"}
_SENTENCE_END = re.compile(r"[.!?]+[\"')\]]*\s+")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u200b-\u200f\u2028-\u202e\ufeff]")
_PLAIN = re.compile(r"[a-z ,.!?\n]*")
_PLAIN_WORD = re.compile(r"[a-z.]+|[,!?]")
_NLTK_SPLITS = re.compile(r"\b(?:cannot|gimme|gonna|gotta|lemme|wanna|more|d|whaddya|whatcha)\b|[.][,!?]|[,!?][.]")
_RASHKIN_MARKS = re.compile(r"([,;:!'?])")


class Word(NamedTuple):
    """A word and the characters ``[start, end)`` of the original text it stands for."""

    text: str
    start: int
    end: int


@lru_cache(maxsize=1)
def _nltk():  # noqa: ANN202
    from nltk.tokenize.destructive import NLTKWordTokenizer

    return NLTKWordTokenizer()


def tokenize_words(text: str, style: Style = "family") -> list[Word]:
    """Cuts a text into words.

    Args:
        text: Anything; control and zero-width characters separate words.
        style: See the module's first lines.

    Returns:
        Words in order. Spans never overlap wrongly and always satisfy ``0 <= start <= end <= len(text)``; the parts
        of an expanded contraction share its characters ("don't" gives "do" over ``do`` and "not" over ``n't``).

    Raises:
        ConfigError: Unknown style.
    """
    if style == "rashkin":
        return _rashkin_words(text)
    if style not in ("family", "recec"):
        raise ConfigError(f"unknown word style {style!r}; accepted: family, recec, rashkin.")
    return [word for start, end in _sentences(text) for word in _sentence_words(text[start:end], start, style)]


def count_words(text: str) -> int:
    """Number of ``family`` words; the unit of per-word perplexity."""
    return len(tokenize_words(text))


def _sentences(text: str) -> list[tuple[int, int]]:
    """Character ranges of sentences: NLTK's word rules split a period only at the end of what they are given."""
    ranges, start = [], 0
    for match in _SENTENCE_END.finditer(text):
        before = text[start : match.start()].rsplit(None, 1)
        if match.group().startswith(". ") and before and before[-1].lower() in _ABBREVIATIONS:
            continue
        ranges.append((start, match.end()))
        start = match.end()
    if start < len(text):
        ranges.append((start, len(text)))
    return [part for a, b in ranges for part in ((s, min(s + 5000, b)) for s in range(a, b, 5000))]


def _plain_words(sentence: str, offset: int) -> list[Word]:
    """NLTK's result for a sentence of letters, blanks and ``, . ! ?`` only, several times faster."""
    words = [Word(match.group(), offset + match.start(), offset + match.end()) for match in _PLAIN_WORD.finditer(sentence)]
    if words and words[-1].text.endswith(".") and len(words[-1].text) > 1:
        text, start, end = words[-1]
        words[-1:] = [Word(text[:-1], start, end - 1), Word(".", end - 1, end)]
    return words


def _sentence_words(sentence: str, offset: int, style: Style) -> list[Word]:
    plain = sentence.lower()
    if _PLAIN.fullmatch(plain) and ".." not in plain and not _NLTK_SPLITS.search(plain):
        words = _plain_words(plain, offset)
        if not any("." in word.text and len(word.text) > 1 and word.text[0] == "." for word in words):
            return words
    clean = _CONTROL.sub(" ", sentence)
    lowered = clean.lower()
    where: list[tuple[int, int]] | None = None  # span of each character, when it is not its own
    if len(lowered) != len(clean):
        pieces = [c.lower() for c in clean]
        where = [(i, i + 1) for i, piece in enumerate(pieces) for _ in piece]
        lowered = "".join(pieces)
    if style == "family" and "'" in lowered and _CONTRACTION.search(lowered):
        lowered, where = _expand(lowered, where)
    words, position = [], 0
    for token in _nltk().tokenize(lowered):
        while position < len(lowered) and lowered[position].isspace():
            position += 1
        if not lowered.startswith(token, position):
            if token in ("``", "''"):  # NLTK's sign for a double quote
                width = 1 if lowered[position : position + 1] == '"' else 2
            else:
                position = lowered.find(token, position)
                width = len(token)
        else:
            width = len(token)
        end = position + width
        if where is None:
            words.append(Word(token, offset + position, offset + end))
        else:
            words.append(Word(token, offset + where[position][0], offset + where[end - 1][1]))
        position = end
    return words


def _expand(text: str, where: list[tuple[int, int]] | None) -> tuple[str, list[tuple[int, int]]]:
    where = where or [(i, i + 1) for i in range(len(text))]
    parts: list[str] = []
    spans: list[tuple[int, int]] = []
    last = 0
    for match in _CONTRACTION.finditer(text):
        start, end = match.span()
        parts.append(text[last:start])
        spans += where[last:start]
        long_form = CONTRACTIONS[match.group()]
        first, _, second = long_form.partition(" ")
        cut = end - 3 if match.group().endswith("n't") else start + match.group().index("'")
        left = (where[start][0], where[cut - 1][1]) if second else (where[start][0], where[end - 1][1])
        right = (where[cut][0], where[end - 1][1])
        parts.append(long_form)
        spans += [left] * len(first) + ([(left[1], left[1])] + [right] * len(second) if second else [])
        last = end
    parts.append(text[last:])
    spans += where[last:]
    return "".join(parts), spans


def _rashkin_words(text: str) -> list[Word]:
    spaced = _RASHKIN_MARKS.sub(r" \1 ", text.replace(".", " . ").replace(". . .", "..."))
    words, position = [], 0
    for token in spaced.replace("  ", " ").replace("  ", " ").strip().split(" "):
        if not token:
            continue  # five or more blanks leave an empty token in the released code; it carries nothing
        position = text.find(token, position)
        words.append(Word(token, position, position + len(token)))
        position += len(token)
    return words


_CLOSING = {".", ",", "!", "?", ";", ":", ")", "]", "}", "%", "''", "...", "…"}
_OPENING = {"(", "[", "{", "$", "#", "``"}
_SPLIT_PAIRS = {("can", "not"), ("gon", "na"), ("wan", "na"), ("got", "ta"), ("gim", "me"), ("lem", "me")}
_NAMES = {"i": "I", "god": "God", "christmas": "Christmas", "thanksgiving": "Thanksgiving", "halloween": "Halloween"}
_TIMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "january", "february", "april",
          "june", "july", "august", "september", "october", "november", "december")  # fmt: skip


def detokenize(words: Iterable[str]) -> str:
    """Readable text from lower-case words: spacing, quotes, capitals at sentence starts, ``i`` to ``I``.

    >>> detokenize("i am so sorry , that must be hard . do you want to talk ?".split())
    'I am so sorry, that must be hard. Do you want to talk?'
    >>> detokenize(["it", "was", "n't", "fun"])
    "It wasn't fun"
    """
    out, sentence_start, glue, previous, in_quote = [], True, True, "", False
    for word in words:
        shown = _NAMES.get(word, word.capitalize() if word in _TIMES else word)
        opens = word in _OPENING
        closes = word in _CLOSING or word == "n't" or (word.startswith("'") and len(word) > 1 and word != "''")
        if word == '"':
            opens, closes, in_quote = not in_quote, in_quote, not in_quote
        if word in ("``", "''"):
            shown = '"'
        attached = glue or closes or (previous, word) in _SPLIT_PAIRS
        if sentence_start and shown[:1].isalpha():
            shown = shown[:1].upper() + shown[1:]
            sentence_start = False
        out.append(shown if attached else " " + shown)
        glue = opens
        if word in {".", "!", "?"}:
            sentence_start = True
        previous = word
    return "".join(out)
