"""``POST /v1/completions``: OpenAI's older protocol, for clients that send one text and read one text."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import AsyncGenerator, Sequence
from itertools import pairwise
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import Field

from empatheia.serve.asking import FAULTS, STREAMED, Asked, Question, begun, checked, counted, service_of, told_of
from empatheia.serve.chat import Usage, stops_of, unused_of, usage_of
from empatheia.serve.empathy import Empathy
from empatheia.serve.events import DONE, EventStream, event
from empatheia.serve.faults import ApiError, api_error
from empatheia.serve.messages import ChatMessage, SteerBody
from empatheia.serve.replies import Said
from empatheia.serve.requests import Body, GuardedRoute, unless_left
from empatheia.serve.service import Service, said_of
from empatheia.serve.writing import written

router = APIRouter(prefix="/v1", route_class=GuardedRoute, tags=["OpenAI"])
_ROLE = r"(?P<user>user|human|speaker)|(?P<assistant>assistant|listener|ai|bot)"
_TURN = re.compile(rf"^[ \t]*(?:{_ROLE})[ \t]*:[ \t]*", re.IGNORECASE | re.MULTILINE)
_USED = ("prompt", "model", "stream", "n", "temperature", "top_p", "max_tokens", "stop", "seed", "echo", "empathy")


class CompletionBody(Body):
    """A request; of further fields `empathy.ignored` says which had no say."""

    prompt: str | list[str] = Field(
        description="What a user says, or a conversation written as `User: ...`, `Assistant: ...`, a line each and the"
        " last one `Assistant:`. Several are answered each by itself."
    )
    model: str | None = Field(None, description="The model, see `/v1/models`; without it the server's default.")
    stream: bool | None = None
    n: int | None = Field(None, ge=1, description="Choices for each prompt; each has its own seed.")
    temperature: float | None = Field(None, ge=0, le=2, description="As of `/v1/chat/completions`.")
    top_p: float | None = Field(None, ge=0, le=1)
    max_tokens: int | None = Field(None, ge=1, description="Without it there is no bound.")
    stop: str | list[Annotated[str, Field(min_length=1)]] | None = Field(None, description="At most 4.")
    seed: int | None = Field(None, description="Same request, same seed: same reply. Without it 0.")
    echo: bool | None = Field(None, description="The prompt stands before the reply.")
    empathy: SteerBody | bool | None = Field(None, description="As of `/v1/chat/completions`.")


class TextChoice(Body):
    """One reply."""

    text: str
    index: int
    finish_reason: str
    logprobs: None = None


class CompletionAnswer(Body):
    """An answer, not streamed."""

    id: str
    object: str
    created: int
    model: str
    choices: list[TextChoice]
    usage: Usage
    empathy: Empathy | None = Field(None, description="Of the first prompt; left out with `empathy: false`.")


EXAMPLES = {"plain": {"summary": "A reply", "value": {"model": "empatheia", "prompt": "My dog ran away in the park."}}}


@router.post(
    "/completions",
    response_model=CompletionAnswer,
    responses={**STREAMED, **FAULTS},
    summary="Answer a text (older protocol)",
    openapi_extra={"requestBody": {"content": {"application/json": {"examples": EXAMPLES}}}},
)
async def completions(body: CompletionBody, request: Request) -> Response:
    """As the chat route, for clients that know no messages."""
    service = service_of(request)
    prompts = _prompts(body, service.settings.limits.choices)
    all_asked = [_checked(body, prompt, service) for prompt in prompts]
    first = all_asked[0]
    head = {"id": f"cmpl-{secrets.token_hex(12)}", "object": "text_completion", "created": int(time.time())}
    head |= {"model": first.entry.id}
    before = [prompt if body.echo else "" for prompt in prompts]
    if body.stream:
        return EventStream(await begun(request, _chunks(service, all_asked, before, head)), first.headers)
    work = (service.replies(one.entry, one.conversation.dialogue, one.wishes) for one in all_asked)
    replies = await unless_left(request, asyncio.gather(*work))
    count = await service.counter(first.entry)
    choices: list[dict[str, Any]] = []
    n_read = n_written = 0
    for asked, start, own in zip(all_asked, before, replies, strict=True):
        said = [said_of(reply, count, asked.stops, asked.most) for reply in own]
        choices += [_choice(len(choices) + place, start + one.text, one.finish) for place, one in enumerate(said)]
        read, wrote = counted(service, asked, count, [one.text for one in said])
        n_read, n_written = n_read + read, n_written + wrote
    answer = {**head, "choices": choices, "usage": usage_of(n_read, n_written)}
    if first.tells:
        answer["empathy"] = told_of(first, replies[0])
    return JSONResponse(answer, headers=first.headers)


def _prompts(body: CompletionBody, most: int) -> list[str]:
    """The texts to answer: at least one, and not more replies to them than accepted."""
    prompts = [body.prompt] if isinstance(body.prompt, str) else body.prompt
    if not prompts:
        raise ApiError(400, "prompt is empty; give at least one text.", param="prompt", code="empty")
    if len(prompts) * (body.n or 1) > most:
        said = f"prompt holds {len(prompts)} texts with n {body.n or 1}; accepted: at most {most} replies at once."
        raise ApiError(400, said, param="prompt", code="invalid_value")
    return prompts


def _checked(body: CompletionBody, prompt: str, service: Service) -> Asked:
    given = body.model_dump(exclude_unset=True)
    sent = {name: value for name, value in given.items() if name not in ("prompt", "model", "stream", "n", "echo")}
    return checked(
        Question(
            _messages(prompt),
            body.model,
            body.empathy,
            body.n or 1,
            body.temperature,
            body.top_p,
            body.max_tokens,
            body.seed,
            stops_of(body.stop),
            unused_of(given, _USED),
            {name: value for name, value in sent.items() if name not in ("empathy", "best_of", "suffix", "logprobs")},
            name="prompt",
        ),
        service,
    )


def _messages(prompt: str) -> list[ChatMessage]:
    """A text as what a user says; one that ends where an assistant is to go on, as the conversation that it is."""
    turns = list(_TURN.finditer(prompt))
    if len(turns) < 2 or not turns[-1]["assistant"] or prompt[turns[-1].end() :].strip():
        return [ChatMessage(role="user", content=prompt)]
    system = prompt[: turns[0].start()].strip()
    messages = [ChatMessage(role="system", content=system)] if system else []
    for turn, following in pairwise(turns):
        role = "user" if turn["user"] else "assistant"
        messages.append(ChatMessage(role=role, content=prompt[turn.end() : following.start()].strip()))
    return messages


def _choice(index: int, text: str, finish: str | None) -> dict[str, Any]:
    return {"text": text, "index": index, "finish_reason": finish, "logprobs": None}


async def _chunks(
    service: Service, all_asked: Sequence[Asked], before: Sequence[str], head: dict[str, Any]
) -> AsyncGenerator[str, None]:
    """The events of a streamed answer; whatever goes wrong on the way, it ends with [DONE]."""
    has_begun, index = False, 0
    try:
        count = await service.counter(all_asked[0].entry)
        for asked, start in zip(all_asked, before, strict=True):
            for choice in range(len(asked.wishes)):
                async for part in written(service, asked, choice, count):
                    has_begun = True
                    text = part if isinstance(part, str) else "" if isinstance(part, Said) else start
                    finish = part.finish if isinstance(part, Said) else None
                    if isinstance(part, Said):
                        counted(service, asked, count, [part.text])
                    if text or finish:
                        yield event({**head, "choices": [_choice(index, text, finish)]})
                index += 1
    except Exception as error:
        if not has_begun:
            raise
        yield event(api_error(error).body)
    yield DONE
