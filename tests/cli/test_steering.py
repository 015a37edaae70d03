"""``respond --focus --explain --listener`` and a chat that is steered while it runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from empatheia.records.reply_schema import ReplyRecord

TEXT = "I lost my grandmother last week."
OTHERS = ["I am very proud of my daughter.", "My sister passed the exam today."]


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch, tmp_path):
    monkeypatch.setenv("EMPATHEIA_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("EMPATHEIA_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def model(tiny_model):
    return (
        "--model",
        str(tiny_model),
        *("--set", "express.decoding.max_new_tokens=6", "--set", "express.focus.distractors=random"),
    )


@pytest.fixture(autouse=True)
def small_pool(monkeypatch):
    """Random distractors out of a few turns."""
    from empatheia_research.decoding.turn_pool import TurnPool
    from empatheia_research.voices import contrast

    monkeypatch.setattr(contrast, "turn_pool", lambda _: TurnPool.of([*OTHERS, "We lost the game."]))


@pytest.fixture
def yaml_file(tiny_model, tmp_path) -> Path:
    (tmp_path / "mine").symlink_to(tiny_model)
    (tmp_path / "mine.yaml").write_text(
        "name: mine\nreasoner: ./mine\n"
        "express:\n  responders: [./mine]\n  decoding: [{max_new_tokens: 6}]\n"
        f"  focus: {{distractors: given, texts: {json.dumps(OTHERS)}}}\n"
    )
    return tmp_path / "mine.yaml"


def test_who_is_named_answers_alone_and_nobody_is_five_steps(cli, tiny_model, monkeypatch):
    """``respond``, ``chat`` and ``empatheia.respond`` without a model: a reflection of what five steps found."""
    import empatheia
    from empatheia.listener import FocusedListener, Listener
    from empatheia.listener import listener as home

    home.five_steps.cache_clear()
    home._shared.cache_clear()
    monkeypatch.setattr("empatheia.resources.catalogue.bundled_root", lambda: tiny_model.parent)
    for home_of in ("listener.listener", "resources.catalogue", "cli.opening"):
        monkeypatch.setattr(f"empatheia.{home_of}.find_model", lambda place: tiny_model)
    try:
        own = FocusedListener().respond(TEXT, explain=True)
        steps = json.loads(cli("respond", TEXT, "--json").out)
        assert steps["reply"] == own.text and steps["model"] == "empatheia" and "explanation" not in steps
        assert steps["decoding"]["responder"] == "reflection" and own.analysis.by["emotion"] == "tiny"
        assert empatheia.respond(TEXT).text == own.text
        assert cli("chat", stdin=TEXT + "\n").out.strip() == own.text
        assert own.analysis.newest.causes == Listener.load(tiny_model).analyze(TEXT).newest.causes
        assert len(own.candidates) > 1
        alone = json.loads(cli("respond", TEXT, "--json", "--model", "gao2021-small").out)
        assert alone["model"] == "tiny" and "focus" not in alone["decoding"]
        assert empatheia.respond(TEXT, model="gao2021-small").text == alone["reply"]
    finally:
        home.five_steps.cache_clear()
        home._shared.cache_clear()


def test_options_change_the_ways_of_writing_and_a_strategy_is_one(cli, tiny_model):
    def ways(*options: str) -> list[tuple]:
        place = ("--model", str(tiny_model), "--set", "express.focus.distractors=random")
        why = json.loads(cli("respond", TEXT, *place, "--json", "--explain", *options).out)["explanation"]
        return sorted({(c["decoding"]["strategy"], c["decoding"]["max_new_tokens"]) for c in why["candidates"]})

    assert ways() == ways("--seed", "0") == [("beam", 60), ("greedy", 60)]
    shorter = ways("--set", "express.decoding.max_new_tokens=5")
    assert shorter == [("beam", 5), ("greedy", 5)]
    assert ways("--strategy", "greedy") == [("greedy", 60)]
    assert ways("--strategy", "beam", "--set", "express.decoding.max_new_tokens=5") == [("beam", 5)]


def test_a_chat_tells_which_words_its_reply_is_about(cli, model):
    place = [*model[:2], "--set", "express.focus.distractors=random"]
    talk = "My dog died.\nHe was fourteen.\n/focus off\nHe slept on my bed.\n"
    told = [line for line in cli("chat", *place, stdin=talk).err.splitlines() if line.startswith("about: ")]
    assert len(told) == 2 and "dog" not in told[1]
    assert all(word in "He was fourteen." for word in told[1].removeprefix("about: ").split(", ") if word != "no word")


def test_a_reply_is_focused_and_explained(cli, model):
    set_focus = ("--focus", "grandmother", "--set", "express.focus.alpha=4", "--set", "express.focus.beta=0.8")
    done = cli("respond", TEXT, *model, *set_focus, "--explain")
    assert done.code == 0, done.err
    lines = [line.split()[0] for line in done.out.splitlines() if line[0] != " "]
    assert lines[:4] == ["emotion", "about", "not", "replies"] and lines[-1] == "listener"
    assert "belief" in lines and "missing" not in lines  # what nobody asked for is in --json
    by_default = cli("respond", TEXT, "--explain").out
    assert not any(line.startswith(("missing", "intent")) for line in by_default.splitlines())
    asked = cli("respond", TEXT, "--explain", "--focus", "grandmother", "--set", "project.tails=2").out
    missing = asked[asked.index("missing") :].splitlines()[:2]
    assert missing[0].split()[1] == "project:" and missing[1].split()[:2] == ["focus", "of"]
    assert "focused (alpha 4)" in done.out and "grandmother  (given)" in done.out
    plain = cli("respond", TEXT, *model, *set_focus)
    assert done.out.splitlines()[-1].removeprefix("listener").strip() == plain.out.strip()
    record = json.loads(cli("respond", TEXT, *model, "--focus", "grandmother", "--explain", "--json").out)
    checked = ReplyRecord.model_validate(record)
    assert checked.explanation is not None and checked.explanation.targets[0].text == "grandmother"
    assert checked.explanation.candidates[0].decoding.focus.alpha == 6 and len(checked.explanation.worlds) == 3
    bare = json.loads(cli("respond", TEXT, *model, "--focus", "grandmother", "--json").out)
    assert "explanation" not in bare and bare["reply"] == record["reply"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--set", "express.focus.alpha=-1"), "--set: express.focus.alpha: "),
        (("--set", "express.focus.worlds=1"), "--set: express.focus.worlds: "),
        (("--set", "express.focus.alpah=1"), "Did you mean 'alpha'?"),
        (("--set", "express.decoding.strateg=beam"), "Did you mean 'strategy'?"),
        (("--set", "expres.focus.alpha=1"), "Did you mean 'express'?"),
        (("--set", "express.decoding.strategy=bea"), "'beam'"),
        (("--set", "express.decoding=[{strategy: bea}]"), "'beam'"),
        (("--set", "express.decoding.n=2", "--set", "express.decoding.strategy=beam"), "n is 2"),
        (("--set", "memory.carry=2"), "memory.carry"),
        (("--set", "memory.carry"), "is not of the form key=value"),
        (("--focus", "grandmothers"), "does not stand in"),
        (("--focus", "the"), "does not stand in"),
        (("--focus", "my"), "is a stop word"),
        (("--focus", "grandmother", "--set", "express.focus.worlds=9"), "of 8 distractors possible"),
        (("--focus", "grandmother", "--set", "express.focus.distractors=gea"), "'gee'"),
        (("--focus", "grandmother", "--set", "express.focus.distractors=gee"), "empatheia models train words"),
        (("--set", "express.focus.distractors=given"), "texts go with `given`"),
        (("--listener", "listener.txt"), "leave --model out"),
        (("--focus", ""), "focus names no word"),
    ],
)
def test_bad_values_get_one_line(cli, model, options, told):
    done = cli("respond", TEXT, *model, *options)
    assert done.code in (1, 2, 3) and done.out == "" and done.err.count("\n") == 1 and told in done.err


def test_settings_of_the_other_steps_are_those_of_the_file(cli, model):
    place = (*model[:2], "--json", "--explain", "--set", "express.focus.distractors=random")
    why = json.loads(cli("respond", TEXT, *place, "--set", "perceive.emotion=proud").out)["explanation"]
    assert why["emotion"] == "proud"
    alone = json.loads(cli("respond", TEXT, *model[:2], "--json").out)
    stepped = json.loads(cli("respond", TEXT, *model[:2], "--json", "--set", "name=mine").out)
    assert alone["model"] != "mine" and stepped["model"] == "mine"  # one model alone has no steps to set


def test_settings_are_laid_over_the_file(cli, yaml_file, tmp_path):
    named = json.loads(cli("respond", TEXT, "--listener", str(yaml_file), "--json", "--set", "name=mine").out)
    assert named["model"] == "mine"
    by_model = json.loads(cli("respond", TEXT, "--model", str(yaml_file), "--json", "--set", "name=mine").out)
    assert by_model == named


def test_settings_that_need_each_other_are_checked_together(cli, model, tmp_path):
    of_kind = ("--set", "express.focus.distractors=given", "--set", "express.focus.texts=[My dog died., I won.]")
    done = cli("respond", TEXT, *model[:2], "--focus", "grandmother", *of_kind, "--explain", "--json")
    assert "My dog died." in done.out, done.err
    file = tmp_path / "given.yaml"
    file.write_text("express: {focus: {distractors: given, texts: [My dog died.]}}\n")
    assert cli("respond", TEXT, "--listener", str(file), "--set", "express.focus.texts=[I won.]").code == 0
    assert "texts go with `given`" in cli("respond", TEXT, "--set", "express.focus.texts=[I won.]").err


def test_who_is_named_to_answer_answers(cli, model):
    done = cli("respond", TEXT, *model[:2], "--set", "express.responders=reflection")
    assert done.code != 0 and "leave out --set express.responders" in done.err


def test_a_listener_from_a_file(cli, yaml_file):
    done = cli("respond", TEXT, "--listener", str(yaml_file), "--explain", "--json")
    record = json.loads(done.out)
    ReplyRecord.model_validate(record)
    assert record["model"] == "mine" and record["explanation"]["worlds"] == [TEXT, *OTHERS]
    (yaml_file.parent / "bad.yaml").write_text("expres: {}\n")
    bad = cli("respond", TEXT, "--listener", str(yaml_file.parent / "bad.yaml"))
    assert bad.code == 2 and "Did you mean 'express'?" in bad.err and bad.err.count("\n") == 1
    assert "accepted: a YAML file" in cli("respond", TEXT, "--listener", "nowhere").err
    assert cli("respond", TEXT, "--listener", "nowhere.yaml").code == 2


@pytest.mark.parametrize(
    "option",
    ["--model=gao2021-small", "--endpoint=http://localhost:1/v1", "--condition=all", "--key-env=KEY", "--runs=x"],
)
@pytest.mark.parametrize("command", [("respond", TEXT), ("chat",)])
def test_who_answers_is_said_once(cli, yaml_file, command, option):
    done = cli(*command, "--listener", str(yaml_file), option)
    assert done.code == 2 and done.out == "" and f"leave {option.split('=')[0]} out" in done.err


def test_a_file_named_as_the_model_answers_as_its_settings_say(cli, yaml_file):
    by_file, by_model = (
        cli("respond", TEXT, option, str(yaml_file), "--explain").out for option in ("--listener", "--model")
    )
    assert by_file == by_model
    plain = cli("respond", TEXT, "--model", str(yaml_file)).out
    assert plain == cli("respond", TEXT, "--listener", str(yaml_file)).out
    said = cli("chat", "--model", str(yaml_file), stdin=f"{TEXT}\n")
    assert said.out == plain and "about: " in said.err


def test_many_distractors_are_counted(cli, model, monkeypatch):
    from empatheia_research.decoding.turn_pool import TurnPool
    from empatheia_research.voices import contrast

    monkeypatch.setattr(contrast, "turn_pool", lambda _: TurnPool.of([f"Text number {i}." for i in range(30)]))
    wanted = ("respond", TEXT, *model, "--focus", "grandmother", "--set", "express.focus.worlds=21", "--explain")
    done = cli(*wanted)
    assert done.out.count("Text number") == 6 and "... and 14 more" in done.out
    assert len(json.loads(cli(*wanted, "--json").out)["explanation"]["worlds"]) == 21


def test_other_ways_to_the_same_text_are_told(cli, yaml_file):
    text = yaml_file.read_text().replace("focus: {", "focus: {alpha: 0, ")
    yaml_file.write_text(text)
    done = cli("respond", TEXT, "--listener", str(yaml_file), "--explain")
    assert "tiny: strategy greedy; also tiny: strategy greedy, max_new_tokens 6, focused\n" in done.out


def test_alpha_switches_focus_on_and_says_so(cli, model):
    done = cli("chat", *model[:2], stdin=f"/alpha 3\n{TEXT}\n/alpha 2\n/why\n")
    assert "alpha: 3\nfocus: auto\nabout: " in done.err and done.err.count("focus: auto") == 1
    assert "focused (alpha 3)" in done.out


def test_a_chat_is_steered_while_it_runs(cli, model):
    lines = [
        "/why",
        "/focus auto",
        "/intent consoling",
        "/emotion nostalgic",
        "/emotion blue",
        "/alpha -3",
        "/alpha x",
        "/alpha 2",
        "/focus cat",
        "I lost my dog.",
        "/focus dog",
        "I lost my dog.",
        "/why",
        "He was old.",
        "/focus off",
        "/emotion",
        "Hi.",
        "/why",
    ]
    done = cli("chat", *model[:2], "--set", "express.focus.distractors=random", stdin="\n".join(lines))
    assert done.code == 0, done.err
    assert "there is no reply to explain yet" in done.err and "unknown emotion or intent 'blue'" in done.err
    assert "alpha is -3.0; accepted" in done.err and "alpha is 'x'; accepted: a number" in done.err
    assert "the word 'cat' does not stand in" in done.err and "about: dog" in done.err
    first, second = done.out.split("emotion   ")[1:]
    assert first.startswith("nostalgic 100.0%  (given)") and "about     dog  (given)" in first
    assert "intent    consoling  (given)" in first and "alpha 2" in first
    assert not second.startswith("nostalgic") and "focused" not in second and "not  " not in second


def test_why_is_not_told_of_a_reply_without_steps(cli, model):
    done = cli("chat", *model[:2], stdin=f"/why\n{TEXT}\n/why\nHe was old.\n/why\n/reset\n/why\n")
    assert done.err.count("there is no reply to explain yet") == 2  # at first, and after all was forgotten
    assert done.out.count("emotion   ") == 2 and "did not use five steps" not in done.err
    done = cli("chat", *model[:2], stdin=f"{TEXT}\n/why\nHe was old.\n/why\n")
    assert "the last reply did not use five steps" in done.err and done.out.count("emotion   ") == 1


def test_a_chat_by_a_file_shows_the_words_it_chose(cli, yaml_file):
    done = cli("chat", "--listener", str(yaml_file), stdin=f"{TEXT}\n/why\n")
    assert done.code == 0 and "about: " in done.err and "replies" in done.out
    assert len(cli("chat", "--listener", str(yaml_file), stdin=f"{TEXT}\n").out.splitlines()) == 1


def test_a_system_without_an_emotion_head_says_so(cli, tmp_path):
    import sys

    sys.path.insert(0, str(Path(__file__).parents[1] / "judging"))
    from chat_server import ChatServer

    with ChatServer(lambda body: "I hear you.") as server:
        place = ("--system", "language_model", "--endpoint", server.url, "--llm", "llm")
        shown = cli("respond", TEXT, *place, "--show", "analysis")
        assert "feels     (this system names no emotion)" in shown.out and "afraid" not in shown.out
        record = json.loads(cli("respond", TEXT, *place, "--json").out)
        assert record["understanding"]["emotion"] is None and len(record["understanding"]["emotions"]) == 32
        ReplyRecord.model_validate(record)
        talk = cli("chat", *place, "--show", "analysis", stdin="Hi.\n")
        assert "names no emotion" in talk.out and "afraid" not in talk.out
