"""Dialogues out of turns: MEED2's rule cuts where more than five seconds pass between two turns (section 3.1).

Exactly five seconds do not cut, a missing time does not, and the end of a file always does. The rule never looks inside
of a turn. In chats, where people answer after minutes, the pause is another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from empatheia_people.curation.records import Script, ScriptDialogue, ScriptTurn

MAX_GAP_MS = 5_000
CHAT_GAP_MS = 3_600_000


def is_cut(before: ScriptTurn, after: ScriptTurn, max_gap_ms: int, backwards_ms: int | None = None) -> bool:
    """Whether a new dialogue begins between two turns.

    Args:
        before: The earlier one.
        after: The next one.
        max_gap_ms: The longest pause that does not cut.
        backwards_ms: Cut where times jump back by more than this, as between badly joined discs; None = never.
    """
    if before.dialogue != after.dialogue:
        return True
    if before.end is None or after.start is None:
        return False
    gap = after.start - before.end
    return gap > max_gap_ms or (backwards_ms is not None and -gap > backwards_ms)


def dialogues_of(
    script: Script,
    turns: Sequence[ScriptTurn],
    max_gap_ms: int = MAX_GAP_MS,
    chat_gap_ms: int = CHAT_GAP_MS,
    backwards_ms: int | None = None,
    max_turns: int | None = None,
) -> Iterator[ScriptDialogue]:
    """The dialogues of a file, numbered from 0.

    Args:
        script: Says of which film and of which kind it is.
        turns: In order.
        max_gap_ms: The longest pause inside of a dialogue of a subtitle.
        chat_gap_ms: The same in a chat; dialogues that the source itself names are never cut by it.
        backwards_ms: See :func:`is_cut`.
        max_turns: Cut longer dialogues into parts of so many turns; None = none is too long.
    """
    gap = max_gap_ms if script.kind == "subtitle" else chat_gap_ms
    start = number = 0
    for i in range(1, len(turns) + 1):
        is_known = i < len(turns) and turns[i].dialogue == turns[i - 1].dialogue >= 0
        is_full = max_turns is not None and i - start >= max_turns
        if i == len(turns) or is_full or (not is_known and is_cut(turns[i - 1], turns[i], gap, backwards_ms)):
            yield ScriptDialogue(script.movie, script.subtitle, f"{number:05}", tuple(turns[start:i]))
            start, number = i, number + 1
