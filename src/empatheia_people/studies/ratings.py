"""Answers to the tasks of a HIT, as they are given, kept and shown again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from empatheia_people.studies.answers import Screen, kept_answer, shown_answer
from empatheia_people.studies.design import GOLD, PAIRED
from empatheia_people.studies.items import Candidate
from empatheia_people.studies.links import Refused
from empatheia_people.studies.seats import FOREIGN, Seat, Seats
from empatheia_people.studies.tables import Assignment, Event, Rating


class Ratings:
    """What workers answer; every call is one transaction.

    Args:
        seats: Of the study.
    """

    def __init__(self, seats: Seats) -> None:
        self.seats, self.store, self.design = seats, seats.store, seats.design

    def rate(
        self,
        worker: int,
        assignment: int,
        task: int,
        card: int,
        criterion: str,
        value: object,
        client: str,
        seen: int | None = None,
    ) -> dict[str, object]:
        """Keeps one answer; the same ``client`` word twice is one answer.

        Args:
            worker: Who answers.
            assignment: Which must be theirs.
            task: Place in the HIT, from 0.
            card: See :func:`~empatheia_people.studies.answers.kept_answer`.
            criterion: Name of the question.
            value: The answer.
            client: A word drawn by the page for this very act.
            seen: Version of the answer that the page knew; None = it does not say.

        Returns:
            ``version``, and ``other``: whether another page had changed it meanwhile.

        Raises:
            Refused: Not theirs, sent already, or not accepted.
        """
        if not 0 < len(client) <= 64:
            raise Refused("`client` has 1 to 64 characters.", 422, "client")
        with self.store.change() as session:
            row = self.seats.assignment(session, worker, assignment)
            screen = self._screen(row, task)
            kept_card, kept = kept_answer(self.design, screen, card, criterion, value)
            self.seats.renew(session, row)
            return self._keep(session, row, screen.id, kept_card, criterion, kept, client, seen)

    def _screen(self, row: Assignment, task: int) -> Screen:
        screens = self.seats.screens(row.hit, row.seat)
        if not 0 <= task < len(screens):
            raise Refused(f"this HIT has no task {task + 1}; it has {len(screens)}.", 404, "not_found")
        return screens[task]

    def _keep(
        self,
        session: Session,
        row: Assignment,
        task: int,
        card: int,
        criterion: str,
        value: str,
        client: str,
        seen: int | None,
    ) -> dict[str, object]:
        where = (Rating.assignment == row.id, Rating.task == task, Rating.card == card, Rating.criterion == criterion)
        found = session.scalars(select(Rating).where(*where)).first()
        told = select(Event.id).where(Event.assignment == row.id, Event.client == client)
        if session.scalars(told).first() is not None:
            return {"version": 0 if found is None else found.version, "other": False}
        data = {"task": task, "card": card, "criterion": criterion, "value": value}
        self.store.event(session, "rated", row.worker, row.id, data, client)
        if found is None:
            first = {"value": value, "first": value, "version": 1, "client": client, "at": self.store.now()}
            session.add(Rating(assignment=row.id, task=task, card=card, criterion=criterion, **first))
            return {"version": 1, "other": False}
        is_other = seen is not None and seen < found.version
        found.value, found.version, found.client, found.at = value, found.version + 1, client, self.store.now()
        return {"version": found.version, "other": is_other}

    def answers(self, worker: int, assignment: int) -> list[dict[str, object]]:
        """Everything answered in a HIT, as its pages know it."""
        with self.store.read() as session:
            row = self.seats.assignment(session, worker, assignment, is_open=False)
            screens = {screen.id: screen for screen in self.seats.screens(row.hit, row.seat)}
            out = []
            for rating in self.rows(session, row.id):
                screen = screens[rating.task]
                if self.design.protocol == "turn_annotation":
                    marked = rating.card if rating.value.startswith("[") else -1
                    card, value = rating.card, shown_answer(screen, marked, rating.value)[1]
                else:
                    card, value = shown_answer(screen, rating.card, rating.value)
                answer = {"criterion": rating.criterion, "value": value, "version": rating.version}
                out.append({"task": screen.place, "card": card, **answer})
            return out

    def rows(self, session: Session, assignment: int) -> Iterable[Rating]:
        """Everything answered in a HIT, in the order it was first answered."""
        return session.scalars(select(Rating).where(Rating.assignment == assignment).order_by(Rating.id)).all()

    def validate_bonus(self, worker: int, assignment: int, task: int) -> bool:
        """Whether the reply of the corpus lies where it wins the point; the press is kept.

        Raises:
            Refused: No bonus task, or not all cards are placed.
        """
        with self.store.change() as session:
            row = self.seats.assignment(session, worker, assignment)
            screen = self._screen(row, task)
            if not screen.is_bonus:
                raise Refused("this is not a bonus task.", 404, "not_found")
            placed = {r.card: r.value for r in self.rows(session, assignment) if r.task == screen.id}
            if len(placed) < len(screen.cards):
                raise Refused("place every reply first.", 409, "unfinished")
            is_won = self.wins(screen, placed)
            self.store.event(session, "validated", worker, assignment, {"task": screen.id, "won": is_won})
            return is_won

    def wins(self, screen: Screen, placed: Mapping[int, str]) -> bool:
        """Whether the reply of the corpus lies where it wins the point, by the answers of all cards."""
        bonus = self.design.composition.bonus
        gold = next(place for place, card in enumerate(screen.cards) if GOLD in card)
        return bonus is not None and placed.get(gold) in bonus.right

    def note(self, worker: int, assignment: int | None, events: Sequence[Mapping[str, object]]) -> None:
        """Keeps what pages tell of themselves: time on a task, loss of focus.

        Raises:
            Refused: Not theirs.
        """
        with self.store.change() as session:
            if assignment is not None:
                self.seats.assignment(session, worker, assignment, is_open=False)
            for event in list(events)[:100]:
                kind = str(event.get("kind"))
                if kind in ("dwell", "blur"):
                    task, seconds = event.get("task"), event.get("seconds")
                    data = {
                        "task": task if isinstance(task, int) else None,
                        "seconds": max(0.0, min(float(seconds), 86_400.0)) if isinstance(seconds, int | float) else 0.0,
                    }
                    self.store.event(session, kind, worker, assignment, data)

    def page(self, worker: int, seat: Seat) -> dict[str, object]:
        """A HIT as its pages show it; neither systems nor right answers are in it."""
        screens = self.seats.screens(seat.hit, seat.seat)
        return {
            "assignment": seat.assignment,
            "hit": seat.hit,
            "tasks": [self._shown(screen) for screen in screens],
            "answers": self.answers(worker, seat.assignment),
        }

    def _shown(self, screen: Screen) -> dict[str, object]:
        shown: dict[str, object] = {"place": screen.place, "bonus": screen.is_bonus, "kind": self.design.protocol}
        if screen.is_check:
            check = self.design.attention[int(screen.key.removeprefix("check:"))]
            cards = [{"text": check.card}] * (2 if self.design.protocol in PAIRED else 1)
            return shown | {"context": [check.text], "cards": cards}
        item = screen.item
        if item is None:
            raise Refused(FOREIGN, 404, "not_found")
        if self.design.protocol == "live":
            kind = "compare" if screen.is_comparison else "live"
            return shown | {"context": list(item.context), "cards": [], "kind": kind}
        reference = Candidate("", (item.reference or "").strip())
        candidates = [item.candidates.get(screen.cards[card][0]) or reference for card in screen.order]
        cards = [{"text": candidate.text, "turns": list(candidate.turns)} for candidate in candidates]
        if self.design.protocol == "turn_annotation":
            return shown | {"context": cards[0]["turns"], "cards": []}
        return shown | {"context": list(item.context), "cards": cards}
