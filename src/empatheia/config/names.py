"""Names that become folders and files: plain ones only, so that nothing is written outside of the folder meant."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

_PLAIN = re.compile(r"\w(?:[\w .+=,@~()-]*[\w+=@~)-])?")
_LONGEST = 120
_ENDINGS = (".part", ".partial")
"""Of files that are being written, which may be removed."""
_ACCEPTED = (
    "a letter, digit or '_', then also blanks and . + = , @ ~ ( ) -; no blank or dot at the end, no '.part' or"
    f" '.partial' there, at most {_LONGEST} characters"
)


def plain_name(text: str) -> str:
    """The text, if it can be the name of one file or folder.

    Raises:
        ValueError: It is empty, has a separator, leads elsewhere (``..``, an absolute path) or is too long.

    >>> plain_name("joint")
    'joint'
    """
    if not _is_plain(text):
        raise ValueError(f"{_shown(text)} cannot be the name of a folder; accepted: {_ACCEPTED}")
    return text


def path_name(text: str) -> str:
    """The text, if it is one :func:`plain_name` or several with ``/`` between: a place below a folder.

    Raises:
        ValueError: A part of it is no plain name.

    >>> path_name("gao2021/soft")
    'gao2021/soft'
    """
    if not all(map(_is_plain, text.split("/"))):
        raise ValueError(
            f"{_shown(text)} cannot be a name; accepted: names such as 'soft' or 'gao2021/soft', each part: {_ACCEPTED}"
        )
    return text


PlainName = Annotated[str, AfterValidator(plain_name)]
PathName = Annotated[str, AfterValidator(path_name)]


def _is_plain(text: str) -> bool:
    return len(text) <= _LONGEST and _PLAIN.fullmatch(text) is not None and not text.lower().endswith(_ENDINGS)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
