"""One tree, three forms: each says the same, and nothing that somebody wrote becomes markup."""

from __future__ import annotations

from html.parser import HTMLParser

from empatheia.documents.document import (
    Cell,
    Code,
    Column,
    Document,
    Figure,
    Heading,
    Items,
    Row,
    Table,
    Text,
    element,
    link,
    note,
)
from empatheia.documents.html import line_html, to_html
from empatheia.documents.markdown import to_markdown
from empatheia.documents.svg import drawing, label, rect
from empatheia.documents.text import to_text

REPORT = Document(
    "Title",
    [note("Lead.")],
    [
        Heading("Values"),
        Table(
            ("row", Column("n", is_number=True, attributes={"class": "count"})),
            [("a|b", "1"), Row([Cell(element("em", "long name"), {"class": "x"}), "23"], {"class": "first"})],
            has_row_heads=True,
            around={"class": "chart"},
        ),
        Text(("see ", link("there", "https://example.org"), " and ", link("1", "#n1"))),
        Items([element("strong", "one"), Cell("two", {"id": "n1"})], is_ordered=True),
        Code(["empatheia train a", "empatheia train b"]),
        Figure("A curve", b"<svg/>", "curve.svg"),
    ],
)
EVIL = "</style><script>alert(1)</script>\"'&<img src=x> \u202e\x00"


class Elements(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words = ""
        self.named: dict[str, list[tuple[str, str | None]]] = {}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.named[tag] = attrs

    def handle_data(self, data):
        self.words += data


def test_a_document_as_markdown():
    assert to_markdown(REPORT) == (
        "# Title\n\nLead.\n\n## Values\n\n| row | n |\n|---|---:|\n| a\\|b | 1 |\n| *long name* | 23 |\n\n"
        "see [there](https://example.org) and 1\n\n1. **one**\n2. two\n\n"
        "```sh\nempatheia train a\nempatheia train b\n```\n\n![A curve](curve.svg)\n\nA curve\n"
    )


def test_a_document_as_text():
    assert to_text(REPORT).splitlines() == [
        *(
            "Title",
            "Lead.",
            "Values",
            "row        n",
            "a|b        1",
            "long name  23",
            "see there and 1",
            "  one",
            "  two",
        ),
        *("empatheia train a", "empatheia train b", "A curve"),
    ]


def test_a_document_as_html():
    page = to_html(REPORT, images=True)
    for part in (
        '<div class="chart">', '<th scope="col" class="count">n</th>', '<td class="count">23</td>',
        '<tr class="first"><th scope="row" class="x"><em>long name</em></th>', '<li id="n1">two</li>',
        '<a href="https://example.org">there</a>', "<pre>empatheia train a\nempatheia train b</pre>",
        'src="data:image/svg+xml;base64,PHN2Zy8+" alt="A curve"', "img-src data:",
    ):  # fmt: skip
        assert part in page, part


def test_nothing_in_a_document_becomes_markup():
    table = Table((EVIL,), [(EVIL,)], around={"aria-label": EVIL})
    drawn = drawing(10, 10, EVIL, [label(1, 2, EVIL), rect(1, 2, 3.0, 4, fill=EVIL)])
    blocks = [Heading(EVIL), Text((EVIL, element("em", EVIL, title=EVIL))), table, Items([EVIL]), Code([EVIL])]
    page = to_html(Document(EVIL, [note(EVIL)], [*blocks, Figure(EVIL, drawn)]))
    found = Elements(page)
    assert not {"script", "img"} & set(found.tags) and found.tags.count("style") == 1
    assert "\x00" not in page and "\u202e" not in page and "<script>alert(1)</script>" in found.words
    assert dict(found.named["em"])["title"].startswith("</style>")


def test_shapes_without_content_close_themselves_and_empty_attributes_are_left_out():
    assert line_html(rect(1, 2, 3.0, 4, class_="")) == '<rect x="1" y="2" width="3.0" height="4"/>'
    assert line_html(element("details", "x", open=True, id=None)) == "<details open>x</details>"
