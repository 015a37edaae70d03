"""What is damaged, foreign or huge: told with file and place, nothing else lost, and read in parts where it can be."""

from __future__ import annotations

import copy
import json
from itertools import islice
from pathlib import Path

import pytest

from empatheia.errors import DataError
from empatheia.files import conversations, transcripts
from empatheia.files.conversations import read_conversations, read_stream
from empatheia.files.forms import json_form
from empatheia.files.json_forms import is_turn_array
from empatheia.files.rows import read_rows
from empatheia.files.tables import choose_column
from empatheia.files.talks import dialogue_roles
from empatheia.files.transcripts import read_talk_lines
from empatheia.reading import UnreadableError, parse_json
from empatheia_people.curation.chats import read_chats
from empatheia_people.curation.subtitles import read_subtitles
from empatheia_research.corpora import own

REPORTS = Path(__file__).parents[1] / "data" / "reports"
EXPORTS = ("telegram_full", "discord", "slack", "messenger", "chatgpt", "sharegpt", "array", "claude")


@pytest.mark.parametrize("name", EXPORTS)
def test_a_truncated_export_is_told(tmp_path, name):
    raw = (REPORTS / f"{name}.json").read_bytes()
    path = tmp_path / "cut.json"
    path.write_bytes(raw[: len(raw) // 2])
    with pytest.raises(DataError, match=r"cut\.json is not JSON \(.*line 1 column \d+\)\. Export it again"):
        list(read_rows(path))
    with pytest.raises(UnreadableError, match="holds no message of a chat"):
        read_chats(path.read_bytes(), ".json")


def test_json_of_another_encoding_is_told(tmp_path):
    path = tmp_path / "latin.json"
    path.write_bytes('[{"text": "fine"},\n{"text": "café"}]'.encode("cp1252"))
    with pytest.raises(DataError, match=r"latin\.json is not JSON \(2: byte 0xe9 is not UTF-8"):
        list(read_rows(path))


def places(value, at=()):
    """Every place in a JSON value."""
    yield at
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*at, key))


def changed(value, at, new):
    value = copy.deepcopy(value)
    inner = value
    for key in at[:-1]:
        inner = inner[key]
    if not at:
        return new
    inner[at[-1]] = new
    return value


@pytest.mark.parametrize("name", EXPORTS)
def test_an_export_with_anything_anywhere_is_read_or_told(name):
    whole = parse_json((REPORTS / f"{name}.json").read_bytes())
    for at in places(whole):
        for new in (None, [], {}, 7, True, "x", ["x"], {"x": 1}, -1e300):
            value = changed(whole, at, new)
            try:
                read_chats(json.dumps(value).encode(), ".json")
                form = json_form(value)
                for talk in form.read(value) if form is not None else ():
                    talk.dialogue()
            except DataError:
                pass


def test_forms_may_be_mixed_in_json_lines(tmp_path):
    path = tmp_path / "mixed.jsonl"
    lines = [line for name in ("messages", "parlai") for line in (REPORTS / f"{name}.jsonl").read_text().splitlines()]
    path.write_text("\n".join([*lines, '"a text"', '{"text": "another"}', '["one", "two"]', '{"n": 1}', "{cut"]) + "\n")
    rows = list(read_rows(path))
    assert [row.error is None for row in rows] == [True] * 8 + [False, False]
    assert [len(row.item.turns) for row in rows[:5]] == [2, 2, 3, 2, 4] and len(rows[7].item.turns) == 2
    assert "not valid JSON" in rows[9].error and rows[9].number == 10
    (tmp_path / "own").mkdir()
    path.rename(tmp_path / "own" / "train.jsonl")
    corpus = own.load("train", tmp_path)
    assert len(corpus) == 5 and [problem.line for problem in corpus.problems] == [6, 7, 8, 9, 10]


def test_json_lines_may_be_called_json(tmp_path):
    path = tmp_path / "lines.json"
    path.write_text('{"text": "one"}\n{"text": "two"}\n{cut\n')
    assert [row.item for row in read_rows(path)] == ["one", "two", None]
    script = read_chats(path.read_bytes(), ".json")
    assert [one.text for one in script.sentences] == ["one", "two"] and script.notes == (
        ("line that is no message", 1),
    )


def test_dates_and_lines_without_may_be_mixed():
    lines = [
        "1/2/24, 10:00 - Ann: one",
        "Ben: two",
        "1/3/24, 10:00 - Ann: three",
        "1/4/24 10:00",
        "13/40/24, 10:00 - Ben: four",
    ]
    (talk,) = read_talk_lines(lines)
    assert [(one.who, one.text) for one in talk.messages] == [
        *(("Ann", "one"), ("Ben", "two"), ("Ann", "three"), ("Ben", "four"))
    ]
    assert talk.messages[-1].time is None and talk.left == {"notices": 1}


def test_a_chat_without_end_is_read_in_parts_and_its_people_stay_who_they_are(monkeypatch):
    monkeypatch.setattr(transcripts, "MAX_TURNS", 100)
    seen = []

    def lines():
        for number in range(1_000_000):
            seen.append(number)
            yield f"{'Ben' if number % 3 else 'Ann'}: message {number}"

    first, second = islice(transcripts.read_transcripts(lines()), 2)
    assert len(seen) <= 202 and len(first.dialogue.turns) == len(second.dialogue.turns) == 100
    assert [one.text for one in (*first.dialogue.turns, *second.dialogue.turns)] == [f"message {i}" for i in range(200)]
    assert first.roles == second.roles == {"Ann": "speaker", "Ben": "listener"}


def test_a_table_of_turns_without_end_is_read_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(conversations, "MAX_TURNS", 100)
    path = tmp_path / "turns.csv"
    path.write_text("role,text\n" + "user,I won.\nassistant,Great.\n" * 125)
    assert [len(row.item.turns) for row in read_conversations(path)] == [100, 100, 50]


HUGE = 10_000_000


@pytest.mark.parametrize(
    ("name", "text", "n"),
    [
        ("a.txt", "A: " + "x" * HUGE + "\nB: hi\n", HUGE),
        ("a.txt", "1/2/24, 10:00 - A: " + "<" * HUGE + "\n1/2/24, 10:01 - B: hi\n", HUGE),
        ("a.csv", "text\n" + "x" * HUGE + "\n", HUGE),
        ("a.csv", 'text\n"' + 'a"b,' * (HUGE // 4) + "\n", HUGE + 1),
        ("a.jsonl", '"' + "&" * HUGE + '"\n', HUGE),
    ],
)
def test_one_line_of_ten_megabytes(tmp_path, name, text, n):
    path = tmp_path / name
    path.write_text(text)
    first = next(iter(read_conversations(path)))
    assert first.error is None
    assert len(first.item if isinstance(first.item, str) else first.item.turns[0].text) == n


def test_a_subtitle_of_one_huge_line():
    raw = ("1\n00:00:01,000 --> 00:00:02,000\n" + "l " * 500_000 + "\n").encode()
    (one,) = read_subtitles(raw, ".srt").sentences
    assert one.text == ("I " * 500_000).strip()


def test_open_quotation_marks_everywhere_lose_no_row(tmp_path):
    path = tmp_path / "open.csv"
    path.write_text("id,text\n" + '1,"I won\n2,plain\n' * 500)
    rows = list(read_rows(path))
    assert [row.item for row in rows] == ['"I won', "plain"] * 500


def test_a_cell_of_many_lines_stays_one(tmp_path):
    path = tmp_path / "long.csv"
    text = "\n".join(f'line {i} of ""it""' for i in range(900))
    path.write_text(f'id,text\n1,"{text}"\n2,fine\n')
    first, second = read_rows(path)
    assert first.item == text.replace('""', '"') and second.item == "fine"


def test_stdin_may_hold_lists_of_turns():
    import io

    rows = list(read_stream(io.BytesIO(b'["I won.", "Great."]\n[{"speaker": "Ann", "text": "Hi."}]\n')))
    assert [len(row.item.turns) for row in rows] == [2, 1]
    rows = list(read_stream(io.BytesIO(b"[sighs] I lost my dog.\n")))
    assert [row.item for row in rows] == ["[sighs] I lost my dog."]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["review_id", "review_text"], "review_text"),
        (["messageId", "customerMessage"], "customerMessage"),
        (["text_id", "Tweet Text"], "Tweet Text"),
        (["text_length", "post_date"], None),
    ],
)
def test_which_column_holds_the_texts(names, expected):
    if expected is None:
        with pytest.raises(DataError, match=r"has no text column.*--column"):
            choose_column(names, None)
    else:
        assert choose_column(names, None) == expected


def test_long_questions_of_a_form_are_a_header(tmp_path):
    path = tmp_path / "form.csv"
    path.write_text("Timestamp,How do you feel about our shop?\n2024-01-05 10:00,I love it\n2024-01-06 11:30,Sad\n")
    with pytest.raises(DataError, match=r"has no text column\. Found: 'Timestamp', 'How do you feel"):
        list(read_rows(path))
    found = [row.item for row in read_rows(path, "How do you feel about our shop?")]
    assert found == ["I love it", "Sad"]
    path.write_text("I just got a message\nI won\n")
    assert [row.item for row in read_rows(path)] == ["I just got a message", "I won"]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["assistant", "user"], {"assistant": "listener", "user": "speaker"}),
        (["Seeker", "Supporter"], {"Seeker": "speaker", "Supporter": "listener"}),
        (["Maria", "Bot"], {"Maria": "speaker", "Bot": "listener"}),
        (["Agent", "Model"], {"Agent": "speaker", "Model": "listener"}),  # two people of one role: by their order
    ],
)
def test_roles_by_names(names, expected):
    assert dialogue_roles(names) == expected


@pytest.mark.parametrize(
    ("first", "expected", "told"),
    [
        ("Great!", ["Great!", "I lost my dog"], "no header line: each line is read as a text"),
        ("notes", ["I lost my dog"], "read as texts: the only column, 'notes'"),
    ],
)
def test_a_table_of_one_column(first, expected, told, tmp_path):
    path = tmp_path / "one.csv"
    path.write_text(f"{first}\nI lost my dog\n", encoding="utf-8")
    said: list[str] = []
    assert [row.item for row in read_conversations(path, say=said.append)] == expected and said == [told]


def test_an_array_of_what_people_write_each_other_is_one_conversation():
    def array(*people):
        return [{"author": who, "content": "Hi"} for who in people]

    assert is_turn_array(array("Ana", "Ben")) and is_turn_array(array("Ana", "Ben", "Cy", "Ana", "Cy", "Ben"))
    assert not is_turn_array(array("Ana", "Ben", "Cy")) and not is_turn_array(array("Ana", "Ana"))


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.csv"])
def test_a_byte_order_mark_is_no_text(tmp_path, name):
    lines = {"a.txt": "One.\n\ufeffTwo.", "a.jsonl": '"One."\n"\ufeffTwo."', "a.csv": "text\nOne.\n\ufeffTwo."}
    (tmp_path / name).write_text("\ufeff" + lines[name], encoding="utf-8")
    one, two = (row.item for row in read_rows(tmp_path / name))
    assert one == "One." and two.endswith("Two.")
