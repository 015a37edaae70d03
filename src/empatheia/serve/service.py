"""What a server's routes share: conversations in, replies and analyses out, computed by one engine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import cast

from empatheia.care import Care
from empatheia.records.analysis import Analysis
from empatheia.records.dialogue import Dialogue
from empatheia.records.reply import Reply
from empatheia.resources.catalogue import LISTENER
from empatheia.resources.chat_endpoint import ChatEndpoint
from empatheia.serve.engine import Engine, Left
from empatheia.serve.measures import Measures
from empatheia.serve.proxy import PLAIN, Proxy, plain_reply
from empatheia.serve.replies import CARE, Part, Said, Wish, cut_at, is_safe_reply
from empatheia.serve.settings import ServerSettings
from empatheia.serve.shelf import Entry, Served, Shelf
from empatheia.text.words import tokenize_words

Count = Callable[[str], int]


class Service:
    """The models, the queue and the counters of a server.

    Args:
        settings: Of the server.
        care: The check before whoever answers; False = none.
    """

    def __init__(self, settings: ServerSettings, care: Care | bool = True) -> None:
        self.settings = settings
        self.is_ending = False
        self.measures = Measures()
        self.shelf = Shelf(settings, care)
        self.engine = Engine(settings.batching, self.measures)
        self.proxy: Proxy | None = None
        if settings.upstream is not None:
            one = settings.upstream
            endpoint = ChatEndpoint(one.llm, one.url, key_variable=one.key_env, timeout=one.timeout, retries=0)
            waiting = settings.batching.queue
            self.proxy = Proxy(self._perceived_by_steps, endpoint, care, one.fallback, waiting)

    async def warm(self) -> None:
        """Loads the default model and answers once, so that the first caller does not wait for it."""
        entry = self.shelf.analyst if self.proxy else self.shelf.entry(None)
        greeting = Dialogue.of("Good morning, I am a little nervous today.")
        await self.engine.ask(None, [greeting], lambda items: self.shelf.open(entry).respond(items, Wish()))

    async def close(self) -> None:
        """Computes what waits, then ends."""
        self.is_ending = True
        await self.engine.close()
        if self.proxy is not None:
            self.proxy.close()

    async def served(self, entry: Entry) -> Served:
        """A loaded model."""
        found = self.shelf.held(entry)
        if found is None:
            group = ("open", entry.id)
            (found,) = await self.engine.ask(group, [entry], lambda items: [self.shelf.open(one) for one in items])
        return found

    async def counter(self, entry: Entry) -> Count:
        """What counts tokens: pieces of the model where it has a tokeniser of ours, else words."""
        return count_words if entry.is_upstream else (await self.served(entry)).count

    async def replies(self, entry: Entry, dialogue: Dialogue, wishes: Sequence[Wish]) -> list[Reply]:
        """A reply for each wish; equal ones are computed once.

        Args:
            entry: Who answers.
            dialogue: What is answered.
            wishes: How.
        """
        made: dict[Wish, Reply] = {}
        for wish in dict.fromkeys(wishes):
            if entry.is_upstream and self.proxy is not None:
                made[wish] = await self.proxy.reply(dialogue, wish)
                continue
            if wish.plain is not None:
                made[wish] = plain_reply(wish.plain, dialogue)
                continue

            def work(items: Sequence[Dialogue], wish: Wish = wish) -> list[Reply]:
                return self.shelf.open(entry).respond(items, wish)

            (made[wish],) = await self.engine.ask(("reply", entry.id, wish), [dialogue], work)
        return [await self._perceived(made[wish], dialogue) for wish in wishes]

    async def stream(self, entry: Entry, dialogue: Dialogue, wish: Wish) -> AsyncIterator[Part]:
        """A reply in parts; as one piece where it cannot be had word by word."""
        if entry.is_upstream and self.proxy is not None:
            async for part in self.proxy.stream(dialogue, wish):
                yield part
            return
        if entry.is_whole(wish) or wish.plain is not None:
            (reply,) = await self.replies(entry, dialogue, [wish])
            yield Part(analysis=reply.analysis)
            yield Part(text=reply.text)
            yield Part(reply=reply)
            return

        def speak(hand_out: Callable[[Part], None], left: Left) -> None:
            stream = self.shelf.open(entry).stream(dialogue, wish)
            hand_out(Part(analysis=stream.analysis))
            with closing(cast("Generator[str]", iter(stream))) as pieces:  # closed, it stops its writer
                for piece in pieces:
                    if left.is_set():
                        return
                    hand_out(Part(text=piece))
            hand_out(Part(reply=stream.reply))

        async for part in self.engine.stream(speak, [dialogue]):
            yield part if part.reply is None else Part(reply=await self._perceived(part.reply, dialogue))

    async def analyses(
        self, items: Sequence[Dialogue], entry: Entry | None = None, is_bulk: bool = False
    ) -> list[Analysis]:
        """What is felt and why in each conversation; None = by the default perception."""
        by = entry or self.shelf.entry(LISTENER)
        return await self.engine.ask(
            ("analyze", by.id), list(items), lambda some: self.shelf.open(by).analyze(some), is_bulk
        )

    async def _perceived_by_steps(self, dialogue: Dialogue, wish: Wish) -> Reply:
        """What the default listener perceives, and would say."""
        (reply,) = await self.replies(self.shelf.analyst, dialogue, [wish])
        return reply

    async def _perceived(self, reply: Reply, dialogue: Dialogue) -> Reply:
        """The reply of a model that perceives nothing, with what the default perception finds."""
        if reply.analysis.is_felt or reply.model in (CARE, PLAIN):
            return reply
        (found,) = await self.analyses([dialogue])
        merged = replace(reply.analysis, turns=found.turns, by={**reply.analysis.by, **found.by}, unsure=found.unsure)
        return replace(reply, analysis=merged)


def count_words(text: str) -> int:
    """Words of a text."""
    return len(tokenize_words(text))


def said_of(reply: Reply, count: Count, stops: Sequence[str] = (), most: int | None = None) -> Said:
    """A reply cut at the first of the stops and at most so many tokens long; a safe reply is never cut.

    Args:
        reply: Whole.
        count: Counts tokens.
        stops: Where it ends.
        most: Tokens; None = no bound.
    """
    if is_safe_reply(reply):
        return Said(reply, reply.text, "stop")
    text, was_stopped = cut_at(reply.text, stops)
    finish = str(reply.decoding.get("finish") or "stop")
    limit = reply.decoding.get("max_new_tokens")
    if isinstance(limit, int) and (most is None or limit <= most):  # it was written within the bound
        is_long = not was_stopped and count(text) >= limit
        return Said(reply, text, "length" if is_long else "stop")
    if most is not None and finish == "stop" and count(text) > most:
        words = tokenize_words(text)
        return Said(reply, text[: words[min(most, len(words)) - 1].end] if words else text, "length")
    return Said(reply, text, "stop" if was_stopped else finish)
