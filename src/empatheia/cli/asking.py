"""``empatheia analyze --with``: everything the parts can say of conversations, shown, written, or as a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from empatheia.cli.arguments import file_given, rows_given
from empatheia.cli.findings import TABLE_COLUMNS, analysis_lines, table_rows
from empatheia.cli.opening import analyst
from empatheia.cli.options import AnalyzeOptions
from empatheia.cli.output import print_json, print_lines, say
from empatheia.errors import ConfigError, DataError, MissingResourceError
from empatheia.files.bulk import Sink, Work, run
from empatheia.files.conversations import read_conversations, read_stream
from empatheia.files.result_file import ResultFile, model_mark
from empatheia.files.rows import Row
from empatheia.listener.analyzer import Analyzer
from empatheia.listener.parts import BY_LISTENER, HELP_FROM, PART_MODELS, parse_parts, places_of
from empatheia.listener.progress import progress_bar
from empatheia.records.analysis import Analysis
from empatheia.registry import nearest
from empatheia.resources import resolve_model
from empatheia.resources.catalogue import LISTENER
from empatheia.text.inputs import as_conversation
from empatheia.writing import check_place

if TYPE_CHECKING:
    from empatheia.documents.analysis_page import Report
    from empatheia.records.dialogue import Dialogue

PAGE_PARTS = "emotion,causes"
"""What ``--html`` shows if ``--with`` does not say."""
ROWS_PER_CHUNK = TURNS_PER_CHUNK = 1024
"""What is analysed and written at a time: as much work as a kill can cost."""


def ask(texts: Sequence[str], options: AnalyzeOptions) -> None:
    """Runs the command. Without ``--with``: what the listener itself says.

    Raises:
        ConfigError: An option is wrong.
        DataError: The input holds no row, or no row can be used.
        MissingResourceError: Not one of the parts can be answered.
    """
    wanted, given = parse_parts(options.parts or PAGE_PARTS), parse_models(options.model_for or ())
    if options.html is not None:
        check_place(options.html)
    path = file_given(texts)
    first, rows, total = rows_given(texts, path, options, read_stream, read_conversations, listeners=True)
    for place in given.values():
        if not Path(place).expanduser().exists():
            resolve_model(place)
    analyzer = _analyzer(wanted, given, options)
    source = path.name if path is not None else "stdin" if list(texts) == ["-"] else ""
    try:
        _run(analyzer, chain([first], rows), total, _file(options, first), _report(options, source), options)
    except KeyboardInterrupt:
        if options.out is not None and options.resume:
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
            raise ConfigError(f"--model-for: no part {name!r}.{nearest(name, known)} Accepted: {', '.join(known)}.")
        if name in found:
            raise ConfigError(f"--model-for names {name!r} twice; give it once.")
        found[name] = folder.strip()
    return found


def _analyzer(parts: Sequence[str], given: Mapping[str, str], options: AnalyzeOptions) -> Analyzer:
    """Who answers; without ``--with`` the listener itself says all of it."""
    place = analyst(options.model)
    components: dict[str, Any] = {}
    if options.parts is None and not given:
        from empatheia.listener.reasoner import BY_REASONER, ReasonerReading

        reading = ReasonerReading.load(place)
        components = {part: BY_REASONER[part](reading) for part in parts}
    analyzer = Analyzer(parts, given, listener=place, components=components)
    _check_answers(analyzer)
    return analyzer


def _check_answers(analyzer: Analyzer) -> None:
    """Says which parts cannot be answered; with none left there is nothing to do."""
    missing = analyzer.missing
    if not analyzer.names:
        raise MissingResourceError(" ".join(f"{part}: {reason}" for part, reason in missing.items()))
    for part, reason in missing.items():
        say(f"without {part}: {reason}")


def _file(options: AnalyzeOptions, first: Row) -> ResultFile | None:
    if options.out is None:
        return None
    table = (TABLE_COLUMNS, table_rows)
    return ResultFile(options.out, options.resume, *table, first=first, keeps_formulas=options.formulas, say=say)


def _report(options: AnalyzeOptions, source: str) -> Report | None:
    if options.html is None:
        return None
    from empatheia.documents.analysis_page import Report

    return Report(source=source, full_data=options.out.name if options.out is not None else "")


def _run(
    analyzer: Analyzer,
    rows: Iterator[Row],
    total: int | None,
    file: ResultFile | None,
    report: Report | None,
    options: AnalyzeOptions,
) -> None:
    """Analyses conversations chunk by chunk, in constant memory."""

    def add(record: dict[str, Any]) -> None:
        if report is not None:
            report.add({name: value for name, value in record.items() if name != "cells"})

    sinks: list[Sink[Analysis]] = [lambda row, result, record: add(record)]
    if file is None and (report is None or options.as_json):
        sinks.insert(0, _shower(options.as_json))
    work = Work(as_conversation, partial(_analyses, analyzer, options), ROWS_PER_CHUNK, TURNS_PER_CHUNK)
    check, bar = partial(_check_file, analyzer, options.target), partial(progress_bar, total)
    tally = run(work, rows, sinks, file=file, check=check, again=add, bar=bar, say=say)
    places = [] if file is None else [f"written to {file.path}"]
    if report is not None and options.html is not None:
        report.write(options.html)
        places.append(f"page in {options.html}")
    tally.tell(places)


def _analyses(
    analyzer: Analyzer, options: AnalyzeOptions, items: list[Dialogue], moved: Callable[[int], None]
) -> list[Analysis]:
    found = analyzer.analyze(items, batch_size=options.batch_size, progress=moved)
    return found if options.target is None else [one.about(options.target - 1) for one in found]


def _check_file(analyzer: Analyzer, target: int | None, file: ResultFile) -> None:
    _check_made(file, analyzer)
    file.settle({**_marks(analyzer), **({} if target is None else {"target": str(target)})})


def _shower(as_json: bool) -> Sink[Analysis]:
    """Prints each analysis, on a terminal with a blank line between two."""
    n_shown = 0

    def show(row: Row, result: Analysis | str, record: dict[str, Any]) -> None:
        nonlocal n_shown
        if as_json:
            print_json(record)
        elif not isinstance(result, str):
            print_lines([*([[("", "")]] if n_shown else []), *analysis_lines(result)])
            n_shown += 1

    return show


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
    asked = dict.fromkeys(analyzer.names)
    helping = dict.fromkeys(helper for part in asked for helper in HELP_FROM.get(part, {}).values())
    places: dict[str, str | Path] = {}
    for part in {**asked, **helping}:
        places |= places_of(part, analyzer.models) or (
            {part: analyzer.listener or LISTENER} if part in BY_LISTENER else {}
        )
    marks = {place: model_mark(place) for place in dict.fromkeys(map(str, places.values()))}
    return {name: marks[str(place)] for name, place in places.items()}


def _listed(models: dict[str, str]) -> str:
    return ", ".join(f"{part} by {name!r}" for part, name in models.items())
