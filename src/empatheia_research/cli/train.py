"""``empatheia train``: recipes to run folders, within a time budget, resumable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from empatheia.cli.output import print_json, say, show
from empatheia.errors import ConfigError
from empatheia.registry import nearest
from empatheia_research.devices import choose_device
from empatheia_research.recipes.recipe import find_recipe, load_recipe, read_recipe_tree, recipe_titles
from empatheia_research.training.hours import passes, recorded_hours
from empatheia_research.training.prerequisites import check_before
from empatheia_research.training.tracking import check_tracker

if TYPE_CHECKING:
    from empatheia_research.recipes.recipe import Recipe
    from empatheia_research.training.runner import RunStatus


def train(
    recipes: Annotated[
        list[Path] | None,
        typer.Argument(help="Recipe files, or names of recipes that come with empatheia; run in this order."),
    ] = None,
    lists: Annotated[
        bool,
        typer.Option("--list", help="Only list the recipes that come with empatheia; of the folders named, or all."),
    ] = False,
    size: Annotated[
        str | None, typer.Option(help="smoke, row, cpu or full, as published. [default: the recipe's, else cpu]")
    ] = None,
    budget: Annotated[float | None, typer.Option(help="Stop after so many minutes; repeat to continue.")] = None,
    out: Annotated[Path, typer.Option(help="Parent of the run folders.")] = Path("runs"),
    seed: Annotated[list[int] | None, typer.Option(help="Seed; repeat for several runs of each recipe.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Override, e.g. model.dropout=0.2.")] = None,
    evaluate: Annotated[bool, typer.Option(help="Measure on the test split at the end.")] = True,
    record: Annotated[Path | None, typer.Option(help="Keep finished runs' records in this folder.")] = None,
    device: Annotated[
        str, typer.Option(help="cpu, cuda, cuda:N, mps, or auto: a CUDA card where there is one.")
    ] = "auto",
    track: Annotated[str, typer.Option(help="Show the curves in tensorboard or wandb, too, or none.")] = "none",
    quiet: Annotated[bool, typer.Option(help="No progress bars.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the statuses as JSON.")] = False,
) -> None:
    r"""Train recipes; a run that was stopped or killed continues where it stopped.

    \b
    empatheia train --list
    empatheia train gao2021/soft --size smoke
    """
    if lists:
        _list(recipes or [])
        return
    if not recipes:
        raise ConfigError("name a recipe, e.g. gao2021/soft; `empatheia train --list` shows all.")
    resolved = _resolved(recipes, size, set_ or [], seed or [None])

    check_tracker(track)
    lacking = check_before(resolved, out)
    for reason in lacking.values():
        say(f"left out: {reason}")
    where = choose_device(device)
    from empatheia_research.training.runner import (  # takes seconds: what is wrong is told before
        RunStatus,
        run_all,
        run_folder,
    )

    statuses = run_all(
        [recipe for place, recipe in enumerate(resolved) if place not in lacking],
        out,
        budget_minutes=budget,
        goes_on=len(resolved) > 1,
        show_progress=not quiet,
        evaluate=evaluate,
        device=where,
        track=track,
    )
    for place, reason in lacking.items():
        recipe = resolved[place]
        statuses.insert(place, RunStatus(recipe.name, run_folder(out, recipe), "failed", {}, reason))
    if record is not None:
        from empatheia_research.reports.results_page import keep

        for status in statuses:
            if status.is_finished:
                keep(status.folder, record)
    _tell(statuses, as_json)


def _tell(statuses: Sequence[RunStatus], as_json: bool) -> None:
    """Prints what became of the recipes; exits with 1 where one failed."""
    if as_json:
        print_json([_record(status) for status in statuses])
    else:
        for status in statuses:
            show("\n".join(_lines(status)))
    if failed := [status.recipe for status in statuses if status.state == "failed"]:
        say(f"error: {len(failed)} of {len(statuses)} recipes failed: {', '.join(failed)}.")
        raise typer.Exit(1)


def _list(folders: Sequence[Path]) -> None:
    """Prints the names of recipes and what each is.

    Raises:
        ConfigError: No recipe is in a folder that is named.
    """
    titles = recipe_titles()
    known = list(dict.fromkeys(name.partition("/")[0] for name in titles))
    wanted = [folder.as_posix().removeprefix("recipes/").strip("/") for folder in folders]
    if unknown := [name for name in wanted if name not in known]:
        raise ConfigError(
            f"no folder of recipes {unknown[0]!r}.{nearest(unknown[0], known)} There are: {', '.join(known)}."
        )
    chosen = {name: title for name, title in titles.items() if not wanted or name.partition("/")[0] in wanted}
    width = max(map(len, chosen))
    show("\n".join(f"{name:<{width}}  {title}" for name, title in chosen.items()))


def _resolved(
    files: Sequence[Path], size: str | None, overrides: list[str], seeds: Sequence[int | None]
) -> list[Recipe]:
    """The recipes at their sizes and seeds, in order; says which size is taken where none is named.

    Raises:
        ConfigError: There is no such recipe, or it is not valid.
    """
    sizes = {path: size or _default_size(path) for path in files}
    resolved = [load_recipe(path, size=sizes[path], overrides=overrides, seed=seed) for path in files for seed in seeds]
    for path, taken in sizes.items():
        if taken is not None and size is None:
            say(_taken(path, taken))
    return resolved


def _default_size(path: Path) -> str | None:
    """``cpu`` for a recipe that has it; None for one that says its own size, or has none but the published."""
    tree = read_recipe_tree(find_recipe(path))
    sizes = tree.get("sizes")
    return "cpu" if "size" not in tree and isinstance(sizes, dict) and sizes.get("cpu") is not None else None


def _taken(path: Path, size: str) -> str:
    """Which size is trained because none was named, and what the published one would be."""
    own, full = load_recipe(path, size=size), load_recipe(path, size="full")
    told = []
    for recipe, bound in ((own, "about"), (full, "at least")):
        hours = recorded_hours(recipe, path)
        told.append(
            f"{passes(recipe)}, {'time not measured' if hours is None else f'{bound} {hours:.1f} h on one core'}"
        )
    return f"{own.name}: taking size {size} ({told[0]}); the published size, --size full: {told[1]}."


def _record(status: RunStatus) -> dict[str, Any]:
    """What became of a recipe, as JSON; ``error`` only where there is one."""
    record = {"recipe": status.recipe, "folder": str(status.folder), "state": status.state, "record": status.metrics}
    return record | ({"error": status.error} if status.error else {})


def _lines(status: RunStatus) -> Iterator[str]:
    """What became of a recipe, then its stages with their losses."""
    yield f"{status.recipe}: {status.state} ({status.error or status.folder})"
    for stage, facts in status.metrics.get("stages", {}).items():
        losses = ", ".join(f"{k.removeprefix('eval_')} {v:.4f}" for k, v in facts["valid"].items())
        yield f"  {stage}: {facts['steps']} steps; valid {losses or 'not measured'}"
