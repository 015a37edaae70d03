"""Look-up: what people wrote in ATOMIC about the events nearest to what was said.

For each relation the ``n_heads`` nearest heads that have it, at a cosine of at least ``minimum``; a tail's score is
``cos * log(1 + count)``, with the highest cosine and the count over those heads; of equal scores the tail of the
nearer head comes first, then the one that the file has first. Relations about things (HasProperty,
CapableOf, Desires) are asked with the text's words and pairs of words, at ``phrase_minimum``; all others with the
text and its sentences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from empatheia.errors import ConfigError
from empatheia.taxonomy import EMPTY, NO_HEAD, NOT_COVERED, ONLY_NONE, RELATION_GROUPS, RELATIONS
from empatheia_research.understanding.fingerprints import fingerprint_of
from empatheia_research.understanding.inferences.heads import events, phrases
from empatheia_research.understanding.inferences.index import Hits, TupleIndex
from empatheia_research.understanding.inferences.provider import Answer, Progress, Tails, asked_relations, clean_tail

if TYPE_CHECKING:
    import torch

OF_THINGS: tuple[str, ...] = RELATION_GROUPS["physical"]
WINDOW = 512


class NearestInferences:
    """A provider that looks tails up.

    Args:
        index: Opened.
        minimum: Cosine from which an event counts, in [-1, 1].
        phrase_minimum: Cosine from which a thing counts.
        n_heads: Most heads a relation.
        search: ``exact`` or ``approximate``.

    Raises:
        ConfigError: A setting is out of range.
        MissingDependencyError: ``approximate`` without faiss.
        CheckpointError: ``approximate``, and the index has no graph.
    """

    settings: ClassVar[tuple[str, ...]] = ("encoder", "minimum", "phrase_minimum", "n_heads", "search")
    """Options of :meth:`load`."""
    stride = WINDOW

    def __init__(
        self,
        index: TupleIndex,
        minimum: float = 0.4,
        phrase_minimum: float = 0.7,
        n_heads: int = 10,
        search: str = "exact",
    ) -> None:
        for option, value in (("minimum", minimum), ("phrase_minimum", phrase_minimum)):
            if not -1 <= value <= 1:
                raise ConfigError(f"inferences: {option} is {value}; accepted: a cosine, from -1 to 1.")
        if n_heads < 1:
            raise ConfigError(f"inferences: n_heads is {n_heads}; accepted: at least 1.")
        index.check_search(search)
        self.index = index
        self.minimum = minimum
        self.phrase_minimum = phrase_minimum
        self.n_heads = n_heads
        self.search = search
        self.name = f"{index.meta['name']} by {Path(index.encoder.name).name}"
        self.source = str(index.meta["source"])

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        encoder: str | Path | None = None,
        device: str | torch.device | None = None,
        **settings: Any,
    ) -> NearestInferences:
        """From an index folder.

        Args:
            folder: See :class:`TupleIndex`.
            encoder: Where its encoder is, if not where it was.
            device: Where the encoder runs; None = the processor.
            **settings: See the class.

        Raises:
            CheckpointError: The folder is no index, or of another encoder.
            MissingResourceError: The encoder is not on this machine.
            ConfigError: A setting is out of range.
        """
        return cls(TupleIndex.open(folder, encoder, device), **settings)

    def relations(self) -> tuple[str, ...]:
        """Relations of which the table has a tuple."""
        return self.index.relations()

    def fingerprint(self) -> str:
        """Of the index and the settings."""
        return fingerprint_of(
            kind="nearest",
            index=self.index.fingerprint,
            minimum=self.minimum,
            phrase_minimum=self.phrase_minimum,
            n_heads=self.n_heads,
            search=self.search,
        )

    def infer(
        self,
        heads: Sequence[str],
        relations: Sequence[str] = RELATIONS,
        n: int = 5,
        *,
        batch_size: int = 32,
        progress: Progress | None = None,
    ) -> list[Answer]:
        """See :class:`Inferences`; scores are those of the module's formula, ``head`` is the first tail's."""
        names = asked_relations(relations, n)
        out: list[Answer] = []
        rest = iter(heads)
        while window := list(islice(rest, WINDOW)):
            out += self._window(window, names, n, batch_size)
            if progress is not None:
                progress(len(window))
        return out

    def _window(self, heads: Sequence[str], names: Sequence[str], n: int, batch_size: int) -> list[Answer]:
        covered = [name for name in names if name in self.index.relations()]
        found: dict[str, list[Hits]] = {}
        for asks, minimum, wanted in (
            (events, self.minimum, [name for name in covered if name not in OF_THINGS]),
            (phrases, self.phrase_minimum, [name for name in covered if name in OF_THINGS]),
        ):
            if wanted:
                texts = [[self.index.asked(text) for text in asks(head)] for head in heads]
                found |= self._hits(texts, wanted, minimum, batch_size)
        return [
            {name: self._answer(head, name, found[name][i] if name in found else None, n) for name in names}
            for i, head in enumerate(heads)
        ]

    def _hits(
        self, texts: Sequence[Sequence[str]], wanted: Sequence[str], minimum: float, batch_size: int
    ) -> dict[str, list[Hits]]:
        """For each relation the nearest heads of every row of texts; equal texts are read once."""
        places = {text: i for i, text in enumerate(dict.fromkeys(text for row in texts for text in row))}
        vectors = self.index.encoder.encode(list(places), batch_size=batch_size)  # (n_texts, width)
        per_text: dict[str, list[Hits]] = {name: [] for name in wanted}
        for start in range(0, len(vectors), WINDOW):
            some = self.index.nearest(
                vectors[start : start + WINDOW], wanted, self.n_heads, minimum, search=self.search
            )
            for name in wanted:
                per_text[name] += some[name]
        return {
            name: [self._united([per_text[name][places[text]] for text in row]) for row in texts] for name in wanted
        }

    def _united(self, rows: Sequence[Hits]) -> Hits:
        """The nearest heads to any of a text's queries."""
        best: dict[int, float] = {}
        for hits in rows:
            for head, cosine in hits:
                best[head] = max(best.get(head, -1.0), cosine)
        return sorted(best.items(), key=lambda hit: (-hit[1], hit[0]))[: self.n_heads]

    def _answer(self, head: str, relation: str, hits: Hits | None, n: int) -> Tails:
        if hits is None:
            return Tails(relation, absent=NOT_COVERED)
        if not head.strip():
            return Tails(relation, absent=EMPTY)
        if not hits:
            return Tails(relation, absent=NO_HEAD)
        counts: dict[str, int] = {}
        first: dict[str, tuple[int, float]] = {}  # the nearest head that has the tail
        for number, cosine in hits:
            for text, count in self.index.tails(number, relation):
                if tail := clean_tail(text):
                    counts[tail] = counts.get(tail, 0) + count
                    first.setdefault(tail, (number, cosine))
        scored = [(round(first[tail][1] * math.log1p(count), 4), tail) for tail, count in counts.items()]
        scored = sorted(scored, key=lambda pair: -pair[0])[:n]  # stable: ties by nearness, then file order
        if not scored:
            return Tails(relation, absent=ONLY_NONE)
        texts = tuple(tail for _, tail in scored)
        return Tails(relation, texts, tuple(score for score, _ in scored), self.index.heads[first[texts[0]][0]])
