"""Writes what the default listener says to some sentences into docs/concepts/reflection.md."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

from generate_readme import written

from empatheia.listener.perceiving import PerceivingListener
from empatheia.listener.steps.focused import FocusedListener
from empatheia.listener.steps.settings import check_settings

PAGE = Path(__file__).resolve().parent / "concepts" / "reflection.md"
BEGIN, END = "<!-- examples: written by docs/generate_examples.py -->", "<!-- /examples -->"
SENTENCES = (
    "I finally passed my driving test after three tries!",
    "I just found out I'm going to be an aunt! My sister called and we both cried.",
    "My husband hits me.",
    "my boss yelled at me in front of everyone today",
    "We had to put our dog down yesterday. The house is so quiet.",
    "got the results back. it's benign!!",
    "Nobody came to my birthday.",
    "I told my best friend's secret and now she won't talk to me.",
    "My son started school today and he didn't even look back.",
)


def row(listener: FocusedListener, perceiving: PerceivingListener, text: str) -> str:
    """A line of the table: the text, the likeliest feeling, the words it comes from, the first lines of the reply."""
    felt = perceiving.analyze(text)
    causes = "; ".join(cause.of(felt.dialogue.turns) for cause in felt.newest.causes)
    emotion = felt.newest.emotion.label if felt.newest.emotion else ""
    said, *more = listener.respond(text).text.splitlines()
    return f"| {text} | {emotion} | {causes} | {said}{' …' if more else ''} |"


def lines() -> list[str]:
    """Of the table, with no model but the bundled ones, whatever is installed besides."""
    with TemporaryDirectory() as empty, mock.patch.dict(os.environ, EMPATHEIA_CACHE=empty, EMPATHEIA_MODELS=""):
        listener, perceiving = FocusedListener(check_settings({}, "the default listener")), PerceivingListener.load()
        rows = [row(listener, perceiving, text) for text in SENTENCES]
    return ["| somebody says | feels | because of | the reply |", "|---|---|---|---|", *rows]


def page() -> str:
    """The page with the table of today."""
    return written(PAGE, lines(), BEGIN, END)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
