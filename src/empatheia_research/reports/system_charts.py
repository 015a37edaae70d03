"""Pictures of systems side by side: how long and how varied their replies are, and one metric against another."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from empatheia.errors import DataError
from empatheia.metrics import METRICS
from empatheia.metrics.published import DEFINITIONS, Published
from empatheia.metrics.records import RunRecord, measured_of
from empatheia.metrics.score import Score
from empatheia.registry import nearest
from empatheia_research.reports.charts import COLOURS, INK, MARKERS, SOFT, chart, legend_above, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Point:
    """A system in a trade-off picture.

    Attributes:
        name: As shown beside it.
        x, y: The two numbers.
        x_interval, y_interval: Their intervals, or None.
        is_printed: Of a paper, not of a run.
    """

    name: str
    x: float
    y: float
    x_interval: tuple[float, float] | None = None
    y_interval: tuple[float, float] | None = None
    is_printed: bool = False


@chart
def systems_chart(systems: Mapping[str, Sequence[str]]) -> Figure:
    """Words a reply (median, middle half, middle nine tenths) and corpus Distinct-1 and -2 in percent, by system.

    Args:
        systems: System to its replies; words are what stands between blanks.

    Raises:
        DataError: No system, or one whose replies have no word.
        MissingDependencyError: matplotlib is not installed.
    """
    if not systems:
        raise DataError("there is no system to draw; name at least one file of replies.")
    figure, panels = new_figure(8.8, 1.4 + 0.34 * len(systems), ncols=2, sharey=True)
    lengths, variety = panels[0]
    for place, (name, replies) in enumerate(systems.items()):
        words = [reply.split() for reply in replies]
        if not any(words):
            raise DataError(f"the replies of {name} have no word.")
        _draw_lengths(lengths, place, words)
        _draw_variety(variety, place, words)
    names = [f"{name} ({len(replies):,})" for name, replies in systems.items()]
    lengths.set_yticks(range(len(names)), names)
    lengths.set_ylim(len(names) - 0.5, -0.5)
    lengths.set_xlabel("words a reply")
    variety.set_xlabel("distinct n-grams of all n-grams (percent)")
    variety.set_xscale("log")
    variety.set_xlim(variety.get_xlim()[0] / 1.3, variety.get_xlim()[1] * 1.3)
    steps = [step for step in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if step >= variety.get_xlim()[0]]
    variety.set_xticks([step for step in steps if step <= variety.get_xlim()[1]])
    variety.xaxis.set_major_formatter("{x:g}")
    variety.xaxis.set_minor_formatter("")
    lengths.set_xlim(left=0)
    for axes in (lengths, variety):
        axes.grid(visible=False, axis="y")
        legend_above(axes, 3)
    return figure


def _draw_lengths(axes: Axes, place: int, words: Sequence[Sequence[str]]) -> None:
    """The spread of words a reply; the first place explains the marks."""
    low, first, middle, third, high = np.percentile([len(reply) for reply in words], [5, 25, 50, 75, 95])
    labels = ("middle 90 %", "middle 50 %", "median") if place == 0 else ("", "", "")
    axes.hlines(place, low, high, color=SOFT, linewidth=1.2, label=labels[0])
    axes.hlines(place, first, third, color=COLOURS[0], linewidth=6, label=labels[1])
    axes.plot(middle, place, "o", color="white", markeredgecolor=INK, label=labels[2])


def _draw_variety(axes: Axes, place: int, words: Sequence[Sequence[str]]) -> None:
    """Corpus Distinct-1 and -2; the first place explains the marks."""
    for n in (1, 2):
        metric: Any = METRICS.get(f"dist_corpus_{n}")()
        metric.update(words)
        score = metric.compute(n_resamples=0).in_unit("percent")
        label = f"Distinct-{n}" if place == 0 else None
        axes.plot(score.value, place, MARKERS[n - 1], color=COLOURS[n - 1], markersize=7, label=label)


def points_of(records: Iterable[RunRecord], x: str, y: str) -> list[Point]:
    """Runs that have both scores; shares in percent, as in :func:`printed_points`.

    Args:
        records: Run records.
        x: Name of a score, e.g. ``ppl_word``.
        y: Name of the other, e.g. ``dist_corpus_2``.

    Raises:
        DataError: No record has both; names the scores that there are.
    """
    records = list(records)
    sizes = [f"{record['recipe']} {record['size']}" for record in records]
    found = []
    for record, name in zip(records, sizes, strict=True):
        scores = scores_by_name(record)
        if x in scores and y in scores:
            (across, x_interval), (upwards, y_interval) = _in_percent(scores[x]), _in_percent(scores[y])
            told = f"{name}, seed {record['seed']}" if sizes.count(name) > 1 else name
            found.append(Point(told, across, upwards, x_interval, y_interval))
    if not found:
        known = sorted({key for record in records for key in scores_by_name(record)})
        unknown = next((name for name in (x, y) if name not in known), None)
        hint = f" No run has {unknown!r}.{nearest(unknown, known)}" if unknown else ""
        raise DataError(f"no run has both {x} and {y}.{hint} Found: {', '.join(known) or 'no run at all'}.")
    return found


def unit_of(records: Iterable[RunRecord], name: str) -> str:
    """The unit a score is drawn in, from the first record that has it; empty where none has."""
    unit = next((scores[name].unit for scores in map(scores_by_name, records) if name in scores), "")
    return "percent" if unit == "fraction" else unit


def printed_points(numbers: Iterable[Published], x: str, y: str) -> list[Point]:
    """Rows of a published table that print both scores, in percent where the unit is a share."""
    rows: dict[tuple[str, str, str], dict[str, float]] = {}
    for number in numbers:
        definition = DEFINITIONS.get((number.paper, number.metric))
        if isinstance(definition, tuple) and definition[0] in (x, y):
            factor = 100.0 if definition[1] == "fraction" else 1.0
            place = (f"{number.paper}: {number.row}", number.dataset, number.setting)
            rows.setdefault(place, {})[definition[0]] = factor * number.value
    return [Point(name, own[x], own[y], is_printed=True) for (name, *_), own in rows.items() if len(own) == 2]


@chart
def tradeoff_chart(points: Sequence[Point], x: str, y: str, x_unit: str = "", y_unit: str = "") -> Figure:
    """One metric against another: a filled mark with its intervals is a run of ours, an empty one is printed.

    Args:
        points: Runs and printed rows.
        x: Name of the score across.
        y: Name of the score upwards.
        x_unit: Behind the name.
        y_unit: Behind the name.

    Raises:
        DataError: No points.
        MissingDependencyError: matplotlib is not installed.
    """
    points = [point for point in points if math.isfinite(point.x) and math.isfinite(point.y)]
    if not points:
        raise DataError("there is no point to draw; give runs whose two scores are numbers.")
    figure, panels = new_figure(7.2, max(4.2, 0.8 + 0.18 * len(points)))
    axes = panels[0, 0]
    for printed, colour, marker, label in ((False, COLOURS[0], "o", "ours"), (True, INK, "D", "published")):
        own = [point for point in points if point.is_printed == printed]
        if not own:
            continue
        fill = "none" if printed else colour
        for point in own:
            _draw_intervals(axes, point, colour)
        style = {"facecolors": fill, "edgecolors": colour, "marker": marker, "s": 36, "zorder": 3}
        axes.scatter([p.x for p in own], [p.y for p in own], label=label, **style)
    axes.margins(0.12)
    axes.set_xlabel(f"{x} ({x_unit})" if x_unit else x)
    axes.set_ylabel(f"{y} ({y_unit})" if y_unit else y)
    _name_points(axes, points)
    legend_above(axes)
    return figure


def _draw_intervals(axes: Axes, point: Point, colour: str) -> None:
    if point.x_interval is not None:
        axes.plot([*point.x_interval], [point.y, point.y], color=colour, linewidth=1)
    if point.y_interval is not None:
        axes.plot([point.x, point.x], [*point.y_interval], color=colour, linewidth=1)


def scores_by_name(record: RunRecord) -> dict[str, Score]:
    """The finite scores of a run by the names that a chart is asked for: a score with labels has them before it."""
    rows = measured_of(record).rows
    return {row.name: row.score for row in rows if math.isfinite(row.score.value)}


def _in_percent(score: Score) -> tuple[float, tuple[float, float] | None]:
    """Value and interval; a fraction in percent, other units as they are."""
    factor = 100.0 if score.unit == "fraction" else 1.0
    is_known = score.interval is not None and all(map(math.isfinite, score.interval))
    interval = (factor * score.interval[0], factor * score.interval[1]) if score.interval and is_known else None
    return factor * score.value, interval


def _name_points(axes: Axes, points: Sequence[Point]) -> None:
    """A number beside each mark, and the names right of the panel; marks on the same spot share one text."""
    spots: dict[tuple[float, float], list[int]] = {}
    for number, point in enumerate(points, 1):
        spots.setdefault((point.x, point.y), []).append(number)
    for spot, numbers in spots.items():
        told = ", ".join(map(str, numbers))
        axes.annotate(told, spot, xytext=(5, 4), textcoords="offset points", fontsize=8, color=INK)
    names = "\n".join(f"{number}  {point.name}" for number, point in enumerate(points, 1))
    axes.annotate(names, (1.03, 1.0), xycoords="axes fraction", va="top", fontsize=8, color=INK, linespacing=1.5)
