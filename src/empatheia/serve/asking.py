"""A request to answer a conversation, whatever route it came by, checked."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse

from empatheia.care.checking import care_of
from empatheia.reading import parse_json
from empatheia.records.analysis import Analysis
from empatheia.records.reply import Reply
from empatheia.serve.empathy import empathy_of
from empatheia.serve.faults import ApiError, FaultAnswer
from empatheia.serve.messages import ChatMessage, Conversation, SteerBody, read_messages, sent_on, wish_of
from empatheia.serve.replies import Wish
from empatheia.serve.requests import unless_left
from empatheia.serve.service import Count, Service
from empatheia.serve.shelf import Entry
from empatheia.serve.tasks import plain_answer
from empatheia.voices.decoding import MAX_NEW_TOKENS_LIMIT

_LOG = logging.getLogger(__name__)
FAULTS: dict[int | str, dict[str, Any]] = {
    code: {"model": FaultAnswer} for code in (400, 401, 404, 408, 413, 415, 422, 429, 500, 502, 504)
}
STREAMED: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {}}, "description": "Whole, or as server-sent events."}
}
MOST_STOPS = 4
_LONGEST_HEADER = 1000
_NO_HEADER = re.compile(r"[^\w.,:\[\] -]", re.ASCII)


@dataclass(frozen=True, slots=True)
class Question:
    """A request's fields, by the names of OpenAI's chat.

    Attributes:
        messages: The conversation.
        model: Who answers; None = the default.
        empathy: What the caller decides; False = our side is not told.
        n: Choices.
        temperature, top_p, max_tokens, seed: Of the writing.
        stops: Where the reply ends.
        unused: Fields that mean nothing to listeners of ours.
        sent_on: Fields as they came, for a language model behind an endpoint.
        name: What the field of the messages is called.
        guidance: As system messages, before those of the conversation.
    """

    messages: Sequence[ChatMessage]
    model: str | None = None
    empathy: SteerBody | bool | None = None
    n: int = 1
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    stops: Sequence[str] = ()
    unused: Sequence[str] = ()
    sent_on: Mapping[str, Any] = field(default_factory=dict)
    name: str = "messages"
    guidance: tuple[str, ...] = ()

    @property
    def steer(self) -> SteerBody | None:
        """What the caller decides, if anything."""
        return self.empathy if isinstance(self.empathy, SteerBody) else None


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, checked.

    Attributes:
        conversation: What is answered.
        entry: By whom.
        wishes: How, one for each choice.
        stops: Where the reply ends.
        most: Tokens of the reply at most, or None.
        ignored: Fields that have no say.
        notes: What is done otherwise than asked.
        tells: Whether our side of the answer is wanted.
        explains: Whether candidates are.
    """

    conversation: Conversation
    entry: Entry
    wishes: tuple[Wish, ...]
    stops: tuple[str, ...]
    most: int | None
    ignored: tuple[str, ...]
    notes: tuple[str, ...]
    tells: bool
    explains: bool

    @property
    def headers(self) -> dict[str, str]:
        """What is told of the request beside the answer, for clients that drop fields which they do not know."""
        told = _NO_HEADER.sub("?", ", ".join(self.ignored))[:_LONGEST_HEADER]
        return {"x-empatheia-ignored": told} if told else {}

    def perceived(self, analysis: Analysis) -> dict[str, object]:
        """Our side before the first word."""
        return empathy_of(analysis, self.conversation, (), self.ignored, self.notes)


def service_of(request: Request) -> Service:
    """The server's service."""
    return request.app.state.service


def checked(question: Question, service: Service) -> Asked:
    """Checks a question.

    Raises:
        ApiError: Something of it cannot be done.
        DecodingError: A value of ``empathy`` is unknown or out of range.
    """
    entry = service.shelf.entry(question.model)
    limits = service.settings.limits
    conversation = read_messages(question.messages, limits, question.name)
    _check_counts(question, limits.choices)
    wish = wish_of(
        question.steer,
        temperature=question.temperature,
        top_p=question.top_p,
        max_tokens=question.max_tokens,
        seed=question.seed,
    )
    wish = replace(wish, plain=plain_answer(question.messages, _no_danger(service)))
    ignored = [*question.unused, *(f"empathy.{name}" for name in (question.steer.unknown if question.steer else ()))]
    if entry.is_upstream:
        request = {**question.sent_on, "messages": sent_on(question.messages)}
        guidance = (*question.guidance, *conversation.guidance)
        wish = replace(wish, request=json.dumps(request), guidance=guidance)
        ignored = [name for name in ignored if name not in request]
    else:
        ignored += [*conversation.ignored(question.name), *(["instructions"] if question.guidance else [])]
    return Asked(
        conversation,
        entry,
        tuple(_seeded(wish, (question.seed or 0) + index, entry) if index else wish for index in range(question.n)),
        tuple(question.stops),
        question.max_tokens,
        tuple(ignored),
        _notes(question, conversation, entry),
        tells=question.empathy is not False and wish.plain is None,
        explains=question.steer is None or question.steer.explain is not False,
    )


def _notes(question: Question, conversation: Conversation, entry: Entry) -> tuple[str, ...]:
    """What is done otherwise than asked."""
    if entry.is_upstream:
        unread = ", ".join(conversation.unread)
        return (f"passed on, and not read by the analysis: {unread}",) if unread else ()
    if question.max_tokens is not None and question.max_tokens > MAX_NEW_TOKENS_LIMIT:
        return (f"the longest reply there is has {MAX_NEW_TOKENS_LIMIT:,} tokens",)
    return ()


def _no_danger(service: Service) -> Callable[[str], bool]:
    """Whether the check finds no danger in a text."""
    care = care_of(service.shelf.care)
    return lambda text: care is None or not care.assess(text).is_flagged


def _check_counts(question: Question, most_choices: int) -> None:
    """No more choices and stops than accepted."""
    if question.n > most_choices:
        said = f"n is {question.n}; accepted: from 1 to {most_choices}."
        raise ApiError(400, said, param="n", code="invalid_value")
    if len(question.stops) > MOST_STOPS:
        said = f"stop holds {len(question.stops)} texts; accepted: at most {MOST_STOPS}."
        raise ApiError(400, said, param="stop", code="invalid_value")


def _seeded(wish: Wish, seed: int, entry: Entry) -> Wish:
    """The wish of a further choice: the same with another seed."""
    seed %= 2**63
    if entry.is_upstream:
        return replace(wish, request=json.dumps({**parse_json(wish.request), "seed": seed}))
    return replace(wish, writing=tuple(sorted({**dict(wish.writing), "seed": seed}.items())))


def told_of(asked: Asked, replies: Sequence[Reply]) -> dict[str, object]:
    """Our side of an answer."""
    pairs = [(reply, asked.entry.id) for reply in replies]
    told = empathy_of(replies[0].analysis, asked.conversation, pairs, asked.ignored, asked.notes)
    return told if asked.explains else {**told, "candidates": [], "weights": None}


def with_empathy(answer: dict[str, Any], asked: Asked, replies: Sequence[Reply]) -> JSONResponse:
    """A whole answer with our side of it, where it is wanted; the emotion stands in a header, too."""
    headers = dict(asked.headers)
    if asked.tells:
        told = told_of(asked, replies)
        answer["empathy"] = told
        if told["emotion"]:
            headers["x-empatheia-emotion"] = str(told["emotion"])
    return JSONResponse(answer, headers=headers)


def counted(service: Service, asked: Asked, count: Count, texts: Sequence[str]) -> tuple[int, int]:
    """Tokens read and written, noted in the server's counters, too; the texts in its log, if it may hold them."""
    if service.settings.log_text:
        _LOG.info("%s: %r answered %r", asked.entry.id, asked.conversation.dialogue.turns[-1].text, list(texts))
    read = sum(count(turn.text) for turn in asked.conversation.dialogue.turns)
    written = sum(count(text) for text in texts)
    service.measures.tokens.labels(asked.entry.id, "read").inc(read)
    service.measures.tokens.labels(asked.entry.id, "written").inc(written)
    return read, written


async def begun(request: Request, parts: AsyncGenerator[str, None]) -> AsyncGenerator[str, None]:
    """Events, once there is a first one: what goes wrong before it is an answer with a status of its own.

    Raises:
        ApiError: The client left before.
    """
    first = await unless_left(request, anext(parts))

    async def all_of_it() -> AsyncGenerator[str, None]:
        try:
            yield first
            async for part in parts:
                yield part
        finally:
            await parts.aclose()

    return all_of_it()
