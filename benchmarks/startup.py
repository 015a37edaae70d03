"""Processor time and memory of a cold start: help, one reply, one analysis, beside importing torch and transformers."""

from __future__ import annotations

import argparse
import json
import os
import sys

REPLY = "respond", "I finally passed my driving test after three tries!"
WAYS = {
    "empatheia --help": "from empatheia.cli import main; main(['--help'])",
    "empatheia respond TEXT": f"from empatheia.cli import main; main({[*REPLY]!r})",
    "empatheia.analyze(TEXT)": f"import empatheia; empatheia.analyze({REPLY[1]!r})",
    "empatheia.respond(TEXT), two": f"import empatheia; [empatheia.respond({REPLY[1]!r} + end) for end in ('', '?')]",
    "python -c pass": "pass",
    "naive: import torch, transformers": "import torch, transformers",
}


def cost_of(code: str, n: int) -> tuple[float, float]:
    """The least user and system time of ``n`` fresh interpreters running ``code``, and their most memory in MB.

    One before them is not counted: it leaves compiled modules, as an installation has them.
    """
    best, most = float("inf"), 0.0
    surroundings = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for number in range(n + 1):
        child = os.fork()
        if not child:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.execve(sys.executable, [sys.executable, "-c", code], surroundings)
        _, status, used = os.wait4(child, 0)
        if status:
            raise SystemExit(f"{code!r} ended with {os.waitstatus_to_exitcode(status)}")
        if number:
            best, most = min(best, used.ru_utime + used.ru_stime), max(most, used.ru_maxrss / 1024)
    return best, most


def main() -> None:
    """Times each way and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=5, help="interpreters started for each way (default %(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options, _ = parser.parse_known_args()  # `make bench ARGS=...` gives all benchmarks the same options
    costs = {way: cost_of(code, min(options.n, 10)) for way, code in WAYS.items()}
    if options.json:
        rows = {way: {"processor_seconds": round(a, 3), "megabytes": round(b)} for way, (a, b) in costs.items()}
        print(json.dumps({"startup": rows}))
        return
    for way, (seconds, megabytes) in costs.items():
        print(f"{way:36} {seconds:6.2f} s of processor time {megabytes:6,.0f} MB")


if __name__ == "__main__":
    main()
