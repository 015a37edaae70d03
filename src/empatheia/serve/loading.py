"""What a server says before its models are loaded."""

from __future__ import annotations

from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from empatheia import __version__
from empatheia.serve.faults import ApiError
from empatheia.serve.settings import WebSettings
from empatheia.serve.web import Frame, Hosts, path_of

_SECONDS = "2"


def still_loading(settings: WebSettings) -> ASGIApp:
    """An application: ``/healthz`` says that it loads, all else is answered with 503 and when to come again."""
    app: ASGIApp = _answer
    if settings.hosts:
        app = Hosts(app, settings.hosts)
    return Frame(app)


async def _answer(scope: Scope, receive: Receive, send: Send) -> None:
    path = path_of(scope)
    error = ApiError(503, f"the models are being loaded; try again in {_SECONDS} s.", code="loading")
    is_health = path in ("/healthz", "/readyz")
    body = {"status": "loading", "version": __version__, "queue": 0} if is_health else error.body
    headers = {"retry-after": _SECONDS, "refresh": _SECONDS, "connection": "close"}
    alive = path == "/healthz"
    await JSONResponse(body, 200 if alive else 503, {} if alive else headers)(scope, receive, send)
