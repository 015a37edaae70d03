"""Who takes part: entry by a link, consent, the questions before the first task, and withdrawal."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from empatheia_people.studies.design import Design
from empatheia_people.studies.links import Refused, opened, pseudonym, sign
from empatheia_people.studies.store import Store
from empatheia_people.studies.tables import Assignment, Event, Message, Pair, Participant, Rating, Worker

MAX_NAME = 200
SESSION_SECONDS = 14 * 86_400


class Sessions:
    """Workers of a study; every call is one transaction.

    Args:
        store: With the study.
        design: Of the study.
    """

    def __init__(self, store: Store, design: Design) -> None:
        self.store, self.design = store, design
        self.secret = store.study().secret
        self._others = [Store(place) for place in design.worker.excluded_from]

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
            shown = platform.replace("\0", "")[:MAX_NAME]
            return sign(self.secret, {"kind": "session", "worker": worker.id, "platform": shown, "until": until})

    def _check_excluded(self, name: str) -> None:
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

    def worker(self, session: Session, worker: int) -> Worker:
        """The row of a worker.

        Raises:
            Refused: They withdrew, or there is none of this number.
        """
        row = session.get(Worker, worker)
        if row is None or row.withdrawn is not None:
            raise Refused("you withdrew from this study, and your data were deleted.", 403, "withdrawn")
        return row

    def consent(self, worker: int) -> None:
        """The worker has agreed to the text of the design."""
        with self.store.change() as session:
            row = self.worker(session, worker)
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
            row = self.worker(session, worker)
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
            return self._questions_left(row)

    def _questions_left(self, row: Worker) -> dict[str, object]:
        """How the questions before the tasks stand, and the way out for who has no attempt left."""
        is_passed, left = row.passed is not None, self.design.onboarding.attempts - row.attempts
        code = "" if is_passed or left > 0 else self.design.worker.screen_out_code
        return {"passed": is_passed, "left": left, "code": code, "url": self.way_out(code)}

    def way_out(self, code: str) -> str:
        """The platform's page for a code, or empty."""
        return self.design.worker.completion_url.replace("{code}", quote(code, safe="")) if code else ""

    def standing(self, worker: int) -> dict[str, object]:
        """What a worker has done of what comes before the tasks, and how many HITs they have sent."""
        with self.store.read() as session:
            row = self.worker(session, worker)
            sent = select(func.count()).where(Assignment.worker == worker, Assignment.state.in_(("submitted", "extra")))
            asked = self._questions_left(row)
            return asked | {
                "consented": row.consented is not None or not self.design.texts.consent,
                "passed": asked["passed"] or not self.design.onboarding.questions,
                "sent": session.scalar(sent),
            }

    def withdraw(self, worker: int) -> None:
        """Deletes everything a worker did; what stays is a digest that keeps them from coming back."""
        with self.store.change() as session:
            row = self.worker(session, worker)
            mine = select(Assignment.id).where(Assignment.worker == worker)
            session.execute(delete(Rating).where(Rating.assignment.in_(mine)))
            talks = select(Message.room).where(Message.room.like("task-%"), Message.worker == worker)
            session.execute(delete(Message).where(Message.room.in_(talks)))
            session.execute(delete(Message).where(Message.worker == worker))
            pairs = select(Participant.pair).where(Participant.worker == worker)
            for pair in session.scalars(select(Pair).where(Pair.id.in_(pairs))):
                pair.state, pair.reason = "broken", "withdrawn"
            session.execute(delete(Event).where(Event.worker == worker))
            session.execute(delete(Participant).where(Participant.worker == worker))
            session.execute(delete(Assignment).where(Assignment.worker == worker))
            row.withdrawn, row.consented = self.store.now(), None
            self.store.event(session, "withdrawn")
