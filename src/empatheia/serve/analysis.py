"""``POST /v1/analyze``: what is felt and why, in one text, one conversation, or a list of them."""

from __future__ import annotations

from typing import Any, cast

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field

from empatheia.errors import DataError
from empatheia.records.dialogue import Dialogue
from empatheia.records.reply_schema import UnderstandingRecord
from empatheia.resources.catalogue import LISTENER
from empatheia.serve.asking import FAULTS, service_of
from empatheia.serve.faults import ApiError, FaultRecord, api_error
from empatheia.serve.messages import ChatMessage, read_messages
from empatheia.serve.requests import Body, GuardedRoute, unless_left
from empatheia.serve.settings import Limits
from empatheia.text.inputs import as_dialogue

router = APIRouter(prefix="/v1", route_class=GuardedRoute, tags=["analysis"])


class AnalyzeBody(Body):
    """What is to be analysed."""

    input: str | list[ChatMessage] | list[str | list[ChatMessage]] = Field(
        description="A text, a conversation (messages, the last one the user's), or a list of texts and conversations."
    )
    model: str | None = Field(None, description="The model that perceives; without it the same as in Python.")


class AnalyzedItem(BaseModel):
    """One of them: the fields of an understanding, or what is wrong with it."""

    index: int
    understanding: UnderstandingRecord | None = None
    error: FaultRecord | None = None


class AnalyzeAnswer(BaseModel):
    """What was found, in the order of the input."""

    object: str = "list"
    model: str
    data: list[AnalyzedItem]
    ignored: list[str]


EXAMPLES = {
    "text": {"summary": "One text", "value": {"input": "I finally passed my driving test!"}},
    "conversation": {
        "summary": "A conversation",
        "value": {
            "input": [
                {"role": "user", "content": "My dog ran away."},
                {"role": "assistant", "content": "Oh no. Where?"},
                {"role": "user", "content": "In the park, because of the fireworks."},
            ]
        },
    },
    "list": {"summary": "Several", "value": {"input": ["I lost my keys.", "My sister is visiting tomorrow!"]}},
}


@router.post(
    "/analyze",
    response_model=AnalyzeAnswer,
    response_model_exclude_unset=True,
    responses=FAULTS,
    summary="Find what is felt and which words caused it",
    openapi_extra={"requestBody": {"content": {"application/json": {"examples": EXAMPLES}}}},
)
async def analyze(body: AnalyzeBody, request: Request) -> Response:
    """The same as ``empatheia.analyze`` in Python; of a list, each item that cannot be read has its own error."""
    service = service_of(request)
    entry = service.shelf.entry(body.model or LISTENER)
    read = _read(body, service.settings.limits)
    is_list = isinstance(body.input, list) and not (body.input and isinstance(body.input[0], ChatMessage))
    good = [one for one in read if isinstance(one, Dialogue)]
    if not is_list and not good:
        raise next(one for one in read if isinstance(one, ApiError))
    work = service.analyses(good, entry, is_bulk=len(good) > 1)
    found = iter(await unless_left(request, work) if good else [])
    data: list[dict[str, Any]] = []
    for index, one in enumerate(read):
        if isinstance(one, ApiError):
            data.append({"index": index, "understanding": None, "error": one.body["error"]})
        else:
            data.append({"index": index, "understanding": next(found).to_dict(), "error": None})
    return JSONResponse({"object": "list", "model": entry.id, "data": data, "ignored": body.unknown})


def _read(body: AnalyzeBody, limits: Limits) -> list[Dialogue | ApiError]:
    """Conversations, each alone or what is wrong with it."""
    given = body.input
    is_many = isinstance(given, list) and not (given and isinstance(given[0], ChatMessage))
    items = cast("list[str | list[ChatMessage]]", given if is_many else [given])  # messages come as one conversation
    if not items:
        raise ApiError(400, "input is empty; give a text, a conversation, or a list.", param="input", code="empty")
    if len(items) > limits.texts:
        said = f"input holds {len(items):,} items; accepted: at most {limits.texts:,} at once."
        raise ApiError(422, said, param="input", code="too_many_items")
    out: list[Dialogue | ApiError] = []
    for number, item in enumerate(items):
        name = f"input[{number}]" if len(items) > 1 else "input"
        try:
            out.append(read_item(item, limits, name))
        except (ApiError, DataError) as error:
            out.append(api_error(error))
    return out


def read_item(item: str | list[ChatMessage], limits: Limits, name: str = "input") -> Dialogue:
    """A text or a conversation that is to be analysed.

    Args:
        item: As sent.
        limits: How long it may be.
        name: Of the request's field.

    Raises:
        ApiError: It is too long, or no conversation.
        DataError: There is nothing to read in it.
    """
    if not isinstance(item, str):
        return read_messages(item, limits, name).dialogue
    if len(item) > limits.characters:
        said = f"{name} holds more than {limits.characters:,} characters."
        raise ApiError(422, said, param=name, code="too_long")
    return as_dialogue(item)
