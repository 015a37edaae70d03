"""``empatheia models list`` and ``show``: which models are here, and their cards; research joins what gets more."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from empatheia.cli import load_target
from empatheia.cli.opening import SYSTEMS
from empatheia.cli.options import JsonOption, group
from empatheia.cli.output import print_json, print_lines, show
from empatheia.errors import MissingDependencyError
from empatheia.resources.catalogue import describe_model, find_model, known_models

app = group("List models, show their cards, train or fetch the models of an analysis.")
_TOLD = ("accuracy", "ppl_word", "bleu_nltk_4", "dist_corpus_2", "reccon_word_f1")


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


def _known_systems(results: Path | None, runs: Path) -> list[Any]:
    """Lines of research's ``known_systems``; none where research is not installed."""
    try:
        return load_target(SYSTEMS).known_systems(results, runs)
    except MissingDependencyError:
        return []


def _beside(system: Any) -> str:
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


def _numbers(numbers: Mapping[str, Any]) -> str:
    chosen = [key for key in _TOLD if key in numbers] or list(numbers)[:4]
    return ", ".join(f"{key} {numbers[key]:.4g}" for key in chosen)
