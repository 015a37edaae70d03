"""``empatheia models train``, ``export``, ``pull``: models of ours trained, packed, and fetched from the hub."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from empatheia.cli.options import JsonOption
from empatheia.cli.output import print_json, say, show
from empatheia.errors import ConfigError, EmpatheiaError, MissingResourceError
from empatheia.listener.parts import PART_MODELS
from empatheia.resources import cache_dir, installed_model, models_root, resolve_model
from empatheia.resources.fetch import file_sha256
from empatheia.resources.quiet import quiet_loading
from empatheia_research.recipes.recipe import check_recipe_size, load_recipe
from empatheia_research.responders import RESPONDERS

if TYPE_CHECKING:
    from empatheia.listener.parts import PartModel


def train_models(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            help="understanding (everything), or emotion, intent, causes (both models), cause_spans, words, mechanisms,"
            " inferences, reaction.",
        ),
    ],
    size: Annotated[str, typer.Option(help="smoke, cpu or full.")] = "cpu",
    budget: Annotated[float | None, typer.Option(help="Stop after so many minutes; repeat to continue.")] = None,
    out: Annotated[Path | None, typer.Option(help="Parent of the run folders [default: runs in the cache].")] = None,
    force: Annotated[bool, typer.Option("--force", help="Also train what is already installed.")] = False,
    stand_in: Annotated[
        bool, typer.Option("--stand-in", help="With --size smoke: install the models, which are only for tests.")
    ] = False,
    quiet: Annotated[bool, typer.Option(help="No progress bars.")] = False,
    as_json: JsonOption = False,
) -> None:
    r"""Train the model of a part of the analysis, and install it where 'analyze --with' finds it.

    Runs the part's recipe (see recipes/); a stopped run continues. The corpora are looked for in
    EMPATHEIA_DATA; size smoke needs none and gives stand-ins for tests (--stand-in), which another size replaces and
    which never answer in respond and chat. The model goes to EMPATHEIA_MODELS, or to models in the cache. If one
    cannot be trained, the others still are.

    \b
    empatheia models train intent
    empatheia models train understanding --budget 120
    """
    from empatheia_research.training.install import EVERYTHING, models_named

    chosen = models_named(names)
    check_recipe_size(size)
    if size == "smoke" and not stand_in:
        raise ConfigError(
            "size smoke makes stand-ins that know nothing: add --stand-in to install them for a test, or take size cpu."
        )
    keeps_bundled = size == "smoke" and not force and set(names) <= set(EVERYTHING)
    deadline = None if budget is None else time.monotonic() + 60.0 * budget
    rows: list[dict[str, str]] = []
    code = 0
    for model in chosen:
        try:
            rows.append(_made(model, size, out, deadline, force, quiet, keeps_bundled))
        except EmpatheiaError as error:
            if len(chosen) == 1:
                raise
            code = code or error.exit_code
            rows.append({"model": model.name, "state": "failed", "folder": "", "error": str(error)})
            say(f"{model.name}: {error}")
    if as_json:
        print_json(rows)
    else:
        for row in rows:
            show(f"{row['model']}: {row['state']}{' in ' + row['folder'] if row['folder'] else ''}")
    if any(row["state"] in ("paused", "not started") for row in rows):
        say("The time is up; repeat the command to continue.")
    raise typer.Exit(code)


def _made(
    model: PartModel,
    size: str,
    out: Path | None,
    deadline: float | None,
    force: bool,
    quiet: bool,
    keeps_bundled: bool,
) -> dict[str, str]:
    """Makes and installs one model, and says how that ended: ``model``, ``state`` and ``folder``."""
    from empatheia_research.training.install import (
        answered_by_listener,
        check_start,
        install_index,
        install_run,
        is_made,
        recipe_file,
    )

    row = {"model": model.name, "state": "installed", "folder": ""}
    if is_made(model.name, size) and not force:
        return {**row, "state": "installed already", "folder": str(models_root() / model.name)}
    if keeps_bundled and answered_by_listener(model):
        return {**row, "state": "left to the bundled listener, which is better than a smoke model"}
    if deadline is not None and time.monotonic() >= deadline:
        return {**row, "state": "not started"}
    if not model.recipe:
        say(f"{model.name}: building an index {'of the self-written tuples' if size == 'smoke' else 'of ATOMIC'}")
        with quiet_loading():
            folder, notes = install_index(size, model.name)
        for note in notes:
            say(f"{model.name}: {note}")
        return {**row, "folder": str(folder)}
    recipe = load_recipe(recipe_file(model.recipe), size=size)
    check_start(model, recipe)
    say(f"{model.name}: training {model.recipe} at size {size}")
    from empatheia_research.training.runner import run

    with quiet_loading():
        status = run(recipe, out or cache_dir() / "runs", deadline=deadline, show_progress=not quiet)
    if status.state == "paused":
        return {**row, "state": "paused", "folder": str(status.folder)}
    return {**row, "folder": str(install_run(status.folder, model.name))}


def export_models(
    archive: Annotated[Path, typer.Argument(help="File to write: .tar, .tar.gz or .tgz; .json for only the list.")],
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME...",
            help="Installed or bundled models, NAME=FOLDER or NAME=RUN; none = all that are installed.",
        ),
    ] = None,
    key: Annotated[Path | None, typer.Option(help="PEM file of an Ed25519 private key to sign with.")] = None,
    as_json: JsonOption = False,
) -> None:
    r"""Pack models into one archive that others install by 'models get'; the same models give the same archive.

    \b
    empatheia models export lab-models.tar.gz intent reaction --key lab-private.pem
    empatheia models export lab-models.tar.gz intent=runs/meed2/emotion_intent/cpu-seed1024
    """
    from empatheia_research.training.model_archive import named_models, pack_models, write_list

    models = named_models(names or ())
    if archive.suffix == ".json":
        if key is not None:
            raise ConfigError("a list alone is not signed: leave --key out, or write an archive.")
        packed = write_list(models, archive)
    else:
        packed = pack_models(models, archive, key)
    checksum = file_sha256(archive)
    if as_json:
        print_json({"archive": str(archive), "sha256": checksum, **packed.model_dump(mode="json")})
        return
    for model in packed.models:
        size = f"{model.size / 1e6:.1f} MB, {len(model.files)} files"
        show(f"{model.name}: {model.title}, {size}; licence: {model.licence}")
    show(f"{archive}: SHA-256 {checksum}{', signed' if key is not None else ''}")


def pull_model(
    name: Annotated[str, typer.Argument(help="Hub id such as FacebookAI/roberta-base, a model folder, or a run's.")],
    as_: Annotated[
        str | None,
        typer.Option(
            "--as", metavar="MODEL", help="Install it as a part's model (intent ...) or a system's (moel ...)."
        ),
    ] = None,
) -> None:
    r"""Fetch a model from the hub; with --as also check that it answers, and install it for a part or a system.

    'respond --system NAME' uses the model installed for a system. No weights are published for the parts of the
    analysis; 'models train' makes them.

    \b
    empatheia models pull FacebookAI/roberta-base
    empatheia models pull runs/meed2/emotion_intent/cpu-seed1024 --as intent
    empatheia models pull runs/gao2021/soft/cpu-seed1024 --as cause_gated
    """
    from empatheia_research.training.install import install_folder, install_system

    own = {model.name: model for model in PART_MODELS}
    if name in own and not Path(name).is_dir() and installed_model(name) is None:
        raise MissingResourceError(f"no weights are published for {name!r}. Make it with: {own[name].remedy}")
    if as_ is not None and as_ == name:
        raise ConfigError(f"--as {as_!r} is the model's own name; name a folder or a hub id to install as {as_!r}.")
    if as_ is None:
        folder = resolve_model(name)
    else:
        folder = install_system(name, as_) if as_ in RESPONDERS and as_ not in own else install_folder(name, as_)
    show(f"{as_ or name}: {folder}")
