"""What is probably true besides what the speaker said, as pieces: ATOMIC-2020's relations, from COMET or a look-up.

CEM (Sabour et al. 2022) reads five relations of the last turn, each as a sequence; IMAGINE (Chen et al. 2022, 3.3)
eleven, joined by type, of the turns that caused the emotion. Both drop the words "to" and "none" and words outside the
vocabulary. A provider answers (see :mod:`empatheia_research.understanding.inferences`); a cache file filled by the
same provider (``empatheia infer``) spares the asking. Without either all sequences are empty, which every system here
can read.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import torch
from torch import Tensor

from empatheia.errors import ConfigError, EmpatheiaError, MissingResourceError
from empatheia.reading import Json
from empatheia.records.dialogue import Dialogue, Example
from empatheia.resources import resolve_model
from empatheia.taxonomy import RELATION_GROUPS
from empatheia_research.side_inputs.cause_turns import last_speaker_turn
from empatheia_research.text.collation import EncodedExample
from empatheia_research.text.tokenizer import DialogueTokenizer
from empatheia_research.understanding.inferences.cache import CachedInferences, infer_merged
from empatheia_research.understanding.inferences.heads import NO_CAUSE, Asked, asked_about, check_heads
from empatheia_research.understanding.inferences.index import build_index
from empatheia_research.understanding.inferences.nearest import NearestInferences
from empatheia_research.understanding.inferences.provider import Answer, Filtered, Inferences
from empatheia_research.understanding.inferences.turns import open_provider

logger = logging.getLogger(__name__)
SAMPLE = "sample"
"""Provider that looks up in the package's self-written table; for trials."""
DROPPED = frozenset(("to", "none"))
MAKE = "An index is made with `empatheia infer --build-index atomic`, a cache with `empatheia infer CORPUS --out FILE`."


class Knowledge:
    """Features ``knowledge_ids`` and ``knowledge_mask``: one sequence a group of relations.

    Args:
        tokenizer: The system's pieces.
        provider: Index folder or its name (``inferences``: the installed one), folder or name of a COMET model,
            ``sample``, or None. It answers for texts that the cache does not know, new ones above all.
        cache: File that the same provider wrote; None = there is none.
        head: Which text is asked about, one of :data:`empatheia_research.understanding.inferences.heads.HEADS`; the
            forms with causes need the side input ``cause_turns`` before this one.
        n: Most tails a relation.
        options: Of the provider, e.g. ``{"minimum": 0.5}``.
        blocked: Tails with one of these words are left out.
        max_pieces: Longest sequence.
        fingerprint: The provider's when the model was trained; another one is a doubt about each answer.
        must_exist: A source that is not here is an error; False: a doubt about each answer.

    Raises:
        ConfigError: A setting is out of range.
        MissingResourceError: Provider or cache is not here.

    Attributes:
        sequences: Names of the relations of each sequence; whether CLS stands before it.
    """

    features: ClassVar[tuple[str, ...]] = ("knowledge_ids", "knowledge_mask")
    sequences: ClassVar[tuple[tuple[tuple[str, ...], bool], ...]]

    def __init__(
        self,
        tokenizer: DialogueTokenizer,
        *,
        provider: str | None = None,
        cache: str | None = None,
        head: str = "turn",
        n: int = 5,
        options: Mapping[str, Json] | None = None,
        blocked: Iterable[str] = (),
        max_pieces: int = 128,
        fingerprint: str | None = None,
        must_exist: bool = True,
    ) -> None:
        check_heads(head, NO_CAUSE[0])
        for option, value in (("n", n), ("max_pieces", max_pieces)):
            if value < 1:
                raise ConfigError(f"side input for knowledge: {option} is {value}; accepted: 1 or more.")
        self.tokenizer = tokenizer
        self.provider = provider
        self.cache = cache
        self.head = head
        self.n = n
        self.options: dict[str, Any] = dict(options or {})
        self.blocked = tuple(blocked)
        self.max_pieces = max_pieces
        self.fingerprint = fingerprint
        self.must_exist = must_exist
        self.counts: Counter[str] = Counter()
        self._sources: tuple[CachedInferences | None, Inferences | None] | None = None
        self._problem = ""
        self._folder: TemporaryDirectory[str] | None = None  # of the sample's index
        if must_exist:
            self._check()

    def settings(self) -> dict[str, Json]:
        """See :class:`empatheia_research.side_inputs.SideInput`; in a loaded model the sources may be missing."""
        return {
            "provider": self.provider,
            "cache": self.cache,
            "head": self.head,
            "n": self.n,
            "options": self.options,
            "blocked": list(self.blocked),
            "max_pieces": self.max_pieces,
            "fingerprint": self.fingerprint,
            "must_exist": False,
        }

    def add(self, examples: Sequence[Example], items: Sequence[EncodedExample]) -> None:
        """Writes ``knowledge``, a list of pieces for each sequence, into ``item.extra``."""
        asked = [self._asked(example, item) for example, item in zip(examples, items, strict=True)]
        answers = self._answers(examples, asked)
        relations = [name for names, _ in self.sequences for name in names]
        texts = {text for answer in answers.values() for name in relations for text in _tails(answer, name)}
        pieces = self._pieces(sorted(texts))
        for i, item in enumerate(items):
            answer = answers.get(asked[i].heads)
            item.extra["knowledge"] = [self._sequence(answer, names, cls, pieces) for names, cls in self.sequences]
            self.counts["contexts"] += 1
            for name in relations:
                self.counts[name] += bool(_tails(answer, name))
            if why := self._doubt(answer, relations):
                item.extra.setdefault("doubts", []).append(why)
        if len(items) > 1:
            known = sum(answer is not None for answer in answers.values())
            share = ", ".join(f"{name} {self.counts[name] / self.counts['contexts']:.0%}" for name in relations)
            logger.info("commonsense: %d of %d texts answered; so far %s", known, len(answers), share)

    def collate(self, items: Sequence[EncodedExample], pad_id: int, width: int) -> dict[str, Tensor]:
        """Pieces and mask (True = keep); a sequence may be empty. Shape of each: ``(batch, sequences, pieces)``."""
        none = [self._sequence(None, names, cls, {}) for names, cls in self.sequences]
        rows = [item.extra.get("knowledge", none) for item in items]
        longest = max(1, *(len(sequence) for row in rows for sequence in row), 1)
        ids = torch.full((len(rows), len(self.sequences), longest), pad_id)
        mask = torch.zeros(ids.shape, dtype=torch.bool)
        for i, row in enumerate(rows):
            for j, sequence in enumerate(row):
                ids[i, j, : len(sequence)] = torch.tensor(sequence, dtype=torch.long)
                mask[i, j, : len(sequence)] = True
        return {"knowledge_ids": ids, "knowledge_mask": mask}

    # -- asking ----------------------------------------------------------------------------------------------

    def _asked(self, example: Example, item: EncodedExample) -> Asked:
        dialogue = Dialogue(example.dialogue_id, example.context)
        causes = item.extra.get("cause_turns", ())
        return asked_about(dialogue, last_speaker_turn(example), self.head, causes)

    def _answers(self, examples: Sequence[Example], asked: Sequence[Asked]) -> dict[tuple[str, ...], Answer | None]:
        """By the texts asked about; None where nobody can answer."""
        cache, provider = self._opened()
        found: dict[tuple[str, ...], Answer | None] = {}
        for example, one in zip(examples, asked, strict=True):
            if found.get(one.heads) is None:
                found[one.heads] = None if cache is None else self._cached(cache, example, one, provider is None)
        if provider is not None:
            found |= self._made(provider, found)
        if (source := provider or cache) is not None and self.blocked:
            allowed = Filtered(source, self.blocked)
            return {heads: answer and allowed.filtered(answer) for heads, answer in found.items()}
        return found

    def _cached(self, cache: CachedInferences, example: Example, one: Asked, by_turn: bool) -> Answer | None:
        """What a cache has of the texts asked about, or else (``by_turn``) of the turn."""
        answer = cache.find(one.heads, self.n)
        if answer is not None or not by_turn:
            return answer
        shift = example.turn_index - len(example.context) if example.turn_index >= 0 else 0
        return cache.find_turn(one.dialogue_id, one.turn + shift, one.text, self.n)

    def _made(
        self, provider: Inferences, found: Mapping[tuple[str, ...], Answer | None]
    ) -> dict[tuple[str, ...], Answer | None]:
        """What a provider answers where there is no answer, or none to all relations."""
        relations = [name for names, _ in self.sequences for name in names]
        lacking = [heads for heads, answer in found.items() if answer is None]
        lacking += [heads for heads, a in found.items() if a is not None and not set(relations) <= set(a)]
        return dict(zip(lacking, infer_merged(provider, lacking, relations, self.n), strict=True))

    def _check(self) -> None:
        """Raises MissingResourceError unless what the settings name is here."""
        if self.cache is not None and not Path(self.cache).is_file():
            raise MissingResourceError(f"no cache of inferences at {self.cache!r}. {MAKE}")
        if self.provider not in (None, SAMPLE) and not Path(str(self.provider)).exists():
            try:
                resolve_model(str(self.provider))
            except MissingResourceError as error:
                raise MissingResourceError(f"no provider of inferences: {error} {MAKE}") from None

    def _opened(self) -> tuple[CachedInferences | None, Inferences | None]:
        if self._sources is None:
            cache, provider = self._open(self._cache), self._open(self._provider)
            prints = {source.fingerprint() for source in (cache, provider) if source is not None}
            if len(prints) > 1 and self.must_exist:
                raise ConfigError(
                    f"the cache {self.cache} was not written by the provider {self.provider} with these settings; make"
                    f" it again, or leave one of the two out. {MAKE}"
                )
            if self.must_exist and prints:
                self.fingerprint = prints.pop()
            elif self.fingerprint and prints - {self.fingerprint}:
                self._problem = "commonsense comes from another table, model or setting than in training"
            self._sources = cache, provider
        return self._sources

    def _open(self, source: Any) -> Any:
        try:
            return source()
        except EmpatheiaError as error:
            if self.must_exist:
                raise
            self._problem = f"a commonsense source cannot be used ({error})"
            return None

    def _cache(self) -> CachedInferences | None:
        return None if self.cache is None else CachedInferences(self.cache)

    def _provider(self) -> Inferences | None:
        if self.provider is None:
            return None
        if self.provider == SAMPLE:
            from empatheia_research.corpora import atomic

            self._folder = TemporaryDirectory(prefix="empatheia-")
            table = atomic.load("all", root=atomic.sample_root())
            return NearestInferences(build_index(table, "words", Path(self._folder.name) / "index"), **self.options)
        return open_provider(self.provider, **self.options)

    def _doubt(self, answer: Answer | None, relations: Sequence[str]) -> str:
        """Why an answer must be distrusted, or nothing."""
        if self.provider is None and self.cache is None:
            return "no source of commonsense is set: the model answers without the knowledge it can read"
        if answer is None:
            return f"no commonsense about this text: {self._problem or 'only texts of the cache are known'}"
        if not any(_tails(answer, name) for name in relations):
            return "the source of commonsense has nothing about this text"
        return self._problem

    # -- pieces ----------------------------------------------------------------------------------------------

    def _pieces(self, texts: Sequence[str]) -> dict[str, list[int]]:
        kept = [" ".join(word for word in text.split() if word not in DROPPED) for text in texts]
        cut = self.tokenizer.encode_batch(kept)
        unknown = self.tokenizer.unk_id
        return {text: [i for i in own.ids if i != unknown] for text, own in zip(texts, cut, strict=True)}

    def _sequence(
        self, answer: Answer | None, names: Sequence[str], cls: bool, pieces: Mapping[str, list[int]]
    ) -> list[int]:
        out = [self.tokenizer.cls_id] if cls else []
        for name in names:
            for text in _tails(answer, name):
                out += pieces[text]
        return out[: self.max_pieces]


def _tails(answer: Answer | None, relation: str) -> tuple[str, ...]:
    return answer[relation].texts if answer and relation in answer else ()


class KnowledgeOfRelations(Knowledge):
    """CEM's five sequences: intent, need, want and effect behind CLS, reaction alone."""

    sequences = (*(((name,), True) for name in ("xIntent", "xNeed", "xWant", "xEffect")), (("xReact",), False))


class KnowledgeOfTypes(Knowledge):
    """IMAGINE's four: affect alone, behaviour, physical entities and events behind CLS."""

    sequences = tuple((names, group != "affect") for group, names in RELATION_GROUPS.items())
