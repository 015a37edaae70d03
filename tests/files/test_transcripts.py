"""Chat transcripts: names, time stamps, who is the speaker, and what is no transcript."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from empatheia.errors import DataError
from empatheia.files.conversations import read_conversations
from empatheia.files.talks import dialogue_roles
from empatheia.files.transcripts import is_transcript, read_talk_lines, read_transcripts


def read(text, speaker=None):
    return list(read_transcripts(text.splitlines(keepends=True), speaker))


def said(found):
    return [(turn.role, turn.text) for turn in found.dialogue.turns]


def test_two_people():
    (found,) = read("A: I lost my job.\nB: Oh no!\nA: Yes.\n")
    assert said(found) == [("speaker", "I lost my job."), ("listener", "Oh no!"), ("speaker", "Yes.")]
    assert found.roles == {"A": "speaker", "B": "listener"} and found.line == 1 and found.error is None


@pytest.mark.parametrize(
    "line",
    [
        "Ann: hi: there",
        "[12:30] Ann: hi: there",
        "12:30 Ann: hi: there",
        "12.30 - Ann: hi: there",
        "(12:30:05 PM) Ann: hi: there",
        "2024-01-05 12:30:01 - Ann: hi: there",
        "2024-01-05T12:30:01Z Ann: hi: there",
        "[05/01/24, 12:30:01 PM] Ann: hi: there",
        "05.01.2024, 12:30 - Ann: hi: there",
        "Ann (12:30): hi: there",
        "Ann [2024-01-05 12:30]: hi: there",
        "Ann :hi: there",
    ],
)
def test_time_stamps_are_tolerated(line):
    (found,) = read(f"{line}\nBen Smith-O'Neil: 5:30 works\n")
    assert said(found) == [("speaker", "hi: there"), ("listener", "5:30 works")]


def test_lines_that_go_on():
    (found,) = read("\ufeffAnn: first\nsecond line\n\n  Note: third\nhttps://x.example/a\nBen:\n  fourth\n")
    assert said(found) == [
        ("speaker", "first\nsecond line\nNote: third\nhttps://x.example/a"),
        ("listener", "fourth"),
    ]


def test_messages_of_the_program_are_left_out_and_counted():
    (found,) = read("12:29 - Messages are encrypted\n12:30 - Ann: hi\n12:31 - Ben: hello\n12:32 - Ben left\n")
    assert said(found) == [("speaker", "hi"), ("listener", "hello")] and found.left == {"notices": 2}
    assert found.line == 2


def test_a_rule_parts_conversations():
    first, second = read("A: hi\nB: hello\n---\n\nB: bye\nA: see you\n=====\n")
    assert said(first)[0] == ("speaker", "hi") and said(second)[0] == ("speaker", "bye")
    assert (first.line, second.line) == (1, 5) and second.roles == {"B": "speaker", "A": "listener"}


def test_who_is_the_speaker():
    (found,) = read("Ann: hi\nBen: hello\nCara: hey\n", speaker="ben")
    assert [turn.role for turn in found.dialogue.turns] == ["listener", "speaker", "listener"]
    (found,) = read("Listener: hi\nSpeaker: hello\n")
    assert [turn.role for turn in found.dialogue.turns] == ["listener", "speaker"]
    (found,) = read("Ann: hi\nBen: hello\nCara: hey\n")
    assert found.dialogue is None and "3 people speak (Ann, Ben, Cara)" in found.error and "--speaker" in found.error
    (found,) = read("Ann: hi\nBen: hello\n", speaker="Bert")
    assert "nobody is called 'Bert'. Did you mean 'Ben'? Found: Ann, Ben" in found.error
    with pytest.raises(DataError, match="nobody is called"):
        dialogue_roles(["Ann"], "x")


def test_a_text_without_names():
    (found,) = read("just some words\n", speaker="Ann")
    assert found.dialogue is None and "NAME: text" in found.error


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A: hi\nB: hello", True),
        ("[12:30] Ann: hi\nand more\n[12:31] Ben: hello\n[12:32] Ann: bye", True),
        ("I lost my job.\nNote: it was Friday.\nBut: I am fine.", False),
        ("Title: one thing\nBody: another\nEnd: a third", False),
        ("Ann: hi\nAnn: again", False),
        ("", False),
        ("12:30 was when it happened\nI was late", False),
    ],
)
def test_what_looks_like_a_transcript(text, expected):
    assert is_transcript(text.splitlines()) is expected


@given(st.lists(st.text(max_size=40), max_size=12))
def test_nothing_said_breaks_it(lines):
    """Whatever is in the lines: no exception, and only turns with a role come out."""
    for found in read_transcripts(lines):
        assert (found.dialogue is None) != (found.error is None)
        assert is_transcript(lines) in (True, False)


@given(
    st.lists(
        st.tuples(st.sampled_from(["Ann", "Ben"]), st.from_regex(r"[a-z]{1,8}( [a-z]{1,8}){0,4}", fullmatch=True)),
        min_size=1,
    )
)
def test_what_is_written_is_read(talk):
    (found,) = read_transcripts(f"{name}: {text}\n" for name, text in talk)
    assert [turn.text for turn in found.dialogue.turns] == [text for _, text in talk]
    assert [turn.role == "speaker" for turn in found.dialogue.turns] == [name == talk[0][0] for name, _ in talk]


@pytest.mark.parametrize(
    "text",
    [
        "No answer. I called him ten times and I'm so scared",
        "Video call, can we do it tomorrow?",
        "Voice call at 5:30",
        "Video call, 10 people",
        "<sigh>",
        "<note: why me>",
    ],
)
def test_what_only_begins_like_a_notice_is_said(text):
    (found,) = read(f"12/03/2024, 14:55 - Ana: {text}\n13/03/2024, 14:56 - Ben: Oh\n")
    assert said(found) == [("speaker", text), ("listener", "Oh")] and not found.left


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("No answer", "calls"),
        ("Voice call, 3 min", "calls"),
        ("Video call, 1 hr 2 min", "calls"),
        ("Video call, \u200eNo answer", "calls"),
        ("Voice call. 0:35", "calls"),
        ("Sprachanruf, 1 Std. 2 Min.", "calls"),
        ("Missed voice call, Tap to call back", "calls"),
        ("Missed voice call. \u200eTap to call back", "calls"),
        ("Missed voice call at 12:31 PM", "calls"),
        ("Пропущенный звонок, нажмите, чтобы перезвонить", "calls"),
        ("<Media omitted>", "media"),
        ("<attached: 00000012-PHOTO-2024-03-12.jpg>", "media"),
    ],
)
def test_notices_of_calls_and_media_are_left_out(text, what):
    (found,) = read(f"12/03/2024, 14:55 - Ana: Hi\n13/03/2024, 14:56 - Ben: {text}\n")
    assert said(found) == [("speaker", "Hi")] and found.left == {what: 1}


@pytest.mark.parametrize(
    "stamp",
    [
        "12.3.2024 klo 14.55 - ",
        "2024년 3월 12일 오후 2:55, ",
        "2024年3月12日 14:55 - ",
        "12.03.2024 г., 14:55 - ",
        "12/3/24, 2:55 μ.μ. - ",
    ],
)
def test_stamps_of_further_languages(stamp):
    text = f"{stamp}Ana: Hei\n{stamp}Ben Smith: Moi\n"
    assert is_transcript(text.splitlines())
    (found,) = read(text)
    assert found.roles == {"Ana": "speaker", "Ben Smith": "listener"}
    (talk,) = read_talk_lines(text.splitlines())
    assert {message.time for message in talk.messages} == {1710255300000}


@pytest.mark.parametrize("stamp", ["12.3.2024 kello 14.55 - ", "2024i 3o 12u 14:55 ", "12 March 2024 um 14:55 - "])
def test_dates_of_an_unknown_form_are_nobodys_names_and_said(stamp, tmp_path):
    lines = [f"{stamp}Ana: Hi", f"{stamp}Ben: Oh"]
    assert not is_transcript(lines)
    path = tmp_path / "chat.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    told: list[str] = []
    assert [row.item for row in read_conversations(path, say=told.append)] == lines
    assert told == [f"dates of an unknown form: {lines[0][:40]!r}; each line is read as a text"]
    (found,) = read("\n".join(lines), "Ana")
    assert found.left == {"lines with dates of an unknown form": 2}
