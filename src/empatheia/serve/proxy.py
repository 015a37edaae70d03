"""Empathy in front of any language model: the conversation is analysed, the findings are told, the answer is checked.

The analysis is that of the default listener, whose own reply stands ready in case the model does not answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import Any

from empatheia.care import Care, guarded_stream
from empatheia.errors import EndpointError
from empatheia.giving_way import Abandoned, asking
from empatheia.reading import parse_json
from empatheia.records.analysis import FROM_SIDE, Analysis, Labels
from empatheia.records.dialogue import Dialogue
from empatheia.records.reply import Reply
from empatheia.resources.chat_endpoint import ChatEndpoint
from empatheia.resources.chat_stream import ChatStream
from empatheia.serve.engine import Left
from empatheia.serve.faults import ApiError
from empatheia.serve.replies import CARE, TOOL_CALLS, Part, Wish
from empatheia.text.prompts import Hints, Wording, analysis_of, cause_texts

REACTIONS = {"unpleasant": "sympathizing", "pleasant": "acknowledging", "mixed": "questioning"}
"""The reaction that is wanted where no model names one: what listeners most often do on that side."""
PLAIN = "plain"
_THREADS = 32
_END = object()
_TASK = Dialogue.of("Write a title.")
"""Stands for a task in the check of its answer: what the task holds was checked before it was taken for one."""


class Proxy:
    """A language model behind an endpoint, told what was perceived.

    Args:
        perceive: Gives the default listener's reply, with its candidates.
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
            wish: How; ``request`` and ``guidance`` are for the model; with ``plain`` it gets them alone.
            is_whole: The caller reads the last part alone, so that the fallback may come after other words.

        Raises:
            EndpointError: The model gave no answer, and there is no fallback or words of it were sent already.
            ApiError: Too many requests wait for the model.
        """
        if wish.plain is None:
            known = await self._perceive(dialogue, Wish(steering=wish.steering, explain=True))
        else:
            known = plain_reply(wish.plain, dialogue)
        yield Part(analysis=known.analysis)
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

        def ending() -> None:
            if left.is_set():
                raise Abandoned

        def speak() -> None:
            try:
                with asking(ending):
                    stream = speaker.stream(dialogue if speaker.wish.plain is None else _TASK, care=self._care)
                    with closing(iter(stream)) as pieces:
                        for piece in pieces:
                            ending()
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
        """An answer to what the wish holds, asked for when it is iterated."""
        del item, care  # the check has read them
        known, told = replace(self.known, analysis=_with_reaction(self.known.analysis), candidates=()), ""
        guidance = "\n\n".join(self.wish.guidance).strip()
        if self.wish.plain is None:
            newest = known.analysis.newest
            causes = cause_texts(newest.causes, known.analysis.dialogue.turns)
            labels = ("" if own is None else own.label for own in (newest.emotion, newest.reaction))
            told = analysis_of(Hints(next(labels), causes, next(labels)))
            guidance = guidance or Wording().instruction
        request = parse_json(self.wish.request)
        system = "\n\n".join(part for part in (guidance, told) if part)
        messages = [*([{"role": "system", "content": system}] if system else []), *request.pop("messages")]
        return _UpstreamReply(ChatStream(self.endpoint, messages, **request), known, told)


class _UpstreamReply:
    """An answer on its way: iterate for pieces; :attr:`reply` is there at the end."""

    def __init__(self, stream: ChatStream, known: Reply, told: str) -> None:
        self.reply: Reply | None = None
        self._stream, self._known, self._told = stream, known, told

    @property
    def analysis(self) -> Analysis:
        """What was perceived."""
        return self._known.analysis

    def __iter__(self) -> Any:
        said = ""
        for piece in self._stream:
            said += piece
            yield piece
        calls = self._stream.tool_calls
        if not said.strip() and not calls:
            raise EndpointError(f"{self._stream.endpoint.host} gave an empty answer (finish: {self._stream.finish}).")
        name = self._stream.endpoint.model
        facts: dict[str, Any] = {
            "responder": name,
            "strategy": "own",
            "finish": self._stream.finish,
            "told": self._told,
        }
        facts |= {TOOL_CALLS: calls} if calls else {}
        self.reply = Reply(said, self.analysis, name, facts, weights=self._known.weights)


def _with_reaction(analysis: Analysis) -> Analysis:
    """What was found, with the reaction that is wanted where no model names one."""
    newest = analysis.newest
    if newest.reaction is not None or newest.side is None:
        return analysis
    wanted = replace(newest, reaction=Labels({REACTIONS[newest.side.label]: 1.0}, FROM_SIDE))
    turns = tuple(wanted if one is newest else one for one in analysis.turns)
    return replace(analysis, turns=turns, by={**analysis.by, "reaction": FROM_SIDE})


def plain_reply(text: str, dialogue: Dialogue) -> Reply:
    """An answer where no person is answered, nor anything perceived."""
    return Reply(text, Analysis(dialogue), PLAIN, {"strategy": PLAIN})
