"""What callers of Python hand in: texts, conversations, chat messages, frames, or lists of these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from empatheia.errors import InputTypeError
from empatheia.files.json_forms import is_said, is_turn_array, turn_talk, turns_in
from empatheia.listener.frames import Frame, frame_of, kind
from empatheia.records.dialogue import Dialogue

ACCEPTED = (
    "a text, a Dialogue, chat messages ([{'role': 'user', 'content': '...'}]), a list of these, a Series of texts, or"
    " a polars or pandas frame with column='NAME'"
)

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
        DataError: The frame has no such column, or a conversation an unknown role or more than two people.
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
    item = list(item) if isinstance(item, tuple) else item
    for number, message in enumerate(turns_in(item) or (), 1):
        text = message.get("content") if isinstance(message, Mapping) else None
        if not isinstance(text, str | list | Mapping | None):
            raise InputTypeError(f"message {number} has {kind(text)} as content; accepted: a text.")
    return turn_talk(item).dialogue()


def _is_chat(item: Any) -> bool:
    """Chat messages of any usual form, or an object that holds them; see :mod:`empatheia.files.json_forms`."""
    if isinstance(item, Mapping):
        return bool(turns_in(item))
    if not isinstance(item, list | tuple) or not item:
        return False
    return all(isinstance(one, Mapping) and is_said(one) for one in item) or is_turn_array(list(item))
