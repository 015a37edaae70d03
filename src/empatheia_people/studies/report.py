"""The page of a study's results: one file, tables with intervals, pictures, and the printed tables beside them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from empatheia.documents.document import Block, Document, Figure, Heading, Items, Marked, Table, note
from empatheia.documents.html import to_html
from empatheia.documents.svg import circle, drawing, label, line, rect
from empatheia.metrics.published import Published
from empatheia_people.judging.verdicts import MARK
from empatheia_people.studies.design import PAIRED
from empatheia_people.studies.results import Results
from empatheia_people.studies.statistics import AgreementRow, ShareRow

_COLOURS = ("#0072b2", "#e69f00", "#d55e00", "#cc79a7", "#009e73", "#56b4e9", "#7f7f7f")
_MOST_WORKERS = 500
_STYLE = Path(__file__).with_suffix(".css")


def report_page(results: Results) -> str:
    """The page as HTML."""
    return to_html(results_document(results), _STYLE.read_text(encoding="utf-8"))


def results_document(results: Results) -> Document:
    """All results that there are, each under a heading."""
    sections = (
        *(_filters, _shares, _means, _pairs, _differences, _labels, _agreement, _judge),
        *(_printed, _crowd, _reading),
    )
    blocks = [block for section in sections for block in section(results)]
    return Document(f"Study {results.design.name}", [note(text) for text in _lead(results)], blocks)


def _lead(results: Results) -> Iterable[str]:
    design = results.design
    yield (
        f"Protocol {design.protocol}; {results.workers[1]:,} workers, {results.sheets[1]:,} assignments,"
        f" {results.answers[1]:,} answers after filters ({results.answers[0]:,} handed in)."
    )
    rate = f"{design.hourly_rate:.2f} {design.payment.currency} an hour at {design.worker.minutes:g} minutes"
    bonus = f", {design.hourly_rate_with_bonus:.2f} with every bonus" if design.payment.bonus else ""
    yield f"Pay {design.payment.base:.2f} {design.payment.currency} a HIT: {rate}{bonus}."
    if design.note:
        yield design.note
    if not results.sheets[0]:
        yield "Nothing has been handed in yet."


def _filters(results: Results) -> Iterator[Block]:
    if not results.removed:
        return
    rows = [(r.name, r.workers, r.assignments, r.answers) for r in results.removed]
    total = ("kept", results.workers[1], results.sheets[1], results.answers[1])
    yield Heading("Filters")
    yield _table(("filter, in order", "workers", "assignments", "answers"), [*rows, total])


def _shares(results: Results) -> Iterator[Block]:
    by_set: dict[str, list[ShareRow]] = defaultdict(list)
    for row in results.shares:
        by_set[row.set].append(row)
    plain = {(row.set, row.system): row for row in results.shares_unfiltered}
    for name, rows in by_set.items():
        answers = list(rows[0].percent)
        body = []
        for row in rows:
            cells: list[object] = [row.system, row.n, row.items]
            cells += [_with_interval(row.percent[a], row.intervals[a]) for a in answers if a in row.percent]
            before = plain.get((name, row.system))
            cells.append("" if before is None else " / ".join(f"{before.percent[a]:.1f}" for a in before.percent))
            body.append(cells)
        heads = ("system", "ratings", "dialogues", *(f"{a}, %" for a in answers), "without filters")
        yield from (Heading(f"Shares on {name}"), _stacked(rows, answers), _table(heads, body))


def _means(results: Results) -> Iterator[Block]:
    if not results.means:
        return
    body = [
        (
            *(row.set, row.system, row.criterion, row.n),
            _number(row.mean),
            _number(row.error),
            "-" if row.interval is None else f"{row.interval[0]:.2f} to {row.interval[1]:.2f}",
            _number(row.deviation),
            " / ".join(str(n) for n in row.counts.values()),
        )
        for row in results.means
    ]
    heads = ("set", "system", "question", "ratings", "mean", "SEM", "95 %, by dialogue", "deviation", "counts")
    points = [(f"{r.system}, {r.criterion}", r.mean, r.interval) for r in results.means]
    design = results.design
    choices = [criterion for criterion in design.criteria if criterion.kind == "choice"]
    scale = [design.score_of(criterion, answer) for criterion in choices for answer in design.answers_of(criterion)]
    yield Heading("Mean ratings")
    yield from (*_points(points, min(scale), max(scale)), _table(heads, body))


def _pairs(results: Results) -> Iterator[Block]:
    if not results.pairs:
        return
    body = []
    for p in results.pairs:
        win, loss, tie = p.percent()
        body.append(
            (
                *(p.criterion, p.a, p.b, p.n, p.wins, p.losses, p.both, p.neither),
                f"{win:.2f} / {loss:.2f} / {tie:.2f}",
                _with_interval(p.rate, p.interval),
                _p(p.p_value),
                _p(p.p_adjusted),
                f"{p.ratio:.2f} ({p.smooth_ratio:.2f})",
                _sized(p.effect, p.effect_interval),
            )
        )
    heads = ("question", "A", "B", "n", "A", "B", "both", "neither", "win / loss / tie, %", "A of choices, %")
    heads += ("p (sign)", "p (Holm)", "A:B (with 0.5)", "rank-biserial r")
    yield from (Heading("Comparisons"), _table(heads, body))
    for name, rows in results.strengths.items():
        points = [(row.system, row.log_strength, row.interval) for row in rows]
        table = [(r.system, _number(r.log_strength), _range(r.interval), f"{r.chance:.1f}") for r in rows]
        heads = ("system", "log strength", "95 %, by dialogue", "preferred to the others, %")
        ends = [abs(end) for _, value, interval in points for end in (value, *(interval or ()))]
        most = max(2.0, *ends)  # e ** 2, about 7 to 1
        yield Heading(f"Bradley-Terry strengths, {name}", 3)
        yield from (*_points(points, -most, most), _table(heads, table))


def _differences(results: Results) -> Iterator[Block]:
    if not results.differences:
        return
    is_share = results.design.protocol == "drag"
    body = []
    for d in results.differences:
        shown = _sized(d.difference, d.effect.difference_interval, "+")
        sizes = [_sized(d.effect.delta, d.effect.delta_interval, "+")]
        sizes += [] if is_share else [_sized(d.effect.d, d.effect.d_interval, "+")]
        body.append((d.set, d.criterion, d.a, d.b, shown, _p(d.p_value), _p(d.p_adjusted), *sizes, d.items))
    heads = ("set", "what", "A", "B", f"A - B, {'percent' if is_share else 'points'}", "p (permutation)", "p (Holm)")
    heads += ("Cliff's delta", *(() if is_share else ("Cohen's d",)), "dialogues")
    yield from (Heading("Differences"), _table(heads, body))


def _labels(results: Results) -> Iterator[Block]:
    best = results.design.answers_of(results.design.criteria[0])[0] if results.design.criteria else ""
    found = {system: counts for system, counts in results.labels.items() if counts[0]}
    if found:
        yield Heading(f"Labels of replies rated {best}")
    for system, (answers, replies) in found.items():
        total, n_replies = sum(answers.values()), sum(replies.values())
        rows = [(name, n, f"{100 * n / total:.1f}", replies[name], f"{100 * replies[name] / n_replies:.1f}")
                for name, n in answers.most_common()]  # fmt: skip
        yield from (Heading(system, 3), _bars(answers), _table(("label", "answers", "%", "replies", "%"), rows))


def _agreement(results: Results) -> Iterator[Block]:
    if not results.agreement:
        return
    body = [
        (
            *(row.criterion, row.units, f"{row.raters[0]} to {row.raters[1]}"),
            "undefined" if row.percent is None else f"{row.percent:.1f}",
            _defined(row.fleiss) + (f" ({row.fleiss_units:,} units)" if row.fleiss_units else ""),
            f"{_defined(row.alpha)} ({row.level})",
            *(("-", "-") if not row.icc_form else _icc(row)),
        )
        for row in results.agreement
    ]
    heads = ("question", "rated by two or more", "raters", "pairs that agree, %", "Fleiss kappa", "Krippendorff alpha")
    heads += ("ICC of one rating", "ICC of the mean")
    yield from (Heading("Agreement of the raters"), _table(heads, body))


def _icc(row: AgreementRow) -> tuple[str, str]:
    """One rating and the mean of all, each with its form."""
    of_one, of_mean = ("ICC(A,1)", "ICC(A,k)") if row.icc_form == "A" else ("ICC(1)", "ICC(k)")
    return f"{_sized(row.icc, row.icc_interval)}, {of_one}", f"{_number(row.icc_mean)}, {of_mean}"


def _judge(results: Results) -> Iterator[Block]:
    if not results.judge:
        return
    body = [(j.criterion, j.n, f"{j.percent:.1f}", _defined(j.kappa), _range(j.interval)) for j in results.judge]
    heads = ("question", "pairs", "agrees with most people, %", "Cohen kappa", "95 %")
    yield from (Heading("A language model beside people"), note(f"{MARK}. In no number above."), _table(heads, body))


def _printed(results: Results) -> Iterator[Block]:
    tables: dict[tuple[str, str], list[Published]] = defaultdict(list)
    for number in results.printed:
        tables[number.paper, number.table].append(number)
    if tables:
        yield Heading("Beside the published table")
    for (paper, table), numbers in tables.items():
        metrics = list(dict.fromkeys(number.metric for number in numbers))
        rows: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
        for number in numbers:
            rows[number.dataset, number.row][number.metric] = str(number)
        body = [(*key, *(cells.get(metric, "-") for metric in metrics)) for key, cells in rows.items()]
        heads = ("test set", "system", *metrics)
        yield from (Heading(f"{paper}, {table}, as printed", 3), _table(heads, body))


def _crowd(results: Results) -> Iterator[Block]:
    if not results.crowd:
        return
    body = [
        (
            f"W{w.worker:04d}",
            w.sheets,
            f"{w.minutes:.1f}",
            "-" if w.points is None else f"{w.points:.2f}",
            "-" if w.agreement is None else f"{w.agreement:.1f}",
            f"{w.same:.1f}",
        )
        for w in results.crowd[:_MOST_WORKERS]
    ]
    heads = ("worker", "HITs", "median minutes", "mean points", "agrees with others, %", "most frequent answer, %")
    more = len(results.crowd) - _MOST_WORKERS
    yield from (Heading("Workers, before filters"), _table(heads, body))
    if more > 0:
        yield note(f"{more:,} more workers are in the JSON record.")


def _reading(results: Results) -> Iterator[Block]:
    lines = [
        "Intervals are 95 % of bootstrap samples in which all ratings of a dialogue are drawn together.",
        "SEM is the deviation over the root of the number of ratings, as papers print it; it takes ratings as"
        " independent, which they are not.",
        "Holm's correction is over all pairs of systems of one question and test set.",
        "Cliff's delta: how much likelier a rating of A is above one of B than below; under 0.147 is called negligible,"
        " 0.33 small, 0.474 medium. Cohen's d: the difference in deviations of single ratings. Brackets: 95 %.",
        "Intraclass correlations are those of McGraw and Wong (1996): ICC(1) and ICC(k) take raters as drawn anew for"
        " every dialogue, ICC(A,1) and ICC(A,k), where the same people rated everything, ask for the same number.",
    ]
    if results.design.protocol == "drag":
        lines.append(
            "Candidates are seen together, so their ratings depend on each other. Who drops cards at random still wins"
            " two of three bonus points with probability 0.741."
        )
    if results.design.protocol in PAIRED:
        lines.append(
            "The sign test leaves ties out, and so does the rank-biserial r, wins minus losses as a share of both;"
            " Bradley-Terry counts a tie as half a win of each."
        )
    yield from (Heading("How to read this"), Items(lines, attributes={"class": "note"}))


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    shown = [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows]
    return Table(heads, shown, around={"class": "wide"})


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"


def _defined(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:.3f}"


def _range(interval: tuple[float, float] | None) -> str:
    return "-" if interval is None else f"{interval[0]:.2f} to {interval[1]:.2f}"


def _sized(value: float, interval: tuple[float, float] | None, sign: str = "") -> str:
    """An effect with its interval in brackets."""
    if math.isnan(value):
        return "-"
    return f"{value:{sign}.2f}" + ("" if interval is None else f" [{interval[0]:{sign}.2f}, {interval[1]:{sign}.2f}]")


def _with_interval(value: float, interval: tuple[float, float] | None) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:.1f}" if interval is None else f"{value:.1f} ({interval[0]:.1f} to {interval[1]:.1f})"


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _figure(width: int, height: int, title: str, shapes: Sequence[Marked]) -> Figure:
    return Figure(svg=drawing(width, height, title, shapes, is_fixed=True))


def _stacked(rows: Sequence[ShareRow], answers: Sequence[str]) -> Figure:
    """One bar a system, cut by its shares."""
    shapes = []
    for place, answer in enumerate(answers[:7]):
        x = 230 + 90 * place
        shapes.append(rect(x, 4, 10, 10, fill=_COLOURS[place]))
        shapes.append(label(x + 14, 13, answer))
    for number, row in enumerate(rows):
        y, x = 24 + 24 * number, 230.0
        shapes.append(label(222, y + 13, row.system[:34], "end"))
        for place, answer in enumerate(answers):
            width = 4.6 * row.percent.get(answer, 0.0)
            shapes.append(rect(x, y, width, 18, fill=_COLOURS[place % len(_COLOURS)]))
            x += width
    return _figure(700, 24 * len(rows) + 26, "Shares of answers by system", shapes)


def _points(points: Sequence[tuple[str, float, tuple[float, float] | None]], low: float, high: float) -> list[Figure]:
    """A point with its interval on each line; the axis is the whole scale, so that noise does not look like an effect.

    Args:
        points: Name, value and interval.
        low: Smallest value that there can be.
        high: Largest.

    Returns:
        One picture; none without a finite value.
    """
    points = [point for point in points if math.isfinite(point[1])]
    if not points:
        return []
    scale, shapes = 420 / ((high - low) or 1), []
    for number, (name, mean, interval) in enumerate(points):
        y = 14 + 20 * number
        shapes.append(label(240, y + 4, name[:38], "end"))
        if interval is not None:
            one, other = (260 + (end - low) * scale for end in interval)
            shapes.append(line(one, other, y, y, stroke="#0072b2", stroke_width=2))
        shapes.append(circle(260 + (mean - low) * scale, y, 4, fill="#0072b2"))
    y = 14 + 20 * len(points)
    for place, anchor in ((low, "start"), ((low + high) / 2, "middle"), (high, "end")):
        x = 260 + (place - low) * scale
        shapes.append(line(x, x, 4, y - 8, stroke="currentColor", stroke_opacity=".2"))
        shapes.append(label(x, y + 6, f"{place:g}", anchor))
    return [_figure(700, y + 14, "Values with intervals by system", shapes)]


def _bars(counts: Counter[str]) -> Figure:
    shown, shapes = counts.most_common(41), []
    for number, (name, n) in enumerate(shown):
        y, width = 4 + 18 * number, 420 * n / shown[0][1]
        shapes += [label(160, y + 11, name[:24], "end"), rect(168, y, width, 14, fill="#0072b2")]
        shapes.append(label(174 + width, y + 11, f"{n:,}"))
    return _figure(700, 18 * len(shown) + 10, "Labels of replies rated best", shapes)
