"""A hook of the documentation: references of docstrings are shown as code, formulas with indices and powers."""

from __future__ import annotations

import re
from typing import Any

_ROLE = re.compile(r":(?:meth|func|class|data|mod|attr|exc|obj):<code>(~?)([^<]*)</code>")
_FORMULA = re.compile(r"<em>[^<]*[_^][^<]*</em>")
_INDEX = re.compile(r"(?<=\S)(?:(_)|\^)(?:\{([^}]*)\}|\(([^)]*)\)|((?:&lt;=?)?[^\W_]+))")


def on_page_content(html: str, **_: Any) -> str:
    """``:meth:`~a.b.c``` becomes ``c``, and ``:func:`a.b``` becomes ``a.b``; ``*p_i^β*`` gets an index and a power."""
    html = _ROLE.sub(lambda found: f"<code>{found[2].rpartition('.')[2] if found[1] else found[2]}</code>", html)
    return _FORMULA.sub(lambda found: _INDEX.sub(_raised, found[0]), html)


def _raised(found: re.Match[str]) -> str:
    """An index or a power as HTML, without the signs and brackets that stand for it in plain text."""
    tag = "sub" if found[1] else "sup"
    return f"<{tag}>{found[2] or found[3] or found[4]}</{tag}>"
