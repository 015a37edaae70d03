"""Files of replies in every form: what is read, and what is said of a file that cannot be."""

import gzip
import json
import re
from pathlib import Path

import pytest

from empatheia.errors import ConfigError, DataError
from empatheia.replies.replies import ReplyFile, SystemReply
from empatheia.replies.reply_files import FORMATS, read_replies, read_texts
from empatheia_research.corpora.loading import sample_root

SAMPLES = sample_root() / "replies"
CONTEXT = ("my sister finished her first marathon today .",)
REFERENCE = "that is wonderful ! you must be so proud of her ."

# file: format, systems, second emotion, its guesses, replies to the first item
EXPECTED = {
    "moel.txt": (
        "moel",
        ("trs", "trs+multitask", "MOE", "MOE+oracle"),
        (),
        ("that is great ! i bet you are proud .", "that is great ."),
    ),
    "mime.txt": ("mime", ("Topk", "Beam", "Greedy"), ("sad",), ("wow ! she is very strong .", "that is great !")),
    "empdg.txt": ("empdg", ("Pred",), (), ("really ? that is wonderful !",)),
    "kemp.txt": ("kemp", ("Pred",), (), ("did you run too ?",)),
    "cem.txt": (
        "cem",
        ("Beam", "Greedy"),
        ("sad", "lonely", "ashamed"),
        ("that is great !", "yeah that is wonderful ! you must be proud of her ."),
    ),
    "replies.jsonl": ("jsonl", ("short", "long"), ("sad", "lonely"), ("that is great !",)),
    "replies.csv": ("csv", ("short",), ("sad",), ("that is great !",)),
}


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("told", ["named", "auto"])
def test_samples(name, told):
    """Check 32 of the baselines among them: the label is cut off as a whole, "Pred:did you" is "did you"."""
    format, systems, guesses, replies = EXPECTED[name]
    file = read_replies(SAMPLES / name, format if told == "named" else "auto")
    assert (file.format, file.systems) == (format, systems)
    assert {len(file.of(system)) for system in systems} == {2}
    first, second = file.of(systems[0])
    assert (first.context, first.reference, first.emotion) == (CONTEXT, REFERENCE, "proud")
    assert (second.emotion, second.predicted) == ("lonely", guesses)
    assert tuple(file.of(system)[0].reply for system in systems[: len(replies)]) == replies
    assert file.notes == ()


def test_every_format_has_a_sample():
    assert {format for format, *_ in EXPECTED.values()} == set(FORMATS)
    assert set(EXPECTED) == {path.name for path in SAMPLES.iterdir()}


def test_the_line_after_the_reference_belongs_to_its_own_item():
    file = read_replies(SAMPLES / "moel.txt")
    assert file.of("MOE+oracle")[1].reply == "that must be hard ."
    assert [reply.line for reply in file.of("trs")] == [1, 9]


def test_scores_that_a_file_states():
    assert read_replies(SAMPLES / "mime.txt").reported == {
        "Loss": 3.5, "PPL": 33.1155, "Accuracy": 0.5, "Bleu_g": 10.0, "Bleu_b": 11.0, "Bleu_t": 9.0,
    }  # fmt: skip
    # CEM prints loss, perplexity, emotion loss and accuracy under EVAL, Loss, PPL, Accuracy
    assert read_replies(SAMPLES / "cem.txt").reported == {
        "Loss": 3.5, "PPL": 33.1155, "Emotion loss": 2.1, "Accuracy": 0.5,
    }  # fmt: skip


def test_blank_replies_are_named():
    file = read_replies(SAMPLES / "mime.txt")
    assert file.blank_lines("Topk") == (11,)
    assert file.blank_lines("beam") == ()


@pytest.mark.parametrize(
    ("name", "system", "reply", "reference"),
    [
        ("kemp.txt", "Pred", "id you run too ?", REFERENCE),
        ("empdg.txt", "Pred", "ally ? that is wonderful !", REFERENCE),
        ("cem.txt", "Greedy", "ah that is wonderful ! you must be proud of her .", REFERENCE),
        ("moel.txt", "trs", "that is great ! i bet you are proud .", REFERENCE),
    ],
)
def test_stripping_of_the_released_scripts(name, system, reply, reference):
    """Trap 6 of the baselines: their scripts strip a set of characters."""
    first = read_replies(SAMPLES / name, as_released=True).of(system)[0]
    assert (first.reply, first.reference) == (reply, reference)


def test_lists_that_empdg_combines(tmp_path):
    path = tmp_path / "models_result.json"
    path.write_text(json.dumps({"transformer": ["a b  ", ""], "ref": ["a b", "c"], "EmpDG": ["c", "d"]}))
    file = read_replies(path)
    assert (file.format, file.systems) == ("empdg", ("transformer", "EmpDG"))
    assert [reply.reply for reply in file.of("empdg")] == ["c", "d"]
    assert file.blank_lines("transformer") == (2,)
    path.write_text(json.dumps({"transformer": ["a"], "ref": ["a b", "c"]}))
    with pytest.raises(DataError, match=r"'transformer' has 1 replies, 'ref' has 2"):
        read_replies(path)
    path.write_text('{"transformer": ["a"], "ref": ["a b"')
    with pytest.raises(DataError, match=r"models_result.json:1: not valid JSON.*truncated"):
        read_replies(path)


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("way", ["gzip", "bom", "crlf", "all", "no last line feed"])
def test_the_same_bytes_in_another_dress(name, way, tmp_path):
    raw = (SAMPLES / name).read_bytes()
    if way in ("crlf", "all"):
        raw = raw.replace(b"\n", b"\r\n")
    if way in ("bom", "all"):
        raw = b"\xef\xbb\xbf" + raw
    if way == "no last line feed":
        raw = raw.rstrip(b"\n")
    path = tmp_path / (name + ".gz" if way in ("gzip", "all") else name)
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    plain, dressed = read_replies(SAMPLES / name), read_replies(path)
    assert dict(dressed.replies) == dict(plain.replies)
    assert dressed.reported == plain.reported


# -- files that cannot be used -------------------------------------------------------------------------------


def broken(tmp_path, name, old, new):
    text = (SAMPLES / name).read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / name
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("moel.txt", "MOE: that", "that", r"moel.txt:5: 'that is wonderful ! how long.*begins with none of the labels"),
        ("moel.txt", "trs: i am", "i am", r"moel.txt:11: 'i am sorry"),
        ("moel.txt", "ref: i am sorry . i hope you meet some people soon .\n", "", r"lines 9 to 14 has no 'ref'"),
        ("moel.txt", "MOE: i am sorry", "TRS: i am sorry", r"moel.txt:9: the item at lines 9 to 15 has no 'MOE'"),
        ("moel.txt", "MOE+oracle: that", "XOE: x\nMOE+oracle: that", r"moel.txt:15: 'XOE' is none of the systems"),
        ("moel.txt", "\nEmotion: lonely", "", r"moel.txt:9: a second 'Context' in the item that begins at line 1"),
        ("moel.txt", "Emotion: proud\n", "", r"moel.txt:1: .Context.*stands before the first 'Emotion:'"),
        ("moel.txt", "['i moved", "[i moved", r"moel.txt:10: the context .* is no printed list of turns"),
        ("moel.txt", "['i moved to a new town last month .',", "[3,", r"moel.txt:10: the context"),
        ("mime.txt", "Greedy:i am", "Greedily:i am", r"mime.txt:15: 'Greedily:i am sorry to hear that . ' begins"),
        ("mime.txt", "33.1155", "many", r"mime.txt:3: 'many' under 'PPL' is no number"),
        ("empdg.txt", "Pred:really", "Predicted:really", r"empdg.txt:4: 'Predicted:really"),
        ("kemp.txt", "Ref:that", "Reference:that", r"kemp.txt:5: 'Reference:that"),
        ("cem.txt", "Beam:i am sorry .\n", "", r"cem.txt:15: the item at lines 15 to \d+ has no 'Beam'"),
    ],
)
def test_malformed_blocks(name, old, new, message, tmp_path):
    path = broken(tmp_path, name, old, new)
    with pytest.raises(DataError, match=message):
        read_replies(path, name.removesuffix(".txt"))


def test_a_cut_off_file(tmp_path):
    text = (SAMPLES / "kemp.txt").read_text(encoding="utf-8")
    path = tmp_path / "kemp.txt"
    path.write_text(text[: text.rindex("Ref:")], encoding="utf-8")
    with pytest.raises(
        DataError, match=r"kemp.txt:6: the item at lines 6 to 9 has no 'Ref'; the file may be truncated"
    ):
        read_replies(path)
    packed = gzip.compress(text.encode())
    path.write_bytes(packed[:-12])
    with pytest.raises(DataError, match="damaged or truncated gzip"):
        read_replies(path)


def test_several_faults_are_counted(tmp_path):
    text = (SAMPLES / "empdg.txt").read_text(encoding="utf-8").replace("Pred:", "Said:")
    path = tmp_path / "empdg.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"empdg.txt:4: .*\(\d more\)"):
        read_replies(path, "empdg")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]", r":2: a JSON list; accepted: an object"),
        ("{", r":2: not valid JSON"),
        ('{"reference": "a"}', r":2: no reply: found 'reference'; accepted: one of reply, hyp"),
        ('{"reply": null, "reference": "a"}', r":2: the reply of 'reply' is null"),
        ('{"reply": 3, "reference": "a"}', r":2: the reply 3 is a JSON int"),
        ('{"reply": "a"}', r":2: no reference, while other rows have one"),
        ('{"reply": "a", "reference": "a", "context": 3}', r":2: the context 3"),
        ('{"reply": "a", "reference": "a", "context": [3]}', r":2: the context"),
        ('{"reply": "a", "reference": "a", "predicted": 3}', r":2: the predicted emotions 3"),
        ('{"replies": {}, "reference": "a"}', r":2: "),
    ],
)
def test_malformed_json_lines(line, message, tmp_path):
    path = tmp_path / "replies.jsonl"
    path.write_text('{"reply": "a", "reference": "b"}\n' + line + "\n")
    with pytest.raises(DataError, match=r"replies.jsonl" + message):
        read_replies(path)


def test_what_an_evaluation_here_writes_is_read(tmp_path):
    path = tmp_path / "outputs.jsonl"
    row = {"id": "x", "turn": 1, "hyp": "a b", "ref": "a c", "emotion": None, "predicted": "sad"}
    path.write_text(json.dumps(row) + "\n\n")
    (reply,) = read_replies(path).of("reply")
    assert (reply.reply, reply.reference, reply.emotion, reply.predicted) == ("a b", "a c", None, ("sad",))


def test_turns_may_be_objects_and_replies_tokens(tmp_path):
    path = tmp_path / "replies.jsonl"
    row = {"model": "x", "context": [{"role": "speaker", "text": "hi "}], "reply": ["a", "b"], "reference": "a"}
    path.write_text(json.dumps(row))
    assert read_replies(path).of("x")[0].context == ("hi",)
    assert read_replies(path).of("x")[0].reply == "a b"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("reply,reference\na,b,c\n", r":2: 3 cells, the header has 2"),
        ('reply,reference\na,b\n"a,b\nc,d\n', r":3: not readable as CSV: .*quotation mark may not be closed"),
        ("reply,reply\na,b\n", r":1: a column name occurs twice"),
        ("text,reference\na,b\n", r":2: no reply: found 'text', 'reference'"),
        ("reply,reference\n", r" holds no row"),
    ],
)
def test_malformed_tables(text, message, tmp_path):
    path = tmp_path / "replies.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=r"replies.csv" + message):
        read_replies(path)


def test_a_table_with_a_column_for_each_system(tmp_path):
    path = tmp_path / "replies.tsv"
    path.write_text("reference\treply:A\treply:B\nx y\ta\tb, c\nz\t\td\n")
    file = read_replies(path, "csv")
    assert file.systems == ("A", "B")
    assert [reply.reply for reply in file.of("B")] == ["b, c", "d"]
    assert file.blank_lines("A") == (3,)


@pytest.mark.parametrize("format", FORMATS)
def test_empty_missing_or_foreign_files(format, tmp_path):
    path = tmp_path / "file.txt"
    with pytest.raises(DataError, match="no such file"):
        read_replies(path, format)
    for nothing in (b"", b"\n \r\n", b"\xef\xbb\xbf\n", gzip.compress(b"")):
        path.write_bytes(nothing)
        with pytest.raises(DataError, match=r"file.txt is empty"):
            read_replies(path, format)
    path.write_bytes("Emotion: sad\nref: \xe9\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"file.txt:2: byte 0xe9 is not UTF-8"):
        read_replies(path, format)
    path.write_bytes("Emotion: sad".encode("utf-16"))
    with pytest.raises(DataError, match=r"is UTF-16; save it as UTF-8"):
        read_replies(path, format)
    with pytest.raises(DataError, match="is a folder"):
        read_replies(tmp_path, format)


def test_a_format_that_cannot_be_told(tmp_path):
    path = tmp_path / "replies.txt"
    path.write_text("i am sorry .\nthat is great !\n")
    with pytest.raises(DataError, match=r"cannot be told.*--format \(moel, mime.*--hyp and --ref"):
        read_replies(path)
    with pytest.raises(ConfigError, match=r"unknown format 'moell'. Did you mean 'moel'"):
        read_replies(path, "moell")
    with pytest.raises(ConfigError, match=r"no system 'MOEL'.*Found: trs, trs\+multitask, MOE"):
        read_replies(SAMPLES / "moel.txt").of("MOEL")


def test_foreign_emotions_are_noted(tmp_path):
    path = broken(tmp_path, "moel.txt", "Emotion: lonely", "Emotion: Grumpy")
    file = read_replies(path)
    assert file.of("trs")[1].emotion == "grumpy"
    assert file.notes == ("emotions outside the taxonomy: grumpy",)


# -- text files ----------------------------------------------------------------------------------------------


def test_text_files(tmp_path):
    hyp, ref, context = tmp_path / "hyp.txt", tmp_path / "ref.txt.gz", tmp_path / "context.txt"
    hyp.write_bytes(b"\xef\xbb\xbfa b\r\n\r\nc\xe2\x80\xa8d")  # a line separator inside a reply ends no line
    ref.write_bytes(gzip.compress(b"a\nb\nc\n"))
    context.write_text('["hi", "yes"]\none\ttwo\n[not json] three\n')
    file = read_texts(hyp, ref, context)
    assert file.systems == ("hyp.txt",)
    assert [(r.reply, r.reference, r.context) for r in file.of("hyp.txt")] == [
        ("a b", "a", ("hi", "yes")),
        ("", "b", ("one", "two")),
        ("c\u2028d", "c", ("[not json] three",)),
    ]
    assert file.blank_lines("hyp.txt") == (2,)
    assert read_texts(hyp, None).of("hyp.txt")[0].reference is None


def test_text_files_of_different_lengths(tmp_path):
    hyp, ref = tmp_path / "hyp.txt", tmp_path / "ref.txt"
    hyp.write_text("a\nb\nc\n")
    ref.write_text("a\nb\n")
    with pytest.raises(DataError, match=r"hyp.txt has 3 lines, .*ref.txt has 2 lines: line 3 has no counterpart"):
        read_texts(hyp, ref)
    ref.write_text("")
    with pytest.raises(DataError, match=r"ref.txt is empty"):
        read_texts(hyp, ref)


def test_the_released_file_of_moel(data_folder):
    """5,255 items of four systems; in one item the reference stands before the last system."""
    path = data_folder / "peer_outputs" / "moel_repo_generation_result.txt.gz"
    if not path.is_file():
        pytest.skip(f"no {path.name} in EMPATHEIA_DATA")
    file = read_replies(path)
    assert (file.format, file.systems) == ("moel", ("trs", "trs+multitask", "MOE", "MOE+oracle"))
    assert {len(file.of(system)) for system in file.systems} == {5255}
    assert [len(r.context) for r in file.of("MOE")].count(1) == 2542  # check 20 of the baselines
    assert sum(len(r.context) >= 3 for r in file.of("MOE")) == 2713
    assert file.notes == ()
    assert not any(file.blank_lines(s) or file.blank_reference_lines(s) for s in file.systems)


@pytest.mark.parametrize(
    ("content", "line", "what"),
    [
        ("a b\rc d\r", 1, "a carriage return inside it"),
        ("a b\nc\rd\n", 2, "a carriage return inside it"),
        ("a b\nc\0 d\n", 2, "a NUL byte; is it UTF-16"),
    ],
)
def test_lines_that_would_be_counted_wrongly(tmp_path, content, line, what):
    """Lines with carriage returns alone would be one item: a file and its reference would match with one pair."""
    path = tmp_path / "replies.txt"
    path.write_bytes(content.encode())
    with pytest.raises(DataError, match=rf"replies.txt:{line}: the line holds {what}"):
        read_texts(path, path)
    path.write_bytes(content.replace("\r", "\r\r\n").replace("\0", "").encode())
    assert len(read_texts(path, path).replies[path.name]) >= 2


def test_a_table_with_carriage_returns_alone(tmp_path):
    path = tmp_path / "replies.csv"
    path.write_bytes(b"reply,reference\ra,b\rc,d\r")
    with pytest.raises(DataError, match=r"replies.csv:1: the line holds a carriage return"):
        read_replies(path)


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ({"reply": "a", "hyp": "b"}, "'reply' and 'hyp' can both be the reply"),
        ({"reply": "a", "ref": "b", "target": "c"}, "'ref' and 'target' can both be the reference"),
        ({"reply": "a", "replies": {"x": "b"}}, "a reply and the replies of several systems"),
        ({"reply": "a", "reply:x": "b"}, "a reply and the replies of several systems"),
    ],
)
def test_two_fields_for_one_thing_are_refused_and_none_is_dropped(tmp_path, row, what):
    path = tmp_path / "replies.jsonl"
    path.write_text(json.dumps(row))
    with pytest.raises(DataError, match=rf"replies.jsonl:1: {what}.* keep or rename one of them"):
        read_replies(path)
    path.write_text(json.dumps({"reply": "a", "hyp": None, "reference": "b"}))
    assert read_replies(path).of("reply")[0].reply == "a"


def test_a_blank_line_in_a_table_of_one_column_is_no_dropped_reply(tmp_path):
    path = tmp_path / "replies.csv"
    path.write_text("reply\na\n\nb\n")
    with pytest.raises(DataError, match=r'replies.csv:3: a blank line; write "" for a blank reply'):
        read_replies(path)
    path.write_text('reply\na\n""\nb\n\n\n')
    assert read_replies(path).blank_lines("reply") == (3,)


def test_systems_with_other_references_are_noted(tmp_path):
    path = tmp_path / "replies.jsonl"
    rows = [("A", "g"), ("A", "h"), ("B", "g"), ("B", "i")]
    path.write_text("\n".join(json.dumps({"system": s, "reply": "x", "ref": r}) for s, r in rows))
    (note,) = read_replies(path).notes
    assert note == "references of A and B differ, first at lines 2 and 4: their scores are of different items"


@pytest.mark.parametrize("name", EXPECTED)
def test_a_file_without_any_one_of_its_lines_is_refused_or_reads_all_that_is_left(tmp_path, name):
    """Neither a lost line nor a cut end may drop an item or pair a reply with another item's reference."""
    whole = read_replies(SAMPLES / name)
    known = {system: {(r.reply, r.reference) for r in whole.of(system)} for system in whole.systems}
    lines = (SAMPLES / name).read_text().splitlines(keepends=True)
    path = tmp_path / name
    for i in range(len(lines)):
        for left in (lines[:i] + lines[i + 1 :], lines[:i]):
            path.write_text("".join(left))
            try:
                file = read_replies(path, whole.format)
            except DataError as error:
                assert path.name in str(error)
                continue
            for system in file.systems:
                assert {(r.reply, r.reference) for r in file.of(system)} <= known[system], (i, system)
                starts = sum(line.lower().startswith("emotion:") for line in left)
                assert len(file.of(system)) == starts or whole.format in ("jsonl", "csv")


def test_labels_are_read_in_small_letters(tmp_path):
    text = (SAMPLES / "cem.txt").read_text(encoding="utf-8")
    path = tmp_path / "cem.txt"
    path.write_text(re.sub(r"(?m)^(Emotion|Pred Emotions): .*", lambda found: found[0].title(), text), encoding="utf-8")
    assert "Sad" in path.read_text(encoding="utf-8")
    whole, shouted = read_replies(SAMPLES / "cem.txt"), read_replies(path, "cem")
    for system in whole.systems:
        assert [(r.emotion, r.predicted) for r in shouted.of(system)] == [
            (r.emotion, r.predicted) for r in whole.of(system)
        ]


def test_a_system_is_found_by_its_name_in_any_case_if_only_one_fits():
    own = (SystemReply("Ours", "I see.", None, line=1), SystemReply("Ours", "", "", line=4))
    file = ReplyFile(Path("a.csv"), "csv", {"Ours": own, "A": own, "a": own[:1]})
    assert file.of("ours") is file.of("Ours") is own and file.of("a") == own[:1]
    with pytest.raises(ConfigError, match=r"a\.csv has no system 'our'\. Did you mean 'Ours'"):
        file.of("our")
    twice = ReplyFile(Path("a.csv"), "csv", {"Ours": own, "OURS": own[:1]})
    with pytest.raises(ConfigError, match=r"no system 'ours'.*Found: Ours, OURS"):
        twice.of("ours")
    assert (file.blank_lines("Ours"), file.blank_reference_lines("Ours")) == ((4,), (4,))
