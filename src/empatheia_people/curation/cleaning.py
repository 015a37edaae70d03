"""Cleaning of dialogues, step by step; every step has a name, can be switched off, and counts what it does.

MEED2's Appendix A, which has the procedure, is not published. This is the order that the released EDOS files show
(xie2021, specification section 4): their utterances have 2 to 100 tokens, no speaker's name, no leading dash, hardly a
bracket or a note, no address, no utterance without a letter, no exact repetition of the one before.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypedDict, Unpack

from empatheia.errors import ConfigError
from empatheia.registry import nearest
from empatheia_people.curation.pair_features import strip_marks
from empatheia_people.curation.records import ScriptDialogue, ScriptTurn
from empatheia_people.curation.segmenter import strip_dashes

_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "`": "'", "\u00b4": "'"})
_BRACKETS = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}|<[^<>]*>")
_OPEN_ENDS = re.compile(r"^[^(\[{]{0,40}[)\]}] ?| ?[(\[{][^)\]}]{0,40}$")
_DEEPEST = 8
"""Brackets inside brackets that are followed."""
_MUSIC = re.compile(r"[\u2669-\u266f#]|\u00b6")
_ADDRESS = re.compile(r"https?://|\bwww\.|\w-*\s?\.\s?(?:com|org|net)\b", re.IGNORECASE)
_CREDIT = re.compile(
    r"\b(?:subtitles?|captions?|captioned|transcript|sync(?:ed|hronized)?|corrected|translated|translation|ripped|timing)"
    r"\b[^.?!]{0,40}?\b(?:by|:)|\bopensubtitles\b|\bsubtitles?\s+(?:downloaded|provided)\b",
    re.IGNORECASE,
)
_SPEAKER = re.compile(r"^[A-Z][A-Z0-9 .'&-]{0,24}(?:\s*\([^()]*\))?\s*:\s+(?=\S)")
MAX_LISTED = 20
"""Most frequent dropped lines that a shard remembers a step, each with how often."""
_MOST_REMEMBERED = 2000


def normalise(text: str) -> str:
    """NFC, straight quotes, single blanks, no control characters."""
    if text.isascii() and text.isprintable() and "`" not in text:
        return " ".join(text.split())
    plain = unicodedata.normalize("NFC", text).translate(_QUOTES)
    return " ".join("".join(c if c.isprintable() else " " for c in plain).split())


def drop_brackets(text: str) -> str:
    """Without ``(...)``, ``[...]``, ``{...}``, ``<...>`` (sounds, markup), and without halves of them."""
    if not any(c in text for c in "()[]{}<>"):
        return " ".join(text.split())
    for _ in range(_DEEPEST):
        if (plain := _BRACKETS.sub(" ", text)) == text:
            break
        text = plain
    text = " ".join(text.split())
    return " ".join(_OPEN_ENDS.sub(" ", text).split()) if any(c in text for c in "()[]{}") else text


def drop_speaker(text: str) -> str:
    """``JOHN : Get out !`` without its speaker.

    >>> drop_speaker("JOHN : Get out !")
    'Get out !'
    """
    found = _SPEAKER.match(text)
    if found:
        return text[found.end() :]
    plain, _, name = strip_marks(text) if ":" in text else (text, False, "")
    return plain if name else text


def is_music(text: str) -> bool:
    """Whether it has a note or the sign subtitles have for one."""
    return ("#" in text or not text.isascii()) and _MUSIC.search(text) is not None


def is_address(text: str) -> bool:
    """Whether it has an internet address."""
    return _ADDRESS.search(text) is not None


def is_credit(text: str) -> bool:
    """Whether it says who made the subtitles."""
    return _CREDIT.search(text) is not None


def has_no_letter(text: str) -> bool:
    """Whether nothing in it is a letter."""
    return not any(map(str.isalpha, text))


def is_foreign(text: str) -> bool:
    """Whether most of its letters are outside of ASCII."""
    if text.isascii():
        return False
    letters = [c for c in text if c.isalpha()]
    return bool(letters) and sum(not c.isascii() for c in letters) * 2 > len(letters)


REWRITES: dict[str, Callable[[str], str]] = {
    "normalise": normalise,
    "brackets": drop_brackets,
    "speakers": drop_speaker,
    "dashes": strip_dashes,
}
"""Steps that change an utterance, in this order (between them ``DROPS`` of markup look at the text before it)."""
DROPS: dict[str, Callable[[str], bool]] = {
    "music": is_music,
    "addresses": is_address,
    "credits": is_credit,
    "no_letter": has_no_letter,
    "foreign": is_foreign,
}
"""Steps that drop an utterance; the length is another one."""
STEPS = ("normalise", "music", "addresses", "credits", "brackets", "speakers", "dashes", "no_letter", "short", "long")
STEPS += ("foreign", "repetitions", "few_turns")
"""All local steps, in their order."""


@dataclass(slots=True)
class CleaningCounts:
    """What the steps did.

    Attributes:
        changed: Step to utterances it changed.
        dropped: Step to utterances it dropped (``few_turns``: dialogues).
        lines: Step and line to how often it was dropped.
        n_split: Dialogues that became several, as an utterance in the middle was dropped.
    """

    changed: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    lines: Counter[tuple[str, str]] = field(default_factory=Counter)
    n_split: int = 0

    def drop(self, step: str, text: str) -> None:
        """Notes a dropped utterance; rare lines are forgotten when there are too many."""
        self.dropped[step] += 1
        self.lines[step, text[:120]] += 1
        if len(self.lines) > _MOST_REMEMBERED * 4:
            self.lines = Counter(dict(self.lines.most_common(_MOST_REMEMBERED)))

    def top_lines(self) -> list[tuple[str, str, int]]:
        """The most frequent dropped lines of each step, ties by text."""
        ranked = sorted(self.lines.items(), key=lambda item: (item[0][0], -item[1], item[0][1]))
        seen: Counter[str] = Counter()
        out = []
        for (step, text), n in ranked:
            seen[step] += 1
            if seen[step] <= MAX_LISTED:
                out.append((step, text, n))
        return out


class CleanerSettings(TypedDict, total=False):
    """Fields of a :class:`Cleaner` besides its steps."""

    min_tokens: int
    max_tokens: int
    min_turns: int
    splits: bool


@dataclass(frozen=True, slots=True)
class Cleaner:
    """The local steps.

    Attributes:
        steps: Those that are on.
        min_tokens: Fewest words and marks, parted by blanks, of an utterance.
        max_tokens: Most.
        min_turns: Fewest turns of a dialogue.
        splits: Whether a dropped utterance in the middle parts a dialogue; else its neighbours are joined.
    """

    steps: frozenset[str] = frozenset(STEPS)
    min_tokens: int = 2
    max_tokens: int = 100
    min_turns: int = 2
    splits: bool = True

    @classmethod
    def without(cls, names: Iterable[str] = (), **settings: Unpack[CleanerSettings]) -> Cleaner:
        """All steps but some.

        Raises:
            ConfigError: A name is none of a step.
        """
        for name in names:
            if name not in STEPS:
                known = ", ".join(STEPS)
                raise ConfigError(f"unknown cleaning step {name!r}.{nearest(name, list(STEPS))} Known: {known}.")
        return cls(steps=frozenset(STEPS) - frozenset(names), **settings)

    def utterance(self, text: str, counts: CleaningCounts | None = None) -> str | None:
        """A cleaned utterance, or None if it is dropped.

        >>> Cleaner().utterance("JOHN : Get out !"), Cleaner().utterance("( door slams )"), Cleaner().utterance("Yes")
        ('Get out !', None, None)
        """
        counts = CleaningCounts() if counts is None else counts
        given = text
        for step in STEPS:
            if step not in self.steps:
                continue
            if (rewrite := REWRITES.get(step)) is not None:
                plain = rewrite(text)
                if plain != text:
                    counts.changed[step] += 1
                    text = plain
            elif self._is_dropped(step, text):
                counts.drop("brackets" if not text and "brackets" in self.steps else step, given)
                return None
        return text

    def _is_dropped(self, step: str, text: str) -> bool:
        if step == "short":
            return len(text.split()) < self.min_tokens
        if step == "long":
            return len(text.split()) > self.max_tokens
        drops = DROPS.get(step)
        return drops is not None and drops(text)

    def dialogue(self, dialogue: ScriptDialogue, counts: CleaningCounts | None = None) -> list[ScriptDialogue]:
        """What remains of a dialogue: none, one, or several parts.

        Args:
            dialogue: As it was cut.
            counts: What the steps did is added here.
        """
        counts = CleaningCounts() if counts is None else counts
        parts: list[list[ScriptTurn]] = [[]]
        for turn in dialogue.turns:
            text = self.utterance(turn.text, counts)
            if text is not None:
                parts[-1].append(turn if text == turn.text else turn._replace(text=text))
            elif self.splits and parts[-1]:
                parts.append([])
        parts = [self._without_repetitions(part, counts) for part in parts if part]
        counts.n_split += len(parts) > 1
        least = self.min_turns if "few_turns" in self.steps else 1
        kept = [(number, part) for number, part in enumerate(parts) if len(part) >= least]
        counts.dropped["few_turns"] += (len(parts) or 1) - len(kept)
        is_one = len(parts) == 1
        return [
            ScriptDialogue(
                dialogue.movie,
                dialogue.subtitle,
                dialogue.ordinal if is_one else f"{dialogue.ordinal}-{number}",
                tuple(part),
            )
            for number, part in kept
        ]

    def _without_repetitions(self, turns: Sequence[ScriptTurn], counts: CleaningCounts) -> list[ScriptTurn]:
        if "repetitions" not in self.steps:
            return list(turns)
        out: list[ScriptTurn] = []
        for turn in turns:
            if out and out[-1].text == turn.text:
                counts.drop("repetitions", turn.text)
            else:
                out.append(turn)
        return out
