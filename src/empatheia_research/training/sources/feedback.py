"""The speaker's next turn, for systems whose discriminators read it (EmpDG); it never touches an example or an item.

It joins a batch here, behind everything that answers: neither evaluation nor a listener builds this collator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from empatheia.records.dialogue import Dialogue, Example
from empatheia.taxonomy import IGNORED
from empatheia_research.text.collation import EncodedExample, pad_rows
from empatheia_research.text.tokenizer import DialogueTokenizer


def answered(examples: Sequence[Example], dialogue: Dialogue) -> list[Example]:
    """EmpDG's choice: replies that the speaker answered, and the listener once more.

    The released code keeps contexts of three turns or more and steps back by one exchange: the last turn but one
    becomes the reply, the last the feedback. So a conversation's last listener turn is never a target.
    """
    return [example for example in examples if example.turn_index + 2 < len(dialogue.turns)]


class FeedbackCollator:
    """Adds ``feedback_ids`` and ``emotion_vocabulary`` to the batches of another collator.

    Args:
        inner: Builds the rest.
        tokenizer: Pieces of the next turns.
        dialogues: Where the next turns stand.
        emotion_vocabulary: True for pieces that are emotion words. Shape: ``(vocabulary,)``.
        max_pieces: Longest next turn kept.
    """

    def __init__(
        self,
        inner: Callable[[list[EncodedExample]], dict[str, Tensor]],
        tokenizer: DialogueTokenizer,
        dialogues: Iterable[Dialogue],
        emotion_vocabulary: Tensor,
        max_pieces: int = 128,
    ) -> None:
        self.inner = inner
        self.emotion_vocabulary = emotion_vocabulary
        found = [(d.id, i, turn.text) for d in dialogues for i, turn in enumerate(d.turns) if i > 1]
        pieces = tokenizer.encode_batch([text for *_, text in found])
        self.next_turns = {(id_, i - 1): cut.ids[:max_pieces] for (id_, i, _), cut in zip(found, pieces, strict=True)}

    def __call__(self, items: list[EncodedExample]) -> dict[str, Tensor]:
        """A batch; ``feedback_ids`` ``(batch, feedback)``, -100 for padding and throughout where there is none."""
        rows = [self.next_turns.get((item.dialogue_id, item.turn_index), []) for item in items]
        added = {"feedback_ids": pad_rows(rows, IGNORED), "emotion_vocabulary": self.emotion_vocabulary}
        return {**self.inner(items), **added}


def no_emotion_words(n_pieces: int) -> Tensor:
    """An emotion vocabulary without words, for a system that reads none. Shape: ``(vocabulary,)``."""
    return torch.zeros(n_pieces, dtype=torch.bool)
