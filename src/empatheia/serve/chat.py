"""``POST /v1/chat/completions``: OpenAI's chat, plain and streamed, with our side of the answer beside it."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import Field

from empatheia import __version__
from empatheia.dialogue import Reply
from empatheia.serve.empathy import Empathy, empathy_of
from empatheia.serve.events import DONE, EventStream, event
from empatheia.serve.faults import ApiError, FaultAnswer, api_error
from empatheia.serve.messages import ChatMessage, Conversation, SteerBody, read_messages, wish_of
from empatheia.serve.requests import Body, GuardedRoute, unless_left
from empatheia.serve.service import Part, Said, Service, cut_at
from empatheia.serve.shelf import Entry, Served, Wish

router = APIRouter(prefix="/v1", route_class=GuardedRoute, tags=["OpenAI"])
FAULTS: dict[int | str, dict[str, Any]] = {
    code: {"model": FaultAnswer} for code in (400, 401, 404, 408, 413, 415, 422, 429, 500, 502)
}
UNSUPPORTED = (
    "tools", "tool_choice", "functions", "function_call", "audio", "prediction", "web_search_options",
)  # fmt: skip
"""Fields that would change what the answer means: refused, where they ask for anything."""
MOST_STOPS = 4


class StreamOptions(Body):
    """Of a streamed answer."""

    include_usage: bool | None = Field(None, description="A last event with the tokens.")


class ResponseFormat(Body):
    """What the answer is."""

    type: str = Field(description="`text`.")


class ChatBody(Body):
    """A request."""

    messages: list[ChatMessage] = Field(description="The conversation; the last message is the user's.")
    model: str | None = Field(None, description="Who answers, see `/v1/models`; without it the server's default.")
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = Field(None, ge=1, description="Choices; each has a seed of its own.")
    temperature: float | None = Field(
        None, ge=0, le=2, description="Above 0 replies are drawn; 0 or nothing: the model's own, steady way."
    )
    top_p: float | None = Field(None, ge=0, le=1)
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1, description="Counts before `max_tokens`.")
    stop: str | list[Annotated[str, Field(min_length=1)]] | None = Field(None, description="At most 4.")
    seed: int | None = Field(None, description="Same request, same seed: same reply. Without it 0.")
    response_format: ResponseFormat | None = None
    logprobs: bool | None = None
    modalities: list[str] | None = None
    empathy: SteerBody | bool | None = Field(
        None, description="Steers the reply and says what is told of it; `false` = a plain OpenAI answer."
    )
    user: str | None = Field(None, description="Not read.")


class ReplyMessage(Body):
    """What is said."""

    role: str
    content: str
    refusal: str | None = None


class Choice(Body):
    """One reply."""

    index: int
    message: ReplyMessage
    finish_reason: str = Field(description="`stop` or `length`.")
    logprobs: None = None


class Usage(Body):
    """Tokens: pieces of the model where it has a tokeniser of ours, else words."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatAnswer(Body):
    """An answer, not streamed."""

    id: str
    object: str
    created: int
    model: str
    system_fingerprint: str
    choices: list[Choice]
    usage: Usage
    empathy: Empathy | None = Field(None, description="Left out with `empathy: false`.")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, checked.

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


def service_of(request: Request) -> Service:
    """The server's service."""
    return request.app.state.service


def read_chat(body: ChatBody, service: Service) -> Asked:
    """Checks a request.

    Raises:
        ApiError: Something of it cannot be done.
    """
    entry = service.shelf.entry(body.model)
    conversation = read_messages(body.messages, service.settings.limits)
    _check_supported(body)
    n = body.n or 1
    if n > service.settings.limits.choices:
        most = service.settings.limits.choices
        raise ApiError(400, f"n is {n}; accepted: from 1 to {most}.", param="n", code="invalid_value")
    stops = [body.stop] if isinstance(body.stop, str) else body.stop or []
    if len(stops) > MOST_STOPS:
        said = f"stop holds {len(stops)} texts; accepted: at most {MOST_STOPS}."
        raise ApiError(400, said, param="stop", code="invalid_value")
    steer = body.empathy if isinstance(body.empathy, SteerBody) else None
    most = body.max_tokens if body.max_completion_tokens is None else body.max_completion_tokens
    wish = wish_of(steer, temperature=body.temperature, top_p=body.top_p, max_tokens=most, seed=body.seed)
    seeds = [(body.seed or 0) + index for index in range(n)]
    wishes = [wish] + [
        replace(wish, writing=tuple(sorted({**dict(wish.writing), "seed": seed % 2**63}.items()))) for seed in seeds[1:]
    ]
    ignored = body.unknown + (["user"] if body.user is not None else [])
    ignored += [f"empathy.{name}" for name in (steer.unknown if steer is not None else ())]
    ignored += ["messages: system, developer"] if conversation.guidance else []
    notes = [] if most is None or most <= 1024 else ["max_tokens is cut to 1,024, the longest reply there is"]
    return Asked(
        conversation, entry, tuple(wishes), tuple(stops), most, tuple(ignored), tuple(notes),
        tells=body.empathy is not False,
        explains=steer is None or steer.explain is not False,
    )  # fmt: skip


def _check_supported(body: ChatBody) -> None:
    """Raises where a field asks for what nobody here can do."""
    for name in UNSUPPORTED:
        if (body.model_extra or {}).get(name) not in (None, [], "none", "auto"):
            raise ApiError(
                400, f"{name} cannot be honoured here; leave it out.", param=name, code="unsupported_parameter"
            )
    if body.response_format is not None and body.response_format.type != "text":
        said = f"response_format is {body.response_format.type[:40]!r}; accepted: text."
        raise ApiError(400, said, param="response_format", code="unsupported_parameter")
    if body.logprobs:
        said = "logprobs cannot be told; leave it out."
        raise ApiError(400, said, param="logprobs", code="unsupported_parameter")
    if set(body.modalities or ()) - {"text"}:
        raise ApiError(400, "modalities: accepted: text.", param="modalities", code="unsupported_parameter")


EXAMPLES = {
    "plain": {
        "summary": "A reply",
        "value": {"model": "empatheia", "messages": [{"role": "user", "content": "My dog ran away in the park."}]},
    },
    "steered": {
        "summary": "About certain words, as the caller feels it",
        "value": {
            "model": "empatheia",
            "messages": [{"role": "user", "content": "My dog ran away in the park."}],
            "empathy": {"explain": True, "emotion": "afraid", "focus": ["dog"]},
        },
    },
}


@router.post(
    "/chat/completions",
    response_model=ChatAnswer,
    responses=FAULTS,
    summary="Answer a conversation",
    openapi_extra={"requestBody": {"content": {"application/json": {"examples": EXAMPLES}}}},
)
async def chat_completions(body: ChatBody, request: Request) -> Response:
    """Answers the last user message; streamed as server-sent events with `stream`."""
    service = service_of(request)
    asked = read_chat(body, service)
    made = _Made(asked.entry.id)
    if body.stream:
        with_usage = bool(body.stream_options and body.stream_options.include_usage)
        parts = _chunks(service, asked, made, with_usage)
        return EventStream(await _begun(request, parts))
    replies = await unless_left(request, service.replies(asked.entry, asked.conversation.dialogue, asked.wishes))
    served = await service.served(asked.entry)
    said = [service.said(reply, served, asked.stops, asked.most) for reply in replies]
    answer = {
        **made.head("chat.completion"),
        "choices": [
            {
                "index": index,
                "message": {"role": "assistant", "content": one.text, "refusal": None},
                "finish_reason": one.finish,
                "logprobs": None,
            }
            for index, one in enumerate(said)
        ],
        "usage": usage_of(service, served, asked, [one.text for one in said]),
    }
    headers = {}
    if asked.tells:
        answer["empathy"] = told_of(asked, replies)
        if answer["empathy"]["emotion"]:
            headers["x-empatheia-emotion"] = answer["empathy"]["emotion"]
    return JSONResponse(answer, headers=headers)


def told_of(asked: Asked, replies: Sequence[Reply]) -> dict[str, Any]:
    """Our side of an answer."""
    model = asked.entry.id
    told = empathy_of(
        replies[0].understanding, asked.conversation, [(r, model) for r in replies], asked.ignored, asked.notes
    )
    return told if asked.explains else {**told, "candidates": [], "weights": None}


def usage_of(service: Service, served: Served, asked: Asked, texts: Sequence[str]) -> dict[str, int]:
    """Tokens of an answer, counted for the server, too."""
    read = sum(served.count(turn.text) for turn in asked.conversation.dialogue.turns)
    written = sum(served.count(text) for text in texts)
    service.measures.tokens.labels(asked.entry.id, "read").inc(read)
    service.measures.tokens.labels(asked.entry.id, "written").inc(written)
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


class _Made:
    """What every part of an answer begins with.

    Args:
        model: Who answers.
    """

    def __init__(self, model: str) -> None:
        self.id = f"chatcmpl-{secrets.token_hex(12)}"
        self.created = int(time.time())
        self.model = model

    def head(self, kind: str) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": f"empatheia-{__version__}",
        }

    def chunk(self, index: int, delta: Mapping[str, Any], finish: str | None = None, **more: Any) -> str:
        choice = {"index": index, "delta": dict(delta), "finish_reason": finish, "logprobs": None}
        return event({**self.head("chat.completion.chunk"), "choices": [choice], **more})


async def _begun(request: Request, parts: AsyncIterator[str]) -> AsyncIterator[str]:
    """The events, once there is a first one: what goes wrong before it is an answer with a status of its own."""
    first = await unless_left(request, anext(parts))

    async def all_of_it() -> AsyncIterator[str]:
        try:
            yield first
            async for part in parts:
                yield part
        finally:
            await parts.aclose()  # pyright: ignore[reportAttributeAccessIssue]

    return all_of_it()


async def _chunks(service: Service, asked: Asked, made: _Made, with_usage: bool) -> AsyncIterator[str]:
    """The events of a streamed answer; whatever goes wrong on the way, it ends with [DONE]."""
    replies: list[Reply] = []
    texts: list[str] = []
    has_begun = False
    try:
        for index, wish in enumerate(asked.wishes):
            writer = _Writer(asked, made, index)
            async for part in service.stream(asked.entry, asked.conversation.dialogue, wish):
                if part.reply is not None:
                    served = await service.served(asked.entry)
                    replies.append(part.reply)
                    for line in writer.end(service.said(part.reply, served, asked.stops, asked.most), replies):
                        yield line
                    continue
                for line in writer.lines(part):
                    has_begun = True
                    yield line
            texts.append(writer.sent)
    except Exception as error:
        if not has_begun:
            raise
        yield event(api_error(error).body)
        yield DONE
        return
    if with_usage:
        served = await service.served(asked.entry)
        usage = usage_of(service, served, asked, texts)
        yield event({**made.head("chat.completion.chunk"), "choices": [], "usage": usage})
    yield DONE


class _Writer:
    """Events of one choice; a text that may be the beginning of a stop is held back."""

    def __init__(self, asked: Asked, made: _Made, index: int) -> None:
        self.asked, self.made, self.index = asked, made, index
        self.heard = self.sent = ""
        self._hold = 0 if asked.entry.is_whole(asked.wishes[index]) else max(map(len, asked.stops), default=1) - 1

    def lines(self, part: Part) -> list[str]:
        """Events of a part."""
        if part.understanding is not None:
            more = {}
            if self.asked.tells and self.index == 0:
                more["empathy"] = empathy_of(part.understanding, self.asked.conversation, (), self.asked.ignored)
            return [self.made.chunk(self.index, {"role": "assistant", "content": ""}, **more)]
        self.heard += part.text
        if self.asked.entry.is_whole(self.asked.wishes[self.index]):
            return []  # it is cut and sent when the reply is there
        text, was_stopped = cut_at(self.heard, self.asked.stops)
        ready = text if was_stopped else text[: len(text) - self._hold]
        return self._delta(ready[len(self.sent) :])

    def end(self, said: Said, replies: Sequence[Reply]) -> list[str]:
        """The last events, once the whole reply is known."""
        more = {}
        if self.asked.tells and self.index == len(self.asked.wishes) - 1:
            more["empathy"] = told_of(self.asked, replies)
        text = said.text
        rest = text[len(self.sent) :] if text.startswith(self.sent) else ""
        return [*self._delta(rest), self.made.chunk(self.index, {}, said.finish, **more)]

    def _delta(self, text: str) -> list[str]:
        if not text:
            return []
        self.sent += text
        return [self.made.chunk(self.index, {"content": text})]
