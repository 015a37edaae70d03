"""Known faults of the packages that ``constraints.txt`` pins, by pip-audit in an environment of its own.

    python tests/project/audit.py [FOLDER]

Says why it is skipped where pip-audit cannot be had, or where its source of advisories knows none of the packages.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MOST_SECONDS = 600


def judged(packages: Iterable[dict[str, Any]]) -> tuple[int, list[str]]:
    """Exit code and lines of a report of pip-audit: 1 if a package has a known fault."""
    packages = list(packages)
    unknown = [package["name"] for package in packages if "skip_reason" in package]
    if len(unknown) == len(packages):
        return 0, ["skipped: no advisories can be asked for from here"]
    faults = [
        f"{package['name']} {package['version']}: {fault['id']}, mended in {', '.join(fault['fix_versions']) or 'none'}"
        for package in packages
        for fault in package.get("vulns", ())
    ]
    told = f"{len(packages) - len(unknown)} packages audited, {len(faults)} known faults"
    return bool(faults), [*faults, told, *([f"not audited: {', '.join(unknown)}"] if unknown else [])]


def main(arguments: list[str]) -> int:
    """Makes the environment, audits, prints."""
    folder = Path(arguments[0] if arguments else "build/audit")
    python = folder / "bin" / "python"
    report = folder / "report.json"
    steps = [
        [sys.executable, "-m", "venv", str(folder)],
        [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "pip-audit"],
    ]
    for step in steps if not (folder / "bin" / "pip-audit").is_file() else ():
        done = subprocess.run(step, capture_output=True, text=True, timeout=MOST_SECONDS, check=False)
        if done.returncode:
            print(f"skipped: {(done.stderr.strip().splitlines() or [' '.join(step)])[-1]}")
            return 0
    options = ["--no-deps", "--disable-pip", "--progress-spinner", "off", "-f", "json", "-o", str(report)]
    command = [str(python), "-m", "pip_audit", "-r", str(ROOT / "constraints.txt"), *options]
    report.unlink(missing_ok=True)
    done = subprocess.run(command, capture_output=True, text=True, timeout=MOST_SECONDS, check=False)
    if not report.is_file():
        print(f"skipped: {(done.stderr.strip().splitlines() or ['pip-audit said nothing'])[-1]}")
        return 0
    code, lines = judged(json.loads(report.read_text(encoding="utf-8"))["dependencies"])
    print(*lines, sep="\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
