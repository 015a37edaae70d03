"""The emotional context graph of KEMP (section 3.1): concepts of the context's words, and how intense words are.

Intensity by a valence-arousal lexicon (equation 1), concepts by ConceptNet 5. Both come by path: the NRC-VAD lexicon
may not be passed on (Warriner's ratings are a free stand-in), ConceptNet is large (SenticNet is a smaller one). What a
vocabulary needs of them is saved with a model, so that it answers without the files.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from empatheia.errors import ConfigError, DataError, MissingResourceError
from empatheia.records.dialogue import Example
from empatheia_research.corpora import sample, senticnet
from empatheia_research.corpora.conceptnet import GET, read_assertions
from empatheia_research.corpora.lexicons import Affect, Lexicon
from empatheia_research.side_inputs.context_words import FUNCTION_WORDS, ContextWord, choose_tagging, context_words
from empatheia_research.side_inputs.emotion_words import load_lexicon
from empatheia_research.text.collation import EncodedExample, pad_rows
from empatheia_research.text.tokenizer import DialogueTokenizer

logger = logging.getLogger(__name__)
REMOVED_RELATIONS = frozenset(
    (
        "Antonym", "ExternalURL", "NotDesires", "NotHasProperty", "NotCapableOf", "dbpedia", "DistinctFrom",
        "EtymologicallyDerivedFrom", "EtymologicallyRelatedTo", "SymbolOf", "FormOf", "AtLocation", "DerivedFrom",
        "CreatedBy", "Synonym", "MadeOf",
    )
)  # fmt: skip
CONTENT_TAGS = ("N", "V", "J", "R")
UNKNOWN = Affect(0.5, 0.0, 0.5)
SAMPLE_ASSERTIONS = "conceptnet/assertions.csv"
SAMPLE_VAD = "lexicons/vad.txt"
Concepts = dict[str, list[tuple[str, float]]]


def intensity(affect: Affect) -> float:
    """``(|(v - 1/2, a/2)| - 0.06467) / 0.607468`` (equation 1).

    Args:
        affect: Valence and arousal in [0, 1].

    Returns:
        In [-0.1065, 1.0576].
    """
    return (math.hypot(affect.valence - 0.5, (affect.arousal or 0.0) / 2) - 0.06467) / 0.607468


def find_concepts(
    path: str | Path,
    affect: Mapping[str, Affect],
    vocabulary: frozenset[str],
    *,
    min_intensity: float = 0.6,
    n_stored: int = 3,
    variant: Literal["paper", "repo"] = "paper",
) -> Concepts:
    """The emotional concepts of each word of a vocabulary.

    Args:
        path: ConceptNet assertions, or ``senticnet``: SenticNet's related concepts.
        affect: Valence-arousal lexicon.
        vocabulary: Words that count, on both ends.
        min_intensity: Least intensity of a concept.
        n_stored: Most concepts of a word.
        variant: ``paper``: the best by ``eta(tail) + 1 - (|dv| + |da|) / 2`` first; ``repo``: in the order of the
            file (its sorted list is thrown away), tails in any language, the last relation of two words counts.

    Returns:
        Word to (concept, intensity) pairs.
    """
    found: dict[str, dict[str, tuple[bool, float, float]]] = {}
    for is_removed, head, tail in _edges(path, vocabulary, checks_tail=variant == "paper"):
        if is_removed and variant == "paper":
            continue
        if tail in FUNCTION_WORDS or tail not in affect or intensity(affect[tail]) < min_intensity:
            continue
        found.setdefault(head, {})[tail] = (is_removed, *_worth(affect.get(head, UNKNOWN), affect[tail]))
    concepts: Concepts = {}
    for head, tails in found.items():
        kept = [(tail, eta, score) for tail, (is_removed, eta, score) in tails.items() if not is_removed]
        if variant == "paper":
            kept.sort(key=lambda entry: (-entry[2], entry[0]))
        if kept:
            concepts[head] = [(tail, round(eta, 6)) for tail, eta, _ in kept[:n_stored]]
    return concepts


def _edges(path: str | Path, vocabulary: frozenset[str], checks_tail: bool) -> Iterator[tuple[bool, str, str]]:
    """Pairs of words of the vocabulary, in both directions, and whether their relation is one that is left out."""
    entries = (
        senticnet.read_related() if str(path) == senticnet.NAME else read_assertions(path, checks_tail=checks_tail)
    )
    for relation, start, end, weight in entries:
        if weight < 1.0 or start == end or not (start.isalpha() and end.isalpha()):
            continue
        if start in vocabulary and end in vocabulary:
            yield relation in REMOVED_RELATIONS, start, end
            yield relation in REMOVED_RELATIONS, end, start


def _worth(one: Affect, other: Affect) -> tuple[float, float]:
    """The intensity of a concept, and by what it is ranked among those of a word."""
    gap = abs(one.valence - other.valence) + abs((one.arousal or 0.0) - (other.arousal or 0.0))
    eta = intensity(other)
    return eta, eta + 1.0 - gap / 2


class ConceptGraph:
    """Concepts of a context and intensities of its words.

    Args:
        tokenizer: The system's pieces.
        assertions: ConceptNet's file (``.csv``, ``.csv.gz``); ``senticnet``: SenticNet's related concepts in its place;
            ``sample``; or ``none``: words alone (w/o ECE).
        lexicon: Valence-arousal lexicon by path (NRC-VAD, Warriner), ``warriner``, or ``sample``.
        min_intensity: Least intensity of a concept (released: 0.6).
        n_stored: Concepts kept for a word (released: 3).
        per_token: Concepts a word brings (published command: 1).
        most: Concepts an example has (released: 10).
        parts_of_speech: Only nouns, verbs, adjectives and adverbs bring concepts (NLTK's tagger); None = where its
            data is here. Function words never do.
        variant: ``repo`` keeps what :func:`find_concepts` names, and ranks an example's concepts by their intensity
            cut to an integer.
        concepts: As a saved model has them; no file is read then.
        intensities: Likewise.
    """

    features: ClassVar[tuple[str, ...]] = (
        "concept_ids",
        "concept_mask",
        "concept_heads",
        "token_intensities",
        "concept_intensities",
    )

    def __init__(
        self,
        tokenizer: DialogueTokenizer,
        assertions: str | None = None,
        lexicon: str = "warriner",
        min_intensity: float = 0.6,
        n_stored: int = 3,
        per_token: int = 1,
        most: int = 10,
        parts_of_speech: bool | None = None,
        variant: Literal["paper", "repo"] = "paper",
        concepts: Mapping[str, Sequence[Sequence[str | float]]] | None = None,
        intensities: Mapping[str, float] | None = None,
    ) -> None:
        if variant not in ("paper", "repo"):
            raise ConfigError(f"concept_graph.variant is {variant!r}; accepted: paper, repo.")
        self.tokenizer = tokenizer
        self.variant = variant
        self.per_token, self.most = per_token, most
        self.parts_of_speech = choose_tagging(parts_of_speech, "concept_graph.parts_of_speech")
        self._sources = {"assertions": assertions, "lexicon": str(lexicon)}
        self._limits: dict[str, Any] = {"min_intensity": min_intensity, "n_stored": n_stored}
        if concepts is not None and intensities is not None:
            self.concepts: Concepts = {head: [(str(t), float(e)) for t, e in tails] for head, tails in concepts.items()}
            self.intensities = dict(intensities)
            return
        if assertions is None:
            raise MissingResourceError(
                "concept_graph.assertions names no file of ConceptNet's; get it from"
                f" {GET} and set data.side_inputs.concept_graph.assertions=PATH (`senticnet`: SenticNet instead, by"
                " pip install 'empatheia[concepts]'; `none`: no concepts, w/o ECE)."
            )
        affect = self._affect(str(lexicon))
        words = frozenset(self.tokenizer.piece_texts()) if tokenizer.kind == "word" else frozenset(affect)
        self.intensities = {word: round(intensity(value), 6) for word, value in affect.items() if word in words}
        self.concepts = {}
        if assertions != "none":
            path = sample.root() / SAMPLE_ASSERTIONS if assertions == "sample" else assertions
            self.concepts = find_concepts(path, affect, words, variant=variant, **self._limits)
            if not self.concepts:
                raise DataError(f"{path}: no word of the vocabulary has a concept of intensity {min_intensity} there.")
        tagged = "tagged words" if self.parts_of_speech else "words without a part-of-speech rule"
        logger.info("concepts: of %d %s; intensities: of %d", len(self.concepts), tagged, len(self.intensities))

    @staticmethod
    def _affect(name: str) -> dict[str, Affect]:
        found: Lexicon = load_lexicon(str(sample.root() / SAMPLE_VAD) if name == "sample" else name)
        if not any(value.arousal is not None for value in found.affect.values()):
            raise ConfigError(f"concept_graph.lexicon {name!r} has no arousal; accepted: NRC-VAD, Warriner.")
        return found.affect

    def settings(self) -> dict[str, object]:
        """Sources, limits, rule, and what the vocabulary needs of the files."""
        return {
            **self._sources,
            **self._limits,
            "per_token": self.per_token,
            "most": self.most,
            "parts_of_speech": self.parts_of_speech,
            "variant": self.variant,
            "concepts": self.concepts,
            "intensities": self.intensities,
        }

    def add(self, examples: Sequence[Example], items: Sequence[EncodedExample]) -> None:
        """Writes intensities of the pieces, and the concepts with the position of the word that brings each."""
        for example, item in zip(examples, items, strict=True):
            words = context_words(example, item, self.tokenizer, tags=self.parts_of_speech)
            eta = [0.0] * len(item.input_ids)
            for word in words:
                for position in word.positions:
                    eta[position] = self.intensities.get(word.text, 0.0)
            item.extra["token_intensities"] = eta
            item.extra["concepts"] = self._chosen(words)

    def _chosen(self, words: Sequence[ContextWord]) -> list[tuple[int, str, float]]:
        """Position of the word, concept, intensity; at most ``most``, in the words' order."""
        found: list[tuple[int, str, float]] = []
        for word in words:
            if word.text in FUNCTION_WORDS or (self.parts_of_speech and not word.tag.startswith(CONTENT_TAGS)):
                continue
            found += [(word.positions[0], *entry) for entry in self.concepts.get(word.text, ())[: self.per_token]]
        rank = (lambda i: -int(found[i][2])) if self.variant == "repo" else (lambda i: -found[i][2])
        return [found[i] for i in sorted(sorted(range(len(found)), key=rank)[: self.most])]

    def collate(self, items: Sequence[EncodedExample], pad_id: int, width: int) -> dict[str, Tensor]:
        """SEP and the concepts of each example, none where it has none.

        Returns:
            ``concept_ids``, ``concept_mask``, ``concept_heads`` (-1 for SEP and padding) and ``concept_intensities``,
            ``(batch, most concepts)``; ``token_intensities`` ``(batch, width)``.
        """
        ids: list[list[int]] = []
        heads: list[list[int]] = []
        eta: list[list[float]] = []
        for item in items:
            concepts = item.extra.get("concepts") or ()
            row: list[tuple[int, int, float]] = [(self.tokenizer.sep_id, -1, 0.0)] if concepts else []
            for position, concept, value in concepts:
                row += [(piece, position, value) for piece in self.tokenizer.encode(concept).ids]
            ids.append([entry[0] for entry in row])
            heads.append([entry[1] for entry in row])
            eta.append([entry[2] for entry in row])
        n = max([1, *map(len, ids)])
        lengths = torch.tensor([len(row) for row in ids])
        return {
            "concept_ids": pad_rows(ids, pad_id, n),
            "concept_mask": torch.arange(n) < lengths[:, None],
            "concept_heads": pad_rows(heads, -1, n),
            "concept_intensities": _pad_numbers(eta, n),
            "token_intensities": _pad_numbers([item.extra.get("token_intensities", ()) for item in items], width),
        }


def _pad_numbers(rows: Sequence[Sequence[float]], width: int) -> Tensor:
    return torch.tensor([[*row, *([0.0] * (width - len(row)))] for row in rows], dtype=torch.float32)
