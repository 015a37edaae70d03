"""Texts behind an encoding: backwards, upside down, base64, hexadecimal, percent signs, rot13, figures, split by emoji.

What a text says when it is decoded is read beside the text itself, where more of it is English than before.

>>> [(one.text, one.how) for one in hidden_in("flesym llik ot tnaw I")]
[('I want to kill myself', 'backwards')]
>>> hidden_in("It was a saw, not a ton of dogs.")
[]
"""

from __future__ import annotations

import base64
import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import unquote

from empatheia.care.normalising import LEET, SENSITIVE
from empatheia.giving_way import give_way
from empatheia.text.uncertainty import ENGLISH

FEWEST = 2
"""English words that a decoded text must have."""
LONGEST_BETWEEN = 3
"""Letters of a known word that may stand between unknown ones that are decoded together."""
_BLANKLESS = re.compile(r"\S+")
_RUN = re.compile("s?u+(?:su+)*s?")
"""Unknown words (u) with single short known ones (s)."""
_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")
_TURNED = str.maketrans("ɐqɔpǝɟƃɓɥᴉıɾʞןɯuodbɹsʇnʌʍxʎz∀Ɐ⅁ƎℲ⅂Ԁ⊥∩Λ⅄", "abcdefgghiijklmnopqrstuvwxyzAAGEFLPTUVY")
_TURNED_LETTER = re.compile("[ɐɔǝɟƃɓɥᴉɾʞɯɹʇʌʍʎ]")
_BLOB = re.compile(r"(?<![\w+/])[A-Za-z0-9+/_-]{12,}={0,2}(?![\w+/=])")
_HEX = re.compile(r"(?<!\w)(?:(?:0x|\\x)?[0-9a-fA-F]{2}[ ,:]?){6,}(?!\w)")
_PERCENT = re.compile(r"(?<!\S)\S*%[0-9a-fA-F]{2}\S*")
_FIGURES = re.compile(r"[a-z][0-9@$!|]|[0-9][a-z]", re.IGNORECASE)
_INSIDE = re.compile(r"(?<=[^\W\d_])[\U0001f000-\U0001faff\u2600-\u27bf\ufe0f\u200d]+(?=[^\W\d_])")


@dataclass(frozen=True, slots=True)
class Hidden:
    """A text that another one hides.

    Attributes:
        start: Where it stands in that one.
        end: Behind its last character.
        text: Decoded.
        how: It was written.
    """

    start: int
    end: int
    text: str
    how: str


def hidden_in(text: str) -> list[Hidden]:
    """What a text says when it is decoded; of each encoding, only what is more English than it was.

    Args:
        text: A turn or a part of one; every encoding takes time in proportion to it.
    """
    give_way()
    found = _turned_whole(text, 0, len(text))
    if not found:
        found = [one for start, end in _unknown_runs(text) for one in _turned_whole(text, start, end)]
    if (joined := _INSIDE.sub("", text)) != text:
        found.append(Hidden(0, len(text), joined, "with emoji inside words"))
    for pattern, decode, how in _BLOBS:
        for match in pattern.finditer(text):
            decoded = decode(match.group())
            if decoded != match.group() and n_english(decoded) >= FEWEST:
                found.append(Hidden(match.start(), match.end(), decoded, how))
    return found


def _turned_whole(text: str, start: int, end: int) -> list[Hidden]:
    """What a stretch says in those encodings that leave no mark of where they begin."""
    written = text[start:end]
    least = max(FEWEST, 1.5 * n_english(written))
    found = (Hidden(start, end, decode(written), how) for decode, how in _WHOLE)
    return [one for one in found if n_english(one.text) > least]


def _unknown_runs(text: str) -> list[tuple[int, int]]:
    """Stretches of two unknown words or more inside a sentence, with single short words before, between and behind."""
    kinds, places = [], []
    for word in _BLANKLESS.finditer(text):
        is_known = n_english(word.group()) > 0
        kinds.append("u" if not is_known else "s" if len(word.group()) <= LONGEST_BETWEEN else "k")
        places.append(word.span())
        if word.group()[-1] in ".!?":
            kinds.append("|")
            places.append(word.span())
    runs = [run for run in _RUN.finditer("".join(kinds)) if run.group().count("u") > 1]
    return [(places[run.start()][0], places[run.end() - 1][1]) for run in runs]


def n_english(text: str) -> int:
    """How many words of a text are common English ones, or such as matter here."""
    return sum(word in ENGLISH or word in SENSITIVE for word in _WORD.findall(text.lower()))


def _backwards(text: str) -> str:
    return text[::-1]


def _turned(text: str) -> str:
    return text[::-1].translate(_TURNED) if _TURNED_LETTER.search(text) else ""


def _rotated(text: str) -> str:
    return codecs.encode(text, "rot13")


def _lettered(text: str) -> str:
    return text.translate(LEET) if _FIGURES.search(text) else ""


def _base64(blob: str) -> str:
    try:
        raw = base64.b64decode(blob.replace("-", "+").replace("_", "/").rstrip("=") + "==", validate=False)
        return raw.decode("utf-8")
    except ValueError:
        return ""


def _hexadecimal(blob: str) -> str:
    digits = re.sub(r"0x|\\x|[ ,:]", "", blob)
    try:
        return bytes.fromhex(digits).decode("utf-8")
    except ValueError:
        return ""


_WHOLE: tuple[tuple[Callable[[str], str], str], ...] = (
    (_backwards, "backwards"),
    (_turned, "upside down"),
    (_rotated, "in rot13"),
    (_lettered, "with figures"),
)
_BLOBS: tuple[tuple[re.Pattern[str], Callable[[str], str], str], ...] = (
    (_BLOB, _base64, "in base64"),
    (_HEX, _hexadecimal, "in hexadecimal"),
    (_PERCENT, unquote, "with percent signs"),
)
