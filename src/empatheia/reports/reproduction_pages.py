"""A reproduction report as a short table for the terminal, as Markdown, and as one HTML file."""

from __future__ import annotations

import base64
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from empatheia.metrics.published import Published, shown_tolerance
from empatheia.metrics.records import RunRecord
from empatheia.reports.claims import OUTCOMES, Compared
from empatheia.reports.lines import Line
from empatheia.reports.page import doc_link, html_page, safe
from empatheia.reports.reproduction import MissingRun, TableReport
from empatheia.reports.targets import Reason, Why, kind_meaning, reason_of
from empatheia.reports.totals import Totals

HEADS: tuple[str, ...] = ("metric", "ours", "95 % interval", "published", "difference", "tolerance", "verdict")
ROW_HEADS: tuple[str, ...] = ("metric", "ours", "95 % interval")
CLAIM_HEADS: tuple[str, ...] = (
    "row",
    "against",
    "metric",
    "published difference",
    "ours",
    "95 % interval",
    "outcome",
    "runs",
)
_CLASSES = {"better": "good", "met": "good", "missed": "bad"}
_OUTCOME_CLASSES = {"held": "good", "not held": "bad"}
AT_ROW_CLAIMS = "What the paper claims, at size row"
AT_ROW = (
    "Runs of size row are small and short, with one equal budget for all rows of a table: none of these values can be"
    " set beside print. Compare them with each other; what an ablation changes is set beside the printed change below."
)
HOW_CLAIMS_ARE_TESTED = (
    "A difference is the first row less the second. Over two or more common seeds: the mean of the paired differences,"
    " its sample deviation, and the paired t-test with its 95 % interval. Of one run each: the interval that the two"
    " intervals over test items make together, rather too wide, and silent about other seeds. No p-value is corrected"
    " for their number. A printed difference is undecided where it is within its own spread (± beside it)."
)
_KINDS_NOT_TO_BE_HAD = ("data", "weights")
_STYLE = """\
td.verdict { min-width: 12rem; } /* the reason must not become a tower on a phone */
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
    """The numbers that were measured, the rows that wait for a run with its command, and why others have none.

    Of a report at size ``row`` the values of that size, and the claimed differences.
    """
    lines = [f"{report.key}: {_summary(report)}"]
    names = _row_names(report)
    if report.size == "row":
        lines += _at_row_size(report, names)
    else:
        lines += _beside_print(report, names)
    for title, runs in (("still missing:", report.missing), ("as published, besides:", report.as_published)):
        if report.size != "row" or runs is report.missing:
            lines += _first_commands(title, runs)
    if report.left_out:
        lines.append(_left_out(report))
    for reason, numbers in _by_reason(report):
        lines.append(f"{_not_here(reason)}: {_members(report, reason, numbers)}. {reason.text}")
    return "\n".join(lines)


def _beside_print(report: TableReport, names: Mapping[Published, str]) -> Iterator[str]:
    """Runs beside print, why they differ, and what the paper claims by runs of these sizes."""
    if shown := [line for line in report.lines if line.verdict is not None]:
        yield from _aligned(_measured_rows(shown, names, HEADS, _cells))
    for i, (why, lines) in enumerate(_by_why(report), 1):
        yield f"[{i}] {_told_of(lines, names)}: {_why_text(why)}"
    waiting = dict.fromkeys(names[line.number] for line in report.lines if line.recipe and line.verdict is None)
    if waiting:
        yield f"no run yet: {'; '.join(waiting)}"
    yield from _claims_text(report, _larger(report))
    if report.row_lines:
        n = report.n_rows_at_row_size
        yield f"at size row: {n} row{'' if n == 1 else 's'}; empatheia reproduce {report.key} --size row"


def _at_row_size(report: TableReport, names: Mapping[Published, str]) -> Iterator[str]:
    """Values of size ``row`` without print, and what the paper claims by them."""
    if not report.row_lines:
        yield "no run of size row yet"
        return
    yield AT_ROW
    yield from _aligned(_measured_rows(report.row_lines, names, ROW_HEADS, _row_cells))
    yield from _claims_text(report, _at_row(report))


def _claims_text(report: TableReport, claims: Sequence[Compared]) -> Iterator[str]:
    """The claimed differences, one a line; those without runs are counted."""
    measured = [claim for claim in claims if claim.is_measured]
    if not measured:
        return
    yield f"what the paper claims: {outcomes_text(claims)}"
    yield from _aligned([CLAIM_HEADS, *map(_claim_cells, measured)])


def outcomes_text(claims: Iterable[Compared]) -> str:
    """How many claimed differences had which outcome, in the order of :data:`OUTCOMES`."""
    counts = Counter(claim.outcome for claim in claims)
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome])


def _measured_rows(
    lines: Iterable[Line],
    names: Mapping[Published, str],
    heads: Sequence[str],
    cells: Callable[[Line], Sequence[str]],
) -> Iterator[tuple[str, ...]]:
    """The table of what was measured; a row of print is named where its first number stands."""
    yield ("row", *heads, "run")
    last = ""
    for line in lines:
        name = names[line.number]
        yield ("" if name == last else name, *cells(line), line.run)
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
    out += _md_lines(report, names)
    out += _md_whys(report, names)
    out += _md_claims("What the paper claims", _larger(report))
    if report.row_lines:
        out += ["## At size row", "", AT_ROW, "", _md_row(("row", *ROW_HEADS, "run", "notes"))]
        out.append(_md_row(["---", "---", "---:", "---", "---", "---"]))
        out += [_md_row([names[line.number], *_row_cells(line), line.run, _marks(line)]) for line in report.row_lines]
        out.append("")
        out += _md_claims(AT_ROW_CLAIMS, _at_row(report))
    for caption, name in (pictures or {}).items():
        out += [f"![{caption}]({name})", "", caption, ""]
    for title, runs in _commands(report):
        out += [f"## {title}", "", "```sh", *map(str, runs), "```", ""]
    if report.left_out:
        out += [_left_out(report), ""]
    out += _md_reasons(report)
    if report.notes:
        out += ["## Notes", ""]
        out += [f"{i}. {note.text}{_md_more(note.see)}" for i, note in enumerate(report.notes, 1)]
        out.append("")
    if report.runs:
        out += ["## Runs", "", _md_row(_RUN_HEADS), _md_row(["---"] * len(_RUN_HEADS))]
        out += [_md_row(_run_facts(run)) for run in report.runs]
        out.append("")
    return "\n".join(out)


def _md_lines(report: TableReport, names: Mapping[Published, str]) -> Iterator[str]:
    if not report.lines:
        return
    places = _why_places(report)
    yield _md_row(("row", *HEADS, "run", "notes"))
    yield _md_row(["---", "---", *["---:"] * 5, "---", "---", "---"])
    for line in report.lines:
        cells = [*_cells(line)[:-1], _verdict_cell(line, places)]
        yield _md_row([names[line.number], *cells, line.run, _marks(line)])
    yield ""


def _md_reasons(report: TableReport) -> Iterator[str]:
    reasons = list(_by_reason(report))
    if reasons:
        yield from ("## Not here", "")
        for reason, numbers in reasons:
            told = f"{kind_meaning(reason.kind)}. {reason.text}{_md_more(reason.see)}"
            yield f"- **{_members(report, reason, numbers)}**: {told}"
        yield ""


def _md_more(see: str) -> str:
    return f" [More]({doc_link(see)})." if see else ""


def _md_whys(report: TableReport, names: Mapping[Published, str]) -> Iterator[str]:
    whys = list(_by_why(report))
    if whys:
        yield from ("## Differences, and why", "")
        for i, (why, lines) in enumerate(whys, 1):
            yield f"{i}. **{_told_of(lines, names)}**: {_why_text(why)}{_md_more(why.see)}"
        yield ""


def _md_claims(title: str, claims: Sequence[Compared]) -> Iterator[str]:
    measured = [claim for claim in claims if claim.is_measured]
    if measured:
        yield from (f"## {title}", "", f"{HOW_CLAIMS_ARE_TESTED} In all: {outcomes_text(claims)}.", "")
        yield from (_md_row(CLAIM_HEADS), _md_row(["---"] * 3 + ["---:"] * 2 + ["---"] * 3))
        yield from (_md_row(_claim_cells(claim)) for claim in measured)
        yield ""


def to_html(report: TableReport, pictures: Mapping[str, bytes] | None = None) -> str:
    """The whole report as one file.

    Args:
        report: The table beside our runs.
        pictures: Caption to an SVG file's content.
    """
    body = [_html_table(report), *_html_whys(report), *_html_claims("What the paper claims", _larger(report))]
    if report.row_lines:
        body += [f'<h2>At size row</h2><p class="note">{safe(AT_ROW)}</p>\n', _html_row_table(report)]
        body += _html_claims(AT_ROW_CLAIMS, _at_row(report))
    body += [*(_figure(caption, svg) for caption, svg in (pictures or {}).items())]
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
    """All tables, a line each: rows printed, with a recipe, with a reason for none, with a run; then the totals."""
    rows: list[tuple[str, ...]] = [("table", "rows", "with a recipe", "with a reason", "with a run", "at size row", "")]
    for report in reports:
        if report.n_rows:
            counts = (report.n_rows, report.n_rows_with_recipe, report.n_rows_with_reason)
            runs = (report.n_rows_with_run, report.n_rows_at_row_size)
            rows.append((report.key, *map(str, (*counts, *runs)), ""))
        else:
            kinds = dict.fromkeys(reason.text.rstrip(".") for _, reason in report.other)
            rows.append((report.key, *"-" * 5, "; ".join(kinds)))
    return "\n".join(_aligned(rows))


def totals_text(totals: Totals) -> str:
    """The counts of all tables, one kind a line."""
    rows, values = totals.rows, totals.values
    return (
        f"rows: {rows['printed']} printed; {rows['with_recipe']} with a recipe, {rows['with_reason']} with a reason for"
        f" none, {rows['with_neither']} with neither; {rows['with_run']} with a run ({rows['with_run_beside_print']}"
        f" beside print, {rows['at_row_size']} at size row)\n"
        f"printed values: {values['printed']}; {values['reached']} reached ({values['better']} of them better by more"
        f" than the tolerance), {values['within_tolerance']} within tolerance, {values['missed']} missed,"
        f" {values['not_comparable']} not comparable, {values['no_run']} no run yet, {values['not_to_be_had']} without"
        f" a recipe\n"
        f"claimed differences: {outcomes_counts(totals.claims)}\n"
        f"runs: {_runs_told(totals.runs)}"
    )


def _runs_told(runs: Mapping[str, float]) -> str:
    """How many runs of how many recipes, their seeds, and what they took."""
    if not runs["runs"]:
        return "none"
    fewest, most = int(runs["fewest_seeds"]), int(runs["most_seeds"])
    seeds = f"{fewest} to {most} seeds" if fewest < most else f"{most} seed{'' if most == 1 else 's'}"
    return (
        f"{runs['runs']} of {runs['recipes']} recipes, {seeds} each; {runs['training_hours']:.1f} h of training and"
        f" {runs['measuring_hours']:.1f} h of measuring in all"
    )


def outcomes_counts(counts: Mapping[str, Mapping[str, int]]) -> str:
    """Outcomes by size in words."""
    told = [
        f"at size {size} {', '.join(f'{n} {outcome}' for outcome, n in own.items() if n)}"
        for size, own in counts.items()
        if any(own.values())
    ]
    return "; ".join(told) or "none has runs"


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
        f" {report.n_rows_with_run} a run of ours, {report.n_rows_at_row_size} one of size row"
        f"{warning if report.is_smoke else ''}"
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


def _cells(line: Line) -> tuple[str, ...]:
    """Those under :data:`HEADS`."""
    number, verdict = line.number, line.verdict
    if verdict is None:
        return number.metric, "-", "", str(number), "", "", _verdict_cell(line)
    difference = "" if math.isnan(verdict.difference) else _shown(number, verdict.difference, "+")
    tolerance = "" if verdict.tolerance is None else shown_tolerance(verdict)
    return *_row_cells(line), str(number), difference, tolerance, _verdict_cell(line)


def _row_cells(line: Line) -> tuple[str, str, str]:
    """Those under :data:`ROW_HEADS`."""
    number, verdict = line.number, line.verdict
    if verdict is None:
        return number.metric, "-", ""
    between = _interval(number, verdict.interval)
    if line.deviation is not None:
        between = f"± {_shown(number, line.deviation)} over {len(line.seeds)} seeds"
    return number.metric, _shown(number, verdict.ours), between


def _shown(number: Published, value: float, sign: str = "", more: int = 0) -> str:
    """A value with the printed number of decimals, and so many more."""
    return "-" if math.isnan(value) else f"{value:{sign}.{number.decimals + more}f}"


def _interval(number: Published, interval: tuple[float, float] | None, sign: str = "", more: int = 0) -> str:
    return "" if interval is None else " to ".join(_shown(number, end, sign, more) for end in interval)


def _verdict_cell(line: Line, places: Mapping[Why, int] = MappingProxyType({})) -> str:
    """The verdict in words, with the number of what is known of a difference."""
    if line.verdict is None:
        return "no run yet" if line.reason is None else _not_here(line.reason)
    inside = ", inside our interval" if line.is_inside and line.verdict.verdict == "missed" else ""
    place = f" (why: {places[line.why]})" if line.why is not None and line.why in places else ""
    return f"{line.verdict.verdict}{inside}{place}"


def _not_here(reason: Reason) -> str:
    """What kind of reason it is, in a word or two."""
    if reason.kind in _KINDS_NOT_TO_BE_HAD:
        return f"cannot be had ({reason.kind})"
    return f"not here ({reason.kind}{f', {reason.recipe}' if reason.recipe else ''})"


def _by_why(report: TableReport) -> Iterator[tuple[Why, list[Line]]]:
    """What is known of differences, with the lines it holds for, in the order of the table."""
    found: dict[Why, list[Line]] = {}
    for line in report.lines:
        if line.why is not None:
            found.setdefault(line.why, []).append(line)
    yield from found.items()


def _why_places(report: TableReport) -> dict[Why, int]:
    return {why: i for i, (why, _) in enumerate(_by_why(report), 1)}


def _why_text(why: Why) -> str:
    return f"{why.text.rstrip('.')}. {'Shown: ' + why.shown_by if why.shown_by else 'Not tested.'}"


def _told_of(lines: Sequence[Line], names: Mapping[Published, str]) -> str:
    """Rows with the metrics that differ."""
    metrics: dict[str, dict[str, None]] = {}
    for line in lines:
        metrics.setdefault(names[line.number], {})[line.number.metric] = None
    return "; ".join(f"{row} {', '.join(own)}" for row, own in metrics.items())


def _larger(report: TableReport) -> list[Compared]:
    return [claim for claim in report.claims if claim.size != "row"]


def _at_row(report: TableReport) -> list[Compared]:
    return [claim for claim in report.claims if claim.size == "row"]


def _claim_cells(one: Compared) -> tuple[str, ...]:
    """Those under :data:`CLAIM_HEADS`."""
    number, against = one.claim.number, one.claim.against
    other = against.row if against.table == number.table else f"{against.row}, {against.table}"
    where = next((f" ({part})" for part in number.setting.split("; ") if "=" in part), "")
    between = _interval(number, one.interval, "+", 1)
    if one.deviation is not None:
        p_value = "" if one.p_value is None else f", p {one.p_value:.3f}"
        between = f"{between} (± {_shown(number, one.deviation, more=1)} over {len(one.seeds)} seeds{p_value})"
    outcome = f"{one.outcome}: {one.why}" if one.why else one.outcome
    seeds = ", ".join(map(str, one.seeds))
    runs = f"{one.recipes[0]}, {one.recipes[1]} {one.size}, seed{'s' if len(one.seeds) > 1 else ''} {seeds}"
    printed = f"{_shown(number, one.claim.printed, '+')} (± {one.claim.printed_margin:.{number.decimals}f})"
    return (
        number.row,
        other,
        f"{number.metric}{where}",
        printed,
        _shown(number, one.ours, "+", 1),
        between,
        outcome,
        runs,
    )


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
    head = _html_heads(("row", *HEADS, "run", "notes"))
    rows = []
    names, places = _row_names(report), _why_places(report)
    last, again = ("", ""), ' class="again"'  # said to a reader of the page, not shown
    for line in report.lines:
        place = (names[line.number], line.run)
        metric, ours, between, printed, difference, allowed, told = map(safe, _cells(line))
        if line.why is not None and line.why in places:
            told += f' <a href="#w{places[line.why]}">why</a>'
        kind = "none" if line.verdict is None else _CLASSES.get(line.verdict.verdict, "none")
        marks = _html_marks(line)
        css = " ".join(name for name, on in (("first", place != last), ("none", line.verdict is None)) if on)
        same = again if place == last else ""
        rows.append(
            f'<tr class="{css}"><th scope="row"{same}>{safe(place[0])}</th>'
            f'<td>{metric}</td><td class="count">{ours}</td><td>{between}</td>'
            f'<td class="count">{printed}</td><td class="count">{difference}</td><td class="count">{allowed}</td>'
            f'<td class="verdict {kind}">{told}</td><td{same}>{safe(line.run)}</td><td>{marks}</td></tr>\n'
        )
        last = place
    table = f"<table><thead><tr>{head}</tr></thead><tbody>\n{''.join(rows)}</tbody></table>"
    return f'<div class="chart" id="table" tabindex="0" role="region" aria-label="The table">{table}</div>\n'


_RIGHT = frozenset(("ours", "published", "difference", "tolerance", "published difference"))


def _html_heads(heads: Iterable[str]) -> str:
    return "".join(f'<th scope="col"{_COUNT if head in _RIGHT else ""}>{safe(head)}</th>' for head in heads)


_COUNT = ' class="count"'


def _html_whys(report: TableReport) -> Iterator[str]:
    names = _row_names(report)
    items = "".join(
        f'<li id="w{i}"><strong>{safe(_told_of(lines, names))}</strong>: {safe(_why_text(why))}{_more(why.see)}</li>'
        for i, (why, lines) in enumerate(_by_why(report), 1)
    )
    if items:
        yield f'<h2>Differences, and why</h2><ol class="notes">{items}</ol>\n'


def _html_claims(title: str, claims: Sequence[Compared]) -> Iterator[str]:
    measured = [claim for claim in claims if claim.is_measured]
    if not measured:
        return
    rows = []
    for claim in measured:
        row, other, metric, printed, ours, between, outcome, runs = map(safe, _claim_cells(claim))
        kind = _OUTCOME_CLASSES.get(claim.outcome, "none")
        rows.append(
            f'<tr><th scope="row">{row}</th><td>{other}</td><td>{metric}</td><td{_COUNT}>{printed}</td>'
            f'<td{_COUNT}>{ours}</td><td>{between}</td><td class="verdict {kind}">{outcome}</td><td>{runs}</td></tr>\n'
        )
    note = f"{HOW_CLAIMS_ARE_TESTED} In all: {outcomes_text(claims)}."
    yield f'<h2>{safe(title)}</h2><p class="note">{safe(note)}</p>\n'
    yield _html_box(title, CLAIM_HEADS, rows)


def _html_row_table(report: TableReport) -> str:
    names = _row_names(report)
    rows = []
    for line in report.row_lines:
        metric, ours, between = map(safe, _row_cells(line))
        rows.append(
            f'<tr><th scope="row">{safe(names[line.number])}</th><td>{metric}</td><td{_COUNT}>{ours}</td>'
            f"<td>{between}</td><td>{safe(line.run)}</td><td>{_html_marks(line)}</td></tr>\n"
        )
    return _html_box("Values at size row", ("row", *ROW_HEADS, "run", "notes"), rows)


def _html_marks(line: Line) -> str:
    return "".join(f'<a href="#n{i}">{i}</a> ' for i in line.marks)


def _html_box(label: str, heads: Iterable[str], rows: Iterable[str]) -> str:
    """A wide table that scrolls by itself."""
    table = f"<table><thead><tr>{_html_heads(heads)}</tr></thead><tbody>\n{''.join(rows)}</tbody></table>"
    return f'<div class="chart" tabindex="0" role="region" aria-label="{safe(label)}">{table}</div>\n'


def _figure(caption: str, svg: bytes) -> str:
    data = base64.b64encode(svg).decode("ascii")
    picture = f'<img src="data:image/svg+xml;base64,{data}" alt="{safe(caption)}">'
    return f"<figure>{picture}<figcaption>{safe(caption)}</figcaption></figure>\n"


def _more(see: str) -> str:
    return f' <a href="{safe(doc_link(see))}">More</a>' if see else ""


def _md_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(" ".join(str(cell).replace("|", "\\|").split()) for cell in cells) + " |"
