"""The main numbers of a study as tables for a paper: shares, means and comparisons, with their intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable

from empatheia.documents.latex import latex_table
from empatheia_people.studies.results import Results

Interval = tuple[float, float] | None


def results_latex(results: Results) -> str:
    """A ``tabular`` for each test set of shares or means, and one for each question of comparisons."""
    return "\n\n".join([*_shares(results), *_means(results), *_pairs(results)]) + "\n"


def _shares(results: Results) -> Iterable[str]:
    for name in dict.fromkeys(row.set for row in results.shares):
        rows = [row for row in results.shares if row.set == name]
        answers = list(rows[0].percent)
        body = [
            (row.system, f"{row.n}", *(_cell(row.percent[a], row.intervals[a], 1) for a in answers)) for row in rows
        ]
        yield latex_table(("System", "n", *(f"{a} (%)" for a in answers)), body, f"{name}; brackets: 95 % by dialogue")


def _means(results: Results) -> Iterable[str]:
    for name in dict.fromkeys(row.set for row in results.means):
        rows = [row for row in results.means if row.set == name]
        questions = list(dict.fromkeys(row.criterion for row in rows))
        body = []
        for system in dict.fromkeys(row.system for row in rows):
            own = {row.criterion: row for row in rows if row.system == system}
            cells = [_cell(own[q].mean, own[q].interval, 2) if q in own else "-" for q in questions]
            body.append((system, f"{max(row.n for row in own.values())}", *cells))
        yield latex_table(("System", "n", *questions), body, f"{name}; mean ratings; brackets: 95 % by dialogue")


def _pairs(results: Results) -> Iterable[str]:
    for question in dict.fromkeys(pair.criterion for pair in results.pairs):
        pairs = [pair for pair in results.pairs if pair.criterion == question]
        body = [
            (
                f"{p.a} vs. {p.b}",
                f"{p.n}",
                *(f"{share:.1f}" for share in p.percent()),
                "< 0.001" if p.p_adjusted < 0.001 else f"{p.p_adjusted:.3f}",
                _cell(p.effect, p.effect_interval, 2),
            )
            for p in pairs
        ]
        heads = ("Pair", "n", "win (%)", "loss (%)", "tie (%)", "p (Holm)", "rank-biserial r")
        yield latex_table(heads, body, f"{question}; seen from the first; sign test; brackets: 95 % by dialogue")


def _cell(value: float, interval: Interval, digits: int) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:.{digits}f}" + ("" if interval is None else " [{:.{d}f}, {:.{d}f}]".format(*interval, d=digits))
