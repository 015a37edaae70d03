"""``empatheia score``: anybody's replies measured, from two text files or from a file as a paper released it."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from empatheia.cli.output import aligned, show

if TYPE_CHECKING:
    from empatheia.corpora.replies import ReplyFile
    from empatheia.metrics.score import Signature
    from empatheia.scoring import Cell, SystemScores

_SHOWN_LINES = 8


def score(
    file: Annotated[Optional[Path], typer.Argument(help="File of replies and references; or --hyp and --ref.")] = None,  # noqa: UP045
    format: Annotated[
        str, typer.Option(help="moel, mime, empdg, kemp, cem, jsonl, csv, or auto: recognise it.")
    ] = "auto",
    system: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(help="Only this system of the file; can be repeated. Default: all."),
    ] = None,
    hyp: Annotated[Optional[Path], typer.Option(help="Text file, one reply a line.")] = None,  # noqa: UP045
    ref: Annotated[Optional[Path], typer.Option(help="Text file, one gold reply a line, in the same order.")] = None,  # noqa: UP045
    context: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Text file, one context a line: a JSON list of turns, or tabs between turns."),
    ] = None,
    profile: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            help="Numbers as defined by a paper: gao2021, imagine, meed2, rashkin2018, kim2021, moel, mime, ..."
        ),
    ] = None,
    metrics: Annotated[Optional[str], typer.Option(help="Metrics by name, comma-separated.")] = None,  # noqa: UP045
    words: Annotated[
        str,
        typer.Option(help="How text is split into words without a profile: space, nltk, nltk-cased, family, rashkin."),
    ] = "space",
    bootstrap: Annotated[
        int, typer.Option(help="Resamples for the 95 % intervals; 0 for none.", min=0, max=1_000_000)
    ] = 1000,
    as_released: Annotated[
        bool, typer.Option("--as-released", help="Strip labels as EmpDG's, KEMP's and CEM's scripts do.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    r"""Measure generated replies: every number with its interval, unit and signature.

    \b
    empatheia score --hyp replies.txt --ref gold.txt
    empatheia score generation_result.txt --format moel --profile moel
    """
    from empatheia.corpora.reply_files import read_replies, read_texts
    from empatheia.errors import ConfigError
    from empatheia.scoring import columns_of, score_file

    if (file is None) == (hyp is None):
        raise ConfigError("name one file of replies, or text files with --hyp and --ref; see 'empatheia score --help'.")
    if hyp is None and (ref or context):
        raise ConfigError("--ref and --context go with --hyp; a file of replies holds its own.")
    if bootstrap == 1:
        raise ConfigError("--bootstrap is 1; accepted: 0 for no intervals, or 2 and more, 1000 is usual.")
    names = [name.strip() for name in (metrics or "").split(",") if name.strip()]
    columns = columns_of(profile, names, words)
    if hyp is not None:
        read = read_texts(hyp, ref, context)
    else:
        read = read_replies(file or "", format, as_released)
    scores = score_file(read, columns, system or (), bootstrap)
    if as_json:
        from empatheia.cli.output import print_json

        print_json(
            {
                "file": str(read.path),
                "format": read.format,
                "profile": profile,
                "reported": dict(read.reported),
                "notes": list(read.notes),
                "systems": [each.to_dict() for each in scores],
            }
        )
        return
    show("\n".join(_lines(read, scores, profile)))


def _lines(file: ReplyFile, scores: Sequence[SystemScores], profile: str | None) -> Iterator[str]:
    from empatheia.scoring import shared_signature

    how = f"profile {profile}" if profile else "no profile"
    yield f"{file.path} ({file.format}, {how})"
    shared = shared_signature([cell for each in scores for cell in each.cells])
    yield from _one(scores[0], shared) if len(scores) == 1 else _several(scores)
    if len(scores) > 1:
        yield from _signatures(scores)
    if str(shared) and scores[0].cells:
        yield f"all: {shared}"
    if scores[0].missing:
        yield "not measured:"
        yield from _indented([(column.name, reason) for column, reason in scores[0].missing], right=())
    for each in scores:
        yield from _blank(each)
    if file.reported:
        found = ", ".join(f"{name} {value:g}" for name, value in file.reported.items())
        yield f"stated in the file, not measured here: {found}"
    yield from (f"note: {note}" for note in file.notes)


def _blank(scores: SystemScores) -> Iterator[str]:
    """How many replies and references are blank, and where the first of them stand."""
    for what, lines in (("replies", scores.blank_replies), ("references", scores.blank_references)):
        if lines:
            more = ", ..." if len(lines) > _SHOWN_LINES else ""
            found = ", ".join(map(str, lines[:_SHOWN_LINES]))
            yield f"{scores.system}: {len(lines):,} blank {what} (items at lines {found}{more})"


def _one(scores: SystemScores, shared: Signature) -> Iterator[str]:
    """One line a column."""
    yield f"{scores.system}: {scores.n:,} replies"
    rows = [("", "value", "interval", "unit", "metric", "signature")]
    rows += [
        (cell.column.name, cell.show(), _between(cell), cell.unit, _metric(cell), _own(cell, shared))
        for cell in scores.cells
    ]
    yield from _indented(rows, right={1})


def _several(scores: Sequence[SystemScores]) -> Iterator[str]:
    """One line a system, and under it the intervals where there are any."""
    names = list(dict.fromkeys(cell.column.name for each in scores for cell in each.cells))
    rows = [("", "n", *names)]
    for each in scores:
        cells = {cell.column.name: cell for cell in each.cells}
        rows.append((each.system, f"{each.n:,}", *(cells[n].show() if n in cells else "-" for n in names)))
        if any(cell.interval for cell in each.cells):
            rows.append(("", "", *(_between(cells[n]) if n in cells else "" for n in names)))
    yield from _indented(rows, right=range(1, len(names) + 2))


def _signatures(scores: Sequence[SystemScores]) -> Iterator[str]:
    """What each column of the table of systems is; where systems differ, the first that has it."""
    from empatheia.scoring import shared_signature

    shared = shared_signature([cell for each in scores for cell in each.cells])
    seen: dict[str, Cell] = {}
    for each in scores:
        for cell in each.cells:
            seen.setdefault(cell.column.name, cell)
    yield from _indented(
        [(name, cell.unit, _metric(cell), _own(cell, shared)) for name, cell in seen.items()], right=()
    )


def _own(cell: Cell, shared: Signature) -> str:
    from empatheia.scoring import own_signature

    return str(own_signature(cell, shared))


def _metric(cell: Cell) -> str:
    return f"{cell.column.metric}.{cell.column.part}" if cell.column.part else cell.column.metric


def _between(cell: Cell) -> str:
    if cell.interval is None:
        return ""
    return f"{cell.show(cell.interval[0])}-{cell.show(cell.interval[1])}"


def _indented(rows: Sequence[Sequence[str]], right: Container[int]) -> Iterator[str]:
    return (f"  {line}" for line in aligned(rows, right))
