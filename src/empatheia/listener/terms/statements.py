"""The term of statements that contradict what the speaker said."""

from __future__ import annotations

import re
from collections.abc import Sequence

from empatheia.analysis.questions import is_candidate
from empatheia.giving_way import give_way
from empatheia.listener.terms.term import RankingTerm, Row, Tools
from empatheia.listener.terms.wording import words_of
from empatheia.metrics.word_forms import base_form
from empatheia.records.dialogue import Turn

_STATEMENT = re.compile(
    r"[.!;:,\n\u2014]+|\b(?:and|but|because|so|when|while|if|after|before|until|although|though|which|who)\b",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"[^.!?\n]*\?")
_NEGATION = re.compile(
    r"\b(?:not|never|no|nobody|nothing|none|nor|neither|without|cannot)\b|n['\u2019\u02bc]t\b", re.IGNORECASE
)
_SHARED, _SHARE = 2, 0.6  # content words two statements have in common, at least so many and that share of the reply's


class Contradiction(RankingTerm):
    """Minus the share of the reply's statements that say the opposite of what the speaker said."""

    name, unit, default = "contradiction", "share, -1 to 0", 1.0
    example = ("So your dog ran away in the park.", "Your dog did not run away in the park.")

    def values(self, rows: Sequence[Row], tools: Tools) -> list[float | None]:
        """See :class:`RankingTerm`."""
        out: list[float | None] = []
        for row in rows:
            give_way()
            out.append(contradiction(row.text, row.case.analysis.dialogue.turns))
        return out


def contradiction(reply: str, turns: Sequence[Turn]) -> float:
    """Minus the share of a reply's statements that say of the same thing the opposite of what the speaker said.

    Two statements are of the same thing if they have two content words, and most of the reply's, in common, in any
    form; they are opposite if one alone is negated. Questions contradict nothing.

    Args:
        reply: Of the listener.
        turns: The conversation; the speaker's are read.

    >>> contradiction("I am glad you passed your test!", [Turn("speaker", "I have not passed my test.")])
    -1.0
    >>> contradiction("So you did not pass the test.", [Turn("speaker", "I have not passed my test.")])
    0.0
    """
    said = [found for turn in turns if turn.role == "speaker" for found in _statements(turn.text)]
    own = _statements(_QUESTION.sub(" ", reply))
    wrong = 0
    for words, is_negated in own:
        alike = {denied for others, denied in said if _of_the_same(words, others)}
        wrong += bool(alike) and is_negated not in alike
    return -wrong / len(own) if wrong else 0.0


def _statements(text: str) -> list[tuple[set[str], bool]]:
    """Base forms of the content words of each statement that has one, and whether it is negated."""
    out = []
    for part in _STATEMENT.split(text):
        words = {base_form(word) for word in words_of(part) if is_candidate(word) and not _NEGATION.search(word)}
        if words:
            out.append((words, _NEGATION.search(part) is not None))
    return out


def _of_the_same(words: set[str], others: set[str]) -> bool:
    shared = len(words & others)
    return shared >= _SHARED and shared >= _SHARE * len(words)
