"""Runs a server until it is told to end: one process or several, requests drained, status 0."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any

import uvicorn
from fastapi import FastAPI
from pydantic import Field, SecretStr
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.supervisors import Multiprocess

from empatheia.care import Care
from empatheia.config import Strict
from empatheia.errors import ConfigError, EmpatheiaError
from empatheia.reading import parse_json
from empatheia.serve.app import create_app
from empatheia.serve.settings import ServerSettings

HANDED_ON = "EMPATHEIA_SERVE"
"""Variable in which further processes find what they serve; it holds no key."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_LOG = logging.getLogger(__name__)


class Launch(Strict):
    """What is started, and where.

    Attributes:
        server: What it serves; its keys are read from ``key_env`` by every process.
    """

    server: ServerSettings = Field(default_factory=ServerSettings)
    host: str = "127.0.0.1"
    port: int = Field(default=8321, ge=0, le=65535)
    workers: int = Field(default=1, ge=1, le=64)
    care: bool = Field(default=True, description="Whether a check for danger runs before the answers.")
    country: str | None = Field(default=None, description="Country of the help lines; None = guessed.")
    resources: str | None = Field(default=None, description="A file of help lines; None = the shipped one.")
    key_env: str | None = Field(default=None, description="Variable that holds the bearer keys, commas between.")


def run(launch: Launch, told: Callable[[str], object]) -> None:
    """Serves until SIGTERM or Ctrl-C; what was accepted by then is answered.

    Args:
        launch: What and where.
        told: Called with the address, once it answers.

    Raises:
        EmpatheiaError: The address cannot be used, or the server cannot start; ConfigError: there are no keys.
    """
    keys_of(launch.key_env)
    with _listening(launch.host, launch.port, launch.server.root_path) as (listening, address):
        if launch.workers == 1:
            _Telling(_config(launch, application(launch)), lambda: told(address)).run([listening])
        else:
            with TemporaryDirectory(prefix="empatheia-jobs-") as jobs:  # one for all: a job is asked of any of them
                shared = launch.server.model_copy(update={"jobs": launch.server.jobs or jobs})
                handed = launch.model_copy(update={"server": shared})
                os.environ[HANDED_ON] = handed.model_dump_json(exclude={"server": {"keys"}})
                _TellingProcesses(_config(launch, f"{__name__}:worker"), [listening], lambda: told(address)).run()


def run_app(
    app: ASGIApp, host: str, port: int, told: Callable[[str], object], root_path: str = "", sockets: bool = False
) -> None:
    """Serves any application in this process, as :func:`run` does.

    Args:
        app: An ASGI application.
        host: Address to listen on.
        port: 0 = any that is free.
        told: Called with the address, once it answers.
        root_path: What a proxy in front cuts off.
        sockets: Whether it speaks WebSocket.

    Raises:
        EmpatheiaError: The address cannot be used, or the server cannot start.
    """
    launch = Launch(host=host, port=port, server=ServerSettings(root_path=root_path))
    with _listening(host, port, root_path) as (listening, address):
        _Telling(_config(launch, app, sockets), lambda: told(address)).run([listening])


@contextmanager
def _listening(host: str, port: int, root_path: str = "") -> Iterator[tuple[socket.socket, str]]:
    """A socket and its address; a signal within ends the server, and does nothing else."""
    listening = _bound(host, port)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _drained)
    try:
        yield listening, address_of(host, listening.getsockname()[1]) + root_path
    except SystemExit as error:
        raise EmpatheiaError("the server could not start; the lines above say why.") from error
    finally:
        listening.close()


def _drained(*_: object) -> None:
    """Uvicorn raises the signal that ended it once more when all is answered: then nothing is left to be done."""


def application(launch: Launch) -> FastAPI:
    """The application of one process."""
    care = Care.read(resources=launch.resources, country=launch.country) if launch.care else False
    return create_app(launch.server.model_copy(update={"keys": keys_of(launch.key_env)}), care)


def worker() -> FastAPI:
    """The application of one process of several."""
    import torch

    launch = Launch.model_validate(parse_json(os.environ[HANDED_ON]), strict=False)
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // launch.workers))
    return application(launch)


def keys_of(variable: str | None) -> tuple[SecretStr, ...]:
    """Bearer keys out of an environment variable; None = none are asked for.

    Raises:
        ConfigError: The variable is not set or holds no key: a server that was to be locked stays closed.
    """
    if variable is None:
        return ()
    keys = tuple(SecretStr(key.strip()) for key in os.environ.get(variable, "").split(",") if key.strip())
    if not keys:
        raise ConfigError(f"{variable} holds no key. Set it, e.g. export {variable}=$(openssl rand -hex 24).")
    return keys


def address_of(host: str, port: int) -> str:
    """Where a browser finds it.

    >>> address_of("::1", 8321)
    'http://[::1]:8321'
    """
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except (OSError, UnicodeError) as error:
        listening.close()
        if getattr(error, "errno", None) == errno.EADDRINUSE:
            raise EmpatheiaError(f"port {port} of {host} is taken. Choose another: --port {port + 1}.") from None
        raise EmpatheiaError(f"{host}:{port} cannot be used: {error}.") from None
    listening.set_inheritable(True)
    return listening


def _config(launch: Launch, app: ASGIApp | str, sockets: bool = False) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        factory=isinstance(app, str),
        workers=launch.workers,
        http=PatientProtocol,
        ws="auto" if sockets else "none",
        ws_max_size=64 << 10,
        root_path=launch.server.root_path,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=20,
        timeout_graceful_shutdown=round(launch.server.limits.drain_seconds),
        h11_max_incomplete_event_size=64 << 10,
        backlog=512,
    )


class PatientProtocol(H11Protocol):
    """HTTP/1.1 that gives a client a bounded time for the head of a request."""

    HEAD_SECONDS = 15.0
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """See asyncio."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        if self._waiting is None and self._is_between():
            self._wait()
        super().data_received(data)
        if not self._is_between():
            self._stop()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        self._stop()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self, event: Any) -> None:
        """See uvicorn: the head has come, and from now on another protocol has the connection."""
        self._stop()
        super().handle_websocket_upgrade(event)

    def _is_between(self) -> bool:
        """No request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(self.HEAD_SECONDS, self.transport.abort)

    def _stop(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


class _Telling(uvicorn.Server):
    """Says when it answers."""

    def __init__(self, config: uvicorn.Config, told: Callable[[], object]) -> None:
        super().__init__(config)
        self._told = told

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """See uvicorn."""
        await super().startup(sockets)
        if self.started:
            self._told()


class _TellingProcesses(Multiprocess):
    """Several processes; says when the first of them answers."""

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket], told: Callable[[], object]) -> None:
        super().__init__(config, sockets)
        self._told = told

    def init_processes(self) -> None:
        """See uvicorn."""
        super().init_processes()
        if self.processes[0].wait_until_ready(120, self.should_exit):
            self._told()
