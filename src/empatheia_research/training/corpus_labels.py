"""Runs annotators over EmpatheticDialogues: causes, with their agreement with the released labels; mechanisms.

For every listener turn the last speaker turn before it is the target, read with its own prefix only, so that no label
knows the future (the released labels were made once a conversation; specification of Gao et al., trap 13).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from empatheia.analysis.component import COMPONENTS
from empatheia.errors import ConfigError
from empatheia.metrics import METRICS
from empatheia.records.dialogue import CauseAnnotation, Dialogue
from empatheia.taxonomy import EMOTION_TO_RECCON, MECHANISMS
from empatheia_research.corpora import CORPORA, empathetic_dialogues, recec
from empatheia_research.understanding.causes.entailment import CauseEntailment, annotate
from empatheia_research.understanding.causes.entailment_items import items_from_dialogue
from empatheia_research.understanding.labels.classifier import read_model, read_tokenizer
from empatheia_research.understanding.mechanisms.identifier import MechanismsOfTurns

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
    model = read_model(CauseEntailment, folder)
    tokenizer = read_tokenizer(folder)
    mapping = EMOTION_TO_RECCON if emotion_words == "reccon" else None
    items = [item for d in dialogues for item in items_from_dialogue(d, per_prefix=True, emotion_map=mapping)]
    return annotate(model, tokenizer, items, batch_tokens=batch_tokens, progress=progress)


def detect_causes(
    folder: str | Path,
    emotion: str | Path | None,
    dialogues: Sequence[Dialogue],
    *,
    progress: Callable[[int], None] | None = None,
) -> list[CauseAnnotation]:
    """Causes of each speaker turn, found without reading a label: what a side input says of a text it must answer.

    Args:
        folder: A trained annotator.
        emotion: A model of part ``emotion`` that says what each turn expresses; None = the annotator reads ``neutral``.
        dialogues: Their emotion labels are not read.
        progress: Called with the number of conversations just finished.
    """
    told = None if emotion is None else COMPONENTS.get("emotion").load(emotion)
    component = COMPONENTS.get("causes").load(folder, emotion=told)
    bare = [replace(dialogue, emotion=None, situation=None) for dialogue in dialogues]
    return [note for own in component.annotate(bare, progress=progress) for note in own]


def agreement_with_released(notes: Sequence[CauseAnnotation], split: str) -> dict[str, object]:
    """Turn-level agreement with RecEC's labels where both explain the conversation's last speaker turn.

    Returns:
        Cause precision, recall and F1 against the released labels, raw agreement and Cohen's kappa, and n; only
        ``conversations`` (0) where none of them is labelled there.

    Raises:
        MissingResourceError: RecEC is not here.
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
    if not gold:
        return {"conversations": 0}
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


def mechanism_levels(
    component: MechanismsOfTurns, dialogues: Sequence[Dialogue], *, progress: Callable[[int], None] | None = None
) -> list[tuple[str, int, tuple[int, ...]]]:
    """What each listener turn does, as Chen et al. (2022, 3.2) label the replies they learn from.

    Args:
        component: Of part ``mechanisms``; it reads the reply and the speaker turn before it.
        dialogues: To label.
        progress: Called with the number of conversations just finished.

    Returns:
        Dialogue id, turn and a level (0 to 2) for each mechanism of the taxonomy, one a reply.

    Raises:
        ConfigError: The component lacks a mechanism.
    """
    if tuple(component.mechanisms) != tuple(MECHANISMS):
        raise ConfigError(
            f"{component.name} knows {', '.join(component.mechanisms)}; needed: {', '.join(MECHANISMS)}. Use the model"
            " of recipes/epitome/shared.yaml, or three folders joined by commas."
        )
    rows = []
    for dialogue, records in zip(dialogues, component.annotate(dialogues, progress=progress), strict=True):
        by_turn: dict[int, dict[str, int]] = {}
        for record in records:
            by_turn.setdefault(record.turn, {})[record.name] = record.level
        rows += [(dialogue.id, turn, tuple(own[name] for name in MECHANISMS)) for turn, own in sorted(by_turn.items())]
    return rows


def shares_shown(rows: Sequence[tuple[str, int, Sequence[int]]]) -> dict[str, float]:
    """Per cent of replies that show each mechanism, weakly or strongly."""
    return {
        name: round(100 * sum(levels[i] > 0 for _, _, levels in rows) / max(1, len(rows)), 2)
        for i, name in enumerate(MECHANISMS)
    }


def load_splits(splits: Sequence[str], corpus: str = empathetic_dialogues.NAME) -> dict[str, list[Dialogue]]:
    """Dialogues of a corpus by split."""
    return {split: list(CORPORA.get(corpus)(split).dialogues) for split in splits}
