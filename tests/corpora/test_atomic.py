"""ATOMIC: official form, other forms, normalisation, duplicates and gaps counted."""

from __future__ import annotations

import gzip
from collections import Counter

import polars as pl
import pytest

from empatheia.errors import ConfigError, DataError, MissingResourceError
from empatheia.taxonomy import RELATIONS
from empatheia_research.corpora import atomic
from empatheia_research.corpora.atomic import AtomicTuple


def write(path, *rows):
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


def test_official_form(tmp_path):
    path = write(
        tmp_path / "train.tsv",
        "PersonX eats ___\txReact\tfull",
        'PersonX says "no"\txIntent\tto be left alone ',
        "person x eats  ___\txReact\tfull",
        "PersonX eats ___\txWant\tnone",
        "PersonX eats ___\toReact\thungry",
        "PersonX eats ___\txNeed\tto see Person Y's cook",
    )
    found = atomic.read(path)
    assert list(found) == [
        AtomicTuple("PersonX eats ___", "xReact", "full", 2),
        AtomicTuple('PersonX says "no"', "xIntent", "to be left alone"),
        AtomicTuple("PersonX eats ___", "xNeed", "to see PersonY's cook"),
    ]
    assert found[0] == next(iter(found)) and len(found) == 3
    counted = {"rows": 6, "none tails": 1, "rows of other relations": 1, "duplicate rows": 1, "tuples": 3, "heads": 2}
    assert {name: found.counts[name] for name in counted} == counted
    assert found.counts["xReact"] == 1 and "no tuple of xWant" in found.notes[1]
    assert found.notes[0] == "train.tsv has 6 rows; 1,076,880 are expected"
    assert found.sha256.keys() == {"train.tsv"}
    assert found.source == atomic.ATTRIBUTION


def test_options(tmp_path):
    path = write(tmp_path / "mine.tsv", "person x eats\txReact\tNone", "person x eats\toReact\tfull")
    kept = atomic.read(path, none="keep", persons="keep", relations=None)
    assert list(kept) == [
        AtomicTuple("person x eats", "xReact", "None"),
        AtomicTuple("person x eats", "oReact", "full"),
    ]
    assert kept.counts["none tails"] == 1
    assert not len(atomic.read(path))
    assert len(atomic.read(path, relations=["OREACT"])) == 1
    for options in ({"none": "maybe"}, {"persons": "x"}, {"relations": ["xReacts"]}):
        with pytest.raises(ConfigError, match=r"accepted|Accepted"):
            atomic.read(path, **options)


def test_other_forms(tmp_path):
    """Check 22: the evaluation sample, with its CSV-quoted fields, aligns with the tuples."""
    whole = write(tmp_path / "split.tsv", "split\thead\trelation\ttail", "tst\tPersonX naps\txReact\trested")
    assert list(atomic.read(whole)) == [AtomicTuple("PersonX naps", "xReact", "rested")]
    sample = write(
        tmp_path / "test.tsv", "PersonX naps @@ xReact\trested|calm|none", 'dog @@ CapableOf\t"say ""woof""|bark"'
    )
    assert [(t.head, t.tail) for t in atomic.read(sample)] == [
        ("PersonX naps", "rested"),
        ("PersonX naps", "calm"),
        ("dog", 'say "woof"'),
        ("dog", "bark"),
    ]
    packed = tmp_path / "dev.tsv.gz"
    packed.write_bytes(gzip.compress(b"PersonX naps\txWant\tto get up\n"))
    assert atomic.read(packed)[0].relation == "xWant"
    both = atomic.read([whole, packed])
    assert both.split == "split.tsv+dev.tsv" and len(both) == 2
    assert len(atomic.read(tmp_path)) == 5  # a folder: its official files


def test_bad_rows_are_told(tmp_path):
    path = write(tmp_path / "x.tsv", "a\txReact\tb", "a\txReact", "a\txRact\tb", "a\txReact\t ", "", "c\txReact\td")
    found = atomic.read(path)
    assert len(found) == 2 and found.counts["empty heads or tails"] == 1
    reasons = [problem.reason for problem in found.problems if problem.line]
    assert reasons == ["2 tab-separated fields, expected 3", "unknown relation 'xRact'"]
    assert [problem.line for problem in found.problems if problem.line] == [2, 3]
    with pytest.raises(DataError, match=r"x\.tsv:2: 2 tab-separated"):
        atomic.read(path, strict=True)
    with pytest.raises(DataError, match="no tuple in it"):
        atomic.read(write(tmp_path / "empty.tsv"))
    for place in (tmp_path / "no.tsv", tmp_path / "folder"):
        (tmp_path / "folder").mkdir(exist_ok=True)
        with pytest.raises(MissingResourceError, match="atomic2020_data-feb2021"):
            atomic.read(place)
    broken = tmp_path / "b.tsv.gz"
    broken.write_bytes(gzip.compress(b"a\txReact\tb\n")[:-6])
    with pytest.raises(DataError, match="damaged or truncated"):
        atomic.read(broken)


def test_relation_names():
    """Figure 6's spelling (9.2, item 7); the 11 are among the 23."""
    assert [atomic.canonical_relation(name) for name in ("XReact", "HasProPerty", " causes")] == [
        "xReact",
        "HasProperty",
        "Causes",
    ]
    assert len(atomic.ALL_RELATIONS) == len(set(atomic.ALL_RELATIONS)) == 23
    assert set(RELATIONS) == set(atomic.RELATION_TUPLES) <= set(atomic.ALL_RELATIONS)
    with pytest.raises(ConfigError, match=r"'xReactt'.*Did you mean 'xReact'"):
        atomic.canonical_relation("xReactt")


def test_sample_is_in_the_official_form():
    root = atomic.sample_root()
    parts = {split: atomic.load(split, root=root, strict=True) for split in ("train", "valid", "test")}
    heads = [set(part.frame["head"]) for part in parts.values()]
    assert not heads[0] & heads[1] and not heads[0] & heads[2] and not heads[1] & heads[2]
    whole = atomic.load("all", root=root, strict=True)
    assert len(whole) == sum(map(len, parts.values())) and whole.is_sample and "MIT" in whole.source
    assert all(whole.counts[name] for name in RELATIONS)
    assert whole.counts["duplicate rows"] and whole.counts["none tails"] and whole.counts["rows of other relations"]
    assert whole.notes == () and whole.problems == ()


def test_where_files_are_looked_for(tmp_path, no_data):
    with pytest.raises(MissingResourceError, match="EMPATHEIA_DATA"):
        atomic.load("all")
    with pytest.raises(DataError, match=r"unknown split 'all of it'.*train"):
        atomic.load("all of it")
    (tmp_path / "atomic").mkdir()
    write(
        tmp_path / "atomic" / "atomic2020_test_subset.tsv", "split\thead\trelation\ttail", "test\tdog\tDesires\ta walk"
    )
    found = atomic.load("all", root=tmp_path)
    assert "not here: train.tsv, dev.tsv" in found.notes[0] and len(found) == 1
    for name in ("train", "dev", "test"):
        write(tmp_path / "atomic" / f"{name}.tsv", f"{name}\tDesires\tfood")
    write(
        tmp_path / "atomic" / "atomic_v4_dev_tst.tsv", "split\thead\trelation\ttail", "dev\tPersonX eats\txReact\tfull"
    )
    assert [path.name for path in atomic.load("all", root=tmp_path).paths] == ["train.tsv", "dev.tsv", "test.tsv"]
    assert atomic.load("dev", root=tmp_path)[0].head == "dev"
    assert atomic.load("v4", root=tmp_path)[0].head == "PersonX eats"


def test_generations(tmp_path):
    line = '{"head": "dog", "relation": "Desires", "tails": ["food"], "generations": [" a walk"], "greedy": " food"}\n'
    path = tmp_path / "g.jsonl"
    path.write_text(line + line.replace("Desires", "oReact"), encoding="utf-8")
    (made,) = atomic.read_generations(path)
    assert (made.generations, made.greedy) == (("a walk",), "food")
    assert len(atomic.read_generations(path, relations=None)) == 2
    path.write_text(line + '{"head": "dog"}\n')
    with pytest.raises(DataError, match=r"g\.jsonl:2: KeyError"):
        atomic.read_generations(path)


@pytest.mark.real_data
def test_real_files(data_folder):
    """Counts of the data folder's notes and of the specification, section 6.3."""
    subset = atomic.load("test", none="keep", persons="keep")
    if subset.paths[0].name.startswith("atomic2020_test_subset"):
        assert (len(subset), subset.counts["heads"]) == (9563, 1576)
        few = ("CapableOf", "HasProperty", "Causes", "xReason", "Desires")
        assert [subset.counts[name] for name in few] == [69, 41, 11, 8, 1]
    older = atomic.load("v4", none="keep", persons="keep")  # 4,850 "none", 52 "NONE", 2 "None"
    assert (len(older), older.counts["none tails"], older.counts["duplicate rows"]) == (118_073, 4904, 0)
    assert [older.counts[name] for name in ("xAttr", "xWant", "xIntent")] == [25_553, 24_610, 12_267]
    whole = atomic.load("all")
    assert isinstance(whole.frame, pl.DataFrame) and whole.counts["duplicate rows"] > 0
    assert any("less than a tenth" in note for note in whole.notes)


@pytest.mark.real_data
def test_real_generations(data_folder):
    """Check 22: 2237 rows of the 11 relations, in the published numbers."""
    made = atomic.read_generations()
    assert len(made) == 2237
    counted = Counter(row.relation for row in made)
    expected = {"xNeed": 396, "xReact": 362, "xWant": 359, "xAttr": 355, "xEffect": 350, "xIntent": 349}
    expected |= {"CapableOf": 31, "HasProperty": 24, "Causes": 9, "xReason": 1, "Desires": 1}
    assert counted == expected
    gold = {(t.head, t.relation) for t in atomic.load("test", none="keep", persons="keep")}
    assert sum((row.head, row.relation) in gold for row in made) == 2237
