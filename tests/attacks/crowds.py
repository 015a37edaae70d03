"""Many processes at once: starts in one run folder, and shared caches whose writers are killed."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from empatheia.errors import ConfigError, DataError
from empatheia.taxonomy import RELATIONS
from empatheia.writing import append_line
from empatheia_research.understanding.inferences.cache import CachedInferences
from empatheia_research.understanding.inferences.provider import Tails
from empatheia_research.understanding.vectors.cache import CachedVectors

N_PROCESSES = 8
MOST_SECONDS = 300.0
"""For a round of starts, and for all of one cache's kills."""
FORK = multiprocessing.get_context("fork")


def starts(n_rounds: int, place: Path, recipe: Any) -> list[str]:
    """Faults: rounds in which not exactly one of the processes that start at once has the run folder."""
    barrier, owners = FORK.Barrier(N_PROCESSES), FORK.Array("i", n_rounds)
    others = [
        FORK.Process(target=_start_again_and_again, args=(n_rounds, place, recipe, barrier, owners))
        for _ in range(N_PROCESSES)
    ]
    for other in others:
        other.start()
    faults = []
    with _ended(others):
        for other in others:
            other.join(MOST_SECONDS)
            if other.exitcode != 0:
                faults.append(f"a process that starts runs ended with {other.exitcode} (None: it hangs)")
    return faults + [f"start {i}: {n} owners" for i, n in enumerate(owners) if n != 1]


def _start_again_and_again(n_rounds: int, place: Path, recipe: Any, barrier: Any, owners: Any) -> None:
    from empatheia_research.training import runner

    def own(*_: Any) -> None:
        with owners.get_lock():
            owners[number] += 1
        barrier.wait(MOST_SECONDS)  # until all others have tried

    runner._run = own
    for number in range(n_rounds):
        barrier.wait(MOST_SECONDS)
        try:
            runner.run(recipe, place / str(number))
        except ConfigError:
            barrier.wait(MOST_SECONDS)
    os._exit(0)


class Echo:
    """A provider whose answers can be told from their questions."""

    name, source = "echo", "attack"

    def fingerprint(self) -> str:
        return "echo"

    def relations(self) -> tuple[str, ...]:
        return RELATIONS

    def infer(self, texts: Sequence[str], relations: Sequence[str], n: int = 5, **_: Any) -> list[dict[str, Tails]]:
        """The text itself, five hundred characters long."""
        return [{name: Tails(name, (f"{text} {'x' * 500}",), (1.0,), text) for name in relations} for text in texts]


class Numbers:
    """An encoder whose vectors can be told from their texts."""

    name, width = "numbers", 64

    def fingerprint(self) -> str:
        return "numbers"

    def encode(self, texts: Sequence[str], **_: Any) -> np.ndarray:
        return np.array([np.full(self.width, float(text.split()[-1]), np.float32) for text in texts])


@dataclass(frozen=True)
class Cache:
    """A file that several processes write to.

    Attributes:
        name: What the table calls it.
        add: Adds what a number tells, as any process does.
        check: Reads all; gives how many entries it holds, and raises where one is not as it was written.
    """

    name: str
    add: Callable[[Path, int], None]
    check: Callable[[Path], int]


def _infer(path: Path, number: int) -> None:
    with contextlib.suppress(DataError):  # another one holds it
        cached = CachedInferences(path, Echo())
        cached.infer([f"text {number * 20 + i}" for i in range(20)], ["xReact"])
        cached.close()


def _inferred(path: Path) -> int:
    held = CachedInferences(path, Echo())
    asked = [f"text {i}" for i in range(200)]
    assert held.infer(asked, ["xReact"]) == Echo().infer(asked, ["xReact"])
    return len(held)


def _encode(path: Path, number: int) -> None:
    CachedVectors(Numbers(), path).encode([f"text {number * 20 + i}" for i in range(20)])


def _encoded(path: Path) -> int:
    asked = [f"text {i}" for i in range(200)]
    assert np.array_equal(CachedVectors(Numbers(), path).encode(asked), Numbers().encode(asked))
    return len(asked)


def _journal(path: Path, number: int) -> None:
    counts = {"prompt_tokens": 1, "completion_tokens": 2, "tries": 1}
    append_line(
        path,
        json.dumps(
            {"key": f"k{number}", "answer": f"{number} {20_000 * 'x'}", "finish": "stop", "served": "m"} | counts
        ),
    )


def _journalled(path: Path) -> int:
    from empatheia.voices.language_endpoint import _read_journal

    rows = _read_journal(path)
    assert all(row["answer"] == f"{key[1:]} {20_000 * 'x'}" for key, row in rows.items())
    return len(rows)


CACHES = (
    Cache("cache of inferences", _infer, _inferred),
    Cache("cache of vectors", _encode, _encoded),
    Cache("journal of answers", _journal, _journalled),
)


def kill_writers(cache: Cache, n_kills: int, place: Path, chance: Random) -> tuple[int, list[str]]:
    """Eight processes write to one file, and one after the other is killed; entries read afterwards, and faults."""
    path, number, begun = place / "shared", 0, time.monotonic()
    busy: list[Any] = []
    with _ended(busy):
        for number in range(n_kills + N_PROCESSES):
            if len(busy) == N_PROCESSES:
                time.sleep(chance.uniform(0.01, 0.1))
                busy.pop(chance.randrange(len(busy))).kill()
            busy.append(FORK.Process(target=_write_for_ever, args=(cache.add, path, number)))
            busy[-1].start()
            if time.monotonic() - begun > MOST_SECONDS:
                return 0, [f"{cache.name}: {n_kills} kills were not done within {MOST_SECONDS:g} s"]
        time.sleep(0.5)
        if dead := [process.exitcode for process in busy if process.exitcode is not None]:
            return 0, [f"{cache.name}: writers that nobody killed ended with {dead}"]
    try:
        cache.add(path, 0)
        return cache.check(path), []
    except Exception as error:
        return 0, [f"{cache.name}: after {n_kills} kills: {type(error).__name__}: {error!s:.200}"]


def _write_for_ever(add: Callable[[Path, int], None], path: Path, seed: int) -> None:
    chance = Random(seed)
    while os.getppid() != 1:
        add(path, chance.randrange(500))


@contextlib.contextmanager
def _ended(processes: Sequence[Any]) -> Iterator[None]:
    """Kills what is left of processes."""
    try:
        yield
    finally:
        sys.stdout.flush()
        for process in processes:
            process.kill()
            process.join(30)
