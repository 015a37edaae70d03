"""Runs a server until it is told to end: one process or several, requests drained, status 0."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import uvicorn
from pydantic import Field, SecretStr
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.supervisors import Multiprocess

from empatheia.errors import ConfigError, EmpatheiaError
from empatheia.reading import parse_json
from empatheia.serve.listening import BACKLOG, Place, hand_signals_to, listening
from empatheia.serve.settings import ServerSettings
from empatheia.serve.temporary import PrivateFolder
from empatheia.settings import Strict

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import ASGIApp

HANDED_ON = "EMPATHEIA_SERVE"
"""Variable in which further processes find what they serve; it holds no key."""
STARTUP_FAILURE = 3
"""Status of a process that could not start, by which uvicorn knows that another one could not either."""
_LOG = logging.getLogger(__name__)


class Launch(Strict):
    """What is started.

    Attributes:
        server: What it serves; its keys are read from ``key_env`` by every process.
    """

    server: ServerSettings = Field(default_factory=ServerSettings)
    workers: int = Field(default=1, ge=1, le=64)
    care: bool = Field(default=True, description="Whether a check for danger runs before the answers.")
    country: str | None = Field(default=None, description="Country of the help lines; None = guessed.")
    resources: str | None = Field(default=None, description="A file of help lines; None = the shipped one.")
    quiet: bool = Field(default=False, description="Whether requests are not logged.")
    key_env: str | None = Field(default=None, description="Variable that holds the bearer keys, commas between.")


def run(launch: Launch, place: Place, told: Callable[[str], object]) -> None:
    """Serves until SIGTERM or Ctrl-C; what was accepted by then is answered.

    While the models load, ``/healthz`` is answered, and all else is told to come again.

    Args:
        launch: What.
        place: Where; of :func:`~empatheia.serve.listening.listening`.
        told: Called with the address, once the models answer.

    Raises:
        EmpatheiaError: The server cannot start; ConfigError: there are no keys.
    """
    keys_of(launch.key_env)
    with _door(launch, place) as close_door:

        def ready() -> None:
            close_door()
            told(place.address)

        if launch.workers == 1:
            server = _Telling(_config(launch, application(launch)), ready)
            hand_signals_to(server.handle_exit)
            server.run([place.socket])
            return
        with PrivateFolder() as jobs:  # one for all: a job is asked of any of them
            shared = launch.server.model_copy(update={"jobs": launch.server.jobs or jobs})
            handed = launch.model_copy(update={"server": shared})
            os.environ[HANDED_ON] = handed.model_dump_json(exclude={"server": {"keys"}})
            _TellingProcesses(_config(launch, f"{__name__}:worker"), [place.socket], ready).run()


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
    with listening(host, port, root_path) as place:
        run_there(app, place, told, root_path, sockets)


def run_there(
    app: ASGIApp, place: Place, told: Callable[[str], object], root_path: str = "", sockets: bool = False
) -> None:
    """As :func:`run_app`, where the port is taken already."""
    launch = Launch(server=ServerSettings(root_path=root_path))
    server = _Telling(_config(launch, app, sockets), lambda: told(place.address))
    hand_signals_to(server.handle_exit)
    server.run([place.socket])


@contextmanager
def _door(launch: Launch, place: Place) -> Iterator[Callable[[], None]]:
    """Answers in a thread while the models load; gives what ends it."""
    from empatheia.serve.loading import still_loading

    config = _config(launch.model_copy(update={"workers": 1}), still_loading(launch.server))
    config.lifespan = "off"
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([place.socket.dup()],), daemon=True)
    thread.start()

    def close() -> None:
        server.should_exit = True
        thread.join()

    try:
        yield close
    finally:
        close()


def application(launch: Launch) -> FastAPI:
    """The application of one process."""
    from empatheia.care import Care
    from empatheia.serve.app import create_app

    care = Care.read(resources=launch.resources, country=launch.country) if launch.care else False
    return create_app(launch.server.model_copy(update={"keys": keys_of(launch.key_env)}), care)


def worker() -> FastAPI:
    """The application of one process of several.

    Raises:
        SystemExit: It cannot be made; the log says why, and the other processes end, too.
    """
    import torch

    launch = Launch.model_validate(parse_json(os.environ[HANDED_ON]), strict=False)
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    logging.getLogger("empatheia.serve").setLevel(logging.WARNING if launch.quiet else logging.INFO)
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // launch.workers))
    try:
        return application(launch)
    except EmpatheiaError as error:
        _LOG.error("error: %s", error)
        raise SystemExit(STARTUP_FAILURE) from None


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


def _config(launch: Launch, app: ASGIApp | str, sockets: bool = False) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        factory=isinstance(app, str),
        workers=launch.workers,
        http=PatientProtocol,
        lifespan="on",
        ws="auto" if sockets else "none",
        ws_max_size=64 << 10,
        root_path=launch.server.root_path,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=20,
        timeout_worker_healthcheck=20,  # while it imports, a process answers nobody
        timeout_graceful_shutdown=round(launch.server.limits.drain_seconds),
        h11_max_incomplete_event_size=64 << 10,
        backlog=BACKLOG,
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
        gc.collect()
        gc.freeze()  # models stay to the end: walking them again and again stops everybody for a fifth of a second
        if self.started:
            self._told()


class _TellingProcesses(Multiprocess):
    """Several processes; says when all of them answer."""

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket], told: Callable[[], object]) -> None:
        super().__init__(config, sockets)
        self._told: Callable[[], object] | None = told

    def keep_subprocess_alive(self) -> None:
        """See uvicorn, which calls it twice a second."""
        super().keep_subprocess_alive()
        if self._told and not self.should_exit.is_set() and all(process.is_ready() for process in self.processes):
            self._told()
            self._told = None

    def run(self) -> None:
        """See uvicorn.

        Raises:
            SystemExit: One of them could not start.
        """
        super().run()
        if any(process.exitcode == STARTUP_FAILURE for process in self.processes):
            raise SystemExit(STARTUP_FAILURE)
