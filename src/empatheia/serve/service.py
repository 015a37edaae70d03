"""What a server's routes share: conversations in, replies and analyses out, computed by one engine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from empatheia.dialogue import Dialogue, Reply, Understanding
from empatheia.listener.catalogue import perceiver
from empatheia.serve.empathy import CARE
from empatheia.serve.engine import Engine, Left
from empatheia.serve.measures import Measures
from empatheia.serve.settings import ServerSettings
from empatheia.serve.shelf import Entry, Served, Shelf, Wish
from empatheia.text.words import tokenize_words


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a reply that is on its way; one of the three is there.

    Attributes:
        understanding: What was perceived: the first part.
        text: The next words.
        reply: The whole: the last part.
    """

    understanding: Understanding | None = None
    text: str = ""
    reply: Reply | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """A reply as it is sent.

    Attributes:
        reply: As it was made.
        text: Cut as the request asks.
        finish: ``stop`` or ``length``.
    """

    reply: Reply
    text: str
    finish: str


class Service:
    """The models, the queue and the counters of a server.

    Args:
        settings: Of the server.
        guard: Puts a check before whoever answers.
    """

    def __init__(self, settings: ServerSettings, guard: Callable[[Any], Any] = lambda listener: listener) -> None:
        self.settings = settings
        self.is_ending = False
        self.measures = Measures()
        self.shelf = Shelf(settings, guard)
        self.engine = Engine(settings.batching, self.measures)

    async def warm(self) -> None:
        """Loads the default model and answers once, so that the first caller does not wait for it."""
        entry = self.shelf.entry(None)
        greeting = Dialogue.of("Good morning, I am a little nervous today.")
        await self.engine.ask(None, [greeting], lambda items: self.shelf.open(entry).respond(items, Wish()))

    async def served(self, entry: Entry) -> Served:
        """A loaded model."""
        (served,) = await self.engine.ask(
            ("open", entry.id), [entry], lambda items: [self.shelf.open(e) for e in items]
        )
        return served

    async def replies(self, entry: Entry, dialogue: Dialogue, wishes: Sequence[Wish]) -> list[Reply]:
        """A reply for each wish; equal ones are computed once.

        Args:
            entry: Who answers.
            dialogue: What is answered.
            wishes: How.
        """
        made: dict[Wish, Reply] = {}
        for wish in dict.fromkeys(wishes):

            def work(items: Sequence[Dialogue], wish: Wish = wish) -> list[Reply]:
                return self.shelf.open(entry).respond(items, wish)

            (made[wish],) = await self.engine.ask(("reply", entry.id, wish), [dialogue], work)
        return [await self._perceived(made[wish], dialogue) for wish in wishes]

    async def stream(self, entry: Entry, dialogue: Dialogue, wish: Wish) -> AsyncIterator[Part]:
        """A reply in parts; as one piece where it cannot be had word by word."""
        if entry.is_whole(wish):
            (reply,) = await self.replies(entry, dialogue, [wish])
            yield Part(understanding=reply.understanding)
            yield Part(text=reply.text)
            yield Part(reply=reply)
            return

        def speak(hand_out: Callable[[Part], None], left: Left) -> None:
            stream = self.shelf.open(entry).stream(dialogue, wish)
            hand_out(Part(understanding=stream.understanding))
            with closing(iter(stream)) as pieces:
                for piece in pieces:
                    if left.is_set():
                        return
                    hand_out(Part(text=piece))
            hand_out(Part(reply=stream.reply))

        async for part in self.engine.stream(speak):
            yield part if part.reply is None else Part(reply=await self._perceived(part.reply, dialogue))

    async def analyses(
        self, items: Sequence[Dialogue], entry: Entry | None = None, is_bulk: bool = False
    ) -> list[Understanding]:
        """What is felt and why in each conversation; None = by the default perception."""
        by = entry or self.shelf.entry(perceiver())
        return await self.engine.ask(
            ("analyze", by.id), list(items), lambda some: self.shelf.open(by).analyze(some), is_bulk
        )

    def said(self, reply: Reply, served: Served, stops: Sequence[str] = (), most: int | None = None) -> Said:
        """A reply cut at the first of the stops and at most so many tokens long; a safe reply is never cut."""
        if is_safe_reply(reply):
            return Said(reply, reply.text, "stop")
        text, was_stopped = cut_at(reply.text, stops)
        limit = reply.decoding.get("max_new_tokens")
        n = served.count(text)
        if most is not None and n > most:
            words = tokenize_words(text)
            return Said(reply, text[: words[min(most, len(words)) - 1].end] if words else text, "length")
        is_long = not was_stopped and isinstance(limit, int) and n >= limit
        return Said(reply, text, "length" if is_long else "stop")

    async def _perceived(self, reply: Reply, dialogue: Dialogue) -> Reply:
        """The reply of a model that perceives nothing, with what the default perception finds."""
        if reply.understanding.names_emotion or reply.model == CARE:
            return reply
        (found,) = await self.analyses([dialogue])
        return replace(reply, understanding=found)


def is_safe_reply(reply: Reply) -> bool:
    """Whether it tells of help: such a reply is sent whole."""
    return reply.model == CARE or (reply.decoding.get(CARE) or {}).get("level") in ("crisis", "concern")


def cut_at(text: str, stops: Sequence[str]) -> tuple[str, bool]:
    """The text before the first of the stops, and whether there was one.

    >>> cut_at("One. Two.", ["Two", "."])
    ('One', True)
    """
    places = [place for stop in stops if stop and (place := text.find(stop)) >= 0]
    return (text[: min(places)], True) if places else (text, False)
