"""The emotions of a conversation over its turns as an inline SVG: a line of pleasantness above a heat strip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from empatheia.documents.document import Marked, element
from empatheia.taxonomy import EMOTIONS, POSITIVE_EMOTIONS

MAX_ROWS = 8
WIDTH = 900
MIN_WIDTH = 280
LEFT = 112
LINE_HEIGHT = 70
ROW_HEIGHT = 18
MAX_COLUMN = 64
FRAMED = 8
"""Width of a column, from which its strongest emotion is framed; a narrower one is underlined."""
_FAINT = 0.03


class EmotionsOfTurn(TypedDict):
    """How probable each emotion is in a turn (0-based), as an analysis writes it; other fields are not read."""

    turn: int
    probabilities: Mapping[str, float]


def polarity_class(emotion: str) -> str:
    """``pos`` or ``neg`` after MIME (Majumder et al. 2020), ``neu`` for a label that is no emotion."""
    return "pos" if emotion in POSITIVE_EMOTIONS else "neg" if emotion in EMOTIONS else "neu"


def emotion_timeline(records: Sequence[EmotionsOfTurn], key: str) -> Marked | None:
    """An SVG with a column for each turn that has a distribution; None without one.

    Above: the probability of the 13 pleasant emotions together, 0 to 1. Below: the emotions with the largest sums, the
    stronger the colour the more probable, each turn's strongest framed. Columns link to their turns.

    Args:
        records: ``turn`` (0-based) and ``probabilities`` of each turn, by turn.
        key: Prefix of the ids on the page; a turn is ``<key>-t<number from 1>``.
    """
    if not records:
        return None
    sums = {name: sum(float(r["probabilities"].get(name, 0.0)) for r in records) for name in _labels(records)}
    tops = list(dict.fromkeys(_top(r) for r in records))
    ranked = sorted(sums, key=lambda name: (name not in tops, -sums[name]))
    rows = sorted(ranked[: max(3, min(MAX_ROWS, len(tops)))], key=lambda name: -sums[name])
    column = min(MAX_COLUMN, (WIDTH - LEFT - 10) / len(records))
    top = LINE_HEIGHT + 22
    height = top + ROW_HEIGHT * len(rows) + 24
    width = max(MIN_WIDTH, round(LEFT + column * len(records) + 10))
    parts = [
        element("title", "Emotions over the turns", id=f"{key}-tl-t"),
        element("desc", described(records), id=f"{key}-tl-d"),
        *_line(records, column),
        *_strip(records, rows, column, top, key),
        *_ticks(records, column, height - 8),
    ]
    look = f"max-width:{width * 1.15:.0f}px;min-width:{min(width, 640)}px"
    box = {"class": "timeline", "viewBox": f"0 0 {width} {height}", "style": look, "role": "img"}
    return Marked(parts, "svg", {**box, "aria-labelledby": f"{key}-tl-t {key}-tl-d"})


def _axis(x: str | int, y: float, text: str, anchor: str = "end") -> Marked:
    return element("text", text, class_="axis", x=x, y=f"{y:g}", text_anchor=anchor)


def described(records: Sequence[EmotionsOfTurn]) -> str:
    """The timeline in words: runs of turns with the same strongest emotion.

    >>> described([{"turn": 0, "probabilities": {"sad": 1}}, {"turn": 2, "probabilities": {"sad": 1}}])
    'sad in turns 1 to 3.'
    """
    runs: list[list[Any]] = []
    for record in records:
        name, number = _top(record), int(record["turn"]) + 1
        if runs and runs[-1][0] == name:
            runs[-1][2] = number
        else:
            runs.append([name, number, number])
    told = [
        f"{name} in turn{'' if first == last else 's'} {first}{'' if first == last else f' to {last}'}"
        for name, first, last in runs[:40]
    ]
    more = f"; and {len(runs) - 40} more changes" if len(runs) > 40 else ""
    return "; ".join(told) + more + "."


def _labels(records: Sequence[EmotionsOfTurn]) -> list[str]:
    return list(dict.fromkeys(name for record in records for name in record["probabilities"]))


def _top(record: EmotionsOfTurn) -> str:
    chances = record["probabilities"]
    return max(chances, key=lambda name: chances[name])


def _line(records: Sequence[EmotionsOfTurn], column: float) -> list[Marked]:
    def y(share: float) -> float:
        return round(6 + (LINE_HEIGHT - 6) * (1 - share), 1)

    right = LEFT + column * len(records)
    parts = [_axis(LEFT - 8, y(1) + 8, "pleasant"), _axis(LEFT - 8, y(0), "unpleasant")]
    for share in (0.0, 0.5, 1.0):
        kind = "mid" if share == 0.5 else "rule"
        parts.append(element("line", class_=kind, x1=LEFT, x2=f"{right:.1f}", y1=y(share), y2=y(share)))
    points = []
    for place, record in enumerate(records):
        share = sum(float(p) for name, p in record["probabilities"].items() if name in POSITIVE_EMOTIONS)
        points.append((round(LEFT + column * (place + 0.5), 1), y(min(1.0, share)), share, int(record["turn"]) + 1))
    if len(points) > 1:
        parts.append(element("polyline", class_="curve", points=" ".join(f"{a},{b}" for a, b, _, _ in points)))
    radius = 3.5 if column > 9 else 1.2
    for a, b, share, turn in points:
        told = element("title", f"turn {turn}: {share:.0%} pleasant")
        parts.append(element("circle", told, class_="dot", cx=a, cy=b, r=radius))
    return parts


def _strip(records: Sequence[EmotionsOfTurn], rows: Sequence[str], column: float, top: float, key: str) -> list[Marked]:
    parts, height = [], ROW_HEIGHT - 2
    for place, name in enumerate(rows):
        y, width = top + ROW_HEIGHT * place, f"{column * len(records):.1f}"
        parts.append(_axis(LEFT - 8, y + 13, name))
        parts.append(element("rect", class_="ground", x=LEFT, y=y, width=width, height=height))
    for i, record in enumerate(records):
        strongest, turn, cells = _top(record), int(record["turn"]) + 1, []
        box = {"x": f"{LEFT + column * i:.1f}", "width": f"{max(0.8, column - (1 if column > 6 else 0)):.1f}"}
        for place, name in enumerate(rows):
            chance = float(record["probabilities"].get(name, 0.0))
            if chance < _FAINT and name != strongest:
                continue
            is_framed = name == strongest and column >= FRAMED
            kind, y = polarity_class(name) + (" top" if is_framed else ""), top + ROW_HEIGHT * place
            told = element("title", f"turn {turn}: {name} {chance:.0%}")
            more = {"height": height, "fill_opacity": f"{chance:.2f}"}
            cells.append(element("rect", told, class_=kind, x=box["x"], y=y, width=box["width"], **more))
            if name == strongest and not is_framed:
                foot = {"x": box["x"], "y": y + ROW_HEIGHT - 5, "width": box["width"]}
                cells.append(element("rect", class_="foot", **foot, height=3))
        parts.append(element("a", *cells, href=f"#{key}-t{turn}", tabindex=-1))
    return parts


def _ticks(records: Sequence[EmotionsOfTurn], column: float, y: float) -> list[Marked]:
    step = max(1, -(-30 // max(1, int(column))))
    return [
        _axis(f"{LEFT + column * (i + 0.5):.1f}", y, str(int(records[i]["turn"]) + 1), "middle")
        for i in range(0, len(records), step)
    ]
