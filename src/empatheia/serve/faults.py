"""Errors in the form of OpenAI's API, ``{"error": {"message", "type", "param", "code"}}``, with its status codes.

Any application of ours gets them by :func:`answer_faults`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import TypedDict

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from empatheia.errors import ConfigError, DataError, DecodingError, EmpatheiaError, EndpointError, MissingResourceError
from empatheia.resources.chat_stream import RefusedError, SlowEndpointError

_LOG = logging.getLogger(__name__)
_FORMS = frozenset(["body", "query", "path", "str", "bool", "int", "float", "SteerBody"])
"""Parts of a place that name no field: where it was read, and which of several forms was tried."""
_SHOWN = 300  # characters of a value that a message quotes
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


class InvalidValue(TypedDict, total=False):
    """What pydantic tells of a value that it does not accept.

    Attributes:
        type: Kind of fault.
        loc: Where it stands, from the outside in.
        msg: What is accepted.
        input: The value.
    """

    type: str
    loc: tuple[int | str, ...]
    msg: str
    input: object


class FaultRecord(BaseModel):
    """What went wrong."""

    message: str = Field(description="What was found, what is accepted, what to do.")
    type: str = Field(
        description="`invalid_request_error`, `authentication_error`, `rate_limit_error`, `server_error`."
    )
    param: str | None = Field(None, description="The field it is about.")
    code: str | None = Field(None, description="A short name for programs.")


class FaultAnswer(BaseModel):
    """The body of every answer that is an error."""

    error: FaultRecord


class ApiError(HTTPException):
    """An error that a client is told.

    Args:
        status: Of HTTP.
        message: What was found, what is accepted, what to do.
        param: The field it is about.
        code: A short name for programs.
        headers: Of the answer.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, message, dict(headers or {}))
        self.param, self.code = param, code

    @property
    def body(self) -> dict[str, dict[str, str | None]]:
        """As it is sent."""
        kind = _TYPES.get(self.status_code, "invalid_request_error" if self.status_code < 500 else "server_error")
        return {"error": {"message": str(self.detail), "type": kind, "param": self.param, "code": self.code}}

    def response(self) -> JSONResponse:
        """The whole answer."""
        return JSONResponse(self.body, self.status_code, self.headers)


def answer_faults(app: Starlette) -> None:
    """Gives an application our form of errors."""
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(EmpatheiaError, _ours)


def api_error(error: BaseException) -> ApiError:
    """What a client is told of an error; of one that is not on purpose nothing but that it happened."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, HTTPException):
        code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code)
        return ApiError(error.status_code, str(error.detail), code=code, headers=error.headers)
    if isinstance(error, RefusedError) and error.status == 429:
        return ApiError(429, str(error), code="upstream_busy", headers={"Retry-After": "5"})
    if isinstance(error, SlowEndpointError):
        return ApiError(504, str(error), code="upstream_timeout")
    if isinstance(error, EndpointError):
        return ApiError(502, str(error), code="upstream_error")
    if isinstance(error, MissingResourceError):
        return ApiError(404, str(error), code="not_found")
    if isinstance(error, DataError | DecodingError | ConfigError):
        return ApiError(400, str(error), code="invalid_value")
    if isinstance(error, EmpatheiaError):
        return ApiError(500, str(error), code="model_error")
    return ApiError(500, "the server made a mistake; its log has the request's id.", code="internal_error")


async def _http(_: Request, error: Exception) -> JSONResponse:
    return api_error(error).response()


async def _ours(_: Request, error: Exception) -> JSONResponse:
    return api_error(error).response()


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    """The first thing that is wrong with a request."""
    found = error.errors() if isinstance(error, RequestValidationError) else []
    return fault_of(found).response()


def fault_of(found: Sequence[InvalidValue]) -> ApiError:
    """What pydantic found, the first of it, as an error for the client."""
    if not found:
        return ApiError(400, "the request cannot be read.", code="invalid_value")
    first = max(found, key=lambda one: len(one.get("loc", ())))  # of several forms the one that went furthest
    place = _place_of(first.get("loc", ()))
    given = first.get("input")
    if first.get("type") == "model_attributes_type" and isinstance(given, bytes):
        return ApiError(
            415, "the body is not marked as JSON; send the header Content-Type: application/json.", code="not_json"
        )
    if first.get("type") == "missing":
        where = place or "the body"
        return ApiError(400, f"{where} is missing.", param=place or None, code="missing")
    what = str(first.get("msg", "invalid")).removeprefix("Value error, ")
    shown = repr(given)
    shown = shown if len(shown) <= _SHOWN else shown[:_SHOWN] + " ..."
    return ApiError(400, f"{place or 'the body'}: {what} (found {shown}).", param=place or None, code="invalid_value")


def _place_of(loc: Sequence[int | str]) -> str:
    """A field as a client writes it; where several forms are accepted, without their names.

    >>> _place_of(("body", "input", "list[ChatMessage]", 0, "role"))
    'input[0].role'
    """
    out = ""
    for part in loc:
        if isinstance(part, int):
            out += f"[{part}]"
        elif part not in _FORMS and not re.search(r"[\[(]", part):
            out += f".{part}" if out else part
    return out


class Failures:
    """Whatever an application raises that it does not answer itself: 500 to the client, the kind of error to the log.

    Args:
        app: What is guarded.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        has_begun = False

        async def told(message: Message) -> None:
            nonlocal has_begun
            has_begun = has_begun or message["type"] == "http.response.start"
            await send(message)

        try:
            await self.app(scope, receive, told)
        except Exception as error:
            if scope["type"] != "http":
                raise
            status = error.status_code if isinstance(error, HTTPException) else 500
            if status >= 500:
                place = _place(error)
                _LOG.error("%s: %s at %s", scope.get("empatheia.id", "-"), type(error).__name__, place)
            if not has_begun:
                await api_error(error).response()(scope, receive, send)


def _place(error: BaseException) -> str:
    """Module and line in which an error was raised: enough to find it, without what anybody wrote."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "?" if trace is None else f"{trace.tb_frame.f_globals.get('__name__', '?')}:{trace.tb_lineno}"
