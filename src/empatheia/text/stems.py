"""The English Snowball stem of a word (Porter 2), as NLTK computes it.

NLTK differs from the published algorithm where a suffix is longer than the region it has to stand in; published numbers
of the field are made with NLTK's.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

_VOWELS = frozenset("aeiouy")
_WHOLE = {
    "skis": "ski", "skies": "sky", "dying": "die", "lying": "lie", "tying": "tie", "idly": "idl", "gently": "gentl",
    "ugly": "ugli", "early": "earli", "only": "onli", "singly": "singl", "sky": "sky", "news": "news", "howe": "howe",
    "atlas": "atlas", "cosmos": "cosmos", "bias": "bias", "andes": "andes",
} | {
    word + ending: word
    for words, endings in (("inning outing canning herring earring", " s"), ("proceed exceed succeed", " s ed ing"))
    for word in words.split()
    for ending in endings.split(" ")
}  # fmt: skip
_DOUBLED = tuple(2 * letter for letter in "bdfgmnprt")
# suffix: how many letters go, and what comes for them
_STEP_2 = {
    "ization": (7, "ize"), "ational": (7, "ate"), "fulness": (4, ""), "ousness": (7, "ous"), "iveness": (7, "ive"),
    "tional": (2, ""), "biliti": (6, "ble"), "lessli": (2, ""), "entli": (2, ""), "ation": (5, "ate"),
    "alism": (5, "al"), "aliti": (5, "al"), "ousli": (5, "ous"), "iviti": (5, "ive"), "fulli": (2, ""),
    "enci": (1, "e"), "anci": (1, "e"), "abli": (1, "e"), "izer": (4, "ize"), "ator": (4, "ate"), "alli": (4, "al"),
    "bli": (3, "ble"), "ogi": (1, ""), "li": (2, ""),
}  # fmt: skip
_KEEP_E = frozenset(("ational", "ation", "ator", "iveness", "iviti"))
_STEP_3 = {
    "ational": (7, "ate"), "tional": (2, ""), "alize": (3, ""), "icate": (5, "ic"), "iciti": (5, "ic"),
    "ative": (5, ""), "ical": (4, "ic"), "ness": (4, ""), "ful": (3, ""),
}  # fmt: skip
_STEP_4 = (
    *("ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism"),
    *("ate", "iti", "ous", "ive", "ize", "ion", "al", "er", "ic"),
)


class _Stem(NamedTuple):
    """A word on its way, and where its two regions begin: their suffixes may go."""

    word: str
    first: int
    second: int

    def replace_end(self, n: int, by: str = "") -> _Stem:
        """Other letters for the last ``n``; a region that is shorter than that is empty then."""
        left = len(self.word) - n
        word = self.word[:left] + by
        return _Stem(word, *(region if region <= left else len(word) for region in self[1:]))

    def holds(self, suffix: str, region: int) -> bool:
        """Whether the word's suffix lies in a region."""
        return region + len(suffix) <= len(self.word)


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """The English Snowball stem of a word, in small letters.

    >>> stem("studied"), stem("dogs"), stem("lost")
    ('studi', 'dog', 'lost')
    """
    word = word.lower()
    if len(word) <= 2:
        return word
    if word in _WHOLE:
        return _WHOLE[word]
    now = _regions(_with_consonant_y(word))
    for suffix in ("'s'", "'s", "'"):
        if now.word.endswith(suffix):
            now = now.replace_end(len(suffix))
            break
    now = _past(_plural(now))
    if len(now.word) > 2 and now.word[-1] in "yY" and now.word[-2] not in _VOWELS:
        now = now.replace_end(1, "i")
    return _final(_short(_derived(_compound(now)))).replace("Y", "y")


def _with_consonant_y(word: str) -> str:
    """Large letters for the y that are consonants; one kind of apostrophe, and none in front."""
    word = word.replace("’", "'").replace("‘", "'").replace("‛", "'").removeprefix("'")
    letters = list(word)
    for i, letter in enumerate(letters):
        if letter == "y" and (i == 0 or letters[i - 1] in _VOWELS):
            letters[i] = "Y"
    return "".join(letters)


def _regions(word: str) -> _Stem:
    known = next((len(start) for start in ("gener", "commun", "arsen") if word.startswith(start)), None)
    first = _behind_consonant(word, 0) if known is None else known
    return _Stem(word, first, _behind_consonant(word, first))


def _behind_consonant(word: str, start: int) -> int:
    """Where the region behind the first consonant after a vowel begins."""
    pairs = range(start + 1, len(word))
    return next((i + 1 for i in pairs if word[i] not in _VOWELS and word[i - 1] in _VOWELS), len(word))


def _plural(now: _Stem) -> _Stem:
    word = now.word
    if word.endswith("sses"):
        return now.replace_end(2)
    if word.endswith(("ied", "ies")):
        return now.replace_end(2 if len(word) > 4 else 1)
    if word.endswith("s") and not word.endswith(("us", "ss")) and not _VOWELS.isdisjoint(word[:-2]):
        return now.replace_end(1)
    return now


def _past(now: _Stem) -> _Stem:
    word = now.word
    suffix = next((end for end in ("eedly", "ingly", "edly", "eed", "ing", "ed") if word.endswith(end)), "")
    if suffix in ("eed", "eedly"):
        return now.replace_end(len(suffix), "ee") if now.holds(suffix, now.first) else now
    if not suffix or _VOWELS.isdisjoint(word[: -len(suffix)]):
        return now
    now = now.replace_end(len(suffix))
    word, size = now.word, len(now.word)
    if word.endswith(("at", "bl", "iz")):
        is_long = size >= 5 or now.first <= size - 2
        return _Stem(word + "e", now.first, now.second if is_long else size + 1)
    if word.endswith(_DOUBLED):
        return now.replace_end(1)
    return _Stem(word + "e", size + 1, size + 1) if now.first == size and _is_short(word) else now


def _is_short(word: str) -> bool:
    if len(word) == 2:
        return word[0] in _VOWELS and word[1] not in _VOWELS
    if len(word) < 2:
        return False
    return word[-1] not in _VOWELS and word[-1] not in "wxY" and word[-2] in _VOWELS and word[-3] not in _VOWELS


def _compound(now: _Stem) -> _Stem:
    suffix = next((end for end in _STEP_2 if now.word.endswith(end)), "")
    if not suffix or not now.holds(suffix, now.first):
        return now
    if (suffix == "ogi" and now.word[-4] != "l") or (suffix == "li" and now.word[-3] not in "cdeghkmnrt"):
        return now
    n, by = _STEP_2[suffix]
    done = now.replace_end(n, by)
    if suffix in _KEEP_E and not now.holds(suffix, now.second):
        done = done._replace(second=len(done.word) - 1)
    return done


def _derived(now: _Stem) -> _Stem:
    suffix = next((end for end in _STEP_3 if now.word.endswith(end)), "")
    if not suffix or not now.holds(suffix, now.second if suffix == "ative" else now.first):
        return now
    return now.replace_end(*_STEP_3[suffix])


def _short(now: _Stem) -> _Stem:
    suffix = next((end for end in _STEP_4 if now.word.endswith(end)), "")
    if not suffix or not now.holds(suffix, now.second) or (suffix == "ion" and now.word[-4] not in "st"):
        return now
    return now.replace_end(len(suffix))


def _final(now: _Stem) -> str:
    word, in_second = now.word, now.second < len(now.word)
    if in_second and word.endswith("ll"):
        return word[:-1]
    if not word.endswith("e") or now.first >= len(word):
        return word
    if in_second:
        return word[:-1]
    if len(word) < 4:
        return word
    ends_short = word[-2] not in _VOWELS and word[-2] not in "wxY" and word[-3] in _VOWELS and word[-4] not in _VOWELS
    return word if ends_short else word[:-1]
