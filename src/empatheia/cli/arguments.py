"""What the arguments of a command mean: a file, texts, the turn that is asked about."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from empatheia.cli.options import AnalyzeOptions
from empatheia.cli.output import say
from empatheia.errors import ConfigError, DataError
from empatheia.files.rows import SUFFIXES, Row, Say
from empatheia.text.inputs import up_to


def looks_like_file(argument: str) -> bool:
    """Whether a command-line argument names a row file, present or not: a known suffix and no line break."""
    return "\n" not in argument and len(argument) < 4096 and Path(argument).suffix.lower() in SUFFIXES


def file_given(arguments: Sequence[str]) -> Path | None:
    """The row file that command-line arguments name, or None if they are texts or ``-``.

    Raises:
        DataError: A file or folder that is there is none of the kinds that can be read, or is one of several.
    """
    if list(arguments) == ["-"]:
        return None
    kinds = ", ".join(SUFFIXES)
    for argument in arguments:
        is_named = looks_like_file(argument)
        is_path = is_named and (" " not in argument or Path(argument).is_file())
        if len(arguments) > 1 and (is_path or argument == "-"):
            raise DataError(f"{argument!r} is one of {len(arguments)} arguments; give one file, or '-', or only texts.")
        if is_named and len(arguments) == 1:
            return Path(argument)
        if _is_there(argument):
            raise DataError(
                f"{argument} is a file or folder of another kind; accepted: one file with a suffix of {kinds}."
            )
    return None


def refuse_files(texts: Sequence[str], command: str) -> None:
    """Whether texts are texts, for a command that reads no file: the name of one would be taken for what was said.

    Raises:
        DataError: One is the name of a file.
    """
    for text in texts:
        is_named = looks_like_file(text) and (" " not in text or Path(text).is_file())
        if is_named or _is_there(text):
            raise DataError(
                f"{text!r} is a file, and `empatheia {command}` takes texts. Give them in quotes, or one a line:"
                f" empatheia {command} - < FILE"
            )


def check_output(place: Path, others: Sequence[Path | None]) -> None:
    """Whether an output would take the place of the input, or of another output.

    Raises:
        ConfigError: It would.
    """
    if any(other is not None and place.resolve() == other.resolve() for other in others):
        raise ConfigError(f"{place} is named twice, so it would be overwritten; give each output a file of its own.")


def rows_given(
    texts: Sequence[str],
    path: Path | None,
    options: AnalyzeOptions,
    read_stream: Callable[[BinaryIO, str | None, str | None, Say], Iterator[Row]],
    read_file: Callable[[Path, str | None, str | None, Say], Iterator[Row]],
    *,
    listeners: bool = False,
) -> tuple[Row, Iterator[Row], int | None]:
    """The first row that the arguments mean, the others, and how many there are if that is known.

    Args:
        texts: The arguments.
        path: Of :func:`file_given`.
        options: Column, speaker and target.
        read_stream: Reads stdin.
        read_file: Reads a file.
        listeners: Whether the target may be a listener's turn.

    Raises:
        DataError: There is none, told before a model is loaded, as a missing file or column is.
    """
    is_stdin, total = list(texts) == ["-"], None
    if is_stdin:
        rows = read_stream(sys.stdin.buffer, options.column, options.speaker, say)
    elif path is not None:
        rows, total = read_file(path, options.column, options.speaker, say), _count_lines(path)
    else:
        rows, total = iter([Row(number, text) for number, text in enumerate(texts, 1)]), len(texts)
    if options.target is not None:
        rows = _aimed(rows, options.target, listeners)
    if (first := next(rows, None)) is None:
        raise DataError(f"{'stdin' if is_stdin else texts[0]} holds no rows; nothing to analyse.")
    return first, rows, total


def _aimed(rows: Iterable[Row], target: int, listeners: bool) -> Iterator[Row]:
    """Rows whose conversations end with the turn that is asked about; where there is none the row is bad.

    Args:
        rows: Of the input.
        target: Number of the turn, counted from 1.
        listeners: Whether it may be a listener's.
    """
    for row in rows:
        if row.error is not None or row.item is None:
            yield row
            continue
        try:
            yield replace(row, item=up_to(row.item, target, listeners=listeners, first=1))
        except DataError as problem:
            yield replace(row, item=None, error=str(problem))


def _is_there(argument: str) -> bool:
    """Whether a text is the path of something that exists; a word such as the name of a folder here is a text."""
    if "\n" in argument or len(argument) >= 4096 or not ({"/", "\\", "."} & set(argument)):
        return False
    try:
        return Path(argument).is_file() or ("/" in argument and Path(argument).is_dir())
    except (OSError, ValueError):
        return False


def _count_lines(path: Path) -> int | None:
    """Lines of a file, for the progress bar; None when it cannot be read (the reader will say why)."""
    try:
        with path.open("rb") as stream:
            n_lines = sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 20), b""))
            return n_lines or None
    except OSError:
        return None
