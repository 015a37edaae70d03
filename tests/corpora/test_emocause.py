"""EmoCause by path: the official form, shifted indices, damaged items, archives."""

from __future__ import annotations

import hashlib
import json
import zipfile

import pytest

from empatheia.errors import DataError, MissingResourceError
from empatheia.taxonomy import EMOTIONS
from empatheia_research.corpora import CORPORA, emocause, facts_of, sample, splits_of
from empatheia_research.corpora.licences import licence


def item(**changes):
    own = {
        "original_situation": "A bear ran over the road_comma_ then a bear sat down.",
        "tokenized_situation": [
            "A",
            "bear",
            "ran",
            "over",
            "the",
            "road",
            ",",
            "then",
            "a",
            "bear",
            "sat",
            "down",
            ".",
        ],
        "emotion": "__surprised__",
        "conv_id": "hit:1_conv:2",
        "annotation": [["bear", 1], ["road", 5]],
        "labels": ["bear", "road"],
    }
    return {**own, **changes}


def write(path, *items):
    path.write_text(json.dumps(list(items)), encoding="utf-8")
    return path


@pytest.mark.parametrize("split", ["valid", "test"])
def test_the_sample_is_whole(split):
    corpus = emocause.load(split, root=sample.root(), strict=True)
    assert len(corpus) == len(corpus.items) >= 6 and not corpus.notes
    for dialogue, note, own in zip(corpus, corpus.annotations, corpus.items, strict=True):
        assert dialogue.emotion in EMOTIONS and dialogue.turns[0].text == dialogue.situation == own.text
        assert [span.of(dialogue.turns) for span in note.spans] == list(own.words)
        assert [own.text[a:b] for a, b in own.tokens if a == b] == []
    assert len({own.emotion for own in corpus.items}) == len(corpus.items)


def test_one_item(tmp_path):
    corpus = emocause.read(write(tmp_path / "mine.json", item()), "test", strict=True)
    own = corpus.items[0]
    assert (own.emotion, own.text[18:26]) == ("surprised", "e road, ")
    assert (own.causes, own.words) == ((1, 5), ("bear", "road"))
    assert own.tokens[9] == (own.text.rindex("bear"), own.text.rindex("bear") + 4)  # the second bear, not the first
    assert corpus.sha256 == hashlib.sha256((tmp_path / "mine.json").read_bytes()).hexdigest()


def test_plain_emotion_and_joined_labels_are_accepted(tmp_path):
    corpus = emocause.read(write(tmp_path / "m.json", item(emotion="surprised", labels="bear road")), strict=True)
    assert corpus.items[0].emotion == "surprised"


def test_shifted_indices_are_refused_with_the_shift(tmp_path):
    shifted = [item(annotation=[["ran", 3], ["road", 6]], labels=["ran", "road"]) for _ in range(3)]
    with pytest.raises(
        DataError, match=r"6 of 6 annotation indices do not point at their word; 6 of them would with -1"
    ):
        emocause.read(write(tmp_path / "m.json", *shifted))
    unknown = [item(annotation=[["wolf", 3]], labels=["wolf"])]
    with pytest.raises(DataError, match=r"1 of 1 annotation indices do not point at their word\. Indices count"):
        emocause.read(write(tmp_path / "m.json", *unknown))


def test_a_few_wrong_indices_are_mended_and_counted(tmp_path, caplog):
    wrong = item(annotation=[["road", 4], ["bear", 99]], labels=["road", "bear"])
    path = write(tmp_path / "m.json", *[item() for _ in range(4)], wrong)
    corpus = emocause.read(path)
    assert corpus.items[-1].causes == (5, -1)  # two bears: no telling which
    assert corpus.items[-1].words == ("road", "bear")
    note = "2 of 10 annotation indices do not point at their word (1 lie beyond the tokens); 1 mended"
    assert note in corpus.notes[0] and note in caplog.text
    with pytest.raises(DataError, match="2 of 10 annotation indices"):
        emocause.read(path, strict=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"emotion": "__hungry__"}, "unknown emotion or intent '__hungry__'"),
        ({"annotation": [["bear", "1"]]}, r"annotation is .* accepted: a list of \[word, index\]"),
        ({"annotation": [["bear", True]]}, "annotation is"),
        ({"tokenized_situation": "A bear"}, "tokenized_situation not a list of texts"),
    ],
)
def test_a_bad_item_is_left_out_and_reported(tmp_path, change, message):
    path = write(tmp_path / "m.json", item(), item(**change))
    corpus = emocause.read(path)
    assert len(corpus) == 1 and "item 1: " in corpus.problems[0].reason
    with pytest.raises(DataError, match=message):
        emocause.read(path, strict=True)


def test_missing_field_and_unfitting_labels(tmp_path):
    short = item()
    del short["labels"]
    with pytest.raises(DataError, match=r"none of its 1 items can be used; the first: item 0: no field labels; found"):
        emocause.read(write(tmp_path / "m.json", short))
    corpus = emocause.read(write(tmp_path / "m.json", item(labels=["bear"]), item(annotation=[], labels=[])))
    assert corpus.counts["items whose labels are not the words of annotation"] == 1
    assert corpus.counts["items without a cause word"] == 1 and len(corpus.notes) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [("{}", "expected a list of items, found dict"), ("[]", "found an empty list"), ("[1,", "m.json:1: not JSON")],
)
def test_not_the_form(tmp_path, content, message):
    (tmp_path / "m.json").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        emocause.read(tmp_path / "m.json")


def test_folder_and_archive(tmp_path):
    write(tmp_path / "valid.json", item())
    assert len(emocause.read(tmp_path, "valid")) == 1
    with pytest.raises(DataError, match=r"no file .*test\.json\. Get EmoCause: "):
        emocause.read(tmp_path, "test")
    archive = tmp_path / "emocause.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("__MACOSX/emocause/valid.json", "x")
        file.writestr("emocause/valid.json", json.dumps([item()]))
    corpus = emocause.read(archive, "valid")
    assert len(corpus) == 1 and "the published archive has f490361039a9" in corpus.notes[-1]
    with pytest.raises(DataError, match=r"no test\.json in this archive; it holds __MACOSX"):
        emocause.read(archive, "test")
    with pytest.raises(DataError, match="the published archive has"):
        emocause.read(archive, "valid", strict=True)


def test_registered(no_data):
    assert CORPORA.get("emocause") is emocause.load and facts_of("emocause").file == "emocause/test.json"
    assert splits_of("emocause") == ("valid", "test")
    assert not licence("emocause").may_train_released_weights
    with pytest.raises(MissingResourceError, match="the archive linked from"):
        emocause.load("test")
    with pytest.raises(DataError, match="unknown split 'train'; accepted: valid, test"):
        emocause.load("train")
