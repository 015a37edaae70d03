"""Which words of a text carry its emotion: the question every word scorer answers, and how answers become rankings.

The protocol of Kim, Kim and Kim (2021) for methods without word labels: every word gets a score, stop words and
punctuation are left out of the ranking (if nothing else is there, the best word stays), the best k are the answer. Here
whole words are filtered; the released code filters pieces, so that "re" or "ma" inside a word vanishes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from empatheia.errors import DataError
from empatheia.records.analysis import WordScores
from empatheia.records.dialogue import Span
from empatheia.registry import nearest
from empatheia.taxonomy import EMOTION_TO_RECCON, RECCON_EMOTIONS
from empatheia.text.stop_words import STOP_WORDS
from empatheia.text.words import tokenize_words

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class WordQuestion:
    """A text, the emotion to explain, and its words.

    Attributes:
        text: What was said.
        emotion: One of the 32, one of RECCON's six, or None: the one the scorer recognises itself.
        words: Characters ``[start, end)`` of each word, in reading order; see :meth:`of`.
    """

    text: str
    emotion: str | None
    words: tuple[Place, ...]

    @staticmethod
    def of(text: str, emotion: str | None = None) -> WordQuestion:
        """A question about all words of a text (:func:`words_of`)."""
        return WordQuestion(text, emotion, words_of(text))

    def surface(self) -> list[str]:
        """Each word as written."""
        return [self.text[start:end] for start, end in self.words]


@dataclass(frozen=True, slots=True)
class WordAnswer:
    """Scores of the words of one question.

    Attributes:
        emotion: What was explained; None where the scorer knows no emotions and none was given.
        scores: One finite number a word, higher = more causal; compare within this answer only.
    """

    emotion: str | None
    scores: tuple[float, ...]


class WordScorer(Protocol):
    """Any method that scores words without having seen word labels.

    Attributes:
        name: For tables and records.
    """

    name: str

    def score(self, questions: Sequence[WordQuestion], *, batch_size: int = 32) -> list[WordAnswer]:
        """Answers in order; the same alone or among others.

        Args:
            questions: What is asked.
            batch_size: Most texts in one pass.

        Raises:
            DataError: An emotion is neither one of the scorer's labels nor one of RECCON's six.
        """
        ...


def words_of(text: str) -> tuple[Place, ...]:
    """Words of a text as characters ``[start, end)``; punctuation and clitics are words of their own.

    >>> [("I don't know!"[a:b]) for a, b in words_of("I don't know!")]
    ['I', 'do', "n't", 'know', '!']
    """
    return tuple((word.start, word.end) for word in tokenize_words(text, "recec") if word.start < word.end)


def is_candidate(word: str) -> bool:
    """Whether a word may be named as a cause: no stop word, and with a letter or a digit.

    >>> [is_candidate(word) for word in ("Bear", "The", "n't", "...")]
    [True, False, False, False]
    """
    folded = word.lower().replace("’", "'")
    return folded not in STOP_WORDS and any(letter.isalnum() for letter in folded)


def rank(question: WordQuestion, scores: Sequence[float]) -> list[int]:
    """Indices of the candidate words, best first; ties go to the earlier word.

    Without a candidate the single best word remains; without words nothing does.
    """
    candidates = [i for i, word in enumerate(question.surface()) if is_candidate(word)]
    everything = candidates or range(len(scores))
    ordered = sorted(everything, key=lambda i: (-scores[i], i))
    return ordered if candidates else ordered[:1]


def labels_meant(emotion: str, labels: Sequence[str]) -> list[int]:
    """Indices of the labels an emotion stands for: itself, or all that RECCON's word covers.

    Args:
        emotion: A label, or one of RECCON's six.
        labels: The scorer's labels, some of the 32 or RECCON's own.

    Raises:
        DataError: It stands for none of them.
    """
    if emotion in labels:
        return [list(labels).index(emotion)]
    meant = [i for i, label in enumerate(labels) if EMOTION_TO_RECCON.get(label) == emotion]
    if not meant:
        known = [*labels, *RECCON_EMOTIONS]
        raise DataError(f"unknown emotion {emotion!r}.{nearest(emotion, known)} Known: {', '.join(known)}.")
    return meant


def spread_to_words(
    question: WordQuestion,
    pieces: Sequence[tuple[int, int, float]],
    pool: Callable[[list[float]], float] = max,
) -> list[float | None]:
    """Scores of pieces brought to the words they overlap.

    Args:
        question: Names the words.
        pieces: (start, end, score) of each piece, in reading order.
        pool: What makes one score of several.

    Returns:
        One score a word; None for a word without a piece (cut off, or blanks to the tokenizer).
    """
    found: list[list[float]] = [[] for _ in question.words]
    first = 0
    for start, end, score in pieces:
        while first < len(question.words) and question.words[first][1] <= start:
            first += 1
        for i in range(first, len(question.words)):
            if question.words[i][0] >= end:
                break
            found[i].append(score)
    return [pool(own) if own else None for own in found]


def filled(scores: Sequence[float | None]) -> tuple[float, ...]:
    """Scores in which a word without one gets less than any other word."""
    lowest = min((score for score in scores if score is not None), default=0.0)
    return tuple(lowest - 1.0 if score is None else float(score) for score in scores)


def record(turn: int, question: WordQuestion, answer: WordAnswer) -> WordScores:
    """The analysis record of one turn: candidates share a total of 1, other words get 0.

    Scores that are not probabilities are moved and scaled, so only their order and spacing survive. Without a candidate
    the best word alone gets 1.
    """
    chosen = rank(question, answer.scores)
    values = [answer.scores[i] for i in chosen]
    low = min(values, default=0.0)
    if low <= 0:  # keep the last word of the ranking above the words that are left out
        step = (max(values, default=0.0) - low) / len(values) if len(values) > 1 else 0.0
        values = [value - low + (step or 1.0) for value in values]
    total = math.fsum(values)
    shares = {i: value / total for i, value in zip(chosen, values, strict=True)}
    spans = tuple(Span(turn, start, end, shares.get(i, 0.0)) for i, (start, end) in enumerate(question.words))
    return WordScores(turn, answer.emotion or "", spans)
