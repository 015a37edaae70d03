"""What answers by default loads neither torch nor its company."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
HEAVY = {"torch", "transformers", "accelerate", "nltk", "polars", "sklearn", "scipy"}
ROOTS = (
    "empatheia.listener.perceiving",
    "empatheia.listener.steps.focused",
    "empatheia.listener",
    "empatheia.care.danger",
    "empatheia.perceive.perception",
    "empatheia.voices.reflection.voice",
)


def file_of(module: str) -> Path | None:
    place = SOURCE.joinpath(*module.split("."))
    return next((path for path in (place / "__init__.py", place.with_suffix(".py")) if path.is_file()), None)


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Those that run when the module loads."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        yield node
        for name in ("body", "orelse", "finalbody"):
            yield from statements(getattr(node, name, []))
        for handler in getattr(node, "handlers", []):
            yield from statements(handler.body)


def imports_of(path: Path) -> Iterator[str]:
    for node in statements(ast.parse(path.read_text(encoding="utf-8")).body):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{one.name}" for one in node.names)


def loaded(roots: tuple[str, ...]) -> dict[str, set[str]]:
    """Module of ours to what it imports, of all that loading the roots loads."""
    found: dict[str, set[str]] = {}
    waiting = list(roots)
    while waiting:
        module = waiting.pop()
        path = file_of(module)
        if module in found or path is None:
            continue
        found[module] = set(imports_of(path))
        waiting += [name for name in (*found[module], module.rpartition(".")[0]) if name.startswith("empatheia")]
    return found


def test_what_a_default_reply_loads_imports_nothing_heavy():
    found = loaded(ROOTS)
    assert len(found) > 50
    for name, own in found.items():
        assert not {one.partition(".")[0] for one in own} & HEAVY, name


def test_perception_and_danger_read_where_torch_is_not_there():
    code = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({sorted(HEAVY)!r}))\n"
        "from empatheia.records.dialogue import Turn\n"
        "from empatheia.perceive.perception import bundled_perception\n"
        "from empatheia.care import assess\n"
        "found = bundled_perception().read([(Turn('speaker', 'I got the job!'),)])[0]\n"
        "danger = assess('nobody would even notice if i stopped showing up')\n"
        "print(found.side, danger.is_flagged)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(SOURCE)}
    )
    assert done.stdout == "pleasant True\n", done.stderr
