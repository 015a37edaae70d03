"""Server-sent events, and an answer that ends as soon as its reader has left."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping

import anyio
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

DONE = "data: [DONE]\n\n"


def event(record: object, name: str | None = None) -> str:
    r"""One event.

    >>> event({"a": 1})
    'data: {"a":1}\n\n'
    """
    data = json.dumps(record, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return f"{'' if name is None else f'event: {name}{chr(10)}'}data: {data}\n\n"


class EventStream(StreamingResponse):
    """Events while they are made; their maker is closed when the client leaves, even while nothing is being sent.

    Args:
        parts: The events.
        headers: More headers of the answer.
    """

    media_type = "text/event-stream"

    def __init__(self, parts: AsyncGenerator[str, None], headers: Mapping[str, str] | None = None) -> None:
        super().__init__(parts, headers={"X-Accel-Buffering": "no", **(headers or {})})
        self._parts = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        try:
            async with anyio.create_task_group() as group:

                async def tell() -> None:
                    await self.stream_response(send)
                    group.cancel_scope.cancel()

                group.start_soon(tell)
                await self.listen_for_disconnect(receive)
                group.cancel_scope.cancel()
        except* OSError:
            pass  # the client has left, or does not read
        finally:
            with anyio.CancelScope(shield=True):
                await self._parts.aclose()
