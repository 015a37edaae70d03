"""Bad input: what can be answered is answered and marked; all else is one line with cause and remedy."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from empatheia.errors import CheckpointError, ConfigError, DataError, MissingResourceError
from empatheia.listener import Listener
from empatheia.records.dialogue import Dialogue, Turn
from empatheia.resources.catalogue import known_models
from empatheia_people.judging.verdicts import read_ratings
from empatheia_research.recipes.recipe import load_recipe
from empatheia_research.voices.responder_listener import ResponderListener


def assert_one_line_error(done, pattern: str, code: int = 1) -> None:
    assert done.code == code, done.err
    assert re.match(rf"error: .*{pattern}", done.err) and done.err.count("\n") == 1, done.err
    assert done.out == ""


EMPTY = ["", " ", "\n\t \r\n", "\x00\x01\x1b", "\u200b\ufeff", "\ud800"]


@pytest.mark.parametrize("text", EMPTY, ids=ascii)
def test_nothing_to_read(listener, text):
    for act in (listener.analyze, listener.respond, listener.stream, listener.converse().say):
        with pytest.raises(DataError, match=r"is (empty|only white space or control characters); write at least"):
            act(text)
    with pytest.raises(DataError, match="input 2: "):
        listener.analyze(["fine", text])
    with pytest.raises(DataError, match="turn 2 of 3"):
        listener.respond(Dialogue.of("Hello.", text, "I am sad."))


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (Dialogue("", ()), "no turns"),
        (Dialogue.of("I am sad.", "Why?"), r"ends with a listener turn \(number 2\)"),
        (Dialogue("", (Turn("listener", "Why?"),)), "End it with what the speaker says"),
        (Dialogue("", (Turn("speaker", 5),)), "turn 1 holds a int"),
    ],
)
def test_conversations_that_cannot_be_answered(listener, item, message):
    with pytest.raises(DataError, match=message):
        listener.respond(item)
    for wrong in (5, b"bytes", None):
        with pytest.raises((DataError, TypeError)):
            listener.analyze([wrong])


UNCERTAIN = {
    "emoji": "😭😭 she left me 💔",
    "only emoji": "😭",
    "no known word": "qwxz vbnkj zzkpt",
    "another language": "Ich habe gestern meine Arbeit verloren und weiß nicht weiter.",
    "another script": "我昨天失去了工作，不知道该怎么办。",
    "control characters": "I lost\x00 my \x1b[31mdog\x07 today.",
    "direction characters": "I am \u202egod\u202c sad today.",
    "very long": "word " * 200_000,
    "one long word": "a" * 1_000_000,
}


@pytest.mark.parametrize("name", UNCERTAIN)
def test_doubtful_input_is_answered_and_marked(listener, name):
    text = UNCERTAIN[name]
    analysis = listener.analyze(text)
    assert analysis.unsure and all(isinstance(reason, str) for reason in analysis.unsure)
    assert analysis.dialogue.turns[0].text == text
    assert sum(analysis.newest.emotions.values()) == pytest.approx(1)
    for span in (*analysis.newest.words, *analysis.newest.causes):
        assert 0 <= span.start < span.end <= len(text)
    assert listener.respond(text, max_new_tokens=3).analysis.unsure == analysis.unsure


def test_punctuation_alone_is_answered(listener):
    analysis = listener.analyze("?!")
    assert analysis.newest.causes == () and sum(analysis.newest.emotions.values()) == pytest.approx(1)


# -- model folders -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["empatheia.json", "config.json", "model.safetensors", "tokenizer.json"])
def test_a_missing_file(tiny_copy, name):
    (tiny_copy / name).unlink()
    with pytest.raises(CheckpointError, match=f"no {name}"):
        Listener.load(tiny_copy)


@pytest.mark.parametrize("name", ["empatheia.json", "config.json", "model.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.97])
def test_a_truncated_file(tiny_copy, name, share):
    path = tiny_copy / name
    os.truncate(path, int(path.stat().st_size * share))
    with pytest.raises(CheckpointError) as caught:
        Listener.load(tiny_copy)
    assert str(tiny_copy) in str(caught.value) and "\n" not in str(caught.value)


def test_a_foreign_architecture(tiny_copy):
    config = json.loads((tiny_copy / "config.json").read_text())
    (tiny_copy / "config.json").write_text(json.dumps(config | {"model_type": "bert"}))
    with pytest.raises(CheckpointError, match=r"another architecture, 'bert'.*needs 'cause_gated'"):
        Listener.load(tiny_copy)


def test_weights_that_do_not_fit_the_config(tiny_copy):
    from safetensors.torch import load_file, save_file

    path = tiny_copy / "model.safetensors"
    weights = load_file(path)
    smaller = dict(list(weights.items())[1:])
    save_file(smaller, path, {"format": "pt"})
    with pytest.raises(CheckpointError, match="missing keys"):
        Listener.load(tiny_copy)
    save_file(weights | {"stray": weights[next(iter(weights))].clone()}, path, {"format": "pt"})
    with pytest.raises(CheckpointError, match=r"unexpected keys.*stray"):
        Listener.load(tiny_copy)
    save_file(weights, path, {"format": "pt"})
    config = json.loads((tiny_copy / "config.json").read_text())
    (tiny_copy / "config.json").write_text(json.dumps(config | {"width": 64}))
    with pytest.raises(CheckpointError, match=r"fit config\.json"):
        Listener.load(tiny_copy)
    save_file({}, path)
    with pytest.raises(CheckpointError, match="holds no tensors"):
        Listener.load(tiny_copy)


def test_a_vocabulary_of_another_model(tiny_copy):
    from empatheia_research.text.tokenizer import DialogueTokenizer

    DialogueTokenizer.train_words(["one two three"]).save_pretrained(tiny_copy)
    with pytest.raises(CheckpointError, match=r"vocabulary in .* has 9 pieces but the weights have 400 rows"):
        Listener.load(tiny_copy)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "format 2; this release reads 1"),
        ({"system": "cause_gatd"}, "system this release does not have.*Did you mean 'cause_gated'"),
        ({"emotions": ["sad"]}, "lists 1 emotions"),
        ({"temperature": 0}, "temperature 0; it must be above 0"),
        ({"layout": {"max_sauce": 3}}, "layout this release cannot read"),
        ({"name": None, "system": None}, "has system None; a string"),
        ({"weights": "9" * 400, "system": None}, "has system None; a string"),
        ({"emotions": None}, "has emotions None; a list is expected"),
        ({"emotions": 5}, "has emotions 5; a list is expected"),
        ({"layout": None}, "has layout None; an object is expected"),
        ({"side_inputs": []}, "has side_inputs .*; an object is expected"),
        ({"licence": 5}, "has licence 5; a string is expected"),
        ({"temperature": float("nan")}, "temperature nan; it must be above 0, and finite"),
        ({"temperature": float("inf")}, "temperature inf; it must be above 0, and finite"),
        ({"cause_threshold": float("nan")}, "cause_threshold nan; it must be in 0 to 1"),
        ({"cause_threshold": None}, "cause_threshold None; it must be in 0 to 1"),
    ],
)
def test_a_manifest_that_says_something_impossible(tiny_copy, change, message):
    path = tiny_copy / "empatheia.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(CheckpointError, match=message):
        Listener.load(tiny_copy)


def test_names_that_lead_nowhere(tiny_model, tmp_path, monkeypatch):
    monkeypatch.setenv("EMPATHEIA_OFFLINE", "1")
    with pytest.raises(MissingResourceError, match="models list"):
        Listener.load("./no/such/folder")
    with pytest.raises(MissingResourceError, match="models list"):
        Listener.load("nosuchmodel")
    with pytest.raises(CheckpointError, match=r"is a file; give the model folder"):
        Listener.load(tiny_model / "config.json")
    with pytest.raises(CheckpointError, match=r"has no empatheia\.json"):
        Listener.load(tmp_path)
    with pytest.raises(ConfigError, match=r"device 'warp'"):
        Listener.load(tiny_model, device="warp")


def test_a_catalogue_tells_faults_and_goes_on(tiny_copy, monkeypatch):
    (tiny_copy / "model.safetensors").unlink()
    monkeypatch.setenv("EMPATHEIA_MODELS", str(tiny_copy.parent))
    entry = next(entry for entry in known_models() if entry.name == tiny_copy.name)
    assert "no model.safetensors" in entry.fault and entry.system == "?"


REMEDIES = {
    "a circle": ("extends: a.yaml\n", load_recipe, "in a circle: .*Remove one"),
    "no mapping": ("- a\n", load_recipe, "found list. Write `name: value` lines"),
    "no rating": ("", lambda path: read_ratings(path, "x", "y"), "holds no rating; give a file"),
}


@pytest.mark.parametrize("name", REMEDIES)
def test_a_file_without_anything_in_it_is_told_with_a_remedy(tmp_path, name):
    text, read, message = REMEDIES[name]
    path = tmp_path / "a.yaml"
    path.write_text(text)
    with pytest.raises((DataError, ConfigError), match=message):
        read(path)


# -- the command line ----------------------------------------------------------------------------------------


def test_errors_are_one_line_with_a_code(cli, tiny_model, tiny_copy, tmp_path):
    model = ("--model", str(tiny_model))
    for pattern, code, arguments in (
        ("only white space", 1, ("analyze", " ", *model)),
        ("listener turn", 1, ("respond", "I am sad.", "Why?", *model)),
        ("'beam'", 1, ("respond", "I am sad.", "--strategy", "beem", *model)),
        ("stdin holds no text", 1, ("respond", "-", *model)),
        ("stdin holds no rows", 1, ("analyze", "-", *model)),
        ("no such file", 1, ("analyze", str(tmp_path / "no.csv"), *model)),
        ("no model folder", 3, ("analyze", "hi", "--model", "./nowhere")),
        ("--resume needs --out", 2, ("analyze", "hi", "--resume", *model)),
        ("is a folder", 1, ("analyze", "hi", "--out", str(tmp_path), *model)),
        ("does not exist; create it", 1, ("analyze", "hi", "--out", str(tmp_path / "no" / "x.csv"), *model)),
        ("batch-size", 2, ("analyze", "hi", "--batch-size", "0", *model)),
        ("Did you mean 'analyze'", 2, ("anlyze", "hi")),
        ("[Nn]o such option", 2, ("analyze", "--nonsense")),
        ("Missing argument", 2, ("analyze",)),
    ):
        assert_one_line_error(cli(*arguments), pattern, code)
    os.truncate(tiny_copy / "model.safetensors", 1000)
    assert_one_line_error(cli("demo", "--model", str(tiny_copy)), "truncated or damaged")


def test_debug_shows_the_traceback(tiny_model, monkeypatch):
    from empatheia.cli import main

    monkeypatch.setenv("EMPATHEIA_DEBUG", "1")
    with pytest.raises(DataError):
        main(["analyze", " ", "--model", str(tiny_model)])


def test_a_bug_is_one_line_too(cli, tiny_model, monkeypatch):
    monkeypatch.setattr(ResponderListener, "analyze", lambda *args, **kwargs: 1 / 0)
    assert_one_line_error(cli("analyze", "hi", "--model", str(tiny_model)), "unexpected ZeroDivisionError")


def test_a_full_disk_leaves_only_what_was_done(cli, tiny_model, tmp_path):
    """A limit on the size of files fails in write() as a full disk does."""
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    out = tmp_path / "result.jsonl"
    try:
        done = cli("analyze", "-", "--out", str(out), "--model", str(tiny_model), stdin="I lost my dog.\n" * 300)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    partial = tmp_path / "result.jsonl.partial"
    told, error = done.err.splitlines()
    assert (
        done.code == 1 and told == f"finished rows are kept in {partial}; repeat the command with --resume to continue"
    )
    assert re.match(r"error: [Ff]ile too large", error) and not out.exists() and partial.stat().st_size <= 20_000
    done = cli(
        "analyze", "-", "--out", str(out), "--model", str(tiny_model), "--resume", stdin="I lost my dog.\n" * 300
    )
    assert done.code == 0 and len(out.read_text().splitlines()) == 300 and list(tmp_path.iterdir()) == [out]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_behind_stdout(tiny_model):
    code = "from empatheia.cli import main; main()"
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", code, "models", "show", str(tiny_model), "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
        )
    assert done.returncode == 1
    assert done.stderr.startswith(b"error: no space left") and done.stderr.count(b"\n") == 1
