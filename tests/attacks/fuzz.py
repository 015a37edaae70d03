"""The attack of ``make fuzz``: any number of cases, and a table of what was tried and what came of it.

python tests/attacks/fuzz.py --cases 20000 --out results/robustness.md

It goes in slices, each in a process of its own that is watched from outside. A slice that is done is kept below
``build/fuzz`` until the code changes, so that an attack that was stopped goes on.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parent))

from cases import DAMAGES, FaultError, bounded, command_of, quiet, read_damaged, run_command
from readers import ROOT, readers

COMMAND_SHARE = 0.1
SLICE = 2000
MOST_SECONDS = 1800
"""For a slice; each case has its own limit, this is for what no signal ends."""
BEGIN, END = "<!-- fuzz -->", "<!-- /fuzz -->"
Counts = Counter[tuple[str, str]]


def numbered(n_cases: int, seed: int) -> Iterator[tuple[str, str, int]]:
    """Damage, reader and number of each case, the same for the same seed."""
    chance, names, known = Random(seed), list(DAMAGES), [reader.name for reader in readers()]
    for _ in range(n_cases):
        number = chance.randrange(2**32)
        if chance.random() < COMMAND_SHARE:
            yield "odd command lines", "command line", number
        else:
            yield chance.choice(names), chance.choice(known), number


def attack(n_cases: int, seed: int, told: Path | None = None, first: int = 0) -> tuple[Counts, Counts, list[str]]:
    """Classes of damage and readers to what came of them, and the faults.

    Args:
        n_cases: Cases.
        seed: Of chance.
        told: File that names the case that is being tried, for whoever watches.
        first: Cases before it are left out.
    """
    by_name = {reader.name: reader for reader in readers()}
    for known in by_name.values():  # what it imports, and torch's first calls, are no case's
        read_damaged(known, "nothing", 0)
    by_damage: Counts = Counter()
    by_reader: Counts = Counter()
    faults = []
    for i, (damage, reader, number) in enumerate(numbered(n_cases, seed)):
        if i < first:
            continue
        if told is not None:
            told.write_text(json.dumps([i, damage, reader, number]), encoding="utf-8")
        try:
            with bounded():
                if reader == "command line":
                    came = run_command(command_of(number))
                else:
                    came = read_damaged(by_name[reader], damage, number)
        except FaultError as fault:
            came = "fault"
            faults.append(f"{fault} ({reader}, {damage}, {number})")
            print(f"fault: {faults[-1]}", file=sys.stderr, flush=True)
        came = "read" if came == "done" else came
        by_damage[damage, came] += 1
        by_reader[reader, came] += 1
    return by_damage, by_reader, faults


def watched(n_cases: int, seed: int, kept: Path) -> tuple[Counts, Counts, list[str]]:
    """A slice in a process of its own, or what is kept of it; a process that hangs or dies is a fault and goes on."""
    by_damage: Counts = Counter()
    by_reader: Counts = Counter()
    faults: list[str] = []
    if not kept.is_file():
        kept.parent.mkdir(parents=True, exist_ok=True)
        first = 0
        while first < n_cases:
            with tempfile.TemporaryDirectory(prefix="fuzz") as folder:
                told, part = Path(folder) / "case.json", Path(folder) / "part.json"
                command = [
                    sys.executable,
                    __file__,
                    "--cases",
                    str(n_cases),
                    "--seed",
                    str(seed),
                    "--first",
                    str(first),
                ]
                environment = os.environ | {"TMPDIR": folder}
                try:
                    code = subprocess.run(
                        [*command, "--part", str(part), "--told", str(told)],
                        stdin=subprocess.DEVNULL, timeout=MOST_SECONDS, env=environment, check=False,
                    ).returncode  # fmt: skip
                    how = f"ended with {code}"
                except subprocess.TimeoutExpired:
                    how = f"did not end within {MOST_SECONDS} s"
                if part.is_file():
                    _add(part, by_damage, by_reader, faults)
                    break
                i, damage, reader, number = json.loads(told.read_text(encoding="utf-8"))
                faults.append(
                    f"{reader}, {damage}, {number}: the process {how}; the {i - first} cases before are not counted"
                )
                print(f"fault: {faults[-1]}", file=sys.stderr, flush=True)
                by_damage[damage, "fault"] += 1
                by_reader[reader, "fault"] += 1
                first = i + 1
        _keep(kept, by_damage, by_reader, faults)
        return by_damage, by_reader, faults
    _add(kept, by_damage, by_reader, faults)
    return by_damage, by_reader, faults


def _keep(path: Path, by_damage: Counts, by_reader: Counts, faults: list[str]) -> None:
    tables = [[[*key, n] for key, n in counts.items()] for counts in (by_damage, by_reader)]
    part = path.with_suffix(".part")
    part.write_text(json.dumps([*tables, faults]), encoding="utf-8")
    part.replace(path)


def _add(path: Path, by_damage: Counts, by_reader: Counts, faults: list[str]) -> None:
    first, second, told = json.loads(path.read_text(encoding="utf-8"))
    by_damage.update({(name, came): n for name, came, n in first})
    by_reader.update({(name, came): n for name, came, n in second})
    faults += told


def attack_in_slices(n_cases: int, seed: int, jobs: int, place: Path) -> tuple[Counts, Counts, list[str]]:
    """As :func:`attack`, in watched slices, ``jobs`` at a time; those that are done lie in ``place``."""
    by_damage: Counts = Counter()
    by_reader: Counts = Counter()
    faults: list[str] = []
    sizes = [min(SLICE, n_cases - start) for start in range(0, n_cases, SLICE)]
    with ThreadPoolExecutor(jobs) as pool:
        done = (map if jobs == 1 else pool.map)(
            lambda i: watched(sizes[i], seed * 100_000 + i, place / f"{seed}-{i}-{sizes[i]}.json"), range(len(sizes))
        )
        for i, (damages, found, told) in enumerate(done):
            by_damage += damages
            by_reader += found
            faults += told
            print(f"{sum(sizes[: i + 1]):,} of {n_cases:,} cases, {len(faults):,} faults", file=sys.stderr, flush=True)
    return by_damage, by_reader, faults


def code_mark() -> str:
    """Of all that is attacked and that attacks."""
    mark = hashlib.sha256()
    for path in sorted([*(ROOT / "src").rglob("*.py"), *Path(__file__).parent.glob("*.py")]):
        mark.update(path.read_bytes())
    return mark.hexdigest()[:12]


def table(title: str, counts: Counts) -> list[str]:
    """Markdown rows."""
    lines = [f"| {title} | cases | read or done | told | faults |", "|---|---:|---:|---:|---:|"]
    for name in sorted({name for name, _ in counts}):
        read, told, fault = (counts[name, came] for came in ("read", "told", "fault"))
        lines.append(f"| {name} | {read + told + fault:,} | {read:,} | {told:,} | {fault:,} |")
    return lines


def write_section(out: Path, begin: str, end: str, lines: list[str]) -> None:
    """Puts lines between two marks of a page, which others may write, too."""
    text = out.read_text(encoding="utf-8") if out.is_file() else "# Robustness\n"
    before, _, rest = text.partition(begin)
    after = rest.partition(end)[2]
    body = "\n".join([begin, "", *lines, "", end])
    out.write_text(f"{before.rstrip()}\n\n{body}\n{after.lstrip()}", encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Runs the attack; 1 if there was a fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="Slices at a time.")
    parser.add_argument("--out", type=Path, default=Path("results/robustness.md"))
    parser.add_argument("--first", type=int, default=0, help="Of a slice.")
    parser.add_argument("--part", type=Path, help="Write what came of a slice, and nothing else.")
    parser.add_argument("--told", type=Path, help="Name the case of a slice that is being tried.")
    given = parser.parse_args(arguments)
    if given.part is not None:
        quiet()
        _keep(given.part, *attack(given.cases, given.seed, given.told, given.first))
        return 0
    place = ROOT / "build" / "fuzz" / code_mark()
    by_damage, by_reader, faults = attack_in_slices(given.cases, given.seed, given.jobs, place)
    n = sum(by_damage.values())
    lines = [
        "## Damaged files and odd command lines",
        "",
        f"`make fuzz N={given.cases}`: {n:,} cases (seed {given.seed}), {len(faults):,} faults. A case is a good file",
        "with a damage, given to its reader, or a command line by chance. It is read, or told on one line; a fault is",
        "any other exception, a message that says nothing, an escape on the terminal, more than 10 seconds of work or",
        "300 of waiting, more than 2 GB of memory, or a change in a folder beside that in which the command runs.",
        "",
        *table("damage", by_damage),
        "",
        *table("reader", by_reader),
    ]
    lines += ["", *(f"- {fault}" for fault in faults)] if faults else []
    write_section(given.out, BEGIN, END, lines)
    print(f"{n:,} cases, {len(faults):,} faults: {given.out}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
