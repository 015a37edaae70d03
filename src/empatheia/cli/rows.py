"""What the command line does with rows: which file is meant, what they are asked about, and all at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from empatheia.errors import ConfigError, DataError, EmpatheiaError
from empatheia.files.rows import SUFFIXES, Row
from empatheia.text.inputs import up_to

Item = TypeVar("Item")
Answer = TypeVar("Answer")


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


def columns_given(first: Row, out: Path | None) -> list[str]:
    """The caller's columns that a result keeps: from CSV to CSV all, else none; ``first`` is any row of the input."""
    return [*first.cells[0]] if first.cells and out is not None and out.suffix.lower() == ".csv" else []


def aimed(rows: Iterable[Row], target: int, listeners: bool = False) -> Iterator[Row]:
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


def answer_each(
    ask: Callable[[list[Item], Callable[[int], None]], Iterable[Answer]],
    items: list[Item],
    advance: Callable[[int], None],
) -> list[Answer | str]:
    """Answers to all items at once, or what is wrong, as text, with those that cannot be answered.

    Where the call fails the items are asked half by half, so that one that cannot be answered fails alone.

    Args:
        ask: Takes items and a call that moves the progress bar; gives an answer an item.
        items: That are asked about.
        advance: Moves the bar by a number of items.

    Raises:
        Exception: The call fails for each of several items, or for a reason that is none of theirs.
    """
    n_told = 0

    def moved(n: int) -> None:
        nonlocal n_told
        n = min(n, len(items) - n_told)  # those asked again are not told again
        n_told += n
        advance(n)

    def answered(part: list[Item]) -> list[Answer | str]:
        try:
            return list(ask(part, moved))
        except (OSError, EmpatheiaError) as error:
            if not isinstance(error, DataError):
                raise
            problem: Exception = error
        except Exception as error:
            problem = error
        faults.append(problem)
        if len(part) < 2:
            own = isinstance(problem, DataError)
            return [str(problem) if own else f"cannot be analysed ({type(problem).__name__}: {problem!s:.200})."]
        half = len(part) // 2
        return answered(part[:half]) + answered(part[half:])

    faults: list[Exception] = []
    answers = answered(items)
    if len(items) > 1 and all(isinstance(answer, str) for answer in answers):
        raise faults[0]
    moved(len(items) - n_told)
    return answers


def count_lines(path: Path) -> int | None:
    """Lines of a file, for the progress bar; None when it cannot be read (the reader will say why)."""
    try:
        with path.open("rb") as stream:
            n_lines = sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 20), b""))
            return n_lines or None
    except OSError:
        return None
