"""Files of generated replies, as the peers released them and as anybody else may write them.

``moel``, ``mime``, ``empdg``, ``kemp``, ``cem``: see ``reply_blocks``. ``jsonl``, ``csv``: see ``reply_rows``. And
plain text files with one reply a line. Any of them may be gzipped, begin with a byte order mark, and end its lines
with a line feed or a carriage return and a line feed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from types import MappingProxyType

from empatheia.errors import ConfigError, DataError
from empatheia.reading import numbered_lines, read_text
from empatheia.registry import nearest
from empatheia.replies.replies import ReplyFile, SystemReply
from empatheia.replies.reply_blocks import KNOWLEDGE, LAYOUTS, is_parallel_lists, read_blocks
from empatheia.replies.reply_rows import context_of, read_csv, read_jsonl

_FOREIGN = re.compile(r"\0|\r(?!\r*(?:\n|\Z))")  # lines that only a carriage return ends would count as one

FORMATS = (*LAYOUTS, "jsonl", "csv")
"""What ``read_replies`` reads, besides ``auto``."""


def read_replies(path: str | Path, format: str = "auto", as_released: bool = False) -> ReplyFile:
    """Reads a file of replies.

    Args:
        path: The file.
        format: A name of ``FORMATS``, or ``auto`` to tell it from the file.
        as_released: Cut the labels off as the scripts of EmpDG, KEMP and CEM do, which strip the *letters* of the
            label and so eat the first letters of some replies ("Pred:really" becomes "ally").

    Raises:
        ConfigError: Unknown format.
        DataError: The file is missing, empty, truncated or malformed (with the line), or its format cannot be told.
    """
    path = Path(path)
    text = _text_of(path)
    if format == "auto":
        format = detect_format(path, text)
    if format not in FORMATS:
        raise ConfigError(
            f"unknown format {format!r}.{nearest(format, list(FORMATS))} Known: auto, {', '.join(FORMATS)}."
        )
    if format in LAYOUTS:
        return read_blocks(format, path, text, as_released)
    return read_jsonl(path, text) if format == "jsonl" else read_csv(path, text)


def read_texts(hypotheses: str | Path, references: str | Path | None, contexts: str | Path | None = None) -> ReplyFile:
    """Reads plain text files whose lines belong together: line i of each is item i.

    Args:
        hypotheses: One reply a line; a blank line is a blank reply.
        references: One gold reply a line, or None.
        contexts: One context a line: a JSON list of turns, or turns with tabs between them.

    Raises:
        DataError: A file is missing or empty, or the numbers of lines differ.
    """
    path = Path(hypotheses)
    replies = _lines_of(path)
    columns = {path: replies}
    golds = turns = None
    if references is not None:
        golds = columns[Path(references)] = _lines_of(Path(references))
    if contexts is not None:
        turns = columns[Path(contexts)] = _lines_of(Path(contexts))
    if len({len(lines) for lines in columns.values()}) > 1:
        found = ", ".join(f"{file} has {len(lines):,} lines" for file, lines in columns.items())
        shortest = min(len(lines) for lines in columns.values())
        raise DataError(f"{found}: line {shortest + 1:,} has no counterpart. Line i of each file must be item i.")
    records = tuple(
        SystemReply(
            system=path.name,
            reply=reply.strip(),
            reference=None if golds is None else golds[i].strip(),
            context=() if turns is None else _turns_of_line(turns[i], Path(contexts or ""), i + 1),
            line=i + 1,
        )
        for i, reply in enumerate(replies)
    )
    return ReplyFile(path, "text", MappingProxyType({path.name: records}))


def detect_format(path: Path, text: str) -> str:
    """The format of a file, from its labels; its suffix decides only between ``csv`` and ``jsonl``.

    Raises:
        DataError: It cannot be told.
    """
    head = [line for line in islice(text.splitlines(), 200) if line.strip()][:60]
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if head[0].lstrip("\ufeff").startswith("{"):
        return "empdg" if len(head) == 1 and is_parallel_lists(head[0]) else "jsonl"
    if released := _released_format(head):
        return released
    if suffix in (".csv", ".tsv"):
        return "csv"
    if suffix in (".jsonl", ".ndjson"):
        return "jsonl"
    raise DataError(
        f"{path}: the format cannot be told from its first lines. Name it with --format ({', '.join(FORMATS)}),"
        " or give two plain text files with --hyp and --ref."
    )


def _released_format(head: Sequence[str]) -> str:
    """Which system's released code writes lines with these labels; empty if none does."""
    labels = {line.partition(":")[0].strip() for line in head if ":" in line}
    if "emotion" not in {label.lower() for label in labels}:
        return ""
    is_mime = "Topk" in labels or any("predicted_emotion:" in line for line in head)
    is_cem = "Pred Emotions" in labels or any(KNOWLEDGE.fullmatch(label) for label in labels)
    upper = "Emotion" in labels
    signs = (
        (is_mime, "mime"),
        ("ref" in labels, "moel"),
        ("Concept" in labels, "kemp"),
        (bool({"Emotion_context", "Feedback"} & labels), "empdg"),
        (is_cem, "cem"),
        ({"Ref", "Pred"} <= labels, "kemp" if upper else "empdg"),
        ({"Ref", "Greedy"} <= labels, "cem" if upper else "empdg"),
    )
    return next((name for holds, name in signs if holds), "")


def _text_of(path: Path) -> str:
    if not path.exists():
        raise DataError(f"no such file: {path}. Give a file of replies that is there.")
    if path.is_dir():
        raise DataError(f"{path} is a folder; give one file of replies.")
    with path.open("rb") as stream:
        if stream.read(2) in (b"\xff\xfe", b"\xfe\xff"):
            raise DataError(f"{path} is UTF-16; save it as UTF-8 and run again.")
    text = read_text(path)
    if not text.strip():
        raise DataError(f"{path} is empty; it must hold at least one reply.")
    if foreign := _FOREIGN.search(text):
        line = text.count("\n", 0, foreign.start()) + 1
        what = "a NUL byte; is it UTF-16, or no text at all?" if foreign[0] == "\0" else "a carriage return inside it."
        raise DataError(f"{path}:{line}: the line holds {what} Save it as UTF-8 with line feeds and run again.")
    return text


def _lines_of(path: Path) -> list[str]:
    _text_of(path)
    return [line for _, line in numbered_lines(path)]


def _turns_of_line(line: str, path: Path, number: int) -> tuple[str, ...]:
    try:
        return context_of(line.strip())
    except DataError as error:
        raise DataError(f"{path}:{number}: {error}") from error
