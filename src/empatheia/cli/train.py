"""``empatheia train``: recipes to run folders, within a time budget, resumable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from empatheia.cli.output import print_json, say, show
from empatheia.errors import ConfigError

if TYPE_CHECKING:
    from empatheia.config import Recipe
    from empatheia.training.runner import RunStatus


def train(
    recipes: Annotated[
        Optional[list[Path]],  # noqa: UP045
        typer.Argument(help="Recipe files, or names of recipes that come with empatheia; run in this order."),
    ] = None,
    lists: Annotated[
        bool,
        typer.Option("--list", help="Only list the recipes that come with empatheia; of the folders named, or all."),
    ] = False,
    size: Annotated[
        str | None, typer.Option(help="smoke, row, cpu or full. [default: the recipe's, else full]")
    ] = None,
    budget: Annotated[Optional[float], typer.Option(help="Stop after so many minutes; repeat to continue.")] = None,  # noqa: UP045
    out: Annotated[Path, typer.Option(help="Parent of the run folders.")] = Path("runs"),
    seed: Annotated[Optional[list[int]], typer.Option(help="Seed; repeat for several runs of each recipe.")] = None,  # noqa: UP045
    set_: Annotated[Optional[list[str]], typer.Option("--set", help="Override, e.g. model.dropout=0.2.")] = None,  # noqa: UP045
    evaluate: Annotated[bool, typer.Option(help="Measure on the test split at the end.")] = True,
    record: Annotated[Optional[Path], typer.Option(help="Keep finished runs' records in this folder.")] = None,  # noqa: UP045
    quiet: Annotated[bool, typer.Option(help="No progress bars.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the statuses as JSON.")] = False,
) -> None:
    r"""Train recipes; a run that was stopped or killed continues where it stopped.

    \b
    empatheia train --list
    empatheia train gao2021/soft --size smoke
    """
    from empatheia.config import load_recipe

    if lists:
        _list(recipes or [])
        return
    if not recipes:
        raise ConfigError("name a recipe, e.g. gao2021/soft; `empatheia train --list` shows all.")
    resolved = [
        load_recipe(path, size=size, overrides=set_ or [], seed=number)
        for path in recipes
        for number in (seed or [None])
    ]
    _check_corpus(resolved, out)
    from empatheia.training.runner import run_all  # takes seconds: what is wrong with a recipe is told before

    statuses = run_all(resolved, out, budget_minutes=budget, show_progress=not quiet, evaluate=evaluate)
    if record is not None:
        from empatheia.reports.results_page import keep

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
    from empatheia.config import recipe_titles
    from empatheia.registry import nearest

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


def _check_corpus(recipes: Sequence[Recipe], out: Path) -> None:
    """Whether the corpus of the only recipe is here; a list of recipes trains those that can be.

    Raises:
        MissingResourceError: It is not; says how to get it.
    """
    from empatheia.corpora import CORPORA, place_of
    from empatheia.errors import MissingResourceError

    corpus = str(getattr(recipes[0].data, "corpus", ""))
    is_begun = (out / recipes[0].name).is_dir()
    if len(recipes) == 1 and corpus in CORPORA and corpus != "own" and not is_begun and place_of(corpus) is None:
        raise MissingResourceError(
            f"the corpus {corpus!r} is not on this machine. Get it: empatheia data get {corpus}; or set EMPATHEIA_DATA"
            " to the folder of your corpora. To try the recipe without it: --size smoke."
        )


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
