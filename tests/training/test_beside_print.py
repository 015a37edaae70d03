"""What ``evaluate`` prints beside the published row of a recipe, and when it compares nothing."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from empatheia.metrics.published import AT_ROW_SIZE
from empatheia.metrics.score import Score
from empatheia_research.cli.evaluate import published_text
from empatheia_research.recipes.recipe import load_recipe
from empatheia_research.shipped import recipes_root

SCORES = {"emotion_accuracy": Score("accuracy", 41.0, "percent", 100, True, (38.0, 44.0)).to_dict()}


WHY_NOT = {"full": "", "row": AT_ROW_SIZE, "smoke": "measured on the sample"}


@pytest.mark.parametrize("size", WHY_NOT)
def test_only_what_print_has_is_compared(size):
    text = published_text(
        SimpleNamespace(recipe=load_recipe(recipes_root() / "gao2021" / "soft.yaml", size=size)), SCORES
    )
    assert text.startswith("Published: ") and "42.4" in text
    assert {why for why in WHY_NOT.values() if why and why in text} == ({WHY_NOT[size]} - {""})


def test_a_recipe_that_is_no_published_system_says_so():
    assert "No published row" in published_text(SimpleNamespace(recipe=SimpleNamespace(published=None)), SCORES)
