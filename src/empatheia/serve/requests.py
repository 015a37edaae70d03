"""Requests as they come in: JSON through the guarded door, unknown fields kept apart, clients that leave noticed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict

from empatheia.reading import UnreadableError, parse_json
from empatheia.serve.faults import ApiError

Result = TypeVar("Result")
_LEFT_STATUS = 499
_HALF = {code: 0xFFFD for code in range(0xD800, 0xE000)}


class Body(BaseModel):
    """A request's body: types are as JSON has them (no "1" for 1, no true for 1), unknown fields are kept apart."""

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False, protected_namespaces=())

    @property
    def unknown(self) -> list[str]:
        """Fields that mean nothing here."""
        return sorted(self.model_extra or ())


class GuardedRequest(Request):
    """A request whose JSON is read within bounds of depth and digits; half characters become U+FFFD, one for one."""

    async def json(self) -> Any:
        """The body.

        Raises:
            ApiError: It is no JSON.
        """
        if not hasattr(self, "_json"):
            try:
                self._json = self.cleaned(parse_json(await self.body()))
            except UnreadableError as error:
                raise ApiError(400, f"the body is not readable JSON: {error}", code="not_json") from None
        return self._json

    def cleaned(self, value: object) -> object:
        """What the route is given of the body."""
        return whole_characters(value)


class GuardedRoute(APIRoute):
    """A route that reads its body as ``request_class`` does."""

    request_class = GuardedRequest

    def get_route_handler(self) -> Callable[[Request], Coroutine[object, None, Response]]:
        """See FastAPI."""
        inner = super().get_route_handler()

        async def handle(request: Request) -> Response:
            return await inner(self.request_class(request.scope, request.receive))

        return handle


def whole_characters(value: object) -> object:
    """JSON without half surrogates, which no answer could repeat; every text keeps its length."""
    if isinstance(value, str):
        return value if value.isascii() else value.translate(_HALF)
    if isinstance(value, list):
        return [whole_characters(one) for one in value]
    if isinstance(value, dict):
        return {whole_characters(name): whole_characters(one) for name, one in value.items()}
    return value


async def unless_left(request: Request, work: Awaitable[Result]) -> Result:
    """What is awaited; given up as soon as the client has left.

    Raises:
        ApiError: The client left; nobody reads it, the log shows 499.
    """
    task = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ApiError(_LEFT_STATUS, "the client has left.", code="client_left")
        return task.result()
    finally:
        for one in (task, leaving):
            one.cancel()


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
