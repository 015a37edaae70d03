"""``empatheia analyze --with``: files of conversations, bad rows, results, the page, and a kill in the middle."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

import fresh
from empatheia.cli.findings import TABLE_COLUMNS
from empatheia.errors import DataError
from empatheia.files.rows import item_of

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "dialogue.jsonl"
ALL = "emotion,intent,causes,words,mechanisms,inferences,reaction"
TEXT = "I lost my grandmother last week and I keep her scarf on my desk."


def records(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_example_dialogue_to_a_page(ask, tmp_path):
    """The first Accept line, as far as models are here: it works offline, and the page says what is missing."""
    page = tmp_path / "report.html"
    done = ask(str(EXAMPLE), "--with", "emotion,intent,causes,words,mechanisms,inferences", "--html", str(page))
    assert done.code == 0 and done.out == "" and f"3 rows, 0 bad; page in {page}" in done.err
    assert "without mechanisms: no model" in done.err and "empatheia models train mechanisms" in done.err
    html = page.read_text(encoding="utf-8")
    for words in ("night-shift", "driving-test", "the intent", "tiny", "missing", "<svg", "<mark"):
        assert words in html


def test_json_has_only_what_was_asked(ask):
    done = ask(TEXT, "I am proud.", "--with", "words,intent", "--json")
    first, second = records(done.out)
    assert done.code == 0 and (first["row"], second["row"]) == (1, 2) and "id" not in first
    assert first["models"] == {"intent": "the intent", "words": "tiny"} and "emotion" not in first
    for word in first["words"][0]["words"]:
        assert TEXT[word["start"] : word["end"]] == word["text"]


def test_shown_in_words(ask):
    done = ask(str(EXAMPLE), "--with", "emotion,intent,causes,words")
    assert done.code == 0
    for words in ("feels     ", "intent    ", "because   turn 1", "words     ", "I [came] home"):
        assert words in done.out, words


def test_one_turn_of_each_conversation(ask, tmp_path):
    whole = ask(str(EXAMPLE), "--with", "emotion,intent", "--json")
    one = ask(str(EXAMPLE), "--with", "emotion,intent", "--target", "2", "--json")
    for before, after in zip(records(whole.out), records(one.out), strict=True):
        assert after["turns"] == before["turns"][:2]  # counted from 1 in what is typed, from 0 in records
        assert after["intent"] == [record for record in before["intent"] if record["turn"] == 1]
        assert after["emotion"] == []  # a listener's turn
    out = tmp_path / "one.jsonl"
    assert ask("-", "--with", "intent", "--target", "1", "--out", str(out), stdin=EXAMPLE.read_text()).code == 0


def test_without_with_the_new_options_are_refused(ask, tmp_path):
    for option in (("--speaker", "A"), ("--model-for", "intent=x")):
        done = ask(TEXT, *option)
        assert done.code == 2 and f"{option[0]} needs --with PARTS" in done.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--with", "emotions"), 2, "unknown part 'emotions'. Did you mean 'emotion'?"),
        (("--with", "emotion", "--model-for", "intent"), 2, "not of the form NAME=FOLDER"),
        (("--with", "emotion", "--model-for", "spans=x"), 2, "no part 'spans'. Did you mean 'cause_spans'?"),
        (("--with", "emotion", "--model-for", "words=x", "--model-for", "words=y"), 2, "names 'words' twice"),
        (("--with", "mechanisms"), 3, "mechanisms: no model for 'mechanisms' is installed or bundled"),
        (("--with", "emotion", "--html", "no/such/folder.html"), 1, "does not exist; create it first"),
    ],
)
def test_wrong_options(ask, arguments, code, message):
    done = ask(TEXT, *arguments)
    assert done.code == code and message in done.err and done.out == ""


def test_bad_conversations_are_told_and_the_others_processed(ask, tmp_path):
    path = tmp_path / "rows.jsonl"
    rows = [
        {"id": "a", "turns": ["I won!", "Great."]},
        {"turns": [{"role": "narrator", "text": "Once."}]},
        {"turns": ["I won!", " "]},
        {"turns": [{"role": "listener", "text": "How are you?"}]},
        {"messages": [{"role": "system", "content": "x"}, {"role": "user", "content": "I won!"}]},
        {"turns": [{"role": "speaker"}]},
    ]
    path.write_text("\n".join(map(json.dumps, rows)) + "\nnot json\n")
    done = ask(str(path), "--with", "emotion,intent", "--json")
    found = {record["row"]: record for record in records(done.out)}
    assert done.code == 0 and list(found) == [1, 2, 3, 4, 5, 6, 7]
    assert "unknown role 'narrator'" in found[2]["error"] and "--speaker NAME" in found[2]["error"]
    assert "turn 2 of 2" in found[3]["error"] and "turn 0" in found[6]["error"] and "JSON" in found[7]["error"]
    assert "no speaker turn" in found[4]["missing"]["emotion"] and len(found[4]["intent"]) == 1
    assert found[5]["turns"] == [{"role": "speaker", "text": "I won!"}] and found[1]["id"] == "a"
    assert "7 rows, 4 bad (2, 3, 6, 7)" in done.err
    named = ask(str(path), "--with", "emotion", "--json", "--speaker", "narrator")
    assert records(named.out)[1]["turns"] == [{"role": "speaker", "text": "Once."}]


def test_transcripts_of_a_file_and_of_stdin(ask, tmp_path):
    talk = "[12:30] Ann: I lost my job.\n[12:31] Ben: Oh no!\nReally?\n---\nBen: I won!\nAnn: Great.\n"
    path = tmp_path / "chat.txt"
    path.write_text(talk)
    done = ask(str(path), "--with", "intent", "--json")
    first, second = records(done.out)
    assert [turn["role"] for turn in first["turns"]] == ["speaker", "listener"] and (first["row"], second["row"]) == (
        1,
        5,
    )
    assert first["turns"][1]["text"] == "Oh no!\nReally?" and second["turns"][0]["text"] == "I won!"
    assert "read as a chat transcript: Ann = speaker, Ben = listener" in done.err
    assert ask("-", "--with", "intent", "--json", stdin=talk).out == done.out
    turned = records(ask(str(path), "--with", "intent", "--json", "--speaker", "Ben").out)
    assert [turn["role"] for turn in turned[0]["turns"]] == ["listener", "speaker"]
    lines = ask("-", "--with", "intent", "--json", stdin="I won!\nNote: it was close.\n")
    assert [len(record["turns"]) for record in records(lines.out)] == [1, 1]
    objects = ask("-", "--with", "intent", "--json", stdin=EXAMPLE.read_text())
    assert [len(record["turns"]) for record in records(objects.out)] == [6, 3, 4]


def test_a_line_that_is_not_utf8_spoils_its_conversation_only(ask):
    done = ask("-", "--with", "intent", "--json", stdin=b"A: caf\xe9 caf\xc3\xa9\nB: hi\n---\nA: I won!\nB: Oh!\n")
    first, second = records(done.out)
    assert "line 1 has bytes that are not UTF-8" in first["error"] and len(second["turns"]) == 2


def test_tables_of_turns(ask, tmp_path):
    path = tmp_path / "turns.csv"
    path.write_text(
        "conv_id,speaker_idx,utterance\nc1,7,I lost my job.\nc1,9,Oh no!\nc2,1,I won!\nc1,7,Yes.\nc3,1,\n"
        "c4,a,x\nc4,b,y\nc4,c,z\n"
    )
    done = ask(str(path), "--with", "intent", "--json")
    found = records(done.out)
    assert [record["row"] for record in found] == [1, 3, 4, 5, 6] and [r["id"] for r in found[:2]] == ["c1", "c2"]
    assert found[0]["turns"] == [{"role": "speaker", "text": "I lost my job."}, {"role": "listener", "text": "Oh no!"}]
    assert "continues after another one" in found[2]["error"] and "empty" in found[3]["error"]
    assert "3 people speak" in found[4]["error"]
    path.write_text("text\nI won!\nI lost.\n")
    assert [len(r["turns"]) for r in records(ask(str(path), "--with", "intent", "--json").out)] == [1, 1]


def test_a_table_as_result_has_a_row_for_each_turn(ask, tmp_path):
    out = tmp_path / "result.csv"
    done = ask(str(EXAMPLE), "--with", "emotion,intent,causes,words", "--out", str(out))
    assert done.code == 0 and done.out == ""
    with out.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert tuple(rows[0]) == TABLE_COLUMNS and len(rows) == 13
    assert [row["turn"] for row in rows[:6]] == list("123456") and rows[2]["cause_turns"] == "1 3"
    assert rows[1]["emotion"] == "" and rows[1]["intent"] and 0 < float(rows[0]["emotion_probability"]) <= 1


def test_roles_of_a_json_value():
    assert item_of("text") == "text"
    with pytest.raises(DataError, match="nobody is called 'Ann'"):
        item_of({"turns": [{"role": "Ben", "text": "x"}]}, None, "Ann")
    mixed = item_of({"turns": ["x", {"text": "y"}, {"role": "speaker", "text": "z"}]})
    assert [turn.role for turn in mixed.turns] == ["speaker", "listener", "speaker"]


def test_resuming_asks_for_the_same_input_models_and_parts(ask, tmp_path):
    out, partial = tmp_path / "r.jsonl", tmp_path / "r.jsonl.partial"
    arguments = ("-", "--out", str(out), "--resume", "--with")
    made = {"row": 1, "turns": [{"role": "speaker", "text": "Hi."}], "models": {"emotion": "tiny"}, "missing": {}}
    made |= {"uncertain": [], "emotion": []}
    for changed, parts, message in (
        ({"turns": [{"role": "speaker", "text": "Other."}]}, "emotion", "1 rows of another input"),
        ({"models": {"emotion": "huge"}}, "emotion", "made with emotion by 'huge', not emotion by 'tiny'"),
        ({}, "emotion,mechanisms", "was made with --with emotion."),
        ({"models": None, "model": "tiny"}, "emotion", "was made without --with"),
    ):
        row = {name: value for name, value in (made | changed).items() if value is not None}
        partial.write_text(json.dumps(row) + "\n")
        done = ask(*arguments, parts, stdin="Hi.\nYes.\n")
        assert done.code == 1 and message in done.err and partial.exists() and not out.exists(), message
    partial.write_text(json.dumps(made) + "\n")
    done = ask("-", "--out", str(out), "--resume", stdin="Hi.\nYes.\n")
    assert done.code == 1 and "was made with --with; give it again" in done.err
    done = ask(*arguments, "emotion", "--html", str(tmp_path / "r.html"), stdin="Hi.\nYes.\n")
    assert done.code == 0 and [row["row"] for row in records(out.read_text())] == [1, 2]
    assert "2 conversations, 2 turns" in (tmp_path / "r.html").read_text()


SLOWED = """
import sys, time
import empatheia.cli.asking as asking
from empatheia.listener.analyzer import Analyzer
asking.ROWS_PER_CHUNK = 20
analyze = Analyzer.analyze
def slowly(self, *arguments, **options):
    time.sleep(0.05)
    return analyze(self, *arguments, **options)
Analyzer.analyze = slowly
from empatheia.cli import main
main(sys.argv[1:])
"""


def test_killed_in_the_middle_and_resumed_no_row_is_lost_or_doubled(tmp_path, tiny_model):
    source, out, partial = tmp_path / "a.txt", tmp_path / "r.jsonl", tmp_path / "r.jsonl.partial"
    texts = [f"She passed exam number {i}." if i % 9 else "" for i in range(1, 1201)]
    source.write_text("\n".join(texts))
    arguments = ["analyze", str(source), "--with", "emotion,words", "--model", str(tiny_model), "--out", str(out)]
    command = ["-c", SLOWED, *arguments, "--resume"]
    environment = os.environ | {
        "EMPATHEIA_CACHE": str(tmp_path / "cache"),
        "EMPATHEIA_MODELS": "",
        "EMPATHEIA_OFFLINE": "1",
    }
    process = fresh.Fresh(command, env=environment, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if partial.exists() and partial.stat().st_size > 200_000:
            break
        time.sleep(0.01)
    assert process.poll() is None, "it ended before the kill"
    process.send_signal(signal.SIGKILL)
    process.wait()
    n_done = len(partial.read_bytes().splitlines())
    assert 0 < n_done < 1200 and not out.exists()
    with partial.open("ab") as stream:
        stream.write(b'{"row": 999, "turns": [{"ro')  # as if the kill had cut a line
    done = fresh.run(command, env=environment)
    assert done.returncode == 0 and "continuing after row" in done.stderr and "1,200 rows, 133 bad" in done.stderr
    rows = records(out.read_text())
    assert [row["row"] for row in rows] == list(range(1, 1201)) and not partial.exists()
    for row, text in zip(rows, texts, strict=True):
        assert ("error" in row) == (not text) and (not text or row["turns"][0]["text"] == text)


def test_any_number_of_rows_in_constant_memory(ask, tmp_path, monkeypatch):
    """What is held grows with the chunk, not with the file: four times the rows add less than a megabyte."""
    import tracemalloc

    monkeypatch.setattr("empatheia.listener.analyzer.doubts", lambda text: ())
    peaks = []
    for n in (20, 1_000, 4_000):  # the first imports
        path = tmp_path / f"{n}.txt"
        path.write_text("".join(f"Row {i} says this.\n" for i in range(n)))
        tracemalloc.start()
        done = ask(
            str(path), "--with", "intent", "--out", str(tmp_path / "r.jsonl"), "--html", str(tmp_path / "r.html")
        )
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert done.code == 0 and f"{n:,} rows, 0 bad" in done.err
    assert peaks[2] < peaks[1] + 1_000_000
