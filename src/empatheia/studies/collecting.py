"""Collection of two-person dialogues (Rashkin et al. 2019, section 2 and appendix A.2): every act is one transaction.

A round of a worker: three labels are offered, one is chosen, a situation written; two who have one are paired and talk
twice, each as the speaker once. Nothing of the partner's label or situation is ever in a snapshot. States are rows:
a server that was killed goes on where it stood.
"""

from __future__ import annotations

import random
import re
import secrets
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from empatheia.studies.design import Collect
from empatheia.studies.links import Refused

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from empatheia.studies.desk import Desk
    from empatheia.studies.tables import Pair, Participant

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


class Collection:
    """All that pages ask of a collection.

    Args:
        desk: Of the study, for workers and their consent.
    """

    def __init__(self, desk: Desk) -> None:
        self.desk, self.store = desk, desk.store
        self.setup: Collect = desk.design.collect

    # rounds

    def join(self, worker: int, platform: str = "") -> Change:
        """The worker's open round, or a new one with labels offered.

        Raises:
            Refused: Consent is missing, the study is closed, or the worker's conversations are enough.
        """
        from empatheia.studies.tables import Participant

        standing = self.desk.standing(worker)
        if not standing["consented"] or not standing["passed"]:
            raise Refused("consent and questions come before the first conversation.", 403, "onboarding")
        with self.store.change() as session:
            self.store.lock(session)
            if (row := self._round(session, worker)) is not None:
                row.seen = self.store.now()
                return Change({worker})
            if self.store._study(session).closed is not None:
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

    def _round(self, session: Session, worker: int) -> Participant | None:
        from sqlalchemy import select

        from empatheia.studies.tables import Participant

        mine = select(Participant).where(Participant.worker == worker, Participant.state.in_(OPEN))
        return session.scalars(mine.order_by(Participant.id.desc())).first()

    def _check_cap(self, session: Session, worker: int) -> None:
        from sqlalchemy import func, select

        from empatheia.studies.tables import Pair, Participant

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
        from sqlalchemy import func, select

        from empatheia.studies.tables import Pair, Participant

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
            row = self._mine(session, worker, "offered")
            if label not in row.offered:
                raise Refused(
                    f"the label {label[:60]!r} was not offered; choose one of {', '.join(row.offered)}.", 422, "label"
                )
            row.label, row.situation = label, situation
            row.flags = self._flags(session, row)
            self.store.event(session, "situation", worker, data={"round": row.id, "label": label})
            return self._wait(session, row)

    def _flags(self, session: Session, row: Participant) -> list[str]:
        """What a person should look at; nothing is refused for it."""
        from sqlalchemy import select

        from empatheia.studies.tables import Participant

        flags = []
        if _CONTACT.search(row.situation):
            flags.append("contact")
        same = select(Participant.id).where(Participant.situation == row.situation, Participant.id != row.id)
        if session.scalars(same).first() is not None:
            flags.append("copied")
        return flags

    def _wait(self, session: Session, row: Participant) -> Change:
        from empatheia.studies.tables import Pair

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
        from sqlalchemy import select

        from empatheia.studies.tables import Pair, Participant

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

    def _mine(self, session: Session, worker: int, *states: str) -> Participant:
        row = self._round(session, worker)
        if row is None or row.state not in states:
            found = "no round" if row is None else f"state {row.state}"
            raise Refused(f"this cannot be done now ({found}); reload the page.", 409, "state")
        row.seen = self.store.now()
        return row

    # conversations

    def say(self, worker: int, text: str, client: str) -> Change:
        """A message; the same ``client`` word twice is one message.

        Raises:
            Refused: Out of turn, empty, too long, or the conversation has ended.
        """
        from sqlalchemy import select

        from empatheia.studies.tables import Message

        text = text.replace("\0", "").strip()
        if not 0 < len(text) <= self.setup.characters:
            raise Refused(
                f"a message has 1 to {self.setup.characters:,} characters; this one has {len(text):,}.", 422, "text"
            )
        if not 0 < len(client) <= 64:
            raise Refused("`client` has 1 to 64 characters.", 422, "client")
        with self.store.change() as session:
            self.store.lock(session)
            row = self._mine(session, worker, "chat")
            pair = self._pair_of(session, row)
            earlier = select(Message.id).where(Message.room.in_(_rooms(pair)), Message.client == client)
            if session.scalars(earlier).first() is not None:
                return Change({worker})
            messages = self._messages(session, pair)
            if not self._is_turn(row, pair, len(messages)):
                raise Refused("it is your partner's turn.", 409, "turn")
            self._add(session, pair, len(messages), worker, text, client, {})
            change = self._after(session, pair, len(messages) + 1)
            if pair.second is None and pair.state == "open":
                change.asked.add(pair.id)
            return change

    def answer(self, pair_id: int, text: str, data: Mapping[str, object]) -> Change:
        """A system's message in a pair with it."""
        from empatheia.studies.tables import Pair

        with self.store.change() as session:
            self.store.lock(session)
            pair = session.get(Pair, pair_id)
            if pair is None or pair.state != "open":
                return Change()
            messages = self._messages(session, pair)
            if len(messages) % 2 == 0:
                return Change()
            client = f"system-{len(messages)}"
            self._add(session, pair, len(messages), None, text, client, {"system": self.setup.partner, **data})
            return self._after(session, pair, len(messages) + 1)

    def turns(self, pair_id: int) -> list[str]:
        """The conversation of a pair with a system, if it is the system's turn; else nothing."""
        from empatheia.studies.tables import Pair

        with self.store.read() as session:
            pair = session.get(Pair, pair_id)
            messages = [] if pair is None or pair.state != "open" else self._messages(session, pair)
            return [message.text for message in messages] if len(messages) % 2 else []

    def finish(self, worker: int) -> Change:
        """Ends a conversation that is long enough.

        Raises:
            Refused: Too few messages.
        """
        with self.store.change() as session:
            self.store.lock(session)
            row = self._mine(session, worker, "chat")
            pair = self._pair_of(session, row)
            n = len(self._messages(session, pair))
            if n < self.setup.min_turns:
                raise Refused(
                    f"the conversation has {n} messages; it can end from {self.setup.min_turns} on.", 409, "short"
                )
            return self._next_chat(session, pair)

    def leave(self, worker: int) -> Change:
        """The worker goes; a partner waits anew with what they have written."""
        with self.store.change() as session:
            self.store.lock(session)
            row = self._mine(session, worker, *OPEN)
            return self._drop(session, row, "left")

    def beat(self, worker: int) -> None:
        """A sign that the page is open."""
        with self.store.change() as session:
            if (row := self._round(session, worker)) is not None:
                row.seen = self.store.now()

    def mark(self, worker: int, level: str) -> None:
        """Marks the worker's round for whoever reviews the conversations."""
        with self.store.change() as session:
            row = self._round(session, worker)
            if row is not None and "care" not in row.flags:
                row.flags = [*row.flags, "care"]
                self.store.event(session, "care", worker, data={"round": row.id, "level": level})

    def _drop(self, session: Session, row: Participant, reason: str) -> Change:
        change = Change({row.worker})
        pair_id, row.state = row.pair, "left"
        self.store.event(session, reason, row.worker, data={"round": row.id})
        if pair_id is not None:
            from empatheia.studies.tables import Pair, Participant

            pair = session.get(Pair, pair_id)
            if pair is not None and pair.state == "open":
                pair.state, pair.reason = "broken", reason
                other_id = pair.second if pair.first == row.id else pair.first
                other = None if other_id is None else session.get(Participant, other_id)
                if other is not None and other.state == "chat":
                    other_change = self._wait(session, other)
                    change.touched |= other_change.touched
        return change

    def _pair_of(self, session: Session, row: Participant) -> Pair:
        from empatheia.studies.tables import Pair

        pair = session.get(Pair, row.pair)
        if pair is None or pair.state != "open":
            raise Refused("this conversation has ended.", 409, "ended")
        return pair

    def _messages(self, session: Session, pair: Pair) -> list[Any]:
        from sqlalchemy import select

        from empatheia.studies.tables import Message

        wanted = select(Message).where(Message.room == room_of(pair.id, pair.chat)).order_by(Message.place)
        return list(session.scalars(wanted))

    def _is_turn(self, row: Participant, pair: Pair, n_messages: int) -> bool:
        is_speaker = (row.id == pair.first) == (pair.chat == 1)
        return is_speaker == (n_messages % 2 == 0)

    def _add(
        self,
        session: Session,
        pair: Pair,
        place: int,
        worker: int | None,
        text: str,
        client: str,
        data: dict[str, object],
    ) -> None:
        from empatheia.studies.tables import Message

        at = self.store.now()
        room = room_of(pair.id, pair.chat)
        session.add(Message(room=room, place=place, worker=worker, text=text, client=client, at=at, data=data))
        pair.since = at
        session.flush()

    def _after(self, session: Session, pair: Pair, n_messages: int) -> Change:
        if n_messages >= self.setup.max_turns:
            return self._next_chat(session, pair)
        return Change(self._workers(session, pair))

    def _next_chat(self, session: Session, pair: Pair) -> Change:
        from empatheia.studies.tables import Participant

        change = Change(self._workers(session, pair))
        if pair.chat == 1 and pair.second is not None:
            pair.chat, pair.since = 2, self.store.now()
            self.store.event(session, "second_chat", data={"pair": pair.id})
            return change
        pair.state = "done"
        for id in (pair.first, pair.second):
            row = None if id is None else session.get(Participant, id)
            if row is not None:
                row.state = "done"
                row.code = self._code()
        self.store.event(session, "pair_done", data={"pair": pair.id})
        return change

    def _code(self) -> str:
        return self.desk.design.worker.completion_code or secrets.token_hex(5).upper()

    def _workers(self, session: Session, pair: Pair) -> set[int]:
        from sqlalchemy import select

        from empatheia.studies.tables import Participant

        return set(session.scalars(select(Participant.worker).where(Participant.pair == pair.id)))

    # time

    def tick(self) -> Change:
        """Takes out who gives no sign, who lets a partner wait too long for a turn, and who waited in vain."""
        from sqlalchemy import select

        from empatheia.studies.tables import Pair, Participant

        change = Change()
        now = self.store.now()
        with self.store.change() as session:
            self.store.lock(session)
            for row in session.scalars(select(Participant).where(Participant.state.in_(("waiting", "chat")))).all():
                if row.state == "waiting" and now - row.since > 60 * self.setup.waiting_minutes:
                    row.state, row.code = (
                        "left",
                        self.desk.design.worker.completion_code or secrets.token_hex(5).upper(),
                    )
                    self.store.event(session, "waited_in_vain", row.worker, data={"round": row.id})
                    change.touched.add(row.worker)
                elif row.state == "chat" and now - row.seen > self.setup.silent_seconds:
                    change.touched |= self._drop(session, row, "silent").touched
            late = select(Pair).where(Pair.state == "open", Pair.since < now - 60 * self.setup.turn_minutes)
            for pair in session.scalars(late).all():
                change.touched |= self._late(session, pair)
        return change

    def _late(self, session: Session, pair: Pair) -> set[int]:
        from empatheia.studies.tables import Participant

        n = len(self._messages(session, pair))
        for id in (pair.first, pair.second):
            row = None if id is None else session.get(Participant, id)
            if row is not None and row.state == "chat" and self._is_turn(row, pair, n):
                return self._drop(session, row, "too_slow").touched
        return set()

    # what pages show

    def snapshot(self, worker: int) -> dict[str, object]:
        """The worker's page: nothing of the partner but what they wrote in the conversation."""
        from sqlalchemy import select

        from empatheia.studies.tables import Pair, Participant

        with self.store.read() as session:
            newest = select(Participant).where(Participant.worker == worker).order_by(Participant.id.desc())
            row = session.scalars(newest).first()
            if row is None:
                return {"state": "none"}
            shown: dict[str, object] = {"state": row.state, "offered": row.offered, "round": row.id}
            if row.label is not None:
                shown |= {"label": row.label, "situation": row.situation}
            if row.code is not None:
                url = self.desk.design.worker.completion_url.replace("{code}", row.code)
                shown |= {"code": row.code, "url": url}
            pair = None if row.pair is None or row.state != "chat" else session.get(Pair, row.pair)
            if pair is None:
                return shown
            messages = self._messages(session, pair)
            is_speaker = (row.id == pair.first) == (pair.chat == 1)
            other_id = pair.second if pair.first == row.id else pair.first
            other = None if other_id is None else session.get(Participant, other_id)
            quiet = 0.0 if other is None else self.store.now() - other.seen
            return shown | {
                "chat": pair.chat,
                "chats": 1 if pair.second is None else 2,
                "role": "speaker" if is_speaker else "listener",
                "messages": [{"me": m.worker == worker, "text": m.text} for m in messages],
                "my_turn": self._is_turn(row, pair, len(messages)),
                "can_finish": len(messages) >= self.setup.min_turns,
                "is_partner_quiet": quiet > 30,
                "is_machine": pair.second is None,
            }


def room_of(pair: int, chat: int) -> str:
    """Name of a pair's conversation."""
    return f"pair-{pair}-{chat}"


def _rooms(pair: Pair) -> list[str]:
    return [room_of(pair.id, chat) for chat in (1, 2)]
