"""``make bounds``: what runs at both ends of the ranges that pyproject.toml allows; the page is results/bounds.md.

    python tests/project/bounds.py torch==2.13.0 [FOLDER [END ...]]

Two environments are made, with the lowest allowed version of each direct dependency and with the newest of everything.
In each the quick tests run, every responder generates, and ``empatheia doctor`` uses every part.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from environments import ROOT, clean_environment, make_environment, version_in

ENDS = {"lowest": "lowest-direct", "newest": "highest"}
LEFT_OUT = {"docs"}
TESTS = (
    *(f"tests/{name}" for name in ("text", "layers", "side_inputs", "metrics", "perceive", "project")),
    *("tests/responders/test_as_transformers_models.py", "tests/cli/test_doctor.py", "tests/test_weights.py"),
)
LEFT_TO_CI = (
    "--ignore=tests/project/test_bounds.py",  # reads the page that is being made
    "--deselect=tests/project/test_project.py::test_command_line_page_is_current",  # in the words of the pinned typer
)
GENERATE = Path(__file__).with_name("generate_all.py")
PAGE = ROOT / "results" / "bounds.md"


def direct() -> list[str]:
    """Names of the packages that pyproject.toml names for users, in its order."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {name: needs for name, needs in project["optional-dependencies"].items() if name not in ("dev", "docs")}
    needs = [*project["dependencies"], *(need for needs in extras.values() for need in needs)]
    names = dict.fromkeys(re.match(r"[\w.-]+", need)[0] for need in needs)
    return [name for name in names if name != "empatheia"]


def install(python: Path, resolution: str) -> None:
    """The package with all its extras, as low or as high as is allowed; torch stays as it is."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = ",".join(name for name in project["optional-dependencies"] if name not in LEFT_OUT)
    pinned = python.parents[1] / "torch.txt"
    pinned.write_text(f"torch=={version_in(python, 'torch')}\n")
    subprocess.run(
        [str(python), "-m", "uv", "pip", "install", "-q", "--python", str(python), "--resolution", resolution,
         "-c", str(pinned), "-e", f"{ROOT}[{extras}]"],
        check=True,
    )  # fmt: skip


def run(python: Path, *words: str) -> tuple[int, str]:
    """Exit code and what was printed, in the checkout."""
    env = clean_environment() | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "EMPATHEIA_OFFLINE": "1"}
    done = subprocess.run([str(python), *words], cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    print(done.stdout[-3000:], done.stderr[-1500:] if done.returncode else "", flush=True)
    return done.returncode, done.stdout


def tried(python: Path) -> dict[str, str]:
    """What ran in an environment, and what came of it."""
    code, said = run(python, "-m", "pytest", "-m", "not slow", "-p", "no:cacheprovider", *LEFT_TO_CI, *TESTS)
    counts = re.findall(r"\d+ (?:passed|failed|errors?|skipped)", said)
    generated, lines = run(python, str(GENERATE))
    works, report = run(python, "-c", "from empatheia.cli import main; main()", "doctor", "--json")
    uses = [check for check in json.loads(report) if check["part"].startswith("use: ")] if report else []
    broken = [check["part"].removeprefix("use: ") for check in uses if check["state"] == "broken"]
    return {
        "quick tests": ", ".join(counts) or f"exit {code}",
        "responders that generate": lines.strip().splitlines()[-1] if lines else f"exit {generated}",
        "parts that doctor uses": f"{len(uses) - len(broken)} of {len(uses)}" + "".join(f"; not {b}" for b in broken),
        "exit codes": f"{code}, {generated}, {works}",
    }


def page(results: dict[str, dict[str, str]]) -> str:
    """The page of results."""
    lines = [
        "# Both ends of the allowed versions",
        "",
        "Written by `make bounds`. *lowest*: of each direct dependency the lowest version that `pyproject.toml` allows",
        "(uv, `--resolution lowest-direct`); *newest*: of everything the newest. torch is the same in both: none",
        "lower was run. CI runs the pinned set of `constraints.txt`, which lies between.",
        "",
        "| | lowest | newest |",
        "|---|---|---|",
    ]
    lines += [f"| {name} | {results['lowest'][name]} | {newest} |" for name, newest in results["newest"].items()]
    return "\n".join(lines) + "\n"


def main(torch: str, folder: str = "build/bounds", *ends: str) -> int:
    """Makes the environments, runs, writes the page; 1 if something does not work in one of them.

    Args:
        torch: For pip.
        folder: Where the environments lie, and what came of each.
        *ends: Those to run, the other's result is taken from before; none = both.
    """
    place = Path(folder).resolve()
    for end in ends or ENDS:
        python = make_environment(place / end, torch)
        install(python, ENDS[end])
        versions = {"python": version_of_python(python), **{name: version_in(python, name) for name in direct()}}
        result = {**tried(python), **versions}
        print(f"{end}: {result}", flush=True)
        (place / f"{end}.json").write_text(json.dumps(result), encoding="utf-8")
    results = {end: json.loads((place / f"{end}.json").read_text(encoding="utf-8")) for end in ENDS}
    PAGE.write_text(page(results), encoding="utf-8")
    return 1 if any(result["exit codes"] != "0, 0, 0" for result in results.values()) else 0


def version_of_python(python: Path) -> str:
    """Of an environment."""
    code = "import platform; print(platform.python_version())"
    return subprocess.run([str(python), "-c", code], check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
