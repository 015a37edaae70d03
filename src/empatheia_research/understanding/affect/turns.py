"""Conversations read by an :class:`AffectReader`: emotion, side, cause words and cause phrases of the newest turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from empatheia.giving_way import give_way
from empatheia.perceive.affect import Affect, named, scored_words
from empatheia.perceive.phrases import cause_phrases
from empatheia.records.analysis import TurnLabels
from empatheia.records.dialogue import Dialogue, Turn
from empatheia.resources import resolve_model
from empatheia_research.understanding.affect.reader import AffectPieces, AffectReader, read_facts
from empatheia_research.understanding.labels.classifier import Row, batches_of, row_lengths

BATCH_PIECES = 2048


class AffectOfTurns:
    """A loaded model that reads conversations; the same answer alone or among others.

    Args:
        model: Put into evaluation mode while it reads.
        reader: Made for it.
        name: For records.
    """

    part = "emotion"

    def __init__(self, model: AffectReader, reader: AffectPieces, name: str = "affect") -> None:
        self.model, self.reader, self.name = model, reader, name

    @classmethod
    def load(cls, folder: str | Path, device: str | torch.device | None = None) -> AffectOfTurns:
        """From a model folder or name.

        Raises:
            MissingResourceError: The folder or its base is not here.
            CheckpointError: The folder is incomplete, or belongs to another base.
        """
        path = resolve_model(folder)
        model, reader = AffectReader.open(path)
        if device is not None:
            cast(nn.Module, model).to(device)  # transformers hides what its own takes
        return cls(model, reader, str(read_facts(path).get("name", path.name)))

    @torch.inference_mode()
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
            spans: Words are scored as parts of whole cause spans, as RECCON has them, and not as the few that matter;
                a model whose word head does not tell the two apart scores them the same.
        """
        was_training = self.model.training
        self.model.eval()
        rows = self.reader.encode(conversations)
        found: list[Affect | None] = [None] * len(rows)
        for indices in batches_of(row_lengths(rows), None, BATCH_PIECES):
            give_way()
            batch = self.reader.collate([{**_inputs(rows[i]), "spans": spans} for i in indices])
            out = self.model(**{key: value.to(self.model.device) for key, value in batch.items()})
            emotions = _probabilities(out.logits)
            sides = _probabilities(out.side_logits)
            pieces = out.word_logits.float().sigmoid().cpu().numpy()
            for place, i in enumerate(indices):
                found[i] = self._affect(conversations[i], rows[i], emotions[place], sides[place], pieces[place])
            if progress is not None:
                progress(len(indices))
        self.model.train(was_training)
        return [one for one in found if one is not None]

    def _affect(
        self, turns: Sequence[Turn], row: Row, emotions: np.ndarray, sides: np.ndarray, pieces: np.ndarray
    ) -> Affect:
        threshold = float(self.model.config.word_threshold)
        words = scored_words(turns, row["places"], pieces)
        first = next((turn for turn, _, _ in row["places"] if turn >= 0), len(turns) - 1)
        phrases = cause_phrases(turns, words, threshold)
        return Affect(emotions, sides, words, phrases, threshold, first, row.get("is_cut", False))

    def annotate(
        self, dialogues: Sequence[Dialogue], *, batch_size: int = 32, progress: Callable[[int], None] | None = None
    ) -> list[tuple[TurnLabels, ...]]:
        """Part ``emotion``: one distribution for each speaker turn, read with the turns before it.

        Args:
            dialogues: Conversations; roles matter.
            batch_size: Not used; batches hold about :data:`BATCH_PIECES` pieces.
            progress: Called with the number of conversations just finished.
        """
        places = [[i for i, turn in enumerate(d.turns) if turn.role == "speaker"] for d in dialogues]
        prefixes = [d.turns[: i + 1] for d, own in zip(dialogues, places, strict=True) for i in own]
        found = iter(self.read(prefixes))
        out = []
        for own in places:
            rows = [(i, next(found)) for i in own]
            out.append(tuple(TurnLabels(i, named(one.emotions)) for i, one in rows))
            if progress is not None:
                progress(1)
        return out


def _inputs(row: Row) -> dict[str, Any]:
    return {key: row[key] for key in ("input_ids", "token_type_ids", "newest")}


def _probabilities(logits: Tensor) -> np.ndarray:
    return logits.float().softmax(-1).cpu().numpy()
