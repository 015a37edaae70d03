"""``empatheia models``: which models are here, their cards, and how to get more."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from empatheia.errors import ConfigError, MissingResourceError

app = typer.Typer(
    help="List models, show their cards, train or fetch the models of an analysis.",
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_TOLD = ("accuracy", "ppl_word", "bleu_nltk_4", "dist_corpus_2", "reccon_word_f1")
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_models(as_json: JsonOption = False) -> None:
    r"""List the bundled model, those in the folder EMPATHEIA_MODELS, and those installed in the cache.

    Numbers are those of each model's card; an entry with a fault says which.
    """
    from empatheia.cli.output import print_json, print_lines
    from empatheia.listener.catalogue import known_models

    entries = known_models()
    if as_json:
        print_json([entry.to_dict() for entry in entries])
        return
    if not entries:
        print_lines([[("no model here: train one with 'empatheia train', or set EMPATHEIA_MODELS to a folder.", "")]])
        return
    rows = [("name", "system", "licence", "size", "where", "numbers")]
    rows += [
        (e.name, e.system, e.licence, f"{e.megabytes:.1f} MB", str(e.folder), e.fault or _numbers(e.numbers))
        for e in entries
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    for place, row in enumerate(rows):
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)]
        print_lines([[("  ".join([*cells, row[-1]]), "dim" if not place else "")]])


@app.command("show")
def show_model(
    name: Annotated[str, typer.Argument(help="Name or folder of a model.")], as_json: JsonOption = False
) -> None:
    r"""Show a model's card.

    \b
    empatheia models show default
    """
    from empatheia.cli.output import print_json, print_lines
    from empatheia.listener.catalogue import describe_model, find_model

    entry = describe_model(find_model(name), name)
    card = Path(entry.folder) / "README.md"
    if as_json:
        print_json(entry.to_dict())
    elif card.is_file():
        typer.echo(card.read_text(encoding="utf-8", errors="replace").rstrip())
    else:
        facts: dict[str, Any] = {"name": entry.name, "system": entry.system, "licence": entry.licence}
        facts |= {"size": f"{entry.megabytes:.1f} MB", "folder": entry.folder, "card": "none (no README.md)"}
        facts |= {"numbers": _numbers(entry.numbers)} if entry.numbers else {}
        facts |= {"fault": entry.fault} if entry.fault else {}
        print_lines([(f"{key:<9}", "dim"), (str(value), "")] for key, value in facts.items())


@app.command("train")
def train_models(
    names: Annotated[
        list[str],
        typer.Argument(help="emotion, intent, causes (both models), cause_spans, words, mechanisms, reaction, or all."),
    ],
    size: Annotated[str, typer.Option(help="smoke, cpu or full.")] = "cpu",
    budget: Annotated[Optional[float], typer.Option(help="Stop after so many minutes; call again to go on.")] = None,  # noqa: UP045
    out: Annotated[Optional[Path], typer.Option(help="Parent of the run folders [default: runs in the cache].")] = None,  # noqa: UP045
    force: Annotated[bool, typer.Option("--force", help="Also what is installed already.")] = False,
    quiet: Annotated[bool, typer.Option(help="No progress bars.")] = False,
    as_json: JsonOption = False,
) -> None:
    r"""Train the model behind a part of an analysis, and install it where 'analyze --with' finds it.

    Runs the part's recipe (see recipes/); a run that was stopped goes on. The model goes to EMPATHEIA_MODELS, or to
    models in the cache.

    \b
    empatheia models train intent
    empatheia models train all --budget 120
    """
    import time

    from empatheia.cli.output import print_json, say
    from empatheia.config import load_recipe
    from empatheia.listener.installing import install_run, models_named, recipe_file
    from empatheia.resources import cache_dir, models_root
    from empatheia.training.runner import run

    chosen = models_named(names)
    deadline = None if budget is None else time.monotonic() + 60.0 * budget
    rows = []
    for model in chosen:
        target = models_root() / model.name
        if target.is_dir() and not force:
            rows.append({"model": model.name, "state": "installed already", "folder": str(target)})
            continue
        if deadline is not None and time.monotonic() >= deadline:
            rows.append({"model": model.name, "state": "not started", "folder": ""})
            continue
        recipe = load_recipe(recipe_file(model.recipe), size=size)
        say(f"{model.name}: training {model.recipe} at size {size}")
        status = run(recipe, out or cache_dir() / "runs", deadline=deadline, show_progress=not quiet)
        if status.state == "paused":
            rows.append({"model": model.name, "state": "paused", "folder": str(status.folder)})
            continue
        folder = install_run(status.folder, model.name)
        rows.append({"model": model.name, "state": "installed", "folder": str(folder)})
    if as_json:
        print_json(rows)
        return
    for row in rows:
        typer.echo(f"{row['model']}: {row['state']}{' in ' + row['folder'] if row['folder'] else ''}")
    if any(row["state"] in ("paused", "not started") for row in rows):
        say("The time is up; the same command goes on.")


@app.command("pull")
def pull_model(
    name: Annotated[str, typer.Argument(help="Hub id such as FacebookAI/roberta-base, or a model folder.")],
    as_: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--as", metavar="MODEL", help="Install it as the model of a part, e.g. intent."),
    ] = None,
) -> None:
    r"""Fetch a model from the hub; with --as also check that it answers a part, and install it for that part.

    No weights are published for the parts of an analysis; 'models train' makes them.

    \b
    empatheia models pull FacebookAI/roberta-base
    empatheia models pull runs/meed2/emotion_intent/cpu-seed1024/checkpoint --as intent
    """
    from empatheia.listener.installing import install_folder
    from empatheia.listener.parts import PART_MODELS
    from empatheia.resources import installed_model, resolve_model

    own = {model.name: model for model in PART_MODELS}
    if name in own and not Path(name).is_dir() and installed_model(name) is None:
        raise MissingResourceError(f"no weights are published for {name!r}. Make it with: {own[name].remedy}")
    if as_ is not None and as_ == name:
        raise ConfigError(f"--as {as_!r} is the model's own name; name a folder or a hub id to install as {as_!r}.")
    folder = resolve_model(name) if as_ is None else install_folder(name, as_)
    typer.echo(f"{as_ or name}: {folder}")


def _numbers(numbers: Mapping[str, Any]) -> str:
    chosen = [key for key in _TOLD if key in numbers] or list(numbers)[:4]
    return ", ".join(f"{key} {numbers[key]:.4g}" for key in chosen)
