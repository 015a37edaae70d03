"""What a focused reply should be about: words of the last speaker turn, found by a model or named by the caller.

Four ways (:data:`TARGETS`), one record (:class:`Targets`): the words a generative emotion estimator finds (Kim et al.
2021, section 3; the published way), those a responder's own reasoner marks (Gao et al. 2021), those of extracted cause
spans (Poria et al. 2021), or words by name. At most five, as published; stop words and punctuation never.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from empatheia.analysis.component import Component, ExplainingComponent, Kind
from empatheia.analysis.questions import is_candidate, words_of
from empatheia.errors import ConfigError, DataError
from empatheia.records.analysis import Analysis, TurnLabels, WordScores
from empatheia.records.dialogue import CauseAnnotation, Dialogue, Span
from empatheia.registry import Registry

N_WORDS = 5
"""Words at most, as in Kim et al.'s released code."""

TARGETS = Registry(
    "targets",
    {
        "gee": "empatheia.analysis.targets:ScoredTargets",
        "reasoner": "empatheia.analysis.targets:ReasonerTargets",
        "spans": "empatheia.analysis.targets:SpanTargets",
        "given": "empatheia.analysis.targets:GivenTargets",
    },
)
"""Name of a way to find targets to its class."""


@dataclass(frozen=True, slots=True)
class Targets:
    """Words of one turn.

    Attributes:
        text: The turn.
        spans: One a word, best first; they do not overlap. Empty where the turn has nothing to focus on.
        turn: 0-based index of the turn in its conversation.
        emotion: The emotion these words explain; "" if none was named.
        source: What found them.

    Raises:
        DataError: A span is empty, of another turn, outside the text, or overlaps another.
    """

    text: str
    spans: tuple[Span, ...]
    turn: int = 0
    emotion: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        last = 0
        for span in sorted(self.spans, key=lambda span: span.start):
            if span.turn != self.turn or not last <= span.start < span.end <= len(self.text):
                raise DataError(
                    f"targets: characters {span.start} to {span.end} of turn {span.turn}; accepted: stretches of turn"
                    f" {self.turn} that do not overlap, within its {len(self.text)} characters."
                )
            last = span.end

    @property
    def words(self) -> tuple[str, ...]:
        """As written, best first."""
        return tuple(self.text[span.start : span.end] for span in self.spans)

    @property
    def in_order(self) -> tuple[Span, ...]:
        """As they stand in the text."""
        return tuple(sorted(self.spans, key=lambda span: span.start))


class TargetFinder(Protocol):
    """Any way to find targets."""

    def find(self, dialogues: Sequence[Dialogue], *, batch_size: int = 32) -> list[Targets]:
        """Words of the last speaker turn of each conversation; the same alone or among others.

        Args:
            dialogues: Conversations; roles matter.
            batch_size: Most texts in one pass of a model.

        Raises:
            DataError: A conversation has no speaker turn.
        """
        ...


class ScoredTargets:
    """The best words of a method that scores every word, such as the generative emotion estimator.

    Words of score 0 carry nothing of the emotion, so there may be fewer than ``k``, or none.

    Args:
        component: Of part ``words``, e.g. :class:`empatheia_research.understanding.words.turns.WordsOfTurns`.
        k: Words at most; None = all.
        emotion: Component of part ``emotion`` that is read in place of the component's own; None = its own.

    Raises:
        ConfigError: ``k`` is below 1, or a component of another part.
    """

    def __init__(
        self,
        component: ExplainingComponent[WordScores],
        k: int | None = N_WORDS,
        emotion: Component[TurnLabels] | None = None,
    ) -> None:
        self.component = _of_part(component, "words")
        self.k = _checked(k)
        self._emotion = emotion

    def find(self, dialogues: Sequence[Dialogue], *, batch_size: int = 32) -> list[Targets]:
        """See :class:`TargetFinder`."""
        turns = [last_speaker_turn(dialogue) for dialogue in dialogues]
        alone = not hasattr(getattr(self.component, "emotion", None), "annotate")  # emotions may need the context
        asked = [_up_to(d, turn, alone) for d, turn in zip(dialogues, turns, strict=True)]
        out = []
        for dialogue, turn, records in zip(
            dialogues, turns, _annotated(self.component, asked, batch_size, self._emotion), strict=True
        ):
            own = records[-1]
            found = [span for span in own.top(len(own.words)) if span.score != 0]  # 0: left out of the ranking
            best = [Span(turn, span.start, span.end, span.score) for span in found]
            text = dialogue.turns[turn].text
            out.append(Targets(text, _best(text, best, self.k), turn, own.emotion, self.component.name))
        return out


class ReasonerTargets:
    """The words that a responder's own reasoner marks as causes, in the last speaker turn.

    Words of the marked stretch with the higher score come first, and within it those with the higher score.

    Args:
        analyze: Conversations that end with the speaker to what a model understands of them, e.g. ``listener.analyze``.
        k: Words at most; None = all.

    Raises:
        ConfigError: ``k`` is below 1.
    """

    def __init__(self, analyze: Callable[[list[Dialogue]], Sequence[Analysis]], k: int | None = N_WORDS) -> None:
        self.analyze = analyze
        self.k = _checked(k)

    def find(self, dialogues: Sequence[Dialogue], *, batch_size: int = 32) -> list[Targets]:
        """See :class:`TargetFinder`; how many are read at once is up to ``analyze``."""
        turns = [last_speaker_turn(dialogue) for dialogue in dialogues]
        found = self.analyze([_up_to(d, turn, False) for d, turn in zip(dialogues, turns, strict=True)])
        return [of_analysis(one, self.k) for one in found]


class SpanTargets:
    """The words of extracted cause spans, in the last speaker turn.

    The span with the higher score comes first; within a span, words as they stand.

    Args:
        component: Of part ``causes``, e.g. :class:`~empatheia_research.understanding.causes.turns.CausesOfTurns` with
            a span model.
        k: Words at most; None = all.
        emotion: Component of part ``emotion`` that is read in place of the component's own; None = its own.

    Raises:
        ConfigError: ``k`` is below 1, or a component of another part.
    """

    def __init__(
        self,
        component: ExplainingComponent[CauseAnnotation],
        k: int | None = N_WORDS,
        emotion: Component[TurnLabels] | None = None,
    ) -> None:
        self.component = _of_part(component, "causes")
        self.k = _checked(k)
        self._emotion = emotion

    def find(self, dialogues: Sequence[Dialogue], *, batch_size: int = 32) -> list[Targets]:
        """See :class:`TargetFinder`."""
        turns = [last_speaker_turn(dialogue) for dialogue in dialogues]
        asked = [_up_to(d, turn, False) for d, turn in zip(dialogues, turns, strict=True)]
        out = []
        for dialogue, turn, notes in zip(
            dialogues, turns, _annotated(self.component, asked, batch_size, self._emotion), strict=True
        ):
            text = dialogue.turns[turn].text
            note = next((note for note in notes if note.target == turn), None)
            spans = [] if note is None else [span for span in note.spans if span.turn == turn]
            spans.sort(key=lambda span: (-(span.score or 0.0), span.start))
            words = [Span(turn, *place, span.score) for span in spans for place in _inside(text, span)]
            emotion = (note.emotion or "") if note is not None else ""
            out.append(Targets(text, _best(text, words, self.k), turn, emotion, self.component.name))
        return out


class GivenTargets:
    """Words, or phrases whose words are meant, by name: every place where they stand, in the order they are named.

    Args:
        words: In any case; one list for all conversations.

    Raises:
        ConfigError: There is none.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = (words,) if isinstance(words, str) else tuple(words)
        if not self.words:
            raise ConfigError("targets: no word is named; accepted: one or more words of the last speaker turn.")

    def find(self, dialogues: Sequence[Dialogue], *, batch_size: int = 32) -> list[Targets]:
        """See :class:`TargetFinder`.

        Raises:
            DataError: A word does not stand in a last speaker turn, or is a stop word; names near words of the text.
        """
        turns = [last_speaker_turn(dialogue) for dialogue in dialogues]
        return [named(d.turns[turn].text, self.words, turn) for d, turn in zip(dialogues, turns, strict=True)]


def named(text: str, words: Sequence[str], turn: int = 0) -> Targets:
    """The words a caller names, wherever they stand in a text.

    Args:
        text: The turn.
        words: Words, or phrases whose words are meant but for stop words.
        turn: Its index.

    Raises:
        DataError: A word does not stand there (names near words of the text), or is a stop word.

    >>> named("My dog ate the exam.", ["exam", "DOG"]).words
    ('exam', 'dog')
    """
    places = words_of(text)
    spans: list[Span] = []
    for name in words:
        whole = _whole_words(text, name, places)
        if not whole:
            raise DataError(_not_there(text, name, places))
        own = [Span(turn, s, e) for a, b in whole for s, e in places if a <= s and e <= b and is_candidate(text[s:e])]
        if not own:
            raise DataError(f"the word {name!r} is a stop word or punctuation; name a word with content.")
        spans += [span for span in own if span not in spans]
    return Targets(text, tuple(spans), turn, source="given")


def _whole_words(text: str, name: str, places: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Where a word or phrase stands, in any case, from the beginning of a word to the end of one."""
    pattern = re.compile(r"\s+".join(map(re.escape, name.split())), re.IGNORECASE)
    starts, ends = {start for start, _ in places}, {end for _, end in places}
    found = [match.span() for match in pattern.finditer(text) if match.group()]
    return [(start, end) for start, end in found if start in starts and end in ends]


def _not_there(text: str, name: str, places: Sequence[tuple[int, int]]) -> str:
    """Says that a word does not stand in a text, and which near ones do."""
    known = [word for word in dict.fromkeys(text[a:b] for a, b in places) if is_candidate(word)]
    lowered = {word.lower(): word for word in known}
    near = difflib.get_close_matches(name.strip().lower(), list(lowered), n=3, cutoff=0.5)
    hint = f" Near words there: {', '.join(lowered[word] for word in near)}." if near else ""
    return (
        f"the word {name!r} does not stand in {_short(text)!r}.{hint} Accepted:"
        f" {', '.join(known[:12]) or 'none, the text has no content word'}."
    )


def of_analysis(analysis: Analysis, k: int | None = N_WORDS) -> Targets:
    """Targets from what a responder's reasoner marked; see :class:`ReasonerTargets`.

    Raises:
        DataError: There is no speaker turn.
    """
    newest, turn = analysis.newest, last_speaker_turn(analysis.dialogue)
    text = analysis.dialogue.turns[turn].text
    scores = [word for word in newest.words if word.turn == turn]
    words: list[Span] = []
    for cause in newest.causes:
        if cause.turn == turn:
            own = [Span(turn, *place, _score(place, scores)) for place in _inside(text, cause)]
            words += sorted(own, key=lambda span: (-(span.score or 0.0), span.start))
    emotion = "" if newest.emotion is None else newest.emotion.label
    return Targets(text, _best(text, words, k), turn, emotion, analysis.by.get("causes", ""))


def last_speaker_turn(dialogue: Dialogue) -> int:
    """Index of the turn a reply answers.

    Raises:
        DataError: There is none.
    """
    for i in range(len(dialogue.turns) - 1, -1, -1):
        if dialogue.turns[i].role == "speaker":
            return i
    raise DataError(f"conversation {dialogue.id!r} has no speaker turn; there is nothing to answer.")


def _up_to(dialogue: Dialogue, turn: int, alone: bool) -> Dialogue:
    turns = dialogue.turns[turn if alone else 0 : turn + 1]
    return Dialogue(dialogue.id, turns, dialogue.emotion, dialogue.situation, dialogue.source)


def _inside(text: str, span: Span) -> list[tuple[int, int]]:
    """Words a span touches."""
    return [(a, b) for a, b in words_of(text) if span.start < b and a < span.end]


def _score(place: tuple[int, int], words: Sequence[Span]) -> float | None:
    """The best score of what a model says of the characters of a word."""
    own = [word.score for word in words if word.start < place[1] and place[0] < word.end and word.score is not None]
    return max(own, default=None)


def _best(text: str, words: Sequence[Span], k: int | None) -> tuple[Span, ...]:
    """The first k that are content words, each once."""
    chosen: list[Span] = []
    for word in words:
        is_new = all(word.end <= other.start or other.end <= word.start for other in chosen)
        if is_new and is_candidate(text[word.start : word.end]):
            chosen.append(word)
    return tuple(chosen[:k])


def _checked(k: int | None) -> int | None:
    if k is not None and k < 1:
        raise ConfigError(f"targets: k is {k}; accepted: 1 or more, or None for all words.")
    return k


def _of_part(component: ExplainingComponent[Kind], part: str) -> ExplainingComponent[Kind]:
    if getattr(component, "part", None) != part:
        raise ConfigError(f"targets: {type(component).__name__} is not a component of part {part!r}; give one.")
    return component


def _annotated(
    component: ExplainingComponent[Kind],
    dialogues: Sequence[Dialogue],
    batch_size: int,
    emotion: Component[TurnLabels] | None,
) -> Sequence[tuple[Kind, ...]]:
    """A component's records; one that takes no other's emotion is not handed any."""
    if emotion is None:
        return component.annotate(dialogues, batch_size=batch_size)
    return component.annotate(dialogues, batch_size=batch_size, emotion=emotion)


def _short(text: str, most: int = 60) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."
