"""docs/design/0004-ways.md: its files are there, and a sentence and a CSV row walk through theirs in that order."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
PAGE = (ROOT / "docs" / "design" / "0004-ways.md").read_text(encoding="utf-8")
MOST = 12
WAYS = {
    section.partition("\n")[0]: re.findall(r"^\d+\. `([\w/]+\.py)`: \S", section, re.MULTILINE)
    for section in PAGE.split("\n## ")[1:]
}
MADE = ("__init__", "__post_init__", "__new__", "<module>", "<lambda>")
"""Calls that make things ready; a way begins with the first other call."""


def walked(act: Callable[[], object]) -> list[str]:
    """Files of src in the order in which a function of theirs is first called."""
    met: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_name not in MADE and "/src/empatheia" in code.co_filename:
            met.setdefault(code.co_filename.rpartition("/src/")[2])

    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
    return list(met)


def out_of_order(way: str, met: list[str]) -> str:
    """What is wrong with a way, beside where a trace went; empty if nothing is."""
    if absent := [name for name in WAYS[way] if name not in met]:
        return f"{way}: not passed: {', '.join(absent)}"
    in_order = sorted(WAYS[way], key=met.index)
    return "" if in_order == WAYS[way] else f"{way}: entered in the order {', '.join(in_order)}"


def test_the_page_has_the_five_ways():
    assert list(WAYS) == ["A sentence", "A CSV row", "An HTTP chat", "An example", "A rating"]
    assert len(re.findall(r"^\d+\. ", PAGE, re.MULTILINE)) == sum(map(len, WAYS.values()))


@pytest.mark.parametrize("way", WAYS)
def test_a_way_has_few_files_and_all_of_them_are_there(way):
    files = WAYS[way]
    assert 2 <= len(files) <= MOST
    assert len(set(files)) == len(files)
    assert [name for name in files if not (SOURCE / name).is_file()] == []


def test_a_sentence_walks_its_way(cli):
    cli("respond", "My dog ran away in the park.")  # what is imported and opened once is no part of the way
    met = walked(lambda: cli("respond", "My cat ran away in the park."))
    assert not out_of_order("A sentence", met), met


def test_a_row_walks_its_way(cli, tmp_path):
    rows, found = tmp_path / "rows.csv", tmp_path / "found.csv"
    rows.write_text("id,text\n1,My dog ran away in the park.\n", encoding="utf-8")
    cli("analyze", str(rows), "--out", str(found))
    rows.write_text("id,text\n1,My cat ran away in the park.\n", encoding="utf-8")
    found.unlink()
    met = walked(lambda: cli("analyze", str(rows), "--out", str(found)))
    assert not out_of_order("A CSV row", met), met


def test_a_way_that_is_walked_otherwise_is_told():
    wrong = WAYS["A sentence"][::-1]
    assert out_of_order("A sentence", wrong) == f"A sentence: entered in the order {', '.join(wrong)}"
    assert out_of_order("A sentence", wrong[1:]) == f"A sentence: not passed: {wrong[0]}"
