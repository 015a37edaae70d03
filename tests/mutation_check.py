"""Puts one mistake at a time into a copy of ``src`` and asks the tests of that part whether they notice.

    python tests/mutation_check.py [WORDS]      # only those with these words in their file or in what they do

The mistakes are in ``tests/mutations.yaml``, by room. The copy stands before the installed packages on the path; each
test process is forked from one that has imported the heavy libraries (``tests/fresh.py``).
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import yaml

import fresh

TESTS = Path(__file__).resolve().parent
SOURCE = TESTS.parent / "src"
_RIGHT: set[str] = set()
"""Tests that pass without a mistake."""


def first_failure(tests: str, source: Path) -> str:
    """The node of the first test that fails over a copy of ``src``; empty if all pass."""
    command = ["-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider"]
    done = fresh.run(
        [*command, *(str(TESTS / place) for place in tests.split())],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(source), str(TESTS)]),
            "PYTHONDONTWRITEBYTECODE": "1",  # a mistake of the same length and second would not be read
        },
        cwd=TESTS.parent,
    )
    if done.returncode not in (0, 1):
        sys.exit(f"{tests}: pytest ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    found = re.search(r"^(?:FAILED|ERROR) tests/(\S+)", done.stdout, re.MULTILINE)
    return found[1] if found else ""


def noticed(mutation: dict[str, str], source: Path) -> str:
    """The test that fails with the mistake in place and passes without it; empty if there is none."""
    path = source / mutation["file"]
    right = path.read_text(encoding="utf-8")
    path.write_text(right.replace(mutation["old"], mutation["new"]), encoding="utf-8")
    try:
        test = first_failure(mutation["tests"], source)
    finally:
        path.write_text(right, encoding="utf-8")
    if test and test not in _RIGHT:
        if first_failure(test, source):
            print(f"{test} fails without any mistake, too; mend it first.", flush=True)
            return ""
        _RIGHT.add(test)
    return test


def check_places(mutations: list[dict[str, str]]) -> None:
    """Ends the run if a mistake cannot be made: its text must stand exactly once in its file."""
    for mutation in mutations:
        times = (SOURCE / mutation["file"]).read_text(encoding="utf-8").count(mutation["old"])
        if times != 1:
            sys.exit(f"{mutation['file']}: {mutation['old']!r} stands {times} times; once is needed.")


def main() -> None:
    """Prints a line a mutation; fails if one goes unnoticed."""
    words = " ".join(sys.argv[1:])
    mutations = yaml.safe_load((TESTS / "mutations.yaml").read_text(encoding="utf-8"))
    check_places(mutations)
    chosen = [mutation for mutation in mutations if words in f"{mutation['file']} {mutation['what']}"]
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        source = Path(shutil.copytree(SOURCE, top / "src", ignore=shutil.ignore_patterns("__pycache__")))
        for name in ("recipes", "results", "models", "pyproject.toml"):  # a checkout has them beside src
            if (SOURCE.parent / name).exists():
                (top / name).symlink_to(SOURCE.parent / name)
        for mutation in chosen:
            test = noticed(mutation, source)
            missed += not test
            print(f"{'noticed' if test else 'MISSED '}  {mutation['what']}\n         {test}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} mutations noticed")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
