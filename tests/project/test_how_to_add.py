"""The pages "Add a metric, a corpus that trains, a command, a part, a voice, a ranking term", followed to the letter.

Each page's file is written where the page says (the package's folder is extended by a temporary one), its registry line
is added to the registry that the page names, and its commands are run.
"""

from __future__ import annotations

import ast
import importlib.metadata
import json
import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from empatheia.analysis.component import COMPONENTS
from empatheia.cli.core_commands import COMMANDS
from empatheia.errors import CheckpointError, ConfigError
from empatheia.listener import FocusedListener
from empatheia.listener.terms.term import TERMS
from empatheia.metrics import METRICS
from empatheia.metrics.base import Metric
from empatheia.records.dialogue import Dialogue
from empatheia.taxonomy import EMOTIONS
from empatheia.voices.voice import VOICES
from empatheia_research.corpora import CORPORA, licences
from metrics import test_every_metric as contract

HOW_TO = Path(__file__).resolve().parents[2] / "docs" / "howto"


class Page:
    """A how-to page: its blocks, the file it asks for and its registry line."""

    def __init__(self, name: str) -> None:
        self.text = (HOW_TO / name).read_text(encoding="utf-8")
        (self.file,) = re.findall(r"\*\*1\. The file\*\*, `src/(empatheia(?:_\w+)?/[\w/]+\.py)`", self.text)
        (line,) = self.blocks("py")
        self.entry: dict[str, Any] = ast.literal_eval("{" + line + "}")
        (self.name,) = self.entry

    def blocks(self, language: str) -> list[str]:
        """Code blocks in a language, in order."""
        return re.findall(rf"^```{language}\n(.*?)^```", self.text, re.DOTALL | re.MULTILINE)

    def commands(self) -> list[str]:
        """Lines of its ``text`` blocks."""
        return [line for block in self.blocks("text") for line in block.splitlines() if line.strip()]


@pytest.fixture
def follow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, dict[str, Any]], Page]]:
    """``follow(page, registry)`` takes a page's two steps; they are undone at the end."""
    added = []

    def take(name: str, registry: dict[str, Any]) -> Page:
        page = Page(name)
        file = tmp_path / "src" / page.file
        file.parent.mkdir(parents=True)
        file.write_text(page.blocks("python")[0], encoding="utf-8")
        module = page.file.removesuffix(".py").replace("/", ".")
        package = import_module(module.rpartition(".")[0])
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(file.parent)])
        monkeypatch.setitem(registry, page.name, page.entry[page.name])
        added.append((package, module))
        return page

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EMPATHEIA_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("EMPATHEIA_DATA", raising=False)
    yield take
    for package, module in added:
        sys.modules.pop(module, None)
        if hasattr(package, module.rpartition(".")[2]):
            delattr(package, module.rpartition(".")[2])


@pytest.fixture
def shell(cli, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Runs a line of a page, ``export``, ``mkdir``, ``printf ... > file`` or ``empatheia``, and gives its output."""

    def run(line: str) -> str:
        words = shlex.split(line)
        if words[0] == "export":
            name, _, value = words[1].partition("=")
            monkeypatch.setenv(name, value.replace("$PWD", str(Path.cwd())))
            return ""
        if words[0] == "mkdir":
            Path(words[1]).mkdir()
            return ""
        if words[0] == "printf":
            assert words[2] == ">"
            Path(words[3]).write_text(words[1].replace("\\n", "\n"), encoding="utf-8")
            return ""
        assert words[0] == "empatheia", line
        done = cli(*words[1:])
        assert done.code == 0, done.err
        return done.out

    return run


def test_a_metric_is_one_file_and_one_line(follow, shell):
    page = follow("add_a_metric.md", METRICS._entries)
    *commands, tests = page.commands()
    write, score = commands
    shell(write)
    table = shell(score)
    assert re.search(r"question_share +50\.00 .*percent", table), table
    assert "not measured" not in table
    module = import_module("empatheia.metrics.questions")
    names = vars(module).copy()
    exec(page.blocks("python")[1], names)  # "It can be tried at once"
    assert names["metric"].compute().value == 50
    assert tests == f"make test ARGS='tests/metrics/test_every_metric.py -k {page.name}'"


def test_a_metric_meets_the_contract_suite_without_an_entry_there(follow):
    page = follow("add_a_metric.md", METRICS._entries)
    contract.test_the_registered_name_is_the_name_of_the_score(page.name)
    contract.test_a_merge_is_a_concatenation_and_order_is_nothing(page.name)
    contract.test_an_undefined_score_says_why_and_all_scores_survive_writing(page.name)
    contract.test_weights_of_one_are_the_score_and_of_zero_leave_items_out(page.name)
    contract.test_without_items_there_is_no_score(page.name)
    contract.test_another_setting_is_another_score(page.name, "tokenizer")


def test_a_metric_of_unknown_inputs_is_told_where_to_say_what_they_are(monkeypatch):
    class Odd(Metric):
        def update(self, hats):
            """Adds hats."""

        def value_of(self, sums):
            return sums[..., 0]

        def settings(self):
            return {}

    monkeypatch.setattr(contract, "build", lambda name: Odd())
    with pytest.raises(pytest.fail.Exception, match=r"odd: .*hats.* add Odd to ITEMS"):
        contract.items_of("odd")


def test_a_corpus_that_trains_is_one_file_and_one_line(follow, shell, cli):
    page = follow("add_a_corpus.md", CORPORA._entries)
    absent = cli("data", "show", page.name)
    assert absent.code == 3 and "ask the column's editors" in absent.err
    names = {"__name__": "a_page"}
    for block in page.blocks("python"):
        exec(block, names)
    export, show, stats, train = page.commands()
    shell(export)
    shown = shell(show)
    assert shown.startswith("letters:train/1  anxious\n") and "listener What would help you rest?" in shown
    assert [line.split()[:3] for line in shell(stats).splitlines()[1:]] == [
        ["letters", "train", "8"],
        ["letters", "valid", "2"],
        ["letters", "test", "2"],
    ]
    (listed,) = (entry for entry in json.loads(cli("data", "list", "--json").out) if entry["name"] == page.name)
    assert listed["present"] and listed["licence"] == "CC BY 4.0" and listed["released_weights"]
    assert licences.licence(page.name).home == "the column's editors"
    shell(train)
    (run,) = Path("runs").rglob("metrics.json")
    record = json.loads(run.read_text())
    assert record["data"]["joint"]["train"] == 8 and record["metrics"]["ppl_word"]["n"] == 2
    manifest = json.loads((run.parent / "checkpoint" / "empatheia.json").read_text())
    assert manifest["licence"] == "CC BY 4.0"


def test_a_command_is_one_file_and_one_line(follow, shell, cli):
    page = follow("add_a_command.md", COMMANDS)
    group, own, run = page.commands()
    first_line = page.entry[page.name][1]
    assert f"{page.name} {first_line}" in " ".join(shell(group).split())
    help_text = shell(own)
    assert first_line in help_text and "\n  empatheia emotions --like ful --json\n" in help_text
    wanted = {str(i): name for i, name in enumerate(EMOTIONS) if "ful" in name}
    assert json.loads(shell(run)) == wanted != {}
    refused = cli(page.name, "--like", "xyz")
    assert refused.code == 2 and refused.err.startswith("error: no emotion contains 'xyz'; accepted: a part of one of")


def test_a_command_of_another_package_is_found_by_its_entry_point(follow, cli, monkeypatch):
    page = follow("add_a_command.md", {})
    assert "no such command 'emotions'" in cli("emotions").err
    (group,) = tomllib.loads(page.blocks("toml")[0])["project"]["entry-points"]
    point = importlib.metadata.EntryPoint("emotions", page.entry["emotions"][0], group)
    monkeypatch.setattr("empatheia.cli.entry_points", lambda group: [point] if group == point.group else [])
    assert "emotions A command of empatheia." in " ".join(cli("--help").out.split())
    assert cli("emotions", "--like", "joyful").out.split() == [str(EMOTIONS.index("joyful")), "joyful"]


def page_code(page: Page, module: str, place: int = 1) -> dict[str, Any]:
    """Names after a later block of a page was run beside those of its file."""
    names = vars(import_module(module)).copy()
    exec(page.blocks("python")[place], names)
    return names


def test_a_part_is_one_file_and_one_line(follow, shell, cli, capsys):
    page = follow("add_a_part.md", COMPONENTS._entries)
    names = page_code(page, "empatheia.analysis.rule_intents")
    assert "questioning {'intent': 'rule_intents'}" in capsys.readouterr().out
    *made, analyze = page.commands()
    for line in made:
        shell(line)
    assert re.search(r"questioning\b.*1\.00|questioning\b.*100", shell(analyze)), shell(analyze)
    found = json.loads(cli("analyze", "I am sorry?", "--with", "intent", "--model-for", "intent=rules", "--json").out)
    shares = found["intent"][0]["probabilities"]
    assert (shares["questioning"], shares["sympathizing"], found["models"]) == (0.5, 0.5, {"intent": "rules"})
    rules = names["rules"]
    both = rules.annotate([Dialogue.of("Why?"), Dialogue.of("Oh.", "Sorry.")])
    assert both == [*rules.annotate([Dialogue.of("Why?")]), *rules.annotate([Dialogue.of("Oh.", "Sorry.")])]
    with pytest.raises(CheckpointError, match=r"no intent 'questionin'\. Did you mean 'questioning'"):
        names["RuleIntents"]({"?": "questionin"})


def test_a_folder_that_nothing_here_reads_says_so(tmp_path, cli):
    (tmp_path / "empatheia.json").write_text('{"component": "rule_intents"}', encoding="utf-8")
    done = cli("analyze", "Hello.", "--with", "intent", "--model-for", f"intent={tmp_path}")
    assert done.code and re.search(r"a model for 'intent': no component is called 'rule_intents'", done.err), done.err


def test_a_voice_is_one_file_and_one_line(follow, shell, cli, capsys):
    page = follow("add_a_voice.md", VOICES._entries)
    names = page_code(page, "empatheia.voices.asking")
    first = capsys.readouterr().out.strip()
    alone, beside = page.commands()
    assert first in shell(alone) and first.endswith("What happened then?")
    shown = shell(beside)
    assert first in shown and "reflection" in shown and "asking" in shown
    listener = FocusedListener(voices=[names["AskingVoice"]()])
    texts = ["My dog ran away in the park.", "I passed my exam!"]
    assert [one.text for one in listener.respond(texts)] == [listener.respond(text).text for text in texts]
    assert listener.respond("I want to kill myself.").care["level"] == "crisis"


def test_a_voice_that_is_not_registered_is_taken_for_a_model(cli):
    done = cli("respond", "My dog ran away.", "--set", "express.responders=[asking]")
    assert done.code == 3 and "asking" in done.err


def test_a_ranking_term_is_one_file_and_one_line(follow, shell):
    page = follow("add_a_ranking_term.md", TERMS._entries)
    explain, tests = page.commands()
    assert "question" in shell(explain)
    listener = FocusedListener()
    why = listener.respond("My dog ran away in the park.", explain=True)
    assert why.weights["question"] == 0.5
    assert {one.terms["question"] for one in why.candidates} <= {0.0, 1.0}
    for one in why.candidates:
        counted = sum(why.weights[name] * value for name, value in one.terms.items() if value is not None)
        assert one.score == pytest.approx(counted, abs=1e-3)
    assert tests == f"make test ARGS='tests/listener/test_ranking_terms.py -k {page.name}'"


def test_a_ranking_term_that_is_not_registered_is_named():
    with pytest.raises(ConfigError, match=r"no ranking term is called 'question'\."):
        TERMS.get("question")
