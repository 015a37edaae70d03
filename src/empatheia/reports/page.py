"""A page that needs nothing else: one file, no network, no font but the reader's own, light and dark.

Every page of the package has this frame and the rules of ``page.css``; what only one kind of page needs comes with it.
"""

from __future__ import annotations

import base64
import hashlib
import os
from html import escape
from pathlib import Path

from empatheia import __version__
from empatheia.errors import DataError
from empatheia.text.readable import readable

HOME = "https://github.com/empatheia/empatheia"


def safe(text: object) -> str:
    """A text for a page: escaped, control and direction characters as blanks."""
    return escape(readable(str(text)))


def doc_link(place: str) -> str:
    """The address of a page of the documentation.

    Args:
        place: File under ``docs/``, with or without a heading, e.g. ``reproduction.md#data``.
    """
    return f"{HOME}/blob/main/docs/{place}"


def html_page(
    title: str,
    head: str,
    body: str,
    *,
    style: str = "",
    skip: tuple[str, str] | None = None,
    images: bool = False,
    script: str = "",
) -> str:
    """The whole page. The browser is told to load nothing, and to run nothing but the given script.

    Args:
        title: Plain text.
        head: HTML below the title.
        body: HTML of the page's main part.
        style: CSS after the shared rules.
        skip: Identity of the main content and the text of the link to it.
        images: Whether the page holds pictures as ``data:`` addresses.
        script: JavaScript at the end of the page, allowed by its checksum.
    """
    policy = "default-src 'none'; style-src 'unsafe-inline'" + ("; img-src data:" if images else "")
    if script:
        policy += f"; script-src 'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
    link = "" if skip is None else f'<a class="skip" href="#{safe(skip[0])}">{safe(skip[1])}</a>\n'
    shared = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<title>{safe(title)}</title>\n<style>\n{shared}{style}</style>\n</head>\n<body>\n{link}"
        f"<header><h1>{safe(title)}</h1>{head}</header>\n<main>\n{body}</main>\n"
        f"<footer><p>Made by empatheia {safe(__version__)}.</p></footer>\n"
        f"{f'<script>{script}</script>' if script else ''}</body>\n</html>\n"
    )


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
