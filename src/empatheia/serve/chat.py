"""``POST /v1/chat/completions``: OpenAI's chat, plain and streamed, with our side of the answer beside it."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Annotated, Any, cast

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field

from empatheia import __version__
from empatheia.records.reply import Reply
from empatheia.serve.asking import (
    FAULTS,
    STREAMED,
    Asked,
    Question,
    begun,
    checked,
    counted,
    service_of,
    told_of,
    with_empathy,
)
from empatheia.serve.empathy import Empathy
from empatheia.serve.events import DONE, EventStream, event
from empatheia.serve.faults import api_error
from empatheia.serve.messages import ChatMessage, SteerBody
from empatheia.serve.replies import TOOL_CALLS, Said
from empatheia.serve.requests import Body, GuardedRoute, unless_left
from empatheia.serve.service import Service, said_of
from empatheia.serve.writing import written

router = APIRouter(prefix="/v1", route_class=GuardedRoute, tags=["OpenAI"])
OURS = ("messages", "model", "stream", "stream_options", "n", "empathy")
"""Fields that a language model behind an endpoint does not get as they came."""
_USED = (*OURS, "temperature", "top_p", "max_tokens", "max_completion_tokens", "stop", "seed")
_NOTHING = (None, False, 0, "none", "auto", "text", [], {}, ["text"], {"type": "text"})
"""Values that ask for nothing beyond a text."""


class StreamOptions(Body):
    """Of a streamed answer."""

    include_usage: bool | None = Field(None, description="A last event with the tokens.")


class ResponseFormat(Body):
    """What the answer is."""

    type: str = Field(description="`text`; others are honoured by a language model behind `--upstream` alone.")


class ChatBody(Body):
    """A request; of further fields `empathy.ignored` says which had no say."""

    messages: list[ChatMessage] = Field(description="The conversation; the last message is the user's.")
    model: str | None = Field(None, description="The model, see `/v1/models`; without it the server's default.")
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = Field(None, ge=1, description="Number of choices; each has its own seed.")
    temperature: float | None = Field(
        None, ge=0, le=2, description="Above 0 replies are sampled; 0 or none: deterministic."
    )
    top_p: float | None = Field(None, ge=0, le=1)
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1, description="Counts before `max_tokens`.")
    stop: str | list[Annotated[str, Field(min_length=1)]] | None = Field(None, description="At most 4.")
    seed: int | None = Field(None, description="Same request, same seed: same reply. Without it 0.")
    frequency_penalty: float | None = Field(None, ge=-2, le=2)
    presence_penalty: float | None = Field(None, ge=-2, le=2)
    logit_bias: dict[str, float] | None = None
    user: str | None = None
    tools: list[dict[str, Any]] | None = Field(None, description="As `response_format`.")
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    response_format: ResponseFormat | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = Field(None, ge=0)
    modalities: list[str] | None = None
    reasoning_effort: str | None = None
    empathy: SteerBody | bool | None = Field(
        None, description="Steers the reply and what is reported of it; `false` = a plain OpenAI answer."
    )


class ReplyMessage(Body):
    """What is said."""

    role: str
    content: str | None = Field(description="Null where there are tool calls alone.")
    refusal: str | None = None
    tool_calls: list[dict[str, Any]] | None = Field(None, description="Of a language model behind `--upstream`.")


class Choice(Body):
    """One reply."""

    index: int
    message: ReplyMessage
    finish_reason: str = Field(description="`stop`, `length`, or what a language model says.")
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


def read_chat(body: ChatBody, service: Service) -> Asked:
    """Checks a request.

    Raises:
        ApiError: Something of it cannot be done.
    """
    given = body.model_dump(exclude_unset=True, exclude={"messages"})
    return checked(
        Question(
            body.messages,
            body.model,
            body.empathy,
            body.n or 1,
            body.temperature,
            body.top_p,
            body.max_tokens if body.max_completion_tokens is None else body.max_completion_tokens,
            body.seed,
            stops_of(body.stop),
            unused_of(given, _USED),
            {name: value for name, value in given.items() if name not in OURS and value is not None},
        ),
        service,
    )


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
    responses={**STREAMED, **FAULTS},
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
        return EventStream(await begun(request, _chunks(service, asked, made, with_usage)), asked.headers)
    replies = await unless_left(request, service.replies(asked.entry, asked.conversation.dialogue, asked.wishes))
    count = await service.counter(asked.entry)
    said = [said_of(reply, count, asked.stops, asked.most) for reply in replies]
    answer: dict[str, Any] = {
        **made.head("chat.completion"),
        "choices": [
            {"index": index, "message": _message(one), "finish_reason": one.finish, "logprobs": None}
            for index, one in enumerate(said)
        ],
        "usage": usage_of(*counted(service, asked, count, [one.text for one in said])),
    }
    return with_empathy(answer, asked, replies)


def _message(said: Said) -> dict[str, Any]:
    calls = _calls_of(said)
    message = {"role": "assistant", "content": said.text or (None if calls else ""), "refusal": None}
    return {**message, "tool_calls": calls} if calls else message


def _calls_of(said: Said) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", said.reply.decoding.get(TOOL_CALLS) or [])


def stops_of(stop: str | Sequence[str] | None) -> Sequence[str]:
    """Where the reply ends, of a request's ``stop``."""
    return [stop] if isinstance(stop, str) else stop or ()


def unused_of(given: Mapping[str, Any], used: Sequence[str]) -> list[str]:
    """Fields of a request that ask for something and mean nothing to listeners of ours."""
    return sorted(name for name, value in given.items() if name not in used and value not in _NOTHING)


def usage_of(read: int, written: int) -> dict[str, int]:
    """Tokens as OpenAI names them."""
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


async def _chunks(service: Service, asked: Asked, made: _Made, with_usage: bool) -> AsyncGenerator[str, None]:
    """The events of a streamed answer; whatever goes wrong on the way, it ends with [DONE]."""
    replies: list[Reply] = []
    texts: list[str] = []
    has_begun = False
    try:
        count = await service.counter(asked.entry)
        for index in range(len(asked.wishes)):
            async for part in written(service, asked, index, count):
                has_begun = True
                if isinstance(part, str):
                    yield made.chunk(index, {"content": part})
                elif isinstance(part, Said):
                    replies.append(part.reply)
                    if calls := _calls_of(part):
                        numbered = [{"index": place, **call} for place, call in enumerate(calls)]
                        yield made.chunk(index, {"tool_calls": numbered})
                    is_last = asked.tells and index == len(asked.wishes) - 1
                    more = {"empathy": told_of(asked, replies)} if is_last else {}
                    yield made.chunk(index, {}, part.finish, **more)
                    texts.append(part.text)
                else:
                    first = {"empathy": asked.perceived(part)} if asked.tells and not index else {}
                    yield made.chunk(index, {"role": "assistant", "content": ""}, None, **first)
        usage = usage_of(*counted(service, asked, count, texts))
        if with_usage:
            yield event({**made.head("chat.completion.chunk"), "choices": [], "usage": usage})
    except Exception as error:
        if not has_begun:
            raise
        yield event(api_error(error).body)
    yield DONE
