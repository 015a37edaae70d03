"""``/healthz``, ``/readyz``, ``/metrics`` and ``/v1/models``: how the server is and who answers."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field

from empatheia import __version__
from empatheia.serve.asking import FAULTS, service_of
from empatheia.serve.shelf import Entry

router = APIRouter()


class Health(BaseModel):
    """How the server is."""

    status: str = Field(description="`ok`, `loading` or `ending`.")
    version: str
    queue: int = Field(description="Requests that wait.")


class ModelFacts(BaseModel):
    """What a model is."""

    title: str
    system: str
    licence: str
    streams: bool = Field(description="Words can be sent one by one.")
    default: bool


class ModelRecord(BaseModel):
    """One model."""

    id: str
    object: str = "model"
    created: int
    owned_by: str
    empathy: ModelFacts


class ModelList(BaseModel):
    """All models."""

    object: str = "list"
    data: list[ModelRecord]


@router.get("/healthz", response_model=Health, tags=["running"], summary="Whether the process lives")
async def healthz(request: Request) -> dict[str, object]:
    """Always 200 while the process answers."""
    return _health(request, "ok")


@router.get(
    "/readyz",
    response_model=Health,
    responses={503: {"model": Health, "description": "Loading, or about to end."}},
    tags=["running"],
    summary="Whether it can answer now",
)
async def readyz(request: Request) -> JSONResponse | dict[str, object]:
    """200 once the default model is loaded, 503 before and while the server ends."""
    service = service_of(request)
    if service.is_ending or not service.shelf.is_ready:
        return JSONResponse(_health(request, "ending" if service.is_ending else "loading"), 503)
    return _health(request, "ok")


@router.get(
    "/metrics",
    tags=["running"],
    summary="Counters, as Prometheus reads them",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(request: Request) -> Response:
    """Requests, their durations, the queue, sizes of batches, tokens; of this process."""
    return Response(service_of(request).measures.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/v1/models", response_model=ModelList, responses=FAULTS, tags=["OpenAI"], summary="Who answers")
async def models(request: Request) -> dict[str, object]:
    """Every model that can be named in a request, the default first."""
    shelf = service_of(request).shelf
    entries = sorted(shelf.entries.values(), key=lambda entry: entry.id != shelf.default)
    return {"object": "list", "data": [_model(entry, shelf.default) for entry in entries]}


@router.get(
    "/v1/models/{model:path}", response_model=ModelRecord, responses=FAULTS, tags=["OpenAI"], summary="One of them"
)
async def model(model: str, request: Request) -> dict[str, object]:
    """What a model is."""
    shelf = service_of(request).shelf
    return _model(shelf.entry(model), shelf.default)


def _model(entry: Entry, default: str) -> dict[str, object]:
    facts = {"title": entry.title, "system": entry.system, "licence": entry.licence, "streams": entry.streams}
    return {
        "id": entry.id,
        "object": "model",
        "created": 0,
        "owned_by": "empatheia",
        "empathy": {**facts, "default": entry.id == default},
    }


def _health(request: Request, status: str) -> dict[str, object]:
    return {"status": status, "version": __version__, "queue": service_of(request).engine.n_waiting}
