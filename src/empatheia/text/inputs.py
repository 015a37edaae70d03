"""What a caller hands in, made ready to be read: checked, cleaned without moving a character, cut to size.

Whatever is changed or doubtful is told in words, so that the answer can be marked as uncertain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from empatheia.errors import DataError
from empatheia.records.dialogue import Dialogue, Example, Span, Turn
from empatheia.text.readable import has_controls, readable
from empatheia.text.uncertainty import CONTROLS

MAX_CHARACTERS = 6000
"""Characters of a conversation that are read: the newest turns, and the end of a longer last one."""
MAX_TURNS = 200


@dataclass(frozen=True, slots=True)
class ReadyInput:
    """A conversation ready to be encoded.

    Attributes:
        turns: As given; offsets of results index these.
        example: What is encoded: cleaned, the newest turns, the end of a long last turn.
        n_skipped: Turns in front that were left out; added to the turn numbers of results.
        shift: Characters left out in front of the last turn; added to its offsets.
        doubts: What was replaced.
    """

    turns: tuple[Turn, ...]
    example: Example
    n_skipped: int
    shift: int
    doubts: tuple[str, ...]

    def located(self, span: Span) -> Span:
        """A span of the encoded example as a span of ``turns``."""
        shift = self.shift if span.turn == len(self.example.context) - 1 else 0
        if not shift and not self.n_skipped:
            return span
        return Span(span.turn + self.n_skipped, span.start + shift, span.end + shift, span.score)


def unread(n_turns_lost: int, first: int, turns: Sequence[Turn]) -> list[str]:
    """What of a conversation was not read, in words.

    Args:
        n_turns_lost: Turns in front that were left out.
        first: The first character of the newest turn that was read.
        turns: As given.

    >>> unread(0, 2, [Turn("speaker", "I am sad.")])
    ['long text: only its end was read, 7 of 9 characters']
    """
    reasons = []
    if n_turns_lost:
        reasons.append(f"long conversation: the first {n_turns_lost:,} of {len(turns):,} turns were not read")
    if first:
        n = len(turns[-1].text)
        reasons.append(f"long text: only its end was read, {n - first:,} of {n:,} characters")
    return reasons


def as_dialogue(item: object) -> Dialogue:
    """A text as a conversation of one speaker turn; a conversation as itself, after checks.

    Raises:
        DataError: It is of another type, has no turn, ends with the listener, or a turn is empty.
    """
    item = as_conversation(item)
    if item.turns[-1].role != "speaker":
        raise DataError(
            f"the conversation ends with a listener turn (number {len(item.turns)}), which needs no answer."
            " End it with what the speaker says."
        )
    return item


def as_conversation(item: object) -> Dialogue:
    """As :func:`as_dialogue`, for conversations that need no answer: whoever speaks last, or alone.

    Raises:
        DataError: It is of another type, has no turn, or a turn is empty.
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
    return item


def up_to(item: object, target: int, *, listeners: bool = False, first: int = 0) -> Dialogue:
    """A conversation cut behind one of its turns, so that this turn is what is understood.

    Args:
        item: A text or a conversation.
        target: Number of the turn, counted from ``first``.
        listeners: Whether it may be a listener's turn.
        first: The number of the first turn.

    Raises:
        DataError: See :func:`as_conversation`; or there is no such turn, or it is the listener's.

    >>> up_to(Dialogue.of("I passed!", "Well done.", "Thanks."), 0).turns
    (Turn(role='speaker', text='I passed!'),)
    """
    dialogue = as_conversation(item)
    known = [i + first for i, turn in enumerate(dialogue.turns) if listeners or turn.role == "speaker"]
    if target not in known:
        kind = "a turn" if listeners else "a speaker turn"
        raise DataError(f"target is {target}; accepted: {kind}, one of {', '.join(map(str, known)) or 'none'}.")
    return replace(dialogue, turns=dialogue.turns[: target - first + 1])


def prepare(item: object) -> ReadyInput:
    """Checks, cleans and cuts one input.

    Args:
        item: A text or a conversation.

    Raises:
        DataError: See :func:`as_dialogue`.
    """
    dialogue = as_dialogue(item)
    texts = [readable(turn.text) for turn in dialogue.turns[-MAX_TURNS:]]
    is_cleaned = any(has_controls(turn.text) for turn in dialogue.turns[-MAX_TURNS:])
    last = texts[-1].rstrip()
    shift = max(0, len(last) - MAX_CHARACTERS)
    if shift:
        blank = last.find(" ", shift)  # begin with a whole word where there is one near
        shift = blank + 1 if 0 <= blank < shift + 200 else shift
    texts[-1] = last[shift:]
    first, room = len(texts) - 1, MAX_CHARACTERS - len(texts[-1])
    while first > 0 and len(texts[first - 1]) <= room:
        first -= 1
        room -= len(texts[first])
    n_skipped = len(dialogue.turns) - len(texts) + first
    turns = dialogue.turns[n_skipped:]
    context = tuple(Turn(turn.role, text) for turn, text in zip(turns, texts[first:], strict=True))
    doubts = (CONTROLS,) if is_cleaned else ()
    return ReadyInput(dialogue.turns, Example(context, None, dialogue.id), n_skipped, shift, doubts)
