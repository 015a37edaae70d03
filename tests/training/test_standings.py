"""The table of all parts of the analysis: read from records, nothing else."""

import json
from pathlib import Path

import pytest

from empatheia.cli import main
from empatheia.errors import DataError
from empatheia.metrics.published import published
from empatheia_research.recipes.recipe import load_recipe, recipe_files
from empatheia_research.training.standings import parts, standings, to_text


def record(folder: Path, recipe: str, metrics: dict, size: str = "cpu", seed: int = 1) -> None:
    place = folder / recipe / f"{size}-seed{seed}.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps({"recipe": recipe, "size": size, "seed": seed, "metrics": metrics}))


def score(value: float, unit: str = "percent", interval: tuple[float, float] | None = None, n: int = 10) -> dict:
    return {"value": value, "unit": unit, "interval": interval, "n": n}


def test_every_recipe_exists_and_published_figures_are_read():
    recipes = Path(__file__).parents[2] / "recipes"
    assert all((recipes / f"{name}.yaml").is_file() for part in parts() for name in (part.recipe, *part.others))
    printed = {(part.recipe, part.metric): part.published for part in parts()}
    assert printed["rashkin2018/emotion_situation_cut", "accuracy"] == 45
    assert printed["rashkin2018/fasttext", "accuracy"] == 43
    assert printed["reccon/span", "F1_pos"] == 58.17
    assert printed["meed2/response_labels", "weighted F1"] == 28.64


RECIPES = recipe_files(Path(__file__).parents[2] / "recipes")


@pytest.mark.parametrize("file", RECIPES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_the_published_row_a_recipe_names_is_one_printed_row(file):
    recipe = load_recipe(file, "cpu")
    if (row := recipe.published) is not None:
        assert published(row.paper, row.table, row.row, row.setting, row.dataset)
        assert load_recipe(file, "smoke").published == row


@pytest.mark.parametrize(
    ("name", "printed"),
    [("emotion_situation", 0.48), ("emotion_situation_cut", 0.45), ("fasttext", 0.43), ("fasttext_cut", 0.41)],
)
def test_situations_with_and_without_the_word_of_their_label(name, printed):
    row = load_recipe(f"recipes/rashkin2018/{name}.yaml", "cpu").published
    assert row is not None
    (number,) = published(row.paper, row.table, row.row, row.setting, row.dataset).values()
    assert number.value == printed


def test_rows_are_written_as_they_were_given():
    row = load_recipe("recipes/gao2021/soft.yaml", "cpu").published
    assert row is not None and row.model_dump() == {"paper": "gao2021", "table": "Table 2", "row": "Ours(Soft)"}


def test_a_record_stands_beside_the_published_figure(tmp_path: Path):
    record(tmp_path, "meed2/response_labels", {"f1_weighted": score(0.2912, "fraction", (0.27, 0.31), 2000)})
    record(tmp_path, "meed2/emotion_intent", {"accuracy": score(60.0, interval=(58.0, 62.0))})
    record(tmp_path, "meed2/emotion_intent", {"accuracy": score(67.0)}, size="full", seed=2)
    record(tmp_path, "meed2/emotion_intent", {"accuracy": score(3.0)}, size="smoke")
    found = standings(tmp_path)
    reply = next(row for row in found if row.recipe == "meed2/response_labels")
    assert reply.value == pytest.approx(29.12) and reply.interval == pytest.approx((27, 31)) and reply.n == 2000
    assert reply.is_reached
    own = [row for row in found if row.recipe == "meed2/emotion_intent"]
    assert [(row.size, row.seed, row.is_reached) for row in own] == [("cpu", 1, False), ("full", 2, True)]
    missing = [row for row in found if row.size is None]
    assert missing and all(row.value is None and row.is_reached is None for row in missing)
    text = to_text(found)
    assert "29.12" in text and "[27.00, 31.00]" in text and "28.64 MEED2" in text and " 3.00" not in text
    assert text.count("to run: empatheia train recipes/reccon/span.yaml --size cpu --record results") == 1


def test_spans_at_the_published_threshold_as_the_released_script_counts(tmp_path: Path):
    scores = {"span_f1_pos_nested": score(56.5, interval=(54.0, 58.0), n=7224)}
    zero = {"threshold": 0.0, "f1_pos": 58.5, "f1_pos_nested": 56.5, "f1": 76.0, "f1_nested": 75.1, "scores": scores}
    chosen = {"threshold": 0.4, "f1_pos": 62.0, "f1_pos_nested": 60.3, "f1": 77.0, "f1_nested": 73.0}
    metrics = {"fold1 spans, threshold 0": zero, "fold1 spans, threshold tuned on valid": chosen}
    metrics["fold2 spans, threshold 0"] = {"threshold": 0.0, "f1_pos_nested": 99.0, "f1_nested": 99.0}
    record(tmp_path, "reccon/span", metrics)
    f1_pos, f1 = (row for row in standings(tmp_path) if row.recipe == "reccon/span")
    assert (f1_pos.value, f1_pos.interval, f1_pos.n, f1_pos.is_reached) == (56.5, (54.0, 58.0), 7224, False)
    assert f1.value == 75.1 and f1.interval is None and f1.is_reached
    assert f1.remark == "threshold 0, as published; SQuAD F1 76.0; at 0.4, chosen on valid, 73.0"


def test_turns_at_the_threshold_chosen_on_valid(tmp_path: Path):
    half = {"threshold": 0.5, "positive_f1": 60.0, "macro_f1": 70.0}
    chosen = {"threshold": 0.7, "positive_f1": 67.0, "macro_f1": 78.0}
    metrics = {"fold1 pairs, threshold 0.5": half, "fold1 pairs, threshold tuned on valid": chosen}
    record(tmp_path, "reccon/entailment", metrics)
    own = [row for row in standings(tmp_path) if row.recipe == "reccon/entailment"]
    assert [row.value for row in own] == [67.0, 78.0] and own[0].remark == "threshold 0.7, chosen on valid"


def test_word_recall_is_the_models_own_evidence_without_the_gold_emotion(tmp_path: Path):
    values = {
        "estimator repo": 40.0,
        "estimator paper": 50.0,
        "estimator repo, gold emotion": 60.0,
        "rake": 38.0,
        "gradient, gold emotion": 70.0,
        "random": 30.0,
    }
    metrics = {
        f"reccon words: {name}: cause_recall_top3": score(v, interval=(v - 1, v + 1)) for name, v in values.items()
    }
    metrics["reccon words: estimator repo - rake: cause_recall_top3"] = {"p": 0.1}
    record(tmp_path, "kim2021/estimator", metrics)
    row = next(row for row in standings(tmp_path) if row.metric == "recall@3")
    assert row.value == 40 and row.remark == "best baseline rake 38.0; random [29.0, 31.0]"
    record(tmp_path, "kim2021/estimator", metrics | {"evidence": "paper"})
    assert next(row for row in standings(tmp_path) if row.metric == "recall@3").value == 50


def test_other_recipes_for_the_same_question_are_listed_if_run(tmp_path: Path):
    spans = {"threshold": 0.0, "f1_pos": 60.0, "f1_pos_nested": 59.0, "f1": 75.0, "f1_nested": 74.0}
    metrics = {"fold1 spans, threshold 0": spans}
    record(tmp_path, "reccon/span_from_annotator", metrics)
    own = [row for row in standings(tmp_path) if row.task == "RECCON spans, fold 1"]
    assert [(row.recipe, row.is_reached) for row in own] == [
        ("reccon/span_from_annotator", True),
        ("reccon/span_from_annotator", False),
    ]
    record(tmp_path, "reccon/span", metrics)
    own = [row.recipe for row in standings(tmp_path) if row.metric == "F1_pos"]
    assert own == ["reccon/span", "reccon/span_from_annotator"]


def test_mechanisms_of_one_recipe_are_listed_if_run(tmp_path: Path):
    assert {row.recipe for row in standings(tmp_path) if row.recipe.startswith("epitome")} == {"epitome/shared"}
    record(
        tmp_path, "epitome/exploration", {"exploration: accuracy": score(91.0), "exploration: f1_macro": score(70.0)}
    )
    own = [row for row in standings(tmp_path) if row.recipe == "epitome/exploration"]
    assert [(row.metric, row.is_reached) for row in own] == [("accuracy", True), ("macro F1", False)]


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture):
    record(tmp_path, "rashkin2018/fasttext", {"accuracy": score(43.6, interval=(41.7, 45.5))})
    with pytest.raises(SystemExit) as end:
        main(["evaluate", "understanding", "--json", "--results", str(tmp_path)])
    assert not end.value.code
    rows = json.loads(capsys.readouterr().out)["rows"]
    own = next(row for row in rows if row["recipe"] == "rashkin2018/fasttext")
    assert own["value"] == 43.6 and own["interval"] == [41.7, 45.5] and own["published"] == 43 and own["is_reached"]
    with pytest.raises(DataError, match=r"there is no folder .* of run records; name one with --results"):
        standings(tmp_path / "none")
