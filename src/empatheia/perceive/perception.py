"""Perception by ONNX Runtime: the same answer alone and in any company."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from empatheia.giving_way import asking, give_way
from empatheia.perceive.affect import Affect, scored_words
from empatheia.perceive.model_file import BUNDLED, DANGER, FEELINGS, PROBE, TOKENIZER, PerceptionFile
from empatheia.perceive.phrases import cause_phrases
from empatheia.perceive.pieces import PieceRow, Pieces, alike, collate
from empatheia.records.dialogue import Turn

BATCH_PIECES, BATCH_ROWS = 512, 64
DANGER_PIECES, DANGER_ROWS = 160, 32
"""Of windows read in one pass, some hundredths of a second: between two passes others may pass."""


class Perception:
    """Reads what is felt at the newest turn, its side, the cause words, and danger.

    Args:
        file: Opened.
        pieces: Of its tokenizer.
    """

    part = "emotion"

    def __init__(self, file: PerceptionFile, pieces: Pieces) -> None:
        self.file, self.pieces = file, pieces
        self.name = file.facts.name

    @classmethod
    def open(cls, folder: str | Path, threads: int = 1) -> Perception:
        """From a folder; a probe text is read before it is trusted.

        Args:
            folder: Holds ``perception.onnx``, ``perception.json`` and ``tokenizer.json``.
            threads: Of the processor.

        Raises:
            CheckpointError: It is incomplete, damaged, foreign, of a newer format, or its weights are broken.
        """
        place = Path(folder)
        own = cls(PerceptionFile(place, threads), Pieces(place / TOKENIZER))
        with asking(None):  # nobody passes who would open it, too
            own.file.check_probe(own.probe())
        return own

    def probe(self) -> np.ndarray:
        """Probabilities of emotions and sides of the probe text. Shape: (35,)."""
        found = self.read([(Turn("speaker", PROBE),)])[0]
        return np.concatenate([found.emotions, found.sides])

    def read(
        self,
        conversations: Sequence[Sequence[Turn]],
        progress: Callable[[int], None] | None = None,
        *,
        spans: bool = False,
    ) -> list[Affect]:
        """What is felt at the last turn of each conversation, which is the speaker's.

        Args:
            conversations: Turns, the newest last.
            progress: Called with the number of conversations just finished.
            spans: Of :class:`~empatheia.perceive.affect.Perceiving`; the file scores the few words that matter always.
        """
        facts = self.file.facts
        rows = self.pieces.rows(conversations, facts.most_pieces)
        found: list[Affect | None] = [None] * len(rows)
        for numbers in alike([len(row["input_ids"]) for row in rows], BATCH_PIECES, BATCH_ROWS):
            give_way()
            batch = collate([rows[i] for i in numbers])
            emotion, side, words = self.file.run(batch, ("emotion", "side", "words"), FEELINGS)
            emotions = _softmax(emotion / facts.emotion_temperature)
            sides = _softmax(side / facts.side_temperature)
            scores = _sigmoid(words)
            for place, i in enumerate(numbers):
                found[i] = self._affect(conversations[i], rows[i], emotions[place], sides[place], scores[place])
            if progress is not None:
                progress(len(numbers))
        return [one for one in found if one is not None]

    def _affect(
        self, turns: Sequence[Turn], row: PieceRow, emotions: np.ndarray, sides: np.ndarray, scores: np.ndarray
    ) -> Affect:
        threshold = self.file.facts.word_threshold
        words = scored_words(turns, row["places"], scores)
        first = next((turn for turn, _, _ in row["places"] if turn >= 0), len(turns) - 1)
        phrases = cause_phrases(turns, words, threshold)
        return Affect(emotions, sides, words, phrases, threshold, first, row["is_cut"])

    def danger(self, texts: Sequence[str]) -> np.ndarray:
        """Probabilities of a risk and of a crisis.

        Args:
            texts: Normalised words of each, with blanks between them.

        Returns:
            Shape: (len(texts), 2).
        """
        rows = self.pieces.plain_rows(texts, self.file.facts.most_danger_pieces)
        out = np.zeros((len(rows), 2), np.float32)
        for numbers in alike([len(row["input_ids"]) for row in rows], DANGER_PIECES, DANGER_ROWS):
            give_way()
            (logits,) = self.file.run(collate([rows[i] for i in numbers]), ("danger",), DANGER)
            out[numbers] = _sigmoid(logits)
        return out


@lru_cache(maxsize=1)
def bundled_perception() -> Perception:
    """The perception that comes with the package, opened once in a process.

    Raises:
        CheckpointError: Its file is damaged.
        MissingDependencyError: ONNX Runtime is not installed.
    """
    return Perception.open(BUNDLED)


def _softmax(logits: np.ndarray) -> np.ndarray:
    raised = np.exp(logits - logits.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


def _sigmoid(logits: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-logits.astype(np.float64))).astype(np.float32)
