"""What responders read of a conversation."""

from __future__ import annotations

from empatheia.listener.steps.settings import MemorySettings
from empatheia.records.dialogue import Dialogue


def read_by_responders(dialogue: Dialogue, memory: MemorySettings) -> Dialogue:
    """The turns that responders read; the newest speaker turn is always the last.

    >>> talk = Dialogue.of("One.", "Two.", "Three.", "Four.", "Five.")
    >>> cut = read_by_responders(talk, MemorySettings(history="speaker_turns", newest=2))
    >>> [turn.text for turn in cut.turns]
    ['Three.', 'Five.']
    """
    turns = dialogue.turns
    if memory.history == "speaker_turns":
        turns = tuple(turn for turn in turns if turn.role == "speaker")
    if memory.history != "all":
        turns = turns[-memory.newest :]
    whole = len(turns) == len(dialogue.turns)
    return Dialogue(dialogue.id if whole else "", turns)  # what is filed under an id is of the whole conversation
