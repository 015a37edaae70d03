"""The port of a server: taken before anything is loaded, so that a taken one is told at once."""

from __future__ import annotations

import errno
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from empatheia.errors import EmpatheiaError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
BACKLOG = 512
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server listens.

    Attributes:
        socket: Bound, and listening: who connects waits to be accepted.
        address: Where a browser finds it.
    """

    socket: socket.socket
    address: str


@contextmanager
def listening(host: str, port: int, root_path: str = "", command: str = "") -> Iterator[Place]:
    """Takes a port. A signal ends what is loaded within, with status 0; a server may handle it in its own way.

    Args:
        host: Address of this machine.
        port: 0 = any that is free.
        root_path: What a proxy in front cuts off.
        command: Beginning of the command that is told where the port is taken, e.g. ``empatheia serve``.

    Raises:
        EmpatheiaError: The address cannot be used, or the server cannot start.
    """
    bound_to = bound(host, port, command)
    before = [signal.signal(number, _leave) for number in _SIGNALS]
    try:
        yield Place(bound_to, address_of(host, bound_to.getsockname()[1]) + root_path)
    except SystemExit as error:
        raise EmpatheiaError("the server could not start; the lines above say why.") from error
    finally:
        for number, handler in zip(_SIGNALS, before, strict=True):
            signal.signal(number, handler)
        bound_to.close()


def hand_signals_to(handle: Callable[[int, FrameType | None], None]) -> None:
    """From here on a signal is the server's, which answers what it has accepted.

    Args:
        handle: Takes a signal, more than once: uvicorn raises the one that ended it anew when all is answered.
    """
    for number in _SIGNALS:
        signal.signal(number, handle)


def bound(host: str, port: int, command: str = "") -> socket.socket:
    """A socket at an address.

    Raises:
        EmpatheiaError: It cannot be used.
    """
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        made.listen(BACKLOG)  # only then nobody else can take it
    except (OSError, UnicodeError) as error:
        made.close()
        if getattr(error, "errno", None) == errno.EADDRINUSE:
            remedy = f"{command} --port {_free(host, port)}".strip()
            raise EmpatheiaError(f"port {port} of {host} is taken. Choose another: {remedy}") from None
        raise EmpatheiaError(f"{host}:{port} cannot be used: {error}.") from None
    made.set_inheritable(True)
    return made


def _free(host: str, port: int) -> int:
    """A port near one that is taken; 0 = any, where those are taken, too."""
    for near in range(port + 1, min(port + 20, 65536)):
        try:
            bound(host, near).close()
        except EmpatheiaError:
            continue
        return near
    return 0


def address_of(host: str, port: int) -> str:
    """Where a browser finds it.

    >>> address_of("::1", 8321)
    'http://[::1]:8321'
    """
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"


def _leave(*_: object) -> None:
    """Ends the process: an exception could be lost in what is being imported, and nothing is begun that must end."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
