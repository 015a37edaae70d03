"""Rounds of a collection: labels are offered, one is chosen, a situation written, two who have one are paired."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass, field

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from empatheia_people.studies.design import Collect
from empatheia_people.studies.desk import Desk
from empatheia_people.studies.links import Refused
from empatheia_people.studies.tables import Pair, Participant

OPEN = ("offered", "waiting", "chat")
_CONTACT = re.compile(r"[\w.+-]+@[\w-]+\.\w+|(?:\+?\d[\s().-]?){8,}")
MAX_SITUATION = 2000


@dataclass(slots=True)
class Change:
    """What an act did.

    Attributes:
        touched: Workers whose pages show something else now.
        asked: Pairs in which a system has to answer.
    """

    touched: set[int] = field(default_factory=set)
    asked: set[int] = field(default_factory=set)


class Rounds:
    """What workers do before they talk; every act is one transaction.

    Args:
        desk: Of the study, for workers and their consent.
    """

    def __init__(self, desk: Desk) -> None:
        self.desk, self.store = desk, desk.store
        self.setup: Collect = desk.design.collect

    def join(self, worker: int, platform: str = "") -> Change:
        """The worker's open round, or a new one with labels offered.

        Raises:
            Refused: Consent is missing, the study is closed, or the worker's conversations are enough.
        """
        standing = self.desk.sessions.standing(worker)
        if not standing["consented"] or not standing["passed"]:
            raise Refused("consent and questions come before the first conversation.", 403, "onboarding")
        with self.store.change() as session:
            self.store.lock(session)
            if (row := self.current(session, worker)) is not None:
                row.seen = self.store.now()
                return Change({worker})
            if self.store.study_row(session).closed is not None:
                raise Refused("this study is closed. Thank you for coming.", 410, "closed")
            self._check_cap(session, worker)
            now = self.store.now()
            row = Participant(
                worker=worker,
                state="offered",
                offered=self._offer(session, worker),
                label=None,
                situation="",
                pair=None,
                seen=now,
                since=now,
                code=None,
                platform=platform,
                flags=[],
            )
            session.add(row)
            session.flush()
            self.store.event(session, "offered", worker, data={"round": row.id, "labels": row.offered})
        return Change({worker})

    def current(self, session: Session, worker: int) -> Participant | None:
        """The worker's open round, or None."""
        mine = select(Participant).where(Participant.worker == worker, Participant.state.in_(OPEN))
        return session.scalars(mine.order_by(Participant.id.desc())).first()

    def _check_cap(self, session: Session, worker: int) -> None:
        n_pairs = session.scalar(select(func.count()).select_from(Pair).where(Pair.state == "done")) or 0
        done = select(func.count()).select_from(Participant)
        mine = session.scalar(done.where(Participant.worker == worker, Participant.state == "done")) or 0
        if 2 * n_pairs >= self.setup.cap_after and 2 * mine >= self.setup.cap:
            raise Refused(
                f"you have had {2 * mine} conversations, the most for one person ({self.setup.cap}). Thank you.",
                403,
                "cap",
            )

    def _offer(self, session: Session, worker: int) -> list[str]:
        """Three labels: the least chosen so far, of those a returning worker has not had; ties at random."""
        taken = Participant.state.in_(("waiting", "chat", "done"))
        counts = Counter(session.scalars(select(Participant.label).where(taken)).all())
        n_rounds = session.scalar(select(func.count()).select_from(Participant)) or 0
        dice = random.Random(f"{self.desk.design.seed}/{n_rounds}")
        labels = list(self.setup.labels)
        n_pairs = session.scalar(select(func.count()).select_from(Pair).where(Pair.state == "done")) or 0
        if n_pairs < self.setup.free_pairs:
            return dice.sample(labels, self.setup.offered)
        dice.shuffle(labels)
        had = set(session.scalars(select(Participant.label).where(taken, Participant.worker == worker)))
        fresh = [label for label in labels if label not in had]
        chosen = fresh if len(fresh) >= self.setup.offered else labels
        return sorted(chosen, key=lambda label: counts[label])[: self.setup.offered]

    def write(self, worker: int, label: str, situation: str) -> Change:
        """The chosen label and the situation; then the worker waits for a partner.

        Raises:
            Refused: A label that was not offered, or a situation that is too short or too long.
        """
        situation = " ".join(situation.replace("\0", "").split())
        least, most = self.setup.situation_words
        n_words = len(situation.split())
        if not least <= n_words <= most or len(situation) > MAX_SITUATION:
            raise Refused(f"the description has {n_words} words; accepted: {least} to {most}.", 422, "situation")
        with self.store.change() as session:
            self.store.lock(session)
            row = self.require(session, worker, "offered")
            if label not in row.offered:
                raise Refused(
                    f"the label {label[:60]!r} was not offered; choose one of {', '.join(row.offered)}.", 422, "label"
                )
            row.label, row.situation = label, situation
            row.flags = self._flags(session, row)
            self.store.event(session, "situation", worker, data={"round": row.id, "label": label})
            return self.wait(session, row)

    def _flags(self, session: Session, row: Participant) -> list[str]:
        """What a person should look at; nothing is refused for it."""
        flags = []
        if _CONTACT.search(row.situation):
            flags.append("contact")
        same = select(Participant.id).where(Participant.situation == row.situation, Participant.id != row.id)
        if session.scalars(same).first() is not None:
            flags.append("copied")
        return flags

    def wait(self, session: Session, row: Participant) -> Change:
        """Lets a worker wait for a partner; they are paired at once if one is there, or a system stands in."""
        row.state, row.pair, row.since = "waiting", None, self.store.now()
        row.seen = self.store.now()
        session.flush()
        if self.setup.partner is not None:
            pair = Pair(first=row.id, second=None, state="open", chat=1, since=self.store.now(), reason="")
            session.add(pair)
            session.flush()
            row.pair, row.state = pair.id, "chat"
            self.store.event(session, "paired", row.worker, data={"pair": pair.id, "with": "system"})
            return Change({row.worker})
        return self._pair(session, row)

    def _pair(self, session: Session, row: Participant) -> Change:
        """Pairs with who has waited longest and still gives signs; never with oneself."""
        waiting = select(Participant).where(
            Participant.state == "waiting",
            Participant.worker != row.worker,
            Participant.seen >= self.store.now() - self.setup.silent_seconds,
        )
        other = session.scalars(waiting.order_by(Participant.since, Participant.id)).first()
        if other is None:
            return Change({row.worker})
        pair = Pair(first=other.id, second=row.id, state="open", chat=1, since=self.store.now(), reason="")
        session.add(pair)
        session.flush()
        for each in (other, row):
            each.state, each.pair, each.since = "chat", pair.id, self.store.now()
            self.store.event(session, "paired", each.worker, data={"pair": pair.id})
        return Change({row.worker, other.worker})

    def require(self, session: Session, worker: int, *states: str) -> Participant:
        """The worker's open round, which must be in one of the states.

        Raises:
            Refused: There is none, or it is in another state.
        """
        row = self.current(session, worker)
        if row is None or row.state not in states:
            found = "no round" if row is None else f"state {row.state}"
            raise Refused(f"this cannot be done now ({found}); reload the page.", 409, "state")
        row.seen = self.store.now()
        return row

    def beat(self, worker: int) -> None:
        """A sign that the page is open."""
        with self.store.change() as session:
            if (row := self.current(session, worker)) is not None:
                row.seen = self.store.now()

    def mark(self, worker: int, level: str) -> None:
        """Marks the worker's round for whoever reviews the conversations."""
        with self.store.change() as session:
            row = self.current(session, worker)
            if row is not None and "care" not in row.flags:
                row.flags = [*row.flags, "care"]
                self.store.event(session, "care", worker, data={"round": row.id, "level": level})
