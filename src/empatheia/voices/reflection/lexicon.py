"""The word lists of ``words.yaml``, read once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from empatheia.settings import read_package_yaml

_VOWELS = "aeiou"
_DOUBLING = re.compile(r"[^aeiou][aeiou][bdgklmnprt]\Z")
_NEVER_DOUBLED = frozenset(
    [
        "listen",
        "happen",
        "open",
        "offer",
        "enter",
        "visit",
        "wonder",
        "whisper",
        "suffer",
        "deliver",
        "remember",
        "discover",
        "cover",
        "order",
        "answer",
        "water",
        "consider",
        "order",
        "edit",
        "cancel",
        "volunteer",
        "harass",
    ]
)


@dataclass(frozen=True)
class Lexicon:
    """What is known of single words.

    Attributes:
        bases: Verbs as they stand after "I" or "to".
        thirds: Verbs as they stand after "she".
        pasts: Past forms that can stand after a subject.
        participles: Forms in -ing.
        finite: Every word that can be the verb of a sentence with a noun before it, auxiliaries among them.
        lists: The other lists by name.
        short_forms: Short ways of writing to what they stand for; "" = left out.
        names: Words that are written with a capital.
        self_harm: Finds what is left to the care for people in danger.
    """

    bases: frozenset[str]
    thirds: frozenset[str]
    pasts: frozenset[str]
    participles: frozenset[str]
    finite: frozenset[str]
    lists: dict[str, frozenset[str]]
    short_forms: dict[str, str]
    names: frozenset[str]
    self_harm: re.Pattern[str]

    def is_common(self, word: str) -> bool:
        """Whether a word in small letters is one of the language, no name and no acronym."""
        if word in self.finite or word in self.bases or word in self.participles:
            return True
        return any(word in self.lists[name] for name in _COMMON)


_COMMON = ("english", "adverbs", "people", "feelings", "kin_names", "auxiliaries")


@lru_cache(maxsize=1)
def lexicon() -> Lexicon:
    """The lists; the file is read at the first call."""
    data = read_package_yaml(__file__, "words.yaml")
    bases, thirds, pasts, participles, finished = set(), set(), set(), set(), set()
    for entry in data.pop("verbs").split():
        base, _, irregular = entry.partition("=")
        forms = irregular.split(",") if irregular else [_past(base)]
        bases.add(base)
        thirds.add(_third(base))
        participles.add(_participle(base))
        pasts.update(forms if len(forms) == 1 or base in _TWO_PASTS else forms[:1])
        finished.update(forms[-1:])
    short = {str(key): value for key, value in data.pop("short_forms").items()}
    names = frozenset(" ".join(data.pop("names")).split())
    harm = re.compile(r"\b(?:" + "|".join(data.pop("self_harm").split()) + r")\b", re.IGNORECASE)
    lists = {name: frozenset(text.split()) for name, text in data.items()}
    lists["finished"] = frozenset(finished)
    finite = (thirds | pasts | lists["auxiliaries"]) - {"be", "been", "being"}
    return Lexicon(
        frozenset(bases),
        frozenset(thirds),
        frozenset(pasts),
        frozenset(participles),
        frozenset(finite),
        lists,
        short,
        names,
        harm,
    )


# Verbs whose second irregular form is another past form, not the participle.
_TWO_PASTS = frozenset(
    ["be", "burn", "dream", "lean", "leap", "learn", "smell", "spell", "spill", "spoil", "fit", "light", "sneak"]
)


def _third(base: str) -> str:
    irregular = {"be": "is", "have": "has", "do": "does", "go": "goes"}
    if base in irregular:
        return irregular[base]
    if base.endswith("y") and base[-2] not in _VOWELS:
        return base[:-1] + "ies"
    return base + ("es" if base.endswith(("s", "x", "z", "ch", "sh")) else "s")


def _past(base: str) -> str:
    if base.endswith("e"):
        return base + "d"
    if base.endswith("y") and base[-2] not in _VOWELS:
        return base[:-1] + "ied"
    return _doubled(base) + "ed"


def _participle(base: str) -> str:
    if base.endswith("ie"):
        return base[:-2] + "ying"
    if base.endswith("e") and not base.endswith("ee") and base != "be":
        return base[:-1] + "ing"
    return _doubled(base) + "ing"


def _doubled(base: str) -> str:
    if base not in _NEVER_DOUBLED and _DOUBLING.search(base) and not base.endswith(("en", "er", "on", "or")):
        return base + base[-1]
    return base
