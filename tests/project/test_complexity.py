"""No function has more than fifteen ways through it, conditions joined by "and" or "or" and comprehensions counted.

Ruff's rule (C901, also 15) counts neither, so that a condition of ten parts passes it as one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"
MOST = 15
PARTS = sorted(
    f"{package.name}/{part.name}"
    for package in SOURCE.glob("empatheia*")
    for part in package.iterdir()
    if part.suffix == ".py" or (part / "__init__.py").is_file()
)
ABOVE = {
    *(f"empatheia/files/{name}.py" for name in ("conversations", "json_forms", "talks", "transcripts")),
    "empatheia/replies/scoring.py",
}
"""Files with functions above it; the list only shrinks."""
_STEPS = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.Assert, ast.ExceptHandler)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def complexity(function: ast.AST) -> int:
    """Cyclomatic complexity of a function with those inside it (McCabe 1976, conditions by their parts)."""
    n = 0
    for node in ast.walk(function):
        n += isinstance(node, (*_STEPS, *_FUNCTIONS))
        if isinstance(node, ast.BoolOp):
            n += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            n += 1 + len(node.ifs)
        elif isinstance(node, ast.match_case):
            n += not (isinstance(node.pattern, ast.MatchAs) and node.pattern.pattern is None)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.While | ast.Try):
            n += bool(node.orelse)
    return n


def functions(source: str) -> Iterator[tuple[str, int]]:
    """Functions and methods of a module, each with its line; those inside of others count with these."""
    todo: list[ast.AST] = [ast.parse(source)]
    while todo:
        for node in ast.iter_child_nodes(todo.pop()):
            if isinstance(node, _FUNCTIONS):
                yield f"{node.lineno} {node.name}", complexity(node)
            else:
                todo.append(node)


def test_complexity_counts_conditions_and_comprehensions():
    source = (
        "def plain(): pass\n"
        "def joined(a, b):\n"
        "    if a and b or not a:\n"  # one for the if, one for each and, or
        "        return [c for c in b if c]\n"  # one for the loop, one for its condition
        "class Thing:\n"
        "    def tries(self):\n"
        "        try:\n"
        "            return 1 if self else 2\n"
        "        except (OSError, ValueError):\n"
        "            return 0\n"
    )
    assert dict(functions(source)) == {"1 plain": 1, "2 joined": 6, "6 tries": 3}


@pytest.mark.parametrize("part", PARTS)
def test_no_function_is_too_complex(part):
    files = [SOURCE / part] if part.endswith(".py") else sorted((SOURCE / part).rglob("*.py"))
    assert files, part
    found = [
        f"{path.relative_to(SOURCE)}:{place} has {n}"
        for path in files
        if path.relative_to(SOURCE).as_posix() not in ABOVE
        for place, n in functions(path.read_text(encoding="utf-8"))
        if n > MOST
    ]
    assert not found, f"more than {MOST}; split along the ideas in it: {', '.join(found)}"
