"""What stands in front of any server of ours: request ids, security headers, host names, keys, limits of size and time.

Plain ASGI, so that streams pass through; :func:`protect` puts it all before an application.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import re
import secrets
import time
from collections.abc import Sequence
from typing import Protocol

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from empatheia.serve.faults import ApiError, Failures, answer_faults
from empatheia.serve.settings import Limits, WebSettings

_LOG = logging.getLogger(__name__)
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self';"
    " connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
ID = "empatheia.id"
"""Where a request's id stands in the scope."""
_NO_HOST = re.compile(r"[^a-z0-9.:_-]")
_SHOWN_HOST = 100
_IS_ID = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")


class Counts(Protocol):
    """Who counts answers."""

    def begun(self) -> None:
        """A request has come."""

    def seen(self, route: str, method: str, status: int, seconds: float) -> None:
        """It was answered, or its client left."""


def protect(
    app: Starlette, settings: WebSettings, locked: Sequence[str] = ("/v1", "/metrics"), counts: Counts | None = None
) -> None:
    """Puts everything of this module before an application, and gives it our form of errors.

    Args:
        app: Before it has answered anything.
        settings: Of the server.
        locked: Beginnings of the paths that need a key, where there are keys.
        counts: Told of every answer.
    """
    answer_faults(app)
    app.add_middleware(Patience, limits=settings.limits)
    app.add_middleware(Sockets, hosts=settings.hosts, origins=settings.cors)
    if settings.keys:
        app.add_middleware(Keys, keys=[key.get_secret_value() for key in settings.keys], locked=tuple(locked))
    if settings.cors:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.cors),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["authorization", "content-type"],
            expose_headers=["x-request-id", "retry-after"],
        )
    if settings.hosts:
        app.add_middleware(Hosts, hosts=settings.hosts)
    app.add_middleware(Failures)
    app.add_middleware(Frame, counts=counts)


class Frame:
    """The outermost: an id for every request, security headers on every answer, one line in the log.

    Args:
        app: What is inside.
        counts: Told of every answer.
    """

    def __init__(self, app: ASGIApp, counts: Counts | None = None) -> None:
        self.app, self.counts = app, counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        scope[ID] = given if _IS_ID.match(given) else f"req-{secrets.token_hex(8)}"
        begun, status = time.monotonic(), 0
        if self.counts is not None:
            self.counts.begun()

        async def told(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in {**HEADERS, "x-request-id": scope[ID], "cache-control": "no-store"}.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self.app(scope, receive, told)
        finally:
            took = time.monotonic() - begun
            path = scope["path"].encode("ascii", "backslashreplace").decode()[:200]
            _LOG.info("%s %s %s %d %.0f ms", scope[ID], scope["method"], path, status, 1000 * took)
            if self.counts is not None:
                self.counts.seen(getattr(scope.get("route"), "path", "other"), scope["method"], status, took)


class Hosts:
    """Refuses host names that are not ours: a page of somebody else's cannot ask through a name of its own.

    Args:
        app: What is inside.
        hosts: Accepted names, without ports; ``*.example.org`` for all below.
    """

    def __init__(self, app: ASGIApp, hosts: Sequence[str]) -> None:
        self.app = app
        self.hosts = tuple(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        host = Headers(scope=scope).get("host", "") if scope["type"] == "http" else None
        if host is not None and not self._is_ours(host):
            shown = _NO_HOST.sub("?", _name_of(host))[:_SHOWN_HOST] or "NAME"
            said = f"{shown} is not served here; accepted: {', '.join(self.hosts)}."
            error = ApiError(
                400, f"{said} To accept it, start the server with --allowed-host {shown}.", code="wrong_host"
            )
            await error.response()(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def _is_ours(self, header: str) -> bool:
        name = _name_of(header)
        return any(name == host or (host.startswith("*.") and name.endswith(host[1:])) for host in self.hosts)


def _name_of(header: str) -> str:
    """The name in a Host header, without its port."""
    name = header.lower()
    return name[1:].partition("]")[0] if name.startswith("[") else name.rpartition(":")[0] or name


class Keys:
    """Asks for a bearer key.

    Args:
        app: What is inside.
        keys: Accepted ones; held as digests only.
        locked: Beginnings of the paths that need one.
    """

    def __init__(self, app: ASGIApp, keys: Sequence[str], locked: Sequence[str]) -> None:
        self.app = app
        self.locked = tuple(locked)
        self._digests = [hashlib.sha256(key.encode()).digest() for key in keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] == "http" and scope["method"] != "OPTIONS" and _is_below(scope, self.locked):
            kind, _, key = Headers(scope=scope).get("authorization", "").partition(" ")
            if kind.lower() != "bearer" or not self._is_known(key.strip()):
                said = "a key is needed: send Authorization: Bearer KEY." if not key else "this key is not known here."
                error = ApiError(401, said, code="invalid_api_key", headers={"WWW-Authenticate": "Bearer"})
                await error.response()(scope, receive, send)
                return
        await self.app(scope, receive, send)

    def _is_known(self, key: str) -> bool:
        """Compares with every key, in constant time."""
        digest = hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
        return any([hmac.compare_digest(digest, known) for known in self._digests])


class Sockets:
    """Lets in WebSockets as requests are: to host names that are ours, and from pages of ours.

    Browsers ask no leave before a page of somebody else's opens one, as they do for requests.

    Args:
        app: What is inside.
        hosts: Accepted host names; none = any. A page of one of them may connect under another, as behind a proxy.
        origins: Other origins whose pages may connect.
    """

    def __init__(self, app: ASGIApp, hosts: Sequence[str], origins: Sequence[str]) -> None:
        self.app, self.hosts, self.origins = app, Hosts(app, hosts), tuple(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] == "websocket" and (error := self._fault(Headers(scope=scope))) is not None:
            await error.response()(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def _fault(self, headers: Headers) -> ApiError | None:
        host, origin = headers.get("host", "").lower(), headers.get("origin", "")
        page = origin.partition("://")[2].lower()
        if self.hosts.hosts and not self.hosts._is_ours(host):
            return ApiError(400, "this host name is not served here; see --allowed-host.", code="wrong_host")
        if not origin or page == host or self.hosts._is_ours(page) or origin in self.origins:
            return None
        said = f"pages of {origin[:200]} may not connect; behind a proxy name its host with --allowed-host."
        return ApiError(403, said, code="wrong_origin")


class Patience:
    """Bounds of a request's size and time, and of the time a client takes to read.

    Args:
        app: What is inside.
        limits: Bytes and seconds.
    """

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self.app, self.limits = app, limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "0")
        if declared.isascii() and declared.isdigit() and int(declared[:18]) > self.limits.body:
            await self._too_large().response()(scope, receive, send)
            return
        n_bytes, is_whole = 0, False
        end = time.monotonic() + self.limits.body_seconds

        async def bounded() -> Message:
            nonlocal n_bytes, is_whole
            if is_whole:
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), max(0.001, end - time.monotonic()))
            except TimeoutError:
                text = f"the request did not arrive within {self.limits.body_seconds:g} s."
                raise ApiError(408, text, code="timeout", headers={"Connection": "close"}) from None
            is_whole = not message.get("more_body", False)
            n_bytes += len(message.get("body", b""))
            if n_bytes > self.limits.body:
                raise self._too_large()
            return message

        async def prompt(message: Message) -> None:
            try:
                await asyncio.wait_for(send(message), self.limits.send_seconds)
            except TimeoutError:
                raise OSError("the client does not read") from None

        await self.app(scope, bounded, prompt)

    def _too_large(self) -> ApiError:
        return ApiError(
            413,
            f"the request is too large; accepted: {self.limits.body:,} bytes.",
            code="request_too_large",
            headers={"Connection": "close"},
        )


def _is_below(scope: Scope, places: Sequence[str]) -> bool:
    path = path_of(scope)
    return any(path == place or path.startswith(place + "/") for place in places)


def path_of(scope: Scope) -> str:
    """The path of a request without what a proxy in front cuts off."""
    path, root = scope["path"], scope.get("root_path", "")
    return path[len(root) :] if root and path.startswith(root) else path
