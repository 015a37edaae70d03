"""Options that several commands share, as frozen dataclasses, and what makes a command's options of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

HELP_FLAGS = {"help_option_names": ["-h", "--help"]}
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ModelOption = Annotated[
    str | None, typer.Option(help="Answer with this model only, by name or folder. Without it: the default listener.")
]
CountryOption = Annotated[
    str | None,
    typer.Option(metavar="XX", help="Country of the help lines, two letters, e.g. GB [guessed from the locale]."),
]
ResourcesOption = Annotated[
    Path | None,
    typer.Option(
        "--resources", metavar="FILE", help="YAML file with your own help lines, instead of the shipped ones."
    ),
]


def group(help: str) -> typer.Typer:
    """A command that has commands of its own."""
    return typer.Typer(
        help=help, add_completion=False, rich_markup_mode=None, no_args_is_help=True, context_settings=HELP_FLAGS
    )


class Shown(StrEnum):
    """What to print besides the reply."""

    reply = "reply"
    analysis = "analysis"


@dataclass(frozen=True)
class CareOptions:
    """The check in front of the answers; see :mod:`empatheia.cli.guarding`."""

    no_care: Annotated[
        bool,
        typer.Option("--no-care", help="Answer without the check for danger; prints a warning and marks the answer."),
    ] = False
    country: CountryOption = None
    resources: ResourcesOption = None


@dataclass(frozen=True)
class WritingOptions:
    """How a reply is written and printed."""

    strategy: Annotated[str, typer.Option(help="greedy, beam or sample.")] = "greedy"
    seed: Annotated[int, typer.Option(help="Seed of sampling.")] = 0
    show: Annotated[Shown, typer.Option(help="analysis: also emotions and causes.")] = Shown.reply


@dataclass(frozen=True)
class WhoOptions:
    """Who answers; see :mod:`empatheia.cli.opening`."""

    model: ModelOption = None
    system: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Answer with the best checkpoint of this system; see 'empatheia models list'."
        ),
    ] = None
    runs: Annotated[
        Path | None, typer.Option(metavar="DIR", help="With --system: run folders to look in; without it ./runs.")
    ] = None
    endpoint: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="With --system language_model: an OpenAI-compatible endpoint [EMPATHEIA_BASE_URL]."
        ),
    ] = None
    llm: Annotated[str | None, typer.Option(metavar="NAME", help="Name under which the endpoint serves the model.")] = (
        None
    )
    folder: Annotated[
        str | None, typer.Option(metavar="DIR", help="With --system language_model: a local model by folder or name.")
    ] = None
    condition: Annotated[
        str | None,
        typer.Option(metavar="PARTS", help="Add our analysis to the prompt: emotion, causes, intent, all or none."),
    ] = None
    key_env: Annotated[str, typer.Option(help="Environment variable that holds the endpoint's key.")] = (
        "EMPATHEIA_API_KEY"
    )
    price_in: Annotated[float | None, typer.Option(help="Price of a million prompt tokens.")] = None
    price_out: Annotated[float | None, typer.Option(help="Price of a million completion tokens.")] = None


@dataclass(frozen=True)
class SessionOptions:
    """Everything that ``respond`` and ``chat`` open a session with; see :mod:`empatheia.cli.session`."""

    focus: Annotated[
        str | None,
        typer.Option(
            metavar="WORDS|auto|off",
            help="Words of the last turn that the reply must be about, separated by commas; auto = find them.",
        ),
    ] = None
    listener_file: Annotated[
        Path | None,
        typer.Option("--listener", metavar="FILE", help="A listener of five steps; see docs/howto/listener.md."),
    ] = None
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting of a listener's YAML file: express.focus.alpha=6, express.decoding.top_k=50, ..."
            " Repeatable.",
        ),
    ] = None
    who: WhoOptions = field(default_factory=WhoOptions)
    care: CareOptions = field(default_factory=CareOptions)


@dataclass(frozen=True)
class AnalyzeOptions:
    """What ``analyze`` takes; see :mod:`empatheia.cli.analyze` and, with parts, :mod:`empatheia.cli.asking`."""

    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line on stdout.")] = False
    column: Annotated[str | None, typer.Option(help="CSV column or JSON field with the text.")] = None
    model: Annotated[str | None, typer.Option(help="Name or folder of a model; without it the default listener.")] = (
        None
    )
    batch_size: Annotated[
        int,
        typer.Option(
            min=1,
            help="Most texts read together: 64 is 2 to 3 times as fast; 1 = the same to the last digit in any company.",
        ),
    ] = 1
    out: Annotated[
        Path | None, typer.Option(help="Write .jsonl or .csv here; the file appears when it is complete.")
    ] = None
    resume: Annotated[bool, typer.Option("--resume", help="With --out: continue a stopped run.")] = False
    parts: Annotated[
        str | None,
        typer.Option(
            "--with",
            metavar="PARTS",
            help="Ask for emotion, intent, causes, words, mechanisms, inferences, reaction (comma-separated) or all.",
        ),
    ] = None
    model_for: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=FOLDER", help="With --with: the model of a part; repeat for several."),
    ] = None
    html: Annotated[
        Path | None, typer.Option(help="Write a self-contained page; without --with it has emotion and causes.")
    ] = None
    speaker: Annotated[str | None, typer.Option(help="Who is the speaker of conversations; all others listen.")] = None
    target: Annotated[
        int | None,
        typer.Option(
            min=1, help="Say it of this turn, counted from 1, in place of the last; later turns are not read."
        ),
    ] = None
    formulas: Annotated[
        bool,
        typer.Option(
            "--formulas",
            help="In CSV, leave cells that a spreadsheet would compute; else an apostrophe goes before = + - @.",
        ),
    ] = False
    engine: Annotated[
        str,
        typer.Option(
            metavar="plain|dask",
            help="dask: a folder or file of any size, in several processes, into Parquet files in the folder --out.",
        ),
    ] = "plain"
    workers: Annotated[int, typer.Option(min=0, help="With --engine dask: processes; 0 = this one.")] = 2
    scheduler: Annotated[str | None, typer.Option(help="With --engine dask: a cluster, tcp://HOST:PORT.")] = None


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """The same command, whose parameters that are dataclasses are taken apart into one option a field.

    A field's annotation is what typer reads (``Annotated[str, typer.Option(...)]``); a field that is a dataclass is
    taken apart, too. Names are the command's own: no two fields may share one.
    """
    hints = get_type_hints(command, include_extras=True)
    taken = inspect.signature(command).parameters.values()
    found: list[inspect.Parameter] = []
    for own in taken:
        kind = hints[own.name]
        found += _options_of(kind) if is_dataclass(kind) else [_keyword(own.name, own.default, kind)]

    signature = inspect.Signature(found)

    @wraps(command)
    def run(**values: Any) -> None:
        given = signature.bind(**values)
        given.apply_defaults()
        command(**{own.name: _value(hints[own.name], own.name, given.arguments) for own in taken})

    run.__dict__["__signature__"] = signature
    run.__annotations__ = {own.name: own.annotation for own in found}
    return run


def _options_of(kind: Any) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    for own in fields(kind):
        if is_dataclass(hints[own.name]):
            yield from _options_of(hints[own.name])
        else:
            default = inspect.Parameter.empty if own.default is MISSING else own.default
            yield _keyword(own.name, default, hints[own.name])


def _keyword(name: str, default: object, kind: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _value(kind: Any, name: str, values: Mapping[str, Any]) -> Any:
    """A parameter of the command: as it was given, or a dataclass of what was given for its fields."""
    if not is_dataclass(kind):
        return values[name]
    hints: dict[str, Any] = get_type_hints(kind, include_extras=True)
    make: Any = kind
    return make(**{own.name: _value(hints[own.name], own.name, values) for own in fields(kind)})
