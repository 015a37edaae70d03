"""``POST /v1/responses``: OpenAI's newer protocol, for texts: stateless, plain or streamed as typed events."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field

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
from empatheia.serve.events import EventStream, event
from empatheia.serve.faults import ApiError, api_error
from empatheia.serve.messages import ChatMessage, SteerBody
from empatheia.serve.replies import Said
from empatheia.serve.requests import Body, GuardedRoute, unless_left
from empatheia.serve.service import Service, said_of
from empatheia.serve.writing import written

router = APIRouter(prefix="/v1", route_class=GuardedRoute, tags=["OpenAI"])
UNSUPPORTED = {
    "previous_response_id": "nothing is stored; send the whole conversation as input",
    "conversation": "nothing is stored; send the whole conversation as input",
    "background": "nothing is stored; wait for the answer or stream it",
    "prompt": "no prompts are stored",
}
"""Fields that ask for what cannot be done, to the reason."""


class InputMessage(ChatMessage):
    """A message of the conversation, or another item, which is not read."""

    role: str = Field("", description="`user`, `assistant`, `system` or `developer`.")
    type: str = Field("message", description="`message`; items of other types are not read.")


class TextFormat(Body):
    """What the text is."""

    type: str = Field("text", description="`text`; others go to a language model behind `--upstream` alone.")


class TextOptions(Body):
    """How the text is written."""

    format: TextFormat | None = None


class ResponsesBody(Body):
    """A request."""

    input: str | list[InputMessage] = Field(description="A text, or the conversation; the last message is the user's.")
    model: str | None = Field(None, description="The model, see `/v1/models`; without it the server's default.")
    instructions: str | None = Field(None, description="As a system message.")
    stream: bool | None = None
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, ge=0, le=1)
    max_output_tokens: int | None = Field(None, ge=1)
    text: TextOptions | None = None
    tools: list[dict[str, Any]] | None = Field(None, description="Not used.")
    metadata: dict[str, str] | None = Field(None, description="Sent back as it is.")
    seed: int | None = Field(None, description="Same request, same seed: same reply. Without it 0.")
    empathy: SteerBody | bool | None = Field(None, description="As of `/v1/chat/completions`.")

    @property
    def form(self) -> TextFormat | None:
        """What the text is to be other than a text."""
        format = self.text and self.text.format
        return format if format is not None and format.type != "text" else None


class ResponsesAnswer(Body):
    """An answer, not streamed; further fields are OpenAI's."""

    id: str
    object: str
    created_at: int
    status: str = Field(description="`completed`, or `incomplete` where `max_output_tokens` cut it.")
    model: str
    output: list[dict[str, Any]]
    usage: dict[str, Any] | None
    empathy: Empathy | None = None


EXAMPLES = {
    "text": {"summary": "One text", "value": {"model": "empatheia", "input": "I finally passed my driving test!"}},
    "conversation": {
        "summary": "A conversation",
        "value": {
            "input": [
                {"role": "user", "content": "My dog ran away."},
                {"role": "assistant", "content": "Oh no. Where?"},
                {"role": "user", "content": "In the park."},
            ],
            "empathy": {"focus": ["park"]},
        },
    },
}


def read_responses(body: ResponsesBody, service: Service) -> Asked:
    """Checks a request.

    Raises:
        ApiError: Something of it cannot be done.
    """
    extra = body.model_extra or {}
    for name, reason in UNSUPPORTED.items():
        if extra.get(name) not in (None, [], False, 0):
            raise ApiError(400, f"{name}: {reason}; leave it out.", param=name, code="unsupported_parameter")
    return checked(
        Question(
            _messages(body.input),
            body.model,
            body.empathy,
            temperature=body.temperature,
            top_p=body.top_p,
            max_tokens=body.max_output_tokens,
            seed=body.seed,
            unused=[
                *(name for name in body.unknown if extra[name]),
                *(["text.format"] if body.form is not None else []),
                *(["tools"] if body.tools else []),
            ],
            sent_on=_sent_on(body),
            name="input",
            guidance=(body.instructions,) if body.instructions else (),
        ),
        service,
    )


def _messages(given: str | Sequence[InputMessage]) -> list[ChatMessage]:
    """A text as what a user says; items that are no messages as what nobody reads."""
    if isinstance(given, str):
        return [ChatMessage(role="user", content=given)]
    messages: list[ChatMessage] = []
    for place, one in enumerate(given):
        if one.type == "message" and not one.role:
            raise ApiError(400, f"input[{place}].role is missing.", param=f"input[{place}].role", code="missing")
        messages.append(one if one.type == "message" else ChatMessage(role="tool", content=""))
    return messages


def _sent_on(body: ResponsesBody) -> dict[str, Any]:
    """The fields that a language model behind an endpoint gets, as the chat route of OpenAI names them."""
    sent = body.model_dump(include={"temperature", "top_p", "seed"}, exclude_none=True)
    if body.max_output_tokens is not None:
        sent["max_tokens"] = body.max_output_tokens
    if body.form is not None:
        fields = body.form.model_dump(exclude_unset=True)
        sent["response_format"] = {"type": fields.pop("type"), **({"json_schema": fields} if fields else {})}
    return sent


@router.post(
    "/responses",
    response_model=ResponsesAnswer,
    responses={**STREAMED, **FAULTS},
    summary="Answer a text or a conversation",
    openapi_extra={"requestBody": {"content": {"application/json": {"examples": EXAMPLES}}}},
)
async def responses(body: ResponsesBody, request: Request) -> Response:
    """As the chat route, in the form that new clients begin with; nothing is stored."""
    service = service_of(request)
    asked = read_responses(body, service)
    made = _Made(asked, body)
    if body.stream:
        return EventStream(await begun(request, _events(service, asked, made)), asked.headers)
    (reply,) = await unless_left(request, service.replies(asked.entry, asked.conversation.dialogue, asked.wishes))
    count = await service.counter(asked.entry)
    said = said_of(reply, count, asked.stops, asked.most)
    usage = counted(service, asked, count, [said.text])
    return with_empathy(made.response(said, usage), asked, [reply])


class _Made:
    """An answer on its way: the record that events repeat, and their numbers.

    Args:
        asked: What is answered.
        body: Its request.
    """

    def __init__(self, asked: Asked, body: ResponsesBody) -> None:
        self.id, self.item_id = f"resp_{secrets.token_hex(16)}", f"msg_{secrets.token_hex(16)}"
        self.created = int(time.time())
        self.asked, self.body = asked, body
        self._n = -1

    def response(self, said: Said | None, usage: tuple[int, int] | None = None, fault: Any = None) -> dict[str, Any]:
        """The record; without a reply it is in progress."""
        body = self.body
        status = "in_progress" if said is None else "incomplete" if said.finish == "length" else "completed"
        record: dict[str, Any] = {
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": "failed" if fault is not None else status,
            "background": False,
            "error": fault,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "instructions": body.instructions,
            "max_output_tokens": body.max_output_tokens,
            "model": self.asked.entry.id,
            "output": [] if said is None else [self.item(said.text, status)],
            "parallel_tool_calls": False,
            "previous_response_id": None,
            "reasoning": {"effort": None, "summary": None},
            "store": False,
            "temperature": body.temperature,
            "text": {"format": {"type": "text"}},
            "tool_choice": "none",
            "tools": [],
            "top_p": body.top_p,
            "truncation": "disabled",
            "usage": None,
            "metadata": body.metadata or {},
        }
        if usage is not None:
            read, written = usage
            record["usage"] = {
                "input_tokens": read,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": written,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": read + written,
            }
        return record

    def item(self, text: str | None, status: str) -> dict[str, Any]:
        """The message; None = it has no text yet."""
        content = [] if text is None else [self.part(text)]
        return {"id": self.item_id, "type": "message", "status": status, "role": "assistant", "content": content}

    @staticmethod
    def part(text: str) -> dict[str, Any]:
        """The text of the message."""
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}

    def event(self, kind: str, fields: Mapping[str, Any]) -> str:
        """The next event."""
        self._n += 1
        return event({"type": kind, "sequence_number": self._n, **fields}, kind)

    def on_text(self, kind: str, **fields: Any) -> str:
        """An event about the text of the message."""
        return self.event(kind, {"item_id": self.item_id, "output_index": 0, "content_index": 0, **fields})


async def _events(service: Service, asked: Asked, made: _Made) -> AsyncGenerator[str, None]:
    """The events of a streamed answer; what goes wrong after the first one is ``response.failed``."""
    has_begun = False
    try:
        count = await service.counter(asked.entry)
        async for part in written(service, asked, 0, count):
            if isinstance(part, str):
                yield made.on_text("response.output_text.delta", delta=part, logprobs=[])
            elif isinstance(part, Said):
                for line in _ending(asked, made, part, counted(service, asked, count, [part.text])):
                    yield line
            else:
                has_begun = True
                started = made.response(None)
                if asked.tells:
                    started["empathy"] = asked.perceived(part)
                yield made.event("response.created", {"response": started})
                yield made.event("response.in_progress", {"response": made.response(None)})
                item = made.item(None, "in_progress")
                yield made.event("response.output_item.added", {"output_index": 0, "item": item})
                yield made.on_text("response.content_part.added", part=made.part(""))
    except Exception as error:
        if not has_begun:
            raise
        fault = api_error(error).body["error"]
        failed = made.response(None, fault={"code": fault["code"] or "server_error", "message": fault["message"]})
        yield made.event("response.failed", {"response": failed})


def _ending(asked: Asked, made: _Made, said: Said, usage: tuple[int, int]) -> list[str]:
    record = made.response(said, usage)
    replies: list[Reply] = [said.reply]
    if asked.tells:
        record["empathy"] = told_of(asked, replies)
    return [
        made.on_text("response.output_text.done", text=said.text, logprobs=[]),
        made.on_text("response.content_part.done", part=made.part(said.text)),
        made.event("response.output_item.done", {"output_index": 0, "item": record["output"][0]}),
        made.event(f"response.{record['status']}", {"response": record}),
    ]
