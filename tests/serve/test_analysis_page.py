"""The analysis page in a real browser: files, progress, reload, filters, downloads."""

from __future__ import annotations

import csv
import io

import httpx2 as httpx
import pytest
from browsing import Visit, chromium

TEXTS = [
    "I lost my keys again and missed the bus.",
    "My sister is visiting tomorrow and I can hardly wait 🎉 for the cafe\u0301 👨‍👩‍👧!",
    "",
    'They said "no" <b>again</b>, and I cried.',
    "=2+2 and my dog is ill",
]


@pytest.fixture(scope="module")
def visit(address):
    with chromium() as browser:
        one = Visit(browser, accept_downloads=True)
        yield one
        one.context.close()
        assert one.foreign == []
        assert one.faults == []


@pytest.fixture(scope="module")
def table() -> bytes:
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(["nr", "<i>said</i>", "where"])
    writer.writerows([str(10 + place), text, "a, b\nc"] for place, text in enumerate(TEXTS))
    return stream.getvalue().encode()


def give(page, name: str, body: bytes) -> None:
    page.set_input_files("#file", {"name": name, "mimeType": "text/plain", "buffer": body})


def test_a_table_is_analysed_survives_a_reload_and_is_downloaded(visit, address, table):
    page = visit.open(f"{address}/analyze")
    give(page, "posts.csv", table)
    assert page.locator("#column option").all_inner_texts() == ["nr", "<i>said</i>", "where"]
    page.select_option("#column", "<i>said</i>")
    assert page.locator("#preview li").all_inner_texts() == [TEXTS[0], TEXTS[1], "(empty)"]
    page.click("#begin")
    page.locator("#found-title", has_text="Read posts.csv").wait_for()
    here = page.url
    page.reload()
    page.locator("#found-title", has_text="Read posts.csv").wait_for()
    assert page.url == here
    assert "5 of 5 rows, 1 of them could not be read" in page.locator("#how-far").inner_text()

    page.locator("#rows tr").nth(4).wait_for()
    shown = page.locator("#rows .sentence").all_inner_texts()
    assert shown == [text for text in TEXTS if text]
    assert page.locator("main b, main i").count() == 0
    good = [text for text in TEXTS if text]
    told = httpx.post(f"{address}/v1/analyze", json={"input": good}, timeout=60).json()["data"]
    for row, item in zip(page.locator("#rows tr:has(.sentence)").all(), told, strict=True):
        understood = item["understanding"]
        assert row.locator(".feels").inner_text() == understood["emotion"]
        offsets = [
            (int(word.get_attribute("data-start")), int(word.get_attribute("data-end")))
            for word in row.locator(".word").all()
        ]
        assert offsets == [(word["start"], word["end"]) for word in understood["words"]]

    with page.expect_download() as saved:
        page.click("#csv")
    rows = list(csv.DictReader(io.StringIO(saved.value.path().read_bytes().decode())))
    assert [row["nr"] for row in rows] == ["10", "11", "12", "13", "14"]
    assert [row["where"] for row in rows] == ["a, b\nc"] * 5
    assert rows[4]["<i>said</i>"] == "'=2+2 and my dog is ill"
    assert [row["emotion"] for row in rows if not row["error"]] == [one["understanding"]["emotion"] for one in told]


@pytest.fixture
def found(visit, address, table):
    """The page with the table's analysis on it, whichever test came before."""
    page = visit.open(f"{address}/analyze")
    give(page, "posts.csv", table)
    page.select_option("#column", "<i>said</i>")
    page.click("#begin")
    page.locator("#found-title", has_text="Read posts.csv").wait_for()
    page.locator("#rows tr").nth(4).wait_for()
    return page


def test_filters_and_charts(found):
    page = found
    page.fill("#by-text", "SISTER")
    page.locator("#where", has_text="1 to 1 of 1").wait_for()
    assert page.locator("#rows .sentence").all_inner_texts() == [TEXTS[1]]
    page.fill("#by-text", "")
    page.check("#by-error")
    page.locator("#rows .unread").wait_for()
    page.locator("#where", has_text="1 to 1 of 1").wait_for()
    page.uncheck("#by-error")
    page.locator("#where", has_text="1 to 5 of 5").wait_for()
    name = page.locator("#rows .feels").first.inner_text()
    page.select_option("#by-emotion", name)
    page.locator("#where", has_text="of 5").wait_for(state="hidden")
    assert set(page.locator("#rows .feels").all_inner_texts()) == {name}
    assert name in page.locator("#emotions svg").get_attribute("aria-label")


def test_an_analysis_is_deleted_and_one_that_is_gone_says_so(visit, found, address):
    page = found
    gone = page.url
    page.click("#delete")
    page.locator("#giving").wait_for()
    assert httpx.get(f"{address}/v1/jobs/{gone.partition('#')[2]}").status_code == 404
    page.goto("about:blank")
    page.goto(gone)
    page.locator("#give-fault", has_text="is not there any more").wait_for()
    assert visit.faults and all("404" in fault for fault in visit.faults)  # the browser's own line
    visit.faults.clear()


@pytest.mark.parametrize(
    ("name", "body", "said"),
    [
        ("a.csv", b'text\n"open', "never closed"),
        ("a.csv", b"text\n", "no row"),
        ("a.jsonl", b'{"text": "fine"}\n{"text"', "Line 2 is no JSON"),
        ("a.jsonl", b"[1]\n", "neither an object nor a text"),
        ("a.txt", b"\xff\xfe\x00", "UTF-8"),
        ("a.txt", b"a\0b", "no text file"),
        ("a.txt", b"\n \n", "no text"),
    ],
)
def test_files_that_cannot_be_read_say_why(visit, address, name, body, said):
    page = visit.open(f"{address}/analyze")
    give(page, name, body)
    page.locator("#give-fault", has_text=said).wait_for()


@pytest.mark.parametrize(
    ("name", "body", "columns"),
    [
        ("a.csv", '\ufefftext;"b ""c"""\r\n"x;\ny";z\r\n', ["text", 'b "c"']),
        ("a.tsv", "id\ttext\n1\tI won, at last\n", ["id", "text"]),
        ("a.jsonl", '{"text": "I won."}\n{"text": "I lost.", "n": 2}\n', ["text", "n"]),
        ("a.txt", "I won.\n\nI lost.\n", ["text"]),
    ],
)
def test_forms_of_files(visit, address, name, body, columns):
    page = visit.open(f"{address}/analyze")
    give(page, name, body.encode())
    page.locator("#chosen").wait_for()
    assert page.locator("#column option").all_inner_texts() == columns
    assert page.locator("#column").input_value() == "text"


def test_one_that_runs_is_stopped(visit, address):
    rows = [{"input": "I lost my keys."}]
    id = httpx.post(f"{address}/v1/jobs", json={"rows": rows, "last": False, "name": "a.txt"}).json()["id"]
    page = visit.open(f"{address}/analyze#{id}")
    page.locator("#found-title", has_text="Reading a.txt").wait_for()
    page.locator("#rows .sentence").wait_for()
    page.click("#cancel")
    page.locator("#found-title", has_text="Stopped reading a.txt").wait_for()
    assert "1 of 1 rows" in page.locator("#how-far").inner_text()
    page.click("#delete")
    page.locator("#giving").wait_for()
