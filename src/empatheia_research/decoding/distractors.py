"""Other texts in the place of the last speaker turn, from which a focused reply must tell the true one.

Four kinds (:data:`DISTRACTORS`): target words exchanged by words that an emotion estimator writes under unlikely
emotions (``gee``, Kim et al. 2021, the published way) or that a masked language model fills in (``masked``); other
turns of a fixed pool (``random``, the published baseline); or what the caller gives. A text's distractors depend on
the text, its targets and the seed alone: not on the batch, nor on how many are asked for.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, overload

import numpy as np

from empatheia.analysis.targets import Targets
from empatheia.errors import ConfigError, DecodingError
from empatheia.records.dialogue import Dialogue, Span, Turn
from empatheia.registry import Registry
from empatheia.voices.decoding import N_WORLDS
from empatheia_research.decoding.turn_pool import TurnPool, turn_pool, wording

DISTRACTORS = Registry(
    "distractors",
    {
        "gee": "empatheia_research.decoding.estimator_distractors:EstimatorDistractors",
        "random": "empatheia_research.decoding.distractors:RandomDistractors",
        "masked": "empatheia_research.decoding.masked_distractors:MaskedDistractors",
        "given": "empatheia_research.decoding.distractors:GivenDistractors",
    },
)
"""Name of a kind to its class."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """The last speaker turn and others to be told from it.

    Attributes:
        texts: One a world, the true one first, all different.
        targets: What the reply should be about.
        replaced: For each distractor the word at the place of each target, in the order of ``targets.spans``; empty
            where the whole text is another.
        kind: What made them.
    """

    texts: tuple[str, ...]
    targets: Targets
    replaced: tuple[tuple[str, ...], ...] = ()
    kind: str = ""

    def dialogues(self, dialogue: Dialogue) -> list[Dialogue]:
        """The conversation in every world, the true one first and as it is; only one turn differs.

        The others have no id, so that nothing filed under it (labels, vectors) is taken for theirs.

        Raises:
            DecodingError: It is not the conversation these were made for.
        """
        turn = self.targets.turn
        if turn >= len(dialogue.turns) or dialogue.turns[turn].text != self.texts[0]:
            raise DecodingError(f"conversation {dialogue.id!r} does not hold the turn these distractors were made for.")
        role = dialogue.turns[turn].role
        others = [
            replace(dialogue, id="", turns=(*dialogue.turns[:turn], Turn(role, text), *dialogue.turns[turn + 1 :]))
            for text in self.texts[1:]
        ]
        return [dialogue, *others]

    def at(self, turn: int) -> Contrast:
        """The same where the turn stands at another index."""
        if self.targets.turn == turn:
            return self
        spans = tuple(Span(turn, s.start, s.end, s.score) for s in self.targets.spans)
        return replace(self, targets=replace(self.targets, spans=spans, turn=turn))


@dataclass(frozen=True, slots=True)
class Made:
    """What a kind found for one text: other texts, fewer than asked if no more are possible, and then why.

    Attributes:
        texts: Distractors.
        replaced: As in :class:`Contrast`.
        reason: Why there are no more.
    """

    texts: tuple[str, ...]
    replaced: tuple[tuple[str, ...], ...] = ()
    reason: str = ""


class Distractors(ABC):
    """A kind of distractors.

    Attributes:
        name: For records; what else made them stands behind it.
    """

    name: str

    @abstractmethod
    def others(self, targets: Sequence[Targets], n: int, batch_size: int) -> list[Made]:
        """At most n other texts for each, different from it and from each other."""

    @overload
    def make(
        self, targets: Sequence[Targets], n_worlds: int = ..., *, strict: Literal[True] = ..., batch_size: int = ...
    ) -> list[Contrast]: ...

    @overload
    def make(
        self, targets: Sequence[Targets], n_worlds: int = ..., *, strict: bool, batch_size: int = ...
    ) -> list[Contrast | None]: ...

    def make(
        self, targets: Sequence[Targets], n_worlds: int = N_WORLDS, *, strict: bool = True, batch_size: int = 32
    ) -> list[Contrast] | list[Contrast | None]:
        """Distractors of many texts.

        Args:
            targets: The texts and their words.
            n_worlds: The true text and its distractors, at least 2.
            strict: Raise where a text has too few; otherwise its place holds None: it is answered without focus.
            batch_size: Most texts in one pass of a model.

        Raises:
            DecodingError: ``n_worlds`` is below 2; or, if ``strict``, a text has no or too few distractors (says how
                many are possible).
        """
        if n_worlds < 2:
            raise DecodingError(
                f"{n_worlds} world(s); accepted: 2 or more, the true text and at least one distractor to tell it from."
            )
        out: list[Contrast | None] = []
        for own, made in zip(targets, self.others(targets, n_worlds - 1, batch_size), strict=True):
            if len(made.texts) >= n_worlds - 1:
                out.append(Contrast((own.text, *made.texts), own, made.replaced, self.name))
                continue
            if strict:
                found = f"only {len(made.texts)} of {n_worlds - 1} distractors" if made.texts else "no distractor"
                remedy = f"ask for {len(made.texts) + 1} worlds, " if made.texts else ""
                raise DecodingError(
                    f"{found} possible for {_short(own.text)!r}: {made.reason}. To do: {remedy}name other words, take"
                    " another kind of distractors, or answer without focus."
                )
            out.append(None)
        return out


class RandomDistractors(Distractors):
    """Other speaker turns of a fixed pool, in the place of the whole turn: Kim et al.'s "plain S1".

    Args:
        pool: Turns to take; None = :func:`empatheia_research.decoding.turn_pool.turn_pool`.
        seed: Of the draws.
    """

    def __init__(self, pool: TurnPool | None = None, seed: int = 0) -> None:
        self.pool = pool or turn_pool()
        self.seed = seed
        self.name = f"random ({self.pool.name}, seed {seed})"

    def others(self, targets: Sequence[Targets], n: int, batch_size: int) -> list[Made]:
        """See :class:`Distractors`; a turn with the same words as the text is never taken."""
        return [self._drawn(own.text, n) for own in targets]

    def _drawn(self, text: str, n: int) -> Made:
        own = wording(text)
        draws = seeded(self.seed, "random", text)
        seen: set[int] = set()
        chosen: list[str] = []
        while len(chosen) < n and len(seen) < len(self.pool.texts):
            i = int(draws.integers(len(self.pool.texts)))
            if i not in seen and wording(self.pool.texts[i]) != own:
                chosen.append(self.pool.texts[i])
            seen.add(i)
        return Made(tuple(chosen), reason=f"the pool {self.pool.name!r} has {len(self.pool.texts)} different turns")


class GivenDistractors(Distractors):
    """Whole texts, or words for target words, that the caller gives; nothing is drawn.

    Args:
        texts: Other texts for the turn.
        words: For target words (any case) what may stand in their place, in order: the first in the first distractor.

    Raises:
        ConfigError: Not exactly one of the two.
    """

    name = "given"

    def __init__(self, texts: Sequence[str] = (), words: Mapping[str, Sequence[str]] | None = None) -> None:
        if bool(texts) == bool(words):
            raise ConfigError("given distractors: accepted: either `texts` or `words`, and at least one of it.")
        self.texts = (texts,) if isinstance(texts, str) else tuple(texts)
        self.words = {
            word.lower(): ((new,) if isinstance(new, str) else tuple(new)) for word, new in (words or {}).items()
        }

    def others(self, targets: Sequence[Targets], n: int, batch_size: int) -> list[Made]:
        """See :class:`Distractors`.

        Raises:
            DecodingError: ``words`` has a word that is no target of a text.
        """
        return [self._whole(own, n) if self.texts else self._exchanged(own, n) for own in targets]

    def _whole(self, own: Targets, n: int) -> Made:
        different = {wording(text): text for text in reversed(self.texts) if wording(text) != wording(own.text)}
        kept = [text for text in self.texts if text in different.values()]
        reason = f"{len(self.texts)} texts were given, {len(kept)} of them with other words"
        return Made(tuple(kept[:n]), reason=reason)

    def _exchanged(self, own: Targets, n: int) -> Made:
        known = [word.lower() for word in own.words]
        for word in self.words:
            if word not in known:
                raise DecodingError(
                    f"no target word {word!r} in {_short(own.text)!r}; its targets: {', '.join(own.words) or 'none'}."
                )
        most = min(len(new) for new in self.words.values())
        texts: list[str] = []
        replaced: list[tuple[str, ...]] = []
        for j in range(most):
            words = tuple(
                cased_like(self.words[word][j], written) if word in self.words else written
                for word, written in zip(known, own.words, strict=True)
            )
            text = exchanged(own, words)
            if wording(text) not in map(wording, (own.text, *texts)):
                texts.append(text)
                replaced.append(words)
        reason = f"the given words make {len(texts)} different texts"
        return Made(tuple(texts[:n]), tuple(replaced[:n]), reason)


def exchanged(targets: Targets, words: Sequence[str]) -> str:
    """The text with each target replaced; everything between stays as it is.

    Args:
        targets: Text and places.
        words: One a target, in the order of ``targets.spans``.
    """
    new = dict(zip(((span.start, span.end) for span in targets.spans), words, strict=True))
    parts, done = [], 0
    for span in targets.in_order:
        parts += [targets.text[done : span.start], new[span.start, span.end]]
        done = span.end
    return "".join([*parts, targets.text[done:]])


def cased_like(word: str, written: str) -> str:
    """A word in the case of another: capitals alone, a capital first, or as it is.

    >>> cased_like("cat", "Dog"), cased_like("cat", "DOG"), cased_like("Paris", "home")
    ('Cat', 'CAT', 'Paris')
    """
    if len(written) > 1 and written.isupper():
        return word.upper()
    return word[:1].upper() + word[1:] if written[:1].isupper() else word


def seeded(seed: int, *parts: object) -> np.random.Generator:
    """Draws that belong to a seed and some facts, and to nothing else."""
    digest = hashlib.sha256(repr((seed, *parts)).encode("utf-8", "surrogatepass")).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


def _short(text: str, most: int = 60) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."
