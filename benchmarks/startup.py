"""Processor time until ``empatheia --help`` is printed, beside an interpreter that imports torch and transformers."""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys

WAYS = {
    "empatheia --help": "from empatheia.cli import main; main(['--help'])",
    "python -c pass": "pass",
    "naive: import torch, transformers": "import torch, transformers",
}


def processor_seconds(code: str, n: int) -> float:
    """The least user and system time of ``n`` fresh interpreters running ``code``."""
    best = float("inf")
    for _ in range(n):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


def main() -> None:
    """Times each way and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=5, help="interpreters started for each way (default %(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options, _ = parser.parse_known_args()  # `make bench ARGS=...` gives all benchmarks the same options
    times = {way: round(processor_seconds(code, min(options.n, 10)), 3) for way, code in WAYS.items()}
    if options.json:
        print(json.dumps({"startup_processor_seconds": times}))
        return
    for way, seconds in times.items():
        print(f"{way:36} {seconds:6.2f} s of processor time")


if __name__ == "__main__":
    main()
