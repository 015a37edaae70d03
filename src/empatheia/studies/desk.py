"""The desk at which workers come in, get seats, hand in answers and leave; every call is one transaction.

Seats: a HIT has as many as the design has raters. A seat is held while its worker gives signs; after the lease it is
free for others. Work that comes late is taken if the seat is still free, else it is kept apart as ``extra``.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from empatheia.studies.answers import Screen, kept_answer, questions, right_answer, shown_answer
from empatheia.studies.design import GOLD, PAIRED, Design
from empatheia.studies.links import Refused, opened, pseudonym, sign
from empatheia.studies.store import Store

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from empatheia.studies.tables import Assignment, Worker

MAX_NAME = 200
SESSION_SECONDS = 14 * 86_400
_FOREIGN = "this HIT is not yours, or there is none of this number. Go back to the link you came by."


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


class Desk:
    """All that pages ask of a study with ratings.

    Args:
        store: With a study in it.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        row = store.study()
        self.secret: str = row.secret
        self.design: Design = store.design()
        self._items = store.items()
        self._orders, self._tasks = self._read_tasks()
        self._others = [Store(place) for place in self.design.worker.excluded_from]

    def _read_tasks(self) -> tuple[dict[int, list[Any]], dict[int, list[Any]]]:
        from sqlalchemy import select

        from empatheia.studies.tables import HitRow, TaskRow

        with self.store.read() as session:
            orders = {row.number: row.orders for row in session.scalars(select(HitRow))}
            tasks: dict[int, list[Any]] = {number: [] for number in orders}
            for row in session.scalars(select(TaskRow).order_by(TaskRow.hit, TaskRow.place)):
                tasks[row.hit].append(row)
        return orders, tasks

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

    # coming in

    def enter(self, name: str, platform: str = "") -> str:
        """A session for a worker; the same name is the same worker.

        Args:
            name: Of the crowd platform, of an invitation, or drawn by the page.
            platform: The platform's word for this assignment.

        Returns:
            A token.

        Raises:
            Refused: An empty or too long name, somebody who withdrew, or who took part in an excluded study.
        """
        from sqlalchemy import select

        from empatheia.studies.tables import Worker

        name = name.strip().replace("\0", "")
        if not name or len(name) > MAX_NAME:
            raise Refused(
                f"your worker id has {len(name):,} characters; accepted: 1 to {MAX_NAME}. Come by the link of the"
                " platform.",
                400,
                "worker",
            )
        self._check_excluded(name)
        digest = pseudonym(self.secret, name)
        with self.store.change() as session:
            worker = session.scalars(select(Worker).where(Worker.digest == digest)).first()
            if worker is None:
                self.store.lock(session)
                worker = session.scalars(select(Worker).where(Worker.digest == digest)).first()
            if worker is None:
                worker = Worker(
                    digest=digest, created=self.store.now(), consented=None, attempts=0, passed=None, withdrawn=None
                )
                session.add(worker)
                session.flush()
                self.store.event(session, "entered", worker.id)
            if worker.withdrawn is not None:
                raise Refused("you withdrew from this study, and your data were deleted.", 403, "withdrawn")
            until = self.store.now() + SESSION_SECONDS
            return sign(
                self.secret,
                {
                    "kind": "session",
                    "worker": worker.id,
                    "platform": platform.replace("\0", "")[:MAX_NAME],
                    "until": until,
                },
            )

    def _check_excluded(self, name: str) -> None:
        from sqlalchemy import select

        from empatheia.studies.tables import Worker

        for other in self._others:
            digest = pseudonym(other.study().secret, name)
            with other.read() as session:
                if session.scalars(select(Worker.id).where(Worker.digest == digest)).first() is not None:
                    raise Refused(
                        "this study is for people who did not take part in an earlier one of ours.", 403, "excluded"
                    )

    def invite(self, number: int, days: float = 30) -> str:
        """The word of an invitation link for a local account."""
        until = self.store.now() + 86_400 * days
        return sign(self.secret, {"kind": "invitation", "name": f"invited-{number}", "until": until})

    def enter_invited(self, word: str) -> str:
        """A session by an invitation link.

        Raises:
            Refused: The link is forged or has run out.
        """
        return self.enter(str(opened(self.secret, word, self.store.now(), "invitation")["name"]))

    def session(self, token: str) -> tuple[int, str]:
        """Worker and the platform's word behind a token.

        Raises:
            Refused: It is forged or has run out.
        """
        content = opened(self.secret, token, self.store.now(), "session")
        return int(content["worker"]), str(content["platform"])

    def _worker(self, session: Session, worker: int) -> Worker:
        from empatheia.studies.tables import Worker

        row = session.get(Worker, worker)
        if row is None or row.withdrawn is not None:
            raise Refused("you withdrew from this study, and your data were deleted.", 403, "withdrawn")
        return row

    def consent(self, worker: int) -> None:
        """The worker has agreed to the text of the design."""
        with self.store.change() as session:
            row = self._worker(session, worker)
            if row.consented is None:
                row.consented = self.store.now()
                self.store.event(session, "consented", worker)

    def comprehension(self, worker: int, answers: Sequence[int]) -> dict[str, object]:
        """Answers to the questions before the first task.

        Returns:
            ``passed``; ``left``, the attempts that remain; ``code`` and ``url``, the way out without any.

        Raises:
            Refused: No attempt is left.
        """
        asked = self.design.onboarding.questions
        with self.store.change() as session:
            row = self._worker(session, worker)
            if row.passed is None:
                if row.attempts >= self.design.onboarding.attempts:
                    raise Refused(
                        f"the questions were not answered rightly in {self.design.onboarding.attempts} attempts, so"
                        " this study cannot go on for you. Please return the task on the platform.",
                        403,
                        "failed",
                    )
                row.attempts += 1
                n_right = sum(a == q.right for a, q in zip(answers, asked, strict=False))
                if len(answers) == len(asked) == n_right:
                    row.passed = self.store.now()
                self.store.event(session, "comprehension", worker, data={"right": n_right, "of": len(asked)})
            return self._asked(row)

    def _asked(self, row: Worker) -> dict[str, object]:
        """How the questions before the tasks stand, and the way out for who has no attempt left."""
        is_passed, left = row.passed is not None, self.design.onboarding.attempts - row.attempts
        code = "" if is_passed or left > 0 else self.design.worker.screen_out_code
        return {"passed": is_passed, "left": left, "code": code, "url": self._way_out(code)}

    def _way_out(self, code: str) -> str:
        """The platform's page for a code, or empty."""
        return self.design.worker.completion_url.replace("{code}", quote(code, safe="")) if code else ""

    def standing(self, worker: int) -> dict[str, object]:
        """What a worker has done of what comes before the tasks, and how many HITs they have sent."""
        from sqlalchemy import func, select

        from empatheia.studies.tables import Assignment

        with self.store.read() as session:
            row = self._worker(session, worker)
            sent = select(func.count()).where(Assignment.worker == worker, Assignment.state.in_(("submitted", "extra")))
            asked = self._asked(row)
            return asked | {
                "consented": row.consented is not None or not self.design.texts.consent,
                "passed": asked["passed"] or not self.design.onboarding.questions,
                "sent": session.scalar(sent),
            }

    # seats

    def take(self, worker: int, platform: str = "") -> Seat:
        """The worker's unfinished HIT, or the least filled one they have not seen.

        Raises:
            Refused: Nothing is left for them, their number of HITs is reached, or the study is closed.
        """
        standing = self.standing(worker)
        if not standing["consented"] or not standing["passed"]:
            raise Refused("consent and questions come before the first task.", 403, "onboarding")
        with self.store.change() as session:
            self.store.lock(session)
            self._expire(session)
            seat = self._unfinished(session, worker) or self._new_seat(session, worker, platform)
        return seat

    def _expire(self, session: Session) -> None:
        from sqlalchemy import update

        from empatheia.studies.tables import Assignment

        late = (Assignment.state == "open") & (Assignment.lease_until < self.store.now())
        session.execute(update(Assignment).where(late).values(state="returned"))

    def _taken_seats(self, session: Session, hit: int) -> set[int]:
        from sqlalchemy import select

        from empatheia.studies.tables import Assignment

        held = select(Assignment.seat).where(Assignment.hit == hit, Assignment.state.in_(("open", "submitted")))
        return set(session.scalars(held))

    def _unfinished(self, session: Session, worker: int) -> Seat | None:
        from sqlalchemy import select

        from empatheia.studies.tables import Assignment

        mine = select(Assignment).where(Assignment.worker == worker, Assignment.state.in_(("open", "returned")))
        for row in session.scalars(mine.order_by(Assignment.id.desc())):
            if self._renew(session, row):
                return Seat(row.id, row.hit, row.seat, False)
        return None

    def _renew(self, session: Session, row: Assignment) -> bool:
        """Holds the seat for another lease; False if somebody else has it by now."""
        if row.state == "returned" and row.seat in self._taken_seats(session, row.hit):
            return False
        row.state, row.lease_until = "open", self.store.now() + self.design.worker.lease_seconds
        return True

    def _new_seat(self, session: Session, worker: int, platform: str) -> Seat:
        from sqlalchemy import case, func, select

        from empatheia.studies.tables import Assignment, HitRow, TaskRow

        if self.store._study(session).closed is not None:
            raise Refused("this study is closed. Thank you for coming.", 410, "closed")
        mine = select(Assignment.hit).where(Assignment.worker == worker)
        n_mine = session.scalar(
            select(func.count()).where(
                Assignment.worker == worker, Assignment.state.in_(("open", "submitted", "extra"))
            )
        )
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
        found = session.execute(
            select(HitRow.number, n_held.label("held"))
            .outerjoin(Assignment, Assignment.hit == HitRow.number)
            .where(HitRow.number.not_in(clashing))
            .group_by(HitRow.number)
            .having(n_held < self.design.composition.raters)
            .order_by(n_held, HitRow.number)
            .limit(1)
        ).first()
        if found is None:
            raise Refused(
                "there is nothing left for you to do here: all seats are taken, or you have seen what is open. Seats"
                f" may come back within {self.design.worker.lease_seconds / 60:.0f} minutes.",
                409,
                "full",
            )
        taken = self._taken_seats(session, found.number)
        seat = next(number for number in range(self.design.composition.raters) if number not in taken)
        now = self.store.now()
        row = Assignment(
            worker=worker,
            hit=found.number,
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
        self.store.event(session, "started", worker, row.id, {"hit": found.number, "seat": seat})
        return Seat(row.id, row.hit, row.seat, True)

    def _mine(self, session: Session, worker: int, assignment: int, is_open: bool = True) -> Assignment:
        from empatheia.studies.tables import Assignment

        self._worker(session, worker)
        row = session.get(Assignment, assignment, with_for_update=not self.store.is_sqlite)
        if row is None or row.worker != worker:
            raise Refused(_FOREIGN, 404, "not_found")
        if is_open and row.state in ("submitted", "extra"):
            raise Refused("this HIT has been sent; its answers can no longer be changed.", 409, "submitted")
        return row

    # answers

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
            card: See :func:`~empatheia.studies.answers.kept_answer`.
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
            row = self._mine(session, worker, assignment)
            screen = self._screen(row, task)
            kept_card, kept = kept_answer(self.design, screen, card, criterion, value)
            self._renew(session, row)
            return self._keep(session, row, screen.id, kept_card, criterion, kept, client, seen)

    def _screen(self, row: Assignment, task: int) -> Screen:
        screens = self.screens(row.hit, row.seat)
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
        from sqlalchemy import select

        from empatheia.studies.tables import Event, Rating

        where = (Rating.assignment == row.id, Rating.task == task, Rating.card == card, Rating.criterion == criterion)
        found = session.scalars(select(Rating).where(*where)).first()
        told = select(Event.id).where(Event.assignment == row.id, Event.client == client)
        if session.scalars(told).first() is not None:
            return {"version": 0 if found is None else found.version, "other": False}
        data = {"task": task, "card": card, "criterion": criterion, "value": value}
        self.store.event(session, "rated", row.worker, row.id, data, client)
        if found is None:
            session.add(
                Rating(
                    assignment=row.id,
                    task=task,
                    card=card,
                    criterion=criterion,
                    value=value,
                    first=value,
                    version=1,
                    client=client,
                    at=self.store.now(),
                )
            )
            return {"version": 1, "other": False}
        is_other = seen is not None and seen < found.version
        found.value, found.version, found.client, found.at = value, found.version + 1, client, self.store.now()
        return {"version": found.version, "other": is_other}

    def answers(self, worker: int, assignment: int) -> list[dict[str, object]]:
        """Everything answered in a HIT, as its pages know it."""
        with self.store.read() as session:
            row = self._mine(session, worker, assignment, is_open=False)
            screens = {screen.id: screen for screen in self.screens(row.hit, row.seat)}
            out = []
            for rating in self._ratings(session, row.id):
                screen = screens[rating.task]
                if self.design.protocol == "turn_annotation":
                    card, value = rating.card, shown_answer(screen, -1, rating.value)[1]
                    value = (
                        shown_answer(screen, rating.card, rating.value)[1] if rating.value.startswith("[") else value
                    )
                else:
                    card, value = shown_answer(screen, rating.card, rating.value)
                out.append(
                    {
                        "task": screen.place,
                        "card": card,
                        "criterion": rating.criterion,
                        "value": value,
                        "version": rating.version,
                    }
                )
            return out

    def _ratings(self, session: Session, assignment: int) -> Iterable[Any]:
        from sqlalchemy import select

        from empatheia.studies.tables import Rating

        return session.scalars(select(Rating).where(Rating.assignment == assignment).order_by(Rating.id)).all()

    def validate_bonus(self, worker: int, assignment: int, task: int) -> bool:
        """Whether the reply of the corpus lies where it wins the point; the press is kept.

        Raises:
            Refused: No bonus task, or not all cards are placed.
        """
        with self.store.change() as session:
            row = self._mine(session, worker, assignment)
            screen = self._screen(row, task)
            if not screen.is_bonus:
                raise Refused("this is not a bonus task.", 404, "not_found")
            placed = {r.card: r.value for r in self._ratings(session, assignment) if r.task == screen.id}
            if len(placed) < len(screen.cards):
                raise Refused("place every reply first.", 409, "unfinished")
            is_won = self._wins(screen, placed)
            self.store.event(session, "validated", worker, assignment, {"task": screen.id, "won": is_won})
            return is_won

    def _wins(self, screen: Screen, placed: Mapping[int, str]) -> bool:
        bonus = self.design.composition.bonus
        gold = next(place for place, card in enumerate(screen.cards) if GOLD in card)
        return bonus is not None and placed.get(gold) in bonus.right

    def submit(self, worker: int, assignment: int) -> dict[str, object]:
        """Sends a HIT; sending it again gives the same answer.

        Returns:
            ``code``, ``points``, ``paid_bonus``, ``is_extra`` and ``url``.

        Raises:
            Refused: Tasks are unfinished; names the first.
        """
        with self.store.change() as session:
            self.store.lock(session)
            row = self._mine(session, worker, assignment, is_open=False)
            if row.state not in ("submitted", "extra"):
                screens = self.screens(row.hit, row.seat)
                placed: dict[tuple[int, int, str], str] = {
                    (r.task, r.card, r.criterion): r.value for r in self._ratings(session, assignment)
                }
                self._check_finished(screens, placed)
                is_held = self._renew(session, row)
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
                "url": self._way_out(code),
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
            from sqlalchemy import select

            from empatheia.studies.tables import Event

            presses = select(Event).where(Event.assignment == row.id, Event.kind == "validated").order_by(Event.id)
            for press in session.scalars(presses):
                first.setdefault(press.data["task"], press.data["won"])
        points = 0
        for screen in screens:
            if screen.is_bonus:
                final = {card: value for (task, card, _), value in placed.items() if task == screen.id}
                points += first.get(screen.id, self._wins(screen, final))
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

    def note(self, worker: int, assignment: int | None, events: Sequence[Mapping[str, object]]) -> None:
        """Keeps what pages tell of themselves: time on a task, loss of focus.

        Raises:
            Refused: Not theirs.
        """
        with self.store.change() as session:
            if assignment is not None:
                self._mine(session, worker, assignment, is_open=False)
            for event in list(events)[:100]:
                kind = str(event.get("kind"))
                if kind in ("dwell", "blur"):
                    task, seconds = event.get("task"), event.get("seconds")
                    data = {
                        "task": task if isinstance(task, int) else None,
                        "seconds": max(0.0, min(float(seconds), 86_400.0)) if isinstance(seconds, int | float) else 0.0,
                    }
                    self.store.event(session, kind, worker, assignment, data)

    # leaving

    def give_back(self, worker: int, assignment: int) -> None:
        """The worker does not want to go on; the seat is free at once."""
        with self.store.change() as session:
            row = self._mine(session, worker, assignment)
            row.state = "returned"
            self.store.event(session, "returned", worker, assignment)

    def withdraw(self, worker: int) -> None:
        """Deletes everything a worker did; what stays is a digest that keeps them from coming back."""
        from sqlalchemy import delete, select

        from empatheia.studies.tables import Assignment, Event, Message, Participant, Rating
        from empatheia.studies.tables import Pair as PairRow

        with self.store.change() as session:
            row = self._worker(session, worker)
            mine = select(Assignment.id).where(Assignment.worker == worker)
            session.execute(delete(Rating).where(Rating.assignment.in_(mine)))
            talks = select(Message.room).where(Message.room.like("task-%"), Message.worker == worker)
            session.execute(delete(Message).where(Message.room.in_(talks)))
            session.execute(delete(Message).where(Message.worker == worker))
            for pair in session.scalars(
                select(PairRow).where(PairRow.id.in_(select(Participant.pair).where(Participant.worker == worker)))
            ):
                pair.state, pair.reason = "broken", "withdrawn"
            session.execute(delete(Event).where(Event.worker == worker))
            session.execute(delete(Participant).where(Participant.worker == worker))
            session.execute(delete(Assignment).where(Assignment.worker == worker))
            row.withdrawn, row.consented = self.store.now(), None
            self.store.event(session, "withdrawn")

    # what pages show

    def page(self, worker: int, seat: Seat) -> dict[str, object]:
        """A HIT as its pages show it; neither systems nor right answers are in it."""
        screens = self.screens(seat.hit, seat.seat)
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
            raise Refused(_FOREIGN, 404, "not_found")
        if self.design.protocol == "live":
            return shown | {
                "context": list(item.context),
                "cards": [],
                "kind": "compare" if screen.is_comparison else "live",
            }
        candidates = [
            item.candidates.get(screen.cards[card][0]) for card in screen.order
        ]  # None: the reply of the corpus alone
        cards = [
            {
                "text": (item.reference or "").strip() if c is None else c.text,
                "turns": [] if c is None else list(c.turns),
            }
            for c in candidates
        ]
        if self.design.protocol == "turn_annotation":
            return shown | {"context": cards[0]["turns"], "cards": []}
        return shown | {"context": list(item.context), "cards": cards}
