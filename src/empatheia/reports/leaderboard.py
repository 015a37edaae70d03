"""All runs on one page that works from a file: tables to sort and filter, and replies side by side.

The tables are plain HTML; a short script sorts and filters them, shows replies, and keeps what is shown in the address.
Replies lie in the page as JSON and are put into it as text, never as HTML.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from empatheia.corpora.loading import sample_root
from empatheia.errors import DataError
from empatheia.metrics.records import RunRecord, measured_of
from empatheia.reports.page import check_place, html_page, safe, write_whole
from empatheia.reports.record_tables import Column, Row, Table, Value, run_name, tables
from empatheia.reports.reproduction import read_runs
from empatheia.side_by_side import Answer, AnswerFile, Item, align, find_runs, read_answers
from empatheia.text.readable import readable

TITLE = "Leaderboard"
SAMPLE = sample_root() / "replies" / "replies.jsonl"
_ABOUT = (
    "Every number comes from a run record, with its 95 % bootstrap interval; what a paper printed stands under the run"
    " it is compared with. Two numbers are comparable when their signatures are equal. The size says how much was"
    " trained: full as published, cpu small and short, row smaller still and equal for all rows of a table, smoke only"
    " to see that it runs. What a language model judged is not here."
)
_SAMPLE_NOTE = (
    "These replies and dialogues are self-written samples: they show how this part works, and are no system's."
    " Replies of your own runs: empatheia leaderboard --runs runs."
)
_ENVIRONMENT = ("device", "processor", "threads", "processes", "python")


def write_leaderboard(
    path: str | Path,
    results: str | Path = "results",
    runs: str | Path | None = None,
    replies: Iterable[str | Path] = (),
) -> tuple[int, int, tuple[str, ...]]:
    """Writes the page.

    Args:
        path: Of the HTML file.
        results: Folder of run records.
        runs: Folder of run folders, whose replies are shown with their dialogues; None shows none. The page then holds
            text of the corpus, whose licence says who may have it.
        replies: More files of replies, see :func:`~empatheia.side_by_side.read_answers`. Without these and ``runs`` the
            page shows the self-written sample.

    Returns:
        Number of runs in the tables, of contexts with replies, and notes for the person.

    Raises:
        DataError: A folder or file is missing or cannot be used, or there is nothing to show.
    """
    check_place(Path(path))
    folder = Path(results)
    if not folder.is_dir():
        raise DataError(
            f"there is no folder {folder} of run records; name one with --results, or make one with"
            " `empatheia train RECIPE --record results`."
        )
    records, left_out = _showable(read_runs(folder))
    places = [*(find_runs(runs) if runs is not None else ()), *replies]
    if runs is not None and not places:
        raise DataError(f"{runs} holds no run with replies; run `empatheia train RECIPE --out {runs}` to its end.")
    is_sample = not places
    files = [read_answers(place) for place in places] or [read_answers(SAMPLE, name="sample")]
    items = align(_with_own_titles(files))
    notes = [*left_out, *(f"{file.title}: {note}" for file in files for note in file.notes)]
    write_whole(Path(path), leaderboard_html(records, items, notes, _SAMPLE_NOTE if is_sample else ""))
    return len(records), len(items), tuple(notes)


def _showable(records: Sequence[RunRecord]) -> tuple[list[RunRecord], list[str]]:
    """The records that the page can show, and why it cannot show the others: one must not hide the rest."""
    shown, told = [], []
    for record in records:
        try:
            leaderboard_html([record])
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, DataError) as problem:
            fault = f"{type(problem).__name__}: {problem!s:.100}"
            told.append(f"{record.get('file')} cannot be shown ({fault}) and is left out; make the run again")
        else:
            shown.append(record)
    return shown, told


def leaderboard_html(
    records: Sequence[RunRecord], items: Sequence[Item] = (), notes: Sequence[str] = (), about_replies: str = ""
) -> str:
    """The whole page.

    Args:
        records: Of runs, see :func:`~empatheia.reports.reproduction.read_runs`.
        items: Contexts with replies.
        notes: About the replies.
        about_replies: What they are.
    """
    found = tables(records)
    here = Path(__file__)
    links = [(table.key, table.title) for table in found] + [("compare", "Replies side by side"), ("records", "Runs")]
    listed = "".join(f'<li><a href="#{safe(key)}">{safe(title)}</a></li>' for key, title in links)
    body = (
        f'<nav aria-label="Sections"><ul>{listed}</ul></nav>\n{_filters(records)}<div id="tables">'
        + "".join(_table(table) for table in found)
        + ("" if found else "<p>There is no run record yet.</p>")
        + f"</div>\n{_compare(items, notes, about_replies)}{_records(records)}"
        + f'<script type="application/json" id="replies">{reply_data(items)}</script>\n'
    )
    count = f"{len(records):,} run{'' if len(records) == 1 else 's'}"
    return html_page(
        TITLE,
        f'<p class="source">{count}.</p><p class="note">{safe(_ABOUT)}</p>',
        body,
        style=here.with_suffix(".css").read_text(encoding="utf-8"),
        skip=("tables", "Skip to the tables"),
        script=here.with_suffix(".js").read_text(encoding="utf-8"),
    )


def reply_data(items: Sequence[Item]) -> str:
    """Contexts and replies as the script reads them: JSON in which no character can end the script element.

    ``systems``: names; ``items``: ``[id, turns, reference, emotion, answers]``, an answer being ``[system's place in
    systems, reply, predicted emotions, [[turn, start, end], ...]]``; ends are in code points.
    """
    systems = list(dict.fromkeys(system for item in items for system in item.answers))
    place = {system: i for i, system in enumerate(systems)}
    rows = [
        [
            item.id,
            [readable(text) for text in item.context],
            None if item.reference is None else readable(item.reference),
            item.emotion,
            [_answer(place[system], answer) for system, answer in item.answers.items()],
        ]
        for item in items
    ]
    text = json.dumps({"systems": systems, "items": rows}, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _answer(place: int, answer: Answer) -> list[Any]:
    spans = [[span.turn, span.start, span.end] for span in answer.causes]
    return [place, readable(answer.reply), list(answer.predicted), spans]


def _with_own_titles(files: Sequence[AnswerFile]) -> list[AnswerFile]:
    """Systems of files with the same title get the file's place in their names."""
    titles = [file.title for file in files]
    out = []
    for file in files:
        answers: Mapping[str, tuple[Answer, ...]] = file.answers
        if titles.count(file.title) > 1:
            answers = {f"{system} ({file.place})": given for system, given in answers.items()}
        out.append(AnswerFile(file.place, file.title, answers, file.notes))
    return out


def _filters(records: Sequence[RunRecord]) -> str:
    sizes = sorted({str(record["size"]) for record in records})
    options = "".join(f'<option value="{safe(size)}">{safe(size)}</option>' for size in sizes)
    return (
        '<form id="filters" role="search" aria-label="Filter the tables">'
        '<label class="field">show rows with'
        ' <input type="search" id="query" placeholder="recipe, note, commit ..."></label>'
        f'<label class="field">size <select id="size"><option value="">all</option>{options}</select></label>'
        '<label><input type="checkbox" id="printed" checked> published rows</label></form>\n'
    )


def _table(table: Table) -> str:
    facts = ("size", "seed", "items", "minutes", "parameters, M", "commit", "hardware")
    heads = [_head("system", "text", "asc"), *(_head(label, "text", "asc") for label in table.labels)]
    heads += [_head(c.title, "number", "desc" if c.higher_is_better else "asc") for c in table.columns]
    kinds = ("text", "number", "number", "number", "number", "text", "text")
    heads += [_head(name, kind, "asc") for name, kind in zip(facts, kinds, strict=True)]
    rows = "".join(_run(row, table, order, len(heads)) for order, row in enumerate(table.rows))
    key = safe(table.key)
    return (
        f'<section aria-labelledby="{key}"><h2 id="{key}">{safe(table.title)}</h2><p class="note">{safe(table.lead)}'
        f' <span id="{key}-count" role="status"></span></p>'
        f'<div class="scroll" tabindex="0" role="region" aria-labelledby="{key}">'
        f'<table class="runs" data-table="{key}"><thead><tr>{"".join(heads)}</tr></thead>{rows}</table>'
        "</div></section>\n"
    )


def _head(title: str, kind: str, first: str) -> str:
    return f'<th scope="col" data-kind="{kind}" data-first="{first}">{safe(title)}</th>'


def _run(row: Row, table: Table, order: int, width: int) -> str:
    record = row.record
    cells = [
        _name(record),
        *(_cell(row.labels.get(label, ""), row.labels.get(label, "")) for label in table.labels),
        *(_value_cell(row.values.get(column.key), column) for column in table.columns),
        *_fact_cells(row),
    ]
    printed = _printed_row(row, table, width)
    text = " ".join([row.run, *row.labels.values(), *_texts(record), row.printed.source if row.printed else ""])
    return (
        f'<tbody class="run" data-run="{safe(row.run)}" data-size="{safe(record["size"])}" data-order="{order}"'
        f' data-text="{safe(" ".join(text.lower().split()))}"><tr class="ours">{"".join(cells)}</tr>{printed}'
        f'<tr class="more"><td colspan="{width}"><details><summary>signatures</summary>{_signatures(row, table)}'
        f'<p><a href="#run={safe(row.run)}">all scores and settings of this run</a></p></details></td></tr></tbody>'
    )


def _name(record: RunRecord) -> str:
    """The recipe; under it what tells the run from others of the same weights or another data set."""
    start, changes = record.get("start") or {}, record.get("overrides") or ()
    told = (
        [f"measures the weights of {start['recipe']}"]
        if start.get("recipe") and not record.get("training_seconds")
        else []
    )
    shown = safe(record["recipe"]).replace("_", "_<wbr>")  # a long name may break there
    small = "".join(f"<small>{safe(text)}</small>" for text in (*told, *changes))
    return f'<th scope="row" data-value="{safe(record["recipe"])}">{shown}{small}</th>'


def _texts(record: RunRecord) -> list[str]:
    environment = record.get("environment") or {}
    return [str(record.get("note", "")), str(environment.get("device", "")), str(environment.get("commit", ""))]


def _cell(shown: object, value: object, number: bool = False) -> str:
    return f'<td{" class=number" if number else ""} data-value="{safe(value)}">{safe(shown)}</td>'


def _value_cell(value: Value | None, column: Column) -> str:
    if value is None:
        return '<td class="number" data-value="">–</td>'
    between = ""
    if value.interval is not None:
        low, high = (f"{end:.{column.decimals}f}" for end in value.interval)
        between = f"<small>{low} to {high}</small>"
    return f'<td class="number" data-value="{value.value:.6g}">{value.value:.{column.decimals}f}{between}</td>'


def _training_seconds(record: RunRecord) -> float | None:
    """Of the run; where it trained nothing itself, of the one that it starts from."""
    start = record.get("start") or {}
    return record.get("training_seconds") or start.get("training_seconds")


def _number_cell(value: float | None, digits: int) -> str:
    """A number with one decimal, sorted by so many digits; a dash where there is none."""
    if value is None:
        return _cell("–", "", number=True)
    return _cell("< 0.1" if 0 < value < 0.05 else f"{value:,.1f}", f"{value:.{digits}g}", number=True)


def _fact_cells(row: Row) -> list[str]:
    record, environment = row.record, row.record.get("environment") or {}
    n = max((value.n for value in row.values.values()), default=0)
    seconds, parameters = _training_seconds(record), record.get("parameters")
    commit, device = str(environment.get("commit") or ""), safe(environment.get("device") or "")
    return [
        _cell(record["size"], record["size"]),
        _cell(record["seed"], record["seed"], number=True),
        _cell(f"{n:,}" if n else "–", n or "", number=True),
        _number_cell(seconds / 60 if seconds else None, digits=4),
        _number_cell(None if parameters is None else parameters / 1e6, digits=6),
        _cell(commit[:8] or "–", commit),
        f'<td class="wide" data-value="{device}">{device or "–"}</td>',
    ]


def _printed_row(row: Row, table: Table, width: int) -> str:
    if row.printed is None:
        return ""
    cells = []
    for column in table.columns:
        shown, _, verdict = row.printed.values.get(column.key, ("", 0.0, ""))
        small = f"<small>{safe(verdict)}</small>" if verdict else ""
        cells.append(f'<td class="number">{safe(shown)}{small}</td>')
    head = f'<th scope="row" colspan="{1 + len(table.labels)}">published: {safe(row.printed.source)}</th>'
    rest = width - 1 - len(table.labels) - len(table.columns)
    return f'<tr class="printed">{head}{"".join(cells)}<td colspan="{rest}"></td></tr>'


def _signatures(row: Row, table: Table) -> str:
    lines = "".join(
        f'<tr><th scope="row">{safe(column.title)}</th><td>{safe(column.key)}</td>'
        f'<td class="number">{value.n or "–"}</td>'
        f'<td class="signature">{safe(value.signature or "not recorded")}</td></tr>'
        for column in table.columns
        if (value := row.values.get(column.key)) is not None
    )
    if not lines:
        return ""
    head = "".join(f'<th scope="col">{name}</th>' for name in ("column", "score", "items", "signature"))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def _compare(items: Sequence[Item], notes: Sequence[str], about: str) -> str:
    told = "".join(f'<p class="note">{safe(note)}</p>' for note in (about, *notes) if note)
    n = len(items)
    empty = "" if n else "<p>There are no replies to show.</p>"
    return (
        f'<section id="compare" aria-labelledby="compare-h"><h2 id="compare-h">Replies side by side</h2>{told}{empty}'
        "<noscript><p>Choosing a dialogue needs the script of this page.</p></noscript>"
        '<div id="chooser" hidden>'
        '<label class="field">find contexts with <input type="search" id="find" placeholder="word or emotion"></label>'
        '<span class="note" id="found" role="status"></span>'
        '<label class="field list">context <select id="item" size="6"></select></label>'
        '<button type="button" id="previous">previous</button><button type="button" id="next">next</button>'
        '<fieldset id="systems"><legend>systems</legend></fieldset>'
        '<label class="field" id="causes-of">causes marked as found by <select id="causes"></select></label>'
        '<a id="here" href="#compare">link to this view</a></div>'
        '<div id="shown" aria-live="polite"></div></section>\n'
    )


def _records(records: Sequence[RunRecord]) -> str:
    return (
        '<section aria-labelledby="records"><h2 id="records">Runs</h2>'
        '<p class="note">Every score of each run, as its record has it.</p>'
        + "".join(map(_record, records))
        + "</section>\n"
    )


def _record(record: RunRecord) -> str:
    name, environment = run_name(record), record.get("environment") or {}
    facts = {key: environment[key] for key in _ENVIRONMENT if key in environment}
    facts |= {"commit": environment.get("commit", ""), "packages": _joined(environment.get("packages", {}))}
    told = "".join(f"<div><dt>{safe(key)}</dt><dd>{safe(value)}</dd></div>" for key, value in facts.items() if value)
    note = f"<p>{safe(said)}</p>" if (said := record.get("note")) else ""
    rows = "".join(
        f'<tr><th scope="row">{safe(row.name)}</th><td class="number">{_plain(row.score.value)}</td>'
        f'<td class="number">{_between(row.score.interval)}</td><td>{safe(row.score.unit)}</td>'
        f'<td class="number">{row.score.n or "–"}</td>'
        f'<td class="signature">{safe(row.score.signature)}</td></tr>'
        for row in measured_of(record).rows
    )
    names = ("score", "value", "95 % interval", "unit", "items", "signature")
    head = "".join(f'<th scope="col">{title}</th>' for title in names)
    table = (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>' if rows else ""
    )
    return (
        f'<details class="record" id="run:{safe(name)}"><summary>{safe(name)}</summary>{note}<dl>{told}</dl>{table}'
        "</details>\n"
    )


def _joined(packages: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {version}" for name, version in packages.items())


def _plain(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.6g}"


def _between(interval: tuple[float, float] | None) -> str:
    return f"{_plain(interval[0])} to {_plain(interval[1])}" if interval else "–"
