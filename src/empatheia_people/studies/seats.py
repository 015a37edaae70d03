"""Seats: a HIT has as many as the design has raters.

A seat is held while its worker gives signs; after the lease it is free for others. Work that comes late is taken if the
seat is still free, else it is kept apart as ``extra``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import case, func, select, update
from sqlalchemy.orm import Session

from empatheia_people.studies.answers import Screen
from empatheia_people.studies.links import Refused
from empatheia_people.studies.sessions import Sessions
from empatheia_people.studies.tables import Assignment, HitRow, TaskRow

FOREIGN = "this HIT is not yours, or there is none of this number. Go back to the link you came by."


@dataclass(frozen=True, slots=True)
class Seat:
    """What a worker gets.

    Attributes:
        assignment: Its number.
        hit: Number of the HIT.
        seat: From 0.
        is_new: Given out now, not taken up again.
    """

    assignment: int
    hit: int
    seat: int
    is_new: bool


class Seats:
    """The HITs of a study and who holds which seat.

    Args:
        sessions: Of the study.
    """

    def __init__(self, sessions: Sessions) -> None:
        self.sessions, self.store, self.design = sessions, sessions.store, sessions.design
        self._items = self.store.items()
        with self.store.read() as session:
            self._orders = {row.number: row.orders for row in session.scalars(select(HitRow))}
            self._tasks: dict[int, list[Any]] = {number: [] for number in self._orders}
            for row in session.scalars(select(TaskRow).order_by(TaskRow.hit, TaskRow.place)):
                self._tasks[row.hit].append(row)

    def screens(self, hit: int, seat: int) -> list[Screen]:
        """A HIT's tasks as the worker of a seat sees them."""
        orders = self._orders[hit]
        order = orders[seat % len(orders)]
        return [
            Screen(
                task.id,
                task.place,
                task.key,
                None if task.item is None else self._items[task.item],
                tuple(map(tuple, task.cards)),
                tuple(order[task.place]),
                task.is_bonus,
                task.item,
            )
            for task in self._tasks[hit]
        ]

    def take(self, worker: int, platform: str = "") -> Seat:
        """The worker's unfinished HIT, or the least filled one they have not seen.

        Raises:
            Refused: Nothing is left for them, their number of HITs is reached, or the study is closed.
        """
        standing = self.sessions.standing(worker)
        if not standing["consented"] or not standing["passed"]:
            raise Refused("consent and questions come before the first task.", 403, "onboarding")
        with self.store.change() as session:
            self.store.lock(session)
            self._expire(session)
            seat = self._unfinished(session, worker) or self._new_seat(session, worker, platform)
        return seat

    def _expire(self, session: Session) -> None:
        late = (Assignment.state == "open") & (Assignment.lease_until < self.store.now())
        session.execute(update(Assignment).where(late).values(state="returned"))

    def _taken_seats(self, session: Session, hit: int) -> set[int]:
        held = select(Assignment.seat).where(Assignment.hit == hit, Assignment.state.in_(("open", "submitted")))
        return set(session.scalars(held))

    def _unfinished(self, session: Session, worker: int) -> Seat | None:
        mine = select(Assignment).where(Assignment.worker == worker, Assignment.state.in_(("open", "returned")))
        for row in session.scalars(mine.order_by(Assignment.id.desc())):
            if self.renew(session, row):
                return Seat(row.id, row.hit, row.seat, False)
        return None

    def renew(self, session: Session, row: Assignment) -> bool:
        """Holds the seat for another lease; False if somebody else has it by now."""
        if row.state == "returned" and row.seat in self._taken_seats(session, row.hit):
            return False
        row.state, row.lease_until = "open", self.store.now() + self.design.worker.lease_seconds
        return True

    def _new_seat(self, session: Session, worker: int, platform: str) -> Seat:
        if self.store.study_row(session).closed is not None:
            raise Refused("this study is closed. Thank you for coming.", 410, "closed")
        mine = select(Assignment.hit).where(Assignment.worker == worker)
        counted = Assignment.state.in_(("open", "submitted", "extra"))
        n_mine = session.scalar(select(func.count()).where(Assignment.worker == worker, counted))
        if (n_mine or 0) >= self.design.worker.cap:
            raise Refused(
                f"you have done {n_mine} tasks of this study, which is the most for one person"
                f" ({self.design.worker.cap}). Thank you.",
                403,
                "cap",
            )
        seen = select(TaskRow.item).where(TaskRow.hit.in_(mine), TaskRow.item.is_not(None))
        clashing = select(TaskRow.hit).where(TaskRow.item.in_(seen))
        if self.design.protocol == "live":  # topics return; systems do not show who they are
            clashing = mine
        n_held = func.coalesce(func.sum(case((Assignment.state.in_(("open", "submitted")), 1), else_=0)), 0)
        least_filled = session.execute(
            select(HitRow.number, n_held.label("held"))
            .outerjoin(Assignment, Assignment.hit == HitRow.number)
            .where(HitRow.number.not_in(clashing))
            .group_by(HitRow.number)
            .having(n_held < self.design.composition.raters)
            .order_by(n_held, HitRow.number)
            .limit(1)
        ).first()
        if least_filled is None:
            raise Refused(
                "there is nothing left for you to do here: all seats are taken, or you have seen what is open. Seats"
                f" may come back within {self.design.worker.lease_seconds / 60:.0f} minutes.",
                409,
                "full",
            )
        hit = least_filled.number
        taken = self._taken_seats(session, hit)
        seat = next(number for number in range(self.design.composition.raters) if number not in taken)
        now = self.store.now()
        row = Assignment(
            worker=worker,
            hit=hit,
            seat=seat,
            state="open",
            lease_until=now + self.design.worker.lease_seconds,
            started=now,
            submitted=None,
            points=None,
            is_attentive=None,
            code=None,
            platform=platform,
        )
        session.add(row)
        session.flush()
        self.store.event(session, "started", worker, row.id, {"hit": hit, "seat": seat})
        return Seat(row.id, row.hit, row.seat, True)

    def assignment(self, session: Session, worker: int, number: int, is_open: bool = True) -> Assignment:
        """A worker's HIT.

        Args:
            session: Of the store.
            worker: Who asks.
            number: Of the assignment.
            is_open: Whether it must not have been sent yet.

        Raises:
            Refused: It is not theirs, or was sent.
        """
        self.sessions.worker(session, worker)
        row = session.get(Assignment, number, with_for_update=not self.store.is_sqlite)
        if row is None or row.worker != worker:
            raise Refused(FOREIGN, 404, "not_found")
        if is_open and row.state in ("submitted", "extra"):
            raise Refused("this HIT has been sent; its answers can no longer be changed.", 409, "submitted")
        return row

    def give_back(self, worker: int, assignment: int) -> None:
        """The worker does not want to go on; the seat is free at once."""
        with self.store.change() as session:
            row = self.assignment(session, worker, assignment)
            row.state = "returned"
            self.store.event(session, "returned", worker, assignment)
