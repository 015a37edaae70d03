"""A hook of the documentation: references of docstrings are shown as code, without the word before them."""

from __future__ import annotations

import re
from typing import Any

_ROLE = re.compile(r":(?:meth|func|class|data|mod|attr|exc|obj):<code>(~?)([^<]*)</code>")


def on_page_content(html: str, **_: Any) -> str:
    """``:meth:`~a.b.c``` becomes ``c``, and ``:func:`a.b``` becomes ``a.b``."""
    return _ROLE.sub(lambda found: f"<code>{found[2].rpartition('.')[2] if found[1] else found[2]}</code>", html)
