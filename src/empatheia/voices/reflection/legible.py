"""Whether a text can be read at all: English, and no fingers on the keys."""

from __future__ import annotations

import re
from collections.abc import Sequence

from empatheia.voices.reflection.lexicon import lexicon
from empatheia.voices.reflection.turning import lower_words

_LONGEST_READ = 6000
_LAST_LATIN = 0x24F


def is_foreign(text: str) -> bool:
    """Whether a text is hardly English, by its commonest words and its letters."""
    letters = [c for c in text if c.isalpha()]
    if not letters:
        return False
    if sum(ord(c) > _LAST_LATIN for c in letters) > 0.3 * len(letters):
        return True
    low = lower_words(text[:_LONGEST_READ])
    if len(low) < 2:
        return False
    known = lexicon().lists
    foreign = sum(word in known["foreign"] for word in low)
    english = sum(word in known["english"] for word in low)
    return foreign > 1.2 * english and (foreign > 1 or len(low) <= 4) and foreign >= 0.2 * len(low)


def is_garbled(words: Sequence[str]) -> bool:
    """Whether a clause has noise among its words, or says the same few again and again."""
    return any(is_noise(word) for word in words) or (len(words) > 3 and len(set(words)) <= len(words) // 2)


def is_noise(word: str) -> bool:
    """Whether a word looks like fingers on the keys: "asdkjh"."""
    word = word.lower()
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return False
    if word in lexicon().short_forms or word in lexicon().lists["acronyms"]:
        return False
    return bool(
        re.search(r"[bcdfghjklmnpqrstvwxz]{5,}|(.)\1{3,}|\A(?:asd|qwe|zxc|sdf|jkl|dfg|hjk)|(..)\2\2", word)
    ) and not re.search(r"ngths?\b|tchstr|ghtsc|ngst", word)
