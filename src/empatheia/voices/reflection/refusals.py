"""What is not said back: rules that refuse a clause, still in the speaker's words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from empatheia.text.noise import straight
from empatheia.voices.reflection import patterns
from empatheia.voices.reflection.legible import is_foreign, is_garbled
from empatheia.voices.reflection.lexicon import lexicon
from empatheia.voices.reflection.pieces import Piece
from empatheia.voices.reflection.turning import LONGEST_CLAUSE, clean, lower_words

_STRANGE = re.compile(r"[{}<>\[\]\\|=_^]|\.\.|https?|www\.|[\"@#]")
_AT_A_LOSS = re.compile(
    r"i (?:really |still |honestly |just )*(?:don't|do not) know (?:what|how|where|who) to .*", re.IGNORECASE
)
_OF_SPEAKER = re.compile(r"\b(?:i|me|my|mine|us|our)\b", re.IGNORECASE)
_SIDE_CLAUSE = re.compile(r".*\b(?:that|who|which|when|where|because|while|as|than|how|what)\b(.*)", re.IGNORECASE)
_REFUSED = (
    patterns.ADDRESSED.search,
    patterns.NOT_ASSERTED.match,
    patterns.THIN.fullmatch,
    patterns.VERDICT.search,
    patterns.DIALECT.search,
    patterns.ASKS.search,
    patterns.ELLIPTIC.search,
    patterns.GENERIC.match,
    patterns.ENDS_OPEN.search,
    _STRANGE.search,
)
"""Where one of these finds something, the clause is refused."""


def is_refused(text: str, piece: Piece, before: str) -> bool:
    """Whether a clause may not be said back.

    Args:
        text: The clause, cleaned, without words that only lead in.
        piece: Where it comes from.
        before: What was said before it; tells whom "she" stands for.
    """
    if len(text) > LONGEST_CLAUSE:
        return True
    words = re.findall(r"[a-z']+", text.lower())
    return (
        any(finds(text) for finds in _REFUSED)
        or is_foreign(text)
        or is_garbled(words)
        or _is_coarse(words)
        or _tells_nothing(text, words)
        or (not piece.whole and _is_half(piece, text, words))
        or _points_elsewhere(text, before)
    )


def is_spoken_to_listener(text: str) -> bool:
    """Whether a sentence addresses the listener, judges somebody or asks, so that not even an echo of it is fitting."""
    if len(text) > LONGEST_CLAUSE:
        return True
    words = re.findall(r"[a-z']+", text.lower())
    never = (patterns.ADDRESSED, patterns.NOT_ASSERTED, patterns.VERDICT, patterns.DIALECT, patterns.ASKS, _STRANGE)
    return any(pattern.search(text) for pattern in never) or is_garbled(words) or _is_coarse(words)


def _is_coarse(words: Sequence[str]) -> bool:
    lists = lexicon().lists
    return any(word in lists["swearing"] or word in lists["sexual"] for word in words)


def _tells_nothing(text: str, words: Sequence[str]) -> bool:
    """Whether all words are empty, or only a side clause is there; "I don't know what to do" tells enough."""
    if patterns.SUBORDINATE.match(text) and "," not in text:
        return True
    return not _AT_A_LOSS.fullmatch(text) and all(word in _empty() for word in words)


def tells_something(text: str) -> bool:
    """Whether a word of a text is not an empty one, as all of "yeah, not really" are."""
    return any(word not in _empty() for word in re.findall(r"[a-z']+", straight(text).lower()))


@lru_cache(maxsize=1)
def _empty() -> frozenset[str]:
    """Words that alone tell nothing."""
    lists = lexicon().lists
    return lists["contentless"] | lists["english"] | lists["adverbs"] | lists["auxiliaries"] | lists["contracted"]


def _is_half(piece: Piece, text: str, words: Sequence[str]) -> bool:
    """Whether a part of a sentence tells no fact by itself."""
    return (
        len(words) < 3
        or piece.next.startswith(":")
        or bool(patterns.HALF_TOLD.search(text))
        or _hangs(piece.lead, text)
        or not _leads(piece.lead)
        or _is_cut_short(text)
    )


def _hangs(lead: str, text: str) -> bool:
    """Whether what stands before a part of a sentence makes it less than a fact: "I thought that ...", "if ..."."""
    if re.search(r"\bso\s+\Z", lead, re.IGNORECASE) and re.search(r"\b(?:wouldn't|couldn't|can|won't|don't)\b", text):
        return True  # "so my boss wouldn't see me": what was wanted, not what happened
    if re.search(r"\bbut\s+\Z", lead, re.IGNORECASE):
        return bool(re.search(r"\b(?:if|unless|not\s+only)\b", lead, re.IGNORECASE))
    return bool(patterns.HINGES.search(lead)) and not patterns.FELT_WHEN.match(lead)


def _leads(lead: str) -> bool:
    """Whether what stands before a part is a clause of its own: not "me" before "and my girlfriend broke up"."""
    words = lower_words(clean(lead))
    return not words or any(_is_verb(word) or re.search(r"'(?:m|re|ve|ll|d|s)\Z", word) for word in words)


def _is_cut_short(text: str) -> bool:
    """Whether a side clause at the end lacks its verb: "the day that my boyfriend"."""
    match = _SIDE_CLAUSE.match(text)
    if not match:
        return False
    helping = lexicon().lists["auxiliaries"]
    return not any(_is_verb(word) or word in helping or "'" in word for word in lower_words(match[1]))


def _is_verb(word: str) -> bool:
    return word in lexicon().finite or word in lexicon().bases


def _points_elsewhere(text: str, before: str) -> bool:
    """Whether a clause begins with "that" or "she" and nothing tells what or who is meant."""
    if patterns.THING.match(text) and not patterns.THING_ALLOWED.match(text):
        return True
    pronoun = patterns.PRONOUN.match(text)
    return pronoun is not None and not _OF_SPEAKER.search(text) and not _has_person(before, pronoun[1].lower())


def _has_person(before: str, pronoun: str) -> bool:
    """Whether somebody was spoken of whom "she" may stand for."""
    if pronoun.startswith("they") or pronoun in ("their", "theirs"):
        return True
    lists = lexicon().lists
    words = {word.removesuffix("'s") for word in re.findall(r"[a-z']+", before.lower().replace("’", "'"))}
    persons = lists["people"] | lists["relations"] | lists["kin_names"]
    return bool(words & persons) or bool(re.search(r"[a-z,] [A-Z][a-z]{2,}", before))
