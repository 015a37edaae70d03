"""When are two English words forms of one word: by Snowball stem, with irregular forms from a short list.

Strings only. A dictionary would know more; for cause words of everyday talk, regular endings and the irregular verbs
cover nearly all.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from empatheia.text.stems import stem


@cache
def _irregular() -> dict[str, str]:
    """The forms of ``irregular_forms.txt``, a word a line with its base first, to the base's stem."""
    lines = Path(__file__).with_name("irregular_forms.txt").read_text(encoding="utf-8").splitlines()
    return {form: stem(forms[0]) for forms in map(str.split, lines) for form in forms}


def base_form(word: str) -> str:
    """What all forms of a word share: the stem of its base form. Any case; a possessive ending is dropped.

    Not a word itself, and homographs are one word ("left" is a form of "leave").

    >>> base_form("Lost") == base_form("losing"), base_form("children") == base_form("child's")
    (True, True)
    """
    lowered = word.lower().replace("’", "'").removesuffix("'s")
    return _irregular().get(lowered) or stem(lowered)


def each_once(words: Iterable[str]) -> list[str]:
    """Words in order, without later forms of one that is there.

    >>> each_once(["dog", "lost", "dogs", "lose"])
    ['dog', 'lost']
    """
    found: dict[str, str] = {}
    for word in words:
        found.setdefault(base_form(word), word)
    return list(found.values())
