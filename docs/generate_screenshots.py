"""Draws the pictures of the pages in ``docs/images``: a server of its own, a headless Chromium, nothing else.

Run it after a change of the pages: ``python docs/generate_screenshots.py`` (needs ``pip install playwright`` and
Chromium).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

IMAGES = Path(__file__).parent / "images"
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
TOLD = (
    "My dog ran away in the park because of the fireworks, and I am so worried.",
    "We looked for him all night and I can not sleep.",
    "A neighbour just found him! I am so relieved and grateful.",
)
POSTS = (
    "I lost my keys again and missed the bus to work.",
    "My sister is visiting tomorrow and I can hardly wait!",
    "They cancelled my flight without telling anyone.",
    "I finally passed the exam after three tries.",
    "My neighbour plays the drums at night.",
    "Grandma gave me her old ring before she died.",
    "I have a job interview on Monday and I cannot sleep.",
    "My son took his first steps today!",
    "Somebody stole my bike from the garden.",
    "My flight was cancelled and nobody helped us.",
    "My daughter passed the exam, I could cry.",
)


@contextmanager
def served() -> Iterator[str]:
    """A server on a free port; gives its address."""
    command = [sys.executable, "-m", "empatheia", "serve", "--port", "0", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def talk(page: Any, address: str, told: tuple[str, ...] = TOLD) -> None:
    """A conversation."""
    page.goto(f"{address}/")
    page.locator("body[data-ready]").wait_for()
    for place, text in enumerate(told):
        page.fill("#message", text)
        page.keyboard.press("Enter")
        page.locator(".doing").nth(place).wait_for()


def shoot(page: Any, name: str) -> None:
    """A picture, once colours and bars have settled."""
    page.wait_for_timeout(800)
    page.screenshot(path=IMAGES / f"{name}.png")


def compare(page: Any, address: str) -> None:
    """Two systems side by side."""
    talk(page, address, TOLD[:1])
    page.click("#compare")
    page.fill("#message", TOLD[1])
    page.keyboard.press("Enter")
    page.locator("[data-act=vote-left]").click()


def analyse(page: Any, address: str) -> None:
    """A file."""
    page.goto(f"{address}/analyze")
    page.locator("body[data-ready]").wait_for()
    body = "text\n" + "".join(f'"{text}"\n' for text in POSTS)
    page.set_input_files("#file", {"name": "posts.csv", "mimeType": "text/csv", "buffer": body.encode()})
    page.click("#begin")
    page.locator("#cancel").wait_for(state="hidden")
    page.locator("#rows .sentence").nth(len(POSTS) - 1).wait_for()


def main() -> None:
    """All pictures."""
    from playwright.sync_api import sync_playwright

    IMAGES.mkdir(exist_ok=True)
    with served() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)

        def fresh(width: int = 1280, height: int = 860, **options: Any) -> Any:
            return browser.new_context(viewport={"width": width, "height": height}, **options).new_page()

        page = fresh()
        talk(page, address)
        shoot(page, "chat")
        page = fresh(color_scheme="dark")
        compare(page, address)
        shoot(page, "chat_dark")
        page = fresh(390, 780, device_scale_factor=1.5)
        talk(page, address, TOLD[:1])
        page.locator("[data-act=why-0]").click()
        shoot(page, "chat_phone")
        page = fresh()
        analyse(page, address)
        shoot(page, "analysis")
        browser.close()


if __name__ == "__main__":
    main()
