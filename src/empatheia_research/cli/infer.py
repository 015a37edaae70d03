"""``empatheia infer``: what is plausibly true besides what speakers say, computed once into a file; its index."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from empatheia.cli.arguments import looks_like_file
from empatheia.cli.options import with_options
from empatheia.cli.output import print_json, say
from empatheia.errors import ConfigError, DataError
from empatheia.files.conversations import read_conversations, read_stream
from empatheia.records.dialogue import Dialogue, Turn
from empatheia.resources import models_root
from empatheia.text.inputs import as_conversation
from empatheia.text.readable import readable
from empatheia_research.corpora import CORPORA

if TYPE_CHECKING:
    from empatheia.files.rows import Row

INSTALLED = "inferences"  # the name under which `empatheia analyze` looks for the provider


class Search(StrEnum):
    """How the nearest heads are found."""

    exact = "exact"
    approximate = "approximate"


class Form(StrEnum):
    """How turns and table heads meet."""

    plain = "plain"
    person = "person"


@dataclass(frozen=True)
class CorpusOptions:
    """Which conversations are read."""

    split: Annotated[str, typer.Option(help="Splits of a corpus, comma-separated.")] = "train,valid,test"
    column: Annotated[str | None, typer.Option(help="CSV column or JSON field with the text.")] = None
    speaker: Annotated[str | None, typer.Option(help="Name of the speaker in a chat.")] = None


@dataclass(frozen=True)
class LookupOptions:
    """How one provider looks up or asks."""

    minimum: Annotated[float | None, typer.Option(help="Look-up: cosine below which a head does not count (0.4).")] = (
        None
    )
    search: Annotated[Search | None, typer.Option(help="Look-up: exact or approximate.")] = None
    prompt: Annotated[str | None, typer.Option(help="Generation: form of the question, '{head} {relation} [GEN]'.")] = (
        None
    )


@dataclass(frozen=True)
class IndexOptions:
    """The index to make, in place of a cache."""

    build_index: Annotated[
        str | None,
        typer.Option(
            metavar="TUPLES",
            help="Make an index of ATOMIC instead: a .tsv file, a folder of them, atomic (in EMPATHEIA_DATA), sample.",
        ),
    ] = None
    encoder: Annotated[
        str | None, typer.Option(help="Of the index: encoder folder or name (minilm); 'words' needs no weights.")
    ] = None
    index: Annotated[
        Path | None, typer.Option(help="With --build-index: its folder; default where `empatheia analyze` finds it.")
    ] = None
    form: Annotated[Form, typer.Option(help="With --build-index: heads in plain words, or turns as PersonX.")] = (
        Form.plain
    )
    approximate: Annotated[
        bool, typer.Option("--approximate", help="With --build-index: also a graph for approximate search.")
    ] = False


@with_options
def infer(
    *,
    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="A row file (.jsonl, .csv, .txt), '-' for stdin, or the name of a corpus."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Cache file to write, .jsonl.")] = None,
    provider: Annotated[
        str, typer.Option(help="Index folder, folder or name of an encoder-decoder (COMET), or cache file.")
    ] = INSTALLED,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a stopped run.")] = False,
    corpus: CorpusOptions,
    relations: Annotated[str, typer.Option(help="Relations or groups, comma-separated; all: the 11.")] = "all",
    n: Annotated[int, typer.Option("--n", "-n", min=1, help="Most inferences a relation.")] = 5,
    head: Annotated[str, typer.Option(help="Text asked about: turn, causes, last_cause, each, context.")] = "turn",
    causes: Annotated[str | None, typer.Option(help="Model that finds the causes, for heads that are causes.")] = None,
    lookup: LookupOptions,
    batch_size: Annotated[int, typer.Option(min=1, help="Rows in one forward pass, at most.")] = 32,
    device: Annotated[str, typer.Option(help="Where models run, e.g. cpu or cuda.")] = "cpu",
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many conversations.")] = None,
    making: IndexOptions,
) -> None:
    r"""Ask a commonsense provider about every speaker turn and keep the answers in a file; make the provider's index.

    The file can be used as a provider: `empatheia analyze --model-for inferences=cache.jsonl` reads it. A stopped run
    continues with --resume; no turn is lost or written twice.

    \b
    empatheia infer --build-index atomic
    empatheia infer dialogues.jsonl --out cache.jsonl
    empatheia infer empathetic_dialogues --provider comet-atomic-2020-bart --device cuda --out ed.jsonl --resume
    """
    if making.build_index is not None:
        if file is not None or out is not None:
            raise ConfigError("--build-index makes an index only; run the command again to fill a cache.")
        _index(making, batch_size, device)
        return
    if file is None or out is None:
        raise ConfigError("give FILE and --out CACHE.jsonl, or --build-index TUPLES.")
    named = {**vars(lookup), "encoder": making.encoder}
    settings: dict[str, Any] = {
        name: str(value) if isinstance(value, Search) else value for name, value in named.items() if value is not None
    }
    dialogues = _dialogues(file, corpus.split, corpus.column, corpus.speaker, limit)
    first = next(dialogues, None)  # a missing file is told before a model is loaded
    if first is None:
        raise DataError(f"{file} holds no conversation that can be read; nothing to ask about.")
    from empatheia_research.understanding.inferences.cache import fill_cache
    from empatheia_research.understanding.inferences.turns import InferencesOfTurns

    names = "affect,behaviour,physical,events" if relations == "all" else relations
    component = InferencesOfTurns.load(
        provider, head=head, causes=causes, relations=names, n=n, device=device, **settings
    )
    turns = component.asked(chain([first], dialogues), batch_size)
    with _progress("turns", None) as advance:
        report = fill_cache(
            component.provider,
            turns,
            out,
            relations=component.relations,
            n=n,
            resume=resume,
            batch_size=batch_size,
            heads={"head": head, "no_cause": component.no_cause, "causes": getattr(component.causes, "name", None)},
            progress=advance,
        )
    record = {"provider": component.provider.name, **report.to_dict()}
    if without := component.report().get("turns without a cause"):
        record["turns_without_a_cause"] = without
    print_json(record)


def _index(making: IndexOptions, batch_size: int, device: str) -> None:
    tuples = str(making.build_index)
    from empatheia_research.corpora import atomic
    from empatheia_research.understanding.inferences.index import build_index

    if tuples == "sample":
        table = atomic.load("all", root=atomic.sample_root())
    else:
        table = atomic.load("all") if tuples == atomic.NAME else atomic.read(tuples)
    told = {problem.reason for problem in table.problems}  # the reader says these
    for note in table.notes:
        if note not in told:
            say(f"{tuples}: {note}")
    if unread := sum(problem.line > 0 for problem in table.problems):
        say(f"{tuples}: rows that cannot be read, left out: {unread:,}")
    place = making.index or models_root() / INSTALLED
    with _progress("heads", table.counts["heads"]) as advance:
        made = build_index(
            table,
            making.encoder or "minilm",
            place,
            form=making.form,
            approximate=making.approximate,
            batch_size=batch_size,
            device=device,
            progress=advance,
        )
    record = {"index": str(place), "encoder": made.encoder.name, "counts": made.meta["counts"]}
    print_json({**record, "left_out": _left_out(table.counts), "source": made.meta["source"]})


def _left_out(counts: Mapping[str, int]) -> dict[str, int]:
    """What the reader dropped or merged."""
    names = ("rows of other relations", "none tails", "duplicate rows", "empty heads or tails")
    return {name: counts[name] for name in names if counts.get(name)}


def _dialogues(
    file: str, split: str, column: str | None, speaker: str | None, limit: int | None
) -> Iterator[tuple[int, Dialogue]]:
    """Conversations with their row numbers, from 1; a row that cannot be read is told and left out."""
    if not looks_like_file(file) and file in CORPORA:
        names = [name.strip() for name in split.split(",") if name.strip()]
        corpus = (dialogue for name in names for dialogue in CORPORA.get(file)(name))
        yield from islice(enumerate(corpus, 1), limit)
        return
    for row in islice(_rows(file, column, speaker), limit):
        try:
            dialogue = _readable(row)
        except DataError as error:
            say(f"row {row.number}: {error}")
            continue
        yield row.number, dialogue


def _rows(file: str, column: str | None, speaker: str | None) -> Iterator[Row]:
    """Rows of a file, or of stdin.

    Raises:
        DataError: There is no such file.
    """
    if file == "-":
        return read_stream(sys.stdin.buffer, column, speaker, say)
    if not Path(file).is_file():
        raise DataError(
            f"no such file: {file}. Give a row file (.jsonl, .csv, .txt), '-' for stdin, or a corpus: "
            f"{', '.join(CORPORA.names())}."
        )
    return read_conversations(Path(file), column, speaker, say)


def _readable(row: Row) -> Dialogue:
    """The conversation of a row, its texts mended.

    Raises:
        DataError: There is none.
    """
    if row.error is not None or row.item is None:
        raise DataError(row.error or "is empty.")
    given = as_conversation(row.item)
    identity = given.id or ("" if row.id is None else str(row.id))
    return Dialogue(identity, tuple(Turn(turn.role, readable(turn.text)) for turn in given.turns))


@contextmanager
def _progress(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Gives ``advance(n)``; draws on stderr if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda n: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda n: bar.advance(task, n)
