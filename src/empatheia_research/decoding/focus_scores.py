"""Do focused replies take up what they should: coverage, mechanisms of empathy, a fresh listener; side by side.

Every system is scored on the same contexts, targets and distractors, beside the gold replies and trivial ones.
Values are accumulators, so that differences can be tested by :mod:`empatheia.metrics.significance`:
``paired_permutation(table["focused"]["coverage"], table["plain"]["coverage"])``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from empatheia.analysis.targets import Targets
from empatheia.errors import DataError
from empatheia.metrics.base import Metric
from empatheia.metrics.coverage import Coverage
from empatheia.metrics.listening import ListenerAccuracy
from empatheia.metrics.mechanisms import MechanismLevel
from empatheia.metrics.word_forms import each_once
from empatheia.records.dialogue import Dialogue
from empatheia.text.words import tokenize_words
from empatheia_research.decoding.distractors import Contrast
from empatheia_research.decoding.listening import FreshListener
from empatheia_research.understanding.mechanisms.identifier import MechanismsOfTurns
from empatheia_research.understanding.mechanisms.replies import TRIVIAL, reply_levels
from empatheia_research.understanding.vectors.words import WordVectors

GOLD = "gold"


def focus_scores(
    systems: Mapping[str, Sequence[str]],
    dialogues: Sequence[Dialogue],
    targets: Sequence[Targets],
    *,
    gold: Sequence[str] | None = None,
    vectors: WordVectors | None = None,
    threshold: float | None = None,
    mechanisms: MechanismsOfTurns | None = None,
    listener: FreshListener | None = None,
    contrasts: Sequence[Contrast | None] = (),
    speakers: Mapping[str, str] | None = None,
) -> dict[str, dict[str, Metric]]:
    """Scores of several systems' replies to the same contexts.

    Args:
        systems: Name to replies, plain text.
        dialogues: Contexts.
        targets: What each reply should be about; the same for every system.
        gold: The gold replies, scored as ``gold``.
        vectors: For ``coverage_near``; None = without.
        threshold: Its least cosine; None = the vectors' own.
        mechanisms: :class:`empatheia_research.understanding.mechanisms.identifier.MechanismsOfTurns`; None = without.
        listener: For ``listener_accuracy``, with ``contrasts``; None = without.
        contrasts: What it tells the contexts from; contexts without distractors (None) are left out of this score.
        speakers: System to the name of the model that spoke; none may be the listener.

    Returns:
        System, ``gold`` and trivial replies to metrics by name; the level of a mechanism is under its name.

    Raises:
        DataError: Numbers differ, or a system has a name of ours.
        ConfigError: The listener is one of the speakers.
    """
    rows = dict(systems) | ({} if gold is None else {GOLD: gold})
    rows |= {name: [reply] * len(dialogues) for name, reply in TRIVIAL.items()}
    for name in systems:
        if name == GOLD or name in TRIVIAL:
            raise DataError(f"a system is called {name!r}, as the replies set beside it are; give it another name.")
    for name, given in (*rows.items(), ("targets", targets)):
        if len(given) != len(dialogues):
            raise DataError(f"{name!r} has {len(given)} entries for {len(dialogues)} contexts; one each.")
    if listener is not None and len(contrasts) != len(dialogues):
        raise DataError(f"{len(contrasts)} contrasts for {len(dialogues)} contexts; give one for each.")
    table: dict[str, dict[str, Metric]] = {}
    for name, replies in rows.items():
        speaker = (speakers or {}).get(name)
        judged = judge_replies(
            replies, dialogues, mechanisms=mechanisms, listener=listener, contrasts=contrasts, speaker=speaker
        )
        table[name] = judged_metrics(replies, targets, judged, vectors, threshold)
    return table


@dataclass(frozen=True, slots=True)
class Judged:
    """What models say of a system's replies; plain data, which can be kept.

    Attributes:
        levels: Mechanism to the level (0 to 2) of each reply; empty without a model of mechanisms.
        told: Whether the listener found the true context, for each reply to a context that has distractors; empty
            without a listener.
        listener, distractors: Their names.
        n_worlds: Contexts the listener chose from; 0 without one.
    """

    levels: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    told: tuple[bool, ...] = ()
    listener: str = ""
    distractors: str = ""
    n_worlds: int = 0

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Judged:
        """From what ``asdict`` gave, also by way of JSON."""
        levels = {name: tuple(own) for name, own in record["levels"].items()}
        return cls(**{**record, "levels": levels, "told": tuple(record["told"])})


def judge_replies(
    replies: Sequence[str],
    dialogues: Sequence[Dialogue],
    *,
    mechanisms: MechanismsOfTurns | None = None,
    listener: FreshListener | None = None,
    contrasts: Sequence[Contrast | None] = (),
    speaker: str | None = None,
) -> Judged:
    """The part of :func:`focus_scores` that needs models, for one system.

    Args:
        replies: Plain text.
        dialogues: Contexts.
        mechanisms: See :func:`focus_scores`, as all others.
        listener: Who listens.
        contrasts: What it tells the contexts from.
        speaker: Name of the model that spoke.

    Raises:
        DataError: No context has distractors.
        ConfigError: The listener is the speaker.
    """
    levels = {} if mechanisms is None else reply_levels(mechanisms, dialogues, replies)
    plain = {name: tuple(map(int, own)) for name, own in levels.items()}
    if listener is None:
        return Judged(plain)
    asked = [(d, c, r) for d, c, r in zip(dialogues, contrasts, replies, strict=True) if c is not None]
    if not asked:
        raise DataError("no context has distractors, so a listener cannot be measured.")
    first = asked[0][1]
    told = listener.tells(*map(list, zip(*asked, strict=True)), spoken_by=speaker)
    return Judged(plain, tuple(told), listener.name, first.kind, len(first.texts))


def judged_metrics(
    replies: Sequence[str],
    targets: Sequence[Targets],
    judged: Judged,
    vectors: WordVectors | None = None,
    threshold: float | None = None,
) -> dict[str, Metric]:
    """One row of :func:`focus_scores`' table.

    Args:
        replies: Of one system.
        targets: What each should be about.
        judged: From :func:`judge_replies`.
        vectors: See :func:`focus_scores`.
        threshold: Likewise.
    """
    words = [each_once(word.lower() for word in own.words) for own in targets]
    said = [[word.text for word in tokenize_words(reply, "recec")] for reply in replies]
    out: dict[str, Metric] = {}
    for metric in (Coverage("base", tokenizer="recec"), *(() if vectors is None else (vectors.coverage(threshold),))):
        metric.update(said, words)
        out[metric.name] = metric
    for mechanism, levels in judged.levels.items():
        level = MechanismLevel()
        level.update(levels)
        out[mechanism] = level
    if judged.n_worlds:
        heard = ListenerAccuracy(judged.n_worlds, judged.listener, judged.distractors)
        heard.update(judged.told)
        out[heard.name] = heard
    return out
