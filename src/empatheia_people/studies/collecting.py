"""Collection of two-person dialogues (Rashkin et al. 2019, section 2 and appendix A.2): every act is one transaction.

A round of a worker: three labels are offered, one is chosen, a situation written; two who have one are paired and talk
twice, each as the speaker once. Nothing of the partner's label or situation is ever in a snapshot. States are rows:
a server that was killed goes on where it stood.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from empatheia_people.studies.desk import Desk
from empatheia_people.studies.links import Refused
from empatheia_people.studies.rounds import OPEN, Change, Rounds
from empatheia_people.studies.tables import Message, Pair, Participant


class Collection:
    """The conversations of a collection; what comes before them is in its ``rounds``.

    Args:
        desk: Of the study.
    """

    def __init__(self, desk: Desk) -> None:
        self.desk, self.store = desk, desk.store
        self.rounds = Rounds(desk)
        self.setup = self.rounds.setup

    def say(self, worker: int, text: str, client: str) -> Change:
        """A message; the same ``client`` word twice is one message.

        Raises:
            Refused: Out of turn, empty, too long, or the conversation has ended.
        """
        text = text.replace("\0", "").strip()
        if not 0 < len(text) <= self.setup.characters:
            raise Refused(
                f"a message has 1 to {self.setup.characters:,} characters; this one has {len(text):,}.", 422, "text"
            )
        if not 0 < len(client) <= 64:
            raise Refused("`client` has 1 to 64 characters.", 422, "client")
        with self.store.change() as session:
            self.store.lock(session)
            row = self.rounds.require(session, worker, "chat")
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
            row = self.rounds.require(session, worker, "chat")
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
            row = self.rounds.require(session, worker, *OPEN)
            return self._drop(session, row, "left")

    def _drop(self, session: Session, row: Participant, reason: str) -> Change:
        change = Change({row.worker})
        pair_id, row.state = row.pair, "left"
        self.store.event(session, reason, row.worker, data={"round": row.id})
        if pair_id is not None:
            pair = session.get(Pair, pair_id)
            if pair is not None and pair.state == "open":
                pair.state, pair.reason = "broken", reason
                other_id = pair.second if pair.first == row.id else pair.first
                other = None if other_id is None else session.get(Participant, other_id)
                if other is not None and other.state == "chat":
                    other_change = self.rounds.wait(session, other)
                    change.touched |= other_change.touched
        return change

    def _pair_of(self, session: Session, row: Participant) -> Pair:
        pair = session.get(Pair, row.pair)
        if pair is None or pair.state != "open":
            raise Refused("this conversation has ended.", 409, "ended")
        return pair

    def _messages(self, session: Session, pair: Pair) -> list[Any]:
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
        return set(session.scalars(select(Participant.worker).where(Participant.pair == pair.id)))

    def tick(self) -> Change:
        """Takes out who gives no sign, who lets a partner wait too long for a turn, and who waited in vain."""
        change = Change()
        now = self.store.now()
        with self.store.change() as session:
            self.store.lock(session)
            for row in session.scalars(select(Participant).where(Participant.state.in_(("waiting", "chat")))).all():
                if row.state == "waiting" and now - row.since > 60 * self.setup.waiting_minutes:
                    row.state, row.code = "left", self._code()
                    self.store.event(session, "waited_in_vain", row.worker, data={"round": row.id})
                    change.touched.add(row.worker)
                elif row.state == "chat" and now - row.seen > self.setup.silent_seconds:
                    change.touched |= self._drop(session, row, "silent").touched
            late = select(Pair).where(Pair.state == "open", Pair.since < now - 60 * self.setup.turn_minutes)
            for pair in session.scalars(late).all():
                change.touched |= self._late(session, pair)
        return change

    def _late(self, session: Session, pair: Pair) -> set[int]:
        n = len(self._messages(session, pair))
        for id in (pair.first, pair.second):
            row = None if id is None else session.get(Participant, id)
            if row is not None and row.state == "chat" and self._is_turn(row, pair, n):
                return self._drop(session, row, "too_slow").touched
        return set()

    def snapshot(self, worker: int) -> dict[str, object]:
        """The worker's page: nothing of the partner but what they wrote in the conversation."""
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
