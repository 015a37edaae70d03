"""The one way through many rows: chunks, faults in their places, records, and a result that goes on."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from empatheia.errors import DataError
from empatheia.files.bulk import Tally, Work, answer_each, record_of, run
from empatheia.files.result_file import ResultFile, keep_whole
from empatheia.files.rows import Row
from empatheia.reading import parse_json
from empatheia.records.dialogue import Dialogue


class Length:
    """How long the newest turn is: a result that needs no model."""

    def __init__(self, dialogue: Dialogue) -> None:
        self.dialogue = dialogue

    def to_dict(self) -> dict[str, Any]:
        turns = [{"role": turn.role, "text": turn.text} for turn in self.dialogue.turns]
        return {"id": self.dialogue.id, "turns": turns, "length": len(turns[-1]["text"])}


def read(item: str | Dialogue) -> Dialogue:
    if item == "bad":
        raise DataError("is bad.")
    return Dialogue.of(item) if isinstance(item, str) else item


def lengths(items, moved):
    moved(len(items))
    return [Length(item) for item in items]


def rows(*items: str | Dialogue | None) -> list[Row]:
    return [Row(number, item) for number, item in enumerate(items, 1)]


@contextmanager
def no_bar(done: int):
    yield lambda n: None


def test_a_chunk_ends_by_its_rows_or_by_its_turns():
    talk = Dialogue.of("One.", "Two.", "Three.")
    by_rows = Work(read, lengths, n_rows=2).chunks(rows("a", "b", talk, "c", "d"))
    assert [len(chunk) for chunk in by_rows] == [2, 2, 1]
    by_turns = Work(read, lengths, n_rows=9, n_turns=3).chunks(rows(talk, "a", "b", "c", "d", talk))
    assert [len(chunk) for chunk in by_turns] == [1, 3, 2]


def test_faults_stand_in_their_places():
    chunk = [*rows("abc", "bad", None), Row(7, None, "was cut."), Row(8, "de")]
    moved: list[int] = []
    answers = Work(read, lengths).answers(chunk, moved.append)
    found = [result if isinstance(result, str) else result.to_dict()["length"] for _, result in answers]
    assert found == [3, "is bad.", "is empty.", "was cut.", 2] and sum(moved) == 5


def test_a_record_has_the_id_of_the_row_then_that_of_the_conversation():
    of_talk, none = Length(Dialogue.of("Hi.", id="talk")), Length(Dialogue.of("Hi."))
    assert list(record_of(Row(3, "Hi.", id="mine"), of_talk).items())[:2] == [("row", 3), ("id", "mine")]
    assert record_of(Row(3, "Hi."), of_talk)["id"] == "talk" and "id" not in record_of(Row(3, "Hi."), none)
    row = Row(3, None, "is bad.", cells=({"a": "1"},))
    assert record_of(row, "is bad.", has_cells=True) == {"row": 3, "error": "is bad.", "cells": [{"a": "1"}]}


def test_a_stopped_run_goes_on_after_its_last_whole_row(tmp_path: Path):
    out, partial, said = tmp_path / "r.jsonl", tmp_path / "r.jsonl.partial", []
    asked: list[int] = []

    def ask(items, moved):
        asked.append(len(items))
        if len(asked) == 2:
            raise KeyboardInterrupt
        return lengths(items, moved)

    source = rows("a", "bad", "ccc", "dddd", "eeeee")

    def go(again=lambda record: None) -> Tally:
        file = ResultFile(out, resume=True, say=said.append)
        return run(Work(read, ask, n_rows=2), iter(source), [], bar=no_bar, say=said.append, file=file, again=again)

    with pytest.raises(KeyboardInterrupt):
        go()
    with partial.open("ab") as stream:
        stream.write(b'{"row": 3, "tur')  # as if a kill had cut a line
    taken: list[int] = []
    tally = go(lambda record: taken.append(record["row"]))
    assert taken == [1, 2] and f"continuing after row 2 of {partial}" in said and (tally.n_good, tally.n_bad) == (4, 1)
    written = [parse_json(line) for line in out.read_text().splitlines()]
    assert [row["row"] for row in written] == [1, 2, 3, 4, 5] and not partial.exists()
    assert [row.get("length", row.get("error")) for row in written] == [1, "is bad.", 3, 4, 5]


def test_what_is_behind_the_last_whole_record_is_cut_off(tmp_path: Path):
    place = tmp_path / "rows.jsonl"
    place.write_bytes(b'{"row": 1}\n{"row": 2, "x": 1}\nnonsense\n{"row": 4}\n')
    assert [record["row"] for record in keep_whole(place)] == [1, 2]
    assert place.read_bytes() == b'{"row": 1}\n{"row": 2, "x": 1}\n'


def test_one_that_fails_alone_leaves_the_others_in_their_order():
    moved: list[int] = []

    def ask(items, advance):
        if 3 in items:
            raise DataError("3 is odd.") if len(items) == 1 else ValueError("too odd")
        advance(len(items))
        return [10 * item for item in items]

    assert answer_each(ask, [1, 2, 3, 4, 5], moved.append) == [10, 20, "3 is odd.", 40, 50]
    assert sum(moved) == 5
