"""empatheia: understands what a person feels and why, and answers accordingly.

    >>> import empatheia
    >>> analysis = empatheia.analyze("I lost my grandmother last week.")  # doctest: +SKIP
    >>> [cause.of(analysis.dialogue.turns) for cause in analysis.newest.causes]  # doctest: +SKIP

Names are imported when first used: ``import empatheia`` takes no torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from empatheia.errors import EmpatheiaError
    from empatheia.listener import Analyzer, Conversation, Decoding, Listener, analyze, respond
    from empatheia.records.analysis import Analysis
    from empatheia.records.dialogue import Dialogue, Example, Span, Turn
    from empatheia.records.reply import Reply

__version__ = "0.1.0"

_HOMES = {
    "Analysis": "empatheia.records.analysis",
    "Analyzer": "empatheia.listener",
    "Conversation": "empatheia.listener",
    "Decoding": "empatheia.listener",
    "Dialogue": "empatheia.records.dialogue",
    "EmpatheiaError": "empatheia.errors",
    "Example": "empatheia.records.dialogue",
    "Listener": "empatheia.listener",
    "Reply": "empatheia.records.reply",
    "Span": "empatheia.records.dialogue",
    "Turn": "empatheia.records.dialogue",
    "analyze": "empatheia.listener",
    "respond": "empatheia.listener",
}

__all__ = [
    "Analysis",
    "Analyzer",
    "Conversation",
    "Decoding",
    "Dialogue",
    "EmpatheiaError",
    "Example",
    "Listener",
    "Reply",
    "Span",
    "Turn",
    "__version__",
    "analyze",
    "respond",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'empatheia' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
