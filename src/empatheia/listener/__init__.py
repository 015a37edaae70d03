"""The steps composed: a conversation in; what is felt, why, and a reply out. Names are imported when used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from empatheia.listener.conversation import Conversation
    from empatheia.listener.inputs import as_dialogue
    from empatheia.listener.listener import Listener, analyze, respond
    from empatheia.listener.strategies import Decoding
    from empatheia.listener.streaming import ReplyStream

_HOMES = {
    "Conversation": "empatheia.listener.conversation",
    "Decoding": "empatheia.listener.strategies",
    "Listener": "empatheia.listener.listener",
    "ReplyStream": "empatheia.listener.streaming",
    "analyze": "empatheia.listener.listener",
    "as_dialogue": "empatheia.listener.inputs",
    "respond": "empatheia.listener.listener",
}

__all__ = ["Conversation", "Decoding", "Listener", "ReplyStream", "analyze", "as_dialogue", "respond"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'empatheia.listener' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
