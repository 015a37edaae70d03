"""What focus costs: coverage of the target words against the perplexity of the gold replies, by alpha and beta."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

from empatheia.errors import DataError
from empatheia.metrics.records import RunRecord, measured_of
from empatheia.metrics.rows import Measured
from empatheia.metrics.score import Score
from empatheia.reading import read_record
from empatheia_research.reports.charts import COLOURS, INK, MARKERS, SOFT, chart, legend_above, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ACROSS, UPWARDS = "ppl_token", "coverage"
_PLAIN, _GOLD = "S0", "gold"


def is_focus_record(record: RunRecord | Mapping[str, object]) -> bool:
    """Whether a run record is one of task ``focus``."""
    measured = measured_of(record)
    return isinstance(measured.facts.get("systems"), Mapping) and measured.score(UPWARDS, system=_PLAIN) is not None


def read_focus_record(place: Path) -> dict[str, object]:
    """The record of a finished run of task ``focus``.

    Args:
        place: A run folder, or a kept record.

    Raises:
        DataError: There is none, or it is of another task.
    """
    file = place / "metrics.json" if place.is_dir() else place
    try:
        record = read_record(file)
        is_right = is_focus_record(record)
    except (DataError, OSError, ValueError, AttributeError, TypeError) as problem:
        reason = " ".join(str(problem).split())
        raise DataError(f"{place} is not a finished run ({reason}); name a run folder or a kept record.") from None
    if not is_right:
        raise DataError(f"{place} is not a measured run of task focus; runs of recipes/kim2021/focus_*.yaml are.")
    return record


@chart
def focus_chart(records: Mapping[str, Mapping[str, object]], x: str = ACROSS, y: str = UPWARDS) -> Figure:
    """A panel for each run: a line for each kind of distractors and beta, from S0 through its alphas.

    Vertical bars are 95 % intervals; the dashed line is the score of the gold replies.

    Args:
        records: Name to a run record of task ``focus``.
        x: Score across.
        y: Score upwards.

    Raises:
        DataError: No record, one of another task, or none with both scores.
        MissingDependencyError: matplotlib is not installed.
    """
    if not records:
        raise DataError("there is no run to draw; name a run folder or a kept record of task focus.")
    figure, panels = new_figure(5.6 * min(2, len(records)), 4.2 * math.ceil(len(records) / 2), **_grid(len(records)))
    for axes in panels.flat[len(records) :]:
        axes.set_visible(False)
    for axes, (name, record) in zip(panels.flat, records.items(), strict=False):
        if not is_focus_record(record):
            raise DataError(f"{name} is not a measured run of task focus; runs of recipes/kim2021/focus_*.yaml are.")
        try:
            _panel(axes, name, measured_of(record), x, y)
        except (LookupError, TypeError, ValueError, AttributeError) as problem:
            raise DataError(f"{name} is no whole record ({problem!r:.100}); make the run again.") from None
    return figure


def _grid(n: int) -> dict[str, int]:
    return {"nrows": math.ceil(n / 2), "ncols": min(2, n)}


def _panel(axes: Axes, name: str, measured: Measured, x: str, y: str) -> None:
    lines = _systems_by_line(measured)
    start = _place(measured, _PLAIN, x, y)
    kinds = list(dict.fromkeys(kind for kind, _ in lines))
    betas = sorted({beta for _, beta in lines}, reverse=True)
    n_drawn = 0
    for (kind, beta), systems in lines.items():
        found = [(alpha, place) for alpha, own in sorted(systems) if (place := _place(measured, own, x, y)) is not None]
        n_drawn += len(found)
        places = [*([start] if start is not None else []), *(place for _, place in found)]
        colour, marker = COLOURS[kinds.index(kind) % len(COLOURS)], MARKERS[betas.index(beta) % len(MARKERS)]
        style = ("-", "--", ":", "-.")[betas.index(beta) % 4]
        across, upwards = [place[0] for place in places], [place[1] for place in places]
        axes.plot(across, upwards, style, marker=marker, color=colour, markersize=5, label=f"{kind}, beta {beta:g}")
        for alpha, place in found:
            _draw_alpha(axes, alpha, place, colour)
    if not n_drawn:
        raise DataError(f"{name} has no focused system with both {x} and {y}.")
    _draw_references(axes, start, measured.by_key(system=_GOLD).get(y))
    axes.set_title(f"{name}; numbers are alpha", pad=34, fontsize=9)
    axes.set_xlabel(f"{x} of the gold replies" if x.startswith("ppl") else x)
    plain = measured.by_key(system=_PLAIN).get(y)
    axes.set_ylabel(y if plain is None else f"{y} ({plain.unit})")
    axes.margins(0.1)
    legend_above(axes, 3)


def _systems_by_line(measured: Measured) -> dict[tuple[str, float], list[tuple[float, str]]]:
    """Kind and beta of a line to the alphas on it, each with its system."""
    lines: dict[tuple[str, float], list[tuple[float, str]]] = {}
    for system, facts in measured.facts["systems"].items():
        if "alpha" in facts:
            lines.setdefault((facts["kind"], facts["beta"]), []).append((facts["alpha"], system))
    return lines


def _draw_references(axes: Axes, start: _Place | None, gold: Score | None) -> None:
    """What the lines are read against: the system without a focus, and the gold replies."""
    if start is not None:
        axes.plot(start[0], start[1], "D", color=INK, markersize=6, zorder=3, label="S0")
    if _is_number(gold):
        axes.axhline(gold.value, color=SOFT, linewidth=1, linestyle=(0, (5, 3)), label="gold replies")


def _draw_alpha(axes: Axes, alpha: float, place: _Place, colour: str) -> None:
    """The number beside a mark, and its interval."""
    right, up, interval = place
    axes.annotate(f"{alpha:g}", (right, up), xytext=(4, 3), textcoords="offset points", fontsize=7, color=INK)
    if interval is not None:
        axes.plot([right, right], interval, color=colour, linewidth=0.8, alpha=0.5)


_Place = tuple[float, float, tuple[float, float] | None]


def _place(measured: Measured, system: str, x: str, y: str) -> _Place | None:
    """Across, upwards, and the interval upwards; None where one is missing."""
    scores = measured.by_key(system=system)
    across, upwards = scores.get(x), scores.get(y)
    if not (_is_number(across) and _is_number(upwards)):
        return None
    interval = upwards.interval
    return across.value, upwards.value, interval if interval and all(map(math.isfinite, interval)) else None


def _is_number(score: Score | None) -> TypeGuard[Score]:
    return score is not None and math.isfinite(score.value)
