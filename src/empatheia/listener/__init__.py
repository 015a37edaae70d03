"""The steps composed: a conversation in; what is felt, why, and a reply out. Names are imported when used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from empatheia.files.transcripts import read_transcripts
    from empatheia.listener.analyzer import Analyzer
    from empatheia.listener.conversation import Conversation
    from empatheia.listener.language_models import LanguageListener
    from empatheia.listener.listener import Listener, analyze, respond
    from empatheia.listener.steps.focused import FocusedListener
    from empatheia.listener.steps.steering import Steering
    from empatheia.listener.streaming import ReplyStream
    from empatheia.text.inputs import as_dialogue
    from empatheia.voices.decoding import Decoding

_HOMES = {
    "Analyzer": "empatheia.listener.analyzer",
    "Conversation": "empatheia.listener.conversation",
    "Decoding": "empatheia.voices.decoding",
    "FocusedListener": "empatheia.listener.steps.focused",
    "LanguageListener": "empatheia.listener.language_models",
    "Listener": "empatheia.listener.listener",
    "ReplyStream": "empatheia.listener.streaming",
    "Steering": "empatheia.listener.steps.steering",
    "analyze": "empatheia.listener.listener",
    "as_dialogue": "empatheia.text.inputs",
    "read_transcripts": "empatheia.files.transcripts",
    "respond": "empatheia.listener.listener",
}

__all__ = [
    "Analyzer",
    "Conversation",
    "Decoding",
    "FocusedListener",
    "LanguageListener",
    "Listener",
    "ReplyStream",
    "Steering",
    "analyze",
    "as_dialogue",
    "read_transcripts",
    "respond",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'empatheia.listener' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
