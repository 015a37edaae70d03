"""Reads the imports of the three packages and holds the orders of docs/design/0001-house.md.

The core (``empatheia``) imports neither of the others; research imports the core; people imports both, at module level
only what needs no torch.
"""

from __future__ import annotations

import ast
import graphlib
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
HOUSE = ROOT / "docs" / "design" / "0001-house.md"

CORE, RESEARCH, PEOPLE = "empatheia", "empatheia_research", "empatheia_people"
PACKAGES = (CORE, RESEARCH, PEOPLE)
"""Lowest first: none imports one behind it."""
BLOCKED = ("torch", "transformers", "accelerate", "polars", "nltk", "sklearn", "scipy")
"""What no module of the core imports when it loads, and no default reply at all."""
FORBIDDEN_NAMES = {"utils", "util", "common", "helpers", "helper", "misc", "base2"}
NEVER = {  # layer of research: layers it must not import although the order would allow it
    "layers": {"corpora", "text", "recipes"},
    "responders": {"understanding", "decoding"},
}
LAZY_CIRCLES = {"care"}
"""Packages in which imports inside functions still close circles; none may be added."""
_NAMED = re.compile(r"empatheia(?:_research|_people)?(\.\w+)+:\w+")


@dataclass(frozen=True)
class Import:
    """One import statement's target.

    Attributes:
        module: Where it stands, e.g. ``empatheia_research.layers.gates``.
        target: What it imports, down to the module, e.g. ``empatheia.errors`` or ``torch.nn``.
        line: Line number.
        is_lazy: It does not run when the module loads: it stands inside a function or under TYPE_CHECKING.
        is_name: It is a name in a registry, ``module:thing``, which may well name what imports the registry.
    """

    module: str
    target: str
    line: int
    is_lazy: bool
    is_name: bool = False

    def __str__(self) -> str:
        return f"{self.module}:{self.line} imports {self.target}"


def modules_of(source: Path) -> dict[str, Path]:
    """Dotted name to file for all modules of the packages."""
    found = {}
    for path in sorted(path for package in PACKAGES for path in (source / package).rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(source: Path) -> list[Import]:
    """Every import statement of the packages, under TYPE_CHECKING and inside functions too, and names in registries."""
    modules = modules_of(source)
    return [entry for module, path in modules.items() for entry in _imports_of_file(module, path, modules)]


def _imports_of_file(module: str, path: Path, modules: dict[str, Path]) -> list[Import]:
    found = []

    def visit(node: ast.AST, is_lazy: bool) -> None:
        if isinstance(node, ast.Import):
            found.extend(Import(module, alias.name, node.lineno, is_lazy) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, module, path)
            for alias in node.names:
                submodule = f"{base}.{alias.name}"
                is_version = submodule == "empatheia.__version__"
                if not is_version:
                    found.append(Import(module, submodule if submodule in modules else base, node.lineno, is_lazy))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _NAMED.fullmatch(node.value):
            found.append(Import(module, node.value.partition(":")[0], node.lineno, True, is_name=True))
        inside = is_lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or _is_typing(node)
        for child in ast.iter_child_nodes(node):
            visit(child, inside)

    visit(ast.parse(path.read_text(encoding="utf-8")), False)
    return found


def _is_typing(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def _absolute(node: ast.ImportFrom, module: str, path: Path) -> str:
    if not node.level:
        return node.module or ""
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    parts = package[: len(package) - node.level + 1]
    return ".".join([*parts, node.module] if node.module else parts)


def package_of(module: str) -> str:
    """``empatheia_research.layers.gates`` is of ``empatheia_research``."""
    return module.partition(".")[0]


def layer_of(module: str) -> str:
    """``empatheia_research.layers.gates`` is of ``layers``; a package's own ``__init__`` stands above all."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] != "__main__" else parts[0]


def upward_imports(imports: list[Import], order: list[str], package: str = CORE) -> list[str]:
    """Imports within a package that go up its order; its own ``__init__`` stands above all."""
    rank = {layer: place for place, layer in enumerate([*order, package])}
    own = [entry for entry in imports if package_of(entry.target) == package_of(entry.module) == package]
    return [str(entry) for entry in own if rank[layer_of(entry.target)] > rank[layer_of(entry.module)]]


def outward_imports(imports: list[Import]) -> list[str]:
    """Imports of a package that stands behind one's own; a name in a registry is one too."""
    rank = {package: place for place, package in enumerate(PACKAGES)}
    own = [entry for entry in imports if package_of(entry.target) in rank]
    return [str(entry) for entry in own if rank[package_of(entry.target)] > rank[package_of(entry.module)]]


def cycle_of(imports: list[Import]) -> list[str]:
    """A cycle among all imports, those inside functions and under TYPE_CHECKING too; empty if there is none."""
    graph: dict[str, set[str]] = {}
    for entry in imports:
        is_own = entry.target.partition(".")[0] in PACKAGES and "." in entry.target and not entry.is_name
        is_counted = not entry.is_lazy or layer_of(entry.module) not in LAZY_CIRCLES
        if is_own and is_counted and entry.target != entry.module:
            graph.setdefault(entry.module, set()).add(entry.target)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def house_orders() -> dict[str, list[str]]:
    """The chain of each package as the house's page prints it."""
    found = re.findall(r"^`(empatheia\w*)`: ((?:`\w+` < )+`\w+`)$", HOUSE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [package for package, _ in found] == list(PACKAGES), f"{HOUSE} no longer prints `package`: `a` < `b` < ..."
    return {package: re.findall(r"`(\w+)`", chain) for package, chain in found}


@pytest.fixture(scope="module")
def imports() -> list[Import]:
    return imports_of(SOURCE)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_belongs_to_a_layer_of_the_house(package: str):
    layers = {layer_of(module) for module in modules_of(SOURCE) if package_of(module) == package} - {package}
    assert layers == set(house_orders()[package]), "write the new layer's place into docs/design/0001-house.md"


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_go_down_only(package: str, imports: list[Import]):
    assert upward_imports(imports, house_orders()[package], package) == []


def test_no_package_imports_one_behind_it(imports: list[Import]):
    assert outward_imports(imports) == []


def test_the_check_sees_an_outward_import(tmp_path: Path):
    source = _package(
        tmp_path, a="def f():\n    import empatheia_research.b", b="NAMES = {'x': 'empatheia_people.c:x'}"
    )
    assert len(outward_imports(imports_of(source))) == 2


def test_no_import_cycle(imports: list[Import]):
    assert cycle_of(imports) == []


@pytest.mark.parametrize("layer", sorted(NEVER))
def test_layer_keeps_out_of(layer: str, imports: list[Import]):
    own = [
        e for e in imports if package_of(e.module) == package_of(e.target) == RESEARCH and layer_of(e.module) == layer
    ]
    assert own and [str(entry) for entry in own if layer_of(entry.target) in NEVER[layer]] == []


_BLOCKING = f"""
import importlib, pkgutil, sys


class Blocked:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {(*BLOCKED, RESEARCH, PEOPLE)!r}:
            raise ModuleNotFoundError(f"{{name}} is blocked", name=name)


sys.meta_path.insert(0, Blocked)
"""
_EVERY_MODULE = """
import empatheia

failed = []
for module in pkgutil.walk_packages(empatheia.__path__, "empatheia."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            failed.append(f"{module.name}: {error}")
print(*failed, sep="\\n")
"""
_A_REPLY = """
import empatheia

dialogue = empatheia.Dialogue.of("My dog ran away.", "Oh no. When?", "Last night. I am so worried.")
assert empatheia.analyze(dialogue).newest.emotion and empatheia.respond(dialogue).text
print(*sorted(set({blocked!r}) & set(sys.modules)))
"""


def _fresh_python(code: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_the_core_imports_without_what_is_heavy():
    done = _fresh_python(_BLOCKING + _EVERY_MODULE)
    assert done.returncode == 0 and done.stdout.split() == [], done.stderr


def test_a_default_reply_needs_nothing_heavy():
    done = _fresh_python(_BLOCKING + _A_REPLY.format(blocked=BLOCKED))
    assert done.returncode == 0 and done.stdout.split() == [], done.stderr


def test_what_is_imported_is_a_declared_dependency(imports: list[Import]):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    core = {_normal(line) for line in project["dependencies"]}
    named = project["optional-dependencies"]
    extras = {name: {_normal(line) for line in lines} for name, lines in named.items()}
    for name, lines in named.items():  # people is empatheia[serve] and more
        extras[name] |= {one for line in lines for other in _extras_within(line) for one in extras[other]}
    at_top = {CORE: core, RESEARCH: core | extras["research"], PEOPLE: core | extras["research"] | extras["people"]}
    homes = packages_distributions()
    undeclared = []
    for entry in imports:
        top = package_of(entry.target)
        if top in PACKAGES or top in sys.stdlib_module_names:
            continue
        allowed = at_top[package_of(entry.module)]
        if package_of(entry.module) == CORE and layer_of(entry.module) == "serve":
            allowed = allowed | extras["serve"] | extras["mcp"]
        if entry.is_lazy:
            allowed = core.union(*extras.values())
        if not {_normal(name) for name in homes.get(top, [top])} & allowed:
            undeclared.append(str(entry))
    assert undeclared == []


def _extras_within(requirement: str) -> list[str]:
    found = re.match(r"empatheia\[([\w,]+)\]", requirement)
    return found[1].split(",") if found else []


def _normal(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement)[0].lower().replace("_", "-")


def foreign_loads(source: Path) -> list[str]:
    """Calls that read or build something of transformers without ``empatheia_research.pretrained``."""
    found = []
    for module, path in modules_of(source).items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            whose = ast.unparse(node.func.value)
            is_ours = whose in ("super()", "DialogueTokenizer") or module == "empatheia_research.pretrained"
            if node.func.attr in ("from_pretrained", "from_config", "get_config_dict") and not is_ours:
                found.append(f"{module}:{node.lineno} calls {whose}.{node.func.attr}")
    return found


PARSERS = {"json": {"load", "loads"}, "csv": {"reader", "DictReader"}, "gzip": {"open", "decompress"}, "np": {"load"}}


def foreign_reads(source: Path) -> list[str]:
    """Calls that parse JSON, CSV, gzip or arrays without ``empatheia.reading``."""
    found = []
    for module, path in modules_of(source).items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            whose = ast.unparse(node.func.value)
            if node.func.attr in PARSERS.get(whose, ()) and module != "empatheia.reading":
                found.append(f"{module}:{node.lineno} calls {whose}.{node.func.attr}")
    return found


def test_one_door_for_the_files_of_others():
    """Any other call would read without bounds of size, depth and digits, and raise errors of its own."""
    assert foreign_reads(SOURCE) == []


def test_the_check_sees_another_reader(tmp_path: Path):
    texts = {"a": "json.loads('1')", "b": "csv.DictReader(x)", "c": "json.dumps(1)", "reading": "json.loads('1')"}
    assert [line.split(":")[0] for line in foreign_reads(_package(tmp_path, **texts))] == ["empatheia.a", "empatheia.b"]


def raw_prints(source: Path) -> list[str]:
    """Places of the command line that print without ``empatheia.cli.output``, which takes escapes out."""
    found = []
    for module, path in modules_of(source).items():
        if layer_of(module) != "cli" or module == "empatheia.cli.output":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if called in ("print", "typer.echo", "typer.secho", "sys.stdout.write", "sys.stderr.write"):
                found.append(f"{module}:{node.lineno} calls {called}")  # pyright: ignore
    return found


def test_one_door_to_the_terminal():
    assert raw_prints(SOURCE) == []


def test_the_check_sees_a_raw_print(tmp_path: Path):
    texts = {"cli__a": "typer.echo('x')", "cli__b": "def f():\n    sys.stdout.write(x)", "cli__output": "print(1)"}
    found = [line.split(":")[0] for line in raw_prints(_package(tmp_path, **texts))]
    assert found == ["empatheia.cli.a", "empatheia.cli.b"]


def test_one_door_for_the_models_of_others():
    """Any other call would run code of a folder, unpickle, or ask on stdin."""
    assert foreign_loads(SOURCE) == []


def test_the_check_sees_another_door(tmp_path: Path):
    texts = {"a": "AutoModel.from_pretrained('x')", "b": "kind.from_config(c)", "c": "super().from_pretrained(1)"}
    assert [line.split(":")[0] for line in foreign_loads(_package(tmp_path, **texts))] == ["empatheia.a", "empatheia.b"]


def test_no_file_without_a_subject():
    assert [str(path) for path in modules_of(SOURCE).values() if path.stem in FORBIDDEN_NAMES] == []


def test_folders_are_at_most_two_deep():
    assert [module for module in modules_of(SOURCE) if module.count(".") > 3] == []


def _package(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / "empatheia" / Path(*name.split("__")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "statement",
    [
        "import empatheia.b",
        "from empatheia import b",
        "from empatheia.b import thing",
        "from . import b",
        "from .b import thing",
        "def f():\n    from empatheia.b import thing",
        "NAMES = {'thing': 'empatheia.b:thing'}",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from empatheia.b import thing",
    ],
)
def test_the_check_sees_an_upward_import(statement: str, tmp_path: Path):
    source = _package(tmp_path, a=statement, b="")
    assert upward_imports(imports_of(source), ["b", "a"]) == []
    (found,) = upward_imports(imports_of(source), ["a", "b"])
    assert found.startswith("empatheia.a:") and "empatheia.b" in found


@pytest.mark.parametrize(
    "statement",
    [
        "import empatheia.a.x",
        "def f():\n    import empatheia.a.x",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import empatheia.a.x",
    ],
)
def test_the_check_sees_a_cycle_and_lets_names_in_registries_pass(statement: str, tmp_path: Path):
    source = _package(tmp_path, a__x="from empatheia.a.y import z", a__y="NAMES = {'x': 'empatheia.a.x:z'}")
    assert cycle_of(imports_of(source)) == []
    _package(tmp_path, a__y=statement)
    assert set(cycle_of(imports_of(source))) == {"empatheia.a.x", "empatheia.a.y"}
