"""A study behind uvicorn in a thread of this process, and a browser, if there is one."""

from __future__ import annotations

import contextlib
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn

from empatheia.serve.run import Launch, _config
from empatheia.serve.settings import Limits, ServerSettings
from empatheia_people.studies.serving import study_app
from empatheia_people.studies.store import Store

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


@contextlib.contextmanager
def served(store: Store, port: int = 0, **more: Any) -> Iterator[str]:
    """Serves a store; gives the address."""
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    launch = Launch(server=ServerSettings(limits=Limits(drain_seconds=1)))
    server = uvicorn.Server(_config(launch, study_app(store, **more), sockets=True))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()


@contextlib.contextmanager
def browsing() -> Iterator[Any]:
    """A browser; skips where none is installed."""
    if CHROMIUM is None:
        pytest.skip("no browser: chromium is not installed (Debian: apt-get install chromium)")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()
