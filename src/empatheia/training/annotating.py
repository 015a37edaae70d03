"""Runs the cause annotator over EmpatheticDialogues and measures its agreement with the released labels.

For every listener turn the last speaker turn before it is the target, read with its own prefix only, so that no label
knows the future (the released labels were made once a conversation; specification of Gao et al., trap 13).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer

from empatheia.corpora import empathetic_dialogues, recec
from empatheia.dialogue import CauseAnnotation, Dialogue
from empatheia.metrics import METRICS
from empatheia.taxonomy import EMOTION_TO_RECCON
from empatheia.understanding.cause_entailment import CauseEntailment, annotate, items_from_dialogue

SPLITS = ("train", "valid", "test")


def annotate_dialogues(
    folder: str | Path,
    dialogues: Sequence[Dialogue],
    *,
    emotion_words: str = "reccon",
    progress: Callable[[int, int], None] | None = None,
    batch_tokens: int = 4096,
) -> list[CauseAnnotation]:
    """Causes for each prefix of each dialogue.

    Args:
        folder: A trained annotator.
        dialogues: With emotion labels.
        emotion_words: ``reccon`` reads the nearest of RECCON's six emotions, ``verbatim`` the 32-way label.
        progress: Called with (done, all).
        batch_tokens: Padded pieces a pass.
    """
    model = CauseEntailment.from_pretrained(str(folder))
    tokenizer: Any = AutoTokenizer.from_pretrained(str(folder))
    mapping = EMOTION_TO_RECCON if emotion_words == "reccon" else None
    items = [item for d in dialogues for item in items_from_dialogue(d, per_prefix=True, emotion_map=mapping)]
    return annotate(model, tokenizer, items, batch_tokens=batch_tokens, progress=progress)


def agreement_with_released(notes: Sequence[CauseAnnotation], split: str) -> dict[str, Any]:
    """Turn-level agreement with RecEC's labels where both explain the conversation's last speaker turn.

    Returns:
        Cause precision, recall and F1 against the released labels, raw agreement and Cohen's kappa, and n.
    """
    released = {note.dialogue_id: note for note in recec.load(split).annotations}
    ours = {(note.dialogue_id, note.target): note for note in notes}
    predicted, gold = [], []
    for key, note in released.items():
        mine = ours.get((key, note.target))
        if mine is None:
            continue
        predicted.append([int(i in mine.turns) for i in range(note.target + 1)])
        gold.append([int(i in note.turns) for i in range(note.target + 1)])
    cause = METRICS.get("cause_f1_turn")()
    cause.update(predicted, gold)
    score = cause.compute(n_resamples=1000)
    flat_p = [flag for row in predicted for flag in row]
    flat_g = [flag for row in gold for flag in row]
    same = sum(p == g for p, g in zip(flat_p, flat_g, strict=True)) / len(flat_g)
    p1, g1 = sum(flat_p) / len(flat_p), sum(flat_g) / len(flat_g)
    chance = p1 * g1 + (1 - p1) * (1 - g1)
    return {
        "cause_f1_turn": score.to_dict(),
        "raw_agreement": round(100 * same, 2),
        "cohen_kappa": round((same - chance) / (1 - chance), 4),
        "share_positive": {"ours": round(p1, 4), "released": round(g1, 4)},
        "conversations": len(gold),
        "turns": len(flat_g),
    }


def load_splits(splits: Sequence[str]) -> dict[str, list[Dialogue]]:
    """EmpatheticDialogues by split."""
    return {split: list(empathetic_dialogues.load(split).dialogues) for split in splits}
