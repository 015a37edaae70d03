"""``POST /v1/score``: anybody's replies, measured; what ``empatheia score --json`` prints."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field

from empatheia.errors import ConfigError, DataError
from empatheia.replies.reply_files import read_replies
from empatheia.replies.scoring import columns_of, score_file
from empatheia.serve.asking import FAULTS, service_of
from empatheia.serve.faults import ApiError
from empatheia.serve.requests import Body, GuardedRoute, unless_left
from empatheia.serve.temporary import PrivateFolder

router = APIRouter(prefix="/v1", route_class=GuardedRoute, tags=["analysis"])
MOST_RESAMPLES = 2000
NAME = "content"
"""What messages call the file."""


class ScoreBody(Body):
    """Replies: a file's content, or lists that belong together."""

    content: str | None = Field(None, description="A file of replies, see docs/howto/score.md; or `replies`.")
    format: str = Field("auto", description="Of the content: moel, mime, empdg, kemp, cem, jsonl, csv, or auto.")
    as_released: bool = Field(False, description="Cut labels off as EmpDG's, KEMP's and CEM's scripts do.")
    replies: list[str] | None = Field(None, description="In place of `content`.")
    references: list[str] | None = Field(None, description="The gold reply of each.")
    contexts: list[list[str]] | None = Field(None, description="The turns before each.")
    systems: list[str] = Field(default_factory=list, description="Only these of the content.")
    profile: str | None = Field(None, description="Variants of a paper, e.g. `gao2021`.")
    metrics: list[str] = Field(default_factory=list, description="Metrics by name.")
    words: str = Field("space", description="What cuts words: space, nltk, nltk-cased, family, rashkin.")
    bootstrap: int = Field(1000, ge=0, le=MOST_RESAMPLES, description="Resamples for 95 % intervals; 0 = none.")


class ScoreAnswer(BaseModel):
    """As ``empatheia score --json`` prints it."""

    format: str
    profile: str | None
    reported: dict[str, Any] = Field(description="What the file states about itself.")
    notes: list[str]
    systems: list[dict[str, Any]] = Field(description="Of each system: scores with intervals, units and signatures.")
    ignored: list[str]


EXAMPLES = {
    "lists": {
        "summary": "Replies and references",
        "value": {
            "replies": ["Oh no, I am so sorry.", "That is great news!"],
            "references": ["I am so sorry to hear that.", "Congratulations, that is great!"],
            "metrics": ["bleu_sacre", "dist_corpus_2"],
            "bootstrap": 0,
        },
    },
    "file": {
        "summary": "A file",
        "value": {"content": '{"reply": "Oh no!", "reference": "Oh dear!"}\n', "format": "jsonl", "bootstrap": 0},
    },
}


@router.post(
    "/score",
    response_model=ScoreAnswer,
    responses=FAULTS,
    summary="Measure replies",
    openapi_extra={"requestBody": {"content": {"application/json": {"examples": EXAMPLES}}}},
)
async def score(body: ScoreBody, request: Request) -> Response:
    """Every number with its interval, unit and signature; no model is asked."""
    service = service_of(request)
    text, format = _content(body)

    def work(_: Sequence[None]) -> list[dict[str, object]]:
        return [scored(text, format, body)]

    (found,) = await unless_left(request, service.engine.ask(None, [None], work, is_bulk=True))
    return JSONResponse({**found, "ignored": body.unknown})


def scored(text: str, format: str, body: ScoreBody) -> dict[str, object]:
    """The answer, JSON-ready.

    Raises:
        ConfigError: An unknown format, profile, metric, system or way to cut words.
        DataError: The content is malformed; the message has the line.
    """
    columns = columns_of(body.profile, body.metrics, body.words)
    with PrivateFolder() as folder:
        path = Path(folder) / NAME
        path.write_text(text, encoding="utf-8", newline="")
        try:
            read = read_replies(path, format, body.as_released)
        except (ConfigError, DataError) as error:
            raise type(error)(str(error).replace(str(path), NAME)) from None
    scores = score_file(read, columns, body.systems, body.bootstrap)
    return {
        "format": read.format,
        "profile": body.profile,
        "reported": dict(read.reported),
        "notes": [note.replace(str(path), NAME) for note in read.notes],
        "systems": [one.to_dict() for one in scores],
    }


def _content(body: ScoreBody) -> tuple[str, str]:
    """The content and its format."""
    if (body.content is None) == (body.replies is None):
        raise ApiError(400, "give content, the text of a file, or replies.", param="content", code="missing")
    if body.bootstrap == 1:
        said = "bootstrap is 1; accepted: 0 for no intervals, or 2 and more."
        raise ApiError(400, said, param="bootstrap", code="invalid_value")
    if body.content is not None:
        if body.references is not None or body.contexts is not None:
            said = "references and contexts go with replies; content holds its own."
            raise ApiError(400, said, param="references", code="invalid_value")
        return body.content, body.format
    replies = body.replies or []
    if not replies:
        raise ApiError(400, "replies is empty; give at least one.", param="replies", code="empty")
    for name in ("references", "contexts"):
        own = getattr(body, name)
        if own is not None and len(own) != len(replies):
            said = f"{name} holds {len(own)} items, replies {len(replies)}; item i of each must belong together."
            raise ApiError(400, said, param=name, code="invalid_value")
    rows = []
    for place, reply in enumerate(replies):
        row: dict[str, Any] = {"reply": reply}
        if body.references is not None:
            row["reference"] = body.references[place]
        if body.contexts is not None:
            row["context"] = body.contexts[place]
        rows.append(json.dumps(row))
    return "\n".join(rows) + "\n", "jsonl"
