"""How many printed rows and values are reached, missed, open or not to be had, over several tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from empatheia_research.reports.claims import OUTCOMES, SIZES
from empatheia_research.reports.lines import Line, grouped, row_of
from empatheia_research.reports.reproduction import TableReport

VALUE_STATES = ("reached", "within_tolerance", "missed", "not_comparable", "no_run", "not_to_be_had")
"""What became of a printed value; each has one of them."""
_RANKS = {"full": 0, "cpu": 1, "row": 2, "smoke": 3}


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts over tables.

    Attributes:
        rows: Of print with an automatic number: ``printed``, ``with_recipe``, ``with_reason`` (for having none),
            ``with_neither``, ``with_run`` (of any size but ``smoke``), ``with_run_beside_print`` (cpu or full),
            ``at_row_size``.
        values: Automatic numbers: ``printed``, :data:`VALUE_STATES` (they sum to it), and of the reached ones those
            ``better`` by more than the tolerance.
        claims: Size to outcome to the number of claimed differences.
        runs: The records behind them, each once: how many, of how many ``recipes`` with how many seeds at most and at
            least, and the hours of training and of measuring that they took together (earlier records do not say the
            latter).
    """

    rows: Mapping[str, int]
    values: Mapping[str, int]
    claims: Mapping[str, Mapping[str, int]]
    runs: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)


def totals_of(reports: Sequence[TableReport]) -> Totals:
    """The counts of tables; a value counts by one run, see :func:`line_that_counts`."""
    rows: Counter[str] = Counter(
        dict.fromkeys(("printed", "with_recipe", "with_reason", "with_neither", "with_run"), 0)
    )
    values: Counter[str] = Counter(dict.fromkeys(("printed", *VALUE_STATES, "better"), 0))
    for report in reports:
        beside = {row_of(line.number) for line in report.lines if line.verdict is not None}
        at_row_size = {row_of(line.number) for line in report.row_lines}
        rows.update(
            printed=report.n_rows,
            with_recipe=report.n_rows_with_recipe,
            with_reason=report.n_rows_with_reason,
            with_neither=report.n_rows_with_neither,
            with_run=len(beside | at_row_size),
            with_run_beside_print=len(beside),
            at_row_size=len(at_row_size),
        )
        for lines in grouped(report.lines, lambda line: line.number).values():
            line = line_that_counts(lines)
            values.update(("printed", state_of(line)))
            values["better"] += line.verdict is not None and line.verdict.verdict == "better"
    claims = {
        size: {
            outcome: sum(c.size == size and c.outcome == outcome for r in reports for c in r.claims)
            for outcome in OUTCOMES
        }
        for size in SIZES
    }
    return Totals(dict(rows), dict(values), claims, _runs_of(reports))


def _runs_of(reports: Sequence[TableReport]) -> dict[str, float]:
    """Numbers of runs, recipes and seeds, and the hours of all runs together."""
    runs = {(run["recipe"], run["size"], run["seed"]): run for report in reports for run in report.runs}
    seeds = Counter((recipe, size) for recipe, size, _ in runs)
    hours = {
        name: sum(float(run.get(f"{name}_seconds") or 0.0) for run in runs.values()) / 3600
        for name in ("training", "measuring")
    }
    return {
        "runs": len(runs),
        "recipes": len({recipe for recipe, _, _ in runs}),
        "fewest_seeds": min(seeds.values(), default=0),
        "most_seeds": max(seeds.values(), default=0),
        "training_hours": round(hours["training"], 2),
        "measuring_hours": round(hours["measuring"], 2),
    }


def line_that_counts(lines: Sequence[Line]) -> Line:
    """The one run by which a printed value is judged.

    One that can be compared before one that cannot, the larger size, the recipe that comes first by name (the default
    form before ``_repo``), the first variant.
    """
    return min(lines, key=lambda line: (line.difference is None, _RANKS.get(line.size, 9), line.recipe))


def state_of(line: Line) -> str:
    """One of :data:`VALUE_STATES`."""
    if line.verdict is None:
        return "not_to_be_had" if line.reason is not None else "no_run"
    if not line.verdict.is_comparable:
        return "not_comparable"
    if line.verdict.is_reached:
        return "reached"
    return "within_tolerance" if line.verdict.verdict == "met" else "missed"
