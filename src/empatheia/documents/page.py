"""Files of reports: where they can be written, and pages of the documentation that they lead to."""

from __future__ import annotations

import os
from pathlib import Path

from empatheia.errors import DataError

HOME = "https://github.com/empatheia/empatheia"


def doc_link(place: str) -> str:
    """The address of a page of the documentation.

    Args:
        place: File under ``docs/``, with or without a heading, e.g. ``reproduction.md#data``.
    """
    return f"{HOME}/blob/main/docs/{place}"


def write_whole(path: Path, text: str) -> None:
    """Writes a file, whole or not at all; half surrogates become question marks."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")  # several processes may write the same page
    try:
        part.write_text(text, encoding="utf-8", errors="replace")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def check_place(path: Path) -> None:
    """Whether a file can be written there.

    Raises:
        DataError: The folder does not exist, or the path is a folder.
    """
    if path.is_dir():
        raise DataError(f"{path} is a folder; name a file, e.g. {path / 'report.html'}.")
    if not path.absolute().parent.is_dir():
        raise DataError(f"the folder {path.absolute().parent} does not exist; create it first.")
