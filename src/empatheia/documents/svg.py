"""Drawings out of shapes, as parts of a document; what a drawing says stands beside it in words."""

from __future__ import annotations

from collections.abc import Sequence

from empatheia.documents.document import Content, Marked, element


def drawing(width: int, height: int, title: str, shapes: Sequence[Content], is_fixed: bool = False) -> Marked:
    """A picture of that many units across and down, with its description; fixed, a unit is a pixel."""
    size = {"width": width, "height": height} if is_fixed else {}
    return Marked(shapes, "svg", {"viewBox": f"0 0 {width} {height}", **size, "role": "img", "aria-label": title})


def label(x: float, y: float, content: Content, anchor: str = "") -> Marked:
    """A text whose left end (or, by ``anchor``, ``middle`` or ``end``) is at a place."""
    return element("text", content, x=_unit(x), y=_unit(y), text_anchor=anchor)


def rect(x: float, y: float, width: float, height: float, **attributes: object) -> Marked:
    """A rectangle by its upper left corner."""
    return element("rect", "", x=_unit(x), y=_unit(y), width=_unit(width), height=_unit(height), **attributes)


def line(x1: float, x2: float, y1: float, y2: float, **attributes: object) -> Marked:
    """A straight line."""
    return element("line", "", x1=f"{x1:.1f}", x2=f"{x2:.1f}", y1=_unit(y1), y2=_unit(y2), **attributes)


def circle(x: float, y: float, radius: float, **attributes: object) -> Marked:
    """A disc."""
    return element("circle", "", cx=f"{x:.1f}", cy=_unit(y), r=_unit(radius), **attributes)


def _unit(value: float) -> str:
    """A length without digits that say nothing."""
    return f"{value:.1f}" if isinstance(value, float) else str(value)
