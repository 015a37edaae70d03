"""What the benchmarks share: conversations to work on, a measurement, and how it is shown."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from empatheia.errors import MissingResourceError
from empatheia.records.dialogue import Dialogue
from empatheia_research.corpora import CORPORA


@dataclass(frozen=True)
class Measurement:
    """How long a way of working took.

    Attributes:
        way: What was done, in words.
        n: Items.
        seconds: Wall time.
        processor_seconds: Processor time of this process, all threads; 0 = not measured.
    """

    way: str
    n: int
    seconds: float
    processor_seconds: float = 0.0

    @property
    def per_second(self) -> float:
        """Items a second."""
        return self.n / self.seconds

    @property
    def milliseconds(self) -> float:
        """Milliseconds an item."""
        return 1000 * self.seconds / self.n


def arguments(description: str, n: int, n_naive: int) -> argparse.ArgumentParser:
    """The options every benchmark has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--n", type=int, default=n, help="items (default %(default)s)")
    parser.add_argument("--naive-n", type=int, default=n_naive, help="items of the naive loop (default %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="processor threads (default %(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def contexts(n: int) -> tuple[list[Dialogue], str]:
    """Contexts to answer: EmpatheticDialogues' test set where it is, else the sample, repeated to ``n``.

    Returns:
        Conversations that end with a speaker turn, and where they are from.
    """
    try:
        corpus, source = CORPORA.get("empathetic_dialogues")("test"), "EmpatheticDialogues test"
    except MissingResourceError:
        corpus, source = CORPORA.get("sample")("test"), "bundled sample, repeated"
    found = [Dialogue(dialogue.id, example.context) for dialogue in corpus for example in dialogue.examples()]
    return [found[i % len(found)] for i in range(n)], source


def measure(way: str, work: Callable[[], Any], n: int) -> Measurement:
    """Does ``work`` once, on ``n`` items, by the clock."""
    start, busy = time.perf_counter(), time.process_time()
    work()
    return Measurement(way, n, time.perf_counter() - start, time.process_time() - busy)


def show(title: str, rows: Sequence[Measurement], as_json: bool, **facts: Any) -> None:
    """Prints a table, or one JSON object; the last row is the naive loop the others are compared with."""
    naive = rows[-1].per_second
    if as_json:
        ways = [
            {
                "way": row.way,
                "n": row.n,
                "seconds": round(row.seconds, 4),
                "processor_seconds": round(row.processor_seconds, 4),
                "per_second": round(row.per_second, 2),
            }
            for row in rows
        ]
        print(json.dumps({"benchmark": title, "threads": torch.get_num_threads(), **facts, "ways": ways}))
        return
    print(f"{title} ({', '.join(f'{name} {value}' for name, value in facts.items())})")
    print(f"{'':<44}{'items':>8}{'items/s':>10}{'ms/item':>10}{'cpu ms':>10}{'x naive':>9}")
    for row in rows:
        busy = f"{1000 * row.processor_seconds / row.n:.2f}" if row.processor_seconds else ""
        speed = f"{row.per_second:>10.1f}{row.milliseconds:>10.2f}{busy:>10}{row.per_second / naive:>9.1f}"
        print(f"{row.way:<44}{row.n:>8,}{speed}")
    print()
