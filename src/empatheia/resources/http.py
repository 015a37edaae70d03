"""Requests to other machines, all of which are sent from here: an answer, open, that ends.

A server that sends a byte now and then never times out by itself, so besides the seconds without a byte there is a last
moment for all of an answer. Only http and https are spoken, by the proxies of the environment; nothing is unpacked, so
that who counts bytes has counted all. The library is imported by the first request.
"""

from __future__ import annotations

import contextlib
import functools
import socket
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import ssl

    import httpx2

_KINDS = ("http", "https")
_MOST_REDIRECTS = 10
_ERROR_BYTES = 1 << 20
"""Of the body of an error, which is read at once."""
_HEADERS = {"User-Agent": "empatheia", "Accept-Encoding": "identity", "Connection": "close"}


class StatusError(OSError):
    """The server answered with another status than success.

    Attributes:
        code: The status.
        reason: The server's words for it; may be empty.
        headers: By name, in any case of letters.
        body: Its beginning, a megabyte at most; empty if it broke off.
    """

    def __init__(self, code: int, reason: str, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(f"the server answers {code} {reason}")
        self.code, self.reason, self.headers, self.body = code, reason, headers, body


class UnreachedError(OSError):
    """No connection came about.

    Attributes:
        reason: The system's error, or what else stood in the way.
    """

    def __init__(self, reason: OSError | str) -> None:
        super().__init__(str(reason))
        self.reason = reason


class Answer:
    """An open answer of a server.

    Attributes:
        url: That answered, which may be another one than was asked.
        status: 200 to 299.
        headers: By name, in any case of letters.
    """

    def __init__(self, response: httpx2.Response) -> None:
        self.url, self.status = str(response.url), response.status_code
        self.headers: Mapping[str, str] = response.headers
        self._response = response

    def blocks(self) -> Iterator[bytes]:
        """The body as it comes, in pieces of 64 KB at most; to be asked for once.

        Raises:
            TimeoutError: No byte came in time.
            ConnectionError: The connection broke.
        """
        with _as_system_errors():
            yield from self._response.iter_raw()

    def read(self, limit: int) -> bytes:
        """At most ``limit`` bytes of the body; raises as :meth:`blocks`."""
        body = bytearray()
        for block in self.blocks():
            body += block
            if len(body) >= limit:
                break
        return bytes(body[:limit])

    def lines(self, longest: int) -> Iterator[bytes]:
        """Lines of the body without their ends; what is longer than ``longest`` bytes comes in parts.

        Raises as :meth:`blocks`.
        """
        rest = b""
        for block in self.blocks():
            *lines, rest = (rest + block).split(b"\n")
            yield from lines
            if len(rest) > longest:
                yield rest
                rest = b""
        if rest:
            yield rest


@contextlib.contextmanager
def opened(
    method: str,
    url: str,
    *,
    timeout: float,
    total: float,
    headers: Mapping[str, str] | None = None,
    content: bytes | None = None,
    follows: bool = True,
) -> Iterator[Answer]:
    """An answer to a request, open; whatever the server does, both ends of it lie within ``total`` seconds.

    Args:
        method: ``GET``, ``HEAD`` or ``POST``.
        url: An http or https address.
        timeout: Seconds without a byte.
        total: Seconds for all: from here to the end of the ``with`` block.
        headers: Of the request.
        content: Its body.
        follows: Whether redirects are followed, to http and https alone and ten at most.

    Raises:
        TimeoutError: One of the two went by.
        StatusError: The server answered with another status than success.
        UnreachedError: No connection came about.
        OSError: The connection broke.
        ValueError: The address is none.
    """
    watch = _Watch(total)
    try:
        with _as_system_errors(), contextlib.ExitStack() as ends:
            request = _request(method, url, {**_HEADERS, **(headers or {})}, content, timeout, watch)
            response = _sent(request, _MOST_REDIRECTS if follows else 0, ends)
            answer = Answer(response)
            if not response.is_success:
                body = b""
                with contextlib.suppress(OSError):
                    body = answer.read(_ERROR_BYTES)
                raise StatusError(answer.status, response.reason_phrase, answer.headers, body)
            yield answer
    except (OSError, ValueError):
        watch.check()
        raise
    finally:
        watch.close()
    watch.check()  # a connection that is shut down looks like the end of a body


def _request(
    method: str, url: str, headers: Mapping[str, str], content: bytes | None, timeout: float, watch: _Watch
) -> httpx2.Request:
    import httpx2

    extensions = {"timeout": httpx2.Timeout(timeout).as_dict(), "trace": watch.trace}
    return httpx2.Request(method, url, headers=headers, content=content, extensions=extensions)


def _sent(request: httpx2.Request, redirects: int, ends: contextlib.ExitStack) -> httpx2.Response:
    """The answer to a request, or to the one that it redirects to; the last if there are too many."""
    import httpx2

    while True:
        proxy = _proxy(str(request.url))
        client = ends.enter_context(httpx2.Client(proxy=proxy, verify=_certificates(), trust_env=False))
        response = client.send(request, stream=True)
        ends.callback(response.close)
        following = response.next_request
        if following is None or not redirects or following.url.scheme not in _KINDS:
            return response
        request, redirects = following, redirects - 1


def _proxy(url: str) -> str | None:
    """The proxy that the environment names for an address; None = no proxy."""
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    proxy = getproxies().get(parts.scheme)
    if not proxy or proxy_bypass(parts.netloc):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


@functools.cache
def _certificates() -> ssl.SSLContext:
    """Those of the system."""
    import ssl

    return ssl.create_default_context()


@contextlib.contextmanager
def _as_system_errors() -> Iterator[None]:
    """Raises the library's errors as those of the system."""
    import httpx2

    try:
        yield
    except httpx2.TimeoutException:
        raise TimeoutError("timed out") from None
    except (httpx2.ConnectError, httpx2.ProxyError, httpx2.WriteError, httpx2.UnsupportedProtocol) as error:
        raise UnreachedError(_system_error(error) or str(error)) from None
    except httpx2.HTTPError as error:  # its text may hold what was sent
        raise ConnectionError(type(_system_error(error) or error).__name__) from None
    except httpx2.InvalidURL as error:
        raise ValueError(str(error)) from None


def _system_error(error: BaseException | None) -> OSError | None:
    """What the system said below an error of the library, if it did."""
    while error is not None and not isinstance(error, OSError):
        error = error.__cause__ or error.__context__
    return error


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

    def trace(self, event: str, facts: Mapping[str, Any]) -> None:
        """Watches each connection from the moment it is there, before any TLS.

        By a second handle of its own: the first one may be wrapped or closed.
        """
        if event != "connection.connect_tcp.complete":
            return
        with self._lock:
            self._handles.append(facts["return_value"].get_extra_info("socket").dup())
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
