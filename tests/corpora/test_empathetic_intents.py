"""EmpatheticIntents: format, its two faults as options, overlaps, released counts."""

from __future__ import annotations

from collections import Counter

import pytest

from empatheia.errors import ConfigError, DataError, MissingResourceError
from empatheia.taxonomy import EMOTIONS, INTENTS, LABELS_41
from empatheia_research.corpora import CORPORA, empathetic_intents, sample

LINES = {
    "train": [
        "27 <SEP> My Cat died",
        "38 <SEP> how old was she?",
        "40 <SEP> we had a cat too",
        "38 <SEP> how old was she?",
    ],
    "valid": ["0 <SEP> A noise in the attic", "38 <SEP> how old was she?"],
    "test": ["26 <SEP> We WON", "38 <SEP> who won?", "26 <SEP> my  cat DIED"],
}


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "empathetic_intents" / "train_data"
    folder.mkdir(parents=True)
    for split, lines in LINES.items():
        (folder / f"{split}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    names = [f"{name},{i}" for i, name in enumerate(LABELS_41)]
    names[39:] = ["Wishing,39", "neutral,38"]
    (folder / "labels.txt").write_text("\n".join(names), encoding="utf-8")
    return tmp_path


def test_clean_lower_cases_everything_and_names_by_the_taxonomy(root):
    texts = empathetic_intents.read_texts("train", root)
    assert [(t.label_id, t.label, t.text) for t in texts[:3]] == [
        (27, "sad", "my cat died"),
        (38, "questioning", "how old was she?"),
        (40, "neutral", "we had a cat too"),
    ]
    assert [t.is_situation for t in texts] == [True, False, False, False]


def test_repo_keeps_case_and_the_slip_of_the_label_file(root):
    texts = empathetic_intents.read_texts("train", root, variant="repo")
    assert [(t.label_id, t.label, t.text) for t in texts[:3]] == [
        (27, "sad", "My Cat died"),
        (38, "neutral", "how old was she?"),
        (40, "40", "we had a cat too"),
    ]
    assert empathetic_intents.read_label_names(root / "empathetic_intents/train_data/labels.txt")[39] == "wishing"


def test_dropping_overlaps_leaves_later_splits_whole(root):
    kept = {s: [t.text for t in empathetic_intents.read_texts(s, root, overlaps="drop")] for s in LINES}
    assert kept == {
        "train": ["we had a cat too"],
        "valid": ["a noise in the attic", "how old was she?"],
        "test": ["we won", "who won?", "my  cat died"],
    }
    assert empathetic_intents.load("train", root, overlaps="drop").notes[-1].startswith("3 of 4 texts left out")


def test_as_dialogues(root):
    corpus = CORPORA.get("empathetic_intents")("valid", root=root)
    assert [(d.id, d.emotion, d.turns[0].role, d.source) for d in corpus] == [
        ("valid/1", "afraid", "speaker", "empathetic_intents/valid"),
        ("valid/2", "questioning", "listener", "empathetic_intents/valid"),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("no separator", "is not '<id> <SEP> <text>'"),
        ("41 <SEP> x", "label id 41 is not from 0 to 40"),
        ("x <SEP> y", "is not"),
    ],
)
def test_bad_lines_are_reported(root, line, reason):
    path = root / "empathetic_intents/train_data/valid.txt"
    path.write_text(f"{line}\n27 <SEP> still here\n", encoding="utf-8")
    (problem,) = empathetic_intents.load("valid", root).problems
    assert problem.line == 1 and reason in problem.reason
    with pytest.raises(DataError, match=r"valid\.txt:1: "):
        empathetic_intents.load("valid", root, strict=True)
    path.write_text(line, encoding="utf-8")
    with pytest.raises(DataError, match="no example in this file"):
        empathetic_intents.load("valid", root)


def test_wrong_counts_options_and_places(root, tmp_path, no_data):
    with pytest.raises(DataError, match="the released train split has 25,023, 19,533 and 610"):
        empathetic_intents.load("train", root, strict=True)
    with pytest.raises(ConfigError, match="variant is 'raw'; accepted: clean, repo"):
        empathetic_intents.load("train", root, variant="raw")  # type: ignore[arg-type]
    with pytest.raises(MissingResourceError, match="EmpatheticIntents"):
        empathetic_intents.load("train")
    (tmp_path / "labels.txt").write_text("angry 1\n")
    with pytest.raises(DataError, match="is not of the form name,id"):
        empathetic_intents.read_label_names(tmp_path / "labels.txt")


def test_sample_has_every_label_in_every_form():
    train = empathetic_intents.read_texts("train", sample.root(), strict=True)
    assert {t.label for t in train} == set(LABELS_41)
    assert {t.label for t in empathetic_intents.read_texts("test", sample.root())} >= set(INTENTS)
    leak = empathetic_intents.read_texts("train", sample.root(), variant="repo")
    assert all(t.is_situation == (t.text != t.text.lower()) for t in leak)
    assert {t.label for t in leak if t.label_id in (38, 40)} == {"neutral", "40"}


@pytest.mark.real_data
def test_released_counts(data_folder):
    """MEED2 checks, labels: 25,023 + 3,544 + 3,225 lines, 610 / 86 / 78 of each of the ids 32-40."""
    counts = {}
    for split, (lines, situations, each) in empathetic_intents.EXPECTED.items():
        texts = empathetic_intents.read_texts(split, data_folder, strict=True)
        counts[split] = Counter(t.label for t in texts)
        assert len(texts) == lines and sum(t.is_situation for t in texts) == situations
        assert {counts[split][name] for name in INTENTS} == {each} == {situations // 32}
    assert sum(lines for lines, _, _ in empathetic_intents.EXPECTED.values()) == 31_792
    assert [counts[s]["surprised"] for s in ("train", "valid", "test")] == [1004, 148, 125]
    assert [counts[s]["faithful"] for s in ("train", "valid", "test")] == [377, 51, 50]


@pytest.mark.real_data
def test_released_faults(data_folder):
    """The specification's counts of shared lines, repeated lines and texts with several labels."""
    texts = {s: empathetic_intents.read_texts(s, data_folder, variant="repo") for s in ("train", "valid", "test")}
    own = {split: {t.text for t in found} for split, found in texts.items()}
    shared = [("train", "valid", 144), ("train", "test", 112), ("valid", "test", 77)]
    assert [sum(t.text in own[a] for t in texts[b]) for a, b, _ in shared] == [n for _, _, n in shared]
    labels: dict[str, set[int]] = {}
    for item in texts["train"]:
        labels.setdefault(item.text, set()).add(item.label_id)
    assert sum(len(found) > 1 for found in labels.values()) == 148
    assert not any(t.text != t.text.lower() for found in texts.values() for t in found if not t.is_situation)
    assert sum(t.text != t.text.lower() for t in texts["test"]) == 2_376


@pytest.mark.real_data
def test_sample_is_not_taken_from_the_corpus(data_folder):
    splits = ("train", "valid", "test")
    real = {t.text for split in splits for t in empathetic_intents.read_texts(split, data_folder)}
    assert not real & {t.text for split in splits for t in empathetic_intents.read_texts(split, sample.root())}


def test_label_order():
    """MEED2 checks, labels: 41 names, the first 32 sorted, agreeing 32, questioning 38, neutral 40."""
    assert len(LABELS_41) == 41 and list(EMOTIONS) == sorted(EMOTIONS)
    assert [LABELS_41.index(name) for name in ("agreeing", "questioning", "neutral")] == [32, 38, 40]
