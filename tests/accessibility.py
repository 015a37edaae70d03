"""axe-core in the pages of tests; it comes from npm and is no part of the package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

AXE = Path(__file__).parents[1] / "build" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
INSTALL = "npm install --prefix build/axe axe-core"


def watched(context: Any) -> None:
    """Gives every page of a browser context axe-core; the context must not enforce the content policy."""
    if not AXE.is_file():
        pytest.skip(f"axe-core is not here: {INSTALL}")
    context.add_init_script(path=AXE)


def serious(page: Any) -> list[str]:
    """The serious and critical faults of a page as it stands."""
    page.wait_for_timeout(500)  # colours fade in
    result = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    assert result["passes"]
    return [
        f"{one['id']}: {node['html'][:160]} {node['any'][0]['message'] if node['any'] else ''}"
        for one in result["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]
