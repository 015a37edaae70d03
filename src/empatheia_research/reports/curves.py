"""Training curves: the losses of a run over its updates, on training batches and on validation."""

from __future__ import annotations

import logging
import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from empatheia.errors import DataError
from empatheia.reading import parse_json, read_text
from empatheia_research.reports.charts import COLOURS, MARKERS, chart, new_figure
from empatheia_research.shipped import shipped_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "curves.jsonl"
logger = logging.getLogger("empatheia.records")
_CHARACTERS_AN_INCH = 12
Curves = Mapping[str, Sequence[Mapping[str, Any]]]
"""Stage to its rows."""


def curves_of(place: Path) -> Path | None:
    """The curves that belong to a run folder, a kept record, a run's ``metrics.json``, or the file itself; or None."""
    place = shipped_path(place)
    if place.name.endswith(NAME):
        candidates = [place]
    elif place.is_dir():
        candidates = [place / NAME]
    else:
        candidates = [place.with_suffix(f".{NAME}"), place.with_name(NAME)]
    return next((file for file in candidates if file.is_file()), None)


def read_curves(file: Path) -> Curves:
    """Rows of a curves file by stage; a line that is no JSON object with stage and step is told and left out.

    Raises:
        DataError: No line is one.
    """
    stages: dict[str, list[Mapping[str, Any]]] = {}
    faults = []
    for number, line in enumerate(read_text(file).splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = parse_json(line)
            numbers = {name: value for name, value in row.items() if _is_number(value)}
            stage, step = str(row["stage"]), int(numbers["step"])
            stages.setdefault(stage, []).append({**numbers, "step": step})
        except (ValueError, KeyError, TypeError, AttributeError):
            faults.append(f"{file}, line {number}: not a row of curves (an object with stage and step)")
    if faults and not stages:
        raise DataError(f"{faults[0]}.")
    for fault in faults:
        logger.warning("%s; left out", fault)
    if not stages:
        raise DataError(f"{file} holds no curves: the run has not made its first report.")
    return stages


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


@chart
def curves_chart(runs: Mapping[str, Curves]) -> Figure:
    """A panel for each stage: loss in nats over updates; thin lines on training batches, marked ones on validation.

    Of one run every named loss is drawn, of several only their weighted sums.

    Args:
        runs: Name of a run to its curves.

    Raises:
        DataError: There is no run.
        MissingDependencyError: matplotlib is not installed.
    """
    if not runs:
        raise DataError("there is no run to draw; name at least one run folder or curves file.")
    stages = list(dict.fromkeys(stage for curves in runs.values() for stage in curves))
    single = next(iter(runs)) if len(runs) == 1 else None
    height = 3.4 if single else 3.2 + 0.2 * len(runs)
    width = 1.4 + 3.8 * len(stages)
    figure, panels = new_figure(width, height, ncols=len(stages))
    for axes, stage in zip(panels[0], stages, strict=True):
        series = _series(runs[single].get(stage, ())) if single else _sums(runs, stage)
        for name, points in series.items():
            _draw(axes, name, *points, list(series if single else runs).index(name))
        axes.set_xlabel("updates")
        axes.set_ylabel("loss (nats)")
        axes.set_xlim(left=0)
        axes.set_title(f"stage {stage}")
        if single:
            axes.legend(loc="best")
    how = "thin: training batches, marked: validation"
    if single:
        told = textwrap.fill(f"{single} ({how})", int(_CHARACTERS_AN_INCH * width))
        figure.suptitle(told, x=0.01, ha="left", fontsize=9)
    else:
        entries = {label: h for axes in panels[0] for h, label in zip(*axes.get_legend_handles_labels(), strict=True)}
        figure.legend(entries.values(), entries, loc="outside upper left", title=how, alignment="left")
    return figure


Points = tuple[list[int], list[float]]
_AN_EPOCH_APART = 0.9
"""A validation is an earlier one if its update is at most this share of the last one's."""


def last_fall(curves: Curves, loss: str) -> tuple[float, int, int] | None:
    """How much a validation loss fell from the validation before the last one to the end of the last stage that has it.

    Args:
        curves: Of one run.
        loss: E.g. ``words``; ``loss`` is the weighted sum.

    Returns:
        The fall as a share of the value before (below 0 = it rose), and the updates of both validations; None if no
        stage has two, or it was 0 before.
    """
    for rows in reversed(list(curves.values())):
        steps, values = _reported(rows, f"eval_{loss}")
        before = [i for i, step in enumerate(steps) if step <= _AN_EPOCH_APART * steps[-1]]
        if before and values[before[-1]]:
            return 1 - values[-1] / values[before[-1]], steps[before[-1]], steps[-1]
    return None


def _sums(runs: Mapping[str, Curves], stage: str) -> dict[str, tuple[Points, Points]]:
    """Name of a run to its weighted sum in a stage; runs without one are left out."""
    found = {run: _series(curves.get(stage, ()), ["loss"]) for run, curves in runs.items()}
    return {run: own["loss"] for run, own in found.items() if own}


def _series(rows: Sequence[Mapping[str, Any]], wanted: Sequence[str] | None = None) -> dict[str, tuple[Points, Points]]:
    """Loss name to its points on training batches and on validation, in the order of their first report.

    A name's points stand under ``loss_NAME`` and ``eval_NAME``; of the weighted sum under ``loss`` and ``eval_loss``.
    """
    names = list(dict.fromkeys(key.removeprefix("loss_") for row in rows for key in row if key.startswith("loss_")))
    if wanted is None:
        wanted = names if names else ["loss"]
    out = {}
    for name in wanted:
        train_key, valid_key = ("loss", "eval_loss") if name == "loss" else (f"loss_{name}", f"eval_{name}")
        training, valid = _reported(rows, train_key), _reported(rows, valid_key)
        if not any(valid[1]):  # not computed on validation
            valid = ([], [])
        if training[0] or valid[0]:
            out[name] = (training, valid)
    return out


def _reported(rows: Sequence[Mapping[str, Any]], key: str) -> Points:
    """Steps and values of the reports that have such a value."""
    found = [row for row in rows if row.get(key) is not None]
    return [row["step"] for row in found], [float(row[key]) for row in found]


def _draw(axes: Axes, name: str, training: Points, valid: Points, i: int) -> None:
    colour, marker = COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]
    if training[0]:
        axes.plot(*training, color=colour, linewidth=0.9, alpha=0.75, label=None if valid[0] else name)
    if valid[0]:
        axes.plot(*valid, color=colour, linewidth=1.6, marker=marker, markersize=5, label=name)
