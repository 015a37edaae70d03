"""Connections that end: besides the seconds without a byte there is a last moment for all of an answer.

A server that sends a byte now and then never times out by itself. Only http and https are spoken.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import socket
import threading
from collections.abc import Iterator
from functools import partial
from http.client import HTTPException, HTTPResponse
from typing import Any, cast
from urllib.error import HTTPError, URLError
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
)

_BLOCK = 1 << 16
_ERROR_BYTES = 1 << 20
"""Of the body of an error, which is read at once."""


@contextlib.contextmanager
def opened(request: Request, timeout: float, total: float, follows: bool = True) -> Iterator[HTTPResponse]:
    """An answer to a request, open; whatever the server does, both ends of it lie within ``total`` seconds.

    Args:
        request: To an http or https address.
        timeout: Seconds without a byte.
        total: Seconds for all: from here to the end of the ``with`` block.
        follows: Whether redirects are followed, to http and https alone.

    Raises:
        TimeoutError: One of the two went by.
        HTTPError: The server answered with an error status.
        OSError: It cannot be reached, or the connection broke; ``URLError`` for an address of another kind.
    """
    watch = _Watch(total)
    try:
        opener = OpenerDirector()
        for handler in (
            *(ProxyHandler(), _Http(watch), HTTPDefaultErrorHandler(), HTTPErrorProcessor()),
            HTTPRedirectHandler() if follows else _NoRedirect(),
            *([_Https(watch)] if hasattr(http.client, "HTTPSConnection") else []),
        ):
            opener.add_handler(handler)
        if request.type not in ("http", "https"):
            raise URLError(f"an address of kind {request.type!r}; accepted: http and https")
        with opener.open(request, timeout=timeout) as response:
            yield response
    except HTTPError as error:
        said = b""
        with error, contextlib.suppress(OSError, HTTPException, AttributeError):
            said = read_body(cast(HTTPResponse, error.fp), _ERROR_BYTES)  # the answer itself, as urllib made it
        watch.check()
        raise HTTPError(error.url, error.code, str(error.reason), error.headers, io.BytesIO(said)) from None
    except (OSError, HTTPException, ValueError):
        watch.check()
        raise
    finally:
        watch.close()
    watch.check()  # a connection that is shut down looks like the end of a body


def read_body(response: HTTPResponse, limit: int) -> bytes:
    """At most ``limit`` bytes of an answer's body."""
    return b"".join(iter(partial(_at_most, response, [limit]), b""))


def _at_most(response: HTTPResponse, left: list[int]) -> bytes:
    block = response.read1(min(_BLOCK, left[0])) if left[0] else b""
    left[0] -= len(block)
    return block


class _Watch:
    """Shuts connections down when the time is over; whoever waits for a byte of one is woken by that."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.is_over = False
        self._handles: list[socket.socket] = []
        self._lock = threading.Lock()
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True
        self._timer.start()

    def add(self, connection: socket.socket) -> None:
        """Watches a connection, by a second handle of its own: the first one may be wrapped or closed."""
        with self._lock:
            self._handles.append(connection.dup())
            is_over = self.is_over
        if is_over:
            self._end()

    def check(self) -> None:
        """Raises TimeoutError if the time is over."""
        if self.is_over:
            raise TimeoutError(f"no complete answer within {self.seconds:g} s")

    def close(self) -> None:
        """Ends the watch."""
        self._timer.cancel()
        with self._lock:
            for handle in self._handles:
                handle.close()
            self._handles.clear()

    def _end(self) -> None:
        with self._lock:
            self.is_over = True
            for handle in self._handles:
                with contextlib.suppress(OSError):
                    handle.shutdown(socket.SHUT_RDWR)


def _watched(kind: Any, watch: _Watch) -> Any:
    """A connection of http.client whose socket is watched from the moment it is there, before any TLS."""

    def make(*args: Any, **options: Any) -> Any:
        connection = kind(*args, **options)
        connect = connection._create_connection

        def create(*where: Any, **how: Any) -> socket.socket:
            made = connect(*where, **how)
            watch.add(made)
            return made

        connection._create_connection = create
        return connection

    return make


class _Http(HTTPHandler):
    def __init__(self, watch: _Watch) -> None:
        super().__init__()
        self.watch = watch

    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_watched(http.client.HTTPConnection, self.watch), req)


class _Https(HTTPSHandler):
    def __init__(self, watch: _Watch) -> None:
        super().__init__()
        self.watch = watch

    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_watched(http.client.HTTPSConnection, self.watch), req)


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        """None: a redirect is an error like any other."""
        return
