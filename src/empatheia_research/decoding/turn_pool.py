"""Turns and words that distractors are taken from: a fixed pool, never the batch.

Kim et al.'s released code takes random distractors from the same batch: at batch 1 they are the true text itself, and
results depend on the size and order of batches. A pool is the speaker turns of a real corpus where the data folder has
one, else those of the bundled self-written sample.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from empatheia.analysis.questions import is_candidate
from empatheia.errors import ConfigError, DataError, MissingResourceError
from empatheia.metrics.word_forms import base_form
from empatheia.registry import nearest
from empatheia.text.stop_words import STOP_WORDS
from empatheia.text.words import CONTRACTIONS, tokenize_words
from empatheia_research.corpora import empathetic_dialogues, sample
from empatheia_research.corpora.loading import LoadedCorpus

POOLS = ("auto", empathetic_dialogues.NAME, sample.NAME)
_LARGE, _LEAST_COUNT = 5_000, 5
log = logging.getLogger(__name__)
_WORDS = re.compile(r"[^\W_]+")
_SLIPS = frozenset(word.replace("'", "") for word in (*STOP_WORDS, *CONTRACTIONS) if "'" in word)  # "dont", "cant"


@dataclass(frozen=True)
class TurnPool:
    """Different turns under a name.

    Attributes:
        name: Where they are from, for records.
        texts: As written; of turns with the same words only the first is kept.
    """

    name: str
    texts: tuple[str, ...]

    @staticmethod
    def of(texts: Iterable[str], name: str = "given") -> TurnPool:
        """A pool of any texts; those without a word are left out.

        Raises:
            ConfigError: None is left.
        """
        first: dict[tuple[str, ...], str] = {}
        for text in texts:
            if key := wording(text):
                first.setdefault(key, text)
        if not first:
            raise ConfigError(f"the pool {name!r} of turns is empty; give at least one text with a word in it.")
        return TurnPool(name, tuple(first.values()))

    @cached_property
    def words(self) -> WordList:
        """Content words of the pool; of a large one those seen at least five times, which leaves most slips out."""
        counts = Counter(word.text for text in self.texts for word in tokenize_words(text, "recec"))
        least = _LEAST_COUNT if len(self.texts) > _LARGE else 1
        return WordList.of((word for word, n in counts.most_common() if n >= least), self.name)


@dataclass(frozen=True)
class WordList:
    """Words that may stand in for others.

    Attributes:
        name: Where they are from, for records.
        words: Lower-case, different, of letters alone, no stop words; sorted.
    """

    name: str
    words: tuple[str, ...]

    @staticmethod
    def of(words: Iterable[str], name: str = "given") -> WordList:
        """What of some words can be used: three letters or more, nothing but letters, no stop word.

        Raises:
            ConfigError: None is left.
        """
        lowered = {word.lower() for word in words if len(word) > 2 and word.isalpha()}
        kept = {word for word in lowered - _SLIPS if is_candidate(word)}
        if not kept:
            raise ConfigError(f"the word list {name!r} holds no content word; give words of three letters or more.")
        return WordList(name, tuple(sorted(kept)))

    @cached_property
    def bases(self) -> tuple[str, ...]:
        """What all forms of each word share, word by word."""
        return tuple(base_form(word) for word in self.words)


def wording(text: str) -> tuple[str, ...]:
    """A text's words without case and punctuation: what makes two turns the same."""
    return tuple(_WORDS.findall(text.lower()))


@lru_cache(maxsize=4)
def turn_pool(corpus: str = "auto") -> TurnPool:
    """Speaker turns of a corpus's training split.

    Args:
        corpus: ``empathetic_dialogues``, ``sample``, or ``auto``: the first where it is there and can be read, else
            the second.

    Raises:
        ConfigError: Another name.
        MissingResourceError: The corpus is not on this machine.
    """
    if corpus not in POOLS:
        raise ConfigError(f"no pool {corpus!r}.{nearest(corpus, list(POOLS))} Accepted: {', '.join(POOLS)}.")
    if corpus == sample.NAME:
        return _of_corpus(sample.load("train"))
    try:
        return _of_corpus(empathetic_dialogues.load("train"))
    except (MissingResourceError, DataError) as problem:
        if corpus != "auto":
            raise
        if isinstance(problem, DataError):
            log.warning("random distractors are turns of the bundled sample: %s", problem)
        return _of_corpus(sample.load("train"))


def _of_corpus(corpus: LoadedCorpus) -> TurnPool:
    turns = (turn.text for dialogue in corpus for turn in dialogue.turns if turn.role == "speaker")
    return TurnPool.of(turns, f"{corpus.name}/{corpus.split}")
