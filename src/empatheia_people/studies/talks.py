"""Conversations of a person with a system, message by message, kept before they are answered."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from sqlalchemy import select

from empatheia.errors import ConfigError
from empatheia.records.dialogue import ROLES, Dialogue, Turn
from empatheia.records.reply import Reply
from empatheia_people.studies.desk import Desk
from empatheia_people.studies.links import Refused
from empatheia_people.studies.tables import Message

PERSON, SYSTEM = "person", "system"


class Responder(Protocol):
    """Who answers: a listener, or one behind a check."""

    def respond(self, item: Dialogue, /) -> Reply:
        """A reply to a conversation."""
        ...


class Talks:
    """The live conversations of a study.

    Args:
        desk: Of the study.
        responders: By the design's names; None = those of the design, loaded when first asked.
        guard: Puts a check before whoever answers.
    """

    def __init__(
        self,
        desk: Desk,
        responders: Mapping[str, Responder] | None = None,
        guard: Callable[[Responder], Responder] = lambda responder: responder,
    ) -> None:
        self.desk = desk
        self._given = dict(responders or {})
        self._guard = guard
        self._loading = threading.Lock()

    def responder(self, name: str, place: str) -> Responder:
        """Who answers under a name.

        Raises:
            ConfigError: Nothing can be loaded from the place.
            MissingResourceError: It is not on this machine.
        """
        with self._loading:
            if name not in self._given:
                from empatheia.serve.settings import ServerSettings
                from empatheia.serve.shelf import Shelf

                shelf = Shelf(ServerSettings(models=() if place == "empatheia" else (place,)))
                wanted = place if place in shelf.entries else next(reversed(shelf.entries))
                self._given[name] = self._guard(shelf.open(shelf.entry(wanted)).listener)
            return self._given[name]

    def reply(self, name: str, place: str, turns: list[str]) -> tuple[str, dict[str, object]]:
        """A system's reply to a conversation whose last turn is the person's, and what its check said."""
        dialogue = Dialogue("live", tuple(Turn(ROLES[i % 2], text) for i, text in enumerate(turns)))
        answer = self.responder(name, place).respond(dialogue)
        care = getattr(answer, "care", None)
        return answer.text.replace("\0", ""), {"care": dict(care)} if care else {}

    def messages(self, assignment: int, task: int) -> list[dict[str, object]]:
        """A conversation as the page shows it."""
        return [
            {"who": SYSTEM if row.data.get("system") else PERSON, "text": row.text}
            for row in self._rows(assignment, task)
        ]

    def _rows(self, assignment: int, task: int) -> list[Any]:
        with self.desk.store.read() as session:
            wanted = select(Message).where(Message.room == room_of(assignment, task)).order_by(Message.place)
            return list(session.scalars(wanted))

    def say(self, worker: int, assignment: int, task: int, text: str, client: str) -> list[dict[str, object]]:
        """Keeps the person's message, asks the system, keeps its answer; gives the conversation.

        A message that was kept but not answered (a crash between) is answered when it is sent again.

        Raises:
            Refused: Not theirs, empty, too long, or the conversation is full.
            ConfigError: The design has no such system.
        """
        live = self.desk.design.live
        text = text.strip().replace("\0", "")
        if not 0 < len(text) <= live.characters:
            raise Refused(
                f"a message has 1 to {live.characters:,} characters; this one has {len(text):,}.", 422, "text"
            )
        seat_hit, seat = self._seat(worker, assignment)
        screens = self.desk.seats.screens(seat_hit, seat)
        if not 0 <= task < len(screens) or screens[task].is_comparison or self.desk.design.protocol != "live":
            raise Refused("there is no conversation in this task.", 404, "not_found")
        name = screens[task].cards[0][0]
        if name not in live.systems and name not in self._given:
            raise ConfigError(f"the study has no system {name!r}.")
        rows = self._rows(assignment, task)
        if all(row.client != client for row in rows):
            if sum(not row.data.get("system") for row in rows) >= live.max_turns:
                raise Refused(
                    f"this conversation has its {live.max_turns} messages; please answer the questions.", 409, "full"
                )
            if rows and not rows[-1].data.get("system"):
                raise Refused("your last message is still being answered.", 409, "turn")
            self._keep(worker, assignment, task, len(rows), text, client, {})
            rows = self._rows(assignment, task)
        if not rows[-1].data.get("system"):
            reply, more = self.reply(name, live.systems.get(name, ""), [row.text for row in rows])
            self._keep(worker, assignment, task, len(rows), reply, f"{client}/r"[-64:], {"system": name, **more})
        return self.messages(assignment, task)

    def _seat(self, worker: int, assignment: int) -> tuple[int, int]:
        with self.desk.store.change() as session:
            row = self.desk.seats.assignment(session, worker, assignment)
            self.desk.seats.renew(session, row)
            return row.hit, row.seat

    def _keep(
        self, worker: int, assignment: int, task: int, place: int, text: str, client: str, data: dict[str, object]
    ) -> None:
        room = room_of(assignment, task)
        with self.desk.store.change() as session:
            self.desk.store.lock(session)
            earlier = select(Message.id).where(Message.room == room, Message.place == place)
            if session.scalars(earlier).first() is not None:
                return  # another tab was quicker
            at = self.desk.store.now()
            session.add(Message(room=room, place=place, worker=worker, text=text, client=client, at=at, data=data))


def room_of(assignment: int, task: int) -> str:
    """Name of the conversation of a task."""
    return f"task-{assignment}-{task}"
