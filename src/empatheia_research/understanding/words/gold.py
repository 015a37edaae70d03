"""Texts with gold cause words: EmoCause, and a second set made of RECCON's spans.

EmoCause (Kim et al. 2021) cannot be shipped. RECCON (Poria et al. 2021) marks cause spans in conversations; the words
of spans that lie in the target's own turn make a set of the same kind, from other data than the estimator learns from.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from empatheia.analysis.questions import Place, WordQuestion, is_candidate, words_of
from empatheia_research.corpora.emocause import EmoCauseCorpus
from empatheia_research.corpora.loading import LoadedCorpus


@dataclass(frozen=True, slots=True)
class WordItem:
    """A text and the words of it that cause the emotion.

    Attributes:
        id: Of the text in its corpus.
        text: What the scorer reads.
        words: Characters of each word, as :class:`WordQuestion` has them.
        emotion: Gold; one of the 32 (EmoCause) or of RECCON's six.
        gold: Cause words as written, with their index in ``words`` (-1: no such place).
        is_whole: Every word that may be named is a cause, so no answer is better than another.
    """

    id: str
    text: str
    words: tuple[Place, ...]
    emotion: str
    gold: tuple[tuple[str, int], ...]
    is_whole: bool = False

    def question(self, with_emotion: bool = False) -> WordQuestion:
        """What a scorer is asked; the gold emotion only on request, gold words never."""
        return WordQuestion(self.text, self.emotion if with_emotion else None, self.words)


def reccon_words(corpus: LoadedCorpus) -> tuple[list[WordItem], dict[str, int]]:
    """One item for each annotated turn with a cause span inside itself.

    Gold words are the candidates (no stop words, no punctuation) that a span touches.

    Args:
        corpus: From :mod:`empatheia_research.corpora.reccon`.

    Returns:
        Items in the order of the annotations, and counts: targets, those without a span in their own turn, those whose
        spans hold no candidate, items in which everything is gold, gold words, candidates.
    """
    counts: Counter[str] = Counter()
    dialogues = corpus.by_id()
    items = []
    for note in corpus.annotations:
        counts["targets"] += 1
        text = dialogues[note.dialogue_id].turns[note.target].text
        spans = [span for span in note.spans if span.turn == note.target]
        if not spans:
            counts["without a span in their own turn"] += 1
            continue
        words = words_of(text)
        candidates = [i for i, (start, end) in enumerate(words) if is_candidate(text[start:end])]
        causes = [i for i in candidates if any(s.start < words[i][1] and words[i][0] < s.end for s in spans)]
        if not causes:
            counts["without a candidate in their spans"] += 1
            continue
        gold = tuple((text[slice(*words[i])], i) for i in causes)
        is_whole = len(causes) == len(candidates)
        counts["items"] += 1
        counts["items in which every candidate is gold"] += is_whole
        counts["gold words"] += len(causes)
        counts["candidates"] += len(candidates)
        id = f"{note.dialogue_id}/{note.target}"
        items.append(WordItem(id, text, words, note.emotion or "neutral", gold, is_whole))
    return items, dict(counts)


def emocause_words(corpus: EmoCauseCorpus) -> tuple[list[WordItem], dict[str, int]]:
    """One item a situation, with the file's own tokens as words; what was mended is in the counts."""
    items = []
    for item in corpus.items:
        gold = tuple(zip(item.words, item.causes, strict=True))
        candidates = {i for i, (a, b) in enumerate(item.tokens) if is_candidate(item.text[a:b])}
        is_whole = bool(candidates) and candidates <= set(item.causes)
        items.append(WordItem(item.id, item.text, item.tokens, item.emotion, gold, is_whole))
    return items, dict(corpus.counts)
