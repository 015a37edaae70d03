"""Records of earlier versions: names become rows, and every score of ``results/`` keeps its value and its name."""

import math
from pathlib import Path

import pytest

from empatheia.metrics.earlier_records import is_score, measured_by_names
from empatheia.metrics.records import measured_of, read_records
from empatheia.metrics.rows import LABELS

RESULTS = Path(__file__).resolve().parents[2] / "results"


def score(value: float = 50.0, **more) -> dict:
    return {"name": "x", "value": value, "unit": "percent", "n": 4, "higher_is_better": True, **more}


@pytest.mark.parametrize(
    ("name", "labels", "metric"),
    [
        ("accuracy", {}, "accuracy"),
        ("gold label: ppl_word", {"told": "gold label"}, "ppl_word"),
        ("exploration: f1_macro", {"mechanism": "exploration"}, "f1_macro"),
        ("all: f1_weighted", {"turns": "all"}, "f1_weighted"),
        ("majority (questioning): accuracy", {"method": "majority (questioning)"}, "accuracy"),
        ("own+dailydialog: bleu_avg", {"candidates": "own+dailydialog"}, "bleu_avg"),
        ("inline: p_at_1_100", {"protocol": "inline"}, "p_at_1_100"),
        ("meld six: accuracy", {"set": "meld six"}, "accuracy"),
        ("emotion: accuracy", {"of": "emotion"}, "accuracy"),
        (
            "reccon words, train + valid + test: lexicon (vader): cause_recall_top3",
            {"set": "reccon words, train + valid + test", "method": "lexicon (vader)"},
            "cause_recall_top3",
        ),
    ],
)
def test_a_name_becomes_labels_and_a_metric_and_is_told_again(name, labels, metric):
    (row,) = measured_by_names({name: score()}).rows
    assert (row.labels, row.metric, row.name) == (labels, metric, name)
    assert row.score.value == 50 and row.score.name == metric and set(labels) <= set(LABELS)


def test_focus_runs_have_systems_mechanisms_and_tests():
    test = {"difference": 1.0, "p_value": 0.01, "n": 4}
    metrics = {"S0: coverage": score(), "trivial: why: exploration": score(1.5), "systems": {"S0": {}}}
    measured = measured_by_names({**metrics, "tests": {"coverage: gee, alpha 2, beta 0.9 against S0": test}})
    assert measured.score("coverage", system="S0").value == 50
    assert measured.by_key(system="trivial: why")["exploration"].value == 1.5
    assert [row.name for row in measured.rows] == ["S0: coverage", "trivial: why: exploration"]
    assert measured.test("coverage", "S0", system="gee, alpha 2, beta 0.9") == test
    assert measured.test("coverage", "random", system="gee, alpha 2, beta 0.9") is None
    assert measured.facts == {"systems": {"S0": {}}}


def test_folds_with_plain_numbers_have_rows_without_an_interval():
    values = {"positive_f1": 60.0, "threshold": 0.5, "n_positive": 3, "n_negative": 4}
    measured = measured_by_names({"fold1 pairs, threshold 0.5": values})
    found = measured.score("entailment_f1_positive", fold="1", of="pairs", threshold="0.5")
    assert (found.value, found.n, found.interval) == (60, 7, None)
    assert measured.facts["fold1 pairs, threshold 0.5"] == values
    assert [row.name for row in measured.rows] == ["fold1 pairs, threshold 0.5: entailment_f1_positive"]


def test_half_a_score_of_an_old_record_is_read_and_infinity_too():
    measured = measured_by_names({"accuracy": {"value": None, "unit": "percent"}, "ppl_word": score("inf")})
    assert math.isnan(measured.score("accuracy").value) and measured.score("accuracy").n == 0
    assert math.isinf(measured.score("ppl_word").value)


def test_every_score_in_results_keeps_its_name_value_and_interval():
    n = 0
    for record in read_records(RESULTS):
        names = {name: own for name, own in record.get("metrics", {}).items() if is_score(own)}
        rows = {row.name: row.score for row in measured_of(record).rows}
        for name, own in names.items():
            kept = rows[name].to_dict()
            assert all(kept[key] == own[key] for key in own if key != "name"), (record["recipe"], name)
            n += 1
    assert n > 1_500
