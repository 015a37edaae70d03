"""``results/README.md``: every kept run in the table of its task, the published row under it; and its pictures."""

from __future__ import annotations

import importlib.util
import logging
import re
from collections.abc import Iterator
from pathlib import Path

from empatheia.documents.document import Block, Column, Content, Document, Heading, Text, element, link
from empatheia.documents.document import Table as Lines
from empatheia.documents.markdown import to_markdown
from empatheia.metrics.records import RunRecord, measured_of, read_records
from empatheia.reading import read_record
from empatheia.writing import write_atomically
from empatheia_research.reports.charts import save
from empatheia_research.reports.curves import curves_chart, read_curves
from empatheia_research.reports.focus_chart import focus_chart, is_focus_record
from empatheia_research.reports.record_tables import Printed, Row, Table, run_name, tables
from empatheia_research.training.records import keep_record

PAGE = "README.md"
logger = logging.getLogger("empatheia.records")
CURVES = ".curves.jsonl"
_LEAD = """\
Made by `empatheia train --record results` from the run records in this folder; not edited by hand. Each
record holds its recipe, seed, commit, hardware, duration, curves and scores with signatures and 95 %
intervals; `empatheia leaderboard` shows all of it. The size says how much was trained: `cpu` runs are small
and short, `row` runs smaller still and equal for all rows of a table (compare them with each other:
`empatheia reproduce TABLE --size row`), `full` as published.
*Rows in italics* are what the paper printed for the row above."""


def keep(run: Path, results: Path) -> Path:
    """Keeps a finished run (:func:`empatheia_research.training.records.keep_record`), draws it, writes the page anew.

    Without matplotlib there are only numbers.

    Args:
        run: Run folder.
        results: Folder of kept records.

    Returns:
        The record's file.

    Raises:
        CheckpointError: The run is not finished.
    """
    record = keep_record(run, results)
    draw_curves(record.with_suffix(CURVES))
    draw_focus(record)
    write_atomically(results / PAGE, results_page(results))
    return record


def draw_curves(file: Path) -> Path | None:
    """The picture beside a file of curves; None without the file or without matplotlib."""
    if not file.is_file() or importlib.util.find_spec("matplotlib") is None:
        return None
    name = file.name.removesuffix(CURVES)
    drawn = curves_chart({f"{file.parent.name} {name}": read_curves(file)})
    return save(drawn, file.with_name(f"{name}.curves.png"))[0]


def draw_focus(file: Path) -> Path | None:
    """The picture beside a kept record of task ``focus``; None for another task or without matplotlib."""
    record = read_record(file)
    if not is_focus_record(record) or importlib.util.find_spec("matplotlib") is None:
        return None
    return save(focus_chart({f"{file.parent.name} {file.stem}": record}), file.with_name(f"{file.stem}.focus.png"))[0]


def results_page(results: Path) -> str:
    """The page as Markdown; values as measured, intervals and signatures in the records beside it."""
    blocks: list[Block] = []
    records = [record for record in read_records(results) if _is_tabulable(record)]
    for table in tables(records):
        blocks += [Heading(table.title), Text(table.lead), _table(table)]
    charts = [chart for chart in sorted(results.rglob("*")) if chart.suffix in (".svg", ".png")]
    if charts:
        pictures = [("\n", link(_name(chart, results), _place(chart, results)), "  ") for chart in charts]
        blocks += [Heading("Pictures"), Text([pictures[0][1:], *pictures[1:]])]
    return to_markdown(Document("Results", [Text(_LEAD)], blocks))


def _is_tabulable(record: RunRecord) -> bool:
    """Whether a record fits a table; one that does not is told, and hides no other."""
    try:
        for table in tables([record]):
            _table(table)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as problem:
        name, fault = run_name(record), f"{type(problem).__name__}: {problem!s:.100}"
        logger.warning("the record of %s fits no table (%s) and is left out; make the run again", name, fault)
        return False
    return True


def _table(table: Table) -> Lines:
    rates = [_rate(row.record) for row in table.rows]
    is_decoded = any(rates)
    numbers = [*(column.title for column in table.columns), *(["replies/s"] if is_decoded else [])]
    heads = ["run", "minutes", "parameters", *table.labels, *(Column(title, is_number=True) for title in numbers)]
    lines: list[list[Content]] = []
    for i, row in enumerate(table.rows):
        lines.append([*_run_cells(row, table), *([rates[i] or "-"] if is_decoded else [])])
        following = table.rows[i + 1 : i + 2]
        if row.printed is not None and not any(_prints_the_same(row, other) for other in following):
            lines.append([*_printed_cells(row.printed, table), *([""] if is_decoded else [])])
    return Lines(heads, lines)


def _run_cells(row: Row, table: Table) -> Iterator[Content]:
    """A run: where its record is, what it took, our values."""
    changes = [part for change in row.record.get("overrides") or () for part in (" ", element("code", change))]
    yield (link(element("code", row.run), f"{row.run}.json"), *changes)
    yield _minutes(row.record)
    yield f"{(row.record.get('parameters') or 0) / 1e6:.1f}M"
    yield from row.labels.values()
    yield from (_cell(row, column.key, column.decimals) for column in table.columns)


def _printed_cells(printed: Printed, table: Table) -> list[Content]:
    """A published row: where it is from, then its values below ours."""
    values = printed.values
    shown = [element("em", values[c.key][0]) if c.key in values else "" for c in table.columns]
    return [element("em", printed.source), *[""] * (2 + len(table.labels)), *shown]


def _prints_the_same(row: Row, other: Row) -> bool:
    """The published row comes once, under the last of the rows it belongs to."""
    if other.printed is None or row.printed is None or other.printed.source != row.printed.source:
        return False
    ours, others = ({key: told[0] for key, told in printed.values.items()} for printed in (row.printed, other.printed))
    return ours == others


def _cell(row: Row, key: str, decimals: int) -> str:
    value = row.values.get(key)
    return "-" if value is None else f"{value.value:.{decimals}f}"


def _rate(record: RunRecord) -> str:
    rate = measured_of(record).facts.get("decoding", {}).get("replies_per_second")
    return f"{rate:.0f}" if isinstance(rate, int | float) else ""


def _minutes(record: RunRecord) -> str:
    """Training time; of the run whose weights were only measured, where a record trained nothing itself."""
    own, start = record.get("training_seconds") or 0, record.get("start") or {}
    if own or "training_seconds" not in start:
        return f"{own / 60:.0f}"
    return f"{start['training_seconds'] / 60:.0f} ({start['recipe']})"


def _name(chart: Path, results: Path) -> str:
    return re.sub(r"[\[\]]", "", str(chart.relative_to(results)))


def _place(chart: Path, results: Path) -> str:
    return chart.relative_to(results).as_posix().replace(" ", "%20")
