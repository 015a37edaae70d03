"""A new system by the how-to: its file, registry line, recipe and contract case are the blocks of that page."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
import test_contract

from empatheia_research.checkpoints.system_recipes import recipes_of_systems
from empatheia_research.responders import RESPONDERS

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "add_a_responder.md"


def block(language: str) -> str:
    """The first block of the page in a language."""
    found = re.search(rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


@pytest.fixture
def bag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the recipe in which the system is registered; nothing else in the package knows of it."""
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "bag_system.py").write_text(block("python"), encoding="utf-8")
    recipe = tmp_path / "recipes" / "bag" / "bag.yaml"
    recipe.parent.mkdir(parents=True)
    recipe.write_text(block("yaml"), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path / "package"))
    monkeypatch.setattr(RESPONDERS, "_entries", {**RESPONDERS._entries, "bag": "bag_system:Bag"})
    monkeypatch.setattr("empatheia_research.checkpoints.system_recipes.recipes_root", lambda: tmp_path / "recipes")
    monkeypatch.setattr("empatheia.resources.catalogue.bundled_root", lambda: tmp_path / "bundled")
    monkeypatch.setenv("EMPATHEIA_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("EMPATHEIA_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    recipes_of_systems.cache_clear()
    yield tmp_path
    recipes_of_systems.cache_clear()
    sys.modules.pop("bag_system", None)


def test_one_file_one_line_one_recipe(bag: Path, cli):
    told = cli("respond", "I got the job!", "--system", "bag")
    assert told.code == 3 and "empatheia train recipes/bag/bag.yaml --size cpu" in told.err
    trained = cli("train", "recipes/bag/bag.yaml", "--size", "smoke", "--quiet")
    assert trained.code == 0, trained.err
    metrics = json.loads((bag / "runs/bag/bag/smoke-seed1024/metrics.json").read_text())["metrics"]
    assert metrics["ppl_word"]["value"] > 1
    listed = json.loads(cli("models", "list", "--json").out)
    (row,) = (row for row in listed if row["name"] == "bag")
    assert (row["paper"], row["recipe"], row["licence"]) == ("Nobody and Noone, TOY 2031", "bag/bag", "CC BY-NC 4.0")
    assert row["parameters"] > 0 and row["folder"]
    answered = cli(
        "respond", "I got the job!", "--system", "bag", "--json", "--set", "express.decoding.max_new_tokens=4"
    )
    assert answered.code == 0 and json.loads(answered.out)["model"] == "bag/bag"


def test_its_case_passes_the_contract(bag: Path, monkeypatch: pytest.MonkeyPatch):
    names: dict[str, object] = {}
    exec(block("py"), names)
    monkeypatch.setattr(test_contract, "CASES", names["CASES"])
    test_contract.test_every_parameter_gets_a_gradient("bag")
    test_contract.test_loss_falls_on_eight_examples("bag")
    test_contract.test_batch_equals_singles_and_padding_content_does_not_matter("bag")
    test_contract.test_cached_equals_uncached("bag", 2)
    test_contract.test_gold_labels_do_not_influence_word_scores("bag")
    test_contract.test_the_reply_does_not_influence_earlier_words("bag")
