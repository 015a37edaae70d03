"""Hooks of pytest: in an environment of the core alone, what needs research, people or their packages is left out.

A test file whose imports at module level, those of its helper modules included, need a package that is not installed is
not collected. A test that needs one only inside itself, or inside a function or fixture that it names, is skipped.
Where all packages are installed, nothing is read and nothing left out.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
RESEARCH = ("torch", "transformers", "accelerate", "polars", "nltk", "sacrebleu")
PEOPLE = ("polars", "sqlalchemy", "alembic", "dask", "distributed", "sklearn", "scipy", "fastapi")
SERVE = ("fastapi", "starlette", "anyio", "uvicorn", "prometheus_client")
ROOMS = {"empatheia_research": RESEARCH, "empatheia_people": PEOPLE, "empatheia.serve": SERVE}
"""Part of the distribution to what its extra brings."""
OPTIONAL = frozenset({*RESEARCH, *PEOPLE, *SERVE, "safetensors.torch", "onnx", "openai", "websockets", "mcp", "httpx2"})
"""Nothing else counts as not installed: a helper module that is misspelt is an error."""
_left_out: dict[Path, str] = {}


@functools.cache
def absent(module: str) -> str:
    """The package that a module needs and that is not installed; empty if none is.

    >>> absent("json"), absent("empatheia.records.dialogue")
    ('', '')
    """
    if module == "safetensors.torch":
        return absent("torch")
    needed = [package for room, brings in ROOMS.items() if f"{module}.".startswith(f"{room}.") for package in brings]
    top = module.partition(".")[0]
    needed += [top] if top in OPTIONAL else []
    return next((package for package in needed if importlib.util.find_spec(package) is None), "")


@functools.cache
def needs_of_file(path: Path) -> str:
    """What a test file or a helper module needs to be imported and is not installed; empty if nothing."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return next(filter(None, (_lack(module, path) for module in _imports_at_top(tree.body))), "")


def _lack(module: str, importer: Path) -> str:
    helper = _helper(module, importer)
    return needs_of_file(helper) if helper else absent(module)


def _helper(module: str, importer: Path) -> Path | None:
    """The file of a helper module: beside the test, or anywhere below tests/, as pytest's path of modules has it."""
    beside = importer.parent / f"{module}.py"
    file = beside if beside.is_file() else _helpers().get(module)
    return file if file != importer else None


@functools.cache
def _helpers() -> dict[str, Path]:
    return {file.stem: file for file in TESTS.rglob("*.py") if not file.name.startswith(("test_", "conftest"))}


def _imports_at_top(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from _targets(node)
        elif isinstance(node, ast.With | ast.ClassDef):
            yield from _imports_at_top(node.body)


def _targets(node: ast.Import | ast.ImportFrom) -> list[str]:
    """``from empatheia import serve`` names the module empatheia.serve."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    base = node.module or ""
    return [base, *(f"{base}.{alias.name}" for alias in node.names if f"{base}.{alias.name}" in ROOMS)]


@functools.cache
def needs_of_functions(path: Path) -> dict[str, str]:
    """Functions, classes and fixtures that a test file can name to what one needs that is not installed."""
    functions: dict[str, tuple[Path, ast.stmt]] = {}
    for file in _readable_from(path):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                functions[node.name] = (file, node)
    needs = {name: lack for name, (file, node) in functions.items() if (lack := _need_inside(node, file))}
    named = {name: _names(node) for name, (_, node) in functions.items()}
    grown = True
    while grown:
        more = {name: needs[by] for name, names in named.items() for by in names & needs.keys() if name not in needs}
        grown = bool(more)
        needs |= more
    return needs


def _readable_from(path: Path) -> list[Path]:
    """The conftest files above a test file, its helper modules and itself; the nearest last, so that its names win."""
    above = [folder / "conftest.py" for folder in reversed(path.parents) if TESTS in (folder, *folder.parents)]
    files = [file for file in above if file.is_file()]
    imported = [module for file in (*files, path) for module in _imports_at_top(ast.parse(file.read_text()).body)]
    return [*(helper for module in imported if (helper := _helper(module, path))), *files, path]


def _need_inside(function: ast.AST, file: Path) -> str:
    imports = [node for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom)]
    return next(filter(None, (_lack(module, file) for node in imports for module in _targets(node))), "")


def _names(function: ast.AST) -> set[str]:
    """What a function calls or reads and does not set itself; of a test and a fixture also what it asks pytest for."""
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    read = {node.id for node in names if isinstance(node.ctx, ast.Load)}
    own = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    arguments = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
    return (read - own) | arguments if _pytest_calls(function) else read - own - arguments


def _pytest_calls(function: ast.AST) -> bool:
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    return function.name.startswith("test") or any("fixture" in ast.unparse(one) for one in function.decorator_list)


@functools.cache
def everything_is_installed() -> bool:
    return not any(map(absent, (*ROOMS, *OPTIONAL)))


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """A test file that cannot be imported, or a folder whose conftest.py cannot, is left out."""
    file = collection_path / "conftest.py" if collection_path.is_dir() else collection_path
    if everything_is_installed() or file.suffix != ".py" or not file.is_file() or file == TESTS / "conftest.py":
        return None
    if lack := needs_of_file(file):
        _left_out[collection_path] = lack
    return True if lack else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items if not everything_is_installed() else ():
        needs = needs_of_functions(item.path)
        asked = [getattr(item, "originalname", item.name), *getattr(item, "fixturenames", ())]
        if lack := next((needs[name] for name in asked if name in needs), ""):
            item.add_marker(pytest.mark.skip(reason=f"needs {lack}, which is not installed"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _left_out:
        lacks = ", ".join(sorted(set(_left_out.values())))
        terminalreporter.write_line(f"{len(_left_out)} files and folders left out: not installed is {lacks}")
