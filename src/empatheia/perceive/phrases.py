"""From a cause score for every word to the few words a person should see."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from empatheia.records.dialogue import Span, Turn
from empatheia.text.noise import straight
from empatheia.text.stop_words import STOP_WORDS

WORDS_IN_PHRASE, PHRASES = 5, 3
_FUNCTION_WORDS = STOP_WORDS - {"won", "ma"}
"""NLTK's list has these as the rests of "won't" and "mayn't"; by themselves they say something."""
_NEW_PHRASE = 0.5
_NO_BEGINNING = frozenset(
    (
        *("and", "but", "or", "so", "because", "cos", "cause", "that", "than", "then", "as", "if", "which", "who"),
        *("of", "to", "is", "are", "was", "were", "be", "been"),
    )
)
_NO_END = _NO_BEGINNING | frozenset(
    (
        *("a", "an", "the", "in", "on", "at", "for", "with", "from", "by", "into", "onto", "over", "under", "about"),
        *("my", "your", "his", "her", "our", "their", "its", "am", "i", "he", "she", "we", "they", "it", "you"),
        *("this", "these", "those", "when", "while", "until", "till", "since", "after", "before"),
    )
)
"""Words at which a phrase would break off."""
_PARTS = re.compile(r"[.!?;:,\n\u2026\u2013\u2014()]|\s-\s")
_JOINING = frozenset(
    (
        *("and", "but", "so", "because", "cause", "cos", "since", "when", "while", "until", "till", "after", "before"),
        *("if", "although", "though", "unless", "whereas", "then", "or", "which", "who", "whose", "where"),
    )
)


def speaker_words(turns: Sequence[Turn], words: Sequence[Span]) -> list[Span]:
    """The words of the speaker's turns: only these can be causes."""
    return [word for word in words if turns[word.turn].role == "speaker"]


def cause_phrases(turns: Sequence[Turn], words: Sequence[Span], threshold: float) -> tuple[Span, ...]:
    """The few words that matter.

    Of all ways to mark up to three phrases of up to five neighbouring words, the one whose scores are above the
    threshold by the largest sum, a new phrase costing half a threshold: where the threshold is half of the best F1 this
    is about the largest expected F1 (Lipton et al. 2014). No phrase runs over punctuation or begins where another ends.
    Words that lead nowhere at its ends ("of the", "and") and phrases of function words alone go. Of a turn with more
    than one clause never all content words are kept: its weakest clause goes. Where no phrase is worth it the best
    content word stands alone.

    Args:
        turns: Of the conversation.
        words: With scores, in reading order; punctuation is passed over.
        threshold: In [0, 1].

    Returns:
        At most three phrases, best first; the score of each is the mean of its words'.
    """
    words = [word for word in words if any(c.isalnum() for c in word.of(turns))]
    kept = [short for phrase in _best_phrases(turns, words, threshold) if (short := _trimmed(turns, phrase))]
    kept = _without_whole_turns(turns, words, kept)
    if not kept:
        content = [word for word in words if not _is_function(turns, word)]
        kept = [[max(content, key=lambda w: w.score or 0.0)]] if content else []
    spans = [Span(p[0].turn, p[0].start, p[-1].end, _mean(p)) for p in kept]
    return tuple(sorted(spans, key=lambda s: (-(s.score or 0.0), s.turn, s.start)))


def clauses(turns: Sequence[Turn], words: Sequence[Span]) -> list[list[Span]]:
    """Words by clause, as punctuation and joining words ("and", "because", "when") part them; a guess without grammar.

    Args:
        turns: Of the conversation.
        words: Of one turn, in reading order.

    Returns:
        In reading order; a part of one word belongs to the clause before it, or to the next.
    """
    out: list[list[Span]] = []
    for word in words:
        between = turns[word.turn].text[out[-1][-1].end : word.start] if out else ""
        if not out or ((_PARTS.search(between) or _text(turns, word) in _JOINING) and len(out[-1]) > 1):
            out.append([word])
        else:
            out[-1].append(word)
    if len(out) > 1 and len(out[-1]) == 1:
        last = out.pop()
        out[-1] += last
    return out


def _without_whole_turns(
    turns: Sequence[Turn], words: Sequence[Span], phrases: Sequence[list[Span]]
) -> list[list[Span]]:
    """Phrases without the weakest clause of a turn that they would cover whole."""
    kept = list(phrases)
    for turn in {phrase[0].turn for phrase in phrases}:
        marked = {word for phrase in kept for word in phrase}
        weakest = _weakest_clause(turns, [word for word in words if word.turn == turn], marked)
        if not weakest:
            continue
        shorter = [_trimmed(turns, run) for phrase in kept for run in _runs_outside(phrase, weakest)]
        kept = [phrase for phrase in shorter if phrase]
    return kept


def _weakest_clause(turns: Sequence[Turn], own: Sequence[Span], marked: set[Span]) -> set[Span]:
    """Of a turn of several clauses whose content words are all marked: the clause with the lowest scores; else none."""
    content = {word for word in own if not _is_function(turns, word)}
    parts = [part for part in clauses(turns, own) if not content.isdisjoint(part)]
    if len(parts) < 2 or not content <= marked:
        return set()
    return set(min(parts, key=lambda part: _mean([word for word in part if word in marked])))


def _runs_outside(phrase: Sequence[Span], taken: set[Span]) -> list[list[Span]]:
    """The stretches of a phrase between words that are taken away."""
    runs: list[list[Span]] = [[]]
    for word in phrase:
        if word in taken:
            runs.append([])
        else:
            runs[-1].append(word)
    return [run for run in runs if run]


def _mean(words: Sequence[Span]) -> float:
    return sum(word.score or 0.0 for word in words) / max(1, len(words))


def _best_phrases(turns: Sequence[Turn], words: Sequence[Span], threshold: float) -> list[list[Span]]:
    """The phrases whose words' scores are above the threshold by the largest sum, in reading order.

    ``best[k][i]`` is the largest sum of at most k phrases among the first i words.
    """
    sums = [0.0]
    for word in words:
        sums.append(sums[-1] + (word.score or 0.0) - threshold)
    joins = [False, *(_follows(turns, *pair) for pair in pairwise(words)), False]  # word i with the one before
    return _traced(words, _table(sums, joins, threshold), joins)


def _table(sums: Sequence[float], joins: Sequence[bool], threshold: float) -> list[list[tuple[float, int]]]:
    """For at most k phrases among the first i words: the largest sum, and the words of the phrase that ends there."""
    n = len(sums) - 1
    best = [[(0.0, 0)] * (n + 1) for _ in range(PHRASES + 1)]
    for k in range(1, PHRASES + 1):
        for end in range(1, n + 1):
            best[k][end] = (best[k][end - 1][0], 0)
            for size in range(1, min(WORDS_IN_PHRASE, end) + 1):
                start = end - size
                if size > 1 and not joins[start + 1]:
                    break
                gap = start - 1 if start and joins[start] else start  # one word stays between two phrases
                value = best[k - 1][max(gap, 0)][0] + sums[end] - sums[start] - _NEW_PHRASE * threshold
                if value > best[k][end][0] + 1e-9:
                    best[k][end] = (value, size)
    return best


def _traced(
    words: Sequence[Span], best: Sequence[Sequence[tuple[float, int]]], joins: Sequence[bool]
) -> list[list[Span]]:
    """The phrases behind the best sum of all words."""
    found: list[list[Span]] = []
    k, end = PHRASES, len(words)
    while end > 0 and k > 0:
        size = best[k][end][1]
        if not size:
            end -= 1
            continue
        start = end - size
        found.insert(0, list(words[start:end]))
        end, k = (start - 1 if start and joins[start] else start), k - 1
    return found


def _follows(turns: Sequence[Turn], one: Span, other: Span) -> bool:
    """Whether two words stand side by side, with no more than blanks between them."""
    return one.turn == other.turn and not turns[one.turn].text[one.end : other.start].strip()


def _trimmed(turns: Sequence[Turn], phrase: Sequence[Span]) -> list[Span]:
    own = list(phrase)
    while own and _text(turns, own[-1]) in _NO_END:
        own.pop()
    while own and _text(turns, own[0]) in _NO_BEGINNING:
        own.pop(0)
    return own if any(not _is_function(turns, word) for word in own) else []


def _text(turns: Sequence[Turn], word: Span) -> str:
    return straight(word.of(turns)).lower()


def _is_function(turns: Sequence[Turn], word: Span) -> bool:
    return _text(turns, word) in _FUNCTION_WORDS
