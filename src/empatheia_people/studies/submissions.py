"""Finished HITs: whether every task is answered, what they earn, and the code that the platform pays by."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from empatheia_people.studies.answers import Screen, questions, right_answer
from empatheia_people.studies.links import Refused
from empatheia_people.studies.ratings import Ratings
from empatheia_people.studies.tables import Assignment, Event


class Submissions:
    """HITs that are sent.

    Args:
        ratings: Of the study.
    """

    def __init__(self, ratings: Ratings) -> None:
        self.ratings, self.seats = ratings, ratings.seats
        self.store, self.design = ratings.store, ratings.design

    def submit(self, worker: int, assignment: int) -> dict[str, object]:
        """Sends a HIT; sending it again gives the same answer.

        Returns:
            ``code``, ``points``, ``paid_bonus``, ``is_extra`` and ``url``.

        Raises:
            Refused: Tasks are unfinished; names the first.
        """
        with self.store.change() as session:
            self.store.lock(session)
            row = self.seats.assignment(session, worker, assignment, is_open=False)
            if row.state not in ("submitted", "extra"):
                screens = self.seats.screens(row.hit, row.seat)
                placed: dict[tuple[int, int, str], str] = {
                    (r.task, r.card, r.criterion): r.value for r in self.ratings.rows(session, assignment)
                }
                self._check_finished(screens, placed)
                is_held = self.seats.renew(session, row)
                row.state = "submitted" if is_held else "extra"
                row.submitted = self.store.now()
                row.points = self._points(session, row, screens, placed)
                row.is_attentive = self._is_attentive(screens, placed)
                rules = self.design.worker
                failed = rules.attention_code if row.is_attentive is False else ""
                row.code = failed or rules.completion_code or secrets.token_hex(5).upper()
                self.store.event(session, row.state, worker, assignment, {"points": row.points})
            bonus = self.design.composition.bonus
            code = str(row.code)
            return {
                "code": code,
                "points": row.points,
                "paid_bonus": bonus is not None and (row.points or 0) >= bonus.needed,
                "is_extra": row.state == "extra",
                "url": self.seats.sessions.way_out(code),
            }

    def _check_finished(self, screens: Sequence[Screen], placed: Mapping[tuple[int, int, str], str]) -> None:
        for screen in screens:
            for asked in questions(self.design, screen):
                if asked.is_needed and (screen.id, asked.card, asked.criterion) not in placed:
                    raise Refused(f"task {screen.place + 1} is not finished.", 409, "unfinished")

    def _points(
        self,
        session: Session,
        row: Assignment,
        screens: Sequence[Screen],
        placed: Mapping[tuple[int, int, str], str],
    ) -> int | None:
        bonus = self.design.composition.bonus
        if bonus is None:
            return None
        first: dict[int, bool] = {}
        if bonus.first_try:
            presses = select(Event).where(Event.assignment == row.id, Event.kind == "validated").order_by(Event.id)
            for press in session.scalars(presses):
                first.setdefault(press.data["task"], press.data["won"])
        points = 0
        for screen in screens:
            if screen.is_bonus:
                final = {card: value for (task, card, _), value in placed.items() if task == screen.id}
                points += first.get(screen.id, self.ratings.wins(screen, final))
        return points

    def _is_attentive(self, screens: Sequence[Screen], placed: Mapping[tuple[int, int, str], str]) -> bool | None:
        checks = [screen for screen in screens if screen.is_check]
        if not checks:
            return None
        return all(
            value == right_answer(self.design, screen)
            for screen in checks
            for (task, _, _), value in placed.items()
            if task == screen.id
        )
