"""From CSV to CSV nothing of the caller's is lost; chat messages in JSON lines; a page without naming parts."""

from __future__ import annotations

import csv
import json
import re

import pytest

from empatheia.errors import DataError
from empatheia.files.result_table import CSV_COLUMNS, beside_given, flat
from empatheia.files.rows import read_rows
from empatheia.taxonomy import EMOTIONS

GIVEN = 'id,day,text,emotion,note,note\n7,Monday,I lost my dog.,sad,"a, b",x\n8,Tuesday,,glad,c,y\n9,Sunday,I won!,,,\n'


def table(path) -> tuple[list[str], list[dict[str, str]]]:
    with path.open(newline="", encoding="utf-8") as stream:
        reader = csv.DictReader(stream)
        return list(reader.fieldnames or ()), list(reader)


@pytest.fixture
def analyze(cli, tiny_model, tmp_path):
    def run(name: str, text: str, *options: str):
        (tmp_path / name).write_text(text)
        return cli("analyze", str(tmp_path / name), "--model", str(tiny_model), *options)

    return run


def test_every_column_is_kept(analyze, tmp_path):
    out = tmp_path / "out.csv"
    done = analyze("in.csv", GIVEN, "--out", str(out))
    assert done.code == 0, done.err
    header, rows = table(out)
    assert header[:6] == ["id", "day", "text", "emotion", "note", "note (2)"]
    assert header[6:] == ["row", "empatheia_emotion", "probability", "side", "causes", "uncertain", "error"]
    assert [list(row.values())[:6] for row in rows] == [
        ["7", "Monday", "I lost my dog.", "sad", "a, b", "x"],
        ["8", "Tuesday", "", "glad", "c", "y"],
        ["9", "Sunday", "I won!", "", "", ""],
    ]
    assert rows[0]["empatheia_emotion"] in EMOTIONS and rows[1]["error"] and rows[2]["row"] == "3"


def test_the_text_stands_once_whatever_its_column_is_called(analyze, tmp_path):
    out = tmp_path / "out.csv"
    assert analyze("in.csv", "body,stars\nI won!,5\n", "--out", str(out)).code == 0
    header, (row,) = table(out)
    assert header == ["body", "stars", "row", "emotion", "probability", "side", "causes", "uncertain", "error"]
    assert (row["body"], row["stars"]) == ("I won!", "5") and row["side"] in ("pleasant", "unpleasant")


def test_what_a_spreadsheet_would_compute_is_text_in_cells_and_column_names(analyze, tmp_path):
    out, given = tmp_path / "out.csv", 'text,"=cmd|x",+a,note\nI won!,=1,@b,"\tx"\n'
    assert analyze("in.csv", given, "--out", str(out)).code == 0
    header, (row,) = table(out)
    assert header[:4] == ["text", "'=cmd|x", "'+a", "note"]
    assert [row[name] for name in header[1:4]] == ["'=1", "'@b", "'\tx"]
    assert analyze("in.csv", given, "--out", str(out), "--formulas").code == 0
    assert table(out)[0][:4] == ["text", "=cmd|x", "+a", "note"]


def test_turns_keep_their_columns(analyze, tmp_path):
    out = tmp_path / "out.csv"
    given = "conv_id,speaker,text,stars\na,Ann,I won!,1\na,Ben,Oh!,2\nb,Ann,Hm.,3\na,Ann,Yes.,4\nc,Ann,I lost.,5\n"
    done = analyze("in.csv", given, "--with", "emotion", "--out", str(out))
    assert done.code == 0, done.err
    header, rows = table(out)
    assert header[:5] == ["conv_id", "speaker", "text", "stars", "row"]
    assert [(row["stars"], row["turn"], bool(row["error"])) for row in rows] == [
        ("1", "1", False),
        ("2", "2", False),
        ("3", "1", False),
        ("4", "", True),
        ("5", "1", False),
    ]


def test_a_stopped_run_keeps_the_columns_too(analyze, tmp_path, monkeypatch):
    import empatheia.cli.analyze as command

    monkeypatch.setattr(command, "ROWS_PER_CHUNK", 1)
    out = tmp_path / "out.csv"
    assert analyze("in.csv", GIVEN, "--out", str(out)).code == 0
    whole = out.read_text()

    class Stopped(BaseException):
        pass

    def stop(*_, **__):
        raise Stopped

    with monkeypatch.context() as patched:
        patched.setattr("empatheia.files.result_file.ResultFile._finish", stop)
        with pytest.raises(Stopped):
            analyze("in.csv", GIVEN, "--out", str(out), "--resume")
    out.unlink()
    assert (tmp_path / "out.csv.partial").is_file()
    assert analyze("in.csv", GIVEN, "--out", str(out), "--resume").code == 0
    assert out.read_text() == whole


def test_other_results_are_as_before(analyze, tmp_path):
    out = tmp_path / "out.jsonl"
    assert analyze("in.csv", GIVEN, "--out", str(out)).code == 0
    assert "cells" not in out.read_text()
    assert analyze("in.jsonl", '{"text": "I won!", "more": 1}\n', "--out", str(tmp_path / "out.csv")).code == 0
    assert table(tmp_path / "out.csv")[0] == [name for name in CSV_COLUMNS if name != "id"]
    more = '{"text": "I won!"}\n{"text": "I lost.", "id": "b"}\n'
    assert analyze("in.jsonl", more, "--out", str(tmp_path / "out.csv")).code == 0
    assert [row["id"] for row in table(tmp_path / "out.csv")[1]] == ["", "b"]
    columns, _ = beside_given(["error"], CSV_COLUMNS, lambda record: [flat(record)])
    assert columns[0] == "error" and columns[-1] == "empatheia_error"


def test_chat_messages_are_read_without_with(analyze, cli, tiny_model):
    talk = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "I lost my dog."}]
    lines = json.dumps({"messages": talk}) + "\n"
    found = json.loads(analyze("in.jsonl", lines, "--json").out)
    assert found["turns"] == [{"role": "speaker", "text": "I lost my dog."}]
    done = cli("analyze", "-", "--json", "--model", str(tiny_model), stdin=lines)
    assert json.loads(done.out)["turns"] == found["turns"]


def test_a_page_needs_no_parts(analyze, tmp_path):
    page = tmp_path / "page.html"
    done = analyze("in.txt", "I lost my dog.\n", "--html", str(page))
    assert done.code == 0, done.err
    assert "I lost my dog." in re.sub("<sup>.*?</sup>|<[^>]+>", "", page.read_text(encoding="utf-8"))


def test_a_table_of_too_many_columns_is_told_and_not_worked_through(tmp_path):
    table = tmp_path / "wide.csv"
    table.write_text("text" + "," * 200_000 + "\nI lost my job.\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"names 200,001 columns; at most 5,000"):
        list(read_rows(table))


def test_many_columns_of_one_name_are_numbered_each(tmp_path):
    table = tmp_path / "same.csv"
    table.write_text("text" + ",a" * 4_000 + "\nx" + ",1" * 4_000 + "\n", encoding="utf-8")
    (row,) = read_rows(table)
    assert list(row.cells[0])[:4] == ["text", "a", "a (2)", "a (3)"] and len(row.cells[0]) == 4_001
