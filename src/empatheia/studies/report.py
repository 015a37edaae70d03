"""The page of a study's results: one file, tables with intervals, pictures, and the printed tables beside them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from empatheia.judging.verdicts import MARK
from empatheia.metrics.published import Published
from empatheia.reports.page import html_page, safe
from empatheia.studies.design import PAIRED
from empatheia.studies.results import Results
from empatheia.studies.statistics import AgreementRow, ShareRow

_COLOURS = ("#0072b2", "#e69f00", "#d55e00", "#cc79a7", "#009e73", "#56b4e9", "#7f7f7f")
_MOST_WORKERS = 500
_STYLE = """
figure { margin: .5rem 0 1rem; }
figure svg { max-width: 100%; height: auto; font: 12px system-ui, sans-serif; }
figure text { fill: currentColor; }
.wide { overflow-x: auto; }
.wide td, .wide th { white-space: nowrap; }
"""


def report_page(results: Results) -> str:
    """The page as HTML."""
    design = results.design
    head = "".join(f'<p class="note">{safe(line)}</p>' for line in _lead(results))
    parts = [
        _filters(results),
        _shares(results),
        _means(results),
        _pairs(results),
        _differences(results),
        _labels(results),
        _agreement(results),
        _judge(results),
        _printed(results),
        _crowd(results),
        _reading(results),
    ]
    return html_page(f"Study {design.name}", head, "".join(parts), style=_STYLE)


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


def _filters(results: Results) -> str:
    if not results.removed:
        return ""
    rows = [(r.name, r.workers, r.assignments, r.answers) for r in results.removed]
    total = ("kept", results.workers[1], results.sheets[1], results.answers[1])
    return "<h2>Filters</h2>" + _table(("filter, in order", "workers", "assignments", "answers"), [*rows, total])


def _shares(results: Results) -> str:
    out = []
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
        out.append(f"<h2>Shares on {safe(name)}</h2>" + _stacked(rows, answers) + _table(heads, body))
    return "".join(out)


def _means(results: Results) -> str:
    if not results.means:
        return ""
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
    return "<h2>Mean ratings</h2>" + _points(points, min(scale), max(scale)) + _table(heads, body)


def _pairs(results: Results) -> str:
    if not results.pairs:
        return ""
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
    out = "<h2>Comparisons</h2>" + _table(heads, body)
    for name, rows in results.strengths.items():
        points = [(row.system, row.log_strength, row.interval) for row in rows]
        table = [(r.system, _number(r.log_strength), _range(r.interval), f"{r.chance:.1f}") for r in rows]
        heads = ("system", "log strength", "95 %, by dialogue", "preferred to the others, %")
        ends = [abs(end) for _, value, interval in points for end in (value, *(interval or ()))]
        most = max(2.0, *ends)  # e ** 2, about 7 to 1
        out += f"<h3>Bradley-Terry strengths, {safe(name)}</h3>" + _points(points, -most, most) + _table(heads, table)
    return out


def _differences(results: Results) -> str:
    if not results.differences:
        return ""
    is_share = results.design.protocol == "drag"
    body = []
    for d in results.differences:
        shown = _sized(d.difference, d.effect.difference_interval, "+")
        sizes = [_sized(d.effect.delta, d.effect.delta_interval, "+")]
        sizes += [] if is_share else [_sized(d.effect.d, d.effect.d_interval, "+")]
        body.append((d.set, d.criterion, d.a, d.b, shown, _p(d.p_value), _p(d.p_adjusted), *sizes, d.items))
    heads = ("set", "what", "A", "B", f"A - B, {'percent' if is_share else 'points'}", "p (permutation)", "p (Holm)")
    heads += ("Cliff's delta", *(() if is_share else ("Cohen's d",)), "dialogues")
    return "<h2>Differences</h2>" + _table(heads, body)


def _labels(results: Results) -> str:
    out = []
    best = results.design.answers_of(results.design.criteria[0])[0] if results.design.criteria else ""
    for system, (answers, replies) in results.labels.items():
        if not answers:
            continue
        total, n_replies = sum(answers.values()), sum(replies.values())
        rows = [(label, n, f"{100 * n / total:.1f}", replies[label], f"{100 * replies[label] / n_replies:.1f}")
                for label, n in answers.most_common()]  # fmt: skip
        heads = ("label", "answers", "%", "replies", "%")
        out.append(f"<h3>{safe(system)}</h3>" + _bars(answers) + _table(heads, rows))
    return f"<h2>Labels of replies rated {safe(best)}</h2>{''.join(out)}" if out else ""


def _agreement(results: Results) -> str:
    if not results.agreement:
        return ""
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
    return "<h2>Agreement of the raters</h2>" + _table(heads, body)


def _icc(row: AgreementRow) -> tuple[str, str]:
    """One rating and the mean of all, each with its form."""
    of_one, of_mean = ("ICC(A,1)", "ICC(A,k)") if row.icc_form == "A" else ("ICC(1)", "ICC(k)")
    return f"{_sized(row.icc, row.icc_interval)}, {of_one}", f"{_number(row.icc_mean)}, {of_mean}"


def _judge(results: Results) -> str:
    if not results.judge:
        return ""
    body = [(j.criterion, j.n, f"{j.percent:.1f}", _defined(j.kappa), _range(j.interval)) for j in results.judge]
    heads = ("question", "pairs", "agrees with most people, %", "Cohen kappa", "95 %")
    return f'<h2>A language model beside people</h2><p class="note">{safe(MARK)}. In no number above.</p>' + _table(
        heads, body
    )


def _printed(results: Results) -> str:
    tables: dict[tuple[str, str], list[Published]] = defaultdict(list)
    for number in results.printed:
        tables[number.paper, number.table].append(number)
    out = []
    for (paper, table), numbers in tables.items():
        metrics = list(dict.fromkeys(number.metric for number in numbers))
        rows: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
        for number in numbers:
            rows[number.dataset, number.row][number.metric] = str(number)
        body = [(*key, *(cells.get(metric, "-") for metric in metrics)) for key, cells in rows.items()]
        heads = ("test set", "system", *metrics)
        out.append(f"<h3>{safe(paper)}, {safe(table)}, as printed</h3>" + _table(heads, body))
    return f"<h2>Beside the published table</h2>{''.join(out)}" if out else ""


def _crowd(results: Results) -> str:
    if not results.crowd:
        return ""
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
    note = f'<p class="note">{more:,} more workers are in the JSON record.</p>' if more > 0 else ""
    return "<h2>Workers, before filters</h2>" + _table(heads, body) + note


def _reading(results: Results) -> str:
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
    items = "".join(f"<li>{safe(line)}</li>" for line in lines)
    return f'<h2>How to read this</h2><ul class="note">{items}</ul>'


def _table(heads: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    head = "".join(f'<th scope="col">{safe(each)}</th>' for each in heads)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(each)}</td>' for each in row)}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else safe(value)


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


def _figure(width: int, height: int, label: str, body: str) -> str:
    return (
        f'<figure><svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img"'
        f' aria-label="{safe(label)}">{body}</svg></figure>'
    )


def _stacked(rows: Sequence[ShareRow], answers: Sequence[str]) -> str:
    """One bar a system, cut by its shares."""
    parts, height = [], 24 * len(rows) + 26
    for place, answer in enumerate(answers[:7]):
        x = 230 + 90 * place
        parts.append(f'<rect x="{x}" y="4" width="10" height="10" fill="{_COLOURS[place]}"/>')
        parts.append(f'<text x="{x + 14}" y="13">{safe(answer)}</text>')
    for line, row in enumerate(rows):
        y, x = 24 + 24 * line, 230.0
        parts.append(f'<text x="222" y="{y + 13}" text-anchor="end">{safe(row.system[:34])}</text>')
        for place, answer in enumerate(answers):
            width = 4.6 * row.percent.get(answer, 0.0)
            colour = _COLOURS[place % len(_COLOURS)]
            parts.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="18" fill="{colour}"/>')
            x += width
    return _figure(700, height, "Shares of answers by system", "".join(parts))


def _points(points: Sequence[tuple[str, float, tuple[float, float] | None]], low: float, high: float) -> str:
    """A point with its interval on each line; the axis is the whole scale, so that noise does not look like an effect.

    Args:
        points: Name, value and interval.
        low: Smallest value that there can be.
        high: Largest.
    """
    points = [point for point in points if math.isfinite(point[1])]
    if not points:
        return ""
    scale = 420 / ((high - low) or 1)
    parts = []
    for line, (name, mean, interval) in enumerate(points):
        y = 14 + 20 * line
        parts.append(f'<text x="240" y="{y + 4}" text-anchor="end">{safe(name[:38])}</text>')
        if interval is not None:
            one, other = (260 + (end - low) * scale for end in interval)
            parts.append(f'<line x1="{one:.1f}" x2="{other:.1f}" y1="{y}" y2="{y}" stroke="#0072b2" stroke-width="2"/>')
        parts.append(f'<circle cx="{260 + (mean - low) * scale:.1f}" cy="{y}" r="4" fill="#0072b2"/>')
    y = 14 + 20 * len(points)
    for place, end in ((low, "start"), ((low + high) / 2, "middle"), (high, "end")):
        x = 260 + (place - low) * scale
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="4" y2="{y - 8}" stroke="currentColor" stroke-opacity=".2"/>')
        parts.append(f'<text x="{x:.1f}" y="{y + 6}" text-anchor="{end}">{place:g}</text>')
    return _figure(700, y + 14, "Values with intervals by system", "".join(parts))


def _bars(counts: Counter[str]) -> str:
    shown = counts.most_common(41)
    most = shown[0][1]
    parts = []
    for line, (label, n) in enumerate(shown):
        y = 4 + 18 * line
        parts.append(f'<text x="160" y="{y + 11}" text-anchor="end">{safe(label[:24])}</text>')
        parts.append(f'<rect x="168" y="{y}" width="{420 * n / most:.1f}" height="14" fill="#0072b2"/>')
        parts.append(f'<text x="{174 + 420 * n / most:.1f}" y="{y + 11}">{n:,}</text>')
    return _figure(700, 18 * len(shown) + 10, "Labels of replies rated best", "".join(parts))
