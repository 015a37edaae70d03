"""The default listener measured as a whole."""

from __future__ import annotations

import json

import pytest

from empatheia.errors import MissingResourceError
from empatheia.listener.perceiving import PerceivingListener
from empatheia_research.cli.evaluate import default_listener
from empatheia_research.recipes.recipe import load_recipe
from empatheia_research.shipped import recipes_root
from empatheia_research.training.runner import run
from empatheia_research.training.tasks.whole import share_of_frequent


def test_frequent_replies_are_counted_together():
    assert share_of_frequent(["a", "a", "b", "c"], most=1) == 0.5
    assert share_of_frequent(["a", "a", "b", "c"], most=3) == 1.0
    assert share_of_frequent([]) == 0.0


def test_a_run_measures_what_is_perceived_and_what_is_said(tmp_path):
    recipe = load_recipe(recipes_root() / "default" / "whole.yaml", size="smoke")
    status = run(recipe, tmp_path, show_progress=False)
    metrics = status.metrics["metrics"]
    for corpus, n in (("everyday", 6), ("empathetic_dialogues", 4)):
        assert metrics[f"{corpus} replies: dist_corpus_2"]["n"] == n
        assert metrics[f"{corpus} replies: frequent"] == 100.0  # fewer than ten replies
    assert "perception" in metrics.get("not measured", ()) or metrics["everyday: acceptable"]["n"] == 6
    rows = [json.loads(line) for line in (status.folder / "outputs.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["corpus"] for row in rows] == ["everyday"] * 6 + ["empathetic_dialogues"] * 4
    assert all(row["reply"] for row in rows)
    assert default_listener("smoke").evaluate("test", None) == metrics  # what `evaluate default` prints


def test_without_the_encoder_the_perception_is_named_as_not_measured(monkeypatch: pytest.MonkeyPatch):
    def missing(*_: object, **__: object) -> None:
        raise MissingResourceError("no encoder")

    monkeypatch.setattr(PerceivingListener, "load", missing)
    scores = default_listener("smoke").evaluate("test", None)
    assert scores["not measured"] == ["perception"]
    assert "everyday replies: frequent" in scores and "everyday: acceptable" not in scores
