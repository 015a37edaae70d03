"""From a cause score for every word to the few words a person should see."""

from __future__ import annotations

from collections.abc import Sequence

from empatheia.dialogue import Span, Turn
from empatheia.text.noise import straight
from empatheia.understanding.words.questions import STOP_WORDS

WORDS_IN_PHRASE, PHRASES = 5, 3


def speaker_words(turns: Sequence[Turn], words: Sequence[Span]) -> list[Span]:
    """The words of the speaker's turns: only these can be causes."""
    return [word for word in words if turns[word.turn].role == "speaker"]


def cause_phrases(turns: Sequence[Turn], words: Sequence[Span], threshold: float) -> tuple[Span, ...]:
    """The few words that matter.

    Neighbouring words at or above the threshold make a phrase, a single weaker word between two of them included; of a
    long phrase the best five words stay; function words at its ends and phrases of nothing else go. Where no word
    reaches the threshold the best content word stands alone.

    Args:
        turns: Of the conversation.
        words: With scores, in reading order; punctuation is passed over.
        threshold: In [0, 1].

    Returns:
        At most three phrases, best first; the score of each is the mean of its words'.
    """
    words = [word for word in words if any(c.isalnum() for c in word.of(turns))]
    kept = [short for phrase in _runs(turns, words, threshold) if (short := _trimmed(turns, _best_part(phrase)))]
    if not kept:
        content = [word for word in words if not _is_function(turns, word)]
        kept = [[max(content, key=lambda w: w.score or 0.0)]] if content else []
    spans = [Span(p[0].turn, p[0].start, p[-1].end, sum(w.score or 0.0 for w in p) / len(p)) for p in kept]
    return tuple(sorted(spans, key=lambda s: (-(s.score or 0.0), s.turn, s.start))[:PHRASES])


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
    return _text(turns, word) in STOP_WORDS
