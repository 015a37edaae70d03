"""``empatheia analyze``: emotions and cause words of texts, of stdin, or of a file with thousands of rows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from empatheia.cli.analyzed_rows import ROWS_PER_CHUNK, analyzed, plain_record
from empatheia.cli.opening import analyst
from empatheia.cli.rows import aimed, check_output, columns_given, count_lines, file_given
from empatheia.cli.tally import Tally
from empatheia.errors import ConfigError, DataError
from empatheia.files.conversations import read_texts
from empatheia.files.rows import Row, read_rows, told
from empatheia.files.talks import Notes
from empatheia.text.inputs import up_to

if TYPE_CHECKING:
    from empatheia.cli.results import ResultFile
    from empatheia.dialogue import Understanding
    from empatheia.listener import Listener

WITH_HELP = "Ask for emotion, intent, causes, words, mechanisms, inferences, reaction (comma-separated) or all."
ENGINE_HELP = "dask: a folder or file of any size, in several processes, into Parquet files in the folder --out."
TARGET_HELP = "Say it of this turn, counted from 1, in place of the last; later turns are not read."
BATCH_HELP = "Most texts read together: 64 is 2 to 3 times as fast; 1 = the same to the last digit in any company."
FORMULAS_HELP = "In CSV, leave cells that a spreadsheet would compute; else an apostrophe goes before = + - @."
Sink = Callable[[Row, "Understanding | str"], None]


def analyze(
    texts: Annotated[list[str], typer.Argument(metavar="TEXT...|-|FILE", help="Texts, '-' for stdin, or one file.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line on stdout.")] = False,
    column: Annotated[str | None, typer.Option(help="CSV column or JSON field with the text.")] = None,
    model: Annotated[
        str | None, typer.Option(help="Name or folder of a model; without it the default listener.")
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help=BATCH_HELP)] = 1,
    out: Annotated[
        Path | None, typer.Option(help="Write .jsonl or .csv here; the file appears when it is complete.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="With --out: continue a stopped run.")] = False,
    with_: Annotated[str | None, typer.Option("--with", metavar="PARTS", help=WITH_HELP)] = None,
    model_for: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(metavar="NAME=FOLDER", help="With --with: the model of a part; repeat for several."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write a self-contained page; without --with it has emotion and causes.")
    ] = None,
    speaker: Annotated[str | None, typer.Option(help="Who is the speaker of conversations; all others listen.")] = None,
    target: Annotated[int | None, typer.Option(min=1, help=TARGET_HELP)] = None,
    formulas: Annotated[bool, typer.Option("--formulas", help=FORMULAS_HELP)] = False,
    engine: Annotated[str, typer.Option(metavar="plain|dask", help=ENGINE_HELP)] = "plain",
    workers: Annotated[int, typer.Option(min=0, help="With --engine dask: processes; 0 = this one.")] = 2,
    scheduler: Annotated[str | None, typer.Option(help="With --engine dask: a cluster, tcp://HOST:PORT.")] = None,
) -> None:
    r"""Find what is felt and which words caused it.

    A file is CSV/TSV (a column text, utterance, ...), JSON or JSON lines (strings, objects with text or turns,
    exports of chats) or plain text, one item a line. A bad row is reported with its number and the others are
    processed; the exit code is 1 only if no row could be used.

    With --with further parts are analysed, turn by turn, and plain text may be a chat ("A: ...", "B: ...").

    \b
    empatheia analyze "My dog died last week."
    printf 'I passed!\n' | empatheia analyze --json -
    empatheia analyze posts.csv --column body --out posts.emotions.csv --resume
    empatheia analyze chat.txt --with emotion,causes,words --html report.html
    empatheia analyze chat.jsonl --target 3
    empatheia analyze posts/ --engine dask --workers 8 --out posts.emotions
    """
    if engine != "plain" or scheduler is not None:
        unused = {"--with": with_, "--html": html, "--json": as_json, "--model-for": model_for, "--speaker": speaker}
        unused["--target"] = target
        _by_shards(texts, engine, out, model, column, batch_size, workers, scheduler, unused)
        return
    path = file_given(texts)
    _check_places(path, out, html, resume)
    if with_ is not None or html is not None:
        from empatheia.cli.asking import ask

        places = {"as_json": as_json, "out": out, "html": html, "resume": resume, "keeps_formulas": formulas}
        about = {"models": model_for or (), "listener": model, "column": column, "speaker": speaker, "target": target}
        ask(texts, with_, batch_size=batch_size, **about, **places)
        return
    _refuse({"--model-for": model_for, "--speaker": speaker if path is None and texts != ["-"] else None})
    if texts != ["-"] and path is None and out is None:
        _check_target(texts, target)
        _show_texts(_loaded(analyst(model)), texts, as_json, batch_size)
        return
    first, rows, total = _first_of_rows(texts, path, column, speaker, target)
    if out is not None:
        from empatheia.cli.results import ResultFile

        ResultFile(out)  # says what is wrong with the place
    place = analyst(model)
    _run(_loaded(place), chain(first, rows), total, as_json, batch_size, out, resume, place, formulas)


def _refuse(given: Mapping[str, object]) -> None:
    """Raises ConfigError for an option that has no meaning without --with."""
    for name, value in given.items():
        if value:
            raise ConfigError(f"{name} needs --with PARTS, e.g. --with emotion,words.")


def _check_target(texts: Sequence[str], target: int | None) -> None:
    """Raises DataError where a text, which is one turn, has no such turn."""
    if target is not None:
        for text in texts:
            up_to(text, target, first=1)


def _first_of_rows(
    texts: list[str], path: Path | None, column: str | None, speaker: str | None, target: int | None
) -> tuple[list[Row], Iterator[Row], int | None]:
    """The first row, the others, and how many there are: what is missing is reported before a model is loaded."""
    rows, total = _rows(texts, path, column, speaker)
    rows = rows if target is None else aimed(rows, target)
    first = list(islice(rows, 1))
    if not first:
        raise DataError(f"{'stdin' if texts == ['-'] else texts[0]} holds no rows; nothing to analyse.")
    return first, rows, total


def _check_places(path: Path | None, out: Path | None, html: Path | None, resume: bool) -> None:
    """Whether results can be written where they shall be.

    Raises:
        ConfigError: They cannot, or there is nothing to resume.
    """
    if resume and out is None:
        raise ConfigError("--resume needs --out FILE: without a file there is nothing to continue.")
    for place in (out, html):
        if place is not None:
            check_output(place, [path, html if place is out else None])


def _rows(
    texts: list[str], path: Path | None, column: str | None, speaker: str | None
) -> tuple[Iterator[Row], int | None]:
    """The rows of the input, and how many there are if that is known."""
    from empatheia.cli.output import say

    if texts == ["-"]:
        return read_texts(sys.stdin.buffer, column, speaker, say), None
    if path is not None:
        notes = Notes()
        rows = told(read_rows(path, column, speaker, notes=notes), notes, say)
        return _told_if_chat(rows), count_lines(path)
    return iter([Row(number, text) for number, text in enumerate(texts, 1)]), len(texts)


def _told_if_chat(rows: Iterator[Row]) -> Iterator[Row]:
    """The same rows; if they look like turns of conversations, it is said that each is read by itself."""
    from empatheia.cli.output import say
    from empatheia.files.conversations import CONVERSATION_COLUMNS, ROLE_COLUMNS
    from empatheia.files.transcripts import PROBE_LINES, is_transcript

    first = list(islice(rows, PROBE_LINES))
    names = {name for row in first[:1] for cells in row.cells for name in cells}
    are_turns = not names.isdisjoint(CONVERSATION_COLUMNS) and not names.isdisjoint(ROLE_COLUMNS)
    if are_turns or (not names and is_transcript([str(row.item) for row in first if isinstance(row.item, str)])):
        say("this looks like a chat, and each line is read by itself; as conversations: --with emotion,words")
    return chain(first, rows)


def _by_shards(
    texts: list[str],
    engine: str,
    out: Path | None,
    model: str | None,
    column: str | None,
    batch_size: int,
    workers: int,
    scheduler: str | None,
    unused: dict[str, Any],
) -> None:
    """``--engine dask``; raises ConfigError for what does not go with it."""
    from empatheia.cli.output import say
    from empatheia.cli.progress import told_shards

    if engine not in ("plain", "dask"):
        raise ConfigError(f"--engine is {engine!r}; accepted: plain, dask.")
    if engine == "plain":
        raise ConfigError("--scheduler needs --engine dask.")
    if given := [name for name, value in unused.items() if value]:
        raise ConfigError(f"--engine dask has no {', '.join(given)}; its result is Parquet with every answer.")
    if len(texts) != 1 or not Path(texts[0]).exists():
        raise ConfigError(f"--engine dask takes one folder or file that is there; found {', '.join(texts)[:200]!r}.")
    if out is None or out.is_file():
        raise ConfigError("--engine dask needs --out FOLDER, which may be there or not.")
    place = analyst(model)
    from empatheia.cli.analyze_shards import analyze_files

    options = {"model": place, "column": column, "batch_size": batch_size, "workers": workers, "scheduler": scheduler}
    found = analyze_files(Path(texts[0]), out, **options, say=say, tell=told_shards())
    for problem in found["problems"][:10]:
        say(problem)
    say(f"{found['rows']:,} rows of {found['files']:,} files, {found['bad']:,} bad; written to {out}")


def _loaded(place: str) -> Listener:
    from empatheia.listener import Listener

    return Listener.load(place)


def _show_texts(listener: Listener, texts: list[str], as_json: bool, batch_size: int) -> None:
    from empatheia.cli.output import print_json, print_lines, understanding_lines

    for place, understanding in enumerate(listener.analyze(texts, batch_size=batch_size)):
        if as_json:
            print_json(understanding.to_dict())
            continue
        print_lines([*([[("", "")]] if place else []), *understanding_lines(understanding)])


def _run(
    listener: Listener,
    rows: Iterator[Row],
    total: int | None,
    as_json: bool,
    batch_size: int,
    out: Path | None,
    resume: bool,
    place: str,
    keeps_formulas: bool,
) -> None:
    """Analyses rows chunk by chunk, in constant memory."""
    from empatheia.cli.output import print_json, print_lines, row_line, say
    from empatheia.cli.results import ResultFile, model_mark
    from empatheia.listener.progress import progress_bar
    from empatheia.listener.tables import CSV_COLUMNS, beside_file, flat
    from empatheia.text.inputs import as_dialogue

    tally, file = Tally(), None
    with ExitStack() as stack:
        first = next(rows)
        rows, given = chain([first], rows), columns_given(first, out)
        if out is not None:
            table = beside_file(given, CSV_COLUMNS, lambda record: [flat(record)])
            file = stack.enter_context(ResultFile(out, resume, *table, keeps_formulas=keeps_formulas))
            _check_made(file, listener.name)
            file.settle({"model": model_mark(place)})
            if file.n_done:
                tally.n_good = sum(1 for _ in file.finished(rows, as_dialogue))
                say(f"continuing after row {file.n_done:,} of {file.partial}")
        keep = file.write if file is not None else print_json if as_json else None
        advance = stack.enter_context(progress_bar(total, file.n_done if file else 0))
        while chunk := list(islice(rows, ROWS_PER_CHUNK)):
            for row, result in analyzed(listener, chunk, batch_size, advance):
                tally.add(row.number, result if isinstance(result, str) else None)
                if keep is not None:
                    keep(plain_record(row, result, given))
                elif not isinstance(result, str):
                    print_lines([row_line(row.number, result)])
            if file is not None:
                file.flush()
    tally.tell([f"written to {out}"] if out is not None else [])


def _check_made(file: ResultFile, model: str) -> None:
    """Whether a partial result was made by the same model.

    Raises:
        DataError: It was not.
    """
    last = file.last_good or {}
    if "models" in last:
        raise DataError(f"{file.partial} was made with --with; give it again. {file.remedy}")
    if last.get("model", model) != model:
        raise DataError(f"{file.partial} was made with the model {last['model']!r}, not {model!r}. {file.remedy}")
