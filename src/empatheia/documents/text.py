"""A document as plain text for a terminal: a line for each line, tables with columns of even width."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from empatheia.documents.document import Block, Code, Content, Document, Figure, Items, Marked, Table


def to_text(document: Document) -> str:
    """The whole document, title and lead first."""
    return "\n".join([document.title, *text_lines((*document.lead, *document.blocks))])


def text_lines(blocks: Sequence[Block]) -> Iterator[str]:
    """The lines of blocks."""
    for block in blocks:
        if isinstance(block, Table):
            heads = [[column.title for column in block.heads()]] if block.columns else []
            yield from aligned([*heads, *([plain(cell.content) for cell in cells] for _, cells in block.lines())])
        elif isinstance(block, Items):
            yield from (f"  {plain(item.content)}" for item in block.cells())
        elif isinstance(block, Code):
            yield from block.lines
        elif isinstance(block, Figure):
            yield block.caption
        else:
            yield plain(block.content)


def plain(content: Content) -> str:
    """A line without its marks."""
    if isinstance(content, Marked):
        return plain(content.content)
    return str(content) if isinstance(content, str | int | float) else "".join(map(plain, content))


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of a table with columns of even width."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
