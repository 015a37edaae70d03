"""What marked cause words are worth: F1 beside what reads no word, and RECCON's spans inside causal turns.

Inside a turn that is known to be causal RECCON's gold is most of the words, so F1 alone rewards marking all of them.
Beside it stand precision, the share marked, the area under the curve inside the turn, and three baselines that read no
word: all words, the later half of them, later words first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from empatheia.perceive.affect import Affect
from empatheia.records.dialogue import Span, Turn
from empatheia_research.corpora import reccon

Row = Sequence[tuple[float, bool]]
"""Score and gold flag of each word, in reading order: of an item, or of one of its turns."""
Read = Callable[[Sequence[Sequence[Turn]]], Sequence[Affect]]


def word_scores(rows: Sequence[Row], threshold: float) -> dict[str, Any]:
    """Precision, recall and F1 in percent over all words, the share marked, the share of gold, AUC inside a row.

    Args:
        rows: See :data:`Row`.
        threshold: From which score on a word counts as marked.
    """
    flat = [pair for row in rows for pair in row]
    gold = sum(flag for _, flag in flat)
    marked = [[(score >= threshold, flag) for score, flag in row] for row in rows]
    later = [[(i >= len(row) // 2, flag) for i, (_, flag) in enumerate(row)] for row in rows]
    in_order = [[(float(i), flag) for i, (_, flag) in enumerate(row)] for row in rows]
    return {
        **marked_scores(marked),
        "share gold": round(100 * gold / max(1, len(flat)), 2),
        "auc inside": area_inside(rows),
        "f1 of marking all": round(200 * gold / max(1, len(flat) + gold), 2),
        "f1 of the later half": marked_scores(later)["f1"],
        "auc of later words first": area_inside(in_order),
    }


def marked_scores(rows: Sequence[Sequence[tuple[bool, bool]]]) -> dict[str, float]:
    """F1, precision, recall and share marked in percent, over all words.

    Args:
        rows: Whether each word is marked, and whether it is gold.
    """
    flat = [pair for row in rows for pair in row]
    marked, gold = sum(mark for mark, _ in flat), sum(flag for _, flag in flat)
    hits = sum(mark and flag for mark, flag in flat)
    return {
        "f1": round(200 * hits / max(1, marked + gold), 2),
        "precision": round(100 * hits / max(1, marked), 2),
        "recall": round(100 * hits / max(1, gold), 2),
        "share marked": round(100 * marked / max(1, len(flat)), 2),
    }


def area_inside(rows: Sequence[Row]) -> float | None:
    """Mean area under the curve inside the rows that have gold words and others; None if there is no such row."""
    areas = [area for row in rows if (area := _area(row)) is not None]
    return round(float(np.mean(areas)), 4) if areas else None


def _area(row: Row) -> float | None:
    """Area under the curve of one row: how often a gold word is above another, ties half."""
    gold = np.array([score for score, flag in row if flag])
    other = np.array([score for score, flag in row if not flag])
    if not len(gold) or not len(other):
        return None
    return float((gold[:, None] > other).mean() + 0.5 * (gold[:, None] == other).mean())


def best_threshold(rows: Sequence[Row]) -> float:
    """The threshold with the best word F1, of 5 to 95 hundredths; 0.5 where no row has gold words."""
    if not any(flag for row in rows for _, flag in row):
        return 0.5
    scores = np.array([score for row in rows for score, _ in row])
    gold = np.array([flag for row in rows for _, flag in row])

    def f1(threshold: float) -> float:
        marked = scores >= threshold
        return round(200 * float((marked & gold).sum()) / max(1, int(marked.sum() + gold.sum())), 2)

    return max((t / 100 for t in range(5, 96)), key=f1)


def flags(words: Sequence[Span], spans: Sequence[Span]) -> list[bool]:
    """Whether each word shares a character with a span of its turn."""
    return [any(s.turn == w.turn and s.start < w.end and w.start < s.end for s in spans) for w in words]


def pairs(words: Sequence[Span], spans: Sequence[Span]) -> list[tuple[float, bool]]:
    """Score and gold flag of each word."""
    return [(word.score or 0.0, flag) for word, flag in zip(words, flags(words, spans), strict=True)]


def reccon_rows(read: Read, split: str, root: Path | None = None) -> tuple[list[Row], dict[str, int]]:
    """A row for each of RECCON's causal turns that the target's speaker says; the history is read up to the target.

    Causal turns of the other speaker are counted and left out: no cause word is ever marked there.

    Args:
        read: Conversations to what is perceived at their last turn.
        split: Of RECCON.
        root: Folder of corpora; None = EMPATHEIA_DATA, then the download cache.

    Returns:
        Rows, and counts: ``turns``, ``of the listener``, ``not read`` (it did not fit).
    """
    examples, notes = reccon.as_examples(split, root)
    found = read([example.context for example in examples])
    rows: list[Row] = []
    counts = {"turns": 0, "of the listener": 0, "not read": 0}
    for example, one in zip(examples, found, strict=True):
        note = notes[example.dialogue_id, len(example.context) - 1]
        for turn in sorted({span.turn for span in note.spans if span.turn < len(example.context)}):
            words = [word for word in one.words if word.turn == turn]
            is_own = example.context[turn].role == "speaker"
            counts["turns" if is_own and words else "not read" if is_own else "of the listener"] += 1
            if words:
                rows.append(pairs(words, [span for span in note.spans if span.turn == turn]))
    return rows, counts


def reccon_scores(read: Read, split: str, root: Path | None = None) -> dict[str, Any]:
    """Word scores inside RECCON's causal turns, the threshold chosen for them on its valid part.

    Returns:
        ``reccon words: ...`` of :func:`word_scores` over all such turns, and ``reccon words, part of the turn: ...``
        over those in which not every word is gold, both at the ``threshold`` that is best on valid.
    """
    valid, _ = reccon_rows(read, "valid", root)
    rows, counts = reccon_rows(read, split, root)
    if not rows:  # it finds no words
        return {}
    out: dict[str, Any] = {}
    for name, keep in (
        ("reccon words", lambda row: True),
        ("reccon words, part of the turn", lambda row: not all(flag for _, flag in row)),
    ):
        threshold = best_threshold([row for row in valid if keep(row)])
        kept = [row for row in rows if keep(row)]
        scores: Mapping[str, Any] = {"threshold": threshold, **word_scores(kept, threshold), "turns": len(kept)}
        out |= {f"{name}: {key}": value for key, value in scores.items()}
    out["reccon words: turns of the listener, left out"] = counts["of the listener"]
    return out
