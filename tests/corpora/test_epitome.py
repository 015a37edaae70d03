"""EPITOME: three files joined, rationales found, duplicates merged, one split for everybody."""

from __future__ import annotations

import csv
from collections import Counter

import pytest

from empatheia.errors import DataError, MissingResourceError
from empatheia.records.dialogue import Dialogue
from empatheia.taxonomy import MECHANISMS
from empatheia_research.corpora import epitome
from empatheia_research.corpora.loading import sample_root

SPLITS = ("train", "valid", "test")


def write(folder, rows, mechanisms=MECHANISMS):
    """``rows``: (sp_id, rp_id, seeker, response, {mechanism: (level, rationales)})."""
    (folder / "epitome").mkdir(exist_ok=True)
    for mechanism in mechanisms:
        path = folder / "epitome" / epitome.FILES[mechanism]
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["sp_id", "rp_id", "seeker_post", "response_post", "level", "rationales"])
            for sp, rp, seeker, response, labels in rows:
                writer.writerow([sp, rp, seeker, response, *labels.get(mechanism, (0, ""))])
    return folder


def one(response, rationales, level=2):
    return ("s1", "r1", "My dog\nis ill.", response, {"interpretation": (level, rationales)})


def test_rationales_become_spans(tmp_path):
    """P7: a rationale with ``?`` and ``(`` is text, not a pattern."""
    response = "Hm. Like school? (or work)  Do you\nsleep?"
    corpus = epitome.load("all", root=write(tmp_path, [one(response, "Like school? (or work)|Do you sleep?|")]))
    (dialogue,) = corpus
    label = corpus.mechanisms[dialogue.id][MECHANISMS.index("interpretation")]
    assert [span.of(dialogue.turns) for span in label.rationales] == ["Like school? (or work)", "Do you\nsleep?"]
    assert (label.level, label.n_lost) == (2, 0)
    assert (corpus.counts["rationales exact"], corpus.counts["rationales blanks"]) == (1, 1)
    assert dialogue.turns[0].text == "My dog\nis ill."
    assert [turn.role for turn in dialogue.turns] == ["speaker", "listener"]


@pytest.mark.parametrize(
    ("part", "text", "found", "how"),
    [
        ("be well", "please be well", "be well", "exact"),
        ("be  well", "please be\twell!", "be\twell", "blanks"),
        ("be well <3", "please be well &lt;3 bye", "be well &lt;3", "repaired"),
        ("you & I", "you &amp; I", "you &amp; I", "repaired"),
        ("us on this know", "most of us on this subreddit know", "us on this subreddit know", "repaired"),
        (";nobody is alone in this", "&gt; Nobody is alone in this", "Nobody is alone in this", "aligned"),
    ],
)
def test_locate(part, text, found, how):
    start, end, way = epitome.locate(part, text)  # pyright: ignore[reportGeneralTypeIssues]
    assert (text[start:end], way) == (found, how)


@pytest.mark.parametrize(
    ("part", "text"), [("not here", "something else"), ("  ", "text"), ("&lt;", ""), ("reddit", "x")]
)
def test_locate_nothing(part, text):
    assert epitome.locate(part, text) is None


def test_lost_rationale_is_told(tmp_path):
    corpus = epitome.load("all", root=write(tmp_path, [one("Do you sleep?", "nowhere to be found|Do you|")]))
    label = corpus.mechanisms["s1/r1"][1]
    assert label.n_lost == 1 and len(label.rationales) == 1
    assert corpus.counts["rationales lost"] == 1
    assert "rationale 'nowhere to be found' is not in the response" in corpus.problems[0].reason
    with pytest.raises(DataError, match="nowhere to be found"):
        epitome.load("all", root=tmp_path, strict=True)


def test_duplicates_and_versions(tmp_path):
    first, again = one("I know.", "I know.|"), one("I know.", "", level=0)
    corpus = epitome.load("all", root=write(tmp_path, [first, again, first]))
    assert len(corpus) == 1
    assert corpus.mechanisms["s1/r1"][1].level == 2
    assert corpus.counts["duplicate rows"] == 2
    assert corpus.counts["interpretation: repeated pairs with another level"] == 1
    write(tmp_path, [("s1", "r1", "Hi", "So I found this helpful.", {"emotional reaction": (1, "found this helpful")})])
    kept = ("s1", "r1", "Hi", "So  I found this reddit helpful.", {})
    corpus = epitome.load("all", root=write(tmp_path, [kept], ("interpretation", "exploration")))
    assert corpus[0].turns[1].text == "So  I found this reddit helpful."
    (span,) = corpus.mechanisms["s1/r1"][0].rationales
    assert span.of(corpus[0].turns) == "found this reddit helpful"
    assert corpus.counts["response posts in two versions"] == 1


def test_bad_rows(tmp_path, no_data):
    write(tmp_path, [one("I know.", ""), ("s2", "r2", "a", "b", {"exploration": (7, "")}), ("", "r3", "a", "b", {})])
    corpus = epitome.load("all", root=tmp_path)
    assert [d.id for d in corpus] == ["s1/r1"]
    reasons = [problem.reason for problem in corpus.problems]
    assert "level '7', accepted: 0, 1, 2; row left out" in reasons
    assert "no sp_id or rp_id; row left out" in reasons
    assert "pair 's2/r2' is not in this file; left out" in reasons
    (tmp_path / "epitome" / epitome.FILES["exploration"]).write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=r"explorations-reddit.csv:1: no column sp_id"):
        epitome.load("train", root=tmp_path)
    with pytest.raises(MissingResourceError, match="Empathy-Mental-Health"):
        epitome.load("train")
    with pytest.raises(DataError, match="unknown split 'dev2'"):
        epitome.load("dev2", root=sample_root())


def test_level_0_needs_no_rationale(tmp_path):
    corpus = epitome.load("all", root=write(tmp_path, [one("I know.", "I know.|", level=0)]))
    assert corpus.mechanisms["s1/r1"][1] == epitome.MechanismLabel(0)
    assert corpus.counts["interpretation: level 0 with a rationale"] == 1


def test_near_duplicates_stay_together():
    long = "one two three four five six seven eight nine ten eleven twelve"
    pairs = {
        "s1/r1": ("a seeker", long),
        "s2/r2": ("another seeker", long.replace("twelve", "thirteen").upper()),
        "s3/r3": ("a third one", "quite another answer"),
        "s3/r4": ("a third one", "and yet another"),
        "s5/r5": ("me", "Same here!"),
        "s6/r6": ("you", "same  here"),
        "s7/r7": ("they", "same"),
    }
    dialogues = [_dialogue(id, *texts) for id, texts in pairs.items()]
    groups = epitome.near_duplicates(dialogues)
    assert groups["s1/r1"] == groups["s2/r2"]
    assert groups["s3/r3"] == groups["s3/r4"]
    assert groups["s5/r5"] == groups["s6/r6"]
    assert len(set(groups.values())) == 4


def _dialogue(id, *texts):
    return Dialogue.of(*texts, id=id)


def test_split_follows_from_ids_not_from_order():
    corpus = epitome.load("all", root=sample_root())
    forward = epitome.split_pairs(corpus.dialogues, corpus.mechanisms)
    assert epitome.split_pairs(corpus.dialogues[::-1], corpus.mechanisms) == forward
    assert Counter(forward.values()) == {"train": 30, "valid": 2, "test": 8}


def test_sample_is_in_the_official_format():
    splits = {split: epitome.load(split, root=sample_root(), strict=True) for split in SPLITS}
    for m in range(3):
        assert {labels[m].level for labels in splits["train"].mechanisms.values()} == {0, 1, 2}
    for corpus in splits.values():
        assert not corpus.problems and not corpus.notes
        for dialogue in corpus:
            for label in corpus.mechanisms[dialogue.id]:
                assert label.is_present == (label.level > 0) == bool(label.rationales)
                assert all(span.turn == 1 and span.of(dialogue.turns) for span in label.rationales)


@pytest.fixture(scope="module")
def whole(data_folder):
    return epitome.load("all", root=data_folder, strict=True)


@pytest.mark.real_data
def test_counts(whole):
    """P10, and check 25 of Chen et al.: 3,084 rows a file, 3,023 pairs, released level counts (strict checks these)."""
    assert (whole.counts["rows"], len(whole)) == (3_084, 3_023)
    assert whole.counts["duplicate rows"] == 61
    conflicts = [whole.counts[f"{m}: repeated pairs with another level"] for m in MECHANISMS]
    assert conflicts == [10, 10, 5]
    assert [whole.counts[f"{m}: above 0 without a rationale"] for m in MECHANISMS] == [2, 10, 1]


@pytest.mark.real_data
def test_yes_rates(whole):
    """Check 24 of Chen et al.: levels 1 and 2 are "yes"; rates over the released rows, which ``whole`` has counted."""
    rates = [round(sum(counts[1:]) / 3_084, 4) for counts in epitome.LEVEL_COUNTS.values()]
    assert rates == [0.3395, 0.4728, 0.1556]


@pytest.mark.real_data
def test_every_rationale_is_found(whole):
    assert whole.counts["rationales lost"] == 0
    assert not whole.problems
    found = {how: whole.counts[f"rationales {how}"] for how in ("exact", "blanks", "repaired", "aligned")}
    assert found == {"exact": 3_127, "blanks": 160, "repaired": 29, "aligned": 1}
    assert sum(found.values()) == sum(whole.counts[f"{m}: rationales"] for m in MECHANISMS)


@pytest.mark.real_data
def test_split(whole, data_folder):
    splits = {split: epitome.load(split, root=data_folder) for split in SPLITS}
    ids = {split: [d.id for d in corpus] for split, corpus in splits.items()}
    assert {split: len(own) for split, own in ids.items()} == {"train": 2_267, "valid": 151, "test": 605}
    where = {id: split for split, own in ids.items() for id in own}
    assert len(where) == len(whole)
    for id, leader in epitome.near_duplicates(whole.dialogues).items():
        assert where[id] == where[leader]
    for m in range(3):  # every split has its share of every level
        for level in (0, 1, 2):
            n = Counter(split for id, split in where.items() if whole.mechanisms[id][m].level == level)
            assert abs(n["test"] - 0.2 * n.total()) <= 6


@pytest.mark.real_data
def test_sample_is_not_taken_from_the_corpus(whole):
    real = {turn.text.casefold() for d in whole for turn in d.turns}
    own = {turn.text.casefold() for d in epitome.load("all", root=sample_root()) for turn in d.turns}
    assert not own & real
