"""Who of a collection is connected, over WebSocket: acts come in, everybody concerned gets their page anew."""

from __future__ import annotations

import logging
from typing import Any

import anyio
from anyio import to_thread
from starlette.websockets import WebSocket, WebSocketDisconnect

from empatheia.care import Care
from empatheia.errors import EmpatheiaError
from empatheia.reading import UnreadableError, parse_json
from empatheia.serve.requests import whole_characters
from empatheia_people.studies.collecting import Collection
from empatheia_people.studies.desk import Desk
from empatheia_people.studies.links import Refused
from empatheia_people.studies.rounds import Change
from empatheia_people.studies.store import StoreError
from empatheia_people.studies.talks import Talks

_LOG = logging.getLogger(__name__)
MAX_FRAME = 1 << 16
HELLO_SECONDS = 20
REPLACED, REFUSED = 4001, 4003
HALF = "a text holds half a character (one surrogate of two, as when an emoji is cut); send whole characters."


def has_half_characters(value: object) -> bool:
    """Whether JSON holds a text that neither a store nor an answer can hold."""
    return whole_characters(value) != value


class Rooms:
    """The open connections of a collection.

    Args:
        desk: Of the study.
        talks: For a system in place of the second person.
    """

    def __init__(self, desk: Desk, talks: Talks) -> None:
        self.desk, self.talks = desk, talks
        self.collection = Collection(desk)
        self._sockets: dict[int, WebSocket] = {}
        self._care = Care() if desk.design.protocol == "collect" and self.collection.setup.care else None

    async def attend(self, socket: WebSocket) -> None:
        """One connection, from its token to its end; a worker's newer page takes over from an older one."""
        await socket.accept()
        try:
            with anyio.fail_after(HELLO_SECONDS):
                hello = self._read(await socket.receive_text())
            worker, platform = self.desk.sessions.session(str(hello.get("token", "")))
        except (Refused, UnreadableError, TimeoutError, WebSocketDisconnect) as error:
            await self._end(socket, REFUSED, str(error) or "no token came")
            return
        if (older := self._sockets.get(worker)) is not None:
            await self._end(older, REPLACED, "this study is open in another tab; go on there.")
        self._sockets[worker] = socket
        try:
            await self._act(worker, {"do": "join", "platform": platform})
            while (text := await self._received(socket)) is not None:
                await self._act(worker, self._read(text))
        except UnreadableError as error:
            await self._end(socket, REFUSED, str(error))
        finally:
            if self._sockets.get(worker) is socket:
                del self._sockets[worker]

    async def _received(self, socket: WebSocket) -> str | None:
        """The next message; None once the page is gone, or another one has taken over."""
        try:
            return await socket.receive_text()
        except (WebSocketDisconnect, RuntimeError, KeyError):  # the last for bytes in place of text
            return None

    def _read(self, text: str) -> dict[str, Any]:
        if len(text) > MAX_FRAME:
            raise UnreadableError(f"a message of {len(text):,} characters; accepted: {MAX_FRAME:,}")
        value = parse_json(text)
        if not isinstance(value, dict):
            raise UnreadableError("no JSON object")
        return value

    async def _act(self, worker: int, asked: dict[str, Any]) -> None:
        """Does what is asked, tells how it went, and shows it to everybody concerned."""
        answer: dict[str, Any] = {"ack": asked.get("client")}
        change = Change({worker})
        try:
            change = await to_thread.run_sync(self._do, worker, asked)
        except Refused as error:
            answer |= {"error": str(error), "code": error.code}
        except StoreError:
            answer |= {"error": "the study's store cannot be reached now; it is tried again.", "code": "store"}
        except Exception as error:  # a mistake of ours ends nobody's conversation
            _LOG.error("%s in %s", type(error).__name__, str(asked.get("do"))[:40])
            answer |= {"error": "the server made a mistake; try again.", "code": "internal_error"}
        await self._send(worker, answer)
        if answer.get("code") != "store":
            await self._show(change.touched | {worker})
        if "error" not in answer and (help_text := await to_thread.run_sync(self._watch, worker, asked)):
            await self._send(worker, {"care": help_text})
        for pair in change.asked:
            await self._ask_system(pair)

    def _watch(self, worker: int, asked: dict[str, Any]) -> str:
        """Where help is, if what was written tells of danger; the message goes to the partner all the same."""
        written = {"say": "text", "write": "situation"}.get(str(asked.get("do")))
        if self._care is None or written is None:
            return ""
        found = self._care.assess(str(asked.get(written, "")))
        if found.failed or not found.is_crisis:
            return ""
        self.collection.rounds.mark(worker, found.level)
        return self._care.resources.block(found.kinds)

    def _do(self, worker: int, asked: dict[str, Any]) -> Change:
        if has_half_characters(asked):
            raise Refused(HALF, 400, "half_character")
        do, collection = str(asked.get("do")), self.collection
        if do == "join":
            return collection.rounds.join(worker, str(asked.get("platform", "")))
        if do == "write":
            return collection.rounds.write(worker, str(asked.get("label", "")), str(asked.get("situation", "")))
        if do == "say":
            return collection.say(worker, str(asked.get("text", "")), str(asked.get("client", "")))
        if do == "finish":
            return collection.finish(worker)
        if do == "leave":
            return collection.leave(worker)
        if do == "beat":
            collection.rounds.beat(worker)
            return Change({worker})
        raise Refused(f"unknown act {do[:40]!r}.", 422, "act")

    async def _ask_system(self, pair: int) -> None:
        turns = await to_thread.run_sync(self.collection.turns, pair)
        if not turns:
            return
        partner = self.desk.design.collect.partner or ""
        try:
            text, data = await to_thread.run_sync(self.talks.reply, partner, partner, turns)
        except EmpatheiaError as error:
            _LOG.error("the system %s did not answer: %s", partner, type(error).__name__)
            return
        change = await to_thread.run_sync(self.collection.answer, pair, text, data)
        await self._show(change.touched)

    async def _show(self, workers: set[int]) -> None:
        for worker in workers & set(self._sockets):
            try:
                page = await to_thread.run_sync(self.collection.snapshot, worker)
            except StoreError:
                continue
            await self._send(worker, {"page": page})

    async def _send(self, worker: int, what: dict[str, Any]) -> None:
        socket = self._sockets.get(worker)
        if socket is None:
            return
        try:
            with anyio.move_on_after(10):
                await socket.send_json(what)
        except (RuntimeError, WebSocketDisconnect):  # it went away meanwhile
            self._sockets.pop(worker, None)

    async def _end(self, socket: WebSocket, code: int, reason: str) -> None:
        try:
            await socket.send_json({"ended": reason[:300]})
            await socket.close(code, reason[:100])
        except (RuntimeError, WebSocketDisconnect):
            pass

    async def keep(self, seconds: float) -> None:
        """Looks again and again for those who are gone.

        Args:
            seconds: Between two looks.
        """
        while True:
            await anyio.sleep(seconds)
            try:
                change = await to_thread.run_sync(self.collection.tick)
            except StoreError:
                continue
            await self._show(change.touched)
