"""``empatheia leaderboard``: all run records on one page that works from a file, replies side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from empatheia.cli.output import say, show
from empatheia_research.reports.leaderboard import write_leaderboard
from empatheia_research.shipped import shipped_path


def leaderboard(
    results: Annotated[
        Path, typer.Option(help="Folder of run records; if there is none, those installed with empatheia.")
    ] = Path("results"),
    runs: Annotated[
        Path | None,
        typer.Option(help="Folder of run folders whose replies are shown; the page then holds text of the corpus."),
    ] = None,
    replies: Annotated[
        list[Path] | None, typer.Option(help="A file of replies, in any format of `empatheia score`; can be repeated.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The HTML file.")] = Path("leaderboard.html"),
) -> None:
    r"""Write one HTML page of all runs: sort, filter, compare replies. No server, no network.

    \b
    empatheia leaderboard
    empatheia leaderboard --runs runs --replies generation_result.txt --out build/leaderboard.html
    """
    if (kept := shipped_path(results)) != results:
        say(f"run records: those that came with empatheia, {kept}")
    n_runs, n_items, notes = write_leaderboard(out, kept, runs, replies or ())
    for note in notes:
        say(f"note: {note}")
    show(f"{out}: {n_runs:,} runs, {n_items:,} contexts with replies")
