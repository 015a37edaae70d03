"""Empathy in front of any language model: the conversation is analysed, the findings are told, the answer is checked.

The analysis is that of the default listener, whose own reply stands ready in case the model does not answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import Any

from empatheia.care import Care, guarded_stream
from empatheia.dialogue import Dialogue, Explanation, Reply, Understanding
from empatheia.errors import EndpointError
from empatheia.resources.chat_endpoint import ChatEndpoint
from empatheia.resources.chat_stream import ChatStream
from empatheia.serve.engine import Left
from empatheia.serve.faults import ApiError
from empatheia.serve.replies import CARE, Part, Wish
from empatheia.text.prompts import Hints, Wording, cause_texts, messages_of

REACTIONS = {"unpleasant": "sympathizing", "pleasant": "acknowledging", "mixed": "questioning"}
"""The reaction that is wanted where no model names one: what listeners most often do on that side."""
FROM_SIDE = "side"
_THREADS = 32
_END = object()


class Proxy:
    """A language model behind an endpoint, told what was perceived.

    Args:
        perceive: Gives the default listener's reply, with its explanation.
        endpoint: Who answers.
        care: The check before and behind it; False = none.
        has_fallback: The bundled listener answers if the upstream model fails.
        queue: Requests that may wait for it, beside those it is answering.
    """

    def __init__(
        self,
        perceive: Callable[[Dialogue, Wish], Awaitable[Reply]],
        endpoint: ChatEndpoint,
        care: Care | bool = True,
        has_fallback: bool = False,
        queue: int = 64,
    ) -> None:
        self.endpoint, self.has_fallback, self.queue = endpoint, has_fallback, queue
        self._perceive, self._care = perceive, care
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="empatheia-upstream")
        self._n_open = 0

    async def reply(self, dialogue: Dialogue, wish: Wish) -> Reply:
        """A whole reply."""
        reply = None
        async for part in self.stream(dialogue, wish, is_whole=True):
            reply = part.reply or reply
        assert reply is not None
        return reply

    async def stream(self, dialogue: Dialogue, wish: Wish, is_whole: bool = False) -> AsyncIterator[Part]:
        """A reply in parts.

        Args:
            dialogue: What is answered.
            wish: How; ``request`` and ``guidance`` are for the model.
            is_whole: The caller reads the last part alone, so that the fallback may come after other words.

        Raises:
            EndpointError: The model gave no answer, and there is no fallback or words of it were sent already.
            ApiError: Too many requests wait for the model.
        """
        known = await self._perceive(dialogue, Wish(steering=wish.steering, explain=True))
        yield Part(understanding=known.understanding)
        if known.model == CARE:
            yield Part(text=known.text)
            yield Part(reply=known)
            return
        speaker = _Upstream(self.endpoint, known, wish)
        has_spoken = False
        try:
            async for part in self._spoken(speaker, dialogue):
                has_spoken = has_spoken or bool(part.text)
                yield part
        except EndpointError as error:
            if not self.has_fallback or (has_spoken and not is_whole):
                raise
            told = {**known.decoding, "fallback": True, "upstream": str(error)}
            yield Part(text=known.text)
            yield Part(reply=replace(known, decoding=told))

    def close(self) -> None:
        """Ends the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _spoken(self, speaker: _Upstream, dialogue: Dialogue) -> AsyncIterator[Part]:
        """The parts of an answer that a thread waits for."""
        if self._n_open >= _THREADS + self.queue:
            said = f"{self._n_open} requests are under way already; try again in 5 s."
            raise ApiError(429, said, code="queue_full", headers={"Retry-After": "5"})
        loop, left = asyncio.get_running_loop(), Left()
        parts: asyncio.Queue[Any] = asyncio.Queue()

        def hand_out(part: Any) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(parts.put_nowait, part)

        def speak() -> None:
            try:
                stream = speaker.stream(dialogue, care=self._care)
                with closing(iter(stream)) as pieces:
                    for piece in pieces:
                        if left.is_set():
                            return
                        hand_out(Part(text=piece))
                hand_out(Part(reply=stream.reply))
            except BaseException as error:
                hand_out(error)
            finally:
                hand_out(_END)

        self._n_open += 1
        try:
            self._threads.submit(speak)
            while (part := await parts.get()) is not _END:
                if isinstance(part, BaseException):
                    raise part
                yield part
        finally:
            left.set()
            self._n_open -= 1


class _Upstream:
    """The model as a listener behind the check.

    Args:
        endpoint: Who answers.
        known: What the bundled listener perceived, and would have said.
        wish: How.
    """

    def __init__(self, endpoint: ChatEndpoint, known: Reply, wish: Wish) -> None:
        self.endpoint, self.known, self.wish = endpoint, known, wish
        self.name = endpoint.model

    @guarded_stream
    def stream(self, item: Dialogue, *, care: Care | bool = True) -> _UpstreamReply:
        """An answer, asked for when it is iterated."""
        why = _reaction(self.known)
        hints = Hints(
            emotion="" if why is None else why.emotion,
            causes=cause_texts(self.known.understanding.causes, self.known.understanding.turns),
            intent="" if why is None else why.intent,
        )
        guidance = "\n\n".join(self.wish.guidance)
        wording = Wording(instruction=guidance) if guidance.strip() else Wording()
        messages = messages_of(item.turns, hints, wording)
        told = messages[0]["content"].removeprefix(wording.instruction).strip()
        stream = ChatStream(self.endpoint, messages, **dict(self.wish.request))
        return _UpstreamReply(stream, self.known, why, told)


class _UpstreamReply:
    """An answer on its way: iterate for pieces; :attr:`reply` is there at the end."""

    def __init__(self, stream: ChatStream, known: Reply, why: Explanation | None, told: str) -> None:
        self.reply: Reply | None = None
        self._stream, self._known, self._why, self._told = stream, known, why, told

    @property
    def understanding(self) -> Understanding:
        """What was perceived."""
        return self._known.understanding

    def __iter__(self) -> Any:
        said = ""
        for piece in self._stream:
            said += piece
            yield piece
        if not said.strip():
            raise EndpointError(f"{self._stream.endpoint.host} gave an empty answer (finish: {self._stream.finish}).")
        name = self._stream.endpoint.model
        facts = {"responder": name, "strategy": "own", "finish": self._stream.finish, "told": self._told}
        self.reply = Reply(said, self.understanding, name, facts, self._why)


def _reaction(known: Reply) -> Explanation | None:
    """What was found, with the wanted reaction, and without the candidates of another."""
    why = known.explanation
    if why is None:
        return None
    sides: Mapping[str, float] = known.understanding.sides
    intent, source = why.intent, why.intent_from
    if not intent and sides:
        intent, source = REACTIONS[max(sides, key=lambda name: sides[name])], FROM_SIDE
    return replace(why, intent=intent, intent_from=source, candidates=())


def request_of(fields: Mapping[str, object], names: Sequence[str]) -> tuple[tuple[str, object], ...]:
    """Fields of a request that a language model is sent, as pairs."""
    pairs = ((name, fields.get(name)) for name in names)
    return tuple((name, tuple(v) if isinstance(v, list) else v) for name, v in pairs if v is not None)
