"""``/v1/jobs``: many texts analysed in the background."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import BaseModel, Field

from empatheia.resources.catalogue import LISTENER
from empatheia.serve.asking import FAULTS, service_of
from empatheia.serve.faults import FaultAnswer
from empatheia.serve.jobs import Jobs
from empatheia.serve.messages import ChatMessage
from empatheia.serve.requests import Body, GuardedRoute

router = APIRouter(prefix="/v1/jobs", route_class=GuardedRoute, tags=["jobs"])
_FAULTS = {**FAULTS, 409: {"model": FaultAnswer}}


class JobRow(Body):
    """A row that is to be analysed."""

    input: str | list[ChatMessage] = Field(description="A text, or a conversation (the last message the user's).")
    id: str | None = Field(None, max_length=200)
    cells: dict[str, str] | None = Field(None, max_length=64, description="Other columns, given back as they are.")


class JobBody(Body):
    """A job, with its first rows."""

    rows: list[JobRow] = Field(default_factory=list, max_length=5000)
    last: bool = Field(True, description="False: further rows follow.")
    name: str = Field("", max_length=200, description="E.g. of the file.")
    columns: list[str] = Field(default_factory=list, max_length=64, description="Names of `cells`, in their order.")
    model: str | None = Field(None, description="The model that perceives.")


class MoreBody(Body):
    """Further rows."""

    rows: list[JobRow] = Field(max_length=5000)
    last: bool = Field(description="False: further rows follow.")


class CauseCount(BaseModel):
    """A cause."""

    text: str
    rows: int


class JobAnswer(BaseModel):
    """How far it is."""

    id: str = Field(description="Cannot be guessed; who has it may read and delete the job.")
    name: str
    model: str
    columns: list[str]
    created: int = Field(description="Seconds since 1970.")
    expires: int | None = Field(description="When it is deleted; null while it runs.")
    status: Literal["waiting", "running", "done", "cancelled", "failed"]
    error: str | None
    total: int = Field(description="Rows received so far.")
    closed: bool = Field(description="All rows have been received.")
    done: int
    failed: int = Field(description="Of these, rows that could not be read.")
    emotions: dict[str, int] = Field(description="Rows by emotion, the most frequent first.")
    sides: dict[str, int]
    causes: list[CauseCount] = Field(description="The most frequent ones, in small letters.")


class RowsAnswer(BaseModel):
    """Some of the results."""

    object: str = "list"
    start: int
    matches: int = Field(description="Rows that are wanted, in all.")
    data: list[dict[str, Any]] = Field(description="As the lines of `analyze --out NAME.jsonl`.")


def _jobs(request: Request) -> Jobs:
    return request.app.state.jobs


EXAMPLES = {
    "texts": {
        "summary": "Two texts",
        "value": {"rows": [{"input": "I lost my keys."}, {"input": "My sister is visiting tomorrow!"}]},
    }
}


@router.post(
    "",
    response_model=JobAnswer,
    status_code=202,
    responses=FAULTS,
    summary="Analyse many texts in the background",
    openapi_extra={"requestBody": {"content": {"application/json": {"examples": EXAMPLES}}}},
)
async def create(body: JobBody, request: Request) -> JSONResponse:
    """Rows beyond one request's size follow with `POST /v1/jobs/{id}`. All is deleted an hour after the end."""
    entry = service_of(request).shelf.entry(body.model or LISTENER)
    jobs = _jobs(request)
    id = jobs.create(body.name, body.columns, entry)
    try:
        jobs.give(id, [row.model_dump(exclude_none=True) for row in body.rows], body.last)
    except Exception:
        jobs.delete(id)
        raise
    return JSONResponse(jobs.tell(id), 202)


MORE = {
    "last": {
        "summary": "One more text, the last",
        "value": {"rows": [{"input": "I failed my driving test again."}], "last": True},
    }
}


@router.post(
    "/{id}",
    response_model=JobAnswer,
    responses=_FAULTS,
    summary="Add rows to it",
    openapi_extra={"requestBody": {"content": {"application/json": {"examples": MORE}}}},
)
async def add(id: str, body: MoreBody, request: Request) -> dict[str, object]:
    """Further rows, in order."""
    jobs = _jobs(request)
    jobs.give(id, [row.model_dump(exclude_none=True) for row in body.rows], body.last)
    return jobs.tell(id)


@router.get("/{id}", response_model=JobAnswer, responses=FAULTS, summary="How far it is")
async def tell(id: str, request: Request) -> dict[str, object]:
    """What was counted so far, too."""
    return _jobs(request).tell(id)


@router.post("/{id}/cancel", response_model=JobAnswer, responses=FAULTS, summary="End it; what is done stays")
async def cancel(id: str, request: Request) -> dict[str, object]:
    """It ends after the rows that are being analysed."""
    jobs = _jobs(request)
    jobs.cancel(id)
    return jobs.tell(id)


@router.delete("/{id}", status_code=204, responses=FAULTS, summary="Delete it")
async def delete(id: str, request: Request) -> Response:
    """Rows and results."""
    _jobs(request).delete(id)
    return Response(status_code=204)


@router.get("/{id}/rows", response_model=RowsAnswer, responses=FAULTS, summary="Some of its results")
async def rows(
    id: str,
    request: Request,
    start: int = Query(0, ge=0),
    count: int = Query(50, ge=1, le=500),
    emotion: str | None = Query(None, max_length=40),
    side: str | None = Query(None, max_length=40),
    search: str | None = Query(None, max_length=200, description="In the text, in any case."),
    error: bool = Query(False, description="Only rows that could not be read."),
) -> JSONResponse:
    """In the order in which they came."""
    given = {"emotion": emotion, "side": side, "search": search, "error": "yes" if error else None}
    wanted = {name: value for name, value in given.items() if value}
    found, n = await asyncio.to_thread(_jobs(request).rows, id, start, count, wanted)
    return JSONResponse({"object": "list", "start": start, "matches": n, "data": found})


@router.get(
    "/{id}/result.{form}",
    responses={**FAULTS, 200: {"content": {"text/csv": {}, "application/jsonl": {}}}},
    response_class=Response,
    summary="All of its results as a file",
)
async def result(id: str, form: Literal["csv", "jsonl"], request: Request) -> Response:
    """Those that are there by now; the same columns and lines as of `empatheia analyze --out`."""
    jobs = _jobs(request)
    if form == "jsonl":
        parts, kind = jobs.lines(id), "application/jsonl"
    else:
        parts, kind = jobs.table(id), "text/csv; charset=utf-8"
    headers = {"content-disposition": f'attachment; filename="emotions.{form}"'}
    return StreamingResponse(parts, media_type=kind, headers=headers)
