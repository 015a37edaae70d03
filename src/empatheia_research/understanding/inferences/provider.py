"""What a provider of commonsense inferences is, how its texts are cleaned, and how providers combine.

Relations and their groups are those of IMAGINE (Chen et al. 2022, section 3.3): 11 of ATOMIC-2020's. What a provider
cannot give is an empty answer that says why; nothing is made up in its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from empatheia.errors import ConfigError
from empatheia.reading import Json
from empatheia.taxonomy import BLOCKED, EMPTY, NO_HEAD, NOT_CACHED, NOT_COVERED, ONLY_NONE, RELATION_GROUPS, RELATIONS
from empatheia_research.corpora.atomic import canonical_relation
from empatheia_research.understanding.fingerprints import fingerprint_of

REASONS: tuple[str, ...] = (NOT_COVERED, NO_HEAD, ONLY_NONE, NOT_CACHED, BLOCKED, EMPTY)
"""Why an answer is empty."""

_EDGES = " \t\r\n.,;!"
Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Tails:
    """A provider's answer to one text and one relation.

    Attributes:
        relation: Asked for.
        texts: Best first, clean (see :func:`clean_tails`); empty if there is no answer.
        scores: One a text, in the provider's own unit, higher = better; empty if it gives none.
        head: The knowledge-base head of the first text (look-up), else None.
        absent: One of :data:`REASONS` if there is no answer, else empty.
    """

    relation: str
    texts: tuple[str, ...] = ()
    scores: tuple[float, ...] = ()
    head: str | None = None
    absent: str = ""

    def to_dict(self) -> dict[str, Json]:
        """JSON-ready, without the relation and without what is empty."""
        if not self.texts:
            return {"absent": self.absent}
        values = {"tails": list(self.texts), "scores": list(self.scores), "head": self.head}
        return {name: value for name, value in values.items() if value}

    @staticmethod
    def from_dict(relation: str, values: Mapping[str, Any]) -> Tails:
        """The reverse of :meth:`to_dict`.

        Raises:
            KeyError: Neither ``tails`` nor ``absent`` is there.
        """
        if "absent" in values:
            return Tails(relation, absent=values["absent"])
        return Tails(relation, tuple(values["tails"]), tuple(values.get("scores", ())), values.get("head"))


Answer = dict[str, Tails]
"""Relation to tails, for one text, in the order the relations were asked for."""


class Inferences(Protocol):
    """Texts in, what is plausibly true besides out.

    Attributes:
        name: For records.
        source: Whose knowledge it is, with its licence; empty if unknown.
        stride: How many texts are worth asking at once: what a stopped run may lose.
    """

    name: str
    source: str
    stride: int

    def relations(self) -> tuple[str, ...]:
        """What it can answer at all."""
        ...

    def fingerprint(self) -> str:
        """A hash of the model or table and of every setting but ``n``; part of every cache key."""
        ...

    def infer(
        self,
        heads: Sequence[str],
        relations: Sequence[str] = RELATIONS,
        n: int = 5,
        *,
        batch_size: int = 32,
        progress: Progress | None = None,
    ) -> list[Answer]:
        """Answers in the order of ``heads``; deterministic, and the same for a text alone or among others.

        Args:
            heads: Events in words, e.g. ``i lost my job``.
            relations: Any of the 11.
            n: Most tails a relation.
            batch_size: Most rows in one forward pass.
            progress: Called with the number of heads just finished.

        Raises:
            ConfigError: A relation is unknown, or ``n`` is below 1.
        """
        ...


def asked_relations(names: Sequence[str] | str, n: int = 1) -> tuple[str, ...]:
    """Relations in their own spelling, repeats left out; a group of :data:`RELATION_GROUPS` stands for its members.

    Raises:
        ConfigError: One is unknown, or ``n`` is below 1.

    >>> asked_relations("xreact, events")
    ('xReact', 'Causes', 'xReason')
    """
    if n < 1:
        raise ConfigError(f"n is {n}; accepted: at least 1 tail a relation.")
    given = names.split(",") if isinstance(names, str) else names
    out: list[str] = []
    for name in given:
        group = RELATION_GROUPS.get(name.strip().lower())
        out += group if group else [canonical_relation(name, RELATIONS)]
    if not out:
        raise ConfigError(f"no relation is named. Accepted: {', '.join(RELATIONS)}, or a group.")
    return tuple(dict.fromkeys(out))


def clean_tail(text: str) -> str:
    """A tail lower-cased, with single blanks, without punctuation round it; empty for ``none``.

    >>> [clean_tail(text) for text in (" To  rest.", "None")]
    ['to rest', '']
    """
    text = " ".join(text.lower().split()).strip(_EDGES)
    return "" if text == "none" else text


def clean_tails(texts: Iterable[str]) -> list[tuple[str, int]]:
    """Distinct clean tails, each with the index of its first text; ``none`` is left out.

    >>> clean_tails(["none", " happy", "happy.", "Happy"])
    [('happy', 1)]
    """
    first: dict[str, int] = {}
    for i, text in enumerate(texts):
        if tail := clean_tail(text):
            first.setdefault(tail, i)
    return list(first.items())


def merge(answers: Sequence[Tails], n: int) -> Tails:
    """Several answers to one relation as one: all first tails, then all second ones, cut to ``n``.

    Scores are kept if every answer has them, and no longer fall from left to right.
    """
    given = [answer for answer in answers if answer.texts]
    if len(given) < 2:
        return (given or list(answers))[0]
    places = [(rank, i) for i, answer in enumerate(given) for rank in range(len(answer.texts))]
    first: dict[str, tuple[int, int]] = {}
    for rank, i in sorted(places):
        first.setdefault(given[i].texts[rank], (rank, i))
    kept = list(first.items())[:n]
    scores = tuple(given[i].scores[rank] for _, (rank, i) in kept) if all(a.scores for a in given) else ()
    return Tails(given[0].relation, tuple(text for text, _ in kept), scores, given[0].head)


class NoInferences:
    """Answers nothing: the ablation without knowledge (Chen et al. 2022, table 2), at the level of data."""

    name = "none"
    source = ""
    stride = 4096

    def relations(self) -> tuple[str, ...]:
        """None."""
        return ()

    def fingerprint(self) -> str:
        """A constant."""
        return fingerprint_of(kind="none")

    def infer(
        self,
        heads: Sequence[str],
        relations: Sequence[str] = RELATIONS,
        n: int = 5,
        *,
        batch_size: int = 32,
        progress: Progress | None = None,
    ) -> list[Answer]:
        """See :class:`Inferences`."""
        names = asked_relations(relations, n)
        if progress is not None:
            progress(len(heads))
        return [{name: Tails(name, absent=NOT_COVERED) for name in names} for _ in heads]


class Fallback:
    """Asks a second provider for what the first leaves empty; the name says so.

    Args:
        first: Asked everything.
        second: Asked the rest.
    """

    def __init__(self, first: Inferences, second: Inferences) -> None:
        self.first, self.second = first, second
        self.name = f"{first.name}, else {second.name}"
        self.source = "; ".join(dict.fromkeys(text for text in (first.source, second.source) if text))
        self.stride = min(first.stride, second.stride)

    def relations(self) -> tuple[str, ...]:
        """What either can answer."""
        either = {*self.first.relations(), *self.second.relations()}
        return tuple(name for name in RELATIONS if name in either)

    def fingerprint(self) -> str:
        """Of both."""
        return fingerprint_of(kind="fallback", first=self.first.fingerprint(), second=self.second.fingerprint())

    def infer(
        self,
        heads: Sequence[str],
        relations: Sequence[str] = RELATIONS,
        n: int = 5,
        *,
        batch_size: int = 32,
        progress: Progress | None = None,
    ) -> list[Answer]:
        """See :class:`Inferences`; ``scores`` are of whoever answered."""
        names = asked_relations(relations, n)
        out = self.first.infer(heads, names, n, batch_size=batch_size)
        lacking = [i for i, answer in enumerate(out) if any(not answer[name].texts for name in names)]
        wanted = [name for name in names if any(not out[i][name].texts for i in lacking)]
        if lacking:
            others = self.second.infer([heads[i] for i in lacking], wanted, n, batch_size=batch_size)
            for i, other in zip(lacking, others, strict=True):
                out[i] = {
                    name: other[name] if not tails.texts and other.get(name, tails).texts else tails
                    for name, tails in out[i].items()
                }
        if progress is not None:
            progress(len(heads))
        return out


class Filtered:
    """Leaves out tails with a blocked word; ATOMIC has violent and sexual content.

    Args:
        provider: Asked.
        blocked: Words, in any case; whole words are compared.
    """

    def __init__(self, provider: Inferences, blocked: Iterable[str]) -> None:
        self.provider = provider
        self.blocked = tuple(sorted({word.strip().lower() for word in blocked if word.strip()}))
        self.name, self.source, self.stride = provider.name, provider.source, provider.stride
        parts = "|".join(re.escape(word) for word in self.blocked)
        self._pattern = re.compile(rf"(?<!\w)(?:{parts})(?!\w)" if parts else r"(?!)")

    def relations(self) -> tuple[str, ...]:
        """The provider's."""
        return self.provider.relations()

    def fingerprint(self) -> str:
        """Of the provider and the words."""
        return fingerprint_of(kind="filtered", provider=self.provider.fingerprint(), blocked=self.blocked)

    def infer(
        self,
        heads: Sequence[str],
        relations: Sequence[str] = RELATIONS,
        n: int = 5,
        *,
        batch_size: int = 32,
        progress: Progress | None = None,
    ) -> list[Answer]:
        """See :class:`Inferences`; may give fewer than ``n`` where something is blocked."""
        found = self.provider.infer(heads, relations, n, batch_size=batch_size, progress=progress)
        return [self.filtered(answer) for answer in found]

    def filtered(self, answer: Answer) -> Answer:
        """An answer without its blocked tails."""
        return {name: self._filtered(tails) for name, tails in answer.items()}

    def _filtered(self, tails: Tails) -> Tails:
        kept = [i for i, text in enumerate(tails.texts) if not self._pattern.search(text)]
        if len(kept) == len(tails.texts):
            return tails
        if not kept:
            return Tails(tails.relation, absent=BLOCKED)
        scores = tuple(tails.scores[i] for i in kept) if tails.scores else ()
        return replace(tails, texts=tuple(tails.texts[i] for i in kept), scores=scores)
