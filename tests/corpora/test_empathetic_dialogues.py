"""The official format on hand-made files, and the official counts on the real ones."""

from __future__ import annotations

import gzip
import logging
from collections import Counter

import pytest

from empatheia.errors import DataError, MissingResourceError
from empatheia.records.dialogue import Turn
from empatheia.taxonomy import EMOTIONS
from empatheia_research.corpora import empathetic_dialogues as ed
from empatheia_research.decoding.reply_index import candidate_texts

HEADER = "conv_id,utterance_idx,context,prompt,speaker_idx,utterance,selfeval,tags\n"
GOOD = HEADER + (
    "hit:0_conv:1,1,sad,My dog_comma_ Rex_comma_ died.,7,  He was 12_comma_ you know. ,5|5|5_2|2|5,\n"
    'hit:0_conv:1,2,sad,My dog_comma_ Rex_comma_ died.,9,"Oh no" is all I can say.,5|5|5_2|2|5,\n'
    "hit:1_conv:2,1,joyful,A party!,9,Cake 🎂,,<POLITICAL>\n"
)


def write(tmp_path, content, name="train.csv"):
    folder = tmp_path / "empatheticdialogues"
    folder.mkdir(exist_ok=True)
    raw = content.encode() if isinstance(content, str) else content
    (folder / name).write_bytes(raw)
    return tmp_path


def test_fields_are_decoded(tmp_path):
    corpus = ed.load("train", root=write(tmp_path, GOOD))
    first, second = corpus
    assert first.id == "hit:0_conv:1"
    assert first.turns == (
        Turn("speaker", "He was 12, you know."),
        Turn("listener", '"Oh no" is all I can say.'),
    )
    assert (first.emotion, first.situation) == ("sad", "My dog, Rex, died.")
    assert first.source == "empathetic_dialogues/train"
    assert second.turns == (Turn("speaker", "Cake 🎂"),)
    assert corpus.problems == ()
    assert corpus.notes == ("2 conversations and 3 utterances; the official train split has 19,533 and 84,169.",)


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_gzip_and_byte_order_mark(tmp_path, ends, packed, mark):
    raw = (mark + GOOD.replace("\n", ends)).encode()
    root = write(tmp_path, gzip.compress(raw) if packed else raw, "valid.csv" + (".gz" if packed else ""))
    assert [d.turns for d in ed.load("validation", root=root)] == [d.turns for d in ed.read(write_plain(tmp_path), "x")]


def write_plain(tmp_path):
    (tmp_path / "plain.csv").write_text(GOOD, encoding="utf-8")
    return tmp_path / "plain.csv"


def test_unicode_line_separators_do_not_end_a_row(tmp_path):
    root = write(tmp_path, GOOD.replace("Cake 🎂", "Cake\u2028and\x0btea\x85!"))
    assert ed.load("train", root=root)[1].turns[0].text == "Cake\u2028and\x0btea\x85!"


def test_candidates_of_the_ninth_field(tmp_path):
    rows = HEADER + ("c,1,sad,p,1,Hi,,,\nc,2,sad,p,2,Hello_comma_ you,,,Hello_comma_ you|left_pipe_right| blank \n")
    corpus = ed.load("test", root=write(tmp_path, rows, "test.csv"))
    assert corpus.candidates == {("c", 1): ("Hello, you", "left|right", "blank")}


def test_wrapped_quotes_are_undone_only_where_certain():
    assert ed.decode('"She said ""go""_comma_ so I did"') == 'She said "go", so I did'
    for kept in ('"Go" and "stay"', '"just quoted"', '""', '"""', 'a ""b"" c'):
        assert ed.decode(kept) == kept


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("c,2,sad,p,2,a, b, c,,\n", "3: 10 fields, expected 8 or 9"),
        ("c,2,sad,p\n", "3: 4 fields"),
        ("c,2,sad,p,1,well, I see,,\n", "3: speaker_idx '1', selfeval ' I see': a comma in a text"),
        ("c,2,sad,p, q,1,x,,\n", "3: speaker_idx ' q'"),
        ("\n", "3: 1 fields"),
        ("c,3,sad,p,1,x,,\n", "3: utterance_idx '3' in 'c', expected 2"),
        ("c,two,sad,p,1,x,,\n", "3: utterance_idx 'two'"),
        ("c,2,angry,p,1,x,,\n", "3: context 'angry' differs from 'sad'"),
        ("c,2,sadd,p,1,x,,\n", "3: unknown emotion or intent 'sadd'.*Did you mean 'sad'"),
        ("c,2,sad,p,1,   ,,\n", "3: empty utterance 2 in 'c'"),
        (",1,sad,p,1,x,,\n", "3: empty conv_id"),
    ],
)
def test_bad_rows_are_reported_and_the_rest_is_kept(tmp_path, caplog, row, reason):
    content = HEADER + "c,1,sad,p,1,Hi,,\n" + row + "d,1,angry,q,1,There,,\nd,2,angry,q,2,Here,,\n"
    root = write(tmp_path, content)
    with caplog.at_level(logging.WARNING, "empatheia.reading"):
        corpus = ed.load("train", root=root)
    assert [len(d.turns) for d in corpus] == [1, 2]
    assert len(corpus.problems) == 1
    assert corpus.problems[0].line == 3
    assert "train.csv:3: " in caplog.text
    with pytest.raises(DataError, match=r"train\.csv:" + reason):
        ed.load("train", root=root, strict=True)


def test_rows_after_a_bad_one_are_reported_too(tmp_path):
    rows = "".join(f"c,{i},sad,p,1,x{i},,\n" for i in (1, 2, 4, 5))
    corpus = ed.load("train", root=write(tmp_path, HEADER + rows))
    assert [t.text for t in corpus[0].turns] == ["x1", "x2"]
    assert [(p.line, "could not be used" in p.reason) for p in corpus.problems] == [(4, False), (5, True)]


def test_conversation_in_two_places(tmp_path):
    rows = "c,1,sad,p,1,a,,\nd,1,sad,p,1,b,,\nc,2,sad,p,2,c,,\n"
    corpus = ed.load("train", root=write(tmp_path, HEADER + rows))
    assert [len(d.turns) for d in corpus] == [1, 1]
    assert "continues after another one began" in corpus.problems[0].reason


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"train\.csv:1: header is ''"),
        ("a,b,c\n1,2,3\n", r"header is 'a,b,c'.* empatheia data get empathetic_dialogues"),
        (HEADER, r"no conversation in this file \(0 rows"),
        (HEADER + "nonsense\n", r"no conversation in this file \(1 rows"),
        (HEADER.encode() + b"c,1,sad,p,1,caf\xe9,,\n", r"train\.csv:2: byte 0xe9 is not UTF-8"),
        (gzip.compress(GOOD.encode())[:-9], "damaged or truncated gzip"),
    ],
)
def test_foreign_and_damaged_files(tmp_path, content, message):
    with pytest.raises(DataError, match=message):
        ed.load("train", root=write(tmp_path, content))


def test_strict_wants_the_official_counts(tmp_path):
    with pytest.raises(DataError, match="2 conversations and 3 utterances; the official train split has 19,533"):
        ed.load("train", root=write(tmp_path, GOOD), strict=True)


def test_missing_file_names_the_command(no_data):
    with pytest.raises(MissingResourceError, match=r"train\.csv.*data get empathetic_dialogues.*EMPATHEIA_DATA"):
        ed.load("train")
    with pytest.raises(DataError, match="unknown split 'trian'; accepted: train, valid, test"):
        ed.load("trian")


# Rashkin et al., specification section 1.3: lengths of the official files.
LENGTHS = {
    "train": [2, 5, 20, 15136, 3421, 463, 218, 268],
    "valid": [1, 1, 0, 2034, 572, 94, 29, 39],
    "test": [0, 1, 8, 1986, 418, 65, 29, 40],
}
# Rashkin et al. (2018), Table 7, per cent of all conversations
SHARES = {
    "surprised": 5.15, "excited": 3.77, "annoyed": 3.53, "proud": 3.49, "angry": 3.47, "sad": 3.45, "grateful": 3.28,
    "lonely": 3.28, "impressed": 3.24, "afraid": 3.21, "disgusted": 3.17, "confident": 3.16, "terrified": 3.15,
    "hopeful": 3.14, "anxious": 3.11, "joyful": 3.10, "disappointed": 3.10, "prepared": 3.08, "guilty": 3.06,
    "furious": 3.05, "nostalgic": 3.05, "jealous": 3.05, "anticipating": 3.03, "embarrassed": 2.98, "content": 2.97,
    "devastated": 2.87, "sentimental": 2.81, "caring": 2.75, "trusting": 2.62, "ashamed": 2.53, "apprehensive": 2.45,
    "faithful": 1.92,
}  # fmt: skip
PAIRS = {"train": (64_636, 40_254), "valid": (9_308, 5_738), "test": (8_426, 5_259)}


@pytest.mark.real_data
@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_official_counts(data_folder, split):
    corpus = ed.load(split, root=data_folder, strict=True)
    lengths = Counter(len(d.turns) for d in corpus)
    absent = int(split == "train" and len(corpus) == 19_532)
    lengths[4] += absent
    assert [lengths[n] for n in range(1, 9)] == LENGTHS[split]
    assert len(corpus) + absent == ed.OFFICIAL[split][0]
    every, listener = PAIRS[split]
    assert sum(len(d.examples()) for d in corpus) + 2 * absent == listener
    assert sum(len(d.examples(("speaker", "listener"))) for d in corpus) + 3 * absent == every
    assert corpus.problems == ()
    assert ("24849" in "".join(corpus.notes)) == bool(absent)


@pytest.mark.real_data
@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_rows_have_the_official_fields(data_folder, split):
    """Check A of Rashkin et al.: 8 names, 8 fields in train, 8 or 9 in valid and test."""
    file = next((data_folder / "empatheticdialogues").glob(f"{split}.csv*"))
    raw = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    header, *rows = raw.decode().removesuffix("\n").split("\n")
    assert header.split(",") == HEADER.strip().split(",") and len(header.split(",")) == 8
    assert {len(row.split(",")) for row in rows} <= ({8} if split == "train" else {8, 9})


@pytest.mark.real_data
def test_without_the_last_two_conversations_of_each_file_there_are_the_familys_pairs(data_folder):
    """Check C of Rashkin et al.: 40,250, 5,734 and 5,255; a train file without conv:24849 lacks one of the two."""
    for split, pairs in (("train", 40_250), ("valid", 5_734), ("test", 5_255)):
        corpus = ed.load(split, root=data_folder)
        absent = int(split == "train" and len(corpus) == 19_532)
        assert sum(len(d.examples()) for d in corpus.dialogues[: len(corpus) - 2 + absent]) == pairs


@pytest.mark.real_data
@pytest.mark.parametrize("split", ["valid", "test"])
def test_every_listener_row_lists_100_candidates_with_the_gold_reply(data_folder, split):
    """Check H of Rashkin et al."""
    corpus = ed.load(split, root=data_folder)
    if not corpus.candidates:
        pytest.skip(f"{split}.csv has no candidates (a copy rebuilt from texts that lack the ninth field)")
    by_id = corpus.by_id()
    assert len(corpus.candidates) == PAIRS[split][1]
    for (id, turn), candidates in corpus.candidates.items():
        assert len(candidates) == 100
        assert by_id[id].turns[turn].text.strip() in {candidate.strip() for candidate in candidates}


@pytest.mark.real_data
def test_ids_labels_and_shares(data_folder):
    splits = {s: ed.load(s, root=data_folder) for s in ("train", "valid", "test")}
    ids = [d.id for c in splits.values() for d in c]
    numbers = sorted(int(id.rsplit(":", 1)[1]) for id in ids)
    absent = 24_850 - len(ids)
    assert numbers == list(range(24_850 - absent))
    shares = Counter(d.emotion for c in splits.values() for d in c)
    shares["surprised"] += absent
    assert set(shares) == set(EMOTIONS)
    assert {name: round(100 * n / 24_850, 2) for name, n in shares.items()} == SHARES
    for id in ids:  # one HIT holds two conversations
        hit, number = (int(part.partition(":")[2]) for part in id.split("_"))
        assert number // 2 == hit
    assert all("_comma_" not in t.text for c in splits.values() for d in c for t in d.turns)


@pytest.mark.real_data
def test_ready_replies_of_the_training_split(data_folder):
    """Specification of Rashkin et al., 2.3: of 64,633 targets 13,946 are too long, 49,199 different ones are left."""
    dialogues = ed.load("train", root=data_folder).dialogues
    targets = [turn.text for dialogue in dialogues for turn in dialogue.turns[1:]]
    assert len(targets) == 64_633
    assert len(candidate_texts(targets)) == 49_199


@pytest.mark.real_data
def test_first_conversations(data_folder):
    """Check F of Rashkin et al."""
    first = ed.load("train", root=data_folder).dialogues[0]
    assert (first.id, first.emotion, len(first.turns)) == ("hit:0_conv:1", "sentimental", 6)
    first = ed.load("test", root=data_folder).dialogues[0]
    assert (first.id, first.emotion, len(first.turns)) == ("hit:0_conv:0", "guilty", 5)
    assert first.turns[1].text.strip() == "Did you suffer any injuries?"
