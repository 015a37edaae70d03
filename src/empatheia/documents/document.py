"""What a report says, apart from how it is shown: a tree that :mod:`html`, :mod:`markdown` and :mod:`text` read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Attributes: TypeAlias = Mapping[str, object]
"""Of an HTML element, by name; one that is None, False or empty is left out, True stands alone. For HTML alone."""


@dataclass(frozen=True, slots=True)
class Marked:
    """A part of a line with a meaning of its own, or a shape of a drawing.

    Attributes:
        content: Inside.
        tag: The name in HTML: ``strong``, ``em``, ``code``, ``a``, ``small``, or a shape of SVG.
        attributes: ``href`` of a link.
    """

    content: Content = ""
    tag: str = "strong"
    attributes: Attributes = field(default_factory=dict)


Content: TypeAlias = "str | int | float | Marked | Sequence[Content]"
"""A line: text, marked parts, or several of these after each other."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of level 2 or 3."""

    content: Content
    level: int = 2
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph."""

    content: Content
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; its attributes are also those of its plain cells."""

    title: str
    is_number: bool = False
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table, or an item of a list, with attributes of its own."""

    content: Content
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table with attributes of its own."""

    cells: Sequence[Content | Cell]
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        columns: Titles, or columns; none = no line of heads.
        rows: As many cells each as there are columns.
        has_row_heads: Whether the first cell of a row names it.
        around: Attributes of a box around the table, in which it scrolls by itself; None = no box.
    """

    columns: Sequence[str | Column]
    rows: Sequence[Row | Sequence[Content | Cell]]
    has_row_heads: bool = False
    around: Attributes | None = None

    def heads(self) -> list[Column]:
        """All columns as such."""
        return [column if isinstance(column, Column) else Column(column) for column in self.columns]

    def lines(self) -> list[tuple[Attributes, list[Cell]]]:
        """Attributes and cells of each row; a plain cell takes the attributes of its column."""
        columns, lines = self.heads(), []
        for row in self.rows:
            cells = row.cells if isinstance(row, Row) else row
            whole = [
                cell if isinstance(cell, Cell) else Cell(cell, columns[i].attributes if columns else {})
                for i, cell in enumerate(cells)
            ]
            lines.append((row.attributes if isinstance(row, Row) else {}, whole))
        return lines


@dataclass(frozen=True, slots=True)
class Items:
    """A list, numbered or not."""

    items: Sequence[Content | Cell]
    is_ordered: bool = False
    attributes: Attributes = field(default_factory=dict)

    def cells(self) -> list[Cell]:
        """All items as cells."""
        return [item if isinstance(item, Cell) else Cell(item) for item in self.items]


@dataclass(frozen=True, slots=True)
class Code:
    """Lines to be read or typed as they are."""

    lines: Sequence[str]
    language: str = "sh"


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture.

    Attributes:
        caption: What it shows; in HTML also what a reader without eyes is told.
        svg: Content of an SVG file, or a drawing (see :func:`~empatheia.documents.svg.drawing`).
        address: Of the picture's file, for Markdown.
    """

    caption: str = ""
    svg: bytes | Marked = b""
    address: str = ""


Block: TypeAlias = "Heading | Text | Table | Items | Code | Figure"


@dataclass(frozen=True, slots=True)
class Document:
    """A report.

    Attributes:
        title: Plain text.
        lead: Below the title.
        blocks: The rest.
    """

    title: str
    lead: Sequence[Block] = ()
    blocks: Sequence[Block] = ()


def element(tag: str, *content: Content, **attributes: Any) -> Marked:
    """A marked part; ``class_`` is written ``class``, ``text_anchor`` is written ``text-anchor``."""
    named = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    return Marked(content[0] if len(content) == 1 else content, tag, named)


def link(content: Content, address: str) -> Marked:
    """A link; only HTML shows one that leads to a place in the document (``#...``)."""
    return Marked(content, "a", {"href": address})


def note(*content: Content) -> Text:
    """A paragraph in small print."""
    return Text(content, {"class": "note"})
