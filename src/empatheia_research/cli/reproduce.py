"""``empatheia reproduce``: a published table beside our runs, and which runs it still waits for."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from empatheia.cli.output import print_json, say, show
from empatheia.documents.document import Figure
from empatheia.documents.markdown import to_markdown
from empatheia.errors import ConfigError, DataError
from empatheia.writing import write_whole
from empatheia_research.recipes.needs import RUNS, runs_to_make_first
from empatheia_research.recipes.recipe import check_recipe_size, load_recipe
from empatheia_research.reports.charts import save
from empatheia_research.reports.curves import curves_chart, curves_of, read_curves
from empatheia_research.reports.record_tables import run_name
from empatheia_research.reports.reproduction import read_runs, report_table
from empatheia_research.reports.reproduction_pages import (
    overview_text,
    reproduction_document,
    reproduction_page,
    short_text,
    totals_text,
)
from empatheia_research.reports.targets import read_targets, tables_named
from empatheia_research.reports.targets import tables as all_tables
from empatheia_research.reports.totals import totals_of
from empatheia_research.shipped import recipes_root, results_root

if TYPE_CHECKING:
    from empatheia_research.recipes.recipe import Recipe
    from empatheia_research.reports.reproduction import MissingRun, TableReport
    from empatheia_research.reports.targets import Target

RESULTS = Path("results")
_AS_JSON = typer.Option("--json", help="Print the reports and their totals as JSON.")


def reproduce(
    tables: Annotated[
        list[str] | None,
        typer.Argument(help="Tables such as gao2021/2, or papers such as reccon; without any, all are listed."),
    ] = None,
    results: Annotated[
        Path, typer.Option(help="Folder of run records; by default also those installed with empatheia.")
    ] = RESULTS,
    runs: Annotated[
        list[Path] | None, typer.Option(help="Also this run folder, or all runs below it; can be repeated.")
    ] = None,
    size: Annotated[str, typer.Option(help="smoke, row, cpu or full: size of the missing runs to list.")] = "cpu",
    out: Annotated[
        Path | None, typer.Option(help="Also write the reports into this folder: NAME.md and NAME.html.")
    ] = None,
    plots: Annotated[
        bool, typer.Option("--plots", help="With --out: also the training curves of the runs, as pictures.")
    ] = False,
    train: Annotated[
        bool, typer.Option("--train", help="First train the missing runs; repeat the command to continue.")
    ] = False,
    budget: Annotated[float | None, typer.Option(help="With --train: stop after so many minutes.")] = None,
    run_out: Annotated[Path, typer.Option(help="With --train: parent of the run folders.")] = Path("runs"),
    as_json: Annotated[bool, _AS_JSON] = False,
) -> None:
    r"""Set a published table beside our runs: value, interval, print, difference, tolerance, verdict, known reasons.

    Runs of size row are compared with each other: --size row shows them, and what the paper claims by differences.
    Prints a short form; --out also writes the whole report, as Markdown and as one HTML file. Runs that are missing
    are named, with the command that makes each.

    \b
    empatheia reproduce
    empatheia reproduce gao2021/2 --out reports
    empatheia reproduce gao2021/4 --size row
    empatheia reproduce rashkin2018/9 --train --size cpu --budget 120
    """
    _check_options(size, bool(tables), train, budget, out, plots)
    chosen = tables_named(tables or ()) or list(all_tables())
    targets = read_targets(recipes_root())
    shipped = results_root() if results == RESULTS else None
    if shipped is not None and not results.is_dir():
        say(f"run records: those that came with empatheia, {shipped}")
    _check_results(results, bool(runs), train)

    read_reports = partial(_reports, chosen, targets, shipped, results, runs or (), size)
    reports, failed = read_reports(), []
    if train and (missing := [run for report in reports for run in report.missing]):
        failed = _train(missing, size, budget, run_out, results)
        reports = read_reports()
    text = _told(reports, out, plots) if tables else overview_text(reports)
    text = f"{text}\n{totals_text(totals_of(reports))}"
    if as_json:
        print_json({"tables": [report.to_dict() for report in reports], "totals": totals_of(reports).to_dict()})
    else:
        show(text)
    if failed:
        say(f"error: {len(failed)} recipes failed: {', '.join(failed)}.")
        raise typer.Exit(1)


def _check_results(results: Path, has_runs: bool, train: bool) -> None:
    """Raises DataError where the folder that is named is not there and nothing else gives records."""
    if results != RESULTS and not (has_runs or train or results.is_dir()):
        raise DataError(
            f"there is no folder {results} of run records; leave --results out, or make one with"
            " `empatheia train RECIPE --record results`."
        )


def _told(reports: Sequence[TableReport], out: Path | None, plots: bool) -> str:
    """The tables in short, and the files where they are written in full."""
    text = "\n\n".join(map(short_text, reports))
    if out is None:
        return text
    written = [path for report in reports for path in _write(report, out, plots)]
    return f"{text}\nwritten: {', '.join(map(str, written))}"


def _check_options(
    size: str, has_tables: bool, train: bool, budget: float | None, out: Path | None, plots: bool
) -> None:
    """Whether the options are known and go together.

    Raises:
        ConfigError: They do not; says what would.
    """
    check_recipe_size(size)
    if budget is not None and not train:
        raise ConfigError("--budget goes with --train.")
    if plots and out is None:
        raise ConfigError("--plots goes with --out FOLDER, where the pictures are written.")
    if train and not has_tables:
        raise ConfigError("--train needs a table, e.g. empatheia reproduce rashkin2018/9 --train --size cpu.")


def _reports(
    tables: Sequence[str],
    targets: Sequence[Target],
    shipped: Path | None,
    results: Path,
    runs: Sequence[Path],
    size: str,
) -> list[TableReport]:
    """Each table beside the runs there are: those kept in ``results`` go before those that came with empatheia."""
    found = {run_name(run): run for run in read_runs(shipped)} if shipped is not None else {}
    found |= {run_name(run): run for run in read_runs(results, runs)}
    records = [found[name] for name in sorted(found)]
    return [report_table(key, targets, records, size, results) for key in tables]


def _write(report: TableReport, out: Path, plots: bool) -> list[Path]:
    out.mkdir(parents=True, exist_ok=True)
    name = report.key.replace("/", "-")
    figures: list[Figure] = []
    if plots:
        for record in report.runs:
            if (kept := record.get("file")) and (file := curves_of(Path(kept))) is not None:
                run = f"{record['recipe']} {record['size']}, seed {record['seed']}"
                stem = f"{name}-curves-{record['recipe'].replace('/', '-')}-{record['size']}-{record['seed']}"
                chart = curves_chart({run: read_curves(file)})
                drawn = save(chart, out / stem)[1]
                figures.append(Figure(f"Training of {run}", drawn.read_bytes(), drawn.name))
    page, plain = out / f"{name}.html", out / f"{name}.md"
    write_whole(plain, to_markdown(reproduction_document(report, figures)))
    write_whole(page, reproduction_page(report, figures))
    return [plain, page]


def _train(missing: Sequence[MissingRun], size: str, budget: float | None, out: Path, results: Path) -> list[str]:
    """Makes each missing run once, behind the runs it reads, and keeps its record; returns the recipes that failed."""
    from empatheia_research.reports.results_page import keep
    from empatheia_research.training.runner import run_all

    first, recipes = _recipes_to_run(missing, size)
    failed = []
    for group, place in ((first, RUNS), (recipes, out)):
        begun = time.monotonic()
        for status in run_all(group, place, budget_minutes=budget, goes_on=True) if group else ():
            if status.is_finished:
                keep(status.folder, results)
            say(f"{status.recipe}: {status.state} ({status.error or status.folder})")
            failed += [status.recipe] if status.state == "failed" else []
        if group and budget is not None:
            budget = max(0.0, budget - (time.monotonic() - begun) / 60)
    return failed


def _recipes_to_run(missing: Sequence[MissingRun], size: str) -> tuple[list[Recipe], list[Recipe]]:
    """Recipes whose runs are read by others, then those of the missing runs; none is in both."""
    wanted = {(run.target.file, seed): None for run in missing for seed in run.seeds}
    recipes = [load_recipe(file, size=size, seed=seed) for file, seed in wanted]
    first = [run.load() for run in runs_to_make_first(recipes)]
    made = {(recipe.name, recipe.size, recipe.seed) for recipe in first}
    return first, [recipe for recipe in recipes if (recipe.name, recipe.size, recipe.seed) not in made]
