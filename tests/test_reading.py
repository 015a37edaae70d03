"""The one door to files of others: bounded, and whatever is wrong is one error that says what is accepted."""

import csv
import gzip
import io
import json
import zipfile

import numpy as np
import pytest

from empatheia import reading
from empatheia.errors import DataError
from empatheia.reading import (
    CsvRows,
    UnreadableError,
    files_below,
    lines_of,
    members_of,
    parse_json,
    read_array,
    read_arrays,
    read_member,
    read_record,
    read_text,
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "nested too deep; accepted: at most 100"),
        ("[" * 101 + "[]" + "]" * 101, "nested too deep; accepted: at most 100"),
        ('{"a":' * 300 + "1" + "}" * 300, "nested too deep"),
        ("1" * 5000, r"too many digits \(5,000\); accepted: at most 100"),
        ("[" + "9" * 101 + "]", "too many digits"),
        ('{"a": ', "Expecting value: line 1 column 7"),
        (b'"\xff"', "byte 0xff is not UTF-8"),
        (b"\xff\xfe[\x00]\x00", "is not UTF-8"),
        ("", "Expecting value"),
    ],
)
def test_json_that_is_refused(text, message):
    with pytest.raises(UnreadableError, match=message) as caught:
        parse_json(text)
    assert isinstance(caught.value, DataError) and isinstance(caught.value, ValueError)


def test_json_that_is_read():
    assert parse_json("[" * 100 + "]" * 100)
    assert parse_json("[[]," + "[]," * 500 + "[]]") == [[]] * 502
    assert parse_json(b'\xef\xbb\xbf{"a": 340282366920938463463374607431768211456}') == {"a": 2**128}


def test_a_file_is_bounded_after_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "MAX_BYTES", 1 << 20)
    small, bomb, plain = tmp_path / "small.gz", tmp_path / "bomb.gz", tmp_path / "plain.txt"
    small.write_bytes(gzip.compress(b"a" * (1 << 20)))
    bomb.write_bytes(gzip.compress(b"a" * (1 << 24)))
    plain.write_bytes(b"a" * ((1 << 20) + 1))
    assert len(read_text(small)) == 1 << 20
    for path in (bomb, plain):
        with pytest.raises(UnreadableError, match=r"holds more than 1 MiB, unpacked.*Split"):
            read_text(path)


@pytest.mark.parametrize("cut", [3, 12, 40, -1])
def test_a_cut_gzip_file(tmp_path, cut):
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(bytes(range(256)) * 9)[:cut])
    for read in (read_text, lambda place: list(lines_of(place, "replace"))):
        with pytest.raises(UnreadableError, match="damaged or truncated gzip file"):
            read(path)


def test_lines_of_a_file(tmp_path, monkeypatch):
    path = tmp_path / "x.txt"
    path.write_bytes(b"\xef\xbb\xbfone\xff\r\ntwo")
    with pytest.raises(UnreadableError, match=r"x\.txt:1: byte 0xff is not UTF-8"):
        list(lines_of(path))
    assert list(lines_of(path, "replace")) == [(1, "one\ufffd\r\n"), (2, "two")]
    monkeypatch.setattr(reading, "MAX_LINE", 5)
    with pytest.raises(UnreadableError, match=r":1: a line of more than"):
        list(lines_of(path, "replace"))


@pytest.mark.parametrize(("text", "message"), [("[1]", "holds a JSON list"), ("{", "not JSON")])
def test_a_record_is_an_object(tmp_path, text, message):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(UnreadableError, match=rf"x\.json: {message}"):
        read_record(path)


def test_csv_rows_are_whole(monkeypatch):
    rows = CsvRows('a,b\r\n1\r\n\r\n"2\n3",4,5\r\n', "x.csv")
    assert rows.fieldnames == ["a", "b"] and list(rows) == [{"a": "1", "b": ""}, {"a": "2\n3", "b": "4"}]
    assert list(CsvRows("")) == []
    monkeypatch.setattr(reading, "MAX_FIELD", 10)
    with pytest.raises(UnreadableError, match=r"x\.csv:2: not readable as CSV: field larger"):
        list(CsvRows("a\n" + "b" * 11, "x.csv"))
    csv.field_size_limit(1 << 17)


def _header(shape) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
    return file.getvalue()


@pytest.mark.parametrize(
    "raw",
    [
        _header((1 << 40, 1 << 10)),
        _header((8,)) + b"\0" * 12,
        b"",
        b"\x93NUMPY\x01\x00\xff\xff",
        b"PK\x03\x04",
        b"\x80\x04.",
    ],
)
def test_an_array_is_no_longer_than_its_file(tmp_path, raw):
    path = tmp_path / "x.npy"
    path.write_bytes(raw)
    with pytest.raises(UnreadableError, match=r"x\.npy: not a complete array"):
        read_array(path)


def test_archives_are_bounded_after_they_are_unpacked(tmp_path, monkeypatch):
    path = tmp_path / "x.npz"
    np.savez_compressed(path, a=np.zeros((4, 2), np.float32))
    assert read_arrays(path)["a"].shape == (4, 2)
    np.savez_compressed(path, a=np.zeros(1 << 18))
    monkeypatch.setattr(reading, "MAX_BYTES", 1 << 20)
    with pytest.raises(UnreadableError, match="unpacks to"):
        read_arrays(path)
    with pytest.raises(UnreadableError, match="unpacks to"):
        read_member(path, lambda names: names[0])
    with pytest.raises(UnreadableError, match="a damaged archive"):
        read_member(path, lambda names: "none")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", _header((1 << 40,)))
    with pytest.raises(UnreadableError, match="not complete arrays"):
        read_arrays(path)


@pytest.mark.parametrize("index", ["300000000", "²", "1" * 5000])
def test_a_label_row_beyond_any_conversation(tmp_path, index):
    from empatheia_research.corpora.turn_labels import FILE, FOLDER, load_released

    path = tmp_path / FOLDER / FILE
    path.parent.mkdir()
    path.write_text(f"conv_id\tutterance_idx\tlabel\nc\t{index}\tsad\n")
    with pytest.raises(DataError, match=r":2: "):
        load_released(tmp_path)


def test_every_reader_tells_a_bomb(tmp_path, monkeypatch):
    """Those that read whole and those that read line by line."""
    from empatheia.replies.reply_files import read_replies
    from empatheia_research.corpora import conversations

    monkeypatch.setattr(reading, "MAX_BYTES", 1 << 16)
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress((json.dumps({"id": "a", "turns": ["x" * 999]}) + "\n").encode() * 999))
    for read in (lambda: conversations.read(path, "x"), lambda: read_replies(path)):
        with pytest.raises(DataError, match="holds more than"):
            read()


def test_files_below_are_in_order_and_links_are_not_followed(tmp_path):
    for name in ("b/x-seed1.json", "a/x-seed2.json", "a/other.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    (tmp_path / "a" / "round").symlink_to(tmp_path)
    assert files_below(tmp_path, "*-seed*.json") == [tmp_path / "a/x-seed2.json", tmp_path / "b/x-seed1.json"]
    assert files_below(tmp_path / "none", "*") == []


def test_files_below_a_whole_disk_are_not_looked_for(tmp_path, monkeypatch):
    """``empatheia leaderboard --runs /`` went through every file of the machine."""
    monkeypatch.setattr("empatheia.reading.MAX_ENTRIES", 3)
    for number in range(4):
        (tmp_path / f"run{number}").mkdir()
    with pytest.raises(UnreadableError, match=r"more than 3 files and folders .* name the folder"):
        files_below(tmp_path, "metrics.json")


@pytest.mark.parametrize("read", [lambda p: read_member(p, lambda names: names[0]), read_arrays, members_of])
@pytest.mark.parametrize("comment", [b"", b"told"])
def test_a_zip_archive_that_lists_too_many_files(tmp_path, monkeypatch, read, comment):
    """zipfile makes an object of every entry before it is asked for one."""
    path, array = tmp_path / "x.zip", io.BytesIO()
    np.save(array, np.zeros(1))
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(999):
            archive.writestr(f"{number:0100}", array.getvalue())
        archive.comment = comment
    assert read(path)
    monkeypatch.setattr("empatheia.reading.MAX_CONTENTS", 90_000)
    monkeypatch.setattr("empatheia.reading.MAX_ALL_CONTENTS", 90_000)
    monkeypatch.setattr("zipfile.ZipInfo.__init__", lambda *_: pytest.fail("an entry was made"))
    with pytest.raises(UnreadableError, match=r"x.zip: its list of files is longer than accepted"):
        read(path)
