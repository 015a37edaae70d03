"""What of a text may go to a terminal or a line of JSON: no control character, nothing that turns its direction."""

from __future__ import annotations

import json
import re

_BREAKS = re.compile("[\\t\\r\\n\\v\\f\\x85\\u2028\\u2029]")
_HIDDEN = re.compile(
    "[\\0-\\x1f\\x7f-\\x9f\\u061c\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ufeff\\ud800-\\udfff]"
)
"""Control characters, those that change the direction of writing, and halves of characters."""


def visible(text: str) -> str:
    """The text with line breaks as blanks and other control characters as ``?``, of the same length.

    Every text that goes to a terminal passes through here, wherever it came from: a model's manifest may hold escapes.
    """
    return _HIDDEN.sub("?", _BREAKS.sub(" ", text))


def visible_lines(text: str) -> str:
    """As :func:`visible`, with the line breaks kept."""
    return "\n".join(map(visible, text.split("\n")))


def json_line(record: object) -> str:
    """One JSON value on one line; text outside ASCII stays as it is, but for what :func:`visible` takes out."""
    return _HIDDEN.sub(lambda found: f"\\u{ord(found.group()):04x}", json.dumps(record, ensure_ascii=False))
