"""A document as Markdown, with the tables of GitHub."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from empatheia.documents.document import (
    Block,
    Cell,
    Code,
    Content,
    Document,
    Figure,
    Heading,
    Items,
    Marked,
    Table,
    Text,
)

_SIGNS = {"strong": "**", "em": "*", "code": "`"}


def to_markdown(document: Document) -> str:
    """The whole document; ends with a line break."""
    return "\n".join([f"# {document.title}", "", *markdown_lines((*document.lead, *document.blocks))])


def markdown_lines(blocks: Sequence[Block]) -> Iterator[str]:
    """The lines of blocks, an empty one after each."""
    for block in blocks:
        yield from _lines(block)
        yield ""


def line_of(content: Content) -> str:
    """A line as Markdown."""
    if isinstance(content, str | int | float):
        return str(content)
    if not isinstance(content, Marked):
        return "".join(map(line_of, content))
    inside, address = line_of(content.content), str(content.attributes.get("href", "#"))
    if content.tag == "a":
        return inside if address.startswith("#") else f"[{inside}]({address})"
    sign = _SIGNS.get(content.tag, "")
    return f"{sign}{inside}{sign}"


def table_lines(table: Table) -> Iterator[str]:
    """A table: heads, the line that says which columns are numbers, rows."""
    columns = table.heads()
    yield _row([Cell(column.title) for column in columns])
    yield "|" + "".join("---:|" if column.is_number else "---|" for column in columns)
    yield from (_row(cells) for _, cells in table.lines())


def _row(cells: Sequence[Cell]) -> str:
    shown = (" ".join(line_of(cell.content).replace("|", "\\|").split()) for cell in cells)
    return f"| {' | '.join(shown)} |"


def _lines(block: Block) -> Iterator[str]:
    match block:
        case Heading():
            yield f"{'#' * block.level} {line_of(block.content)}"
        case Text():
            yield line_of(block.content)
        case Table():
            yield from table_lines(block)
        case Items():
            for i, item in enumerate(block.cells(), 1):
                yield f"{f'{i}.' if block.is_ordered else '-'} {line_of(item.content)}"
        case Code():
            yield from (f"```{block.language}", *block.lines, "```")
        case Figure():
            yield from (f"![{block.caption}]({block.address})", "", block.caption)
