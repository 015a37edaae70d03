"""Signed words: session tokens and invitation links that nobody can make or change without the study's secret."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

from empatheia.errors import EmpatheiaError
from empatheia.reading import UnreadableError, parse_json


class Refused(EmpatheiaError):
    """What a page asked for is not given; the message is for the person in front of it.

    Args:
        message: What was found, what is accepted, what to do.
        status: Of HTTP.
        code: A short name for programs.
    """

    def __init__(self, message: str, status: int = 409, code: str = "refused") -> None:
        super().__init__(message)
        self.status, self.code = status, code


def sign(secret: str, content: Mapping[str, object]) -> str:
    """The content and its signature as one word that fits into an address."""
    body = _packed(json.dumps(content, separators=(",", ":"), sort_keys=True).encode())
    return f"{body}.{_signature(secret, body)}"


def opened(secret: str, word: str, now: float, kind: str) -> dict[str, Any]:
    """What :func:`sign` was given.

    Args:
        secret: Of the study.
        word: Of anybody.
        now: Seconds since 1970; content with an earlier ``until`` is refused.
        kind: What ``kind`` of the content has to be.

    Raises:
        Refused: The word is forged, damaged, of another kind or too old.
    """
    body, _, signature = word.partition(".")
    if not hmac.compare_digest(_signature(secret, body).encode(), signature.encode("utf-8", "surrogatepass")):
        raise Refused(
            "this link was not made by this study, or was changed. Use the link as you got it.", 403, "forged"
        )
    try:
        content = parse_json(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    except (UnreadableError, ValueError):
        content = None
    if not isinstance(content, dict) or content.get("kind") != kind:
        raise Refused("this link is for something else. Use the link as you got it.", 403, "forged")
    if now > float(content.get("until", now)):
        raise Refused("this link has expired. Ask the person who sent it for a new one.", 403, "expired")
    return content


def pseudonym(secret: str, name: str) -> str:
    """What is kept of a worker's name: equal names give equal words, and no word leads back to a name."""
    return hmac.new(secret.encode(), name.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def _signature(secret: str, body: str) -> str:
    digest = hmac.new(secret.encode(), b"word:" + body.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()
    return _packed(digest[:24])


def _packed(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
