"""``empatheia queue``: many runs in order, resumed after any stop, with what is done and what is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from empatheia.cli.options import group
from empatheia.cli.output import print_json, print_lines, say, show
from empatheia_research.recipes.queue import read_queue

if TYPE_CHECKING:
    from empatheia_research.training.queue import QueuedRun

MOST_NAMED = 6
"""Runs named in the line of what they wait for."""
app = group("Train a queue of recipes in order; a stopped one continues.")
FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="Queue, such as recipes/queue.yaml.")]
ResultsOption = Annotated[Path, typer.Option(help="Folder of kept run records.")]
OutOption = Annotated[Path, typer.Option(help="Parent of the run folders.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the runs as JSON.")]


@app.command("run")
def run(
    file: FileArgument,
    budget: Annotated[float | None, typer.Option(help="Stop after so many minutes; repeat to continue.")] = None,
    results: ResultsOption = Path("results"),
    out: OutOption = Path("runs"),
    threads: Annotated[int | None, typer.Option(min=1, help="Processor threads. [default: all]")] = None,
    quiet: Annotated[bool, typer.Option(help="No progress bars.")] = False,
) -> None:
    r"""Train the unfinished runs in order, and keep each record.

    \b
    empatheia queue run recipes/queue.yaml --budget 120
    nice empatheia queue run recipes/queue.yaml --threads 1
    """
    queue = read_queue(file)
    from empatheia_research.reports.results_page import keep
    from empatheia_research.training.queue import standing, work
    from empatheia_research.training.runner import RunStatus

    if threads is not None:
        import torch

        torch.set_num_threads(threads)

    def tell(status: RunStatus) -> None:
        show(f"{status.recipe} {status.folder.name}: {status.state} ({status.error or status.folder})")

    statuses = work(queue, results, out, budget_minutes=budget, keep=keep, tell=tell, show_progress=not quiet)
    runs = standing(queue, results, out)
    n_done = sum(one.state == "done" for one in runs)
    say(
        f"{n_done} of {len(runs)} runs are done" + ("." if n_done == len(runs) else "; repeat the command to continue.")
    )
    for line in _lacking(runs):
        say(line)
    tried = [status for status in statuses if status.state != "skipped"]
    if failed := [status.recipe for status in tried if status.state == "failed"]:
        say(f"error: {len(failed)} of {len(tried)} recipes failed: {', '.join(failed)}.")
        raise typer.Exit(1)


def _lacking(runs: Sequence[QueuedRun]) -> Iterator[str]:
    """What runs wait for, with the command that brings it, a line each."""
    from empatheia_research.training.queue import by_missing

    for missing, waiting in by_missing(runs).items():
        names = [f"{one.recipe.name} {one.recipe.size}-seed{one.recipe.seed}" for one in waiting]
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        n = f"{len(names)} run{'' if len(names) == 1 else 's'}"
        yield f"{n} wait{'s' * (len(names) == 1)} for {missing.what}: {', '.join(names[:MOST_NAMED])}{more}"
        yield f"  get it: {missing.command}"


@app.command("status")
def status(
    file: FileArgument,
    results: ResultsOption = Path("results"),
    out: OutOption = Path("runs"),
    as_json: JsonOption = False,
) -> None:
    """Say what is done, what is begun, what waits and for what, and how many hours are left.

    Nothing is trained to find out: corpora, packages, installed models and files are looked for.

    Example: empatheia queue status recipes/queue.yaml
    """
    queue = read_queue(file)
    from empatheia_research.training.queue import hours_left, standing

    runs = standing(queue, results, out)
    left = round(hours_left(runs), 2)
    if as_json:
        print_json({"runs": [one.to_dict() for one in runs], "hours_left": left})
        return
    for one in runs:
        took = f"{one.seconds / 3600:.1f} h" if one.seconds is not None else f"about {one.entry.hours:g} h"
        name = f"{one.recipe.name} {one.recipe.size}, seed {one.recipe.seed}"
        lacks = [(f"; needs {', '.join(lack.what for lack in one.missing)}", "yellow")] if one.missing else []
        print_lines([[(f"{one.state:<8}", "bold" if one.state == "begun" else ""), (f"{name}: {took}", ""), *lacks]])
    for line in _lacking(runs):
        show(line)
    counts = {state: sum(one.state == state for one in runs) for state in ("done", "begun", "waiting")}
    told = ", ".join(f"{n} {state}" for state, n in counts.items())
    lacking = [one for one in runs if one.missing]
    waits = f"; {len(lacking)} of them cannot begin yet" if lacking else ""
    show(f"{told}{waits}; {left:.1f} hours left at the measured rate.")
