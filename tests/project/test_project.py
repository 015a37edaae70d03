"""The project itself: what is exported, documented, promised and shipped agrees."""

from __future__ import annotations

import importlib
import itertools
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import types
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

import empatheia
import fresh
from empatheia.cli import listed_commands, load_command, main

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
HOUSE = ROOT / "docs" / "design" / "0001-house.md"
PAGES = sorted([README, ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*/README.md")])
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
HEAVY = ("torch", "transformers", "polars", "numpy", "nltk", "sacrebleu", "tokenizers")
MACHINE_PLACES = re.compile(r"(?<![\w.])/(?:wor[k]|roo[t]|hom[e]/\w+|User[s]/\w+|tm[p]/\w+)/")
REGISTRY_ADDRESSES = re.compile(r"py[p]i\.org|pythonhosted\.or[g]|pytorch\.or[g]/whl|npm[j]s\.|deb\.debia[n]\.org")
PLACEHOLDERS = re.compile(r"\{\{|\}\}|TOD[O]|TB[D]\b|XX[X]|More Information Neede[d]|lorem ipsu[m]", re.IGNORECASE)


def page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, *languages: str) -> list[str]:
    found = FENCE.findall(page.read_text(encoding="utf-8"))
    return [text for language, text in found if language in languages]


@cache
def project_files() -> list[Path]:
    """Files under version control or about to be; without git, all but what is built or installed."""
    if (ROOT / ".git").exists() and shutil.which("git"):
        command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, capture_output=True, text=True, check=False)
        if listed.returncode == 0:
            return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]
    built = re.compile(r"build|dist|runs|__pycache__|.*\.egg-info|\.(?!ci$|gitignore$|pre-commit-config.yaml$).*")
    return [
        path
        for path in ROOT.rglob("*")
        if path.is_file() and not any(built.fullmatch(part) for part in path.relative_to(ROOT).parts)
    ]


def text_of(path: Path) -> str | None:
    """Contents of a text file; None for a binary one."""
    raw = path.read_bytes()
    return None if b"\0" in raw[:4096] else raw.decode("utf-8", "replace")


def run_python(code: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)


# -- imports and help ----------------------------------------------------------------------------------------


def test_importing_the_package_imports_nothing_heavy():
    done = run_python(f"import sys, empatheia; print([m for m in {HEAVY} if m in sys.modules])")
    assert done.stdout.strip() == "[]", done.stderr


def test_help_of_every_command_takes_no_torch():
    code = f"""
import contextlib, io, sys
from empatheia.cli import main, listed_commands
for words in [[], *([name] for name in listed_commands())]:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            main([*words, "--help"])
        except SystemExit as end:
            assert not end.code, (words, end.code)
    assert "Usage" in printed.getvalue(), words
    if not words:
        print([m for m in {HEAVY} if m in sys.modules])
print([m for m in ("torch", "transformers") if m in sys.modules])
"""
    done = run_python(code)
    assert done.stdout.split("\n")[:2] == ["[]", "[]"], done.stdout + done.stderr


# -- documentation -------------------------------------------------------------------------------------------


def test_exported_names_are_the_documented_names():
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^## `empatheia\.(\w+)`", page, re.MULTILINE))
    assert documented == set(empatheia.__all__)
    for name in empatheia.__all__:
        assert getattr(empatheia, name) is not None


def test_command_line_page_is_current():
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert "\\b" not in page  # a paragraph mark that was printed instead of obeyed
    assert [name for name in listed_commands() if f"\n## {name}\n" not in page] == []
    generator = [sys.executable, str(ROOT / "docs" / "generate_cli.py"), "--check"]
    done = subprocess.run(generator, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_the_tables_of_systems_are_current():
    """It shows what the records hold, so that no number is typed by hand."""
    generator = [sys.executable, str(ROOT / "docs" / "generate_readme.py"), "--check"]
    done = subprocess.run(generator, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_the_page_of_reproductions_is_current_and_says_why_of_every_number_that_is_missed():
    """Written from the records and the queue, so that a new record cannot leave an old number on the page."""
    code = "import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"
    done = fresh.run(["-c", code, str(ROOT / "docs" / "generate_reproduction.py"), "--check"])
    assert done.returncode == 0, done.stderr
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    table = page.partition("<!-- differences:")[2].partition("<!-- /differences -->")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]
    assert rows and all(len(cells) == 3 and cells[2] for cells in rows)
    missed = [cells for cells in rows if ", missed)" in cells[0]]
    assert missed and not [cells for cells in missed if cells[1] == "not looked into"]


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_dotted_name_in_the_docs_exists(page: Path):
    missing = []
    names = set(re.findall(r"`(empatheia(?:\.\w+)+)(?:\(\))?`", page.read_text(encoding="utf-8")))
    for name in names - _groups_of_entry_points() - {"empatheia.json"}:
        try:
            _resolve(name)
        except (AttributeError, ImportError) as error:
            missing.append(f"{name}: {error}")
    assert missing == []


@cache
def _groups_of_entry_points() -> set[str]:
    """Those of the command line and of each registry, ``empatheia.KIND``."""
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    kinds = {kind for text in sources for kind in re.findall(r"Registry\(\s*\"(\w+)\"", text)}
    return {f"empatheia.{kind}" for kind in kinds | {"commands"}}


def _resolve(name: str) -> Any:
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            target: Any = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError as error:
            if error.name and not name.startswith(error.name):
                raise
            continue
        for attribute in parts[end:]:
            fields = {**getattr(target, "__dataclass_fields__", {}), **getattr(target, "model_fields", {})}
            target = fields[attribute] if attribute in fields else getattr(target, attribute)
        return target
    raise ImportError(f"no module {parts[0]}")


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_links_between_pages_lead_somewhere(page: Path):
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", FENCE.sub("", page.read_text(encoding="utf-8")))
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "sh", "console")], ids=page_name)
def test_commands_in_the_docs_exist(page: Path):
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for block in blocks(page, "sh", "console"):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True)
            if words[:1] == ["make"]:
                assert {word for word in words[1:] if "=" not in word} <= targets, line
            for place in (place for place, word in enumerate(words) if word == "empatheia"):
                before = words[place - 1] if place else "|"
                if before in ("|", "&&", ";"):
                    _check_command(words[place + 1 :], line)


def _check_command(words: list[str], line: str) -> None:
    ends = [words.index(word) for word in ("|", ">", "&&", ";") if word in words]
    words = words[: min(ends)] if ends else words
    if not words or words[0].startswith("-"):
        return
    assert words[0] in listed_commands(), line
    command = load_command(words[0])
    if (children := getattr(command, "commands", None)) is not None and len(words) > 1:
        assert words[1] in children, line
        command = children[words[1]]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    used = {word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    assert used <= known | {"--help", "-h"}, line


WITH_A_SERVER = {"docs/howto/serve.md"}  # run by tests/serve/test_serve_docs.py


@pytest.mark.parametrize(
    "page", [p for p in PAGES if blocks(p, "python") and page_name(p) not in WITH_A_SERVER], ids=page_name
)
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest):
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType("documentation_page")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for number, block in enumerate(blocks(page, "python"), 1):
        if "minilm" in block:
            request.getfixturevalue("sentence_encoder")
        exec(compile(block, f"{page.name}, python block {number}", "exec"), module.__dict__)


def test_every_recipe_is_named_in_the_docs():
    words = set(re.findall(r"\w+", "\n".join(page.read_text(encoding="utf-8") for page in PAGES)))
    assert [str(path) for path in (ROOT / "recipes").glob("*/*.yaml") if path.stem not in words] == []


def test_every_system_is_in_the_readme_and_the_docs():
    from empatheia_research.voices.systems import known_systems

    readme, page, home = (
        (ROOT / place).read_text(encoding="utf-8") for place in ("README.md", "docs/systems.md", "docs/index.md")
    )
    concepts = set(re.findall(r"concepts/\w+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    for system in known_systems():
        if system.name != "mk_edg":  # KEMP's earlier name
            row, full = (
                next(line for line in text.splitlines() if line.startswith(f"| [`{system.name}`]"))
                for text in (readme, page)
            )
            assert f"(src/{system.file})" in row and f"/src/{system.file})" in full and "/recipes/" in full
            assert set(re.findall(r"concepts/\w+\.md", row + full)) <= concepts
            assert all(place in home for place in re.findall(r"concepts/\w+\.md", row))


def test_readme_is_short():
    """At most 700 words, counted over the whole file, tables and code blocks too; signs alone are not words."""
    words = [word for word in README.read_text(encoding="utf-8").split() if any(map(str.isalnum, word))]
    assert len(words) <= 700


@pytest.mark.parametrize("package", ["empatheia", "empatheia_research", "empatheia_people"])
def test_the_tree_of_the_house_is_the_tree(package: str):
    (tree,) = [block for block in blocks(HOUSE, "text") if f"src/{package}/" in block]
    below = itertools.takewhile(lambda line: line.startswith("  "), tree.partition(f"src/{package}/\n")[2].splitlines())
    listed = {line.split()[0].rstrip("/") for line in below}
    folder = ROOT / "src" / package
    there = {path.name for path in folder.iterdir() if path.suffix == ".py" or any(path.rglob("*.*"))}
    assert listed == there - {"__init__.py", "__main__.py", "__pycache__"}


@pytest.mark.usefixtures("sentence_encoder")
def test_readme_shows_what_the_demo_prints(capsys: pytest.CaptureFixture):
    _, marker, after = README.read_text(encoding="utf-8").partition("<!-- demo output -->")
    assert marker
    shown = FENCE.search(after)
    assert shown is not None
    with pytest.raises(SystemExit) as end:
        main(["demo"])
    assert not end.value.code
    assert _without_numbers(shown.group(2)) == _without_numbers(capsys.readouterr().out)


def _without_numbers(text: str) -> list[str]:
    """Its words without bars and numbers, which may differ in the last digit between processors."""
    return re.sub(r"[#.█░]{2,}|[\d.,%]+", " ", text).split()


def test_variant_table_is_the_code():
    config = _resolve("empatheia_research.responders.cause_gated.CauseGatedConfig")
    page = (ROOT / "docs" / "concepts" / "gao2021.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `([^`]+)` \| `([^`]+)` \|", page, re.MULTILINE)
    for column, variant in ((1, "paper"), (2, "repo")):
        written = {row[0]: row[column] for row in rows}
        assert written == {name: str(value) for name, value in config.variant_fields(variant).items()}


# -- what is shipped -----------------------------------------------------------------------------------------


def test_changelog_has_a_place_for_what_comes_next():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## \[Unreleased\]", text, re.MULTILINE)


def test_version_is_the_same_everywhere():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert empatheia.__version__ == version
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"] == version


def test_constraints_pin_what_is_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    extras = project["optional-dependencies"]
    from packaging.requirements import Requirement

    for text in [*project["dependencies"], *extras["dev"], *extras["research"], *extras["encoder"], *extras["plots"]]:
        requirement = Requirement(text)
        if requirement.name == "empatheia":  # one extra within another
            continue
        assert requirement.specifier.contains(pins[requirement.name.lower().replace("_", "-")]), text
    assert pins["torch"] == "2.13.0"


def test_no_address_of_a_machine_or_a_registry():
    found = []
    for path in project_files():
        for number, line in enumerate((text_of(path) or "").splitlines(), 1):
            if MACHINE_PLACES.search(line) or REGISTRY_ADDRESSES.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    assert found == []


def test_no_large_file_and_a_small_bundled_model():
    sizes = {path: path.stat().st_size for path in project_files()}
    package = ROOT / "src" / "empatheia"
    bundled = (ROOT / "models", package / "perceive" / "data")
    limits = dict(zip(bundled, (30_000_000, 43_000_000), strict=True))
    for folder, limit in limits.items():
        assert sum(size for path, size in sizes.items() if folder in path.parents) <= limit
    assert [path for path, size in sizes.items() if size > 6_000_000 and not set(bundled) & set(path.parents)] == []


@pytest.mark.parametrize("size", ["smoke", "cpu", "full"])
def test_every_recipe_loads(size: str):
    from empatheia_research.recipes.data import WITHOUT_TRAINING
    from empatheia_research.recipes.recipe import load_recipe, recipe_files

    paths = recipe_files(ROOT / "recipes")
    assert paths
    for path in paths:
        recipe = load_recipe(path, size=size)
        assert recipe.stages or recipe.start or recipe.task in WITHOUT_TRAINING, path
        assert recipe.name == str(path.relative_to(ROOT / "recipes").with_suffix("")), path


def test_bundled_model_card_is_complete():
    cards = sorted((ROOT / "models").rglob("*.md"))
    assert cards
    for card in cards:
        text = card.read_text(encoding="utf-8")
        assert not PLACEHOLDERS.search(text), card
        assert "CC BY-NC 4.0" in text and "EmpatheticDialogues" in text
