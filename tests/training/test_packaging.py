"""A finished run becomes a model folder whose card `evaluate` reproduces; annotations survive a round trip."""

import json

import pytest

from empatheia.errors import CheckpointError, DataError, MissingResourceError
from empatheia.records.dialogue import CauseAnnotation, Dialogue, Span
from empatheia_research.corpora.annotations import read_annotations, write_annotations
from empatheia_research.recipes.recipe import load_recipe
from empatheia_research.reports.results_page import keep
from empatheia_research.training.release import ModelFolder, card_text, metric_rows, package
from empatheia_research.training.runner import run

TINY = [
    "data.train_limit=8", "data.valid_limit=3", "data.test_limit=3", "decoding.max_new_tokens=8",
    "stages.reasoner.epochs=1", "stages.pretrain.epochs=1", "stages.replies.epochs=1",
]  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    recipe = load_recipe("recipes/default/listener.yaml", size="smoke", overrides=TINY)
    return run(recipe, out, show_progress=False)


def test_evaluate_reproduces_the_card_to_the_last_digit(finished, tmp_path):
    card = package(finished.folder, tmp_path / "model", "tiny")
    again = ModelFolder(tmp_path / "model").evaluate("test")
    assert metric_rows(again) == metric_rows(card["metrics"])
    assert metric_rows(json.loads((tmp_path / "model/card.json").read_text())["metrics"]) == metric_rows(again)
    text = (tmp_path / "model/README.md").read_text()
    for label, value, _, _ in metric_rows(again):
        assert f"| {label} | {value} |" in text
    assert "CC BY-NC 4.0" in text and "{" not in text and "TODO" not in text


def test_packaging_keeps_the_model_usable(finished, tmp_path):
    from empatheia import Listener

    package(finished.folder, tmp_path / "model", "tiny")
    analysis = Listener.load(tmp_path / "model").analyze("I lost my keys and I am so angry.")
    assert sum(analysis.newest.emotions.values()) == pytest.approx(1.0)
    assert analysis.by["emotion"] == "tiny"


def test_an_unfinished_run_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="not finished; continue it with `empatheia train`"):
        package(tmp_path, tmp_path / "model", "x")
    with pytest.raises(CheckpointError, match=r"has no metrics\.json"):
        keep(tmp_path, tmp_path)
    with pytest.raises(CheckpointError, match=r"has no empatheia.json"):
        ModelFolder(tmp_path)


def test_records_are_kept_and_tabulated(finished, tmp_path):
    target = keep(finished.folder, tmp_path)
    assert json.loads(target.read_text())["recipe"] == "default/listener"
    table = (tmp_path / "README.md").read_text()
    assert "`default/listener/smoke-seed1024`" in table
    assert target.with_suffix(".curves.jsonl").read_text().count('"stage"') > 4


def test_card_names_only_what_was_used(finished, tmp_path):
    card = package(finished.folder, tmp_path / "model", "tiny", description="A tiny one.")
    text = card_text(card)
    assert "A tiny one." in text and "share" not in text.split("## Data")[0]
    assert "Teacher" not in text  # the smoke size distils nothing
    card["uses"]["spans"] = "none"
    assert "RECCON (DailyDialog part)" not in card_text(card)


@pytest.mark.parametrize("name", ["notes.jsonl", "notes.jsonl.gz"])
def test_annotations_round_trip_and_are_equal_to_the_byte(tmp_path, name):
    notes = [CauseAnnotation("a", 2, (0, 2), (Span(2, 5, 9),), "by", (0.25, 0.0, 0.5)), CauseAnnotation("b", 0, ())]
    assert write_annotations(tmp_path / name, notes) == 2
    assert read_annotations(tmp_path / name) == notes
    first = (tmp_path / name).read_bytes()
    write_annotations(tmp_path / name, notes)
    assert (tmp_path / name).read_bytes() == first


def test_annotation_errors_say_where(tmp_path):
    with pytest.raises(MissingResourceError, match=r"no cause annotations at .*empatheia annotate"):
        read_annotations(tmp_path / "none.jsonl")
    (tmp_path / "bad.jsonl").write_text('{"id": "a", "target": 0, "turns": []}\n{"id": "b"}\n')
    with pytest.raises(DataError, match=r"bad.jsonl:2: not a cause annotation"):
        read_annotations(tmp_path / "bad.jsonl")


def test_annotating_never_shows_the_future():
    from empatheia_research.understanding.causes.entailment_items import items_from_dialogue

    items = items_from_dialogue(Dialogue.of("a", "b", "c", "d", id="x", emotion="sad"), emotion_map={"sad": "sadness"})
    assert [(item.target, item.texts) for item in items] == [(0, ("a",)), (2, ("a", "b", "c"))]


def test_our_scores_stand_beside_the_published_ones():
    from types import SimpleNamespace

    from empatheia.metrics import METRICS
    from empatheia_research.cli.evaluate import published_text

    metric = METRICS.get("accuracy")()
    metric.update([0, 1, 2, 3], [0, 1, 2, 0])
    scores = {"accuracy": metric.compute(n_resamples=50).to_dict(), "decoding": {"strategy": "sample"}}
    for size, verdict in (
        ("cpu", "better"),
        ("smoke", "not comparable: measured on the sample"),
        ("row", "not comparable: made small and short, to be compared with the other rows at size row"),
    ):
        model = SimpleNamespace(recipe=load_recipe("recipes/gao2021/soft.yaml", size))
        line = next(line for line in published_text(model, scores).splitlines() if line.startswith("Accuracy"))
        assert "75.0" in line and "42.4" in line and line.endswith(verdict)
    without = published_text(SimpleNamespace(recipe=load_recipe("recipes/default/listener.yaml", "smoke")), scores)
    assert without.startswith("No published row")
