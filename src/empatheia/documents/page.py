"""Pages of the documentation that reports lead to."""

from __future__ import annotations

HOME = "https://github.com/empatheia/empatheia"


def doc_link(place: str) -> str:
    """The address of a page of the documentation.

    Args:
        place: File under ``docs/``, with or without a heading, e.g. ``reproduction.md#data``.
    """
    return f"{HOME}/blob/main/docs/{place}"
