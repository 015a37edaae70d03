"""Whether a piece is a clause with a subject, lacks only its subject, or is a fragment that can stand by itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from empatheia.voices.reflection import patterns
from empatheia.voices.reflection.lexicon import lexicon
from empatheia.voices.reflection.pieces import Piece
from empatheia.voices.reflection.turning import lower_words, together
from empatheia.voices.reflection.verbs import OBJECT, after_adverbs, finite_place, verb_follows

Kind = Literal["clause", "fragment"]
Found = tuple[str, Kind]
"""A clause with its subject, and whether it is one."""

_LISTS = lexicon().lists
_FIRST_PERSON = frozenset(["i", "we", "i'm", "i've", "i'd", "i'll", "we're", "we've", "we'd", "we'll"])
_BASES = lexicon().bases - _LISTS["fragment_first"]


def with_subject(text: str, words: Sequence[str], piece: Piece) -> Found | None:
    """The clause with its subject, and whether it is a whole clause; None if it is neither that nor a fragment.

    Args:
        text: A clause, cleaned.
        words: Its words in small letters; at least two.
        piece: Where it comes from.
    """
    if words[0] in _FIRST_PERSON:
        return _of_speaker(text, words)
    if together(text) != text:
        return text, "clause"
    restored = _restored(text, words, piece)
    if restored:
        return restored
    if _begins_with_verb(words):
        return None
    if words[0] in _LISTS["relations"] and len(words) > 2 and words[1] in lexicon().finite:
        return f"my {text[0].lower()}{text[1:]}", "clause"
    if patterns.SUBORDINATE.match(text):
        return (text, "clause") if _main_clause_follows(text) else None
    if _leads_to_clause(text) or finite_place(words):
        return text, "clause"
    return (text, "fragment") if _is_fragment(text, words) else None


def _of_speaker(text: str, words: Sequence[str]) -> Found | None:
    """A clause that begins with "I", "we" or "I'm"."""
    if words[0] in ("i", "we"):
        whole = verb_follows(words) and not re.match(r"\w+\s*,", text)
    else:
        whole = len(words) > 2 or words[0] in ("i'm", "we're")
    return (text, "clause") if whole else None


def _begins_with_verb(words: Sequence[str]) -> bool:
    """Whether a verb stands where the subject belongs: "really hurt", "walked home"."""
    known, first = lexicon(), words[0]
    if first in _LISTS["adverbs"] and after_adverbs(words) in known.finite:
        return True
    is_verb = first in known.finite - {"might", "must", "will", "can"} or re.fullmatch(r"[a-z]{3,}[^e]ed", first)
    return bool(is_verb) and first not in _LISTS["relations"]


def _main_clause_follows(text: str) -> bool:
    """Of "When I was small, my mother sang": whether a clause with a subject stands behind the comma."""
    main = text.rpartition(",")[2].strip()
    words = lower_words(main)
    if len(words) < 2 or not re.match(patterns.SUBJECT + r"\b", main, re.IGNORECASE):
        return False
    return words[0] == "i" or bool(finite_place(words))


def _leads_to_clause(text: str) -> bool:
    """Whether a clause follows a time or a place: "last night my dog died"."""
    lead = patterns.LEADING.match(text)
    rest = lower_words(text[lead.end() :]) if lead else []
    if not rest:
        return False
    return verb_follows(rest) if rest[0] in _FIRST_PERSON else bool(finite_place(rest))


def _is_fragment(text: str, words: Sequence[str]) -> bool:
    """Whether a piece without a verb can stand by itself: "three weeks of rain"."""
    low = text.lower()
    first = words[0]
    if first in _LISTS["no_fragment_subject"] or first in _BASES:
        return False
    if low.startswith("in front of"):
        return True
    if _begins_no_fragment(words) or low.startswith(("no one", "not one")):
        return False
    if text.count(",") > 2 or re.search(r"\b(?:i|we|he|she|they)\b", low):
        return False
    if len(words) < 3 and any(word in _LISTS["feelings"] for word in words):
        return False
    return any(len(w) > 2 and w not in _LISTS["english"] and w not in _LISTS["adverbs"] for w in words)


def _begins_no_fragment(words: Sequence[str]) -> bool:
    """Whether the first word needs something before it: "with my mum", "only once", "2 days"."""
    first = words[0]
    if first in _LISTS["adverbs"] - {"not", "never"} or first in _LISTS["prepositions"]:
        return True
    return first in lexicon().finite or first in _LISTS["no_fragment_first"] or (first[0].isdigit() and len(words) < 3)


def _restored(text: str, words: Sequence[str], piece: Piece) -> Found | None:
    """Puts back a subject that was left out: "found my old lego" is "I found my old lego"."""
    place = _verb_behind_adverbs(words)
    verb, after = words[place], words[place + 1] if place + 1 < len(words) else ""
    subject = ""
    if verb in ("been", "gonna") and (place or piece.first):
        subject = "I've" if verb == "been" else "I'm"
    elif verb == "am" or (_lacks_subject(verb, after) and _is_of_speaker(text, verb, piece)):
        subject = "I"
    return (f"{subject} {_small(text)}", "clause") if subject else None


def _verb_behind_adverbs(words: Sequence[str]) -> int:
    """Index of the first word that is no adverb, or only one that belongs to what follows."""
    adverbs = _LISTS["adverbs"] - {"so", "too", "very", "both", "all"}
    return next((i for i, word in enumerate(words[:-1]) if word not in adverbs), len(words) - 1)


def _lacks_subject(verb: str, after: str) -> bool:
    """Whether a verb, and the word behind it, are as they stand after "I"."""
    takes_object = verb in _LISTS["with_object"] and (after in OBJECT or after[:1].isdigit())
    if verb not in _LISTS["dropped"] and not takes_object:
        return False
    if not after and verb in _LISTS["incomplete"]:
        return False
    if verb in ("had", "got"):
        return after not in ("her", "his", "their", "to", "been")
    if verb in _LISTS["states"]:
        return after not in ("is", "was", "of", "for", "at")
    if verb in _LISTS["negated"]:
        return after not in _LISTS["english"] - _LISTS["after_negated"]
    return True


def _is_of_speaker(text: str, verb: str, piece: Piece) -> bool:
    """Whether the subject left out can only be "I": where the conversation begins, or by the verb."""
    if verb == "forgot" or re.search(r"\b(?:me|us)\b", text.lower()):
        return False
    return piece.whole and (piece.first or verb in _LISTS["states"])


def _small(text: str) -> str:
    return text[0].lower() + text[1:] if not text[:2].isupper() else text
