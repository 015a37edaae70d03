"""Listeners over HTTP: OpenAI's protocol, our analysis, pages. Needs the extra ``serve``.

Names are imported when used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from empatheia.serve.app import create_app
    from empatheia.serve.settings import ServerSettings, WebSettings

_HOMES = {
    "ServerSettings": "empatheia.serve.settings",
    "WebSettings": "empatheia.serve.settings",
    "create_app": "empatheia.serve.app",
}

__all__ = ["ServerSettings", "WebSettings", "create_app"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'empatheia.serve' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
