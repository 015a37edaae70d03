"""``empatheia analyze``: texts, stdin, files with bad rows, results that are whole, resuming."""

import csv
import json
from pathlib import Path

import pytest

from empatheia.cli.arguments import looks_like_file
from empatheia.cli.output import say
from empatheia.errors import DataError, MissingResourceError
from empatheia.files.bulk import ROWS_PER_CHUNK, answer_each
from empatheia.files.result_file import ResultFile
from empatheia.files.result_table import as_text
from empatheia.files.rows import read_rows
from empatheia.resources.catalogue import bundled_root
from empatheia.taxonomy import EMOTIONS

TEXT = "I lost my grandmother last week and I keep her scarf on my desk."


def records(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_stdin_gives_one_object_a_line(cli, tiny_model):
    done = cli("analyze", "--json", "-", "--model", str(tiny_model), stdin=f"{TEXT}\nWhat happened then?\n")
    assert done.code == 0 and done.err == ""
    first, second = records(done.out)
    assert list(first["emotions"]) == list(EMOTIONS)
    assert sum(first["emotions"].values()) == pytest.approx(1.0, abs=1e-9)
    for cause in (*first["causes"], *first["words"]):
        assert TEXT[cause["start"] : cause["end"]] == cause["text"] and cause["turn"] == 0 and 0 <= cause["score"] <= 1
    assert (first["row"], second["row"]) == (1, 2) and first["turns"] == [{"role": "speaker", "text": TEXT}]


def test_texts_and_files_give_the_same(cli, tiny_model, tmp_path):
    texts = [TEXT, "Hi.", "We moved to a new town, and I don't know anybody."]
    model = ("--model", str(tiny_model))
    files = {
        "a.txt": "\n".join(texts),
        "a.jsonl": "\n".join([json.dumps(texts[0]), json.dumps({"text": texts[1]}), json.dumps({"turns": [texts[2]]})]),
        "a.csv": 'id,Text\n1,"' + '"\n2,"'.join(texts) + '"\n',
        "a.tsv": "text\tid\n" + "\n".join(f"{text}\t{i}" for i, text in enumerate(texts)),
        "b.csv": "\ufefftext;id\r\n" + "\r\n".join(f"{text};{i}" for i, text in enumerate(texts)),
    }
    expected = [record["emotions"] for record in records(cli("analyze", *texts, "--json", *model).out)]
    for name, content in files.items():
        (tmp_path / name).write_bytes(content.encode())
        done = cli("analyze", str(tmp_path / name), "--json", *model)
        assert done.code == 0, done.err
        assert [record["row"] for record in records(done.out)] == [1, 2, 3]
        for record, emotions in zip(records(done.out), expected, strict=True):
            assert record["emotions"] == pytest.approx(emotions, abs=1e-5)


def test_a_target_turn_is_understood_in_place_of_the_last(cli, tiny_model, tmp_path):
    turns = [TEXT, "Oh no.", "We moved to a new town, and I don't know anybody."]
    path = tmp_path / "talks.jsonl"
    path.write_text("\n".join(json.dumps({"turns": turns[:n]}) for n in (3, 1)) + "\n")
    model = ("--json", "--model", str(tiny_model))
    (alone,) = records(cli("analyze", TEXT, *model).out)
    done = cli("analyze", str(path), "--target", "1", *model)
    first, second = records(done.out)
    assert first["turns"] == second["turns"] == [{"role": "speaker", "text": TEXT}]
    assert first["emotions"] == pytest.approx(alone["emotions"], abs=1e-6)
    later = records(cli("analyze", str(path), "--target", "3", *model).out)
    assert later[0]["turns"][-1]["text"] == turns[2]
    assert later[1]["error"] == "target is 3; accepted: a speaker turn, one of 1."
    refused = cli("analyze", str(path), "--target", "2", *model)
    assert refused.code == 1 and "target is 2; accepted: a speaker turn, one of 1, 3." in refused.out
    typed = cli("analyze", TEXT, "--target", "2", *model)
    assert typed.code == 1 and "target is 2; accepted: a speaker turn, one of 1." in typed.err


def test_bad_rows_are_told_and_the_others_processed(cli, tiny_model, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(
        b'{"text": "I am proud of my daughter.", "id": "a"}\n'
        b"{not json}\n"
        b'{"text": ""}\n'
        b'{"text": 5}\n'
        b"[1, 2]\n"
        b'{"words": "x"}\n'
        b"\n"
        b'"caf\xe9 caf\xc3\xa9"\n'
        b'{"turns": ["Hi.", "Hello."]}\n'
        b'{"turns": [{"role": "narrator", "text": "Hi."}]}\n'
        b'{"turns": [{"role": "speaker", "text": "I hope so."}]}\n'
    )
    done = cli("analyze", str(path), "--json", "--model", str(tiny_model))
    assert done.code == 0
    rows = {record["row"]: record for record in records(done.out)}
    assert list(rows) == [1, 2, 3, 4, 5, 6, 8, 9, 10, 11]
    assert rows[1]["id"] == "a" and "emotions" in rows[1] and "emotions" in rows[11]
    for number, reason in {
        2: "not valid JSON", 3: "is empty", 4: "holds a JSON int", 5: "found a JSON list",
        6: "no text column", 8: "not UTF-8", 9: "listener turn", 10: "unknown role",
    }.items():  # fmt: skip
        assert reason in rows[number]["error"] and "emotions" not in rows[number]
        assert f"row {number}: {rows[number]['error']}\n" in done.err
    assert "10 rows, 8 bad (2, 3, 4, 5, 6, 8, 9, 10)" in done.err
    shown = cli("analyze", str(path), "--model", str(tiny_model))
    assert len(shown.out.splitlines()) == 2 and "row 2" not in shown.out


def test_bad_rows_of_a_table(cli, tiny_model, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b'id,text\n1,"We moved,\nto a town"\n2\n\n3,caf\xe9 caf\xc3\xa9\n4,  \n5,She passed\n')
    done = cli("analyze", str(path), "--json", "--model", str(tiny_model))
    rows = {record["row"]: record for record in records(done.out)}
    assert rows[1]["turns"][0]["text"] == "We moved,\nto a town" and rows[5]["id"] == "5"
    assert (
        "1 of 2 columns" in rows[2]["error"] and "not UTF-8" in rows[3]["error"] and "white space" in rows[4]["error"]
    )
    assert done.code == 0 and "5 rows, 3 bad (2, 3, 4)" in done.err


def test_no_usable_row_is_a_failure(cli, tiny_model):
    done = cli("analyze", "-", "--json", "--model", str(tiny_model), stdin="\n  \n")
    assert done.code == 1 and done.err.splitlines()[-1].startswith("error: no row could be used")
    assert [record["row"] for record in records(done.out)] == [1, 2]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.csv",
            b"id,words\n1,x\n",
            r"no text column. Found: 'id', 'words'. Name the one to read with --column",
        ),
        ("a.csv", b"", "is empty; its first line must name the columns"),
        ("a.csv", "text\nhi\n".encode("utf-16"), "UTF-16; save it as UTF-8"),
        ("a.csv", b"PK\x03\x04zip", "spreadsheet"),
        ("a.jsonl", b"\x1f\x8bgzip", "gzip"),
    ],
)
def test_files_that_cannot_be_read_at_all(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        list(read_rows(tmp_path / name))


def test_the_column_can_be_named(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,Body\nno,yes\n")
    assert [row.item for row in read_rows(path, "Body")] == ["yes"]
    with pytest.raises(DataError, match=r"no column 'body'. Did you mean 'Body'\? Found: 'text', 'Body'"):
        list(read_rows(path, "body"))
    lines = tmp_path / "a.jsonl"
    lines.write_text('{"post": "yes", "turns": "no"}\n')
    assert [row.item for row in read_rows(lines, "post")] == ["yes"]


def test_an_open_quotation_mark_does_not_swallow_the_file_silently(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('text\nfirst\n"never closed\n' + "line\n" * 500)
    rows = list(read_rows(path))
    assert [row.item for row in rows] == ["first", '"never closed', *["line"] * 500]


def test_a_chat_that_is_read_line_by_line_is_told(cli, tiny_model, tmp_path):
    chat, texts = tmp_path / "chat.txt", tmp_path / "texts.txt"
    chat.write_text("Anna: I failed my exam.\nBen: Oh no.\nAnna: And my dog ran away.\n")
    texts.write_text("I failed my exam.\nMy dog ran away.\n")
    told = "this looks like a chat, and each line is read by itself; as conversations: --with emotion,words"
    model = ("--model", str(tiny_model))
    assert told in cli("analyze", str(chat), *model).err and told not in cli("analyze", str(texts), *model).err
    assert told not in cli("analyze", str(chat), *model, "--with", "emotion").err
    table = tmp_path / "turns.csv"
    table.write_text("conversation_id,speaker,text\n1,Anna,I failed my exam.\n1,Ben,Oh no.\n")
    assert told in cli("analyze", str(table), *model).err


def test_little_is_lost_when_it_is_killed():
    assert ROWS_PER_CHUNK <= 256  # of a few seconds, where each text is read by itself


def test_what_looks_like_a_file():
    assert looks_like_file("posts.csv") and looks_like_file("a b/c.JSONL")
    assert not looks_like_file("I read posts.csv\nyesterday.csv") and not looks_like_file("I am sad.")


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_out_holds_every_row(cli, tiny_model, tmp_path, suffix):
    out = tmp_path / f"result.{suffix}"
    done = cli("analyze", "-", "--out", str(out), "--model", str(tiny_model), stdin=f"{TEXT}\n\nHi, you.\n")
    assert done.code == 0 and done.out == "" and f"3 rows, 1 bad (2); written to {out}" in done.err
    assert list(tmp_path.iterdir()) == [out]
    if suffix == "jsonl":
        rows = records(out.read_text())
        assert [row["row"] for row in rows] == [1, 2, 3] and "error" in rows[1]
    else:
        with out.open(newline="") as stream:
            rows = list(csv.DictReader(stream))
        assert [row["text"] for row in rows] == [TEXT, "", "Hi, you."]
        assert rows[0]["emotion"] in EMOTIONS and 0 < float(rows[0]["probability"]) <= 1 and rows[1]["error"]


class Stopped(BaseException):
    """Stands for a kill: nothing of ours catches it."""


@pytest.mark.parametrize("cut", [0, 30])
def test_resuming_gives_what_one_run_gives(cli, tiny_model, tmp_path, monkeypatch, cut):
    import empatheia.cli.analyze as command
    from empatheia_research.voices.responder_listener import ResponderListener

    source, out, partial = tmp_path / "a.txt", tmp_path / "result.jsonl", tmp_path / "result.jsonl.partial"
    source.write_text("\n".join(f"She passed exam {i}." if i % 7 else "" for i in range(1, 41)))
    arguments = ("analyze", str(source), "--model", str(tiny_model), "--out", str(out))
    monkeypatch.setattr(command, "ROWS_PER_CHUNK", 8)
    assert cli(*arguments).code == 0
    whole = out.read_text()
    out.unlink()
    analyze, calls = ResponderListener.analyze, []

    def stop_at_third(self, items, **options):
        calls.append(len(items))
        if len(calls) == 3:
            raise Stopped
        return analyze(self, items, **options)

    monkeypatch.setattr(ResponderListener, "analyze", stop_at_third)
    with pytest.raises(Stopped):
        command.analyze(texts=[str(source)], model=str(tiny_model), out=out, resume=True)
    assert not out.exists() and len(partial.read_text().splitlines()) == 16
    if cut:  # a kill in the middle of a write
        partial.write_bytes(partial.read_bytes()[:-cut])
    calls.clear()
    monkeypatch.setattr(ResponderListener, "analyze", analyze)
    done = cli(*arguments, "--resume")
    assert done.code == 0 and f"continuing after row {15 if cut else 16}" in done.err
    assert done.err.splitlines()[-1].startswith("40 rows, ") and not partial.exists()
    resumed = records(out.read_text())
    for row, expected in zip(resumed, records(whole), strict=True):
        assert row["row"] == expected["row"] and row.get("error") == expected.get("error")
        if "emotions" in row:
            assert row["emotions"] == pytest.approx(expected["emotions"], abs=1e-5)


def test_without_resume_a_stopped_run_leaves_nothing(tiny_model, tmp_path, monkeypatch):
    import empatheia.cli.analyze as command
    from empatheia_research.voices.responder_listener import ResponderListener

    def stop(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(ResponderListener, "analyze", stop)
    source = tmp_path / "a.txt"
    source.write_text("Hi.\n")
    with pytest.raises(KeyboardInterrupt):
        command.analyze(texts=[str(source)], model=str(tiny_model), out=tmp_path / "r.jsonl")
    assert list(tmp_path.iterdir()) == [source]


def test_resuming_another_input_or_model_is_refused(cli, tiny_model, tmp_path):
    out = tmp_path / "r.jsonl"
    partial = tmp_path / "r.jsonl.partial"
    arguments = ("analyze", "-", "--model", str(tiny_model), "--out", str(out), "--resume")
    row = {"row": 1, "turns": [{"role": "speaker", "text": "Other."}], "model": "tiny"}
    partial.write_text(json.dumps(row) + "\n")
    done = cli(*arguments, stdin="Hi.\nYes.\n")
    assert done.code == 1 and "1 rows of another input" in done.err and partial.exists() and not out.exists()
    partial.write_text(json.dumps(row | {"model": "huge"}) + "\n")
    assert "was made with the model 'huge', not 'tiny'" in cli(*arguments, stdin="Other.\nYes.\n").err


@pytest.mark.parametrize("name", ["r.jsonl", "r.csv"])
def test_a_result_that_cannot_take_its_name_leaves_the_old_one_and_the_rows(tmp_path, monkeypatch, capsys, name):
    out, partial = tmp_path / name, tmp_path / f"{name}.partial"
    out.write_text("old")
    told = f"finished rows are kept in {partial}; repeat the command with --resume to continue\n"
    with pytest.raises(ZeroDivisionError), ResultFile(out, say=say) as file:
        file.write({"row": 1})
        raise ZeroDivisionError
    assert out.read_text() == "old" and records(partial.read_text()) == [{"row": 1}]
    assert capsys.readouterr().err == told

    def fail(self, target):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"), ResultFile(out, say=say) as file:
        patch.setattr(Path, "replace", fail)
        file.write({"row": 1})
        file.write({"row": 2})
    assert out.read_text() == "old" and len(records(partial.read_text())) == 2 and capsys.readouterr().err == told
    with ResultFile(out, resume=True) as file:
        assert file.n_done == 2
    assert out.read_text() != "old" and list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("name", ["r.jsonl", "r.csv"])
def test_a_file_is_held_until_its_result_has_the_name(tmp_path, monkeypatch, name):
    """A second process that starts while the table is written emptied the rows of the first."""
    pytest.importorskip("fcntl")
    out = tmp_path / name
    replace, refused = Path.replace, []

    def second(self, target):
        if not refused:
            refused.append(target)
            with pytest.raises(DataError, match="another process is writing"), ResultFile(out):
                pytest.fail("two processes write to one file")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", second)
    with ResultFile(out) as file:
        for number in range(1, 4):
            file.write({"row": number})
    assert (
        refused and out.read_text().count("\n") == (4 if name == "r.csv" else 3) and list(tmp_path.iterdir()) == [out]
    )


def test_a_file_renamed_between_opening_and_holding_is_not_emptied(tmp_path, monkeypatch):
    """The first ends when the second has opened its rows and not held them yet: they are now the result."""
    pytest.importorskip("fcntl")
    from empatheia.files import result_file as results

    out = tmp_path / "r.jsonl"
    first = ResultFile(out).__enter__()
    first.write({"row": 1})

    def late(stream, path):
        if not out.exists():
            first.__exit__(None, None, None)
        return hold_file(stream, path)

    hold_file = results.hold_file
    monkeypatch.setattr(results, "hold_file", late)
    with pytest.raises(DataError, match=r"another process is writing to .*r\.jsonl\.partial"), ResultFile(out):
        pytest.fail("it writes into the result of another")
    assert records(out.read_text()) == [{"row": 1}]


FORMULAS = ["=1+1", "+1 for that!", "- I said no", "@me", " =A1", "\t=A1", "＝1"]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_spreadsheet_computes_no_cell(text):
    assert as_text(text) == f"'{text}"


@pytest.mark.parametrize("cell", ["fine", "", "1 + 1 = 2", "-0.5", "+3", "-1e-05", -1, None, "a@b.c"])
def test_other_cells_stay_as_they_are(cell):
    assert as_text(cell) == cell


@pytest.mark.parametrize("with_", [(), ("--with", "emotion")])
def test_tables_are_safe_from_formulas_unless_they_are_wanted(cli, tiny_model, tmp_path, with_):
    out, source = tmp_path / "r.csv", tmp_path / "a.jsonl"
    source.write_text('{"id": "@SUM(A1)", "text": "=HYPERLINK(1) I lost my dog."}\n')
    for option, start in ((), "'"), (("--formulas",), ""):
        arguments = ("analyze", str(source), *with_, "--model", str(tiny_model), "--out", str(out), *option)
        done = cli(*arguments)
        assert done.code == 0, done.err
        with out.open(newline="", encoding="utf-8") as stream:
            (row,) = csv.DictReader(stream)
        assert (row["id"], row["text"]) == (f"{start}@SUM(A1)", f"{start}=HYPERLINK(1) I lost my dog.")


# -- one bad row ---------------------------------------------------------------------------------------------

MIXED = '{"turns": [{"role": "speaker", "text": "I won!"}, {"role": "user", "text": "Yes."}]}'
BAD_ROWS = {
    "mixed roles": (MIXED, "roles of two kinds, 'speaker', 'user'; accepted: speaker and listener, or user and"),
    "a number of 5,000 digits": (f'{{"text": "Hi.", "n": {"9" * 5000}}}', "not valid JSON: a number of too many"),
    "an id of 5,000 digits": (f'{{"text": "Hi.", "id": {"9" * 5000}}}', "not valid JSON: a number of too many"),
    "deep nesting": (
        '{"text": "Hi.", "id": ' + "[" * 600 + "]" * 600 + "}",
        "nested too deep; accepted: at most 100",
    ),
    "deeper nesting": ('{"text": "Hi.", "id": ' + "[" * 99_990 + "]" * 99_990 + "}", "not valid JSON"),
    "role that is a list": ('{"turns": [{"role": [], "text": "I won!"}]}', "unknown role '[]'"),
}


@pytest.mark.parametrize("name", BAD_ROWS)
@pytest.mark.parametrize("with_", [(), ("--with", "emotion")])
def test_one_bad_row_is_told_and_the_others_go_on(cli, tiny_model, tmp_path, with_, name):
    bad, message = BAD_ROWS[name]
    source, out = tmp_path / "a.jsonl", tmp_path / "r.jsonl"
    source.write_text(f'{{"text": "I lost my dog."}}\n{bad}\n{{"text": "I won!"}}\n')
    done = cli("analyze", str(source), *with_, "--model", str(tiny_model), "--out", str(out))
    assert done.code == 0 and "3 rows, 1 bad (2)" in done.err, done.err
    rows = records(out.read_text())
    assert [row["row"] for row in rows] == [1, 2, 3] and ["error" in row for row in rows] == [False, True, False]
    if with_ or "role" not in name:
        assert message in rows[1]["error"]


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n"])
@pytest.mark.parametrize("with_", [(), ("--with", "emotion")])
def test_a_table_may_have_any_line_ends(cli, tiny_model, tmp_path, with_, end):
    source, out = tmp_path / "a.csv", tmp_path / "r.jsonl"
    source.write_bytes(end.join(["id,text", "1,I lost my dog.", f'2,"I won{end}and won!"', "3,Hi."]).encode())
    done = cli("analyze", str(source), *with_, "--model", str(tiny_model), "--out", str(out))
    assert done.code == 0 and "3 rows, 0 bad" in done.err, done.err
    texts = [row["turns"][0]["text"] for row in records(out.read_text())]
    assert texts == ["I lost my dog.", f"I won{end}and won!", "Hi."]


def test_a_first_line_that_is_no_header_is_told(cli, tmp_path, monkeypatch):
    monkeypatch.setattr("empatheia.reading.MAX_FIELD", 8)
    source = tmp_path / "a.csv"
    source.write_text("text,something longer than that\nHi.,x\n")
    done = cli("analyze", str(source))
    assert (
        done.code == 1 and "its first line must name the columns, and is not readable as CSV: field larger" in done.err
    )


@pytest.mark.parametrize("with_", [(), ("--with", "emotion")])
def test_a_row_that_no_model_can_answer_is_told_and_the_others_go_on(cli, tiny_model, tmp_path, monkeypatch, with_):
    from empatheia.listener import Analyzer
    from empatheia_research.voices.responder_listener import ResponderListener

    for owner in (ResponderListener, Analyzer):
        analyze = owner.analyze

        def picky(self, items, *, analyze=analyze, **options):
            if not isinstance(items, str) and any("exam 7" in str(item) for item in items):
                raise IndexError("index out of range in self")
            return analyze(self, items, **options)

        monkeypatch.setattr(owner, "analyze", picky)
    source, out = tmp_path / "a.txt", tmp_path / "r.jsonl"
    source.write_text("\n".join(f"She passed exam {i}." for i in range(1, 10)))
    done = cli("analyze", str(source), *with_, "--model", str(tiny_model), "--out", str(out))
    assert done.code == 0 and "9 rows, 1 bad (7)" in done.err, done.err
    bad = records(out.read_text())[6]
    assert bad == {"row": 7, "error": "cannot be analysed (IndexError: index out of range in self)."}


def test_answers_of_halves_are_those_of_all():
    moved = []

    def ask(items, advance):
        advance(len(items))
        if any(item % 5 == 0 for item in items):
            raise DataError(f"{len(items)} items, one odd")
        return [item * 10 for item in items]

    expected = [item * 10 if item % 5 else "1 items, one odd" for item in range(1, 13)]
    assert answer_each(ask, list(range(1, 13)), moved.append) == expected and sum(moved) == 12
    assert answer_each(ask, [], moved.append) == []
    with pytest.raises(DataError, match="2 items, one odd"):
        answer_each(ask, [5, 10], moved.append)


@pytest.mark.parametrize(
    "problem", [MissingResourceError("no model"), OSError(28, "No space left"), KeyboardInterrupt()]
)
def test_what_is_no_fault_of_a_row_is_raised(problem):
    calls = []

    def ask(items, advance):
        calls.append(len(items))
        raise problem

    with pytest.raises(type(problem)):
        answer_each(ask, [1, 2, 3], lambda n: None)
    assert calls == [3]


@pytest.mark.skipif(not (bundled_root() / "gao2021-small").is_dir(), reason="no bundled model in this checkout")
def test_the_bundled_model_marks_words_of_the_text(cli):
    done = cli("analyze", "--json", "-", stdin=f"{TEXT}\n")
    assert done.code == 0, done.err
    (record,) = records(done.out)
    assert len(record["emotions"]) == 32 and sum(record["emotions"].values()) == pytest.approx(1.0, abs=1e-6)
    assert record["causes"] and record["uncertain"] == []
    for cause in record["causes"]:
        assert TEXT[cause["start"] : cause["end"]] == cause["text"]
    assert "because" in cli("demo").out
