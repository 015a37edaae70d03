"""Pictures of labels: who is taken for whom, and which emotions and intents a system's replies have.

The second is Figures 2 and 5 of Xie and Pu (2021).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from empatheia.errors import DataError
from empatheia.metrics.classification import confusion
from empatheia.reading import parse_json, read_text
from empatheia.taxonomy import EMOTIONS, INTENTS, POSITIVE_EMOTIONS
from empatheia_research.reports.charts import COLOURS, INK, MARKERS, RULE, chart, legend_above, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GOLD_FIELDS = ("gold", "emotion")
LABEL_FIELDS = ("label", "intent", "predicted", "emotion")
_ORDER = (
    *(name for name in EMOTIONS if name in POSITIVE_EMOTIONS),
    *(name for name in EMOTIONS if name not in POSITIVE_EMOTIONS),
    *INTENTS,
)
"""Pleasant emotions, the others, intents."""


def read_rows(file: Path) -> list[dict[str, object]]:
    """Objects of a JSON-lines file, with gzip and byte order mark as they come.

    Raises:
        DataError: The file is missing or empty, or a line is no object (with its number).
    """
    if file.is_dir():
        file /= "outputs.jsonl"
    if not file.is_file():
        raise DataError(f"there is no file {file}; a run keeps its outputs there when it is measured.")
    rows = []
    for number, line in enumerate(read_text(file).split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = parse_json(line)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise DataError(f"{file}, line {number}: not a JSON object.")
        rows.append(row)
    if not rows:
        raise DataError(f"{file} is empty.")
    return rows


def labels_in(rows: Sequence[Mapping[str, object]], fields: Sequence[str], file: Path) -> list[str]:
    """The first of the fields that the rows have, of every row; a list gives its first entry.

    Raises:
        DataError: No row has one of them, or a row lacks what the others have.
    """
    field = next((name for name in fields if any(row.get(name) for row in rows)), None)
    if field is None:
        raise DataError(f"{file}: no row has a label; looked for {', '.join(fields)}; found {', '.join(rows[0])}.")
    out = []
    for number, row in enumerate(rows, 1):
        value = row.get(field)
        if isinstance(value, list):
            value = value[0] if value else None
        if not value:
            raise DataError(f"{file}: item {number:,} has no {field!r}, as the others have.")
        out.append(str(value))
    return out


def in_order(labels: Sequence[str]) -> list[str]:
    """The labels once each: pleasant emotions, the other emotions, intents, then what the taxonomy does not know."""
    found = set(labels)
    return [name for name in _ORDER if name in found] + sorted(found - set(_ORDER))


@chart
def confusion_chart(gold: Sequence[str], predicted: Sequence[str], title: str = "") -> Figure:
    """Gold labels in rows, predicted ones in columns; a cell is its share of the row, in percent.

    Args:
        gold: One label an item.
        predicted: One label an item, in the same order.
        title: Put before the number of items and the accuracy.

    Raises:
        DataError: No items, or different numbers of them.
        MissingDependencyError: matplotlib is not installed.
    """
    if not gold or len(gold) != len(predicted):
        raise DataError(f"{len(gold):,} gold and {len(predicted):,} predicted labels; accepted: as many, at least one.")
    names = in_order([*gold, *predicted])
    counts = confusion(predicted, gold, names)
    totals = counts.sum(1, keepdims=True)
    shares = 100 * counts / np.maximum(totals, 1)
    size = 2.6 + 0.235 * len(names)
    figure, panels = new_figure(size + 0.7, size)
    axes = panels[0, 0]
    image = axes.imshow(np.where(totals > 0, shares, np.nan), cmap="Blues", vmin=0, vmax=100, aspect="equal")
    axes.grid(visible=False)
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
    told = [f"{name} ({total:,})" for name, total in zip(names, totals[:, 0].tolist(), strict=True)]
    axes.set_yticks(range(len(names)), told, fontsize=7)
    axes.tick_params(length=0)
    for (row, column), share in np.ndenumerate(shares):
        if share >= 5:
            colour = "white" if share > 55 else INK
            axes.text(column, row, f"{share:.0f}", ha="center", va="center", fontsize=5.5, color=colour)
    axes.set_xlabel("predicted")
    axes.set_ylabel("gold (items)")
    figure.colorbar(image, ax=axes, shrink=0.5, label="share of the gold label's items (percent)")
    accuracy = 100 * np.trace(counts) / counts.sum()
    said = f"{len(gold):,} items, {accuracy:.1f} % on the diagonal"
    axes.set_title(f"{title}: {said}" if title else said)
    return figure


@chart
def shares_chart(systems: Mapping[str, Sequence[str]], of: str = "replies") -> Figure:
    """How often each emotion or intent occurs: a row for each label, a mark for each system, percent.

    Args:
        systems: System to one label an item. One system is drawn as bars.
        of: What the items are, for the axis.

    Raises:
        DataError: No system, or one without items.
        MissingDependencyError: matplotlib is not installed.
    """
    if not systems or any(not labels for labels in systems.values()):
        raise DataError("there is no label to draw; every system needs at least one item.")
    names = in_order([label for labels in systems.values() for label in labels])
    figure, panels = new_figure(6.4, 1.4 + 0.19 * len(names))
    axes = panels[0, 0]
    places = np.arange(len(names))
    shares = {}
    for system, labels in systems.items():
        counts = Counter(labels)
        shares[system] = np.array([100 * counts[name] / len(labels) for name in names])
    if len(systems) == 1:
        ((system, values),) = shares.items()
        axes.barh(places, values, height=0.7, color=COLOURS[0], label=f"{system} ({len(systems[system]):,})")
    else:
        stacked = np.array(list(shares.values()))
        axes.hlines(places, stacked.min(0), stacked.max(0), color=RULE, linewidth=2.5, zorder=1)
        for i, (system, values) in enumerate(shares.items()):
            style = {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)]}
            label = f"{system} ({len(systems[system]):,})"
            axes.plot(
                values,
                places,
                linestyle="",
                markersize=max(4.0, 7.0 - i),
                label=label,
                zorder=2,
                clip_on=False,
                **style,
            )
    axes.set_yticks(places, names, fontsize=8)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    kinds = [0 if name in POSITIVE_EMOTIONS else 1 if name in EMOTIONS else 2 for name in names]
    for i in range(1, len(names)):
        if kinds[i] != kinds[i - 1]:
            axes.axhline(i - 0.5, color=INK, linewidth=0.6)
    axes.set_xlim(left=0)
    axes.set_xlabel(f"share of {of} (percent)")
    legend_above(axes, 3)
    return figure
