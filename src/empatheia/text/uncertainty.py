"""Why an answer about a text deserves little trust: emoji, control characters, another script or language.

The language guess needs no model: it weighs function words of nine languages against English ones. It is made to
leave short English alone ("ugh, traffic") rather than to catch every foreign word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from empatheia.settings import read_package_yaml

EMOJI = "emoji are not understood"
CONTROLS = "control characters were ignored"
SCRIPT = "mostly written in another script than Latin; only English is understood"
LANGUAGE = "probably another language than English"
FEW_KNOWN = "hardly any known word; perhaps another language than English"
NONE_KNOWN = "no known word"
MOST_NAMED = 3
"""Unknown words that are named."""

_EMOJI = re.compile(
    "[\U0001f000-\U0001faff\u2600-\u27bf\u231a\u231b\u23e9-\u23fa\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\u20e3\ufe0f]"
)
# joiners (200c, 200d) are part of emoji and of some scripts
_CONTROL = re.compile(
    "[\x00-\x08\x0b\x0e-\x1b\x7f-\x84\x86-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]"
)
_LETTER = re.compile(r"[^\W\d_]")
_LATIN = re.compile("[A-Za-zªºÀ-ÖØ-öø-ɏḀ-ỿ]")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_ENGLISH_ENDING = re.compile(r"(?:n't|'(?:s|m|re|ve|ll|d))$")
_ELISION = re.compile(r"(?i:l|j|qu|n|c|m|t|s|d|un|dell|nell|all|dall|sull|quest)'[^\WA-Z]")  # not D'Angelo
_ACCENTED = re.compile("[À-ÖØ-öø-ɏḀ-ỿ]")

_LISTS = read_package_yaml(__file__, "languages.yaml")
ENGLISH = frozenset(_LISTS["english"].split())
_ENGLISH_ELISIONS = frozenset(_LISTS["english_elisions"].split())
_ENGLISH_ACCENTED = frozenset(_LISTS["english_accented"].split())
_FOREIGN = tuple(
    (frozenset(words["sure"].split()), frozenset(words["weak"].split())) for words in _LISTS["foreign"].values()
)


class KnowsWords(Protocol):
    """What a tokeniser must be able to say (see ``DialogueTokenizer``)."""

    def known_word_share(self, text: str) -> float:
        """Share of a text's words a model can have met in training."""
        ...


def doubts(text: str, tokenizer: KnowsWords | None = None) -> tuple[str, ...]:
    """Reasons to distrust an answer about a text, each a few readable words.

    Args:
        text: One turn or several.
        tokenizer: Also judge whether its words are known.

    Returns:
        Reasons; empty when nothing is amiss.

    >>> doubts("I lost my job.")
    ()
    >>> doubts("Ich habe meine Arbeit verloren.")
    ('probably another language than English',)
    """
    reasons = []
    if _EMOJI.search(text):
        reasons.append(EMOJI)
    if _CONTROL.search(text):
        reasons.append(CONTROLS)
    words = [word.replace("’", "'") for word in _WORD.findall(text)]
    n_english = sum(word.lower() in ENGLISH or bool(_ENGLISH_ENDING.search(word)) for word in words)
    if len(_LETTER.findall(text)) > 2 * len(_LATIN.findall(text)):
        reasons.append(SCRIPT)
    elif is_foreign(words, n_english):
        reasons.append(LANGUAGE)
    if tokenizer is not None and (words or EMOJI in reasons):
        share = tokenizer.known_word_share(" ".join(words) or text)
        reasons += _of_unknown_words(words, share, n_english, tokenizer, {LANGUAGE, SCRIPT} & set(reasons))
    return tuple(reasons)


def _of_unknown_words(
    words: Sequence[str], share: float, n_english: int, tokenizer: KnowsWords, language: set[str]
) -> list[str]:
    """What is told of words that are not known; less where the ``language`` is told to be another already."""
    if share == 0.0:
        return [NONE_KNOWN]
    if share < 0.5 and len(words) >= 3 and not n_english and LANGUAGE not in language:
        return [FEW_KNOWN]
    return _unknown(words, tokenizer) if share < 1.0 and not language else []


def _unknown(words: Sequence[str], tokenizer: KnowsWords) -> list[str]:
    """How many words are not known and which, if they are several or much of the text: perhaps they are misspelt."""
    unknown = [word for word in words if tokenizer.known_word_share(word) < 1.0]
    if not unknown or (len(unknown) < 2 and 5 * len(unknown) < len(words)):
        return []
    named = ", ".join(list(dict.fromkeys(unknown))[:MOST_NAMED]) + (" ..." if len(set(unknown)) > MOST_NAMED else "")
    number = f"{len(unknown)} of {len(words)} words {'is' if len(unknown) == 1 else 'are'} not known"
    return [f"{number} ({named}); perhaps misspelt"]


def is_foreign(words: Sequence[str], n_english: int) -> bool:
    """Whether function words of one other language outweigh the English ones.

    Args:
        words: As written; a capital may mark a name.
        n_english: How many of them are English.
    """
    lowered = [word.lower() for word in words]
    n_elided = sum(bool(_ELISION.match(w)) and w.lower() not in _ENGLISH_ELISIONS for w in words)
    n_accented = sum(bool(_ACCENTED.search(word)) and word not in _ENGLISH_ACCENTED for word in lowered)
    others = [word for word in lowered if word not in ENGLISH]
    uncapitalised = {word for word in words if word.islower()} - ENGLISH
    marked = n_elided + n_accented > 0
    best = max(_weight(others, uncapitalised, marked, sure, weak) for sure, weak in _FOREIGN)
    return best + n_elided > 0 and max(2, n_english + 1) <= best + 2 * n_elided + n_accented


def _weight(
    others: Sequence[str], uncapitalised: set[str], marked: bool, sure: frozenset[str], weak: frozenset[str]
) -> int:
    """How much the words that are not English speak for one language, by its sure and its weak function words.

    Args:
        others: In small letters.
        uncapitalised: Those that were written small.
        marked: Whether another word has an accent or an elision that English has not.
        sure: Words of this language alone.
        weak: Words that may be names or English; two of them count: "Los Angeles, Las Vegas" does not.
    """
    n_sure = sum(word in sure for word in others)
    if not (n_sure or marked or len(uncapitalised & weak) >= 2):
        return 0
    return 2 * n_sure + sum(word in weak for word in others)
