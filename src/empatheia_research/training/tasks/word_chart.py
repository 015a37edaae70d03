"""Methods that find cause words side by side: a table and a chart of their recall, from a run's scores."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from empatheia.metrics.rows import Measured
from empatheia.metrics.score import Score

_LEFT, _WIDTH, _ROW, _HEAD, _GAP = 230, 240, 20, 54, 26
_DOT = {True: "#0b5cad", False: "#5c5c5c"}


def methods_of(measured: Measured, place: str) -> list[str]:
    """Methods measured on a set, the best at k = 1 first; those told the gold emotion come last.

    Args:
        measured: Of an estimator's run.
        place: Name of the set, e.g. ``reccon words``.
    """
    scores = _recall(measured, place, 1)
    return sorted(scores, key=lambda name: ("gold emotion" in name, -scores[name].value))


def places_of(measured: Measured) -> list[str]:
    """Sets measured, in their order."""
    return list(dict.fromkeys(row.labels["set"] for row in measured.where("cause_recall_top1")))


def _recall(measured: Measured, place: str, k: int) -> dict[str, Score]:
    """By method."""
    return {row.labels["method"]: row.score for row in measured.where(f"cause_recall_top{k}", set=place)}


def word_table(measured: Measured, top_k: Sequence[int] = (1, 3, 5)) -> str:
    """Markdown: one table a set, recall in percent with its 95 % interval, the ceiling as the last row.

    Args:
        measured: Of an estimator's run.
        top_k: Columns.
    """
    lines: list[str] = []
    for place in places_of(measured):
        names = methods_of(measured, place)
        scores = {k: _recall(measured, place, k) for k in top_k}
        lines += [f"## {place}, {scores[top_k[0]][names[0]].n:,} texts", ""]
        lines += ["| method | " + " | ".join(f"recall@{k}" for k in top_k) + " |", "|---|" + "---|" * len(top_k)]
        for name in names:
            own = [scores[k][name] for k in top_k]
            lines.append(f"| {name} | " + " | ".join(_cell(score) for score in own) + " |")
        ceilings = [scores[k][names[0]].parts["ceiling"] for k in top_k]
        lines += ["| ceiling | " + " | ".join(f"{ceiling:.2f}" for ceiling in ceilings) + " |", ""]
    return "\n".join(lines)


def word_chart(measured: Measured, place: str, top_k: Sequence[int] = (1, 3, 5)) -> str:
    """The table of one set as SVG: a panel for each k, a row for each method; dot = recall, bar = 95 % interval.

    The shaded column is random's interval, the dashed line the ceiling. Every figure is in a tooltip and in
    :func:`word_table`.

    Args:
        measured: Of an estimator's run.
        place: Name of the set.
        top_k: Panels.
    """
    names = methods_of(measured, place)
    n = _recall(measured, place, 1)[names[0]].n
    height = _HEAD + _ROW * len(names) + 44
    width = _LEFT + len(top_k) * (_WIDTH + _GAP)
    title = escape(f"Recall of cause words, {place} ({n:,} texts), with 95 % intervals")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        f' font-family="sans-serif" font-size="12" role="img" aria-label="{title}">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text x="10" y="20" font-size="14" font-weight="bold">{title}</text>',
    ]
    for i, name in enumerate(names):
        weight = "bold" if name.startswith("estimator") else "normal"
        y = _HEAD + _ROW * i + 14
        parts.append(f'<text x="{_LEFT - 14}" y="{y}" text-anchor="end" font-weight="{weight}">{escape(name)}</text>')
    for panel, k in enumerate(top_k):
        scores = _recall(measured, place, k)
        parts += _panel(names, [scores[name] for name in names], k, _LEFT + panel * (_WIDTH + _GAP))
    caption = "shaded: random's interval; dashed: ceiling, the best possible value"
    parts.append(f'<text x="{_LEFT}" y="{height - 4}" fill="#555">{caption}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(names: Sequence[str], scores: Sequence[Score], k: int, left: int) -> list[str]:
    ceiling = scores[0].parts["ceiling"]
    ends = [bound for score in scores for bound in (score.interval or [score.value])]
    low, high = min(ends), max(*ends, ceiling)
    margin = 0.04 * (high - low) + 1e-6
    low, high = low - margin, high + margin

    def x(value: float) -> float:
        return round(left + _WIDTH * (value - low) / (high - low), 1)

    bottom = _HEAD + _ROW * len(names)
    parts = [f'<text x="{left}" y="42" font-weight="bold">recall@{k}, percent</text>']
    if "random" in names and (chance := scores[names.index("random")].interval):
        a, b = (x(bound) for bound in chance)
        parts.append(f'<rect x="{a}" y="{_HEAD}" width="{b - a:.1f}" height="{bottom - _HEAD}" fill="#ececec"/>')
    parts.append(
        f'<line x1="{x(ceiling)}" x2="{x(ceiling)}" y1="{_HEAD}" y2="{bottom}" stroke="#333" stroke-dasharray="4 3">'
        f"<title>ceiling {ceiling:.2f}</title></line>"
    )
    for i, (name, score) in enumerate(zip(names, scores, strict=True)):
        y, colour = _HEAD + _ROW * i + 10, _DOT[name.startswith("estimator")]
        parts.append(f"<g><title>{escape(name)}: {_cell(score)}</title>")
        if score.interval:
            a, b = (x(bound) for bound in score.interval)
            parts.append(f'<line x1="{a}" x2="{b}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<circle cx="{x(score.value)}" cy="{y}" r="4" fill="{colour}"/></g>')
    axis = f'<line x1="{left}" x2="{left + _WIDTH}" y1="{bottom}" y2="{bottom}" stroke="#333"/>'
    return [*parts, axis, *_ticks(low, high, x, bottom)]


def _ticks(low: float, high: float, x: Any, bottom: int) -> list[str]:
    step = next(s for s in (1, 2, 5, 10, 20, 50) if (high - low) / s <= 6)
    values = [v for v in range(0, 101, step) if low <= v <= high]
    return [f'<text x="{x(v)}" y="{bottom + 16}" text-anchor="middle">{v}</text>' for v in values]


def _cell(score: Score) -> str:
    interval = score.interval
    return f"{score.value:.2f}" + (f" [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else "")
