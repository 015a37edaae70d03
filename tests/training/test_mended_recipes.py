"""What an audit of the training found wrong in recipes stays mended, at every size that trains."""

import pytest

from empatheia_research.recipes.needs import runs_needed
from empatheia_research.recipes.recipe import load_recipe, recipe_files, recipe_sizes
from empatheia_research.responders.empdg import EmpDGConfig
from empatheia_research.shipped import recipes_root

CRITICS = ("empdg", "empdg_imagine", "empdg_gao2021", "without_g")


def adversarial_weights(recipe):
    """Of the generator's group in a stage that learns by turns."""
    groups = [group for stage in recipe.stages for group in stage.alternate]
    return [weight for group in groups for name, weight in group.losses.items() if name.startswith("adversarial")]


@pytest.mark.parametrize("size", ["row", "cpu", "full"])
@pytest.mark.parametrize("name", CRITICS)
def test_critics_are_bounded_and_weigh_what_the_printed_sums_make_of_them(name, size):
    """Printed: a batch mean of critics, 1/16, beside words summed over 16 replies of about 15 words; ours are means."""
    file = recipes_root() / "empdg" / f"{name}.yaml"
    if size not in recipe_sizes(file):
        return
    recipe = load_recipe(file, size)
    config = EmpDGConfig(vocab_size=60, **recipe.model)
    assert config.gradient_penalty == 10.0
    weights = adversarial_weights(recipe)
    assert all(0 < weight <= 1 / 16 / 15 for weight in weights)
    assert weights or recipe.start or "discriminators" in str(recipe.model) or name == "without_g"


def test_the_printed_way_has_a_recipe_of_its_own_and_the_row_of_imagines_table_has_no_critic():
    printed = load_recipe(recipes_root() / "empdg" / "empdg_printed.yaml", "full")
    assert printed.model["gradient_penalty"] == 0.1 and set(adversarial_weights(printed)) == {1 / 16}
    row = load_recipe(recipes_root() / "empdg" / "without_d_imagine.yaml", "cpu")
    assert row.model["discriminators"] == "none" and adversarial_weights(row) == []
    assert row.published is not None and (row.published.table, row.published.row) == ("Table 1", "EmpDG")


def test_replies_are_judged_by_the_model_of_mechanisms_that_says_weak():
    judged = 0
    for file in recipe_files(recipes_root()):
        for size in set(recipe_sizes(file)) - {"smoke"}:
            recipe = load_recipe(file, size)
            if recipe.task in ("focus", "listen"):
                models = {run.recipe for run in runs_needed(recipe) if run.recipe.startswith("epitome/")}
                assert models == {"epitome/shared_from_intents"}, (recipe.name, size)
                judged += 1
    assert judged >= 10
