"""Rules of position on RECCON's causal turns: by hand, as a run without training, and the known figure on real data."""

from __future__ import annotations

import os

import pytest

from empatheia.errors import ConfigError
from empatheia.metrics.records import measured_of
from empatheia.records.dialogue import Span
from empatheia_research.corpora.reccon import load as load_reccon
from empatheia_research.recipes.recipe import load_recipe
from empatheia_research.reports.record_tables import tables
from empatheia_research.training.runner import run
from empatheia_research.training.standings import parts
from empatheia_research.training.tasks.position import BEST_RULE, RULES, rule_cells
from empatheia_research.understanding.causes.entailment_items import EntailmentItem, items_of_fold
from empatheia_research.understanding.causes.entailment_scores import scores_at

RECIPE = "recipes/reccon/position.yaml"


def item(speakers: str, labels: tuple[int, ...]) -> EntailmentItem:
    texts = tuple(f"turn {i}" for i in range(len(speakers)))
    spans = tuple(Span(i, 0, 4) for i, label in enumerate(labels) if label == 1)
    return EntailmentItem("d", len(texts) - 1, texts, tuple(speakers), "joy", labels, spans)


def test_rules_by_hand():
    one = item("ABBA", (1, 0, 1, 1))
    said = {name: [p for p, _ in rule_cells([one], rule)] for name, rule in RULES.items()}
    assert said == {
        "this turn": [0, 0, 0, 1],
        "this turn and the one before": [0, 0, 1, 1],
        "this turn and the speaker's one before": [1, 0, 0, 1],
        "every turn": [1, 1, 1, 1],
    }
    scores = scores_at(rule_cells([one], RULES[BEST_RULE]))
    assert scores.positive_f1 == pytest.approx(80) and scores.precision == 100  # 2 hits, 1 missed
    assert [p for p, _ in rule_cells([item("A", (1,))], RULES["this turn and the speaker's one before"])] == [1]


def test_a_run_measures_and_stands_beside_the_models(tmp_path):
    status = run(load_recipe(RECIPE, size="smoke"), tmp_path, show_progress=False)
    assert status.state == "finished"
    record = status.metrics
    assert list(record["metrics"]) == [f"fold1 pairs, rule {name}" for name in RULES]
    measured = measured_of(record)
    assert measured.score("entailment_f1_macro", fold="1", of="pairs", rule=BEST_RULE) is not None
    assert measured.rows[0].name.startswith("fold1 pairs, rule this turn: ")
    (table,) = tables([record | {"size": "cpu"}])
    assert [row.labels["threshold or rule"] for row in table.rows] == list(RULES)
    beside = [part for part in parts() if "reccon/position" in part.others]
    assert {part.metric for part in beside} == {"positive F1", "macro F1"}
    for part in beside:
        found = part.find(measured)
        assert found is not None and found[3].startswith("baseline")


def test_another_system_is_refused(tmp_path):
    recipe = load_recipe(RECIPE, size="smoke", overrides=["system=cause_entailment"])
    with pytest.raises(ConfigError, match="is for system cause_position, not cause_entailment"):
        run(recipe, tmp_path, show_progress=False)


@pytest.mark.real_data
def test_the_best_rule_on_reccon_test():
    """Counted once by hand over the released pairs: 64.1 positive, 75.0 macro."""
    if not os.environ.get("EMPATHEIA_DATA", "").strip():
        pytest.skip("EMPATHEIA_DATA is not set: the real corpora are not here")
    items = items_of_fold(load_reccon("test"), 1)
    scores = scores_at(rule_cells(items, RULES[BEST_RULE]))
    assert (round(scores.positive_f1, 1), round(scores.macro_f1, 1)) == (64.1, 75.0)
    assert (scores.n_positive, scores.n_negative) == (1894, 5330)
