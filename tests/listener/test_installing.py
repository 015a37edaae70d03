"""``empatheia models train`` and ``pull``: recipes are found, models land where the look-up finds them."""

from __future__ import annotations

import json

import pytest
from fake_components import FAKES

from empatheia.errors import CheckpointError, ConfigError, MissingResourceError
from empatheia.listener.analyzer import Analyzer
from empatheia.listener.catalogue import known_models
from empatheia.listener.installing import SMOKE, install_folder, install_run, models_named, recipe_file
from empatheia.listener.parts import PART_MODELS
from empatheia.resources import cache_dir, installed_model, models_root
from empatheia.understanding import COMPONENTS


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    monkeypatch.delenv("EMPATHEIA_MODELS", raising=False)
    monkeypatch.setenv("EMPATHEIA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("EMPATHEIA_OFFLINE", "1")


@pytest.fixture
def fakes(monkeypatch):
    monkeypatch.setattr(
        COMPONENTS, "_entries", {part: f"fake_components:{own.__name__}" for part, own in FAKES.items()}
    )


def finished_run(folder, size="cpu"):
    (folder / "checkpoint").mkdir(parents=True)
    (folder / "checkpoint" / "empatheia.json").write_text('{"format": 1, "name": "x", "licence": "MIT"}')
    record = {"recipe": "meed2/emotion_intent", "size": size, "seed": 7, "metrics": {"accuracy": {"value": 61.5}}}
    (folder / "metrics.json").write_text(json.dumps(record))
    return folder


def test_names_stand_for_models():
    assert [model.name for model in models_named(["causes"])] == ["causes", "cause_spans"]
    assert [model.name for model in models_named(["cause_spans", "intent", "intent"])] == ["cause_spans", "intent"]
    assert [model.name for model in models_named(["all"])] == [model.name for model in PART_MODELS if model.recipe]
    with pytest.raises(ConfigError, match=r"no model 'intents' to train\. Did you mean 'intent'"):
        models_named(["intents"])
    with pytest.raises(
        ConfigError, match="no recipe makes 'inferences'; it is made by: empatheia infer --build-index atomic"
    ):
        models_named(["inferences"])


@pytest.mark.parametrize("recipe", [model.recipe for model in PART_MODELS if model.recipe])
def test_every_recipe_is_there_and_loads(recipe):
    from empatheia.config import load_recipe

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
    assert Analyzer("emotion").analyze("I won!").uncertain == (f"stand-in for emotion: {SMOKE}",)


def test_models_in_empatheia_models_and_the_cache_are_listed(tmp_path, monkeypatch):
    install_run(finished_run(tmp_path / "run"), "intent")
    monkeypatch.setenv("EMPATHEIA_MODELS", str(tmp_path / "mirror"))
    install_run(tmp_path / "run", "emotion")
    found = {entry.name: entry for entry in known_models() if entry.origin != "bundled"}
    assert {name: entry.origin for name, entry in found.items()} == {"intent": "cache", "emotion": "EMPATHEIA_MODELS"}
    assert found["intent"].numbers == {"accuracy": 61.5}


def test_an_unfinished_run_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="is no finished run; call the training again"):
        install_run(tmp_path, "intent")


def test_a_folder_is_installed_once_it_answers(tmp_path, fakes, monkeypatch):
    source = finished_run(tmp_path / "run") / "checkpoint"
    assert install_folder(source, "intent") == installed_model("intent")
    assert install_folder("intent", "intent") == installed_model("intent")  # itself, untouched
    monkeypatch.setattr(FAKES["emotion"], "part", "words")
    with pytest.raises(CheckpointError, match="gives a component for 'words'"):
        install_folder(source, "emotion")
    assert installed_model("emotion") is None


def test_train_command(cli, tmp_path, monkeypatch):
    """Trains at smoke size on the self-written sample and is found by the analysis, offline."""
    monkeypatch.setenv("EMPATHEIA_CACHE", str(tmp_path / "cache"))
    done = cli("models", "train", "intent", "--size", "smoke", "--quiet", "--json")
    (row,) = json.loads(done.out.splitlines()[-1])
    assert done.code == 0 and row["state"] == "installed" and row["folder"] == str(cache_dir() / "models" / "intent")
    again = cli("models", "train", "intent", "--size", "smoke")
    assert again.out == f"intent: installed already in {row['folder']}\n"
    asked = cli("analyze", "I won the race!", "--with", "intent", "--json")
    record = json.loads(asked.out)
    assert record["models"] == {"intent": "meed2/emotion_intent (smoke, seed 1024)"} and SMOKE in record["uncertain"][0]
    assert "intent" in cli("models", "list").out


def test_train_command_says_when_the_time_is_up(cli):
    done = cli("models", "train", "intent", "reaction", "--size", "smoke", "--quiet", "--budget", "0")
    assert done.code == 0 and done.out == "intent: not started\nreaction: not started\n"
    assert "the same command goes on" in done.err


def test_pull_command(cli, tmp_path, fakes):
    done = cli("models", "pull", "intent")
    assert done.code == 3 and "no weights are published for 'intent'. Make it with: empatheia models train" in done.err
    source = finished_run(tmp_path / "run") / "checkpoint"
    done = cli("models", "pull", str(source), "--as", "intent")
    assert done.code == 0 and done.out == f"intent: {cache_dir() / 'models' / 'intent'}\n"
    assert cli("models", "pull", "intent").out.startswith("intent: ")
    assert cli("models", "pull", str(source), "--as", "intents").code == 2
