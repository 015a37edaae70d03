"""A reproduction report: a short text for the terminal, and a document for Markdown and HTML."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from empatheia.documents.document import (
    Block,
    Cell,
    Code,
    Column,
    Content,
    Document,
    Figure,
    Heading,
    Items,
    Row,
    Table,
    Text,
    element,
    link,
    note,
)
from empatheia.documents.html import to_html
from empatheia.documents.page import doc_link
from empatheia.documents.text import aligned, to_text
from empatheia.metrics.published import Published, shown_tolerance
from empatheia.metrics.records import RunRecord
from empatheia_research.reports.claims import OUTCOMES, Compared
from empatheia_research.reports.lines import Line
from empatheia_research.reports.reproduction import MissingRun, TableReport
from empatheia_research.reports.targets import Reason, Why, kind_meaning, reason_of
from empatheia_research.reports.totals import Totals

_COUNT = {"class": "count"}


def _number(title: str) -> Column:
    return Column(title, is_number=True, attributes=_COUNT)


HEADS: tuple[str | Column, ...] = (
    "metric",
    _number("ours"),
    Column("95 % interval", is_number=True),
    _number("published"),
    _number("difference"),
    _number("tolerance"),
    "verdict",
)
ROW_HEADS: tuple[str | Column, ...] = ("metric", _number("ours"), "95 % interval")
CLAIM_HEADS: tuple[str | Column, ...] = (
    "row",
    "against",
    "metric",
    _number("published difference"),
    _number("ours"),
    "95 % interval",
    "outcome",
    "runs",
)
RUN_HEADS = ("recipe", "size", "seed", "minutes", "parameters", "device", "commit", "note")
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
_STYLE = Path(__file__).with_suffix(".css")


MOST_TOLD = 8
"""Commands of one kind in the printed short form; the report names all."""


def short_text(report: TableReport) -> str:
    """The numbers that were measured, the rows that wait for a run with its command, and why others have none.

    Of a report at size ``row`` the values of that size, and the claimed differences.
    """
    names = _row_names(report)
    at_row = report.size == "row"
    blocks = [*(_short_at_row_size if at_row else _short_beside_print)(report, names)]
    for title, runs in (("still missing:", report.missing), ("as published, besides:", report.as_published)):
        if runs and (not at_row or runs is report.missing):
            blocks += [Text(title), _first_commands(runs)]
    if report.left_out:
        blocks.append(Text(_left_out(report)))
    for reason, numbers in _by_reason(report):
        blocks.append(Text(f"{_not_here(reason)}: {_members(report, reason, numbers)}. {reason.text}"))
    return to_text(Document(f"{report.key}: {_summary(report)}", blocks=blocks))


def _short_beside_print(report: TableReport, names: Mapping[Published, str]) -> Iterator[Block]:
    """Runs beside print, why they differ, and what the paper claims by runs of these sizes."""
    if shown := [line for line in report.lines if line.verdict is not None]:
        yield _short_table(HEADS, ((names[line.number], *_cells(line), line.run) for line in shown))
    for i, (why, lines) in enumerate(_by_why(report), 1):
        yield Text(f"[{i}] {_told_of(lines, names)}: {_why_text(why)}")
    waiting = dict.fromkeys(names[line.number] for line in report.lines if line.recipe and line.verdict is None)
    if waiting:
        yield Text(f"no run yet: {'; '.join(waiting)}")
    yield from _short_claims(_larger(report))
    if n := report.n_rows_at_row_size:
        yield Text(f"at size row: {n} row{'' if n == 1 else 's'}; empatheia reproduce {report.key} --size row")


def _short_at_row_size(report: TableReport, names: Mapping[Published, str]) -> Iterator[Block]:
    """Values of size ``row`` without print, and what the paper claims by them."""
    if not report.row_lines:
        yield Text("no run of size row yet")
        return
    yield Text(AT_ROW)
    yield _short_table(ROW_HEADS, ((names[line.number], *_row_cells(line), line.run) for line in report.row_lines))
    yield from _short_claims(_at_row(report))


def _short_claims(claims: Sequence[Compared]) -> Iterator[Block]:
    """The claimed differences, one a line; those without runs are counted."""
    if measured := [claim for claim in claims if claim.is_measured]:
        yield Text(f"what the paper claims: {outcomes_text(claims)}")
        yield Table(CLAIM_HEADS, [*map(_claim_cells, measured)])


def _short_table(heads: Sequence[str | Column], rows: Iterable[Sequence[str]]) -> Table:
    """What was measured; a row of print is named where its first number stands."""
    shown, last = [], ""
    for name, *cells in rows:
        shown.append(("" if name == last else name, *cells))
        last = name
    return Table(("row", *heads, "run"), shown)


def _first_commands(runs: Sequence[MissingRun]) -> Items:
    """The first runs, and how many more there are."""
    shown = runs if len(runs) <= MOST_TOLD else runs[: MOST_TOLD - 1]
    more = [f"and {len(runs) - len(shown)} more, in the report"] if len(shown) < len(runs) else []
    return Items([*map(str, shown), *more])


def reproduction_page(report: TableReport, figures: Sequence[Figure] = ()) -> str:
    """The whole report as one HTML file; the figures hold SVG."""
    document = reproduction_document(report, figures)
    return to_html(document, _STYLE.read_text(encoding="utf-8"), skip=("table", "Skip to the table"), images=True)


def reproduction_document(report: TableReport, figures: Sequence[Figure] = ()) -> Document:
    """The whole report.

    Args:
        report: The table beside our runs.
        figures: Pictures of it.
    """
    names, blocks = _row_names(report), list[Block]()
    if report.lines:
        blocks.append(_table(report, names))
    else:
        blocks.append(Text("No number of this table is computed by a program.", {"id": "table"}))
    if whys := list(_by_why(report)):
        told = [
            (element("strong", _told_of(lines, names)), f": {_why_text(why)}", _more(why.see)) for why, lines in whys
        ]
        blocks += [Heading("Differences, and why"), _numbered(told, "w")]
    blocks += _claims("What the paper claims", _larger(report))
    if report.row_lines:
        rows = [(names[line.number], *_row_cells(line), line.run, _marks(line)) for line in report.row_lines]
        heads = ("row", *ROW_HEADS, "run", "notes")
        blocks += [Heading("At size row"), note(AT_ROW), Table(heads, rows, True, _box("Values at size row"))]
        blocks += _claims(AT_ROW_CLAIMS, _at_row(report))
    blocks += figures
    for title, runs in _commands(report):
        blocks += [Heading(title), Code([*map(str, runs)])]
    if report.left_out:
        blocks.append(note(_left_out(report)))
    blocks += _reasons(report)
    if report.notes:
        blocks += [Heading("Notes"), _numbered([(each.text, _more(each.see)) for each in report.notes], "n")]
    if report.runs:
        blocks += [Heading("Runs"), Table(RUN_HEADS, [*map(_run_facts, report.runs)], around={"class": "chart"})]
    summary = _summary(report)
    return Document(f"{report.paper}, {report.table}", [note(f"{summary[0].upper()}{summary[1:]}.")], blocks)


def _numbered(items: Sequence[Content], key: str) -> Items:
    """A list to whose items others lead by their number."""
    cells = [Cell(item, {"id": f"{key}{i}"}) for i, item in enumerate(items, 1)]
    return Items(cells, is_ordered=True, attributes={"class": "notes"})


def _box(label: str, key: str = "") -> dict[str, object]:
    """Around a wide table, so that it scrolls by itself."""
    return {"class": "chart", "id": key, "tabindex": 0, "role": "region", "aria-label": label}


def _table(report: TableReport, names: Mapping[Published, str]) -> Table:
    """The printed numbers beside ours; a row and run that goes on is named for who does not see it."""
    rows, last = [], ("", "")
    places = {why: i for i, (why, _) in enumerate(_by_why(report), 1)}
    for line in report.lines:
        place, is_none = (names[line.number], line.run), line.verdict is None
        again = {"class": "again" if place == last else ""}
        verdict = {"class": f"verdict {'none' if line.verdict is None else _CLASSES.get(line.verdict.verdict, 'none')}"}
        *cells, told = _cells(line)
        why = (" (why: ", link(str(places[line.why]), f"#w{places[line.why]}"), ")") if line.why in places else ""
        cells = [Cell(place[0], again), *cells, Cell((told, why), verdict), Cell(line.run, again), _marks(line)]
        rows.append(Row(cells, {"class": " ".join(["first"] * (place != last) + ["none"] * is_none)}))
        last = place
    return Table(("row", *HEADS, "run", "notes"), rows, True, _box("The table", "table"))


def _claims(title: str, claims: Sequence[Compared]) -> Iterator[Block]:
    rows = []
    for claim in claims:
        if claim.is_measured:
            *cells, outcome, runs = _claim_cells(claim)
            kind = {"class": f"verdict {_OUTCOME_CLASSES.get(claim.outcome, 'none')}"}
            rows.append((*cells, Cell(outcome, kind), runs))
    if rows:
        yield Heading(title)
        yield note(f"{HOW_CLAIMS_ARE_TESTED} In all: {outcomes_text(claims)}.")
        yield Table(CLAIM_HEADS, rows, True, _box(title))


def _reasons(report: TableReport) -> Iterator[Block]:
    items = [
        (
            element("strong", _members(report, reason, numbers)),
            f": {kind_meaning(reason.kind)}. {reason.text}",
            _more(reason.see),
        )
        for reason, numbers in _by_reason(report)
    ]
    if items:
        yield Heading("Not here")
        yield Items(items, attributes={"class": "reasons"})


def _more(see: str) -> Content:
    return (" ", link("More", doc_link(see)), ".") if see else ""


def _marks(line: Line) -> Content:
    """The numbers of a line's notes."""
    return [part for i in line.marks for part in (", ", link(str(i), f"#n{i}"))][1:]


def outcomes_text(claims: Iterable[Compared]) -> str:
    """How many claimed differences had which outcome, in the order of :data:`OUTCOMES`."""
    counts = Counter(claim.outcome for claim in claims)
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome])


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
    return "\n".join(aligned(rows))


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


def _verdict_cell(line: Line) -> str:
    """The verdict in words."""
    if line.verdict is None:
        return "no run yet" if line.reason is None else _not_here(line.reason)
    inside = ", inside our interval" if line.is_inside and line.verdict.verdict == "missed" else ""
    return f"{line.verdict.verdict}{inside}"


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
