"""``POST /v1/chat/completions``: OpenAI's chat, plain and streamed, with our side of the answer beside it."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import Field

from empatheia import __version__
from empatheia.dialogue import Reply
from empatheia.serve.asking import FAULTS, STREAMED, Asked, Question, begun, checked, counted, service_of, told_of
from empatheia.serve.empathy import Empathy, empathy_of
from empatheia.serve.events import DONE, EventStream, event
from empatheia.serve.faults import ApiError, api_error
from empatheia.serve.messages import ChatMessage, SteerBody
from empatheia.serve.replies import Part, Said, cut_at
from empatheia.serve.requests import Body, GuardedRoute, unless_left
from empatheia.serve.service import Service, said_of

router = APIRouter(prefix="/v1", route_class=GuardedRoute, tags=["OpenAI"])
UNSUPPORTED = (
    "tools", "tool_choice", "functions", "function_call", "audio", "prediction", "web_search_options",
)  # fmt: skip
"""Fields that would change what the answer means: refused, where they ask for anything."""


class StreamOptions(Body):
    """Of a streamed answer."""

    include_usage: bool | None = Field(None, description="A last event with the tokens.")


class ResponseFormat(Body):
    """What the answer is."""

    type: str = Field(description="`text`.")


class ChatBody(Body):
    """A request."""

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
    response_format: ResponseFormat | None = None
    logprobs: bool | None = None
    modalities: list[str] | None = None
    empathy: SteerBody | bool | None = Field(
        None, description="Steers the reply and what is reported of it; `false` = a plain OpenAI answer."
    )


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


def read_chat(body: ChatBody, service: Service) -> Asked:
    """Checks a request.

    Raises:
        ApiError: Something of it cannot be done.
    """
    _check_supported(body)
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
            [body.stop] if isinstance(body.stop, str) else body.stop or (),
            body.unknown,
            {**body.model_dump(), **(body.model_extra or {})},
        ),
        service,
    )


def _check_supported(body: ChatBody) -> None:
    """Raises where a field asks for what nobody here can do."""
    for name in UNSUPPORTED:
        if (body.model_extra or {}).get(name) not in (None, [], "none", "auto"):
            said = f"{name} cannot be honoured here; leave it out."
            raise ApiError(400, said, param=name, code="unsupported_parameter")
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
        return EventStream(await begun(request, _chunks(service, asked, made, with_usage)))
    replies = await unless_left(request, service.replies(asked.entry, asked.conversation.dialogue, asked.wishes))
    count = await service.counter(asked.entry)
    said = [said_of(reply, count, asked.stops, asked.most) for reply in replies]
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
        "usage": _usage(*counted(service, asked, count, [one.text for one in said])),
    }
    headers = {}
    if asked.tells:
        answer["empathy"] = told_of(asked, replies)
        if answer["empathy"]["emotion"]:
            headers["x-empatheia-emotion"] = answer["empathy"]["emotion"]
    return JSONResponse(answer, headers=headers)


def _usage(read: int, written: int) -> dict[str, int]:
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
        for index, wish in enumerate(asked.wishes):
            writer = Writer(asked, index)
            async for part in service.stream(asked.entry, asked.conversation.dialogue, wish):
                has_begun = True
                if part.understanding is not None:
                    yield made.chunk(index, {"role": "assistant", "content": ""}, **_first(asked, part, index))
                elif part.reply is None:
                    if text := writer.next(part.text):
                        yield made.chunk(index, {"content": text})
                else:
                    replies.append(part.reply)
                    said = said_of(part.reply, count, asked.stops, asked.most)
                    if text := writer.rest(said):
                        yield made.chunk(index, {"content": text})
                    is_last = asked.tells and index == len(asked.wishes) - 1
                    more = {"empathy": told_of(asked, replies)} if is_last else {}
                    yield made.chunk(index, {}, said.finish, **more)
            texts.append(writer.sent)
        usage = _usage(*counted(service, asked, count, texts))
        if with_usage:
            yield event({**made.head("chat.completion.chunk"), "choices": [], "usage": usage})
    except Exception as error:
        if not has_begun:
            raise
        yield event(api_error(error).body)
    yield DONE


def _first(asked: Asked, part: Part, index: int) -> dict[str, Any]:
    """What is known before the first word."""
    if part.understanding is None or not asked.tells or index:
        return {}
    return {"empathy": empathy_of(part.understanding, asked.conversation, (), asked.ignored, asked.notes)}


class Writer:
    """What of a text on its way can be sent: a part that may begin a stop is held back.

    Args:
        asked: Says where the reply ends.
        index: Of the choice.

    Attributes:
        sent: What was.
    """

    def __init__(self, asked: Asked, index: int) -> None:
        self.sent = ""
        self._heard = ""
        self._stops: Sequence[str] = asked.stops
        self._waits = asked.entry.is_whole(asked.wishes[index]) or (asked.most is not None and asked.entry.is_upstream)
        self._hold = max((len(stop) for stop in asked.stops), default=1) - 1

    def next(self, text: str) -> str:
        """What can be sent after more text has come."""
        self._heard += text
        if self._waits:  # it is cut as a whole
            return ""
        whole, was_stopped = cut_at(self._heard, self._stops)
        ready = whole if was_stopped else whole[: len(whole) - self._hold]
        return self._send(ready[len(self.sent) :])

    def rest(self, said: Said) -> str:
        """What is left when the reply is there."""
        return self._send(said.text[len(self.sent) :] if said.text.startswith(self.sent) else "")

    def _send(self, text: str) -> str:
        self.sent += text
        return text
