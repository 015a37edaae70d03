"""Text as tokens that no spelling hides, each with its place in the text as written.

Undone are: character references, compatibility forms and accents, typographic apostrophes, characters nobody sees,
letters of other scripts that look Latin, capitals, stretched letters, figures for letters, starred letters, letters set
apart, words run together, contractions, and common misspellings of the few words that matter.

>>> [token.text for token in tokens_of("I don\u2019t wanna d1e")]
['i', 'do', 'not', 'want', 'to', 'die']
>>> tokens_of("I want to s u i c i d e now")[3]
Token(text='suicide', start=10, end=23, sentence=0)
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from html import unescape
from pathlib import Path

from empatheia.settings import read_yaml

APOSTROPHES = "'\u2018\u2019\u201b\u02bc\u2032\u02b9\u0060\u00b4\uff07"
LAUGH = "_laugh_"
"""Stands for emoji and letters of laughter."""

WORDS = read_yaml(Path(__file__).parent / "data" / "words.yaml")
"""The words of ``data/words.yaml``, by its keys."""
SENSITIVE = frozenset(WORDS["sensitive"])
"""Words that are looked for behind figures, stars and blanks."""

_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]"
)
_LOOKALIKES = str.maketrans("аеорсухіјѕԁһкмтвнαοερικυνı", "aeopcyxijsdhkmtbhaoepikuvi")
LEET = str.maketrans("013457@$!|", "oieastasil")
_LEET_L = str.maketrans("013457@$!|", "oleastasll")
_REFERENCE = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]\w{1,30});")
_LAUGHTER = re.compile(r"^(?:(?:ha|he){2,}h?|lo+l+|lmf?ao+|rofl|lmaoo+|jk|xd+|hehe+|ahaha\w*|lolol\w*)$")
_PIECES = re.compile(
    r"(?P<spaced>(?<![^\W_])(?:[^\W_][ .\-_*]){2,}[^\W_](?![^\W_]))"
    r"|(?P<word>[@$]?[^\W_]+(?:[@$!*'|]+[^\W_]+)*)"
    r"|(?P<laugh>[\U0001f602\U0001f923\U0001f480\U0001f639\U0001f606\U0001f605\U0001f92a\U0001f61d\U0001f61c\u2620]+)"
    r"|(?P<stop>[.!?;\n\r\u2026]+)"
)
_STRETCHED = re.compile(r"([^\W\d_])\1{2,}")

_CONTRACTED: dict[str, str] = WORDS["meant"]
_SUFFIXES = {"n't": "not", "'ll": "will", "'re": "are", "'ve": "have", "'m": "am", "'d": "would"}
_PAIRS = {tuple(pair.split()): meant for pair, meant in WORDS["pairs"].items()}
_JOINED = frozenset(WORDS["joined"])
_ALARMING = frozenset(WORDS["alarming"])
_MENDED: list[str] = WORDS["mended"]
_NOT_MENDED = frozenset(WORDS["not_mended"])


@dataclass(frozen=True, slots=True)
class Token:
    """A word as it is meant, and where it stands.

    Attributes:
        text: Normalised.
        start: Offset of its first character in the text as written.
        end: Offset behind its last one.
        sentence: Number of its sentence.
    """

    text: str
    start: int
    end: int
    sentence: int


def tokens_of(text: str) -> tuple[Token, ...]:
    """Tokens of a text in reading order; one word may give several, all with its offsets."""
    clean, places = _cleaned(text)
    found: list[Token] = []
    sentence = 0
    for match in _PIECES.finditer(clean):
        start, end = places[match.start()], places[match.end() - 1] + 1
        if match["stop"]:
            sentence += 1
        elif match["laugh"]:
            found.append(Token(LAUGH, start, end, sentence))
        elif match["spaced"] and (words := _unspaced(match["spaced"])):
            found += [Token(word, start, end, sentence) for word in words]
        elif match["spaced"]:
            for inner in re.finditer(r"[^\W_]", match.group()):
                place = match.start() + inner.start()
                words = _words(inner.group())
                found += [Token(word, places[place], places[place] + 1, sentence) for word in words]
        else:
            found += [Token(word, start, end, sentence) for word in _words(match["word"])]
    return tuple(_paired(found))


def _cleaned(text: str) -> tuple[str, list[int]]:
    """Lower-case characters that matter, and the offset each comes from."""
    if text.isascii() and "&" not in text:
        return text.lower(), list(range(len(text)))
    out: list[str] = []
    places: list[int] = []
    for place, character in _unescaped(text):
        if _INVISIBLE.match(character):
            continue
        if character in APOSTROPHES:
            character = "'"
        elif not character.isascii():
            plain = unicodedata.normalize("NFKD", character)
            plain = "".join(c for c in plain if not unicodedata.combining(c)).lower().translate(_LOOKALIKES)
            character = plain
        for one in character.lower():
            out.append(one)
            places.append(place)
    return "".join(out), places


def _unescaped(text: str) -> Iterator[tuple[int, str]]:
    """Characters with their offsets; of a character reference ("&#100;", "&nbsp;") what it stands for."""
    done = 0
    for match in _REFERENCE.finditer(text):
        yield from enumerate(text[done : match.start()], done)
        yield from ((match.start(), character) for character in unescape(match.group()))
        done = match.end()
    yield from enumerate(text[done:], done)


@lru_cache(maxsize=1 << 15)
def _words(raw: str) -> tuple[str, ...]:
    """What one written word means, as one or more tokens."""
    word = _STRETCHED.sub(_shrunk, raw) if _STRETCHED.search(raw) else raw
    if _LAUGHTER.match(word):
        return (LAUGH,)
    if not word.replace("'", "").isalpha():
        revealed = _revealed(word)
        if revealed is not None:
            return (revealed,)
        parts = [part for part in re.split(r"[@$!*|]+", word) if part]
        if len(parts) > 1:
            return tuple(token for part in parts for token in _words(part))
    if "'" in word:
        return _uncontracted(word)
    if word in _CONTRACTED:
        return tuple(_CONTRACTED[word].split())
    return _corrected(word)


def _corrected(word: str) -> tuple[str, ...]:
    """A long word without its misspelling, or the words that were run together in it."""
    if len(word) < 6 or (len(word) > 6 and word in SENSITIVE):
        return (word,)
    joined = _segmented(word) if len(word) > 6 else ()
    return joined or (_unmisspelt(word),)


def _shrunk(match: re.Match[str]) -> str:
    """A stretched letter once, or twice where the word asks for it (``killll``)."""
    letter = match[1]
    before = match.string[: match.start()]
    return letter * 2 if letter in "lo" and before.endswith(("ki", "pi", "s", "t", "g")) else letter


def _revealed(word: str) -> str | None:
    """The sensitive word behind figures or stars; None if there is none."""
    if not any(character.isalpha() for character in word):
        return None
    for table in (LEET, _LEET_L):
        plain = word.translate(table)
        if plain in SENSITIVE:
            return plain
        if plain in ("mysel", "myse1f", "myselt"):
            return "myself"
    if "*" in word or "!" in word:
        pattern = re.compile("".join("[a-z]{1,2}" if c in "*!" else re.escape(c) for c in re.sub(r"[*!]+", "*", word)))
        wide = re.compile("".join("[a-z]+" if c in "*!" else re.escape(c) for c in re.sub(r"[*!]+", "*", word)))
        for rule in (pattern, wide):
            for one in ("suicide", "suicidal", "kill", "killing", "die", "dying", "dead", "death", "cutting", "rape"):
                if rule.fullmatch(one):
                    return one
    return None


def _uncontracted(word: str) -> tuple[str, ...]:
    plain = word.replace("'", "")
    if plain in _CONTRACTED and plain not in ("ah",):
        return tuple(_CONTRACTED[plain].split())
    for suffix, meant in _SUFFIXES.items():
        if word.endswith(suffix) and len(word) > len(suffix):
            return (*_words(word[: -len(suffix)]), meant)
    if word.endswith("'s"):
        return (*_words(word[:-2]), "is")
    return (plain,) if plain else ()


@lru_cache(maxsize=1 << 12)
def _segmented(word: str) -> tuple[str, ...]:
    """Known words that a written word is run together of, one of them alarming; else nothing."""
    if not any(alarm in word for alarm in _ALARMING) or len(word) > 40:
        return ()
    best: list[tuple[str, ...] | None] = [(), *[None] * len(word)]
    for end in range(1, len(word) + 1):
        for start in range(max(0, end - 8), end):
            head = best[start]
            if head is not None and word[start:end] in _JOINED:
                split = (*head, word[start:end])
                current = best[end]
                if current is None or len(split) < len(current):
                    best[end] = split
    found = best[-1]
    if found is None or len(found) < 2 or not _ALARMING.intersection(found):
        return ()
    return tuple(token for part in found for token in _CONTRACTED.get(part, part).split())


def _unspaced(spaced: str) -> tuple[str, ...]:
    """Words behind letters set apart; nothing if they spell none that matters."""
    word = re.sub(r"[ .\-_*]", "", spaced)
    revealed = word if word in SENSITIVE else _revealed(word)
    return (revealed,) if revealed else _segmented(word.translate(LEET))


def _unmisspelt(word: str) -> str:
    """One of the few words that matter, if it is one slip away."""
    if word in _NOT_MENDED:
        return word
    for one in _MENDED:
        if abs(len(one) - len(word)) <= 1 and word[0] == one[0] and _is_one_slip(word, one):
            return one
    return word


def _is_one_slip(word: str, meant: str) -> bool:
    """One letter too many, missing, wrong, or two in the wrong order."""
    if word == meant:
        return True
    start = 0
    while start < min(len(word), len(meant)) and word[start] == meant[start]:
        start += 1
    if len(word) == len(meant):
        is_swap = word[start : start + 2] == meant[start : start + 2][::-1] and word[start + 2 :] == meant[start + 2 :]
        return is_swap or word[start + 1 :] == meant[start + 1 :]
    longer, shorter = (word, meant) if len(word) > len(meant) else (meant, word)
    return longer[start + 1 :] == shorter[start:]


def _paired(tokens: list[Token]) -> Iterator[Token]:
    """Words that are commonly written apart as one; ``want 2 die`` with its ``to``."""
    place = 0
    while place < len(tokens):
        token = tokens[place]
        following = tokens[place + 1] if place + 1 < len(tokens) else None
        if following is not None and following.sentence == token.sentence:
            joined = _PAIRS.get((token.text, following.text))
            if joined is not None:
                yield Token(joined, token.start, following.end, token.sentence)
                place += 2
                continue
        if token.text == "2" and place and tokens[place - 1].text in ("want", "going", "need", "have", "like"):
            token = replace(token, text="to")
        yield token
        place += 1
