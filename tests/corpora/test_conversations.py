"""Dialogue corpora of one JSON object a line: roles, splits, faults, licences."""

from __future__ import annotations

import json

import pytest

from empatheia.errors import ConfigError, DataError, MissingResourceError
from empatheia.records.dialogue import Dialogue, Turn
from empatheia_research.corpora import CORPORA, conversations, reccon
from empatheia_research.corpora.licences import LICENCES, licence

TURNS = [{"speaker": s, "text": t} for s, t in (("M", "Hi."), ("W", "Hello."), ("W", "Sit."), ("M", "Thanks."))]


def write(tmp_path, *lines, name="dream.jsonl", folder="dialogue_corpora"):
    (tmp_path / folder).mkdir(exist_ok=True)
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    (tmp_path / folder / name).write_text("\n".join(texts) + "\n", encoding="utf-8")
    return tmp_path


def roles(dialogue):
    return "".join(turn.role[0] for turn in dialogue.turns)


@pytest.mark.parametrize(
    ("persons", "expected"),
    [
        ("MWWM", "slls"),
        ("ABCA", "slsl"),  # whoever answers is the listener
        ("AABB", "ssll"),
        ("????", "slsl"),  # unknown persons take turns
        (["supporter", "seeker", "seeker", "supporter"], "lssl"),
        (["USER", "SYSTEM"], "sl"),
        ([None, None], "sl"),
    ],
)
def test_persons_become_roles(tmp_path, persons, expected):
    turns = [{"speaker": p, "text": "x"} for p in persons]
    corpus = conversations.load("dream", root=write(tmp_path, {"id": "a", "turns": turns}))
    assert roles(corpus[0]) == expected


def test_fields(tmp_path):
    line = {"id": 7, "split": "dev", "emotion": "shame", "situation": " I fell. ", "turns": TURNS}
    line["turns"] = [dict(t, label=f"act {i}") if i else t for i, t in enumerate(TURNS)]
    corpus = conversations.load("dream", root=write(tmp_path, line))
    dialogue = corpus[0]
    assert (dialogue.id, dialogue.emotion, dialogue.situation) == ("7", "shame", "I fell.")
    assert dialogue.source == "dream/valid"
    assert corpus.turn_labels == {"7": ("", "act 1", "act 2", "act 3")}


def test_splits(tmp_path):
    lines = [{"id": s, "split": s, "turns": TURNS} for s in ("train", "dev", "test")]
    root = write(tmp_path, *lines)
    assert [d.id for d in conversations.load("dream", "valid", root=root)] == ["dev"]
    assert len(conversations.load("dream", root=root)) == 3
    with pytest.raises(DataError, match="no dialogue of split 'failed'; accepted: all, test, train, valid"):
        conversations.load("dream", "failed", root=root)


def test_dailydialog_teaches_with_its_training_part_only(tmp_path):
    files = (("train_partial", "train?"), ("validation", "validation"), ("test", "test"))
    for name, split in files:
        write(tmp_path, {"id": name, "split": split, "turns": TURNS}, name=f"{name}.jsonl", folder="dailydialog")
    assert [d.id for d in conversations.load("dailydialog", root=tmp_path)] == ["train_partial"]
    assert [d.id for d in conversations.load("dailydialog", "all", root=tmp_path)] == [name for name, _ in files]
    with pytest.raises(DataError, match="dailydialog has no split 'dev2'"):
        conversations.load("dailydialog", "dev2", root=tmp_path)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON"),
        ('"text"', "str, expected an object"),
        ({"turns": TURNS}, "no 'id'"),
        ({"id": "a", "turns": []}, "no 'turns'"),
        ({"id": "a", "turns": [{"speaker": "A", "text": " "}]}, "turn 1 of 'a' has no text"),
        ({"id": "a", "turns": ["Hi."]}, "turn 1 of 'a' has no text"),
        ({"id": "good", "turns": TURNS}, "id 'good' was used by an earlier line"),
    ],
)
def test_bad_lines(tmp_path, line, reason):
    root = write(tmp_path, {"id": "good", "turns": TURNS}, line)
    corpus = conversations.load("dream", root=root)
    assert [d.id for d in corpus] == ["good"]
    assert [p.line for p in corpus.problems] == [2]
    with pytest.raises(DataError, match=r"dream\.jsonl:2: " + reason):
        conversations.load("dream", root=root, strict=True)


def test_unknown_and_missing(no_data):
    with pytest.raises(ConfigError, match=r"unknown dialogue corpus 'dreem'. Did you mean 'dream'"):
        conversations.load("dreem")
    with pytest.raises(MissingResourceError, match=r"dream\.jsonl.*publisher"):
        conversations.load("dream")


def dialogue_of(pattern):
    turns = tuple(Turn({"s": "speaker", "l": "listener"}[c], str(i)) for i, c in enumerate(pattern))
    return Dialogue("d", turns)


def test_merged():
    joined = conversations.merged(dialogue_of("sslls"))
    assert [(t.role[0], t.text) for t in joined.turns] == [("s", "0 1"), ("l", "2 3"), ("s", "4")]


@pytest.mark.parametrize("pattern", ["sl" * 10, "lsl" * 7, "ssslll" * 5, "s" * 30, "sls", "ls"])
@pytest.mark.parametrize("size", [2, 3, 8])
def test_excerpts_keep_the_rules(pattern, size):
    pieces = list(conversations.excerpts(dialogue_of(pattern), size))
    assert len({p.id for p in pieces}) == len(pieces)
    words = [w for p in pieces for t in p.turns for w in t.text.split()]
    assert len(words) == len(set(words))  # nothing twice
    assert words == sorted(words, key=int)
    for piece in pieces:
        assert piece.turns[0].role == "speaker"
        assert len(piece.turns) <= size


def test_excerpts_by_hand():
    assert [roles(p) for p in conversations.excerpts(dialogue_of("lslslsl"), 4)] == ["slsl", "sl"]
    short = dialogue_of("slsl")
    assert list(conversations.excerpts(short, 4)) == [short]
    with pytest.raises(ConfigError, match="max_turns is 1"):
        list(conversations.excerpts(short, 1))


def test_every_corpus_has_its_terms():
    assert set(LICENCES) == set(CORPORA.names())
    refused = {name for name, terms in LICENCES.items() if not terms.may_train_released_weights}
    assert {"meld", "emorynlp", "mutual", "opensubtitles_cleaned_sample", "changelog_podcasts"} <= refused
    assert {"schema_guided_dialogue_partial", "switchboard_swda"} <= refused
    allowed = set(LICENCES) - refused
    assert {"esconv_partial", "public_domain_plays", "dream", "edos", "dailydialog"} <= allowed
    assert licence("dailydialog").share_alike
    with pytest.raises(ConfigError, match=r"no licence on record for corpus 'deam'. Did you mean 'dream'"):
        licence("deam")


@pytest.mark.parametrize("name", CORPORA.names())
def test_every_registered_loader_can_be_imported(name):
    assert callable(CORPORA.get(name))


@pytest.mark.real_data
@pytest.mark.parametrize("name", conversations.NAMES)
def test_counts_of_the_copies_at_hand(data_folder, name):
    corpus = CORPORA.get(name)("all", root=data_folder, strict=True)
    assert len(corpus) == conversations.EXPECTED[name]


@pytest.mark.real_data
def test_all_turns_of_dialogue_corpora(data_folder):
    """The data folder's README: 30,664 dialogues and 539,751 turns without DailyDialog."""
    corpora = [conversations.load(n, "all", data_folder) for n in conversations.NAMES if n != "dailydialog"]
    assert sum(len(c) for c in corpora) == 30_664
    assert sum(len(d.turns) for c in corpora for d in c) == 539_751


@pytest.mark.real_data
def test_dailydialog_turns(data_folder):
    counts = {
        s: sum(len(d.turns) for d in conversations.load("dailydialog", s, data_folder)) for s in ("valid", "test")
    }
    assert counts == {"valid": 8_069, "test": 7_740}


@pytest.mark.real_data
def test_dailydialog_overlap_with_reccon_is_as_noted(data_folder):
    """Dialogues are taken for the same when their first two turns are."""
    train = conversations.load("dailydialog", root=data_folder)
    starts = {tuple(turn.text for turn in d.turns[:2]) for d in train}
    counts = {
        split: sum(tuple(t.text.strip() for t in d.turns[:2]) in starts for d in reccon.load(split, data_folder))
        for split in ("valid", "test")
    }
    assert counts == {"valid": 11, "test": 120}
    assert "120 of RECCON's 225 test dialogues and 11 of its 47" in train.notes[1]
