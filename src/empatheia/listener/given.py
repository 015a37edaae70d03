"""What callers of Python hand in: texts, conversations, chat messages, frames, or lists of these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from empatheia.dialogue import Dialogue, Role, Turn
from empatheia.errors import DataError, InputTypeError
from empatheia.listener.frames import Frame, frame_of, kind
from empatheia.registry import nearest

ACCEPTED = (
    "a text, a Dialogue, chat messages ([{'role': 'user', 'content': '...'}]), a list of these, a Series of texts, or"
    " a polars or pandas frame with column='NAME'"
)
_ROLES: dict[str, Role] = {"user": "speaker", "speaker": "speaker", "assistant": "listener", "listener": "listener"}
_UNSAID = ("system", "developer")

Input = str | Dialogue


def is_one(item: object) -> bool:
    """Whether it is one conversation, and not a list of them."""
    return isinstance(item, str | Dialogue) or _is_chat(item)


def given(item: object, column: str | None = None) -> Input | list[Input] | Frame:
    """What was handed in, as every listener reads it.

    Args:
        item: See :data:`ACCEPTED`.
        column: Of a frame: where the texts are.

    Returns:
        A text or conversation, a list of these, or the frame with its texts.

    Raises:
        InputTypeError: It is something else; says what was found and what is accepted.
        DataError: The frame has no such column, or a chat message an unknown role.
    """
    if is_one(item):
        return _one(item)
    if (frame := frame_of(item, column)) is not None:
        return frame
    if column is not None:
        raise InputTypeError(f"column={column!r} goes with a frame; found {kind(item)}. Accepted: {ACCEPTED}.")
    if isinstance(item, Mapping | bytes) or not isinstance(item, Iterable):
        raise InputTypeError(f"cannot read {kind(item)}. Accepted: {ACCEPTED}.")
    out: list[Input] = []
    for number, one in enumerate(item, 1):
        if not is_one(one):
            raise InputTypeError(f"input {number} is {kind(one)}. Accepted: {ACCEPTED}.")
        out.append(_one(one))
    return out


def refuse(items: object) -> None:
    """Refuses what would be read wrongly, item by item: a mapping by its keys, a frame by its columns.

    Raises:
        InputTypeError: It is such a thing, or nothing that can be gone through.
    """
    if isinstance(items, Mapping | bytes) or hasattr(items, "columns") or not isinstance(items, Iterable):
        raise InputTypeError(f"cannot read {kind(items)}. Accepted: {ACCEPTED}.")


def _one(item: Any) -> Input:
    if isinstance(item, str | Dialogue):
        return item
    turns = []
    for number, message in enumerate(item, 1):
        role, text = message.get("role"), message.get("content")
        if role in _UNSAID:
            continue
        if role not in _ROLES:
            known = [*_ROLES, *_UNSAID]
            raise DataError(
                f"message {number} has the role {role!r}.{nearest(str(role), known)} Accepted: {', '.join(known)}."
            )
        if not isinstance(text, str):
            raise InputTypeError(f"message {number} has {kind(text)} as content; accepted: a text.")
        turns.append(Turn(_ROLES[role], text))
    return Dialogue("", tuple(turns))


def _is_chat(item: Any) -> bool:
    is_list = isinstance(item, Sequence) and not isinstance(item, str | bytes)
    return is_list and bool(item) and all(isinstance(one, Mapping) and "role" in one for one in item)
