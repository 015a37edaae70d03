"""Files that several processes add to: whole lines after kills, and nothing of others taken away."""

from __future__ import annotations

import json
import multiprocessing

import pytest

from empatheia import writing
from empatheia.errors import DataError
from empatheia.voices.language_endpoint import _read_journal
from empatheia.writing import append_line
from empatheia_people.judging.judge import _kept

FORKED = pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="processes are not forked")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, '{"a": 1}\n'),
        ("", '{"a": 1}\n'),
        ('{"b": 2}\n', '{"b": 2}\n{"a": 1}\n'),
        ('{"b": 2}\n{"c', '{"b": 2}\n{"a": 1}\n'),
        ('{"c": "' + 200_000 * "x", '{"a": 1}\n'),
        ('{"b": 2}', '{"b": 2}\n{"a": 1}\n'),
    ],
    ids=["no file", "empty", "whole", "cut", "a long line cut", "no line end"],
)
def test_what_a_kill_left_is_taken_away_by_the_next_line(tmp_path, before, after):
    path = tmp_path / "j.jsonl"
    if before is not None:
        path.write_text(before)
    append_line(path, '{"a": 1}')
    assert path.read_text() == after


@pytest.mark.parametrize("read", [_read_journal, lambda path: _kept(path, {}, "m", "p")], ids=["journal", "judge"])
def test_a_file_of_another_kind_is_left_as_it_is(tmp_path, read):
    """A thesis of one line was emptied: its only line has no end."""
    path = tmp_path / "thesis.txt"
    path.write_text("years of work, on one line")
    for touch in (read, lambda place: append_line(place, "{}")):
        with pytest.raises(DataError, match=r"thesis\.txt does not end in a line of JSON; name another file"):
            touch(path)
    assert path.read_text() == "years of work, on one line"


@pytest.mark.parametrize("read", [_read_journal, lambda path: _kept(path, {}, "m", "p")], ids=["journal", "judge"])
def test_reading_takes_nothing_away(tmp_path, read):
    """The line may be cut because another process is writing it at this moment."""
    path = tmp_path / "j.jsonl"
    path.write_text('{"key": "cut')
    assert read(path) == {} and path.read_text() == '{"key": "cut'


def add_lines(path, number):
    for i in range(40):
        append_line(path, json.dumps({"process": number, "line": i, "text": 20_000 * "x"}))


@FORKED
def test_processes_that_add_and_are_killed_leave_whole_lines(tmp_path):
    pytest.importorskip("fcntl")
    path = tmp_path / "j.jsonl"
    busy = [multiprocessing.get_context("fork").Process(target=add_lines, args=(path, i)) for i in range(4)]
    for process in busy:
        process.start()
    busy[0].join(0.05)
    busy[0].kill()
    for process in busy:
        process.join(60)
    assert [process.exitcode for process in busy[1:]] == [0, 0, 0]
    append_line(path, "{}")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for number in (1, 2, 3):
        assert [row["line"] for row in rows if row.get("process") == number] == list(range(40))


def test_a_file_that_others_never_let_go_of_is_told(tmp_path, monkeypatch):
    pytest.importorskip("fcntl")
    monkeypatch.setattr(writing, "_MOST_WAITED", 0.05)
    path = tmp_path / "j.jsonl"
    with path.open("ab") as stream:
        writing.hold_file(stream, path)
        with pytest.raises(DataError, match=r"other processes keep .*j\.jsonl held\. Wait for them"):
            append_line(path, "{}")


def test_a_file_that_was_replaced_since_it_was_opened_is_not_held(tmp_path):
    """Who held it before had given it its final name: writing on would have added to that one."""
    path = tmp_path / "rows.part"
    path.write_text("")
    with path.open("a") as stream:
        writing.hold_file(stream, path)
    with path.open("a") as stream:
        path.rename(tmp_path / "rows.jsonl")
        path.write_text("")
        with pytest.raises(DataError, match=r"another process is writing to .*rows\.part"):
            writing.hold_file(stream, path)
