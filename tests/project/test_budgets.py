"""What the house may cost at most: lines, sizes, imports inside functions; ``budgets.yaml`` has it, and only falls."""

from __future__ import annotations

import ast
import io
import statistics
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from test_complexity import functions

SOURCE = Path(__file__).resolve().parents[2] / "src"
BUDGETS = yaml.safe_load(Path(__file__).with_name("budgets.yaml").read_text(encoding="utf-8"))
_SILENT = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(source: str) -> int:
    """Lines of a module that hold code: no comments, no blank lines, no docstrings."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | _FUNCTIONS[0] | _FUNCTIONS[1]) and ast.get_docstring(node):
            docstrings.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _SILENT:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings)


def modules(package: str = "") -> dict[str, str]:
    """Path below ``src`` to the text of each module."""
    found = (path for path in sorted(SOURCE.rglob("*.py")) if path.relative_to(SOURCE).parts[0].startswith("empatheia"))
    return {
        path.relative_to(SOURCE).as_posix(): path.read_text(encoding="utf-8")
        for path in found
        if not package or path.relative_to(SOURCE).parts[0] == package
    }


def within(source: str) -> Iterator[ast.AST]:
    """All nodes of a module."""
    yield from ast.walk(ast.parse(source))


def n_imports_in_functions(source: str) -> int:
    """Import statements that run when a function is called."""
    inside: set[ast.AST] = set()
    for node in within(source):
        if isinstance(node, _FUNCTIONS):
            inside.update(one for one in ast.walk(node) if isinstance(one, ast.Import | ast.ImportFrom))
    return len(inside)


def n_any_in_public(source: str) -> int:
    """Public functions and methods of public classes whose signature says ``Any``."""
    tree = ast.parse(source)
    homes = [tree, *(node for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_"))]
    public = [f for home in homes for f in home.body if isinstance(f, _FUNCTIONS) and not f.name.startswith("_")]
    return sum(
        any("Any" in ast.unparse(one) for one in (*(a.annotation for a in _arguments(f)), f.returns) if one)
        for f in public
    )


def _arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    given = function.args
    return [one for one in (*given.posonlyargs, *given.args, *given.kwonlyargs) if one.arg not in ("self", "cls")]


def over(kind: str) -> dict[str, int]:
    """What is larger than the budget of its kind: its place to its size."""
    found: dict[str, int] = {}
    for place, source in modules().items():
        if kind == "complexity":
            found |= {f"{place}:{name}": n for name, n in functions(source)}
            continue
        for node in within(source):
            if kind == "parameters" and isinstance(node, _FUNCTIONS):
                found[f"{place}:{node.name}"] = len(_arguments(node))
            elif isinstance(node, ast.ClassDef) and kind == "methods":
                found[f"{place}:{node.name}"] = sum(isinstance(one, _FUNCTIONS) for one in node.body)
            elif isinstance(node, ast.ClassDef) and kind == "class_lines":
                found[f"{place}:{node.name}"] = (node.end_lineno or 0) - node.lineno + 1
    return {place: n for place, n in found.items() if n > BUDGETS["each"][kind]}


@pytest.mark.parametrize("package", BUDGETS["code_lines"])
def test_the_rooms_do_not_grow(package: str):
    total = sum(code_lines(source) for source in modules("" if package == "all" else package).values())
    assert total <= BUDGETS["code_lines"][package]


def test_modules_stay_small():
    sizes = [len(source.splitlines()) for source in modules().values() if code_lines(source)]
    assert statistics.median(sizes) <= BUDGETS["module_median"]


@pytest.mark.parametrize("kind", BUDGETS["each"])
def test_nothing_single_is_too_large(kind: str):
    assert len(over(kind)) <= BUDGETS["above"][kind], over(kind)


def test_imports_in_functions_and_any_in_public_do_not_spread():
    assert sum(map(n_imports_in_functions, modules().values())) <= BUDGETS["imports_in_functions"]
    assert sum(map(n_any_in_public, modules().values())) <= BUDGETS["any_in_public"]


def test_the_counting_counts():
    head = '"""Doc."""\n\nimport os  # why\n\n\ndef f(a: "Any", b):\n'
    source = head + '    """Doc."""\n    import sys\n\n    return (\n        sys\n    )\n'
    assert code_lines(source) == 6
    assert n_imports_in_functions(source) == 1 and n_any_in_public(source) == 1
