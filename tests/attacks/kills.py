"""The attack of ``make kills``: commands killed at random moments, again and again, until one ends by itself.

What is left must be equal to what the same command leaves that was never killed, and nothing else may lie beside it.
So must it where the disk was full at first. Then many processes start in one run folder and write to one cache.

python tests/attacks/kills.py --kills 20 --out results/robustness.md
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parent))

from crowds import CACHES, kill_writers, starts
from fuzz import write_section

from empatheia_research.corpora.loading import sample_root

ROOT = Path(__file__).resolve().parents[2]
BEGIN, END = "<!-- kills -->", "<!-- /kills -->"
RECIPE = "recipes/gao2021/soft.yaml"
TIMES = re.compile(r"seconds|per_second|minutes|^date$|^time")
MOST_TRIES = 200
MOST_SECONDS = 900
"""For a command that nobody kills."""
MANY = 100
"""Kills from which on the disk is full in three places, not in one."""


@dataclass(frozen=True)
class Job:
    """A command that is killed.

    Attributes:
        name: What the table calls it.
        command: Arguments of ``empatheia``, run in a folder of its own.
        resume: Added from the second start on.
        ends: What the command leaves, relative to its folder.
        makes: Files it needs, made in its folder first.
    """

    name: str
    command: tuple[str, ...]
    resume: tuple[str, ...]
    ends: tuple[str, ...]
    makes: Callable[[Path], None] = lambda folder: None


def _rows(folder: Path) -> None:
    texts = (
        "I lost my job.",
        "My dog died last week.",
        "I won the race!",
        "She never called me back.",
        "Exams are over.",
    )
    lines = [json.dumps({"id": i, "turns": [texts[i % 5], "Oh.", f"{texts[(i + 2) % 5]} {i}"]}) for i in range(4000)]
    (folder / "rows.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def jobs(model: Path, run: Path, detector: Path) -> list[Job]:
    """All of them.

    Args:
        model: A responder's model folder.
        run: A finished run.
        detector: A model that finds cause turns.
    """
    train = ("train", str(ROOT / RECIPE), "--size", "smoke", "--quiet", "--out", "runs")
    analyze = ("analyze", "rows.jsonl", "--model", str(model))
    infer = ("infer", "rows.jsonl", "--provider", str(ROOT / "build" / "kills" / "index"))
    return [
        Job("train, size smoke", train, (), ("runs",)),
        Job("analyze, JSON lines", (*analyze, "--out", "r.jsonl"), ("--resume",), ("r.jsonl",), _rows),
        Job("analyze, CSV", (*analyze, "--out", "r.csv"), ("--resume",), ("r.csv",), _rows),
        Job("infer", (*infer, "--out", "c.jsonl"), ("--resume",), ("c.jsonl",), _rows),
        Job(
            "annotate",
            ("annotate", str(detector), "--out", "a.jsonl", "--splits", "train,valid,test"),
            (),
            ("a.jsonl",),
        ),
        Job("package", ("package", str(run), "made"), (), ("made",)),
    ]


def run_once(job: Job, folder: Path, words: Sequence[str], after: float | None) -> tuple[int, str]:
    """Runs a command, kills it after some seconds, and gives its exit code and what it said last."""
    environment = dict(
        os.environ, OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", EMPATHEIA_OFFLINE="1", TOKENIZERS_PARALLELISM="false"
    )
    environment["EMPATHEIA_DATA"] = str(sample_root())
    command = [sys.executable, "-m", "empatheia", *words]
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said
        )
        hung = ""
        try:
            process.wait(after or MOST_SECONDS)
        except subprocess.TimeoutExpired:
            hung = "" if after else f"it did not end within {MOST_SECONDS} s; "
            process.kill()
            process.wait()
        said.seek(0)
        return process.returncode, hung + said.read().decode("utf-8", "replace")[-400:]


def left(folder: Path, job: Job) -> dict[str, str]:
    """Every file below the ends by its path, as a checksum; times in records do not count."""
    found = {}
    for end in job.ends:
        place = folder / end
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.is_file():
                found[str(path.relative_to(folder))] = hashlib.sha256(_without_times(path)).hexdigest()[:16]
    return found


def beside(folder: Path, job: Job) -> list[str]:
    """What lies in the folder and belongs to nothing."""
    return sorted(path.name for path in folder.iterdir() if path.name not in {*job.ends, "rows.jsonl"})


def _without_times(path: Path) -> bytes:
    raw = path.read_bytes()
    if path.suffix == ".json":
        return json.dumps(_plain(json.loads(raw)), sort_keys=True).encode()
    if path.suffix == ".jsonl" and path.name == "curves.jsonl":
        return "\n".join(json.dumps(_plain(json.loads(line)), sort_keys=True) for line in raw.splitlines()).encode()
    return b"" if path.suffix == ".md" and b"min" in raw else raw


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items() if not TIMES.search(name)}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value


def attack(job: Job, n_kills: int, n_disks: int, chance: Random, work: Path) -> tuple[int, int, str, list[str]]:
    """Starts that were killed, runs that came to their end, what came of full disks, and what was not equal."""
    whole = work / "whole"
    whole.mkdir(parents=True)
    job.makes(whole)
    begun = time.monotonic()
    code, said = run_once(job, whole, job.command, None)
    length = time.monotonic() - begun
    if code:
        return 0, 0, "", [f"{job.name}: never killed, it ended with {code}: {said}"]
    wanted, faults, n_killed, n_ended = left(whole, job), [], 0, 0
    while n_killed < n_kills:
        folder = work / f"killed{n_ended}"
        folder.mkdir()
        job.makes(folder)
        for attempt in range(MOST_TRIES):
            words = [*job.command, *(job.resume if attempt else ())]
            after = chance.uniform(0.02, 1.05) * length if n_killed < n_kills else None
            code, said = run_once(job, folder, words, after)
            if code == -9 and after is not None:
                n_killed += 1
                continue
            break
        if code:
            faults.append(f"{job.name}: after kills it ended with {code}: {' '.join(said.split())}")
            break
        n_ended += 1
        faults += [f"{job.name}: after kills {fault}" for fault in unequal(folder, job, wanted)]
        shutil.rmtree(folder)
    shares = [(i + chance.uniform(0.1, 0.9)) / n_disks for i in range(n_disks)]
    told = [fill_disk(job, share, whole, wanted, work / "disk", faults) for share in shares]
    return n_killed, n_ended, ", ".join(told), faults


def unequal(folder: Path, job: Job, wanted: dict[str, str]) -> list[str]:
    """How what lies in a folder differs from what an undisturbed command leaves."""
    faults = []
    if (found := left(folder, job)) != wanted:
        odd = sorted(name for name in {*found, *wanted} if found.get(name) != wanted.get(name))
        faults.append(f"not equal: {', '.join(odd[:5])}")
    if rest := beside(folder, job):
        faults.append(f"left over: {', '.join(rest[:5])}")
    return faults


def fill_disk(job: Job, share: float, whole: Path, wanted: dict[str, str], place: Path, faults: list[str]) -> str:
    """Runs a command on a disk that holds a share of what it writes, and again when there is room; what came of it."""
    inputs = sum(path.stat().st_size for path in whole.iterdir() if path.name == "rows.jsonl")
    size = sum(path.stat().st_size for path in whole.rglob("*") if path.is_file()) - inputs
    with disk(place, inputs + int(share * size) + (64 << 10)) as grow:
        if grow is None:
            return "no right to mount"
        job.makes(place)
        code, said = run_once(job, place, job.command, None)
        if code and (code != 1 or "Traceback" in said or "EMPATHEIA_DEBUG" in said or "error: " not in said):
            faults.append(f"{job.name}: on a full disk it ended with {code}: {' '.join(said.split())}")
        for name in () if not code else job.ends:
            if (place / name).is_file() and left(place, job) != wanted:
                faults.append(f"{job.name}: on a full disk it left {name}, which is not whole")
        grow()
        again, said = run_once(job, place, [*job.command, *(job.resume if code else ())], None) if code else (0, "")
        if again:
            faults.append(f"{job.name}: with room again it ended with {again}: {' '.join(said.split())}")
        else:
            faults += [f"{job.name}: after a full disk {fault}" for fault in unequal(place, job, wanted)]
        return "told, then whole" if code else "it fitted"


@contextmanager
def disk(place: Path, size: int) -> Iterator[Callable[[], None] | None]:
    """A small disk at a place and what makes it large; None where we may not mount one."""
    place.mkdir(exist_ok=True)
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], capture_output=True, check=False
    )
    if made.returncode:
        yield None
        return
    try:
        yield lambda: subprocess.run(["mount", "-o", "remount,size=1g", place], check=True) and None
    finally:
        subprocess.run(["umount", "-l", place], check=False)


def prepared(work: Path) -> tuple[Path, Path, Path]:
    """A responder's run and its model, a detector of causes, and an index of inferences, all of size smoke."""
    recipes = (RECIPE, "recipes/reccon/entailment.yaml")
    command = [
        "train",
        *(str(ROOT / recipe) for recipe in recipes),
        "--size",
        "smoke",
        "--quiet",
        "--out",
        str(work / "runs"),
    ]
    job = Job("", (), (), ())
    for words in (command, ["infer", "--build-index", "sample", "--encoder", "words", "--index", str(work / "index")]):
        code, said = run_once(job, work, words, None)
        if code:
            raise SystemExit(f"cannot prepare: {said}")
    runs = {file.parent.parent.name: file.parent for file in sorted((work / "runs").rglob("metrics.json"))}
    return runs["soft"] / "checkpoint", runs["soft"], runs["entailment"] / "checkpoint"


def main(arguments: list[str] | None = None) -> int:
    """Runs the attack; 1 if something was not equal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=30, help="Of all commands together.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="Commands at a time.")
    parser.add_argument("--only", default="", help="Names of commands that begin so.")
    parser.add_argument("--out", type=Path, default=Path("results/robustness.md"))
    given = parser.parse_args(arguments)
    build = ROOT / "build" / "kills"
    shutil.rmtree(build, ignore_errors=True)
    build.mkdir(parents=True)
    # first, while there are no threads: the processes of a crowd are forked
    crowds = crowded(given.kills, build / "crowds", given.seed) if not given.only else []
    chosen = [job for job in jobs(*prepared(build)) if job.name.startswith(given.only)]
    each = -(-given.kills // len(chosen))

    def attacked(i: int) -> tuple[int, int, str, list[str]]:
        place = build / f"job{i}"
        found = attack(chosen[i], each, 3 if given.kills >= MANY else 1, Random(f"{given.seed} {i}"), place)
        print(
            f"{chosen[i].name}: {found[0]} kills, {found[1]} ends, {len(found[3])} faults",
            *found[3],
            sep="\n",
            flush=True,
        )
        shutil.rmtree(place)
        return found

    with ThreadPoolExecutor(given.jobs) as pool:
        came = list(pool.map(attacked, range(len(chosen))))
    faults = [fault for *_, told in came for fault in told] + [fault for *_, told in crowds for fault in told]
    rows = [
        f"| {job.name} | {n_killed:,} | {n_ended:,} | {disks} | {len(told):,} |"
        for job, (n_killed, n_ended, disks, told) in zip(chosen, came, strict=True)
    ]
    lines = [
        "## Kills, full disks, crowds",
        "",
        f"`make kills N={given.kills}`: each command is killed (SIGKILL) at random moments and started again until it",
        "ends, and is run where the disk is too small, then with room; what it leaves is compared with what the same",
        "command leaves that nobody disturbed (times aside), and nothing else may lie beside it.",
        "",
        "| command | kills | ends | full disk | faults |",
        "|---|---:|---:|---|---:|",
        *rows,
        "",
        "Eight processes at once, the writers killed one after the other; what they leave is read afterwards.",
        "",
        "| crowd | what was done | what was found | faults |",
        "|---|---|---|---:|",
        *(f"| {name} | {done} | {found} | {len(told):,} |" for name, done, found, told in crowds),
    ]
    lines += ["", *(f"- {fault}" for fault in faults)] if faults else []
    write_section(given.out, BEGIN, END, lines)
    print(f"{len(faults):,} faults: {given.out}", *faults, sep="\n")
    return 1 if faults else 0


def crowded(n: int, place: Path, seed: int) -> list[tuple[str, str, str, list[str]]]:
    """Name, what was done, what was found and faults of each crowd."""
    from empatheia_research.recipes.recipe import load_recipe

    faults = starts(n, place / "runs", load_recipe(ROOT / RECIPE, "smoke"))
    rows = [("starts in one run folder", f"{n:,} rounds", f"{n - len(faults):,} rounds with one owner", faults)]
    for cache in CACHES:
        folder = place / cache.name.replace(" ", "")
        folder.mkdir(parents=True)
        n_entries, faults = kill_writers(cache, n, folder, Random(f"{seed} {cache.name}"))
        rows.append((cache.name, f"{n:,} kills", f"{n_entries:,} entries, all as written", faults))
    for name, done, found, faults in rows:
        print(f"{name}: {done}, {found}, {len(faults)} faults", *faults, sep="\n", flush=True)
    return rows


if __name__ == "__main__":
    sys.exit(main())
