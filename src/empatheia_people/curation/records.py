"""What flows through the curation: sentences with times, turns, dialogues."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

Kind = Literal["subtitle", "chat"]


class Sentence(NamedTuple):
    """One sentence of a subtitle file, or one message of a chat.

    Attributes:
        text: On one line; tokenised or not, as the source has it.
        start: Milliseconds from the beginning, None if the source does not say.
        end: As ``start``.
        first_block: Number of the subtitle block it begins in, -1 if there are none.
        last_block: Number of the block it ends in.
        speaker: Who says it, "" if unknown.
        dialogue: Number of the dialogue it belongs to where the source says so; below 0 it is of chat ``-1 - dialogue``
            of the file, in which pauses cut.
        is_emphasised: All of it is in italics or bold.
    """

    text: str
    start: int | None = None
    end: int | None = None
    first_block: int = -1
    last_block: int = -1
    speaker: str = ""
    dialogue: int = -1
    is_emphasised: bool = False


@dataclass(frozen=True, slots=True)
class Script:
    """What one file says.

    Attributes:
        movie: Identity of the film, episode or chat.
        subtitle: Identity of the file among those of its film.
        kind: Whether the speakers are to be found (``subtitle``) or known (``chat``).
        sentences: In file order.
        notes: What had to be mended to read it, to how often.
    """

    movie: str
    subtitle: str
    kind: Kind
    sentences: tuple[Sentence, ...]
    notes: tuple[tuple[str, int], ...] = ()

    def named(self, movie: str, subtitle: str) -> Script:
        """The same under another identity."""
        return replace(self, movie=movie, subtitle=subtitle)


class ScriptTurn(NamedTuple):
    """What one person says before another speaks.

    Attributes:
        text: Its sentences joined by a blank.
        start: Of its first sentence, in milliseconds; None if missing, even if a later sentence has one.
        end: Of its last sentence.
        speaker: "" if unknown.
        dialogue: See :class:`Sentence`.
        n_sentences: How many it is made of.
    """

    text: str
    start: int | None
    end: int | None
    speaker: str = ""
    dialogue: int = -1
    n_sentences: int = 1


@dataclass(frozen=True, slots=True)
class ScriptDialogue:
    """Turns that belong together.

    Attributes:
        movie: See :class:`Script`.
        subtitle: See :class:`Script`.
        ordinal: ``00012``, the number of the dialogue in its file; ``00012-1``: the second part of one that was split.
        turns: In order.
    """

    movie: str
    subtitle: str
    ordinal: str
    turns: tuple[ScriptTurn, ...]

    @property
    def key(self) -> str:
        """Its identity, by which the output is sorted and ties are broken."""
        return f"{self.movie}/{self.subtitle}/{self.ordinal}"
