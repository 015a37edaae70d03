"""What a plain installation has to bring: recipes and run records work by name outside of the checkout."""

from __future__ import annotations

import os
import subprocess
import tomllib
from pathlib import Path

import pytest

import fresh
from empatheia.errors import ConfigError
from empatheia_research.recipes.recipe import find_recipe, load_recipe
from empatheia_research.shipped import recipes_root, shipped_path

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = "empatheia_research/shipped"


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """The packages as the wheel lays them out: ``recipes`` and the records of ``results`` inside of research."""
    site = tmp_path_factory.mktemp("site")
    for package in (ROOT / "src").glob("empatheia*"):
        (site / package.name).mkdir()
        for place in package.iterdir():
            if place.name != "__pycache__":
                (site / package.name / place.name).symlink_to(place)
    shipped = site / SHIPPED
    shipped.mkdir()
    (shipped / "recipes").symlink_to(ROOT / "recipes")
    for file in (ROOT / "results").rglob("*.json"):
        target = shipped / file.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(file)
    return site


def run(installed: Path, place: Path, *words: str) -> subprocess.CompletedProcess:
    env = {**os.environ, "PYTHONPATH": str(installed), "EMPATHEIA_OFFLINE": "1"}
    code = "import sys; from empatheia.cli import main; main(sys.argv[1:])"
    return fresh.run(["-c", code, *words], cwd=place, env=env)


def test_the_wheel_takes_recipes_and_records():
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"] == {"recipes": f"{SHIPPED}/recipes"}
    assert "/results/**/*.json" in wheel["include"] and wheel["sources"]["results"] == f"{SHIPPED}/results"
    assert sum(file.stat().st_size for file in (ROOT / "results").rglob("*.json")) < 3_000_000


def test_the_queue_is_found(installed, tmp_path):
    done = run(installed, tmp_path, "queue", "status", "recipes/queue.yaml")
    assert done.returncode == 0 and "hours left at the measured rate" in done.stdout, done.stderr
    done = run(installed, tmp_path, "queue", "status", "recipes/cue.yaml")
    assert done.returncode == 2 and done.stderr.startswith("error: no queue at 'recipes/cue.yaml'; accepted: a YAML")


@pytest.mark.parametrize("name", ["recipes/gao2021/transformer.yaml", "gao2021/transformer"])
def test_train_by_name(installed, tmp_path, name):
    done = run(installed, tmp_path, "train", name, "--size", "smoke", "--budget", "0", "--quiet")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("gao2021/transformer: not started")


def test_records_are_found(installed, tmp_path):
    done = run(installed, tmp_path, "leaderboard")
    n_runs = len(list((ROOT / "results").rglob("*-seed*.json")))
    assert done.returncode == 0 and done.stdout.startswith(f"leaderboard.html: {n_runs} runs, "), done.stderr
    assert f"those that came with empatheia, {installed / SHIPPED / 'results'}" in done.stderr
    done = run(installed, tmp_path, "reproduce", "rashkin2018/9")
    assert done.returncode == 0, done.stderr
    assert "rashkin2018/fasttext cpu" in done.stdout and "records: those that came with empatheia" in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"leaderboard.html"}  # no report unasked
    done = run(installed, tmp_path, "evaluate", "understanding")
    assert done.returncode == 0 and "rashkin2018/emotion_situation cpu" in done.stdout, done.stderr


def test_a_recipe_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ours = recipes_root() / "gao2021" / "soft.yaml"
    for given in ("gao2021/soft", "gao2021/soft.yaml", "recipes/gao2021/soft.yaml", "recipes/gao2021/soft", ours):
        assert find_recipe(given) == ours
    assert load_recipe("gao2021/soft", size="smoke").name == "gao2021/soft"
    (tmp_path / "gao2021").mkdir()
    (tmp_path / "gao2021" / "soft.yaml").write_text("name: own\n")
    assert find_recipe("gao2021/soft.yaml") == Path("gao2021/soft.yaml")  # one's own file comes first
    for wrong, near in (("gao2021/sofd", "gao2021/soft"), ("transformer", "gao2021/transformer")):
        with pytest.raises(
            ConfigError, match=rf"no recipe at '{wrong}'. Did you mean '{near}'\? Accepted: a YAML file"
        ):
            find_recipe(wrong)


def test_files_that_recipes_name_are_found_outside_of_the_checkout(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    named = Path("recipes/annotations/sample_lexicon.txt")
    assert shipped_path(named) == recipes_root() / "annotations" / "sample_lexicon.txt"
    assert shipped_path("recipes/none.txt") == Path("recipes/none.txt") and shipped_path("mine.txt") == Path("mine.txt")
    named.parent.mkdir(parents=True)
    named.touch()
    assert shipped_path(named) == named


def test_a_system_taken_for_a_model_is_told(cli):
    done = cli("respond", "I lost my keys.", "--model", "moel")
    assert done.code == 3 and "--system moel" in done.err and "models train moel" not in done.err
    recipe = done.err.partition("empatheia train ")[2].split()[0]
    assert find_recipe(recipe).is_file()
