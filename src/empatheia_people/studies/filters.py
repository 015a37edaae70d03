"""Which sheets count: pure functions from sheets to sheets, in the order of the design, each saying what it removed.

Those of MEED2 (Xie and Pu 2021, section 5.4): (a) workers who gave the same answer for almost all dialogues, (b) less
than five minutes and fewer than two points, (c) fewer than two points. "Almost all" has no threshold in the paper; ours
is a share of 0.9 over at least ten dialogues.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass

from empatheia_people.studies.design import FilterRule
from empatheia_people.studies.sheets import Sheet

Filter = Callable[[Sequence[Sheet]], list[Sheet]]


@dataclass(frozen=True, slots=True)
class Removed:
    """What a filter took away.

    Attributes:
        name: Its name and settings.
        workers: Of whom nothing is left that was there before.
        assignments: Sheets.
        answers: Tasks on those sheets.
    """

    name: str
    workers: int
    assignments: int
    answers: int

    def to_dict(self) -> dict[str, object]:
        """JSON-ready."""
        return asdict(self)


def same_answer(share: float = 0.9, tasks: int = 10) -> Filter:
    """Drops workers who gave one answer in at least so large a share of what they answered, gold apart.

    Args:
        share: Of their answers to one question.
        tasks: Workers with fewer are kept.
    """

    def kept(sheets: Sequence[Sheet]) -> list[Sheet]:
        values: dict[int, dict[str, Counter[str]]] = {}
        n_tasks: Counter[int] = Counter()
        for sheet in sheets:
            n_tasks[sheet.worker] += sheet.n_tasks
            for answer in sheet.answers:
                if not answer.is_gold:
                    values.setdefault(sheet.worker, {}).setdefault(answer.criterion, Counter())[answer.value] += 1
        out = {
            worker
            for worker, by_criterion in values.items()
            if n_tasks[worker] >= tasks
            and all(max(c.values()) >= share * sum(c.values()) - 1e-9 for c in by_criterion.values())
        }
        return [sheet for sheet in sheets if sheet.worker not in out]

    return kept


def hurried(minutes: float = 5, points: int = 2) -> Filter:
    """Drops sheets of less than so many minutes *and* fewer points (of a study without bonus: less minutes alone)."""
    return _each(lambda sheet: not (sheet.minutes < minutes and (sheet.points is None or sheet.points < points)))


def at_least_points(points: int = 2) -> Filter:
    """Drops sheets with fewer points; those of a study without bonus stay."""
    return _each(lambda sheet: sheet.points is None or sheet.points >= points)


def attentive() -> Filter:
    """Drops sheets with a wrong check of attention."""
    return _each(lambda sheet: sheet.is_attentive is not False)


def dwelt(seconds: float = 2) -> Filter:
    """Drops sheets whose median time on a task is shorter; where pages told none, they stay."""
    return _each(lambda sheet: sheet.dwell is None or sheet.dwell >= seconds)


def _each(holds: Callable[[Sheet], bool]) -> Filter:
    return lambda sheets: [sheet for sheet in sheets if holds(sheet)]


def filter_of(rule: FilterRule) -> tuple[str, Filter]:
    """The filter of a rule and what it is called."""
    if rule.name == "same_answer":
        return f"one answer in {100 * rule.share:g} % or more", same_answer(rule.share, rule.tasks)
    if rule.name == "hurried":
        return f"under {rule.minutes:g} min and under {rule.points} points", hurried(rule.minutes, rule.points)
    if rule.name == "points":
        return f"under {rule.points} points", at_least_points(rule.points)
    if rule.name == "attention":
        return "a check of attention was wrong", attentive()
    return f"median time on a task under {rule.seconds:g} s", dwelt(rule.seconds)


def apply(sheets: Sequence[Sheet], filters: Iterable[tuple[str, Filter]]) -> tuple[list[Sheet], list[Removed]]:
    """The sheets that pass all filters, and what each took away from those the ones before it left.

    Args:
        sheets: All.
        filters: Name and filter; any function from sheets to sheets is one.
    """
    left, removed = list(sheets), []
    for name, keep in filters:
        kept = keep(left)
        there = {sheet.assignment for sheet in kept}
        gone = [sheet for sheet in left if sheet.assignment not in there]
        workers = {sheet.worker for sheet in gone} - {sheet.worker for sheet in kept}
        removed.append(Removed(name, len(workers), len(gone), sum(sheet.n_tasks for sheet in gone)))
        left = kept
    return left, removed
