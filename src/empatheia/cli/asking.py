"""``empatheia analyze --with``: everything the parts can say of conversations, shown, written, or as a page."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from empatheia.cli.opening import analyst
from empatheia.cli.output import say
from empatheia.cli.rows import aimed, answer_each, columns_given, count_lines, file_given
from empatheia.cli.tally import Tally
from empatheia.errors import ConfigError, DataError
from empatheia.files.conversations import read_conversations, read_stream
from empatheia.files.rows import Row
from empatheia.listener.parts import BY_LISTENER, HELP_FROM, PART_MODELS, parse_parts, places_of

if TYPE_CHECKING:
    from empatheia.analysis import Analysis
    from empatheia.cli.results import ResultFile
    from empatheia.dialogue import Dialogue
    from empatheia.listener.analyzer import Analyzer
    from empatheia.reports.analysis_page import Report

PAGE_PARTS = "emotion,causes"
"""What ``--html`` shows if ``--with`` does not say."""
ROWS_PER_CHUNK = TURNS_PER_CHUNK = 1024
"""What is analysed and written at a time: as much work as a kill can cost."""


Sink = Callable[[Row, "Analysis | str", dict[str, Any]], None]


@dataclass(frozen=True)
class Destination:
    """Where results go.

    Attributes:
        as_json: Records on stdout in place of tables.
        out: File of results.
        html: Page.
        resume: Go on with a partial ``out``.
        source: Name of what is analysed, for the page.
        keeps_formulas: Leave CSV cells that a spreadsheet would compute.
        target: Number of the one turn that is answered for, which ends each conversation; None = all turns.
    """

    as_json: bool
    out: Path | None
    html: Path | None
    resume: bool
    source: str
    keeps_formulas: bool
    target: int | None = None


def ask(
    texts: Sequence[str],
    parts: str | None,
    *,
    models: Sequence[str] = (),
    listener: str | None = None,
    column: str | None = None,
    speaker: str | None = None,
    target: int | None = None,
    batch_size: int = 1,
    as_json: bool = False,
    out: Path | None = None,
    html: Path | None = None,
    resume: bool = False,
    keeps_formulas: bool = False,
) -> None:
    """Runs the command; the arguments are its options. Without ``parts``: what the listener itself says.

    Raises:
        ConfigError: An option is wrong.
        DataError: The input holds no row, or no row can be used.
        MissingResourceError: Not one of the parts can be answered.
    """
    wanted, given = parse_parts(parts or PAGE_PARTS), parse_models(models)
    if html is not None:
        from empatheia.reports.page import check_place

        check_place(html)
    rows, total = _rows(texts, column, speaker)
    rows = rows if target is None else aimed(rows, target, listeners=True)
    first = list(islice(rows, 1))  # a missing file or column is reported before a model is loaded
    if not first:
        raise DataError(f"{'stdin' if list(texts) == ['-'] else texts[0]} holds no rows; nothing to analyse.")
    _check_given(given)
    place = analyst(listener)
    from empatheia.listener.analyzer import Analyzer
    from empatheia.listener.reasoner import BY_REASONER, ReasonerReading

    components: dict[str, Any] = {}
    if parts is None and not given:
        reading = ReasonerReading.load(place)
        components = {part: BY_REASONER[part](reading) for part in wanted}
    analyzer = Analyzer(wanted, given, listener=place, components=components)
    _check_answers(analyzer)
    path = file_given(texts)
    source = path.name if path is not None else "stdin" if list(texts) == ["-"] else ""
    try:
        to = Destination(as_json, out, html, resume, source, keeps_formulas, target)
        _run(analyzer, chain(first, rows), total, batch_size, to)
    except KeyboardInterrupt:
        if out is not None and resume:
            say("stopped: repeat the command to continue.")
        raise


def parse_models(texts: Sequence[str]) -> dict[str, str]:
    """``NAME=FOLDER`` texts as a mapping.

    Raises:
        ConfigError: A text has no ``=``, or its name is unknown or given twice.
    """
    found: dict[str, str] = {}
    known = [model.name for model in PART_MODELS]
    for text in texts:
        name, equals, folder = text.partition("=")
        name = name.strip()
        if not equals or not folder.strip():
            raise ConfigError(f"--model-for {text!r} is not of the form NAME=FOLDER, e.g. intent=models/intent.")
        if name not in known:
            from empatheia.registry import nearest

            raise ConfigError(f"--model-for: no part {name!r}.{nearest(name, known)} Accepted: {', '.join(known)}.")
        if name in found:
            raise ConfigError(f"--model-for names {name!r} twice; give it once.")
        found[name] = folder.strip()
    return found


def _check_given(given: Mapping[str, str]) -> None:
    """Raises MissingResourceError for a model that is nowhere, before torch, which takes seconds, is imported."""
    from empatheia.resources import resolve_model

    for place in given.values():
        if not Path(place).expanduser().exists():
            resolve_model(place)


def _rows(texts: Sequence[str], column: str | None, speaker: str | None) -> tuple[Iterator[Row], int | None]:
    """The conversations, and how many rows the input has if that is known."""
    if list(texts) == ["-"]:
        return read_stream(sys.stdin.buffer, column, speaker, say), None
    if (path := file_given(texts)) is not None:
        return read_conversations(path, column, speaker, say), count_lines(path)
    return iter([Row(number, text) for number, text in enumerate(texts, 1)]), len(texts)


def _check_answers(analyzer: Analyzer) -> None:
    """Says which parts cannot be answered; with none left there is nothing to do."""
    missing = analyzer.missing
    if not analyzer.names:
        from empatheia.errors import MissingResourceError

        raise MissingResourceError(" ".join(f"{part}: {reason}" for part, reason in missing.items()))
    for part, reason in missing.items():
        say(f"without {part}: {reason}")


def _run(analyzer: Analyzer, rows: Iterator[Row], total: int | None, batch_size: int, to: Destination) -> None:
    """Analyses conversations chunk by chunk, in constant memory."""
    from empatheia.listener.progress import progress_bar

    first = next(rows)
    rows, given = chain([first], rows), columns_given(first, to.out)
    report, tally = _report(to), Tally()
    with ExitStack() as stack:
        file = _opened(stack, analyzer, to, given)
        n_before = 0
        if file is not None and file.n_done:
            n_before = file.n_done
            _take_up(file, rows, tally, report)
        sinks = _sinks(to, file, report, has_cells=bool(given))
        advance = _by_rows(stack.enter_context(progress_bar(total, n_before)), n_before)
        for chunk in _chunks(rows):
            for row, result in _asked(analyzer, chunk, batch_size, advance(chunk)):
                if to.target is not None and not isinstance(result, str):
                    result = result.about(to.target - 1)
                tally.add(row.number, result if isinstance(result, str) else None)
                record = _record(row, result)
                for sink in sinks:
                    sink(row, result, record)
            if file is not None:
                file.flush()
    if report is not None and to.html is not None:
        report.write(to.html)
    written = [f"written to {to.out}"] if to.out is not None else []
    tally.tell([*written, *([f"page in {to.html}"] if to.html is not None else [])])


def _opened(stack: ExitStack, analyzer: Analyzer, to: Destination, given: Sequence[str]) -> ResultFile | None:
    """The file of results, checked against the models and ready to be written; None without ``--out``."""
    from empatheia.cli.findings import TABLE_COLUMNS, table_rows
    from empatheia.cli.results import ResultFile
    from empatheia.listener.tables import beside_file

    if to.out is None:
        return None
    columns, cells = beside_file(given, TABLE_COLUMNS, table_rows)
    file = stack.enter_context(ResultFile(to.out, to.resume, columns, cells, to.keeps_formulas))
    _check_made(file, analyzer)
    file.settle({**_marks(analyzer), **({} if to.target is None else {"target": str(to.target)})})
    return file


def _take_up(file: ResultFile, rows: Iterator[Row], tally: Tally, report: Report | None) -> None:
    """Passes over the rows that an earlier run has done; they are counted and come into the report."""
    from empatheia.text.inputs import as_conversation

    say(f"continuing after row {file.n_done:,} of {file.partial}")
    for record in file.finished(rows, as_conversation):
        tally.n_good, tally.n_bad = tally.n_good + ("error" not in record), tally.n_bad + ("error" in record)
        if report is not None:
            report.add({name: value for name, value in record.items() if name != "cells"})


def _sinks(to: Destination, file: ResultFile | None, report: Report | None, has_cells: bool) -> list[Sink]:
    """What is done with each row, its analysis or fault, and the record of both."""

    def write(row: Row, result: Analysis | str, record: dict[str, Any]) -> None:
        assert file is not None
        file.write({**record, "cells": [dict(cells) for cells in row.cells]} if has_cells else record)

    def add(row: Row, result: Analysis | str, record: dict[str, Any]) -> None:
        assert report is not None
        report.add(record)

    is_quiet = to.out is not None or (to.html is not None and not to.as_json)
    sinks = [] if is_quiet else [_shower(to.as_json)]
    sinks += [] if file is None else [write]
    return sinks if report is None else [*sinks, add]


def _shower(as_json: bool) -> Sink:
    from empatheia.cli.findings import analysis_lines
    from empatheia.cli.output import print_json, print_lines

    shown: list[int] = []

    def show(row: Row, result: Analysis | str, record: dict[str, Any]) -> None:
        if as_json:
            print_json(record)
        elif not isinstance(result, str):
            print_lines([*([[("", "")]] if shown else []), *analysis_lines(result)])
            shown[:] = [row.number]

    return show


def _report(to: Destination) -> Report | None:
    if to.html is None:
        return None
    from empatheia.reports.analysis_page import Report

    return Report(source=to.source, full_data=to.out.name if to.out is not None else "")


def _by_rows(advance: Callable[[int], None], last: int) -> Callable[[list[Row]], Callable[[int], None]]:
    """For each chunk, a call that takes numbers of conversations and moves the bar by the input rows they stand for.

    Args:
        advance: Moves the bar.
        last: Number of the row it stands at.
    """

    def of_chunk(chunk: list[Row]) -> Callable[[int], None]:
        numbers = [row.number for row in chunk]
        n_done = 0

        def done(n: int) -> None:
            nonlocal last, n_done
            n_done = min(len(numbers), n_done + n)
            if n_done and numbers[n_done - 1] > last:
                advance(numbers[n_done - 1] - last)
                last = numbers[n_done - 1]

        return done

    return of_chunk


def _chunks(rows: Iterator[Row]) -> Iterator[list[Row]]:
    chunk: list[Row] = []
    n_turns = 0
    for row in rows:
        chunk.append(row)
        n_turns += 1 if row.item is None or isinstance(row.item, str) else len(row.item.turns)
        if len(chunk) == ROWS_PER_CHUNK or n_turns >= TURNS_PER_CHUNK:
            yield chunk
            chunk, n_turns = [], 0
    if chunk:
        yield chunk


def _asked(
    analyzer: Analyzer, chunk: list[Row], batch_size: int, advance: Callable[[int], None]
) -> Iterator[tuple[Row, Analysis | str]]:
    """Each row of a chunk with its analysis, or with what is wrong with it."""
    from empatheia.text.inputs import as_conversation

    faults: dict[int, str] = {}
    good: list[Dialogue] = []
    for place, row in enumerate(chunk):
        try:
            if row.error is not None or row.item is None:
                raise DataError(row.error or "is empty.")
            good.append(as_conversation(row.item))
        except DataError as error:
            faults[place] = str(error)
    advance(len(faults))
    results = iter(
        answer_each(lambda items, moved: analyzer.analyze(items, batch_size=batch_size, progress=moved), good, advance)
    )
    for place, row in enumerate(chunk):
        yield row, faults[place] if place in faults else next(results)


def _record(row: Row, result: Analysis | str) -> dict[str, Any]:
    identity = {} if row.id is None else {"id": row.id}
    if isinstance(result, str):
        return {"row": row.number, **identity, "error": result}
    content = result.to_dict()
    if not content["id"]:
        del content["id"]
    return {"row": row.number, **content, **identity}


def _check_made(file: ResultFile, analyzer: Analyzer) -> None:
    """Whether a partial result was made by the same models for the same parts.

    Raises:
        DataError: It was not.
    """
    good, remedy = file.last_good or {}, file.remedy
    if not good:
        return
    if "models" not in good:
        raise DataError(f"{file.partial} was made without --with. {remedy}")
    if (made := good["models"]) != analyzer.names:
        raise DataError(f"{file.partial} was made with {_listed(made)}, not {_listed(analyzer.names)}. {remedy}")
    if (asked := {*good["models"], *good["missing"]}) != set(analyzer.parts):
        raise DataError(f"{file.partial} was made with --with {','.join(sorted(asked))}. {remedy}")


def _marks(analyzer: Analyzer) -> dict[str, str]:
    """Model name to its mark, of the models that answer and of those whose answers they read."""
    from empatheia.checkpoints.catalogue import perceiver
    from empatheia.cli.results import model_mark

    asked = dict.fromkeys(analyzer.names)
    helping = dict.fromkeys(helper for part in asked for helper in HELP_FROM.get(part, {}).values())
    places: dict[str, str | Path] = {}
    for part in {**asked, **helping}:
        places |= places_of(part, analyzer.models) or (
            {part: analyzer.listener or perceiver()} if part in BY_LISTENER else {}
        )
    marks = {place: model_mark(place) for place in dict.fromkeys(map(str, places.values()))}
    return {name: marks[str(place)] for name, place in places.items()}


def _listed(models: dict[str, str]) -> str:
    return ", ".join(f"{part} by {name!r}" for part, name in models.items())
