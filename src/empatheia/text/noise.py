"""Text as people type it: letter case, apostrophes, punctuation and letters lost or swapped, with marks that follow.

For training: a model that has seen only tidy text reads ``im so hapy`` worse than ``I'm so happy``.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

_STRAIGHT = str.maketrans("\u2018\u2019\u02bc\u2032\u00b4\u201c\u201d", "'''''\"\"")
_WORD = re.compile(r"[a-zA-Z]{4,}")
_DROPPED = frozenset(".,!?;:")
_SENTENCE = re.compile(r"(?:^|[.!?]\s+)\W*\w|\bi\b(?!\.)")


def straight(text: str) -> str:
    """Curly apostrophes and quotation marks as straight ones: one character for one, so that offsets hold.

    >>> straight("I\u2019m fine")
    "I'm fine"
    """
    return text.translate(_STRAIGHT)


def unshouted(text: str) -> str:
    """A text typed in capitals as it is usually written; any other text as it is.

    >>> unshouted("I CAN'T. IT'S MY WEDDING, AND I")
    "I can't. It's my wedding, and I"
    >>> unshouted("I saw it on TV")
    'I saw it on TV'
    """
    letters = [letter for letter in text if letter.isalpha()]
    if len(letters) < 4 or sum(map(str.isupper, letters)) < 0.8 * len(letters):
        return text
    return _SENTENCE.sub(lambda found: found[0].upper(), text.lower())


def noisy(text: str, marks: Sequence[bool], draw: random.Random) -> tuple[str, list[bool]]:
    """A carelessly typed version of a text.

    Args:
        text: As written.
        marks: One flag a character, which goes where its character goes.
        draw: Source of chance.

    Returns:
        The text and the marks of its characters; both have the same length, and a letter is always left.
    """
    letters = list(zip(text, marks, strict=True))
    if draw.random() < 0.4:
        letters = [(c.lower(), m) for c, m in letters]
    if draw.random() < 0.3:
        letters = [(c, m) for c, m in letters if c != "'"]
    if draw.random() < 0.3:
        letters = [(c, m) for c, m in letters if c not in _DROPPED]
    if draw.random() < 0.4:
        letters = _typos(letters, draw, 0.06)
    if not any(c.isalpha() for c, _ in letters):
        return text, list(marks)
    return "".join(c for c, _ in letters), [m for _, m in letters]


def _typos(letters: list[tuple[str, bool]], draw: random.Random, share: float) -> list[tuple[str, bool]]:
    """One letter of a share of the longer words is swapped with the next, doubled, or lost; the first stays."""
    plain = "".join(c for c, _ in letters)
    out, done = [], 0
    for word in _WORD.finditer(plain):
        if draw.random() >= share:
            continue
        place = draw.randrange(word.start() + 1, word.end() - 1)
        out += letters[done:place]
        kind = draw.randrange(3)
        if kind == 0:
            out += [letters[place + 1], letters[place]]
            done = place + 2
        elif kind == 1:
            out += [letters[place], letters[place]]
            done = place + 1
        else:
            done = place + 1
    return out + letters[done:]
