"""Puts one mistake at a time into a copy of ``src`` and asks the tests of that part whether they notice.

    python tests/mutation_check.py [WORDS]      # only those with these words in what they do

The mistakes are in ``tests/mutations.yaml``: masks, normalisers, counts, gates, offsets, readers.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

TESTS = Path(__file__).resolve().parent
SOURCE = TESTS.parent / "src"


def noticed(mutation: dict[str, str], source: Path) -> str:
    """The first failing test's line with the mistake in place; empty if all pass."""
    path = source / "empatheia" / mutation["file"]
    right = path.read_text(encoding="utf-8")
    if right.count(mutation["old"]) != 1:
        sys.exit(
            f"{mutation['file']}: {mutation['old']!r} stands {right.count(mutation['old'])} times; once is needed."
        )
    path.write_text(right.replace(mutation["old"], mutation["new"]), encoding="utf-8")
    try:
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider"]
        done = subprocess.run(
            [*command, str(TESTS / mutation["tests"])],
            env={**os.environ, "PYTHONPATH": str(source)},
            cwd=TESTS.parent,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        path.write_text(right, encoding="utf-8")
    lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return lines[0] if done.returncode == 1 and lines else ""


def main() -> None:
    """Prints a line a mutation; fails if one goes unnoticed."""
    mutations = yaml.safe_load((TESTS / "mutations.yaml").read_text(encoding="utf-8"))
    chosen = [mutation for mutation in mutations if " ".join(sys.argv[1:]) in mutation["what"]]
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        source = Path(shutil.copytree(SOURCE, Path(folder) / "src", ignore=shutil.ignore_patterns("__pycache__")))
        for mutation in chosen:
            test = noticed(mutation, source)
            missed += not test
            print(f"{'noticed' if test else 'MISSED '}  {mutation['what']}\n         {test}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} mutations noticed")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
