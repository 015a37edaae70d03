"""Emotion words of a context (EmpDG, section 3.2): words of an affect lexicon, and adjectives where there is a tagger.

The released code takes every adjective and every word of a list it calls NRC (14,182 words, many of them neutral), but
no stop word. That list may not be passed on; give its path. Without one the lexicon is VADER's, a stand-in of 7,500
words of which each has a feeling. What was used stands in the settings, which are saved with a model together with the
words themselves, so that a model answers without the file.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from empatheia.reading import Json
from empatheia.records.dialogue import Example
from empatheia_research.corpora import lexicons, sample
from empatheia_research.side_inputs.context_words import FUNCTION_WORDS, choose_tagging, context_words
from empatheia_research.text.collation import EncodedExample, pad_rows
from empatheia_research.text.tokenizer import DialogueTokenizer

logger = logging.getLogger(__name__)
KEY = "emotion_words"
SAMPLE_LEXICON = "lexicons/affect.txt"


def load_lexicon(name: str) -> lexicons.Lexicon:
    """A lexicon by path, ``vader`` or ``warriner`` from the data folder, or the self-written ``sample``."""
    return lexicons.load(sample.root() / SAMPLE_LEXICON if name == "sample" else name)


class EmotionWords:
    """Pieces of LAB and the context's emotion words, in order.

    LAB is the SEP piece: this family's contexts have no separators.

    Args:
        tokenizer: The system's pieces.
        lexicon: A file (NRCDict.json, NRC-VAD, Warriner, VADER), ``vader``, ``warriner`` or ``sample``.
        adjectives: Take adjectives, too (NLTK's tagger); None = where its data is here.
        words: The lexicon's words, as a saved model has them; the file is not read then.
    """

    features: ClassVar[tuple[str, ...]] = ("emotion_word_ids", "emotion_word_mask")

    def __init__(
        self,
        tokenizer: DialogueTokenizer,
        lexicon: str = "vader",
        adjectives: bool | None = None,
        words: Sequence[str] | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        self.lexicon = str(lexicon)
        self.adjectives = choose_tagging(adjectives, "emotion_words.adjectives")
        found = load_lexicon(self.lexicon).words if words is None else words
        self.words = frozenset(found) - FUNCTION_WORDS
        rule = "and adjectives" if self.adjectives else "without a part-of-speech rule"
        logger.info("emotion words: %d of %s, %s", len(self.words), self.lexicon, rule)

    def settings(self) -> dict[str, Json]:
        """Lexicon, rule and words."""
        return {"lexicon": self.lexicon, "adjectives": self.adjectives, "words": [*sorted(self.words)]}

    def lexicon_mask(self) -> Tensor:
        """True for pieces that are emotion words by the lexicon. Shape: ``(vocabulary,)``."""
        return torch.tensor([text.lower() in self.words for text in self.tokenizer.piece_texts()])

    def add(self, examples: Sequence[Example], items: Sequence[EncodedExample]) -> None:
        """Writes the emotion words' pieces."""
        for example, item in zip(examples, items, strict=True):
            words = context_words(example, item, self.tokenizer, tags=self.adjectives)
            item.extra[KEY] = [item.input_ids[i] for word in words if self._is_felt(word) for i in word.positions]

    def _is_felt(self, word: Any) -> bool:
        return word.text in self.words or (word.tag.startswith("J") and word.text not in FUNCTION_WORDS)

    def collate(self, items: Sequence[EncodedExample], pad_id: int, width: int) -> dict[str, Tensor]:
        """``emotion_word_ids`` and ``emotion_word_mask``, both ``(batch, 1 + most words)``; LAB is always there."""
        rows = [[self.tokenizer.sep_id, *item.extra.get(KEY, ())] for item in items]
        lengths = torch.tensor([len(row) for row in rows])
        ids = pad_rows(rows, pad_id)
        return {"emotion_word_ids": ids, "emotion_word_mask": torch.arange(ids.shape[1]) < lengths[:, None]}
