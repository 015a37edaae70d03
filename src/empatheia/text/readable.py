"""Text without the characters nobody sees: controls, marks of direction, half surrogates."""

from __future__ import annotations

import re

_UNDEFINED = {0x81, 0x85, 0x8D, 0x8F, 0x90, 0x9D}  # of windows-1252, and the one that ends lines
C1 = {number: bytes([number]).decode("cp1252") for number in range(0x80, 0xA0) if number not in _UNDEFINED}
"""Control characters that are characters of windows-1252 read as Latin-1, to these; for ``str.translate``."""
_WHITE_CONTROLS = "\t\n\r\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029"
_CONTROLS = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f\x81\x8d\x8f\x90\x9d\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
SURROGATES = re.compile("[\ud800-\udfff]")
"""Halves of characters, which no tokenizer takes; a blank in place of each keeps every offset."""
_MENDED = str.maketrans(dict.fromkeys(_WHITE_CONTROLS, " ")) | C1


def has_controls(text: str) -> bool:
    """Whether :func:`readable` drops a character other than white space."""
    return _CONTROLS.search(text) is not None


def readable(text: str) -> str:
    """The text with control, direction and surrogate characters as blanks, and C1 characters as those of windows-1252.

    It has the same length, so offsets stay.
    """
    return _CONTROLS.sub(" ", text.translate(_MENDED))
