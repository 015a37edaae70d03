"""Measures the detector on labelled texts: recall and false alarms by kind, with Wilson intervals, and its time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np

from empatheia.care.labelled import labelled_records, with_typos
from empatheia.errors import DataError
from empatheia.reading import Json
from empatheia.records.danger import LEVELS, Assessment, Assessor, check_name
from empatheia.records.dialogue import ROLES, Dialogue, Turn

BEFORE = (
    "The bus was late again.",
    "That's annoying. Did you get to work in time?",
    "Just about. My boss had brought biscuits.",
    "Nice of them. How was the day?",
    "Long. I answered forty emails about a printer.",
    "Forty! What was wrong with it?",
    "Out of paper, mostly.",
    "Oh dear. And how was the evening?",
    "I cooked lentils and watched the quiz.",
    "Did you know any answers?",
)
"""Ten turns of other talk, put in front with ``n_before``."""
ACCEPTED = "JSON lines with text (or turns, speaker first), level, and, if you like, kind and id"


@dataclass(frozen=True, slots=True)
class CareItem:
    """One labelled text or conversation.

    Attributes:
        turns: Texts, speaker first and last.
        level: ``none``, ``concern`` or ``crisis``.
        kind: What the counts are split by.
        id: Its name, or its number.
    """

    turns: tuple[str, ...]
    level: str
    kind: str
    id: str


@dataclass(frozen=True, slots=True)
class Share:
    """``found`` of ``n``, with its 95 % Wilson interval.

    >>> Share(380, 400).interval
    (0.924, 0.967)
    """

    found: int
    n: int

    @property
    def value(self) -> float | None:
        """None of nothing."""
        return self.found / self.n if self.n else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 %, after Wilson (1927)."""
        if not self.n:
            return None
        z, p = 1.959964, self.found / self.n
        middle, spread = p + z * z / (2 * self.n), z * (p * (1 - p) / self.n + z * z / (4 * self.n**2)) ** 0.5
        scale = 1 + z * z / self.n
        return round(max(0.0, (middle - spread) / scale), 3), round(min(1.0, (middle + spread) / scale), 3)

    def __str__(self) -> str:
        if self.interval is None:
            return "none"
        low, high = self.interval
        return f"{self.found}/{self.n} = {100 * self.found / self.n:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"

    def to_dict(self) -> dict[str, object]:
        """Plain JSON-ready data."""
        return {"found": self.found, "n": self.n, "share": self.value, "interval": self.interval}


class Told(TypedDict):
    """A text that was taken for something else."""

    id: str
    kind: str
    text: str
    score: float
    reasons: list[str]


@dataclass(frozen=True, slots=True)
class CareReport:
    """What was measured.

    Attributes:
        recall: Of texts with a risk, those flagged (concern or crisis).
        crisis_recall: Of crises, those found as crises.
        false_alarms: Of texts without a risk, those flagged.
        false_crises: Of texts without a risk, those taken for a crisis.
        by_kind: Kind to the share flagged.
        missed: Id, kind, text of every risk that was not flagged.
        alarmed: The same of every false alarm, with its reasons.
        milliseconds: Median and 95th percentile of a text.
        thresholds: Of the classifier.
        notes: Its training and validation.
    """

    recall: Share
    crisis_recall: Share
    false_alarms: Share
    false_crises: Share
    by_kind: dict[str, Share]
    missed: tuple[Told, ...]
    alarmed: tuple[Told, ...]
    milliseconds: tuple[float, float]
    thresholds: dict[str, float]
    notes: dict[str, Json]

    def to_dict(self) -> dict[str, object]:
        """Plain JSON-ready data."""
        return {
            "recall": self.recall.to_dict(),
            "crisis_recall": self.crisis_recall.to_dict(),
            "false_alarms": self.false_alarms.to_dict(),
            "false_crises": self.false_crises.to_dict(),
            "by_kind": {kind: share.to_dict() for kind, share in self.by_kind.items()},
            "missed": list(self.missed),
            "alarmed": list(self.alarmed),
            "milliseconds": {"p50": self.milliseconds[0], "p95": self.milliseconds[1]},
            "thresholds": dict(self.thresholds),
            "validation": self.notes,
        }


def read_items(path: str | Path) -> list[CareItem]:
    """Labelled texts of a file.

    Raises:
        DataError: The file or a line cannot be used; says which.
    """
    out: list[CareItem] = []
    for number, (where, record) in enumerate(labelled_records(path, ACCEPTED), 1):
        turns = record.get("turns", [record.get("text")])
        if not isinstance(turns, list) or not turns or not all(isinstance(turn, str) for turn in turns):
            raise DataError(f"{where}no text; accepted: {ACCEPTED}.")
        if len(turns) % 2 == 0:
            raise DataError(f"{where}{len(turns)} turns, so the last is the listener's; end with the speaker.")
        level = check_name(record.get("level"), LEVELS, where + "level")
        kinds = record.get("kinds") or []
        kind = str(
            record.get("kind") or (kinds[0] if isinstance(kinds, list) and kinds else record.get("voice") or level)
        )
        out.append(CareItem(tuple(map(str, turns)), level, kind, str(record.get("id", number))))
    if not out:
        raise DataError(f"{path} holds no text; accepted: {ACCEPTED}.")
    return out


def evaluate(
    items: Sequence[CareItem],
    detector: Assessor | None = None,
    *,
    typos: float = 0.0,
    n_before: int = 0,
    seed: int = 1,
) -> CareReport:
    """Assesses every item and counts.

    Args:
        items: What to measure on.
        detector: None = the shipped one.
        typos: Share of words with a slip.
        n_before: Turns of other talk put in front, 0 to 10, an even number.
        seed: Of the slips.

    Raises:
        DataError: ``typos`` or ``n_before`` is out of range.
    """
    from empatheia.care.detector import Detector

    _check_settings(typos, n_before)
    asked: Assessor = Detector() if detector is None else detector
    found: list[Assessment] = []
    took: list[float] = []
    for item in items:
        dialogue = _conversation(item, typos, n_before, seed)
        begin = time.perf_counter()
        found.append(asked.assess(dialogue))
        took.append(1000.0 * (time.perf_counter() - begin))
    pairs = list(zip(items, found, strict=True))
    risks = [pair for pair in pairs if pair[0].level != "none"]
    harmless = [pair for pair in pairs if pair[0].level == "none"]
    crises = [pair for pair in risks if pair[0].level == "crisis"]
    return CareReport(
        _share(risks, _is_flagged),
        _share(crises, _is_crisis),
        _share(harmless, _is_flagged),
        _share(harmless, _is_crisis),
        {**_by_kind(risks), **{f"no risk: {kind}": share for kind, share in _by_kind(harmless).items()}},
        tuple(_row(item, assessment) for item, assessment in risks if not assessment.is_flagged),
        tuple(_row(item, assessment) for item, assessment in harmless if assessment.is_flagged),
        (round(float(np.median(took)), 3), round(float(np.percentile(took, 95)), 3)),
        dict(getattr(asked, "thresholds", {})),
        _notes(asked),
    )


def _check_settings(typos: float, n_before: int) -> None:
    if not 0.0 <= typos <= 1.0:
        raise DataError(f"typos is {typos}; accepted: a share from 0 to 1.")
    if n_before not in range(0, len(BEFORE) + 1, 2):
        raise DataError(f"n_before is {n_before}; accepted: an even number from 0 to {len(BEFORE)}.")


def _notes(detector: object) -> dict[str, Json]:
    """Training and validation of the classifier that has the last word; empty for a detector without one."""
    judge = getattr(detector, "encoder", None) or getattr(detector, "classifier", None)
    return dict(getattr(judge, "notes", {}))


def _conversation(item: CareItem, typos: float, n_before: int, seed: int) -> Dialogue:
    """An item with slips, and other talk in front of it."""
    texts = [*BEFORE[:n_before], *(with_typos(text, typos, seed) if typos else text for text in item.turns)]
    return Dialogue(item.id, tuple(Turn(ROLES[i % 2], text) for i, text in enumerate(texts)))


def _is_flagged(assessment: Assessment) -> bool:
    return assessment.is_flagged


def _is_crisis(assessment: Assessment) -> bool:
    return assessment.level == "crisis"


def _by_kind(pairs: Sequence[tuple[CareItem, Assessment]]) -> dict[str, Share]:
    """The share flagged of every kind, in the order of the alphabet."""
    kinds = sorted({item.kind for item, _ in pairs})
    return {kind: _share([pair for pair in pairs if pair[0].kind == kind], _is_flagged) for kind in kinds}


def _share(pairs: Iterable[tuple[CareItem, Assessment]], is_found: Callable[[Assessment], bool]) -> Share:
    results = [is_found(assessment) for _, assessment in pairs]
    return Share(sum(results), len(results))


def _row(item: CareItem, assessment: Assessment) -> Told:
    return {
        "id": item.id,
        "kind": item.kind,
        "text": item.turns[-1],
        "score": round(assessment.score, 3),
        "reasons": list(assessment.reasons),
    }
