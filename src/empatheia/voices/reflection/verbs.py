"""Finds the verb of a clause by the words alone; everything here takes them in small letters."""

from __future__ import annotations

from collections.abc import Sequence

from empatheia.voices.reflection.lexicon import lexicon

_LISTS = lexicon().lists
ARTICLES = _LISTS["articles"]
OBJECT = _LISTS["object"]
"""Words with which an object begins."""
_PERSONS = _LISTS["relations"] | _LISTS["kin_names"] | _LISTS["people"]
_DIRECTION = OBJECT | _LISTS["after_past"]
_AFTER_VERB = OBJECT | _LISTS["after_verb"]
_HELPING = _LISTS["auxiliaries"] - {"be", "been", "being"}
_FURTHEST = 9


def verb_follows(words: Sequence[str]) -> bool:
    """Whether "I" is followed by a verb: a known one, or at least nothing that cannot be one."""
    rest = after_adverbs(words[1:])
    return bool(rest) and rest not in _LISTS["no_verb"]


def after_adverbs(words: Sequence[str]) -> str:
    """The first word that is no adverb; "" if there is none."""
    return next((word for word in words if word not in _LISTS["adverbs"]), "")


def finite_place(words: Sequence[str]) -> int:
    """Index of the first word that is the verb of the clause; 0 if there is none."""
    first = words[0]
    if first in lexicon().participles:
        return 0
    start = 2 if first in ARTICLES or first.endswith("'s") else 1
    for i in range(start, min(len(words), _FURTHEST)):
        word = words[i]
        if word in _LISTS["side_clause"]:
            return 0  # what follows belongs to a side clause, or no verb is left to find
        if word in _HELPING:
            return i if i + 1 < len(words) or word in ("did", "does", "do") else 0
        if _is_known_verb(words, i) or _is_past_by_ending(words, i) or _is_verbal_s(words, i):
            return i
    return 1 if _is_verbal_s(words, 0) else 0


def _is_known_verb(words: Sequence[str], i: int) -> bool:
    """Whether a form of the lists stands here as a verb, not as a noun."""
    known, word = lexicon(), words[i]
    if word not in known.finite:
        return False
    doubtful = word in _LISTS["noun_like"] or (word in known.thirds and not _is_subject(words[:i]))
    return not doubtful or _looks_like_verb(words, i)


def _looks_like_verb(words: Sequence[str], i: int) -> bool:
    """A form that may be a noun: a verb if an object or a particle follows."""
    return i + 1 < len(words) and (words[i + 1] in lexicon().participles or words[i + 1] in _AFTER_VERB)


def _is_past_by_ending(words: Sequence[str], i: int) -> bool:
    """Whether an unknown word in -ed is a verb: an object or a direction follows."""
    word = words[i]
    if i < 2 or not word.endswith("ed") or len(word) <= 5:
        return False
    return words[i - 1] not in ARTICLES and i + 1 < len(words) and words[i + 1] in _DIRECTION


def _is_verbal_s(words: Sequence[str], i: int) -> bool:
    """Whether 's is "is" or "has" and no owner: "the biopsy's on Thursday", "dad's been ill"."""
    if not words[i].endswith("'s") or i + 1 >= len(words):
        return False
    after, known = words[i + 1], lexicon()
    follows = after in known.participles or after in known.names or after in _LISTS["after_verbal_s"]
    return follows or (after in _LISTS["feelings"] and i + 2 == len(words))


def _is_subject(words: Sequence[str]) -> bool:
    """Whether these words surely are a whole subject, so that a verb must follow: "she", "mum", "my dog"."""
    if len(words) == 1:
        return words[0] in _PERSONS or words[0] in _LISTS["subject_pronouns"]
    return len(words) == 2 and words[0] in ARTICLES and (words[1] in _PERSONS or words[1] in _LISTS["things"])
