"""Which text is asked about, and in which words: turns and causes as heads, table heads and turns in one form.

Chen et al. (2022) ask COMET about the cause utterances, CEM (Sabour et al. 2022) about the last utterance; both give it
the cleaned text (lower case, contractions expanded, words apart).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from empatheia.analysis.questions import is_candidate
from empatheia.errors import ConfigError
from empatheia.records.dialogue import Dialogue
from empatheia.text.words import tokenize_words

HEADS: tuple[str, ...] = ("turn", "causes", "last_cause", "each", "context")
"""What is asked about for a turn: itself (CEM's form), its causes joined (IMAGINE's), the last cause, each cause with
the answers merged by rank, or everything up to it joined."""
NO_CAUSE: tuple[str, ...] = ("whole", "last_speaker", "all_speaker")
"""Which turns stand in where no cause was found: all up to the target, the target, or the speaker's."""
FORMS: tuple[str, ...] = ("plain", "person")
"""How turns and table heads meet: heads in plain words ("i lose my job"), or turns as table heads ("PersonX ...")."""

_PLAIN: tuple[tuple[str, str], ...] = (
    (r"PersonX's", "my"),
    (r"PersonX is\b", "i am"),
    (r"PersonX", "i"),
    (r"PersonY's", "their"),
    (r"PersonY", "them"),
    (r"PersonZ's", "their"),
    (r"PersonZ", "somebody"),
    (r"_+", "something"),
)
_TO_PERSON: tuple[tuple[str, str], ...] = (
    (r"i'm|i am", "PersonX is"),
    (r"i've|i have", "PersonX has"),
    (r"i'd", "PersonX would"),
    (r"i'll", "PersonX will"),
    (r"my (?:best )?friends?", "PersonY"),
    (r"i|me|myself|we|us|ourselves", "PersonX"),
    (r"my|our|mine|ours", "PersonX's"),
    (r"his|hers|your|their|theirs|her(?= [a-z])", "PersonY's"),
    (r"he|she|him|her|you|they|them|himself|herself", "PersonY"),
)
_SENTENCES = re.compile(r"(?<=[.!?])\s+")
_APOSTROPHES = str.maketrans("’‘", "''")


def _rewriter(rules: Sequence[tuple[str, str]], whole_words: bool) -> Callable[[str], str]:
    groups = "|".join(f"({pattern})" for pattern, _ in rules)
    pattern = re.compile(rf"(?<![\w'])(?:{groups})(?![\w'])" if whole_words else groups, re.IGNORECASE)

    def rewrite(text: str) -> str:
        return pattern.sub(lambda match: rules[(match.lastindex or 1) - 1][1], text)

    return rewrite


_plain = _rewriter(_PLAIN, whole_words=False)
_person = _rewriter(_TO_PERSON, whole_words=True)


def plain_head(head: str) -> str:
    """A table head as somebody would say it of themselves; verbs stay as they are.

    >>> plain_head("PersonX loses PersonX's ___")
    'i loses my something'
    """
    return _plain(head)


def person_head(text: str) -> str:
    """What somebody says of themselves in the words of the table: "i" is PersonX, "he", "you", "my friend" are PersonY.

    >>> person_head("my friend took my car and i'm sad")
    "PersonY took PersonX's car and PersonX is sad"
    """
    return _person(text.translate(_APOSTROPHES))


def clean_head(text: str) -> str:
    """A text as COMET gets it: words apart, lower case, contractions expanded.

    >>> clean_head("I don't know.")
    'i do not know .'
    """
    return " ".join(word.text for word in tokenize_words(text, "family"))


def events(text: str) -> list[str]:
    """The text, and its sentences where it has several: the nearest head to any of them is the text's.

    >>> events("hi . i lost my job .")
    ['hi . i lost my job .', 'i lost my job .']
    """
    sentences = [part for part in _SENTENCES.split(text.strip()) if len(part.split()) > 2]
    return list(dict.fromkeys([text.strip(), *sentences])) if text.strip() else []


def phrases(text: str) -> list[str]:
    """Content words and neighbouring pairs of them: what a head that names a thing can match.

    >>> phrases("my old dog ate the cake")
    ['old', 'dog', 'old dog', 'ate', 'dog ate', 'cake']
    """
    out: list[str] = []
    before = ""
    for word in text.lower().split():
        if not is_candidate(word):
            before = ""
            continue
        out += [word, f"{before} {word}"] if before else [word]
        before = word
    return list(dict.fromkeys(out))


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked for one turn.

    Attributes:
        row: Number of the conversation in its file, from 1; 0 outside a file.
        dialogue_id: Its id; may be empty.
        turn: 0-based.
        text: The turn as written.
        heads: Clean texts, one or (``each``) several; empty if nothing is left to ask.
        has_causes: False where causes were asked for and none was found.
    """

    row: int
    dialogue_id: str
    turn: int
    text: str
    heads: tuple[str, ...]
    has_causes: bool = True


def check_heads(head: str, no_cause: str) -> None:
    """Raises ConfigError unless both are known."""
    for option, value, accepted in (("head", head, HEADS), ("no_cause", no_cause, NO_CAUSE)):
        if value not in accepted:
            raise ConfigError(f"inferences: {option} is {value!r}; accepted: {', '.join(accepted)}.")


def asked_about(
    dialogue: Dialogue,
    target: int,
    head: str = "turn",
    causes: Sequence[int] = (),
    no_cause: str = "whole",
    row: int = 0,
) -> Asked:
    """The text or texts asked about for one turn; turns after it are never read.

    Args:
        dialogue: The conversation.
        target: 0-based index of the turn.
        head: One of :data:`HEADS`.
        causes: Indices of its causal turns, for the forms that need them.
        no_cause: One of :data:`NO_CAUSE`.
        row: See :class:`Asked`.

    Raises:
        ConfigError: ``head`` or ``no_cause`` is unknown.
    """
    check_heads(head, no_cause)
    causal = [i for i in sorted(set(causes)) if 0 <= i <= target]
    has_causes = bool(causal) or head in ("turn", "context")
    chosen = _chosen(dialogue, target, head, causal, no_cause)
    texts = [clean_head(dialogue.turns[i].text) for i in chosen]
    if head != "each":
        texts = [" ".join(text for text in texts if text)]
    kept = tuple(dict.fromkeys(text for text in texts if text))
    return Asked(row, dialogue.id, target, dialogue.turns[target].text, kept, has_causes)


def _chosen(dialogue: Dialogue, target: int, head: str, causal: list[int], no_cause: str) -> list[int]:
    """Indices of the turns whose texts are asked about; at least one."""
    if head == "turn":
        return [target]
    if head == "context" or (not causal and no_cause == "whole"):
        chosen = list(range(target + 1))
    elif causal:
        chosen = causal
    else:
        speaker = [i for i in range(target + 1) if dialogue.turns[i].role == "speaker"]
        chosen = (speaker if no_cause == "all_speaker" else speaker[-1:]) or [target]
    return chosen[-1:] if head == "last_cause" else chosen
