"""Conversations and models that are odd or broken: one clear line each, and what can be read is read."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "understanding"))

from tiny_classifiers import encoder_classifier

from empatheia.errors import CheckpointError
from empatheia.listener import Analyzer
from empatheia.taxonomy import EMOTIONS, LABELS_41

ALL = "emotion,intent,causes,words"


def written(path: Path, *rows: object) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def records(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_one_turn_and_five_hundred_turns(ask, tmp_path):
    turns = [f"Turn {i} says a little." for i in range(500)]
    page = tmp_path / "r.html"
    file = written(tmp_path / "a.jsonl", {"turns": ["I won!"]}, {"turns": turns})
    done = ask(file, "--with", ALL, "--out", str(tmp_path / "o.jsonl"), "--html", str(page))
    one, many = records((tmp_path / "o.jsonl").read_text(encoding="utf-8"))
    assert done.code == 0 and "2 rows, 0 bad" in done.err
    assert len(one["emotion"]) == len(one["intent"]) == len(one["causes"]) == 1
    assert len(many["emotion"]) == 250 and len(many["intent"]) == 500 and many["causes"][-1]["target"] == 498
    html = page.read_text(encoding="utf-8")
    assert 'id="c2-t500"' in html and 'href="#c2-t251"' in html and len(html) < 3_000_000


def test_a_conversation_without_end_is_a_bad_row(ask, tmp_path):
    file = written(tmp_path / "a.jsonl", {"turns": ["Hi."] * 100_001}, {"turns": ["I won!"]})
    done = ask(file, "--with", "emotion", "--out", str(tmp_path / "o.jsonl"))
    bad, good = records((tmp_path / "o.jsonl").read_text(encoding="utf-8"))
    assert done.code == 0 and "100,001 turns; accepted: at most 5,000" in bad["error"] and "error" not in good


def test_only_the_listener_speaks(ask):
    said = json.dumps({"turns": [{"role": "listener", "text": "How are you?"}]})
    done = ask("-", "--with", ALL, "--json", stdin=said + "\n")
    (record,) = records(done.out)
    assert done.code == 0 and [r["turn"] for r in record["intent"]] == [0]
    assert set(record["missing"]) == {"emotion", "causes", "words"} and record["emotion"] == record["words"] == []
    shown = ask("-", "--with", ALL, stdin=said + "\n").out
    assert "nothing   emotion: no speaker turn in this conversation" in shown


@pytest.mark.parametrize(
    ("turns", "message"),
    [
        ([{"role": "narrator", "text": "Once."}], "unknown role 'narrator'; accepted: speaker and listener"),
        ([{"role": 3, "text": "Once."}], "unknown role '3'"),
        ([{"role": "", "text": "Once."}], "unknown role ''"),
        (["I won!", ""], "turn 2 of 2 is empty; write at least one word"),
        (["I won!", "\u200b \x07"], "turn 2 of 2 is only white space or control characters"),
        ([""], "the text is empty"),
        ([], "must be a list with at least one turn"),
        ([{"role": "system", "text": "Be nice."}], "at least one turn"),
        ("I won!", "must be a list with at least one turn"),
        ([None], "turn 0 is None; accepted: a string, or an object with role and text"),
        (
            [{"role": "speaker", "text": 5}],
            "turn 0 is {'role': 'speaker', 'text': 5}; accepted: a string",
        ),
    ],
)
def test_a_conversation_that_cannot_be_used_is_told_with_its_row(ask, tmp_path, turns, message):
    file = written(tmp_path / "a.jsonl", {"turns": turns}, "I won!")
    done = ask(file, "--with", "emotion", "--json")
    bad, good = records(done.out)
    assert done.code == 0 and bad["row"] == 1 and message in bad["error"] and "\n" not in bad["error"]
    assert f"row 1: {bad['error']}" in done.err and "2 rows, 1 bad (1)" in done.err and good["emotion"]
    alone = ask(written(tmp_path / "b.jsonl", {"turns": turns}), "--with", "emotion")
    assert alone.code == 1 and "error: no row could be used" in alone.err and not alone.out


def test_labels_that_come_with_a_conversation_are_not_read(ask, tmp_path):
    """A label outside the taxonomy does no harm, and one inside changes nothing."""
    turns = ["I lost my job."]
    rows = [{"turns": turns, "emotion": label, "intent": label} for label in ("happyish", "joyful", 7)]
    found = records(ask(written(tmp_path / "a.jsonl", *rows), "--with", "emotion,intent", "--json").out)
    assert all(record["emotion"] == found[0]["emotion"] and record["intent"] == found[0]["intent"] for record in found)
    assert {record["label"] for record in found[0]["emotion"]} < set(EMOTIONS)


@pytest.fixture
def places(tmp_path, monkeypatch):
    monkeypatch.setenv("EMPATHEIA_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("EMPATHEIA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("EMPATHEIA_OFFLINE", "1")
    return tmp_path


def save(classifier, folder: Path) -> Path:
    classifier.model.save_pretrained(folder)
    classifier.reader.save(folder)
    (folder / "empatheia.json").write_text(json.dumps({"format": 1, "name": "tiny", "part": "emotion"}))
    return folder


def test_a_model_with_labels_outside_the_taxonomy(places):
    odd = save(encoder_classifier(("happyish", *EMOTIONS[1:])), places / "odd")
    with pytest.raises(CheckpointError, match=r"32 labels \(unknown happyish; missing afraid\); part 'emotion' needs"):
        Analyzer("emotion", {"emotion": odd}).load()
    with pytest.raises(CheckpointError, match=r"part 'intent' needs a classifier of the 41 labels"):
        Analyzer("intent", {"intent": save(encoder_classifier(EMOTIONS), places / "emotions")}).load()
    good = save(encoder_classifier(LABELS_41), places / "models" / "intent")
    assert len(Analyzer("intent").analyze("I won!").newest.intent.probabilities) == 41 and good.is_dir()


def test_a_model_folder_without_weights(places):
    """Named by the caller it is an error; found where models are installed the part is missing and says why."""
    folder = save(encoder_classifier(LABELS_41), places / "models" / "intent")
    (folder / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"no file named model\.safetensors") as found:
        Analyzer("intent", {"intent": folder}).load()
    assert "\n" not in str(found.value)
    analyzer = Analyzer("intent")
    assert analyzer.names == {} and "no file named model.safetensors" in analyzer.missing["intent"]


def test_files_of_other_kinds_and_outputs_named_twice(ask, tmp_path):
    log = tmp_path / "chat.log"
    log.write_text("A: hi\nB: hello\n")
    text = written(tmp_path / "a.jsonl", "I won!")
    for arguments, code, message in (
        ((str(log),), 1, "chat.log is a file or folder of another kind; accepted: one file with a suffix of .csv"),
        ((str(tmp_path),), 1, "is a file or folder of another kind"),
        ((text, text), 1, "is one of 2 arguments; give one file, or '-', or only texts"),
        (("I won!", "-"), 1, "'-' is one of 2 arguments"),
        ((str(tmp_path / "no.jsonl"),), 1, "no such file"),
        ((text, "--out", text), 2, "is named twice, so it would be overwritten"),
        ((text, "--out", str(tmp_path / "r"), "--html", str(tmp_path / "r")), 2, "is named twice"),
    ):
        done = ask(*arguments, "--with", "emotion")
        assert done.code == code and message in done.err and not done.out, arguments
    assert Path(text).read_text() == '"I won!"\n'
    assert ask("I read a.txt and and/or.", "See b.txt", "--with", "emotion").code == 0
    assert ask(str(log)).code == 1 and ask(text, "--out", text).code == 2  # without --with too
