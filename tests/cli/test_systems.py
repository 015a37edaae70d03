"""``respond`` and ``chat`` by system, endpoint and folder; ``models list`` over every system, a new one included."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from empatheia_research.checkpoints import system_recipes
from empatheia_research.checkpoints.system_recipes import recipes_of_systems
from empatheia_research.recipes.recipe import load_recipe
from empatheia_research.responders import RESPONDERS
from empatheia_research.voices import systems
from empatheia_research.voices.systems import find_system, known_systems
from tiny_language_models import make_folder

sys.path.insert(0, str(Path(__file__).parents[1] / "judging"))
from chat_server import ChatServer

TEXT = "I lost my grandmother last week."
LM = ("--system", "language_model")


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """No model is bundled or installed, and there are no runs."""
    monkeypatch.setenv("EMPATHEIA_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("EMPATHEIA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("empatheia.resources.catalogue.bundled_root", lambda: tmp_path / "bundled")
    monkeypatch.delenv("EMPATHEIA_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put_run(tiny: Path, root: Path, recipe: str, size: str = "cpu", **manifest) -> Path:
    folder = root / recipe / f"{size}-seed1" / "checkpoint"
    shutil.copytree(tiny, folder)
    record = json.loads((folder / "empatheia.json").read_text()) | manifest
    (folder / "empatheia.json").write_text(json.dumps(record))
    return folder


def test_a_system_answers_by_its_best_checkpoint(cli, nowhere, tiny_model):
    put_run(tiny_model, nowhere / "runs", "mine/smoke", "smoke", name="small")
    best = put_run(tiny_model, nowhere / "runs", "mine/full", "full", name="large")
    put_run(tiny_model, nowhere / "runs", "mine/cpu", "cpu", name="middle")
    done = cli("respond", TEXT, "--system", "cause_gated", "--json", "--set", "express.decoding.max_new_tokens=5")
    assert done.code == 0 and json.loads(done.out)["model"] == "large" and "runs/mine/full" in done.err
    assert find_system("cause_gated") == best.relative_to(nowhere)
    assert cli("respond", TEXT, "--system", "cause_gated", "--runs", "elsewhere").code == 3
    shutil.copytree(tiny_model, nowhere / "models" / "cause_gated")
    installed = cli("respond", TEXT, "--system", "cause_gated", "--json", "--set", "express.decoding.max_new_tokens=5")
    assert json.loads(installed.out)["model"] == "tiny"  # what is installed goes before runs
    talk = cli("chat", "--system", "cause_gated", "--show", "analysis", stdin="Hi.\n")
    assert talk.code == 0 and "feels" in talk.out


@pytest.mark.parametrize(
    ("lesser", "whole"),
    [
        ("moel/without_topk", "moel/moel"),
        ("moel/moel_repo", "imagine/moel"),
        ("moel/trs", "moel/multi_trs"),
        ("meed2/transformer_raw", "meed2/generator"),
        ("gao2021/soft_without_el", "gao2021/hard"),
    ],
)
def test_an_ablation_does_not_answer_for_its_system(cli, nowhere, tiny_model, lesser, whole):
    """Newer, but less than the system; of a larger size it does."""
    best = put_run(tiny_model, nowhere / "runs", whole, name=whole)
    put_run(tiny_model, nowhere / "runs", lesser, name=lesser)
    os.utime(best / "empatheia.json", (1, 1))
    assert find_system("cause_gated") == best.relative_to(nowhere)
    larger = put_run(tiny_model, nowhere / "runs", lesser, "full", name=lesser)
    assert find_system("cause_gated") == larger.relative_to(nowhere)


@pytest.mark.parametrize("system", [name for name in RESPONDERS.names() if recipes_of_systems().get(name)])
def test_without_a_checkpoint_the_command_is_named(cli, nowhere, system):
    """It makes this system, whole, and starts from no other run."""
    done = cli("respond", TEXT, "--system", system)
    assert done.code == 3 and done.err.count("\n") == 1
    command = done.err.partition("empatheia train ")[2].split(" (")[0].split()
    recipe = load_recipe(Path(command[0]), size=command[2])
    assert recipe.start is None and command[1:] == ["--size", "cpu"]
    assert RESPONDERS.target(recipe.system) == RESPONDERS.target(system)
    assert not {"without", "trs", "transformer", "repo"} & set(recipe.name.rpartition("/")[2].split("_")) - {
        *system.split("_")
    }


def test_a_system_s_folder_can_be_named(cli, nowhere, tiny_model):
    run = put_run(tiny_model, nowhere / "elsewhere", "a").parent
    for place in (run, run / "checkpoint"):
        done = cli(
            "respond",
            TEXT,
            "--system",
            "cause_gated",
            "--model",
            str(place),
            "--set",
            "express.decoding.max_new_tokens=4",
        )
        assert done.code == 0 and done.out.strip()
    other = cli("respond", TEXT, "--system", "transformer", "--model", str(run))
    assert other.code == 1 and "is a model of 'cause_gated', not of 'transformer'" in other.err
    assert "Did you mean 'cause_gated'?" in cli("respond", TEXT, "--system", "cause_gate").err


def test_a_served_model_answers_and_tells_what_it_took(cli, nowhere, tiny_model):
    with ChatServer(lambda body: "I hear you.") as server:
        place = (*LM, "--endpoint", server.url, "--llm", "llm")
        done = cli("respond", TEXT, *place, "--price-in", "1", "--price-out", "2")
        assert (done.code, done.out) == (0, "I hear you.\n")
        assert "1 answers, 100 prompt and 10 completion tokens, cost 0.000120" in done.err
        shown = cli("respond", TEXT, *place, "--condition", "emotion", "--model", str(tiny_model), "--json")
        reply = json.loads(shown.out)
        assert reply["understanding"]["emotion"] in server.requests[-1]["messages"][0]["content"]
        assert reply["decoding"]["usage"]["prompt_tokens"] == 100
        talk = cli("chat", *place, stdin="Hi.\nI am sad.\n")
        assert talk.out == "I hear you.\nI hear you.\n" and "2 answers" in talk.err
        assert [m["role"] for m in server.requests[-1]["messages"]] == ["system", "user", "assistant", "user"]


def test_a_local_model_answers(cli, nowhere):
    folder = make_folder(nowhere / "llm")
    done = cli("respond", TEXT, *LM, "--folder", str(folder), "--set", "express.decoding.max_new_tokens=6")
    assert done.code == 0 and "answers" not in done.err
    assert cli("chat", *LM, "--folder", str(folder), stdin="Hi.\n").code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("--endpoint", "http://x/v1"), 2, "--endpoint needs --system language_model"),
        (("--runs", "x"), 2, "give --system too"),
        (("--system", "moel", "--folder", "x"), 2, "--folder is for --system language_model"),
        ((*LM, "--endpoint", "http://localhost:1/v1"), 2, "--endpoint needs --llm"),
        ((*LM, "--folder", "x", "--llm", "y"), 2, "give one of them"),
        ((*LM, "--llm", "y"), 2, "or set EMPATHEIA_BASE_URL"),
        ((*LM, "--folder", "./nowhere"), 3, "no model folder"),
        (LM, 3, "--endpoint URL --llm NAME, or --folder DIR"),
        (("--condition", "emotion"), 2, "--condition is for a language model"),
        (("--price-in", "1"), 2, "give both --price-in and --price-out"),
        ((*LM, "--llm", "y", "--endpoint", "http://localhost:1/v1", "--condition", "mood"), 2, "nothing named 'mood'"),
    ],
)
def test_options_that_do_not_fit_are_named(cli, nowhere, tiny_model, monkeypatch, arguments, code, told):
    monkeypatch.delenv("EMPATHEIA_BASE_URL", raising=False)
    shutil.copytree(tiny_model, nowhere / "models" / "gao2021-small")
    done = cli("respond", TEXT, *arguments)
    assert (done.code, done.err.count("\n")) == (code, 1) and told in done.err


def test_every_system_is_listed_with_its_file_and_recipes(cli):
    listed = json.loads(cli("models", "list", "--json").out)
    rows = {row["name"]: row for row in listed if row["kind"] == "system"}
    assert list(rows) == RESPONDERS.names()
    root = Path(systems.__file__).parents[2]
    for name, row in rows.items():
        assert (root / row["file"]).is_file() and row["title"], name
    assert any(row["kind"] == "model" and row["name"] == "gao2021-small" for row in listed)
    gated = rows["cause_gated"]
    assert gated["paper"] == "Gao et al., Findings of EMNLP 2021" and "gao2021/soft" in gated["recipes"]
    assert gated["published"] and gated["published_row"].startswith("gao2021, Table 2")
    assert gated["licence"] == "CC BY-NC 4.0"
    assert rows["meed2"]["paper"] == "Xie and Pu, CoNLL 2021" and rows["meed2"]["recipe"] == "meed2/generator"
    assert rows["multi_trs"]["recipe"] == "imagine/multi_trs"
    model = rows["language_model"]
    assert set(model["recipes"]) == {
        *(f"language_model/{n}" for n in ("causal_lora", "seq2seq_lora", "zero_shot", "conditioned")),
        "default/voice",
    }
    assert "that of" in model["licence"]
    text = cli("models", "list").out
    assert all(f"\n{name}  " in text for name in RESPONDERS.names())


def test_a_new_system_shows_up_with_its_recipe_record_and_published_row(cli, tmp_path, monkeypatch):
    """One file, one registry line, one recipe: nothing else is edited."""
    package, recipes, results = tmp_path / "package", tmp_path / "recipes", tmp_path / "results"
    for folder in (package, recipes / "toy", results / "toy"):
        folder.mkdir(parents=True)
    (package / "toy_system.py").write_text('"""Toy: it always nods (Nobody and Noone, TOY 2031).\n\nMore."""\n')
    (recipes / "toy" / "nod.yaml").write_text(
        "name: toy/nod\nsystem: toy\nstages: [{losses: {words: 1.0}}]\n"
        "published: {paper: gao2021, table: Table 2, row: MoEL}\n"
    )
    (recipes / "toy" / "nod_repo.yaml").write_text("extends: nod.yaml\nname: toy/nod_repo\n")
    record = {"recipe": "toy/nod", "size": "cpu", "seed": 7, "parameters": 1234, "metrics": {}}
    record["metrics"] = {"accuracy": {"value": 12.5, "unit": "percent"}, "decoding": {"replies": 3}}
    (results / "toy" / "cpu-seed7.json").write_text(json.dumps(record))
    (results / "toy" / "smoke-seed7.json").write_text(json.dumps(record | {"size": "smoke", "parameters": 1}))
    monkeypatch.syspath_prepend(str(package))
    monkeypatch.setattr(RESPONDERS, "_entries", {**RESPONDERS._entries, "toy": "toy_system:Toy"})
    monkeypatch.setattr(system_recipes, "recipes_root", lambda: recipes)
    recipes_of_systems.cache_clear()
    try:
        (toy,) = (entry for entry in known_systems(results, tmp_path / "runs") if entry.name == "toy")
        assert toy.paper == "Nobody and Noone, TOY 2031" and toy.file == "toy_system.py"
        assert (toy.recipe, toy.recipes, toy.size, toy.seed) == ("toy/nod", ("toy/nod", "toy/nod_repo"), "cpu", 7)
        assert toy.parameters == 1234 and toy.ours == {"accuracy": 12.5} and toy.licence == "CC BY-NC 4.0"
        assert toy.published["bleu_nltk_4"] > 0 and toy.published_row == "gao2021, Table 2, MoEL"
        line = next(
            line
            for line in cli("models", "list", "--results", str(results)).out.splitlines()
            if line.startswith("toy ")
        )
        assert "accuracy 12.5 / " in line and "toy/nod (+1)" in line and "0.0 M" in line
        assert "toy/nod.yaml" in cli("respond", TEXT, "--system", "toy", "--runs", str(tmp_path)).err

        (recipes / "toy" / "apart.yaml").write_text("name: toy/apart\nsystem: toy\nstages: [{losses: {words: 1.0}}]\n")
        (results / "toy" / "cpu-seed7.json").write_text(json.dumps(record | {"recipe": "toy/apart"}))
        recipes_of_systems.cache_clear()
        (toy,) = (entry for entry in known_systems(results, tmp_path / "runs") if entry.name == "toy")
        assert (toy.recipe, toy.ours) == ("toy/apart", {"accuracy": 12.5})  # nothing was printed of this one
        assert (toy.published, toy.published_row) == ({}, "")
    finally:
        recipes_of_systems.cache_clear()


def test_a_step_on_the_way_to_another_run_does_not_stand_for_its_system(tmp_path):
    record = {"recipe": "meed2/generator_dialogues", "size": "cpu", "seed": 1, "metrics": {}}
    (tmp_path / "cpu-seed1.json").write_text(json.dumps(record))
    (meed2,) = (entry for entry in known_systems(tmp_path, tmp_path / "runs") if entry.name == "meed2")
    assert (meed2.recipe, meed2.ours) == ("meed2/generator", {}) and meed2.published


def test_a_run_is_installed_as_its_system(cli, nowhere, tiny_model):
    run = put_run(tiny_model, nowhere / "elsewhere", "a").parent
    (run / "metrics.json").write_text(json.dumps({"recipe": "a", "size": "cpu", "seed": 1, "metrics": {}}))
    assert "not of 'moel'" in cli("models", "pull", str(run), "--as", "moel").err
    done = cli("models", "pull", str(run), "--as", "cause_gated")
    assert done.code == 0 and (nowhere / "models" / "cause_gated" / "card.json").is_file()
    said = cli("respond", TEXT, "--system", "cause_gated", "--json", "--set", "express.decoding.max_new_tokens=4")
    assert json.loads(said.out)["model"] == "a (cpu, seed 1)"


def test_listing_imports_no_torch(nowhere):
    import subprocess

    code = (
        "import sys\n"
        "from empatheia_research.voices.systems import known_systems\n"
        "known_systems()\n"
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
