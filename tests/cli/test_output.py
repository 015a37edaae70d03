"""Rendering: plain without a terminal, styled on one, safe with any text."""

import io
import json

import pytest

from empatheia.cli.output import marked_turn, perceived_lines, print_lines, visible
from empatheia.records.analysis import Analysis, Labels, TurnAnalysis
from empatheia.records.dialogue import Dialogue, Span, Turn
from empatheia.taxonomy import EMOTIONS


def made(text: str, *spans: Span, **fields) -> Analysis:
    emotions = dict.fromkeys(EMOTIONS, 0.0) | {"sad": 0.75, "lonely": 0.25}
    newest = TurnAnalysis(0, Labels(emotions), causes=spans)
    return Analysis(Dialogue("", (Turn("speaker", text),)), (newest,), **fields)


def plain(lines) -> str:
    stream = io.StringIO()
    print_lines(lines, stream)
    return stream.getvalue()


def test_plain_text_has_brackets_and_ascii_bars():
    analysis = made("I lost my dog today.", Span(0, 2, 13, 0.875), unsure=("emoji",))
    assert plain(perceived_lines(analysis, top=2)) == (
        "speaker   I [lost my dog] today.\n"
        "feels     sad          ##################......  75.0%\n"
        "          lonely       ######..................  25.0%\n"
        "because   lost my dog (0.88)\n"
        "uncertain emoji\n"
    )


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_colours_unless_told_not_to(monkeypatch: pytest.MonkeyPatch):
    analysis = made("I lost my dog today.", Span(0, 2, 13, 0.875))
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    coloured, uncoloured = Terminal(), Terminal()
    print_lines(perceived_lines(analysis, is_plain=False), coloured)
    assert "\x1b[1;4;33mlost my dog\x1b[0m" in coloured.getvalue() and "█" in coloured.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    print_lines(perceived_lines(analysis, is_plain=False), uncoloured)
    assert "33m" not in uncoloured.getvalue() and "lost my dog" in uncoloured.getvalue()


def test_markup_and_control_characters_are_only_text():
    text = "[red]I\x1b[31m am\u202e sad[/red]\n\x07today\ud800"
    assert visible(text) == "[red]I?[31m am? sad[/red] ?today?" and len(visible(text)) == len(text)
    stream = Terminal()
    print_lines([marked_turn(Turn("speaker", text), [], False)], stream)
    assert "[red]I?" in stream.getvalue() and "\x07" not in stream.getvalue()


def test_long_turns_are_shown_in_part():
    text = "word " * 1000
    shown = plain([marked_turn(Turn("speaker", text), [Span(0, 0, 4, 0.5), Span(0, 4000, 4004, 0.5)], True)])
    assert shown.startswith("[word] word") and shown.endswith("... (5,000 characters)\n") and len(shown) < 1300


def test_wrapped_text_stays_right_of_its_label(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    print_lines(perceived_lines(made("word " * 20), top=0, is_plain=False), stream)
    lines = [line.rstrip() for line in stream.getvalue().splitlines()]
    assert len(lines) > 2 and "speaker   " in lines[0]
    assert all(line.startswith(" " * 10 + "word") for line in lines[1:])


def test_only_the_last_turns_may_be_repeated():
    turns = (Turn("speaker", "One."), Turn("listener", "Two."), Turn("speaker", "Three."))
    analysis = Analysis(Dialogue("", turns), (TurnAnalysis(2, causes=(Span(0, 0, 3, 0.5),)),))
    shown = plain(perceived_lines(analysis, top=0, last_turns=1))
    assert shown == "speaker   Three.\nbecause   One (0.50)\n"


ESCAPES = "\x1b]0;title\x07\x1b[2J\x9b31m\u202e\x85"
HIDDEN = "\u202e\x85\x9b\x1b\x07"


def test_what_each_package_logs_is_shown_once(capsys, monkeypatch):
    import logging

    from empatheia.cli import _log_visibly

    packages = ("empatheia", "empatheia_research", "empatheia_people")
    for name in (None, *packages):
        monkeypatch.setattr(logging.getLogger(name), "handlers", [])
    _log_visibly()
    _log_visibly()
    for name in packages:
        logging.getLogger(f"{name}.part").warning("%s warns", name)
    assert capsys.readouterr().err.splitlines() == [f"{name} warns" for name in packages]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_no_escape_of_others_reaches_the_terminal(is_terminal, capsys, monkeypatch):
    import logging

    from empatheia.cli import _VisibleHandler, output

    class Stream(io.StringIO):
        def isatty(self):
            return is_terminal

    stream = Stream()
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    output.print_lines([[(f"a{ESCAPES}b", ""), (ESCAPES, "")]], stream)
    output.print_json({"a": ESCAPES, ESCAPES: "\ud800\u200b é 日"}, stream)
    output.show(f"one{ESCAPES}\ntwo")
    output.show_piece(ESCAPES)
    output.say(ESCAPES)
    _VisibleHandler().emit(logging.makeLogRecord({"msg": ESCAPES}))
    printed = capsys.readouterr()
    told = stream.getvalue() + printed.out + printed.err
    assert all(c == "\n" or (c.isprintable() and c not in HIDDEN) for c in told), told
    assert printed.out.startswith("one") and "\ntwo\n" in printed.out
    (line,) = [line for line in told.splitlines() if line.startswith("{")]
    assert json.loads(line) == {"a": ESCAPES, ESCAPES: "\ud800\u200b é 日"} and "é 日" in line


def test_escapes_in_a_manifest_and_a_readme(tiny_copy, cli, tmp_path):
    manifest = tiny_copy / "empatheia.json"
    evil = {"name": f"evil{ESCAPES}", "licence": ESCAPES, "degraded": ESCAPES}
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | evil))
    (tiny_copy / "README.md").write_text(f"# Model {ESCAPES}\n\nSecond paragraph.\n")
    for args in (
        ("respond", "I lost my job.", "--model", tiny_copy, "--set", "express.decoding.max_new_tokens=2"),
        ("respond", "I lost my job.", "--model", tiny_copy, "--set", "express.decoding.max_new_tokens=2", "--json"),
        ("analyze", "I lost my job.", "--model", tiny_copy, "--json"),
        ("models", "show", tiny_copy),
        ("models", "show", tiny_copy / ESCAPES),
        ("analyze", tmp_path / f"{ESCAPES}.csv"),
        ("train", ESCAPES),
        (ESCAPES,),
    ):
        done = cli(*map(str, args))
        told = done.out + done.err
        assert told and all(c == "\n" or (c.isprintable() and c not in HIDDEN) for c in told), (args, told)
