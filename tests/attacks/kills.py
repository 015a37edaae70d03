"""The attack of ``make kills``: commands killed at random moments, again and again, until one ends by itself.

What is left must be equal to what the same command leaves that was never killed, and nothing else may lie beside it.

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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parent))

from fuzz import write_section

from empatheia.corpora.loading import sample_root

ROOT = Path(__file__).resolve().parents[2]
BEGIN, END = "<!-- kills -->", "<!-- /kills -->"
RECIPE = "recipes/gao2021/soft.yaml"
TIMES = re.compile(r"seconds|per_second|minutes|^date$|^time")
MOST_TRIES = 200


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
        try:
            process.wait(after)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        said.seek(0)
        return process.returncode, said.read().decode("utf-8", "replace")[-400:]


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


def attack(job: Job, n_kills: int, chance: Random, work: Path) -> tuple[int, int, list[str]]:
    """Starts that were killed, runs that came to their end, and what was not equal."""
    whole = work / "whole"
    whole.mkdir(parents=True)
    job.makes(whole)
    begun = time.monotonic()
    code, said = run_once(job, whole, job.command, None)
    length = time.monotonic() - begun
    if code:
        return 0, 0, [f"{job.name}: never killed, it ended with {code}: {said}"]
    wanted, faults, n_killed, n_ended = left(whole, job), [], 0, 0
    while n_killed < n_kills:
        folder = work / f"killed{n_ended}"
        folder.mkdir()
        job.makes(folder)
        for attempt in range(MOST_TRIES):
            words = [*job.command, *(job.resume if attempt else ())]
            after = chance.uniform(0.02, 1.05) * length if n_killed < n_kills else None
            code, said = run_once(job, folder, words, after)
            if code == -9:
                n_killed += 1
                continue
            break
        if code:
            faults.append(f"{job.name}: after kills it ended with {code}: {' '.join(said.split())}")
            break
        n_ended += 1
        if (found := left(folder, job)) != wanted:
            odd = sorted(name for name in {*found, *wanted} if found.get(name) != wanted.get(name))
            faults.append(f"{job.name}: not equal after kills: {', '.join(odd[:5])}")
        if rest := beside(folder, job):
            faults.append(f"{job.name}: left over: {', '.join(rest[:5])}")
        shutil.rmtree(folder)
    return n_killed, n_ended, faults


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
    parser.add_argument("--kills", type=int, default=20, help="Of each command.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="Names of commands that begin so.")
    parser.add_argument("--out", type=Path, default=Path("results/robustness.md"))
    given = parser.parse_args(arguments)
    build = ROOT / "build" / "kills"
    shutil.rmtree(build, ignore_errors=True)
    build.mkdir(parents=True)
    rows, all_faults = [], []
    for job in jobs(*prepared(build)):
        if not job.name.startswith(given.only):
            continue
        n_killed, n_ended, faults = attack(
            job,
            given.kills,
            Random(f"{given.seed} {job.name}"),
            build / job.name.split(",")[0].replace(" ", "") / str(len(rows)),
        )
        rows.append(f"| {job.name} | {n_killed:,} | {n_ended:,} | {len(faults):,} |")
        all_faults += faults
        print(rows[-1], *faults, sep="\n", flush=True)
    lines = ["## Kills", ""]
    lines += [
        f"`make kills N={given.kills}`: each command is killed (SIGKILL) at random moments and started again until it"
    ]
    lines += [
        "ends; what it leaves is compared with what the same command leaves that nobody killed (times aside).",
        "",
    ]
    lines += ["| command | kills | ends | not equal |", "|---|---:|---:|---:|", *rows]
    lines += ["", *(f"- {fault}" for fault in all_faults)] if all_faults else []
    write_section(given.out, BEGIN, END, lines)
    return 1 if all_faults else 0


if __name__ == "__main__":
    sys.exit(main())
