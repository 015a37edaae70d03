"""``POST /v1/rank``: replies of anybody's, weighed by every term that a listener of five steps knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field

from empatheia.records.reply import Reply
from empatheia.records.reply_schema import TermsRecord, WeightsRecord
from empatheia.serve.asking import FAULTS, service_of
from empatheia.serve.faults import ApiError
from empatheia.serve.messages import ChatMessage, SteerBody, read_messages, wish_of
from empatheia.serve.requests import Body, GuardedRoute, unless_left

router = APIRouter(prefix="/v1", route_class=GuardedRoute, tags=["analysis"])
LONGEST = 4000
"""Characters of a candidate."""


class RankBody(Body):
    """What is to be ranked."""

    messages: list[ChatMessage] = Field(description="The conversation; the last message is the user's.")
    candidates: list[Annotated[str, Field(min_length=1, max_length=LONGEST)]] = Field(
        min_length=1, description="Replies, 64 at most."
    )
    empathy: SteerBody | None = Field(None, description="Emotion, intent and focus words instead of what is found.")


class RankedReply(BaseModel):
    """One of the candidates."""

    index: int = Field(description="In the request.")
    text: str
    score: float = Field(description="Sum of weight times term; higher = better.")
    terms: TermsRecord


class RankAnswer(BaseModel):
    """Candidates, best first."""

    object: str = "list"
    model: str
    data: list[RankedReply]
    emotion: str | None
    targets: list[str] = Field(description="Words a reply should be about.")
    weights: WeightsRecord
    missing: dict[str, str] = Field(description="What had no model or could not be done, to the reason.")
    ignored: list[str]


EXAMPLES = {
    "two": {
        "summary": "Two replies",
        "value": {
            "messages": [{"role": "user", "content": "My dog ran away in the park."}],
            "candidates": ["Great!", "Oh no, where did you lose your dog?"],
        },
    }
}


@router.post(
    "/rank",
    response_model=RankAnswer,
    responses=FAULTS,
    summary="Rank replies to a conversation",
    openapi_extra={"requestBody": {"content": {"application/json": {"examples": EXAMPLES}}}},
)
async def rank(body: RankBody, request: Request) -> Response:
    """The same as ``Ranker().rank`` in Python."""
    service = service_of(request)
    limits = service.settings.limits
    conversation = read_messages(body.messages, limits)
    if len(body.candidates) > limits.candidates:
        said = f"candidates holds {len(body.candidates)} replies; accepted: at most {limits.candidates}."
        raise ApiError(422, said, param="candidates", code="too_many_items")
    for number, text in enumerate(body.candidates):
        if not text.strip():
            where = f"candidates[{number}]"
            raise ApiError(400, f"{where} is blank; give a text.", param=where, code="empty")
    steering = wish_of(body.empathy, temperature=None, top_p=None, max_tokens=None, seed=None).steering

    def work(_: Sequence[None]) -> list[Reply]:
        return [service.shelf.ranker.rank(conversation.dialogue, body.candidates, steering)]

    (reply,) = await unless_left(request, service.engine.ask(None, [None], work))
    ignored = [*body.unknown, *conversation.ignored()]
    return JSONResponse(ranked(reply, body.candidates, ignored))


def ranked(reply: Reply, candidates: Sequence[str], ignored: Sequence[str] = ()) -> dict[str, object]:
    """The answer, JSON-ready.

    Args:
        reply: From :class:`~empatheia.listener.steps.ranking.Ranker`.
        candidates: In the order of the request.
        ignored: Fields that had no say.
    """
    analysis, emotion = reply.analysis, reply.analysis.newest.emotion
    left = list(enumerate(candidates))
    data = []
    for one in reply.candidates:
        place = next(pair for pair in left if pair[1] == one.text)
        left.remove(place)
        data.append({"index": place[0], "text": one.text, "score": one.score, "terms": dict(one.terms)})
    return {
        "object": "list",
        "model": "empatheia",
        "data": data,
        "emotion": None if emotion is None else emotion.label,
        "targets": [span.of(analysis.dialogue.turns) for span in analysis.targets],
        "weights": dict(reply.weights),
        "missing": dict(analysis.missing),
        "ignored": list(ignored),
    }
