"""``/v1/care``: what the check for danger finds in a text; what is said to everybody beforehand."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field

from empatheia.care import Care
from empatheia.care.checking import care_of
from empatheia.records.dialogue import Dialogue
from empatheia.records.reply_schema import SpanRecord
from empatheia.serve.asking import FAULTS, service_of
from empatheia.serve.messages import ChatMessage, read_messages
from empatheia.serve.requests import Body, GuardedRoute, unless_left
from empatheia.serve.service import Service
from empatheia.text.inputs import as_dialogue

router = APIRouter(prefix="/v1", route_class=GuardedRoute, tags=["analysis"])


class CareBody(Body):
    """What is to be checked."""

    input: str | list[ChatMessage] = Field(description="A text, or a conversation (the last message the user's).")


class CareAnswer(BaseModel):
    """What was found."""

    level: str = Field(description="`none`, `concern` (ask gently), `crisis` (act now).")
    about: str = Field(description="`self`, `other`, `past`, `fiction`, `unclear`.")
    kinds: list[str]
    spans: list[SpanRecord] = Field(description="Words that say so.")
    reasons: list[str]
    score: float
    uncertain: list[str]
    failed: bool
    worsened: bool
    is_suspicion: bool = Field(description="A concern that the classifier alone finds, and not surely.")


class CareNotice(BaseModel):
    """How the check stands."""

    care: str = Field(description="`on` or `off`.")
    notice: str = Field(description="Notice before the first message: a machine answers, and where help is.")


EXAMPLES = {"text": {"summary": "One text", "value": {"input": "Everyone would be better off without me."}}}


@router.get("/care", response_model=CareNotice, responses=FAULTS, summary="Whether a check stands before the answers")
async def notice(request: Request) -> dict[str, str]:
    """The notice is to be shown where people write."""
    care = care_of(service_of(request).shelf.care)
    return {"care": "off" if care is None else "on", "notice": "" if care is None else care.notice()}


@router.post(
    "/care",
    response_model=CareAnswer,
    responses=FAULTS,
    summary="Check a text for danger",
    openapi_extra={"requestBody": {"content": {"application/json": {"examples": EXAMPLES}}}},
)
async def check(body: CareBody, request: Request) -> Response:
    """The same as ``empatheia.care.assess`` in Python; a filter that misses things, and no medical device."""
    service = service_of(request)
    limits = service.settings.limits
    if isinstance(body.input, str):
        read_messages([ChatMessage(role="user", content=body.input)], limits, "input")
        dialogue = as_dialogue(body.input)
    else:
        dialogue = read_messages(body.input, limits, "input").dialogue
    return JSONResponse(await unless_left(request, assessed(service, dialogue)))


async def assessed(service: Service, dialogue: Dialogue) -> dict[str, object]:
    """The answer, JSON-ready; by the shipped check where the server's own is off."""
    care = care_of(service.shelf.care) or Care()

    def work(items: Sequence[Dialogue]) -> list[dict[str, object]]:
        return [dict(care.assess(one).to_dict()) for one in items]

    (found,) = await service.engine.ask(("care",), [dialogue], work)
    return found
