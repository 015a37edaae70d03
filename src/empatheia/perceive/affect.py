"""What is perceived at the newest turn of a conversation."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from empatheia.records.dialogue import Span, Turn
from empatheia.taxonomy import EMOTIONS, SIDE_OF, SIDES

_WORD = re.compile(r"[^\W_]+(?:['\u2019\u02bc-][^\W_]+)*")


@dataclass(frozen=True, slots=True)
class Affect:
    """What is perceived at the newest turn of a conversation.

    Attributes:
        emotions: Probability of each of the 32, calibrated. Shape: (32,).
        sides: Probability of pleasant, unpleasant, mixed, calibrated. Shape: (3,).
        words: Every word of the speaker's turns that were read, with its cause probability, in reading order.
        causes: The few words that matter: phrases of at most five words in speaker turns, best first.
        threshold: From which probability on a word counts as a cause.
        first_turn: Index of the first turn that was read; the ones before did not fit.
        is_cut: The newest turn alone did not fit: its beginning and its end were read.
    """

    emotions: np.ndarray
    sides: np.ndarray
    words: tuple[Span, ...]
    causes: tuple[Span, ...]
    threshold: float
    first_turn: int = 0
    is_cut: bool = False

    @property
    def emotion(self) -> str:
        """The likeliest of the 32."""
        return EMOTIONS[int(self.emotions.argmax())]

    @property
    def confidence(self) -> float:
        """Probability of the likeliest emotion, in [0, 1]."""
        return float(self.emotions.max())

    @property
    def side(self) -> str:
        """The likeliest of pleasant, unpleasant, mixed."""
        return SIDES[int(self.sides.argmax())]

    @property
    def pole(self) -> str:
        """The likelier of pleasant and unpleasant."""
        return SIDES[int(self.sides[:2].argmax())]


class Perceiving(Protocol):
    """Whoever says what is felt at the newest turn of conversations, its side, and the cause words."""

    @property
    def name(self) -> str:
        """For records."""
        ...

    def read(
        self,
        conversations: Sequence[Sequence[Turn]],
        progress: Callable[[int], None] | None = None,
        *,
        spans: bool = False,
    ) -> list[Affect]:
        """What is felt at the last turn of each conversation, which is the speaker's.

        Args:
            conversations: Turns, the newest last.
            progress: Called with the number of conversations just finished.
            spans: Words are scored as parts of whole cause spans, as RECCON has them, and not as the few that matter;
                a model whose word head does not tell the two apart scores them the same.
        """
        ...


def named(emotions: np.ndarray) -> dict[str, float]:
    """Emotion to probability, in taxonomy order."""
    return dict(zip(EMOTIONS, map(float, emotions), strict=True))


def mass_of_sides(emotions: np.ndarray) -> np.ndarray:
    """How much of the emotions is plainly pleasant, and how much plainly unpleasant.

    Args:
        emotions: Probabilities. Shape: (items, 32).

    Returns:
        Shape: (items, 2).
    """
    return emotions @ np.array([[SIDE_OF.get(name) == side for side in SIDES[:2]] for name in EMOTIONS], dtype=float)


def scored_words(turns: Sequence[Turn], places: Sequence[tuple[int, int, int]], scores: np.ndarray) -> tuple[Span, ...]:
    """Every word of the speaker's turns that was read, with the best score of its pieces.

    Args:
        turns: Of the conversation.
        places: Turn, start and end of each piece; turn -1 for special ones.
        scores: Of the pieces; may be longer (padding).
    """
    pieces: dict[int, list[tuple[int, int, float]]] = {}
    for (turn, start, end), score in zip(places, scores, strict=False):
        if turn >= 0 and turns[turn].role == "speaker":
            pieces.setdefault(turn, []).append((start, end, float(score)))
    out = []
    for turn in sorted(pieces):
        own, at = pieces[turn], 0
        for word in _WORD.finditer(turns[turn].text):
            while at < len(own) and own[at][1] <= word.start():
                at += 1
            touching = []
            k = at
            while k < len(own) and own[k][0] < word.end():
                touching.append(own[k][2])
                k += 1
            if touching:
                out.append(Span(turn, word.start(), word.end(), max(touching)))
    return tuple(out)
