"""A document as one HTML file that needs nothing else: no network, no font but the reader's own, light and dark.

Every page of the package has the frame ``page.html`` and the rules of ``page.css``; a page with markup of its own has a
template that extends the frame. Whatever a template shows is escaped, with control and direction characters as blanks.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from empatheia import __version__
from empatheia.documents.document import Attributes, Content, Document
from empatheia.text.readable import readable

_HERE = Path(__file__).parent


def to_html(
    document: Document,
    style: str = "",
    *,
    skip: tuple[str, str] | None = None,
    images: bool = False,
) -> str:
    """The whole page.

    Args:
        document: What it says.
        style: CSS after the shared rules.
        skip: Identity of the main content and the text of the link to it.
        images: Whether the page holds pictures as ``data:`` addresses.
    """
    return render(_HERE / "document.html", document.title, style, skip=skip, images=images, document=document)


def render(
    template: Path,
    title: str,
    style: str = "",
    *,
    skip: tuple[str, str] | None = None,
    images: bool = False,
    script: str = "",
    **facts: object,
) -> str:
    """A page by a template that extends ``page.html``. The browser is told to load nothing, and to run nothing else.

    Args:
        template: File; it fills the blocks ``lead`` and ``main``.
        title: Plain text.
        style: CSS after the shared rules.
        skip: Identity of the main content and the text of the link to it.
        images: Whether the page holds pictures as ``data:`` addresses.
        script: JavaScript at the end of the page, allowed by its checksum.
        **facts: What the template shows.
    """
    policy = "default-src 'none'; style-src 'unsafe-inline'" + ("; img-src data:" if images else "")
    if script:
        policy += f"; script-src 'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
    frame = {
        "title": title,
        "policy": Markup(policy),
        "style": Markup((_HERE / "page.css").read_text(encoding="utf-8") + style),
        "script": Markup(script),
        "skip": skip,
        "version": __version__,
    }
    return template_of(template).render(frame | facts)


@cache
def template_of(file: Path) -> Template:
    """A template file; it may use the templates beside this module."""
    return _environment().from_string(file.read_text(encoding="utf-8"))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"attributes": _attributes, "kind": lambda block: type(block).__name__, "base64": _base64}
    environment.globals["newline"] = Markup("\n")
    return environment


def line_html(content: Content) -> str:
    """A line as HTML, for a part of a page by itself."""
    return _environment().get_template("blocks.html").make_module().line(content)  # pyright: ignore[reportAttributeAccessIssue]


def _safe(text: object) -> str:
    """A text for a page: escaped, control and direction characters as blanks."""
    return escape(readable(str(text)))


def _shown(value: Any) -> Any:
    return value if hasattr(value, "__html__") else Markup(_safe(value))


def _attributes(values: Attributes) -> Markup:
    shown = {name: value for name, value in values.items() if not (value is None or value is False or value == "")}
    parts = (f" {name}" if value is True else f' {name}="{_safe(value)}"' for name, value in shown.items())
    return Markup("".join(parts))


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
