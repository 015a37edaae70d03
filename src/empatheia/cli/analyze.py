"""``empatheia analyze``: emotions and cause words of texts, of stdin, or of a file with thousands of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from empatheia.cli import load_target
from empatheia.cli.arguments import check_output, file_given, rows_given
from empatheia.cli.asking import ask
from empatheia.cli.opening import analyst
from empatheia.cli.options import AnalyzeOptions, with_options
from empatheia.cli.output import perceived_lines, print_json, print_lines, row_line, say
from empatheia.errors import ConfigError, DataError
from empatheia.files.bulk import ROWS_PER_CHUNK, Sink, Work, run
from empatheia.files.conversations import CONVERSATION_COLUMNS, ROLE_COLUMNS, read_texts
from empatheia.files.result_file import ResultFile, model_mark
from empatheia.files.rows import Row, Say, read_rows, told
from empatheia.files.talks import Notes
from empatheia.files.transcripts import PROBE_LINES, is_transcript
from empatheia.listener.progress import progress_bar
from empatheia.text.inputs import as_dialogue, up_to

if TYPE_CHECKING:
    from empatheia.listener import Listener
    from empatheia.records.analysis import Analysis


@with_options
def analyze(
    texts: Annotated[list[str], typer.Argument(metavar="TEXT...|-|FILE", help="Texts, '-' for stdin, or one file.")],
    options: AnalyzeOptions,
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
    if options.engine != "plain" or options.scheduler is not None:
        _by_shards(texts, options)
        return
    path = file_given(texts)
    _check_places(path, options)
    if options.parts is not None or options.html is not None:
        ask(texts, options)
        return
    is_text = texts != ["-"] and path is None
    _refuse({"--model-for": options.model_for, "--speaker": options.speaker if is_text else None})
    if is_text and options.out is None:
        _check_target(texts, options.target)
        _show_texts(_loaded(analyst(options.model)), texts, options)
        return
    first, rows, total = rows_given(texts, path, options, read_texts, _read_file)
    file = None
    if options.out is not None:  # says what is wrong with the place before a model is loaded
        file = ResultFile(options.out, options.resume, first=first, keeps_formulas=options.formulas, say=say)
    _run(chain([first], rows), total, file, options, analyst(options.model))


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


def _check_places(path: Path | None, options: AnalyzeOptions) -> None:
    """Whether results can be written where they shall be.

    Raises:
        ConfigError: They cannot, or there is nothing to resume.
    """
    if options.resume and options.out is None:
        raise ConfigError("--resume needs --out FILE: without a file there is nothing to continue.")
    if options.out is not None:
        check_output(options.out, [path, options.html])
    if options.html is not None:
        check_output(options.html, [path])


def _read_file(path: Path, column: str | None, speaker: str | None, say: Say) -> Iterator[Row]:
    notes = Notes()
    return _told_if_chat(told(read_rows(path, column, speaker, notes=notes), notes, say))


def _told_if_chat(rows: Iterator[Row]) -> Iterator[Row]:
    """The same rows; if they look like turns of conversations, it is said that each is read by itself."""
    first = list(islice(rows, PROBE_LINES))
    names = {name for row in first[:1] for cells in row.cells for name in cells}
    are_turns = not names.isdisjoint(CONVERSATION_COLUMNS) and not names.isdisjoint(ROLE_COLUMNS)
    if are_turns or (not names and is_transcript([str(row.item) for row in first if isinstance(row.item, str)])):
        say("this looks like a chat, and each line is read by itself; as conversations: --with emotion,words")
    return chain(first, rows)


def _by_shards(texts: list[str], options: AnalyzeOptions) -> None:
    """``--engine dask``; raises ConfigError for what does not go with it."""
    if options.engine not in ("plain", "dask"):
        raise ConfigError(f"--engine is {options.engine!r}; accepted: plain, dask.")
    if options.engine == "plain":
        raise ConfigError("--scheduler needs --engine dask.")
    unused = {"--with": options.parts, "--html": options.html, "--json": options.as_json}
    unused |= {"--model-for": options.model_for, "--speaker": options.speaker, "--target": options.target}
    if given := [name for name, value in unused.items() if value]:
        raise ConfigError(f"--engine dask has no {', '.join(given)}; its result is Parquet with every answer.")
    if len(texts) != 1 or not Path(texts[0]).exists():
        raise ConfigError(f"--engine dask takes one folder or file that is there; found {', '.join(texts)[:200]!r}.")
    if options.out is None or options.out.is_file():
        raise ConfigError("--engine dask needs --out FOLDER, which may be there or not.")
    analyze_files = load_target("analyze --engine dask")
    found = analyze_files(
        Path(texts[0]),
        options.out,
        model=analyst(options.model),
        column=options.column,
        batch_size=options.batch_size,
        workers=options.workers,
        scheduler=options.scheduler,
    )
    for problem in found["problems"][:10]:
        say(problem)
    say(f"{found['rows']:,} rows of {found['files']:,} files, {found['bad']:,} bad; written to {options.out}")


def _loaded(place: str) -> Listener:
    from empatheia.listener import Listener

    return Listener.load(place)


def _show_texts(listener: Listener, texts: list[str], options: AnalyzeOptions) -> None:
    for place, analysis in enumerate(listener.analyze(texts, batch_size=options.batch_size)):
        if options.as_json:
            print_json(analysis.to_dict())
            continue
        print_lines([*([[("", "")]] if place else []), *perceived_lines(analysis)])


def _run(rows: Iterator[Row], total: int | None, file: ResultFile | None, options: AnalyzeOptions, place: str) -> None:
    """Analyses rows chunk by chunk, in constant memory."""
    listener = _loaded(place)

    def show(row: Row, result: Analysis | str, record: dict[str, Any]) -> None:
        if options.as_json:
            print_json(record)
        elif not isinstance(result, str):
            print_lines([row_line(row.number, result)])

    def check(file: ResultFile) -> None:
        _check_made(file, listener.name)
        file.settle({"model": model_mark(place)})

    work: Work[Analysis] = Work(
        as_dialogue,
        lambda items, moved: listener.analyze(items, batch_size=options.batch_size, progress=moved),
        ROWS_PER_CHUNK,
    )
    sinks: list[Sink[Analysis]] = [show] if file is None else []
    tally = run(work, rows, sinks, file=file, check=check, bar=partial(progress_bar, total), say=say)
    tally.tell([f"written to {options.out}"] if file is not None else [])


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
