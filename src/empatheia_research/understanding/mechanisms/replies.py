"""Levels of empathy's mechanisms in replies, in the exact form of Kim et al.'s evaluation (EPITOME as a metric).

The classifier reads the last speaker turn alone (not the conversation) and the reply, both lower-cased and cut to 64
pieces, without dropout; the level is the most probable one. It was trained on long posts of peer support: set the gold
replies and a trivial reply beside every system.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from empatheia.errors import DataError
from empatheia.records.dialogue import Dialogue, Turn

if TYPE_CHECKING:
    from empatheia_research.understanding.mechanisms.identifier import MechanismsOfTurns

TRIVIAL: Mapping[str, str] = MappingProxyType({"trivial: sorry": "I'm sorry to hear that.", "trivial: why": "Why?"})
"""Replies that fit anything, by the name their scores stand under."""


def reply_levels(
    component: MechanismsOfTurns, dialogues: Sequence[Dialogue], replies: Sequence[str], *, batch_size: int = 32
) -> dict[str, np.ndarray]:
    """The level of each mechanism in each reply; an empty reply has level 0.

    Args:
        component: :class:`empatheia_research.understanding.mechanisms.identifier.MechanismsOfTurns`.
        dialogues: What the replies answer: the last speaker turn counts.
        replies: Plain text, as a person reads it (no tokens set apart by blanks).
        batch_size: Most replies in one pass.

    Returns:
        Mechanism to levels 0, 1, 2. Shape of each: ``(n_replies,)``.

    Raises:
        DataError: Numbers differ, or a conversation has no speaker turn.
    """
    if len(dialogues) != len(replies):
        raise DataError(f"{len(dialogues)} conversations for {len(replies)} replies; one each.")
    pairs = []
    for dialogue, reply in zip(dialogues, replies, strict=True):
        spoken = [turn for turn in dialogue.turns if turn.role == "speaker"]
        if not spoken:
            raise DataError(f"conversation {dialogue.id!r} has no speaker turn; there is nothing a reply answers.")
        pairs.append(Dialogue("", (spoken[-1], Turn("listener", reply))))
    records = component.annotate(pairs, batch_size=batch_size)
    return {
        name: np.array([next(r.level for r in own if r.name == name) for own in records], dtype=int)
        for name in component.mechanisms
    }
