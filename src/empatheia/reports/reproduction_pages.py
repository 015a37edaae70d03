"""A reproduction report as a short table for the terminal, as Markdown, and as one HTML file."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from empatheia.metrics.published import Published
from empatheia.metrics.records import RunRecord
from empatheia.reports.page import doc_link, html_page, safe
from empatheia.reports.reproduction import Line, MissingRun, TableReport
from empatheia.reports.targets import Reason, kind_meaning, reason_of

HEADS: tuple[str, ...] = ("metric", "ours", "95 % interval", "published", "difference", "verdict")
_CLASSES = {"reached": "good", "within published spread": "good", "below": "bad"}
_STYLE = """\
.verdict.good { color: var(--ground); font-weight: 600; }
.verdict.bad { color: var(--neg); font-weight: 600; }
.verdict.none, tr.none td { color: var(--soft); }
tr.first > * { border-top: 2px solid var(--rule); }
tbody th { font-weight: 600; }
main th, main td { overflow-wrap: break-word; }
td.count { white-space: nowrap; }
.again { font-size: 0; }
pre { background: var(--panel); border-radius: .4rem; padding: .6rem .8rem; overflow-x: auto; font-size: .85rem; }
ol.notes { list-style: decimal; padding-left: 1.8rem; font-size: .9rem; }
ol.notes li { margin: .3rem 0; overflow-wrap: anywhere; }
.reasons li { margin: .4rem 0; }
body { overflow-wrap: anywhere; }
.chart > table { min-width: 34rem; } /* scrolls by itself on a narrow screen; the page does not */
pre { white-space: pre-wrap; overflow-wrap: anywhere; }
figure { margin: 1rem 0; }
figure img { max-width: 100%; height: auto; background: #fff; border-radius: .4rem; }
figcaption { color: var(--soft); font-size: .875rem; }
sup a { padding: 0 .1em; text-decoration: none; }
"""


MOST_TOLD = 8
"""Commands of one kind in the printed short form; the report names all."""


def to_text(report: TableReport) -> str:
    """The numbers that were measured, the rows that wait for a run with its command, and why others have none."""
    lines = [f"{report.key}: {_summary(report)}"]
    names = _row_names(report)
    if shown := [line for line in report.lines if line.verdict is not None]:
        lines += _aligned(_measured_rows(shown, names))
    waiting = dict.fromkeys(names[line.number] for line in report.lines if line.recipe and line.verdict is None)
    if waiting:
        lines.append(f"no run yet: {'; '.join(waiting)}")
    for title, runs in (("still missing:", report.missing), ("as published, besides:", report.as_published)):
        lines += _first_commands(title, runs)
    if report.left_out:
        lines.append(_left_out(report))
    for reason, numbers in _by_reason(report):
        lines.append(f"not here ({reason.kind}): {_members(report, reason, numbers)}. {reason.text}")
    return "\n".join(lines)


def _measured_rows(lines: Iterable[Line], names: Mapping[Published, str]) -> Iterator[tuple[str, ...]]:
    """The table of what was measured; a row of print is named where its first number stands."""
    yield ("row", *HEADS, "run")
    last = ""
    for line in lines:
        name = names[line.number]
        yield ("" if name == last else name, *_cells(line), line.run)
        last = name


def _first_commands(title: str, runs: Sequence[MissingRun]) -> Iterator[str]:
    """A title with the first runs under it, and how many more there are; nothing without runs."""
    told = runs if len(runs) <= MOST_TOLD else runs[: MOST_TOLD - 1]
    if runs:
        yield title
        yield from (f"  {run}" for run in told)
    if len(told) < len(runs):
        yield f"  and {len(runs) - len(told)} more, in the report"


def _aligned(rows: Iterable[Sequence[str]]) -> list[str]:
    """Rows of a table with columns of even width."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]


def to_markdown(report: TableReport, pictures: Mapping[str, str] | None = None) -> str:
    """The whole report.

    Args:
        report: The table beside our runs.
        pictures: Caption to the picture's file name, relative to the report.
    """
    out = [f"# {_title(report)}", "", f"{_summary(report)[0].upper()}{_summary(report)[1:]}.", ""]
    names = _row_names(report)
    if report.lines:
        heads = ("row", *HEADS, "run", "notes")
        out += [_md_row(heads), _md_row(["---", "---", *["---:"] * 4, "---", "---", "---"])]
        out += [_md_row([names[line.number], *_cells(line), line.run, _marks(line)]) for line in report.lines]
        out.append("")
    for caption, name in (pictures or {}).items():
        out += [f"![{caption}]({name})", "", caption, ""]
    for title, runs in _commands(report):
        out += [f"## {title}", "", "```sh", *map(str, runs), "```", ""]
    if report.left_out:
        out += [_left_out(report), ""]
    reasons = list(_by_reason(report))
    if reasons:
        out += ["## Not here", ""]
        for reason, numbers in reasons:
            see = f" [More]({doc_link(reason.see)})." if reason.see else ""
            heading = f"**{_members(report, reason, numbers)}**: {kind_meaning(reason.kind)}. {reason.text}{see}"
            out.append(f"- {heading}")
        out.append("")
    if report.notes:
        out += ["## Notes", ""]
        for i, note in enumerate(report.notes, 1):
            out.append(f"{i}. {note.text}" + (f" [More]({doc_link(note.see)})." if note.see else ""))
        out.append("")
    if report.runs:
        out += ["## Runs", "", _md_row(_RUN_HEADS), _md_row(["---"] * len(_RUN_HEADS))]
        out += [_md_row(_run_facts(run)) for run in report.runs]
        out.append("")
    return "\n".join(out)


def to_html(report: TableReport, pictures: Mapping[str, bytes] | None = None) -> str:
    """The whole report as one file.

    Args:
        report: The table beside our runs.
        pictures: Caption to an SVG file's content.
    """
    body = [_html_table(report), *(_figure(caption, svg) for caption, svg in (pictures or {}).items())]
    for title, runs in _commands(report):
        body.append(f"<h2>{safe(title)}</h2><pre>{safe_lines(map(str, runs))}</pre>\n")
    if report.left_out:
        body.append(f'<p class="note">{safe(_left_out(report))}</p>\n')
    reasons = list(_by_reason(report))
    if reasons:
        items = "".join(
            f"<li><strong>{safe(_members(report, reason, numbers))}</strong>: {safe(kind_meaning(reason.kind))}."
            f" {safe(reason.text)}{_more(reason.see)}</li>"
            for reason, numbers in reasons
        )
        body.append(f'<h2>Not here</h2><ul class="reasons">{items}</ul>\n')
    if report.notes:
        items = "".join(
            f'<li id="n{i}">{safe(note.text)}{_more(note.see)}</li>' for i, note in enumerate(report.notes, 1)
        )
        body.append(f'<h2>Notes</h2><ol class="notes">{items}</ol>\n')
    if report.runs:
        head = "".join(f'<th scope="col">{safe(name)}</th>' for name in _RUN_HEADS)
        rows = "".join(
            "<tr>" + "".join(f"<td>{safe(cell)}</td>" for cell in _run_facts(run)) + "</tr>" for run in report.runs
        )
        body.append(
            f'<h2>Runs</h2><div class="chart"><table><thead><tr>{head}</tr></thead>'
            f"<tbody>{rows}</tbody></table></div>\n"
        )
    head = f'<p class="note">{safe(_summary(report))}.</p>'
    return html_page(
        _title(report), head, "".join(body), style=_STYLE, skip=("table", "Skip to the table"), images=True
    )


def overview_text(reports: Sequence[TableReport]) -> str:
    """All tables, a line each: rows printed, rows with a recipe, rows with a run."""
    rows = [("table", "rows", "with a recipe", "with a run", "")]
    for report in reports:
        if report.n_rows:
            counts = (str(report.n_rows), str(report.n_rows_with_recipe), str(report.n_rows_with_run))
            rows.append((report.key, *counts, ""))
        else:
            kinds = dict.fromkeys(reason.text.rstrip(".") for _, reason in report.other)
            rows.append((report.key, "-", "-", "-", "; ".join(kinds)))
    return "\n".join(_aligned(rows))


def safe_lines(lines: Iterable[str]) -> str:
    """Escaped lines for a ``pre``."""
    return "\n".join(safe(line) for line in lines)


def _title(report: TableReport) -> str:
    return f"{report.paper}, {report.table}"


def _summary(report: TableReport) -> str:
    if not report.lines:
        return "no number of this table is computed by a program"
    settings = dict.fromkeys(f"{line.number.dataset}, {line.number.setting}" for line in report.lines)
    places = "; ".join(settings) if len(settings) <= 3 else f"{len(settings)} test settings"
    warning = "; smoke runs learn from the self-written sample, none of their values compares with print"
    return (
        f"{report.n_rows} row{'' if report.n_rows == 1 else 's'} ({places}); {report.n_rows_with_recipe} have a recipe,"
        f" {report.n_rows_with_run} a run of ours{warning if report.is_smoke else ''}"
    )


def _left_out(report: TableReport) -> str:
    return f"smoke runs, left out as they compare with nothing (--size smoke shows them): {'; '.join(report.left_out)}"


def _row_names(report: TableReport) -> dict[Published, str]:
    """The row of every number, with its test set or setting where the table prints several."""
    datasets: dict[str, set[str]] = {}
    settings: dict[tuple[str, str, str], set[str]] = {}
    for line in report.lines:
        number = line.number
        datasets.setdefault(number.row, set()).add(number.dataset)
        settings.setdefault((number.row, number.dataset, number.metric), set()).add(number.setting)
    names = {}
    for line in report.lines:
        number = line.number
        extra = [number.dataset] if len(datasets[number.row]) > 1 else []
        if len(settings[number.row, number.dataset, number.metric]) > 1:
            extra.append(number.setting)
        names[number] = "; ".join([number.row, *extra])
    return names


def _cells(line: Line) -> tuple[str, str, str, str, str, str]:
    number, verdict = line.number, line.verdict
    if verdict is None:
        told = f"{line.reason.kind}: {line.reason.recipe}".rstrip(": ") if line.reason is not None else "no run"
        return number.metric, "-", "", str(number), "", told

    def show(value: float, sign: str = "") -> str:
        return "-" if math.isnan(value) else f"{value:{sign}.{number.decimals}f}"

    between = "" if verdict.interval is None else f"{show(verdict.interval[0])} to {show(verdict.interval[1])}"
    if line.deviation is not None:
        between = f"± {show(line.deviation)} over {len(line.seeds)} seeds"
    difference = "" if math.isnan(verdict.difference) else show(verdict.difference, "+")
    told = verdict.verdict + (", inside our interval" if line.is_inside and verdict.verdict == "below" else "")
    return number.metric, show(verdict.ours), between, str(number), difference, told


def _marks(line: Line) -> str:
    return ", ".join(map(str, line.marks))


def _commands(report: TableReport) -> Iterator[tuple[str, Sequence[MissingRun]]]:
    if report.missing:
        yield "Still missing", report.missing
    if report.as_published:
        yield "To compare at the published size, besides", report.as_published


def _by_reason(report: TableReport) -> Iterator[tuple[Reason, list[Published]]]:
    """Numbers without a recipe, one entry for each reason in words."""
    found: dict[tuple[str, str, str], list[tuple[Published, Reason]]] = {}
    without = [(line.number, line.reason) for line in report.lines if line.reason is not None]
    for number, reason in (*without, *report.other):
        found.setdefault((reason.kind, reason.text, reason.see), []).append((number, reason))
    for entries in found.values():
        yield entries[0][1], [number for number, _ in entries]


def _members(report: TableReport, reason: Reason, numbers: Sequence[Published]) -> str:
    """Rows, with the recipe each will have; or metrics, where the reason is one of the metric."""
    if reason.kind == "undefined":
        return ", ".join(dict.fromkeys(number.metric for number in numbers))
    named = {}
    for number in numbers:
        own = reason_of(number)
        named[number.row] = f"{number.row} ({own.recipe})" if own is not None and own.recipe else number.row
    datasets = dict.fromkeys(number.dataset for number in numbers)
    places = f", on {', '.join(datasets)}" if len({line.number.dataset for line in report.lines}) > 1 else ""
    return "; ".join(named.values()) + places


_RUN_HEADS = ("recipe", "size", "seed", "minutes", "parameters", "device", "commit", "note")


def _run_facts(record: RunRecord) -> list[str]:
    environment = record.get("environment") or {}
    seconds, parameters = record.get("training_seconds"), record.get("parameters")
    seconds = seconds or (record.get("start") or {}).get("training_seconds")  # of the run whose weights it measures
    return [
        record["recipe"],
        record["size"],
        str(record["seed"]),
        f"{seconds / 60:.0f}" if seconds else "-",
        "-" if parameters is None else f"{parameters / 1e6:.1f}M",
        str(environment.get("device", "-")),
        str(environment.get("commit", "-"))[:10],
        str(record.get("note", "")),
    ]


def _html_table(report: TableReport) -> str:
    if not report.lines:
        return '<p id="table">No number of this table is computed by a program.</p>\n'
    heads = ("row", *HEADS, "run", "notes")
    right = {"ours", "published", "difference"}
    head = "".join(
        f'<th scope="col"{" class=" + chr(34) + "count" + chr(34) if h in right else ""}>{h}</th>' for h in heads
    )
    rows = []
    names = _row_names(report)
    last, again = ("", ""), ' class="again"'  # said to a reader of the page, not shown
    for line in report.lines:
        place = (names[line.number], line.run)
        metric, ours, between, printed, difference, told = map(safe, _cells(line))
        kind = "none" if line.verdict is None else _CLASSES.get(line.verdict.verdict, "none")
        marks = "".join(f'<a href="#n{i}">{i}</a> ' for i in line.marks)
        css = " ".join(name for name, on in (("first", place != last), ("none", line.verdict is None)) if on)
        same = again if place == last else ""
        rows.append(
            f'<tr class="{css}"><th scope="row"{same}>{safe(place[0])}</th>'
            f'<td>{metric}</td><td class="count">{ours}</td><td>{between}</td>'
            f'<td class="count">{printed}</td><td class="count">{difference}</td>'
            f'<td class="verdict {kind}">{told}</td><td{same}>{safe(line.run)}</td><td>{marks}</td></tr>\n'
        )
        last = place
    table = f"<table><thead><tr>{head}</tr></thead><tbody>\n{''.join(rows)}</tbody></table>"
    return f'<div class="chart" id="table" tabindex="0" role="region" aria-label="The table">{table}</div>\n'


def _figure(caption: str, svg: bytes) -> str:
    data = base64.b64encode(svg).decode("ascii")
    picture = f'<img src="data:image/svg+xml;base64,{data}" alt="{safe(caption)}">'
    return f"<figure>{picture}<figcaption>{safe(caption)}</figcaption></figure>\n"


def _more(see: str) -> str:
    return f' <a href="{safe(doc_link(see))}">More</a>' if see else ""


def _md_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(" ".join(str(cell).replace("|", "\\|").split()) for cell in cells) + " |"
