"""The attack of ``make fuzz``: any number of cases, and a table of what was tried and what came of it.

python tests/attacks/fuzz.py --cases 20000 --out results/robustness.md
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parent))

from cases import DAMAGES, FaultError, command_of, quiet, read_damaged, run_command
from readers import readers

COMMAND_SHARE = 0.1
BEGIN, END = "<!-- fuzz -->", "<!-- /fuzz -->"


def attack(n_cases: int, seed: int) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]], list[str]]:
    """Classes of damage and readers to what came of them, and the faults."""
    chance, all_readers, names = Random(seed), readers(), list(DAMAGES)
    by_damage: Counter[tuple[str, str]] = Counter()
    by_reader: Counter[tuple[str, str]] = Counter()
    faults = []
    for _ in range(n_cases):
        number = chance.randrange(2**32)
        if chance.random() < COMMAND_SHARE:
            kind, reader = "odd command lines", "command line"
        else:
            kind, found = chance.choice(names), chance.choice(all_readers)
            reader = found.name
        try:
            came = run_command(command_of(number)) if reader == "command line" else read_damaged(found, kind, number)
        except FaultError as fault:
            came = "fault"
            faults.append(f"{fault} (number {number})")
            print(f"fault: {faults[-1]}", file=sys.stderr)
        came = "read" if came == "done" else came
        by_damage[kind, came] += 1
        by_reader[reader, came] += 1
    return by_damage, by_reader, faults


def table(title: str, counts: Counter[tuple[str, str]]) -> list[str]:
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
    parser.add_argument("--out", type=Path, default=Path("results/robustness.md"))
    given = parser.parse_args(arguments)
    quiet()
    by_damage, by_reader, faults = attack(given.cases, given.seed)
    lines = ["## Damaged files and odd command lines", ""]
    lines += [
        f"`make fuzz N={given.cases}`: {given.cases:,} cases (seed {given.seed}), {len(faults):,} faults. A case is"
    ]
    lines += ["a good file with a damage, given to its reader, or a command line by chance. It is read, or told on one"]
    lines += ["line; a fault is any other exception, a message that says nothing, or an escape on the terminal.", ""]
    lines += [*table("damage", by_damage), "", *table("reader", by_reader)]
    lines += ["", *(f"- {fault}" for fault in faults)] if faults else []
    write_section(given.out, BEGIN, END, lines)
    print(f"{given.cases:,} cases, {len(faults):,} faults: {given.out}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
