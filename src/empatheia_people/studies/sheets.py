"""What was handed in, as plain records: one sheet an assignment. Filters and statistics see nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median

from sqlalchemy import select

from empatheia_people.studies.answers import PAIR
from empatheia_people.studies.design import GOLD, Design
from empatheia_people.studies.items import StudyItem
from empatheia_people.studies.store import Store
from empatheia_people.studies.tables import Assignment, Event, Rating, TaskRow


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer to one question about one card.

    Attributes:
        item: Item, or check.
        set: Test set.
        systems: Behind the card; of a pair the first and the second of the manifest.
        criterion: Name of the question.
        value: The answer; of a pair ``first``, ``second``, ``both`` or ``neither``.
        is_pair: Whether it compares two.
        card: Card or turn.
    """

    item: str
    set: str
    systems: tuple[str, ...]
    criterion: str
    value: str
    is_pair: bool = False
    card: int = 0

    @property
    def is_gold(self) -> bool:
        """Whether only the reply of the corpus is behind it."""
        return self.systems == (GOLD,)


@dataclass(frozen=True, slots=True)
class Sheet:
    """A HIT as one worker handed it in.

    Attributes:
        assignment: Its number.
        worker: Number of the worker.
        hit: Number of the HIT.
        minutes: From start to end.
        points: Of bonus tasks; None without any.
        is_attentive: Whether all checks were right; None without any.
        dwell: Median seconds on a task; None where pages told nothing.
        answers: Without checks.
        n_tasks: Tasks without checks; in MEED2 each is one answer.
        is_extra: Handed in after its seat had gone to somebody else.
    """

    assignment: int
    worker: int
    hit: int
    minutes: float
    points: int | None
    is_attentive: bool | None
    dwell: float | None
    answers: tuple[Answer, ...]
    n_tasks: int
    is_extra: bool = False


@dataclass(slots=True)
class _Open:
    """A sheet while its rows are read."""

    row: Assignment
    answers: list[Answer] = field(default_factory=list)
    dwells: list[float] = field(default_factory=list)


def read_sheets(store: Store, design: Design) -> list[Sheet]:
    """All sheets that were handed in, in the order of their assignments."""
    items = store.items()
    with store.read() as session:
        tasks = {row.id: row for row in session.scalars(select(TaskRow))}
        done = select(Assignment).where(Assignment.state.in_(("submitted", "extra"))).order_by(Assignment.id)
        opened = {row.id: _Open(row) for row in session.scalars(done)}
        ratings = select(Rating.assignment, Rating.task, Rating.card, Rating.criterion, Rating.value)
        for assignment, task, card, criterion, value in session.execute(ratings.order_by(Rating.id)):
            place = None if tasks[task].key.startswith("check:") else tasks[task].item
            if assignment in opened and place is not None:
                found = _answer(items[place], tasks[task].cards, card, criterion, value)
                opened[assignment].answers.append(found)
        for event in session.scalars(select(Event).where(Event.kind == "dwell")):
            if event.assignment in opened:
                opened[event.assignment].dwells.append(float(event.data.get("seconds", 0)))
    sizes: dict[int, int] = {}
    for task in tasks.values():
        sizes[task.hit] = sizes.get(task.hit, 0) + (not task.key.startswith("check:"))
    return [_sheet(each, sizes) for each in opened.values()]


def _answer(item: StudyItem, cards: list[list[str]], card: int, criterion: str, value: str) -> Answer:
    is_pair = card == PAIR
    systems = (cards[0][0], cards[1][0]) if is_pair else tuple(cards[card] if card < len(cards) else cards[0])
    return Answer(item.id, item.set, systems, criterion, value, is_pair, card)


def _sheet(found: _Open, sizes: Mapping[int, int]) -> Sheet:
    row = found.row
    return Sheet(
        row.id,
        row.worker,
        row.hit,
        max(0.0, (row.submitted or row.started) - row.started) / 60,
        row.points,
        row.is_attentive,
        median(found.dwells) if found.dwells else None,
        tuple(found.answers),
        sizes[row.hit],
        row.state == "extra",
    )
