"""What ``evaluate`` prints beside the published row of a recipe, and when it compares nothing."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from empatheia.metrics.score import Score
from empatheia_research.cli.evaluate import published_text
from empatheia_research.recipes import load_recipe

SCORES = {"emotion_accuracy": Score("accuracy", 41.0, "percent", 100, True, (38.0, 44.0)).to_dict()}


@pytest.mark.parametrize(
    ("size", "sees"), [("full", "not measured on"), ("row", "narrower"), ("smoke", "measured on the sample")]
)
def test_only_what_print_has_is_compared(size, sees):
    model = SimpleNamespace(recipe=load_recipe("gao2021/soft", size=size))
    text = published_text(model, SCORES)
    assert text.startswith("Published: gao2021") and "42.4" in text
    assert ("compared" in text or sees in text) if size != "full" else "narrower" not in text and "sample" not in text


def test_a_recipe_that_is_no_published_system_says_so():
    assert "No published row" in published_text(SimpleNamespace(recipe=SimpleNamespace(published=None)), SCORES)
