"""Writes the tables of docs/reproduction.md from the records in results/ and from recipes/queue.yaml.

``python docs/generate_reproduction.py`` after new records; ``--check`` only says whether the page is current.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from empatheia.documents.document import Column, Table
from empatheia.documents.markdown import table_lines
from empatheia.metrics.mechanisms import EPITOME_PAPER, EPITOME_PUBLISHED
from empatheia.metrics.published import shown_tolerance
from empatheia.metrics.records import measured_of
from empatheia.metrics.tolerances import KINDS, N_DEVIATIONS
from empatheia_research.recipes.queue import read_queue
from empatheia_research.reports.claims import OUTCOMES, SIZES, Compared
from empatheia_research.reports.lines import Line, grouped
from empatheia_research.reports.reproduction import TableReport, read_runs, report_table
from empatheia_research.reports.targets import Why, kind_meaning, read_targets, tables
from empatheia_research.reports.totals import line_that_counts, state_of, totals_of
from empatheia_research.training.queue import QueuedRun, hours_left, standing

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reproduction.md"
RESULTS = ROOT / "results"
BEGIN, END = "<!-- {}: written by docs/generate_reproduction.py -->", "<!-- /{} -->"
HEADLINES = (
    ("gao2021/4", "Ours(Soft)", "Ours(Soft) w/o ec"),
    ("gao2021/4", "Ours(Hard)", "Ours(Hard) w/o ec"),
    ("gao2021/2", "Ours(Soft)", "Ours(Hard)"),
    ("imagine/1", "IMAGINE", "KEMP"),
)
"""Pairs of rows on which a paper's claim rests: each metric on a line of its own."""


def markdown(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """A table; heads that begin with ``#`` are set to the right."""
    columns = [Column(head.removeprefix("#"), is_number=head.startswith("#")) for head in heads]
    return table_lines(Table(columns, [[*map(str, row)] for row in rows]))


def totals(reports: Sequence[TableReport], _: Sequence[QueuedRun]) -> Iterator[str]:
    """All rows and values in one sentence each, and what became of the values of each table."""
    found = totals_of(reports)
    rows, values = found.rows, found.values
    yield (
        f"Of {rows['printed']} printed rows with an automatic number {rows['with_recipe']} have a recipe and"
        f" {rows['with_reason']} a reason for having none ({rows['with_neither']} have neither); {rows['with_run']}"
        f" have a run, {rows['with_run_beside_print']} of them one that is set beside print, {rows['at_row_size']} one"
        f" of size `row`. Of {values['printed']} printed values {values['reached']} are reached ({values['better']} of"
        f" them better by more than the tolerance), {values['within_tolerance']} are worse within tolerance,"
        f" {values['missed']} are missed, {values['not_comparable']} were measured and do not compare,"
        f" {values['no_run']} wait for a run, and {values['not_to_be_had']} have no recipe for a reason below."
    )
    yield ""
    heads = ("table", "#rows", "#with a run", "#at size row", "#reached", "#within tolerance", "#missed")
    table = []
    for report in reports:
        if report.lines:
            states = Counter(state_of(line_that_counts(own)) for own in grouped(report.lines, _number).values())
            of_states = [states[name] for name in ("reached", "within_tolerance", "missed", "not_comparable", "no_run")]
            runs = (report.n_rows, report.n_rows_with_run, report.n_rows_at_row_size)
            table.append((f"`{report.key}`", *runs, *of_states, states["not_to_be_had"]))
    yield from markdown((*heads, "#not comparable", "#no run yet", "#no recipe"), table)


def _number(line: Line) -> object:
    return line.number


def tolerances(_: Sequence[TableReport], __: Sequence[QueuedRun]) -> Iterator[str]:
    """The rule of each kind of metric."""
    yield f"Where a paper prints a deviation over runs: {N_DEVIATIONS:g} of them. Elsewhere:"
    yield ""
    yield from markdown(("kind", "scores", "tolerance"), [(k.name, _code(k.scores), k.rule) for k in KINDS])


def _code(names: Iterable[str]) -> str:
    return " ".join(f"`{name}`" for name in names)


def claims(reports: Sequence[TableReport], _: Sequence[QueuedRun]) -> Iterator[str]:
    """What papers claim by two rows: outcomes by claim and size, and the headline pairs one by one."""
    found = [claim for report in reports for claim in report.claims if claim.is_measured]
    by_claim = grouped(found, lambda one: (one.claim.number.paper, one.claim.number.table, one.claim.says, one.size))
    shown = {outcome: told for outcome, told in OUTCOMES.items() if outcome != "no run"}
    rows = []
    for (paper, table, says, size), own in by_claim.items():
        counts: Counter[str] = Counter(one.outcome for one in own)
        rows.append((f"{paper}, {table}: {says}", size, *(counts[outcome] or "" for outcome in shown)))
    yield from markdown(("claim", "size", *(f"#{outcome}" for outcome in shown)), rows)
    yield ""
    yield "; ".join(f"*{outcome}*: {told}" for outcome, told in shown.items()) + "."
    yield ""
    pairs = [
        one
        for key, row, against in HEADLINES
        for report in reports
        for one in report.claims
        if report.key == key and (one.claim.number.row, one.claim.against.row) == (row, against)
        if one.is_measured and one.outcome != "undecided in print"
    ]
    pairs.sort(key=lambda one: SIZES.index(one.size))
    yield from markdown(
        ("rows", "metric", "size", "#printed difference", "#ours", "95 % interval", "over", "outcome"),
        map(_headline, pairs),
    )


def _headline(one: Compared) -> tuple[str, ...]:
    number, more = one.claim.number, one.claim.number.decimals + 1
    between = "" if one.interval is None else f"{one.interval[0]:+.{more}f} to {one.interval[1]:+.{more}f}"
    over = f"seed {one.seeds[0]}" if len(one.seeds) == 1 else f"{len(one.seeds)} seeds"
    if len(one.seeds) == 2 and one.deviation is None:  # none in common
        over = "seeds {} and {}".format(*one.seeds)
    if one.deviation is not None:
        over += f", ± {one.deviation:.{more}f}" + ("" if one.p_value is None else f", p {one.p_value:.3f}")
    rows = f"{number.row} - {one.claim.against.row}"
    printed, ours = f"{one.claim.printed:+.{number.decimals}f}", f"{one.ours:+.{more}f}"
    return rows, number.metric, one.size, printed, ours, between, over, one.outcome


def differences(reports: Sequence[TableReport], _: Sequence[QueuedRun]) -> Iterator[str]:
    """Every value that is missed, or better by more than the tolerance, with what is known of it."""
    counting = [line_that_counts(own) for report in reports for own in grouped(report.lines, _number).values()]
    shown = [line for line in counting if line.verdict is not None and line.verdict.verdict in ("missed", "better")]
    shown = [line for line in shown if not (line.number.paper == "gao2021" and line.number.table == "Table 7")]
    rows = []
    for why, lines in grouped(shown, lambda line: line.why).items():
        by_row = grouped(lines, lambda line: (line.number.paper, line.number.row, line.recipe, line.size))
        rows.append(("<br>".join(map(_row_text, by_row.values())), *_known(why)))
    yield from markdown(("printed row (run): ours / printed (difference, tolerance, verdict)", "why", "shown by"), rows)


def _row_text(lines: Sequence[Line]) -> str:
    """The values of one printed row beside one run."""
    first = lines[0]
    table = ", ".join(dict.fromkeys(line.number.table for line in lines))
    values = dict.fromkeys(f"{line.number.metric} {_value(line)}" for line in lines)
    run = f"`{first.recipe}` {first.size}"
    return f"{first.number.paper}, {table}: {first.number.row} ({run}): {'; '.join(values)}"


def _value(line: Line) -> str:
    verdict, decimals = line.verdict, line.number.decimals
    assert verdict is not None
    values = f"{verdict.ours:.{decimals}f} / {line.number.value:.{decimals}f}"
    return f"{values} ({verdict.difference:+.{decimals}f}, {shown_tolerance(verdict)}, {verdict.verdict})"


def _known(why: Why | None) -> tuple[str, str]:
    if why is None:
        return "not looked into", "not tested"
    page, _, anchor = why.see.partition("#")
    link = f"#{anchor}" if page == "reproduction.md" else why.see
    text = f"{why.text[0].upper()}{why.text[1:].rstrip('.')}."
    return f"{text}{f' [More]({link})' if link else ''}", why.shown_by or "not tested"


def without(reports: Sequence[TableReport], _: Sequence[QueuedRun]) -> Iterator[str]:
    """Rows without a recipe, by reason."""
    found: dict[tuple[str, str], dict[str, dict[str, None]]] = {}
    for report in reports:
        for line in report.lines:
            if line.reason is not None:
                places = found.setdefault((line.reason.kind, line.reason.text), {})
                places.setdefault(f"{report.paper}, {report.table}", {})[line.number.row] = None
    rows = []
    for (kind, text), places in found.items():
        told = "; ".join(f"{place}: {', '.join(rows_of)}" for place, rows_of in places.items())
        rows.append((told, kind_meaning(kind), text))
    yield from markdown(("rows", "kind", "reason"), rows)


def queue(_: Sequence[TableReport], runs: Sequence[QueuedRun]) -> Iterator[str]:
    """What is not reached yet, with its hours."""
    left = [run for run in runs if run.state != "done"]
    n_done = len(runs) - len(left)
    yield (
        f"{n_done} of the {len(runs)} runs in `recipes/queue.yaml` have their record; {len(left)} are left, some"
        f" {hours_left(runs):.0f} hours of one core at the rate measured so far. On a machine with run folders"
        " `empatheia queue status recipes/queue.yaml` says more: what is begun, and what a run waits for."
    )
    yield ""
    groups = grouped(left, lambda run: (run.recipe.name.partition("/")[0], run.recipe.size))
    rows = []
    for (family, size), own in sorted(groups.items(), key=lambda entry: (SIZES.index(entry[0][1]), entry[0][0])):
        names = dict.fromkeys(run.recipe.name.partition("/")[2] for run in own)
        hours = hours_left([run for run in runs if run.state == "done"] + own)
        rows.append((family, size, len(own), f"{hours:.1f}", ", ".join(names)))
    yield from markdown(("recipes of", "size", "#runs", "#hours", "which"), rows)


def epitome(_: Sequence[TableReport], __: Sequence[QueuedRun]) -> Iterator[str]:
    """EPITOME's mechanisms: both models of ours beside the recalled figures of the paper."""
    rows = []
    for record in read_runs(RESULTS):
        if record["recipe"].startswith("epitome/") and record["size"] == "cpu":
            for mechanism, sources in EPITOME_PUBLISHED.items():
                printed = sources[EPITOME_PAPER]
                scores = {name: measured_of(record).score(name, mechanism=mechanism) for name in printed}
                cells = [
                    "-" if score is None else f"{score.in_unit('percent').value:.1f} / {printed[name]:.1f}"
                    for name, score in scores.items()
                ]
                rows.append((f"`{record['recipe']}`", mechanism, *cells))
    yield from markdown(("recipe", "mechanism", "#accuracy, ours / recalled", "#macro F1, ours / recalled"), rows)


BLOCKS: dict[str, Callable[[Sequence[TableReport], Sequence[QueuedRun]], Iterator[str]]] = {
    "totals": totals,
    "tolerances": tolerances,
    "claims": claims,
    "differences": differences,
    "without": without,
    "queue": queue,
    "epitome": epitome,
}


def page(text: str) -> str:
    """The page with every block written anew."""
    from empatheia_research.shipped import recipes_root

    targets, records = read_targets(recipes_root()), read_runs(RESULTS)
    reports = [report_table(key, targets, records) for key in tables()]
    runs = standing(read_queue(ROOT / "recipes" / "queue.yaml"), RESULTS, ROOT / "no runs", looks=False)
    for name, block in BLOCKS.items():
        before, mark, rest = text.partition(BEGIN.format(name))
        _, end, after = rest.partition(END.format(name))
        if not mark or not end:
            sys.exit(f"{PAGE.name} has no place for {name}: {BEGIN.format(name)} ... {END.format(name)}")
        text = "\n".join((before + mark, *block(reports, runs), end + after))
    return text


if __name__ == "__main__":
    before = PAGE.read_text(encoding="utf-8")
    after = page(before)
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(after, encoding="utf-8")
    elif before != after:
        sys.exit(f"{PAGE.name} is not current: run python docs/{Path(__file__).name}")
