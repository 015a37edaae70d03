"""Target words exchanged by other whole words, one after the other, by any model that scores words in a gap.

A clean form of Kim et al.'s distractors. Theirs exchange piece by piece, which makes non-words, and every piece is
drawn with the original words before it still there. Here a gap is filled by a word of a list; what is behind a gap in
the same text sees the words that were filled in, not the original ones. No form of any target word may come back, and
at one place no word (in any form) serves two distractors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from empatheia.analysis.targets import Targets
from empatheia.metrics.word_forms import base_form
from empatheia_research.decoding.distractors import Made, cased_like, exchanged, seeded
from empatheia_research.decoding.turn_pool import WordList


@dataclass(frozen=True, slots=True)
class Gap:
    """A place in a text where a word is missing.

    Attributes:
        item: Which text.
        world: Which distractor of it, from 1.
        before: What stands before the gap, words filled in before included.
        after: What stands behind it, cut at each target that is still to be exchanged (its word is left out).
    """

    item: int
    world: int
    before: str
    after: tuple[str, ...]


Scores = Callable[[Sequence[Gap]], np.ndarray]
"""Gaps to scores of the list's words (nats, up to a constant; -inf cannot stand there). Shape: (gaps, words)."""


def exchange(
    targets: Sequence[Targets], n: int, words: WordList, scores: Scores, *, seed: int, temperature: float
) -> list[Made]:
    """Other texts, n for each, in which every target word is another.

    Words are drawn from ``softmax(scores / temperature)`` without replacement over the distractors (Gumbel noise;
    Kool et al. 2019). The noise of a place depends on the seed, the text, the place and the distractor alone.

    Args:
        targets: Texts and their words.
        n: Distractors of each.
        words: What may be filled in.
        scores: Called once a round with the gaps of all texts.
        seed: Of the draws.
        temperature: Above 0; larger = closer to even.
    """
    bases = np.array(words.bases)
    drafts = [_Draft(own, n, np.isin(bases, [base_form(word) for word in own.words])) for own in targets]
    for round_ in range(max((len(own.spans) for own in targets), default=0)):
        active = [i for i, own in enumerate(targets) if len(own.spans) > round_ and drafts[i].possible]
        gaps = [_gap(i, j, targets[i], round_, drafts[i].written[j]) for i in active for j in range(n)]
        found = scores(gaps) if gaps else np.zeros((0, len(bases)))
        for place, i in enumerate(active):
            drafts[i].fill(round_, found[place * n : (place + 1) * n] / temperature, words, bases, seed)
    return [draft.made() for draft in drafts]


class _Draft:
    """The distractors of one text while they are written.

    Args:
        own: The text and its words.
        n: Distractors wanted.
        forbidden: Which words of the list are forms of its own. Shape: ``(words,)``.
    """

    def __init__(self, own: Targets, n: int, forbidden: np.ndarray) -> None:
        self.own, self.forbidden = own, forbidden
        self.written: list[dict[tuple[int, int], str]] = [{} for _ in range(n)]
        self.possible = n if own.spans else 0
        self.reason = "" if own.spans else "it has no target word"

    def fill(self, round_: int, scores: np.ndarray, words: WordList, bases: np.ndarray, seed: int) -> None:
        """Fills the gap of one target word in every distractor; fewer are possible where the words run out.

        Args:
            round_: Which target word, in reading order.
            scores: Of the list's words, over the temperature. Shape: ``(n, words)``.
            words: The list.
            bases: Base forms of the list. Shape: ``(words,)``.
            seed: Of the draws.
        """
        span = self.own.in_order[round_]
        original = self.own.text[span.start : span.end]
        taken = self.forbidden.copy()
        for j, written in enumerate(self.written):
            draws = seeded(seed, "exchange", self.own.text, span.start, j).gumbel(size=len(bases))
            noisy = np.where(taken, -np.inf, scores[j] + draws)
            best = int(noisy.argmax())
            if noisy[best] == -np.inf:
                self.possible = min(self.possible, j)
                self.reason = f"of {len(bases)} known words {j} can stand for {original!r}"
                break
            written[span.start, span.end] = cased_like(words.words[best], original)
            taken |= bases == bases[best]

    def made(self) -> Made:
        """The distractors that are whole."""
        replaced = tuple(
            tuple(world[span.start, span.end] for span in self.own.spans) for world in self.written[: self.possible]
        )
        return Made(tuple(exchanged(self.own, row) for row in replaced), replaced, self.reason)


def _gap(item: int, world: int, own: Targets, round_: int, written: dict[tuple[int, int], str]) -> Gap:
    places = [(span.start, span.end) for span in own.in_order]
    parts, done = [], 0
    for start, end in places[:round_]:
        parts += [own.text[done:start], written.get((start, end), own.text[start:end])]
        done = end
    before = "".join([*parts, own.text[done : places[round_][0]]])
    starts = [*(start for start, _ in places[round_ + 1 :]), len(own.text)]
    after = tuple(own.text[end:start] for (_, end), start in zip(places[round_:], starts, strict=True))
    return Gap(item, world + 1, before, after)
