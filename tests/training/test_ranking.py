"""Weights of the ranking: the loss they minimise, the pairs they are chosen on, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.optimize import minimize

from empatheia.errors import ConfigError
from empatheia.resources.arrays import load_arrays
from empatheia_research.corpora import everyday
from empatheia_research.recipes.recipe import load_recipe
from empatheia_research.shipped import recipes_root
from empatheia_research.training.runner import run
from empatheia_research.training.tasks.rank import Pairs, RankTask, choose_weights

RECIPE = recipes_root() / "default" / "ranking.yaml"


def recipe(*overrides: str):
    return load_recipe(RECIPE, size="smoke", overrides=overrides)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_chosen_weights_minimise_the_loss(seed):
    """Against scipy's bounded quasi-Newton method; terms are of very different size."""
    rng = np.random.default_rng(seed)
    x = rng.normal([0.4, 0.1, -0.05, 0.0], [1.0, 0.2, 0.1, 3.0], (120, 4))
    decay = 0.01

    def loss(w):
        return np.logaddexp(0, -x @ w).mean() + decay * (w**2).sum() / 2

    best = minimize(loss, np.ones(4), bounds=[(0, None)] * 4, method="L-BFGS-B", options={"ftol": 1e-12}).x
    found = choose_weights(x, decay)
    assert loss(found) <= loss(best) + 1e-6 and (found >= 0).all()
    assert found == pytest.approx(best, abs=0.03)


def test_a_term_that_speaks_for_the_worse_reply_weighs_nothing():
    assert choose_weights(np.array([[1.0, -1.0], [0.5, -2.0]]), 0.01)[1] == 0.0
    same = choose_weights(np.array([[1.0, 0.0], [0.5, 0.0]]), 0.01)
    assert same[1] == 0.0 and same[0] == pytest.approx(choose_weights(np.array([[1.0], [0.5]]), 0.01)[0])


def test_pairs_count_as_right_only_where_the_better_reply_stands_above():
    pairs = Pairs(np.array([[1.0, 0.0], [0.0, 0.0], [-1.0, 3.0]]), ("avoid", "stray", "avoid"), ("a", "a", "b"))
    assert pairs.right(np.array([1.0, 1.0])) == [True, False, True]
    assert pairs.right(np.array([1.0, 0.0]), "avoid") == [True, False]


def test_a_run_says_weights_accuracy_and_what_each_term_gains(tmp_path):
    status = run(recipe(), tmp_path, show_progress=False)
    metrics = status.metrics["metrics"]
    terms = ["coverage", "contradiction", "diversity", "length"]
    assert list(metrics["weights"]["chosen"]) == list(metrics["gain"]) == list(metrics["alone"]) == terms
    assert metrics["chosen: avoid"]["n"] == metrics["chosen: stray"]["n"] == 6 and metrics["chosen: all"]["n"] == 12
    rows = [json.loads(line) for line in (status.folder / "outputs.jsonl").read_text().splitlines()]
    assert [row["kind"] for row in rows[:4]] == ["avoid", "stray", "avoid", "stray"]
    chosen = np.array([metrics["weights"]["chosen"][name] for name in terms])
    right = np.mean([sum(chosen[i] * row[name] for i, name in enumerate(terms)) > 0 for row in rows])
    assert metrics["chosen: all"]["value"] == pytest.approx(100 * right, abs=9)  # weights in print are rounded


def test_terms_are_those_of_the_replies_and_a_stray_one_is_never_ones_own(tmp_path):
    task = RankTask(recipe("data.terms=[length]"), tmp_path)
    items = [i for i in everyday.items("test") if i.reply and i.avoid][:6]
    task.pairs("test", 6)
    for item in items:
        reply, avoid, stray = task.given.replies[item.dialogue.id]
        assert (reply, avoid) == (item.reply, item.avoid)
        assert stray != reply and stray in [other.reply for other in items]
    kept = load_arrays(tmp_path / "terms.test.safetensors")["terms"]
    assert kept.shape == (6, 3, 1)
    words = [len(item.avoid.split()) for item in items]
    assert all((value < 0) == (n < 3 or n > 40) for value, n in zip(kept[:, 1, 0], words, strict=True) if n != 3)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["data.terms=[charm]"], "no term 'charm'; accepted: likelihood, listener"),
        (["data.terms=[information]"], "need data.scorer"),
        (["data.corpus=empathetic_dialogues"], "accepted: everyday, the only corpus"),
        (["data.scorer=listener"], "gives no probabilities"),
    ],
)
def test_what_cannot_be_weighed_is_refused(tmp_path, request, overrides, message):
    if "data.scorer=listener" in overrides:
        request.getfixturevalue("sentence_encoder")
    with pytest.raises(ConfigError, match=message):
        RankTask(recipe(*overrides), tmp_path)
