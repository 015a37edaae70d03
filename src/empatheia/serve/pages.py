"""Static pages out of the package: a fixed list of files, nothing that a path could lead out of.

Files lie in a folder of package data; ``name.html`` is served as ``/name``, ``index.html`` as ``/``, all others under
their own path. There are no directories, no listings and no other files than those found when the server starts.
"""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import Response

from empatheia.reading import read_bytes

_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
_CODE = (".py", ".pyc")
SHARED = (Path(__file__).with_name("static"), ("/points.js",))
"""Folder and files that the pages of every server of ours import."""


@dataclass(frozen=True, slots=True)
class Page:
    """One file, in memory.

    Attributes:
        body: Its bytes.
        kind: Its content type.
        tag: Its ETag.
    """

    body: bytes
    kind: str
    tag: str


def read_pages(folder: Path) -> dict[str, Page]:
    """The files below a folder by the path under which each is served."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.suffix in _CODE:
            continue
        place = "/" + path.relative_to(folder).as_posix()
        if path.suffix == ".html":
            place = place.removesuffix(".html").removesuffix("index") or "/"
        body = read_bytes(path)
        kind = _KINDS.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        found[place] = Page(body, kind, f'"{hashlib.sha256(body).hexdigest()[:24]}"')
    return found


def page_routes(folder: Path, only: Collection[str] | None = None) -> APIRouter:
    """Routes for the files below a folder, or for some of them; they stand in no OpenAPI document."""
    router = APIRouter()
    for place, page in read_pages(folder).items():
        if only is not None and place not in only:
            continue
        router.add_api_route(place, _sender(page), methods=["GET", "HEAD"], include_in_schema=False)
    return router


def _sender(page: Page):  # noqa: ANN202
    async def send(request: Request) -> Response:
        headers = {"etag": page.tag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == page.tag:
            return Response(status_code=304, headers=headers)
        return Response(page.body, media_type=page.kind, headers=headers)

    return send
