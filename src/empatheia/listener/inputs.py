"""What a caller hands in, made ready to be read: checked, cleaned without moving a character, cut to size.

Whatever is changed or doubtful is told in words, so that the answer can be marked as uncertain.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from empatheia.dialogue import Dialogue, Example, Turn
from empatheia.errors import DataError

MAX_CHARACTERS = 6000
"""Characters of a conversation that are read; the newest turns first."""
MAX_TURNS = 200

_WHITE_CONTROLS = "\t\n\r\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029"
_CONTROLS = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
_WHITE = str.maketrans(dict.fromkeys(_WHITE_CONTROLS, " "))


@dataclass(frozen=True, slots=True)
class ReadyInput:
    """A conversation ready to be encoded.

    Attributes:
        turns: As given; offsets of results index these.
        example: What is encoded: cleaned, the newest turns; same offsets inside each turn.
        n_skipped: Turns in front that were left out, to be added to the turn numbers of results.
        doubts: What was left out or replaced.
    """

    turns: tuple[Turn, ...]
    example: Example
    n_skipped: int
    doubts: tuple[str, ...]


def as_dialogue(item: Any) -> Dialogue:
    """A text as a conversation of one speaker turn; a conversation as itself, after checks.

    Raises:
        DataError: It is of another type, has no turn, ends with the listener, or a turn is empty.
    """
    if isinstance(item, str):
        item = Dialogue("", (Turn("speaker", item),))
    if not isinstance(item, Dialogue):
        raise DataError(f"cannot read a {type(item).__name__}; accepted: a text, a Dialogue, or a list of these.")
    if not item.turns:
        raise DataError("the conversation has no turns; give at least one speaker turn.")
    for number, turn in enumerate(item.turns, 1):
        if not isinstance(turn.text, str):
            raise DataError(f"turn {number} holds a {type(turn.text).__name__}; its text must be a string.")
        if not readable(turn.text).strip():
            what = "the text" if len(item.turns) == 1 else f"turn {number} of {len(item.turns)}"
            how = "empty" if not turn.text else "only white space or control characters"
            raise DataError(f"{what} is {how}; write at least one word.")
    if item.turns[-1].role != "speaker":
        raise DataError(
            f"the conversation ends with a listener turn (number {len(item.turns)}); there is nothing to answer."
            " End it with what the speaker says."
        )
    return item


def readable(text: str) -> str:
    """The text with every control, direction and surrogate character as a blank: same length, same offsets."""
    return _CONTROLS.sub(" ", text.translate(_WHITE))


def prepare(item: Any) -> ReadyInput:
    """Checks, cleans and cuts one input.

    Args:
        item: A text or a conversation.

    Raises:
        DataError: See :func:`as_dialogue`.
    """
    dialogue = as_dialogue(item)
    doubts: list[str] = []
    kept: list[Turn] = []
    room = MAX_CHARACTERS
    for turn in reversed(dialogue.turns[-MAX_TURNS:]):
        text = turn.text
        if not kept and len(text) > room:
            text = text[:room]
            cut = max(text.rfind(" "), room // 2)
            text = text[:cut]
            doubts.append(f"long text: only the first {cut:,} of {len(turn.text):,} characters were read")
        elif len(text) > room:
            break
        if _CONTROLS.search(text):
            doubts.append("control characters were ignored")
        room -= len(text)
        kept.append(Turn(turn.role, readable(text)))
    n_skipped = len(dialogue.turns) - len(kept)
    if n_skipped:
        doubts.append(f"long conversation: the first {n_skipped:,} of {len(dialogue.turns):,} turns were not read")
    example = Example(tuple(reversed(kept)), None, dialogue.id)
    return ReadyInput(dialogue.turns, example, n_skipped, tuple(dict.fromkeys(doubts)))
