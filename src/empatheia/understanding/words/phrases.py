"""From a cause score for every word to the few words a person should see."""

from __future__ import annotations

import re
from collections.abc import Sequence

from empatheia.dialogue import Span, Turn
from empatheia.text.noise import straight
from empatheia.understanding.words.questions import STOP_WORDS

WORDS_IN_PHRASE, PHRASES = 5, 3
_FUNCTION_WORDS = STOP_WORDS - {"won", "ma"}
"""NLTK's list has these as the rests of "won't" and "mayn't"; by themselves they say something."""
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

    Neighbouring words at or above the threshold make a phrase, a single weaker word between two of them included; of a
    long phrase the best five words stay; function words at its ends and phrases of nothing else go. Of a turn with more
    than one clause never all content words are kept: its weakest clause goes. Where no word reaches the threshold the
    best content word stands alone.

    Args:
        turns: Of the conversation.
        words: With scores, in reading order; punctuation is passed over.
        threshold: In [0, 1].

    Returns:
        At most three phrases, best first; the score of each is the mean of its words'.
    """
    words = [word for word in words if any(c.isalnum() for c in word.of(turns))]
    kept = [short for phrase in _runs(turns, words, threshold) if (short := _trimmed(turns, _best_part(phrase)))]
    kept = sorted(kept, key=lambda phrase: (-_mean(phrase), phrase[0].turn, phrase[0].start))[:PHRASES]
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
        own = [word for word in words if word.turn == turn]
        content = [word for word in own if not _is_function(turns, word)]
        parts = [part for part in clauses(turns, own) if any(not _is_function(turns, word) for word in part)]
        if len(parts) < 2 or any(word not in marked for word in content):
            continue
        weakest = set(min(parts, key=lambda part: _mean([word for word in part if word in marked])))
        shorter = [_trimmed(turns, run) for phrase in kept for run in _runs_outside(phrase, weakest)]
        kept = [phrase for phrase in shorter if phrase]
    return kept


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


def _runs(turns: Sequence[Turn], words: Sequence[Span], threshold: float) -> list[list[Span]]:
    """Neighbouring words at or above the threshold, a single weaker one between two of them included."""
    runs: list[list[Span]] = []
    for place, word in enumerate(words):
        if (word.score or 0.0) < threshold:
            continue
        if runs and _follows(turns, runs[-1][-1], word):
            runs[-1].append(word)
        elif runs and place >= 2 and words[place - 2] is runs[-1][-1] and _bridges(turns, words, place):
            runs[-1] += [words[place - 1], word]
        else:
            runs.append([word])
    return runs


def _follows(turns: Sequence[Turn], one: Span, other: Span) -> bool:
    """Whether two words stand side by side, with no more than blanks between them."""
    return one.turn == other.turn and not turns[one.turn].text[one.end : other.start].strip()


def _bridges(turns: Sequence[Turn], words: Sequence[Span], place: int) -> bool:
    before, between, after = words[place - 2 : place + 1]
    return _follows(turns, before, between) and _follows(turns, between, after)


def _best_part(phrase: Sequence[Span]) -> Sequence[Span]:
    if len(phrase) <= WORDS_IN_PHRASE:
        return phrase
    starts = range(len(phrase) - WORDS_IN_PHRASE + 1)
    best = max(starts, key=lambda i: sum(word.score or 0.0 for word in phrase[i : i + WORDS_IN_PHRASE]))
    return phrase[best : best + WORDS_IN_PHRASE]


def _trimmed(turns: Sequence[Turn], phrase: Sequence[Span]) -> list[Span]:
    own = list(phrase)
    while own and _is_function(turns, own[-1]):
        own.pop()
    while own and _is_function(turns, own[0]) and not _is_negation(turns, own[0]):
        own.pop(0)
    return own


def _text(turns: Sequence[Turn], word: Span) -> str:
    return straight(word.of(turns)).lower()


def _is_negation(turns: Sequence[Turn], word: Span) -> bool:
    text = _text(turns, word)
    return text in ("no", "not", "never", "nobody", "nothing") or text.endswith("n't")


def _is_function(turns: Sequence[Turn], word: Span) -> bool:
    return _text(turns, word) in _FUNCTION_WORDS
