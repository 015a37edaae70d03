"""Readers: OpenSubtitles XML and its traps, subtitle files, chats; what is damaged is refused in words."""

from __future__ import annotations

import gzip
import json
import zipfile

import pytest

from empatheia.errors import DataError
from empatheia.reading import UnreadableError, members_of, read_member_at
from empatheia_people.curation.chats import read_chats, read_meld
from empatheia_people.curation.opus import parse_time, read_facts, read_opus
from empatheia_people.curation.sources import by_film, find_sources, identity, shard_of
from empatheia_people.curation.subtitles import read_subtitles


@pytest.mark.parametrize(
    ("value", "ms"),
    [
        ("01:00:00,001", 3_600_001),
        ("00:00:05.250", 5_250),
        (" 00 : 00 : 05 , 250 ", 5_250),
        ("00:00:05", 5_000),
        ("00:00:05,5", 5_500),
        ("-0:00:01,000", None),
        ("abc", None),
        ("", None),
        ("00:61:00,000", None),
    ],
)
def test_times(value, ms):
    assert parse_time(value) == ms


def test_the_example_file(example):
    first, second, third = read_opus(example.encode(), "133093", "900001").sentences
    assert (first.text, first.start, first.end) == ("- You 're late .", 2_000, None)
    assert (second.text, second.start, second.end) == ("- Traffic .", None, 4_100)
    assert (third.text, third.start, third.end) == ("And so it begins ...", 9_101, 12_000)
    assert third.is_emphasised and not first.is_emphasised
    assert first.last_block == second.first_block == 1 and (third.first_block, third.last_block) == (2, 3)
    facts = read_facts(example.encode())
    assert (facts.confidence, facts.n_sentences) == (0.9, 3)


def test_raw_flavour_has_text_in_place_of_tokens():
    times = [f'<time id="T1{kind}" value="0:00:0{second},0"/>' for kind, second in (("S", 1), ("E", 2))]
    raw = f"<document><s id='1'>{times[0]}You're late.{times[1]}</s></document>"
    (one,) = read_opus(raw.encode()).sentences
    assert (one.text, one.start, one.end) == ("You're late.", 1_000, 2_000)


def test_recased_forms_are_taken_where_all_is_upper_case():
    tokens = '<s id="1"><w id="1.1" alternative="Stop">STOP</w><w id="1.2" alternative="here">HERE</w></s>'
    raw = f"<document>{tokens}</document>".encode()
    assert read_opus(raw).sentences[0].text == "STOP HERE"
    assert read_opus(raw, recase=True).sentences[0].text == "Stop here"
    mixed = f"<document>{tokens}<s id='2'><w>and so on it goes</w></s></document>".encode()
    assert read_opus(mixed, recase=True).sentences[0].text == "STOP HERE"


def test_wrong_encoding_is_read_and_told():
    script = read_opus("<document><s>caf\xe9</s></document>".encode("latin-1"))
    assert script.sentences[0].text == "café" and script.notes == (("encoding is not utf-8: read as cp1252", 1),)


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"<document><s>", "not well-formed"),
        (b"x", "not well-formed"),
        (b"<html></html>", "the root is <html>"),
        (b'<!DOCTYPE d [<!ENTITY a "b">]><document><s>&a;</s></document>', "document type or entities"),
        (b'<!DOCTYPE d SYSTEM "http://localhost/x"><document/>', "document type or entities"),
        (b"<document><s>\xff\xfe\x00</s></document>", "not well-formed"),
    ],
)
def test_bad_xml_is_refused(raw, told):
    with pytest.raises(UnreadableError, match=told):
        read_opus(raw)


SRT = """1
00:00:01,000 --> 00:00:02,500
Hello <i>you</i>. Come in!
- Hi.

2
00:00:03 --> 00:00:04
no milliseconds, and it

3
00:00:04,300 --> 00:00:06,000
goes on here.

4
-00:00:03,000 --> 00:00:04,000
Negative.
"""


def test_srt():
    sentences = read_subtitles(b"\xef\xbb\xbf" + SRT.encode(), ".srt").sentences
    assert [one.text for one in sentences] == [
        "Hello you.",
        "Come in!",
        "- Hi.",
        "no milliseconds, and it goes on here.",
        "Negative.",
    ]
    assert [(one.start, one.end) for one in sentences] == [
        (1_000, None),
        (None, None),
        (None, 2_500),
        (3_000, 6_000),
        (None, 4_000),
    ]


def test_vtt_voices_are_speakers():
    text = "WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ann Lee>Hello.</v>\n<v Bob>Oh.</v>\n"
    assert [(s.speaker, s.text) for s in read_subtitles(text.encode(), ".vtt").sentences] == [
        ("Ann Lee", "Hello."),
        ("Bob", "Oh."),
    ]


def test_ass_names_are_speakers():
    head = "[Script Info]\nScriptType: v4.00+\n[V4+ Styles]\nFormat: Name\nStyle: D\n[Events]\n"
    text = head + "Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"
    text += "Dialogue: 0,0:00:01.00,0:00:02.00,D,ANN,0,0,0,,{\\i1}Hello{\\i0}\\Nthere\n"
    text += "Comment: 0,0:00:01.00,0:00:02.00,D,,0,0,0,,hidden\n"
    (one,) = read_subtitles(text.encode(), ".ass").sentences
    assert (one.text, one.speaker, one.start, one.end) == ("Hello there", "ANN", 1_000, 2_000)


@pytest.mark.parametrize("raw", [b"", b"x", b"\0\0\0", b"1\n00:00:01,000 --> \n", bytes(range(256))])
def test_no_subtitles(raw):
    with pytest.raises(UnreadableError):
        read_subtitles(raw, ".srt")


def test_utf16_and_cp1252_subtitles():
    text = "1\n00:00:01,000 --> 00:00:02,000\nCafé.\n"
    for encoding, note in (("utf-16", "encoding is utf-16"), ("cp1252", "encoding is not utf-8: read as cp1252")):
        script = read_subtitles(text.encode(encoding), ".srt")
        assert script.sentences[0].text == "Café." and script.notes == ((note, 1),)


def test_json_lines():
    lines = [
        {"turns": [{"speaker": "a", "text": "Hi."}, {"speaker": "b", "text": "Hello."}]},
        {"turns": ["One", "Two"]},
        {"author": "ann", "message": "Later.", "timestamp": "2024-05-01T10:00:00Z"},
    ]
    raw = ("\n".join(map(json.dumps, lines)) + "\nnot json\n").encode()
    script = read_chats(raw, ".jsonl")
    assert [(s.speaker, s.dialogue) for s in script.sentences[:4]] == [
        ("a", 0),
        ("b", 0),
        ("speaker 1", 1),
        ("speaker 2", 1),
    ]
    assert script.sentences[4].start == 1_714_557_600_000 and script.notes == (("line that is no message", 1),)
    with pytest.raises(UnreadableError, match="holds no message"):
        read_chats(b"{}\n[]\n", ".jsonl")


@pytest.mark.parametrize(
    "text",
    [
        "[31/12/2020, 22:15:03] Ann: Hello\nand more\n[31/12/2020, 22:16:03] Bob: Hi\n",
        "31.12.20, 22:15 - Encrypted.\n31.12.20, 22:15 - Ann: Hello\nand more\n31.12.20, 22:16 - Bob: Hi\n",
        "12/31/20, 10:15\u202fPM - Ann: Hello\nand more\n12/31/20, 10:16\u202fPM - Bob: Hi\n"
        "12/31/20, 10:17 PM - Bob: <Media omitted>\n",
    ],
)
def test_whatsapp(text):
    ann, bob = read_chats(text.encode(), ".txt").sentences
    assert (ann.speaker, ann.text, bob.speaker, bob.text) == ("Ann", "Hello and more", "Bob", "Hi")
    assert bob.start - ann.start == 60_000


def test_telegram():
    chat = {
        "messages": [
            {"type": "service", "text": "joined"},
            {
                "type": "message",
                "from": "Ann",
                "date_unixtime": "1700000000",
                "text": ["Hi ", {"type": "bold", "text": "you"}],
            },
            {"type": "message", "from": "Bob", "date_unixtime": "1700000060", "text": "Yes"},
        ]
    }
    ann, bob = read_chats(json.dumps(chat).encode(), ".json").sentences
    assert (ann.text, ann.speaker, bob.start - ann.start) == ("Hi you", "Ann", 60_000)
    several = read_chats(json.dumps({"chats": {"list": [chat, chat]}}).encode(), ".json")
    assert [one.dialogue for one in several.sentences] == [-1, -1, -2, -2]  # chats, in which pauses cut


def test_meld():
    raw = (
        "Sr No.,Utterance,Speaker,Emotion,Dialogue_ID,Utterance_ID,StartTime,EndTime\n"
        '1,"Hi, you.",Ann,joy,0,0,"00:16:16,059","00:16:21,731"\n2,Oh.,Bob,joy,0,1,"00:16:21,940","00:16:23,442"\n'
    )
    ann, bob = read_meld(raw.encode()).sentences
    assert (ann.speaker, ann.start, bob.end, bob.dialogue) == ("Ann", 976_059, 983_442, 0)
    with pytest.raises(UnreadableError, match="no column"):
        read_meld(b"a,b\n1,2\n")


def test_cornell(tmp_path):
    line = "L{0} +++$+++ u{1} +++$+++ m0 +++$+++ ANN +++$+++ {2}\n"
    (tmp_path / "movie_lines.txt").write_text(line.format(1, 0, "Hello there.") + line.format(2, 1, "Hi."))
    (tmp_path / "movie_conversations.txt").write_text("u0 +++$+++ u1 +++$+++ m0 +++$+++ ['L1', 'L2']\n")
    (source,) = find_sources([tmp_path]).sources
    (script,) = source.scripts()
    assert script.movie == "cornell-m0" and [one.text for one in script.sentences] == ["Hello there.", "Hi."]


# -- which files ---------------------------------------------------------------------------------------------


def opus(example: str, confidence: float, n: int) -> bytes:
    return example.replace(">0.9<", f">{confidence}<").replace("<sentences>3<", f"<sentences>{n}<").encode()


@pytest.fixture
def films(tmp_path, example):
    """Two films: one of three subtitles, one of a subtitle in a ZIP archive."""
    for subtitle, raw in (("11", opus(example, 0.5, 9)), ("12", opus(example, 0.9, 3)), ("9", opus(example, 0.9, 3))):
        place = tmp_path / "in" / "xml" / "en" / "1999" / "133093" / f"{subtitle}.xml.gz"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(gzip.compress(raw))
    with zipfile.ZipFile(tmp_path / "in" / "en.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("OpenSubtitles/xml/en/1191/76759/7.xml", opus(example, 1, 3))
        archive.writestr("../../etc/evil.xml", opus(example, 1, 3))
        archive.writestr("notes.pdf", b"x")
    return tmp_path / "in"


def test_one_subtitle_a_film(films):
    found = find_sources([films])
    groups, problems = by_film(found.sources)
    chosen = {group[0].movie: [one.subtitle for one in group] for group in groups}
    assert chosen["133093"] == ["9", "12", "11"]  # confidence, then sentences, then the smallest number
    assert chosen["76759"] == ["7"] and len(chosen) == 3
    assert not problems and found.n_other == 1


def test_a_member_is_read_without_unpacking(films):
    found = find_sources([films])
    (source,) = [one for one in found.sources if one.movie == "76759"]
    assert len(next(source.scripts()).sentences) == 3
    assert all("/" not in one.movie and ".." not in one.movie for one in found.sources)
    assert not (films.parent / "etc").exists()


def test_folders_are_walked_in_order_and_links_to_folders_are_not_entered(tmp_path):
    for name in ("b/2.srt", "b/1.srt", "a.srt", "c/.hidden.srt"):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text(SRT)
    (tmp_path / "in" / "loop").symlink_to(tmp_path / "in", target_is_directory=True)
    found = find_sources([tmp_path / "in"])
    assert [one.movie for one in found.sources] == ["a", "b-1", "b-2"] and not found.problems


def test_identity_is_plain():
    assert identity("OpenSubtitles/xml/en/1999/133093/4953132.xml.gz", "opus") == ("133093", "4953132")
    assert identity("../a b/c:d.srt", "subtitles") == ("a_b-c_d", "c_d")
    assert len(identity("x" * 500 + ".srt", "subtitles")[0]) <= 120
    assert {shard_of(str(i), 7) for i in range(100)} == set(range(7)) and shard_of("133093", 1) == 0


def test_damaged_inputs_are_listed(tmp_path):
    (tmp_path / "a.zip").write_bytes(b"PK\x03\x04 truncated")
    (tmp_path / "b.srt").write_text(SRT)
    (tmp_path / "b.srt.gz").write_bytes(gzip.compress(SRT.encode()))
    found = find_sources([tmp_path])
    assert [one.subtitle for one in found.sources] == ["b"]
    assert "truncated ZIP" in found.problems[0][1] and "same identity" in found.problems[1][1]
    with pytest.raises(DataError, match="nothing to read"):
        find_sources([tmp_path / "a.zip"])
    with pytest.raises(DataError, match="no such file or folder"):
        find_sources([tmp_path / "none"])


def test_members_are_bounded_and_checked(tmp_path):
    place = tmp_path / "x.zip"
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("1.xml", b"0" * 1_000_000)
    (member,) = members_of(place)
    with pytest.raises(UnreadableError, match="holds more than"):
        read_member_at(place, member, most=1000)
    assert len(read_member_at(place, member)) == 1_000_000
    with pytest.raises(UnreadableError, match="checksum"):
        read_member_at(place, member._replace(crc=1))
    raw = bytearray(place.read_bytes())
    raw[0] = 0
    place.write_bytes(raw)
    with pytest.raises(UnreadableError, match="no file where"):
        read_member_at(place, member)


def test_a_file_of_one_byte_and_a_large_one(tmp_path):
    (tmp_path / "a.srt").write_bytes(b"x")
    (tmp_path / "b.srt").write_text(SRT)
    one, two = find_sources([tmp_path]).sources
    with pytest.raises(UnreadableError, match="holds 1 bytes"):
        next(one.scripts())
    with pytest.raises(UnreadableError, match="holds more than 10 bytes"):
        next(two.scripts(most=10))
