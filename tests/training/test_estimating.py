"""The estimator's task: pairs it learns from, a whole small run, resuming weights, the table of methods."""

from __future__ import annotations

import json
import math
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from empatheia.errors import ConfigError
from empatheia.metrics.earlier_records import measured_by_names
from empatheia_research.corpora import sample
from empatheia_research.recipes.recipe import load_recipe
from empatheia_research.reports.results_page import keep
from empatheia_research.training.runner import run
from empatheia_research.training.tasks.estimate import EstimateTask, comparisons, recall_metrics
from empatheia_research.training.tasks.word_chart import methods_of, word_chart, word_table
from empatheia_research.understanding.words.estimator import likelihoods
from empatheia_research.understanding.words.evidence import PAPER, REPO, RUNNING, Evidence
from empatheia_research.understanding.words.gold import WordItem
from empatheia_research.understanding.words.turns import EVIDENCES, WordsOfTurns

RECIPES = Path(__file__).resolve().parents[2] / "recipes" / "kim2021"
FAST = ("stages.text.max_steps=6", "stages.text.evaluations=1", "data.valid_limit=4", "data.train_limit=12")


def task(folder, *overrides, recipe="estimator.yaml"):
    return EstimateTask(load_recipe(RECIPES / recipe, size="smoke", overrides=[*FAST, *overrides]), folder)


FORMS = {
    "estimator.yaml": RUNNING, "estimator_small.yaml": RUNNING, "estimator_paper.yaml": PAPER,
    "estimator_repo.yaml": REPO,
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("size", ["smoke", "cpu", "full"])
def test_recipes_load(name, size):
    recipe = load_recipe(RECIPES / name, size=size)
    assert (recipe.task, recipe.system, recipe.seed) == ("estimate", "emotion_estimator", 15)
    settings = [recipe.model[n] for n in ("evidence", "top_emotions", "length_norm", "memory", "explains")]
    assert Evidence(*settings) == FORMS[name]
    assert (recipe.encoder is None) == (size != "full")
    assert recipe.data.texts == (("situation",) if size == "full" else ("situation", "speaker"))


def test_what_is_learnt_from(tmp_path):
    """One pair a text and emotion: situations only as published, or turns of the speaker; never a listener's turn."""
    dialogues = list(sample.load("train"))[:12]
    situations = {(d.emotion, d.situation) for d in dialogues}
    spoken = {(d.emotion, t.text) for d in dialogues for t in d.turns if t.role == "speaker"}
    opening = {(d.emotion, d.turns[0].text) for d in dialogues}
    for texts, expected in (
        ("[situation]", situations), ("[situation,speaker]", situations | spoken), ("[opening]", opening),
    ):  # fmt: skip
        pairs = task(tmp_path, f"data.texts={texts}").pairs("train")
        assert set(pairs) == expected and len(pairs) == len(expected)


def test_a_small_run(tmp_path):
    """Trains, saves, measures every set and method; what was saved answers as what was measured."""
    recipe = load_recipe(RECIPES / "estimator.yaml", size="smoke", overrides=list(FAST))
    status = run(recipe, tmp_path, show_progress=False)
    record = json.loads((status.folder / "metrics.json").read_text(encoding="utf-8"))
    scores = record["metrics"]
    everything = "reccon words, train + valid + test"
    assert scores[f"{everything}: counts"]["items"] > scores["reccon words: counts"]["items"]
    assert scores[f"{everything}: rake: cause_recall_top1"]["n"] == scores[f"{everything}: counts"]["items"]
    for name in ("reccon words", "reccon words, part of the turn", everything, "emocause"):
        for method in (*(f"estimator {form}" for form in EVIDENCES), "estimator repo, gold emotion", "random", "rake"):
            values = [scores[f"{name}: {method}: cause_recall_top{k}"] for k in (1, 3, 5)]
            assert values[0]["value"] <= values[1]["value"] <= values[2]["value"]
            assert all(v["value"] <= v["parts"]["ceiling"] + 1e-9 and len(v["interval"]) == 2 for v in values)
            assert values[0]["value"] >= scores[f"{name}: {method}: cause_recall_top1_index"]["value"]
        assert "interval" in scores[f"{name}: estimator paper - rake: cause_recall_top3"]
    assert set(scores["missing"]) == {"lexicon", "classifier attention", "gradient x input"}
    assert scores["emotion: accuracy"]["n"] == 8 and scores["text: ppl_token"]["value"] > 1
    curves = [json.loads(line) for line in (status.folder / "curves.jsonl").read_text().splitlines()]
    losses = [row["loss_text"] for row in curves if "loss_text" in row]
    assert losses[-1] < losses[0]
    dialogues = list(sample.load("test"))
    words = WordsOfTurns.load(status.folder / "checkpoint")
    assert words.name == "kim2021/estimator" and words.scorer.evidence == RUNNING
    assert scores["evidence"] == "running"
    assert all(row and row[0].words for row in words.annotate(dialogues[:2]))
    lines = [json.loads(line) for line in (status.folder / "outputs.jsonl").read_text().splitlines()]
    assert {"set", "method", "id", "gold", "ranked"} == set(lines[0])
    assert (status.folder / "words.md").read_text(encoding="utf-8") == word_table(measured_by_names(scores))
    charts = sorted(path.name for path in status.folder.glob("words-*.svg"))
    assert len(charts) == 5 and charts[0] == "words-emocause.svg"
    kept = keep(status.folder, tmp_path / "results")
    page = (tmp_path / "results" / "README.md").read_text(encoding="utf-8")
    for chart in charts:
        beside = kept.with_suffix(f".{chart}")
        assert beside.read_bytes() == (status.folder / chart).read_bytes() and f"/{beside.name})" in page


def test_weights_of_a_stage_load_into_a_fresh_model(tmp_path):
    """Tied weights are stored once and come back everywhere."""
    first = task(tmp_path)
    first.model.save_pretrained(tmp_path / "stage")
    torch.manual_seed(99)
    second = task(tmp_path)
    texts = ["I lost my keys."]
    before = likelihoods(second.model, second.reader, texts)[0].values
    second.model.load_state_dict(second.read_weights(tmp_path / "stage"))
    found, expected = (likelihoods(t.model, t.reader, texts)[0].values for t in (second, first))
    assert torch.equal(found, expected) and not torch.equal(before, expected)
    assert second.model.backbone.lm_head.weight is second.model.backbone.model.shared.weight


def test_gold_words_do_not_reach_the_scorers(tmp_path):
    made = task(tmp_path)
    asked = []

    class Spy:
        name = "spy"

        def score(self, questions, *, batch_size):
            asked.extend(questions)
            return []

    items, _ = made.word_sets("test")["emocause"]
    from empatheia_research.training.tasks.estimate import ranked_words

    with pytest.raises(ValueError, match="shorter"):
        ranked_words(Spy(), items)
    assert all(
        q.emotion is None and {f.name for f in q.__dataclass_fields__.values()} == {"text", "emotion", "words"}
        for q in asked
    )


def test_metrics_and_comparisons():
    text = "the dog saw a dog and a cat"
    words = ((0, 3), (4, 7), (8, 11), (12, 13), (14, 17), (18, 21), (22, 23), (24, 27))
    item = WordItem("1", text, words, "sad", (("dog", 4), ("cat", 7)))
    good, poor = ([[4, 7, 1]] * 4, [[1, 2, 7]] * 4)
    metrics = {"estimator repo": recall_metrics([item] * 4, good), "random": recall_metrics([item] * 4, poor)}
    values = {name: {k: m.compute().value for k, m in own.items()} for name, own in metrics.items()}
    assert values["random"]["cause_recall_top1"] == 50 and values["random"]["cause_recall_top1_index"] == 0
    assert values["estimator repo"]["cause_recall_top3_index"] == values["estimator repo"]["cause_recall_top3"] == 100
    assert metrics["random"]["cause_recall_top1"].compute().parts["ceiling"] == 50
    found = comparisons("set", metrics)
    assert found["set: estimator repo - random: cause_recall_top3"]["difference"] == 0
    assert not math.isnan(found["set: estimator repo - random: cause_recall_top1"]["difference"])
    assert np.isfinite([m.compute(100).interval[0] for m in metrics["random"].values()]).all()


def test_table_and_chart():
    """Every figure, its interval and the ceiling; the best method first; a chart is well-formed at its places."""
    text = "the dog saw a dog and a cat"
    words = ((0, 3), (4, 7), (8, 11), (12, 13), (14, 17), (18, 21), (22, 23), (24, 27))
    item = WordItem("1", text, words, "sad", (("dog", 4), ("cat", 7)))
    scores = {}
    for name, rows in (
        ("random", [[2, 7, 1]] * 3 + [[1, 2, 7]]), ("rake", [[4, 7, 1]] * 4), ("estimator a<b", [[2, 4, 7]] * 4),
        ("rake, gold emotion", [[4, 7, 1]] * 4),
    ):  # fmt: skip
        metrics = recall_metrics([item] * 4, rows)
        scores |= {f"some words: {name}: {key}": m.compute(200).to_dict() for key, m in metrics.items()}
    scores["some words: estimator a<b - rake: cause_recall_top1"] = {"difference": 0}
    measured = measured_by_names(scores)
    assert methods_of(measured, "some words") == ["rake", "random", "estimator a<b", "rake, gold emotion"]
    lines = word_table(measured).splitlines()
    assert lines[0] == "## some words, 4 texts"
    assert lines[4] == "| rake | 50.00 [50.00, 50.00] | 100.00 [100.00, 100.00] | 100.00 [100.00, 100.00] |"
    assert lines[5].startswith("| random | 12.50 [") and lines[8] == "| ceiling | 50.00 | 100.00 | 100.00 |"
    chart = ElementTree.fromstring(word_chart(measured, "some words"))
    svg = "{http://www.w3.org/2000/svg}"
    dots = chart.findall(f"{svg}g/{svg}circle")
    assert len(dots) == 12
    for panel in range(3):
        own = [float(dot.get("cx")) for dot in dots[4 * panel : 4 * panel + 4]]
        values = [scores[f"some words: {n}: cause_recall_top{(1, 3, 5)[panel]}"]["value"] for n in
                  methods_of(measured, "some words")]  # fmt: skip
        assert sorted(range(4), key=own.__getitem__) == sorted(range(4), key=values.__getitem__)
    assert "estimator a<b: 0.00 [0.00, 0.00]" in [t.text for t in chart.iter(f"{svg}title")]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("data.corpus=recon", "no corpus is called 'recon'. Did you mean 'reccon'"),
        ("tokenizer.kind=word", "needs model.backbone_config"),
        ("model.backbone_config=null", "needs model.backbone_config"),
        ("model.evidense=all", "unknown key 'model.evidense'. Did you mean 'evidence'"),
        ("data.texts=[listener]", "data.texts"),
    ],
)
def test_errors(tmp_path, override, message):
    with pytest.raises(ConfigError, match=message):
        task(tmp_path, override)
