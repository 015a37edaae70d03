"""``empatheia models``: which models are here, and their cards."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    help="List models and show their cards.",
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_TOLD = ("accuracy", "ppl_word", "bleu_nltk_4", "dist_corpus_2", "reccon_word_f1")
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_models(as_json: JsonOption = False) -> None:
    r"""List the bundled model and those in the folder EMPATHEIA_MODELS.

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


def _numbers(numbers: Mapping[str, Any]) -> str:
    chosen = [key for key in _TOLD if key in numbers] or list(numbers)[:4]
    return ", ".join(f"{key} {numbers[key]:.4g}" for key in chosen)
