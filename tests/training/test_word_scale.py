"""Words that start at random are as long as the positions beside them; given vectors are left as they are."""

import pytest

from empatheia_research.recipes.recipe import load_recipe
from empatheia_research.shipped import recipes_root
from empatheia_research.training.tasks.respond import RespondTask


def built(name, folder, *overrides):
    return RespondTask(load_recipe(recipes_root() / f"{name}.yaml", size="smoke", overrides=overrides), folder).model


@pytest.mark.parametrize("name", ["gao2021/soft", "gao2021/transformer", "rashkin2018/generation_base"])
def test_random_words_are_scaled_where_positions_are_added(name, tmp_path):
    model = built(name, tmp_path)
    assert model.config.scale_words
    assert model.encoder.word_scale == model.config.width**0.5


def test_a_family_that_scales_elsewhere_is_left_alone(tmp_path):
    assert not built("meed2/transformer_raw", tmp_path).config.scale_words


def test_given_vectors_are_not_scaled(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_text("".join(f"{word} " + " ".join(["0.5"] * 32) + "\n" for word in ("i", "the", "my")))
    assert not built("gao2021/transformer", tmp_path / "run", f"tokenizer.vectors={path}").config.scale_words
