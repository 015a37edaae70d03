"""A headless Chromium for the tests of pages: it reaches loopback alone, and whatever else is asked for is counted."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def chromium() -> Iterator:
    """The browser; the test is skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
    found = os.environ.get("EMPATHEIA_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("no Chromium here: apt-get install chromium, or set EMPATHEIA_CHROMIUM to one")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        browser.close()


class Visit:
    """A browser context that reaches loopback alone.

    Attributes:
        foreign: Addresses elsewhere that were asked for.
        faults: What the console and uncaught errors said.
        sent: Requests.
    """

    def __init__(self, browser, **options) -> None:
        options.setdefault("viewport", {"width": 1280, "height": 900})
        self.foreign: list[str] = []
        self.faults: list[str] = []
        self.sent: list = []
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(60_000)
        self.context.route("**/*", self._pass)
        self.page = self.context.new_page()
        self.page.on("console", lambda line: self.faults.append(line.text) if line.type == "error" else None)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("request", self._note)

    def _note(self, request) -> None:
        self.sent.append(request)

    def _pass(self, route) -> None:
        if urlsplit(route.request.url).hostname in ("127.0.0.1", None):
            route.continue_()
        else:
            self.foreign.append(route.request.url)
            route.abort()

    def open(self, address: str):
        """The page at an address, once it can be used."""
        self.page.goto(address)
        self.page.locator("body[data-ready]").wait_for()
        return self.page
