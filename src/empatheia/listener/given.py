"""What callers of Python hand in: texts, conversations, chat messages, frames, or lists of these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from empatheia.dialogue import Dialogue, Role, Turn
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


def given(item: object, column: str | None = None) -> Input | list[Input]:
    """What was handed in, as every listener reads it.

    Args:
        item: See :data:`ACCEPTED`.
        column: Of a frame: where the texts are.

    Returns:
        A text or conversation, or a list of these.

    Raises:
        TypeError: It is something else; says what was found and what is accepted.
        ValueError: The frame has no such column, or a chat message an unknown role.
    """
    if is_one(item):
        return _one(item)
    if hasattr(item, "columns") and hasattr(item, "__getitem__"):
        return _texts_of(item, column)
    if column is not None:
        raise TypeError(f"column={column!r} goes with a frame; found {_kind(item)}. Accepted: {ACCEPTED}.")
    to_list: Callable[[], object] | None = getattr(item, "to_list", None)
    if to_list is not None and not isinstance(item, Mapping):  # a Series of polars or pandas
        item = to_list()
    if isinstance(item, Mapping | bytes) or not isinstance(item, Iterable):
        raise TypeError(f"cannot read {_kind(item)}. Accepted: {ACCEPTED}.")
    out: list[Input] = []
    for number, one in enumerate(item, 1):
        if not is_one(one):
            raise TypeError(f"input {number} is {_kind(one)}. Accepted: {ACCEPTED}.")
        out.append(_one(one))
    return out


def refuse(items: object) -> None:
    """Refuses what would be read wrongly, item by item: a mapping by its keys, a frame by its columns.

    Raises:
        TypeError: It is such a thing, or nothing that can be gone through.
    """
    if isinstance(items, Mapping | bytes) or hasattr(items, "columns") or not isinstance(items, Iterable):
        raise TypeError(f"cannot read {_kind(items)}. Accepted: {ACCEPTED}.")


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
            raise ValueError(
                f"message {number} has the role {role!r}.{nearest(str(role), known)} Accepted: {', '.join(known)}."
            )
        if not isinstance(text, str):
            raise TypeError(f"message {number} has {_kind(text)} as content; accepted: a text.")
        turns.append(Turn(_ROLES[role], text))
    return Dialogue("", tuple(turns))


def _is_chat(item: Any) -> bool:
    is_list = isinstance(item, Sequence) and not isinstance(item, str | bytes)
    return is_list and bool(item) and all(isinstance(one, Mapping) and "role" in one for one in item)


def _texts_of(frame: Any, column: str | None) -> list[Input]:
    names = [str(name) for name in frame.columns]
    if column is None:
        raise TypeError(f"a frame needs column=, the name of its column of texts; it has {', '.join(names)}.")
    if column not in names:
        raise ValueError(f"the frame has no column {column!r}.{nearest(column, names)} It has: {', '.join(names)}.")
    texts = list(frame[column])
    for number, text in enumerate(texts, 1):
        if not isinstance(text, str):
            raise TypeError(f"row {number} of column {column!r} is {_kind(text)}; accepted: a text.")
    return texts


def _kind(item: Any) -> str:
    if item is None:
        return "None"
    name = type(item).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"
